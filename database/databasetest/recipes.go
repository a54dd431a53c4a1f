package databasetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"oversell/database"
)

var recipes = map[string]recipe{
	Postgres: {
		account: []string{"postgres", "nobody"},
		install: installPostgres, command: commandPostgres, admin: adminPostgres, prepare: preparePostgres,
	},
	MariaDB: {
		account: []string{"mysql", "nobody"},
		install: installMariaDB, command: commandMariaDB, admin: adminMariaDB, prepare: prepareMariaDB,
	},
}

// postgresDirectories is where Debian installs the programs that are not on the PATH.
const postgresDirectories = "/usr/lib/postgresql/*/bin"

func installPostgres(ctx context.Context, as account, dir string) error {
	initdb, err := find(postgresDirectories, "initdb")
	if err != nil {
		return err
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte(testPassword), 0o644); err != nil {
		return err
	}
	return run(ctx, as, dir, initdb, "-D", filepath.Join(dir, "data"), "-U", "admin", "-A", "scram-sha-256",
		"--pwfile", password, "--no-sync", "--no-locale", "-E", "UTF8")
}

func commandPostgres(dir string, port int) (string, []string, error) {
	binary, err := find(postgresDirectories, "postgres")
	return binary, []string{
		"-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(port),
		"-c", "unix_socket_directories=" + dir, "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=32MB",
	}, err
}

func adminPostgres(ctx context.Context, dir string, port int) (string, error) {
	dsn := postgresDSN("admin", port, "postgres")
	return dsn, isOurs(ctx, dsn, "SHOW data_directory", filepath.Join(dir, "data"))
}

func postgresDSN(user string, port int, db string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s", user, testPassword, port, db)
}

func preparePostgres(ctx context.Context, admin string, port int) (string, error) {
	return postgresDSN("oversell", port, "oversell"), execute(ctx, admin,
		"CREATE ROLE oversell LOGIN PASSWORD '"+testPassword+"'",
		"CREATE DATABASE oversell OWNER oversell",
	)
}

func installMariaDB(ctx context.Context, as account, dir string) error {
	install, err := find("/usr/bin", "mariadb-install-db", "mysql_install_db")
	if err != nil {
		return err
	}
	if _, err := find("/usr/bin", "my_print_defaults"); err != nil { // the script needs it
		return err
	}
	err = run(ctx, as, dir, install, "--no-defaults", "--datadir="+filepath.Join(dir, "data"),
		"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	return err
}

func commandMariaDB(dir string, port int) (string, []string, error) {
	binary, err := find("/usr/sbin", "mariadbd", "mysqld")
	return binary, []string{
		"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--socket=" + filepath.Join(dir, "socket"),
		"--pid-file=" + filepath.Join(dir, "pid"), "--bind-address=127.0.0.1", "--port=" + strconv.Itoa(port),
		"--skip-networking=0", "--skip-name-resolve", "--skip-log-bin", "--performance-schema=off",
		"--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=0",
	}, err
}

// adminMariaDB uses the socket: root has no password, and can only log in there.
func adminMariaDB(ctx context.Context, dir string, _ int) (string, error) {
	dsn := "mysql://root@unix(" + filepath.Join(dir, "socket") + ")/mysql"
	return dsn, isOurs(ctx, dsn, "SELECT @@datadir", filepath.Join(dir, "data")+"/")
}

func prepareMariaDB(ctx context.Context, admin string, port int) (string, error) {
	dsn := fmt.Sprintf("mysql://oversell:%s@127.0.0.1:%d/oversell", testPassword, port)
	return dsn, execute(ctx, admin,
		"CREATE DATABASE oversell",
		"CREATE USER oversell@'127.0.0.1' IDENTIFIED BY '"+testPassword+"'",
		"GRANT ALL ON oversell.* TO oversell@'127.0.0.1'",
	)
}

// isOurs checks that the answering server is the child, not another one on the same port.
func isOurs(ctx context.Context, dsn, query, want string) error {
	return with(ctx, dsn, func(db *sql.DB) error {
		var got string
		if err := db.QueryRowContext(ctx, query).Scan(&got); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the server there has its data in %s, and not in %s", got, want)
		}
		return nil
	})
}

func execute(ctx context.Context, dsn string, statements ...string) error {
	return with(ctx, dsn, func(db *sql.DB) error {
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

func with(ctx context.Context, dsn string, do func(*sql.DB) error) error {
	db, err := database.Open(ctx, database.Spec{DSN: dsn})
	if err != nil {
		return err
	}
	return errors.Join(do(db.DB), db.Close())
}
