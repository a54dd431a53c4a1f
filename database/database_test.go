package database_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/database"
	"oversell/database/databasetest"
	"oversell/internal/freeport"
	"oversell/internal/servertest"
)

var servers databasetest.Servers // started on first use

func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }

// each runs a test on every kind of database.
func each(t *testing.T, do func(t *testing.T, db *database.DB)) {
	for _, kind := range databasetest.Kinds {
		t.Run(kind, func(t *testing.T) { do(t, servers.Open(t, kind)) })
	}
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func name(t *testing.T, db *database.DB, of, whose string) string {
	t.Helper()
	n, err := db.Dialect.Name(of, whose)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// newTable creates a table that is dropped after the test, and returns its name.
func newTable(t *testing.T, db *database.DB, columns string) string {
	t.Helper()
	table := name(t, db, "Test", rand.Text())
	if err := db.Dialect.CreateTable(t.Context(), db.DB, table, columns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Exec("DROP TABLE " + table) })
	return table
}

func TestOpenSaysWhatWasChosen(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		t.Logf("%s; %s", db.Why, db.ServerVersion)
		if db.ServerVersion == "" || !strings.Contains(db.Why, db.ServerVersion) {
			t.Errorf("version %q; why: %s", db.ServerVersion, db.Why)
		}
		if d, err := database.DialectOf(db.DB); err != nil || d != db.Dialect || d.Kind != db.Kind {
			t.Errorf("the dialect is %+v, %v; want %+v of %s", d, err, db.Dialect, db.Kind)
		}
		wrapped := db.Pool(func(c driver.Connector) driver.Connector { return struct{ driver.Connector }{c} })
		defer wrapped.Close()
		if d, err := database.DialectOf(wrapped); err != nil || d != db.Dialect {
			t.Errorf("through a wrapper the dialect is %+v, %v", d, err)
		}
		if names, err := db.Dialect.Tables(t.Context(), db.DB); err != nil || strings.Contains(strings.Join(names, " "), "Probe") {
			t.Errorf("the probe left its table: %v, %v", names, err)
		}
	})
}

func TestOneMeaningOfSQL(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		d := db.Dialect
		table := newTable(t, db, "id BIGINT PRIMARY KEY, word "+d.Text+" NOT NULL")
		exec(t, db.DB, "INSERT INTO "+table+" VALUES (1, 'a'), (2, 'A')")
		result, err := db.ExecContext(t.Context(), d.Bind("UPDATE "+table+" SET word = ? WHERE id = ?"), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("an UPDATE to the value that was there reports %d rows, %v; it found 1", n, err)
		}
		var n int
		if err := db.QueryRowContext(t.Context(), d.Bind("SELECT COUNT(*) FROM "+table+" WHERE word = ?"), "a").Scan(&n); err != nil || n != 1 {
			t.Errorf("%d words are a, %v; want 1, since A is another", n, err)
		}
		_, err = db.ExecContext(t.Context(), "SELECT 1 FROM "+name(t, db, "Test", "nonesuch"))
		if !d.NoTable(err) {
			t.Errorf("a missing table is reported as %v", err)
		}
		_, err = db.ExecContext(t.Context(), "SELECT nonesuch FROM "+table)
		if err == nil || d.NoTable(err) {
			t.Errorf("a missing column is reported as %v, and taken for a missing table", err)
		}
	})
}

// TestWritersWaitForEachOther checks that transactions that read and then write wait for each other and never fail.
func TestWritersWaitForEachOther(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		const writers, rounds = 8, 10
		table := newTable(t, db, "id BIGINT PRIMARY KEY, n BIGINT NOT NULL")
		exec(t, db.DB, "INSERT INTO "+table+" VALUES (1, 0)")
		add := func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if _, err := tx.ExecContext(t.Context(), "UPDATE "+table+" SET n = n + 1 WHERE id = 1"); err != nil {
				return err
			}
			return tx.Commit()
		}
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range rounds {
					if err := add(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var n int
		if err := db.QueryRowContext(t.Context(), "SELECT n FROM "+table).Scan(&n); err != nil || n != writers*rounds {
			t.Errorf("%d were counted, %v; want %d", n, err, writers*rounds)
		}
	})
}

func TestSweepDropsOwnTablesOnly(t *testing.T) {
	each(t, func(t *testing.T, db *database.DB) {
		own, other := "{ov-"+rand.Text()[:8]+"}", "{ov-"+rand.Text()[:8]+"}"
		for _, whose := range []string{own + "phone", own + "pool", other + "phone"} {
			if err := db.Dialect.CreateTable(t.Context(), db.DB, name(t, db, "Stock", whose), "id BIGINT PRIMARY KEY"); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := db.Sweep(t.Context(), own); n != 2 || err != nil {
			t.Errorf("swept %d tables, %v; want 2", n, err)
		}
		names, err := db.Dialect.Tables(t.Context(), db.DB)
		if text := strings.Join(names, " "); err != nil || strings.Contains(text, own) || !strings.Contains(text, "Stock:"+other+"phone") {
			t.Errorf("left: %v, %v", names, err)
		}
		if n, err := db.Sweep(t.Context(), other); n != 1 || err != nil {
			t.Errorf("swept %d tables, %v; want 1", n, err)
		}
		if _, err := db.Sweep(t.Context(), "ov-"); !errors.Is(err, database.ErrUsage) {
			t.Errorf("a prefix of 3 bytes: %v", err)
		}
	})
}

func open(t *testing.T, dsn string) error {
	t.Helper()
	db, err := database.Open(t.Context(), database.Spec{DSN: dsn})
	if err == nil {
		db.Close()
	}
	return err
}

func TestServersThatRefuse(t *testing.T) {
	for kind, says := range map[string]struct{ password, database, rights string }{
		databasetest.Postgres: {
			`password authentication failed for user "oversell"`, `database "nonesuch" does not exist`, "permission denied for schema public",
		},
		databasetest.MariaDB: {"Access denied for user 'oversell'@'127.0.0.1'", "Access denied for user", "CREATE command denied to user 'reader'"},
	} {
		t.Run(kind, func(t *testing.T) {
			dsn := servers.DSN(t, kind)
			err := open(t, strings.Replace(dsn, "correct-horse", "secret", 1))
			servertest.WantError(t, err, database.ErrEnvironment, says.password, "127.0.0.1")
			i := strings.LastIndex(dsn, "/")
			servertest.WantError(t, open(t, dsn[:i]+"/nonesuch"), database.ErrEnvironment, says.database)
			servertest.WantError(t, open(t, readersDSN(t, kind)), database.ErrEnvironment, "create a table in", "as a run will", says.rights)
		})
	}
}

// readersDSN returns the DSN of a new account that may not create anything.
func readersDSN(t *testing.T, kind string) string {
	admin, err := database.Open(t.Context(), database.Spec{DSN: servers.AdminDSN(t, kind)})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if kind == databasetest.Postgres { // in which ordinary accounts may not create tables in the schema public
		exec(t, admin.DB, "CREATE ROLE reader LOGIN PASSWORD 'correct-horse'")
		t.Cleanup(func() { dropReader(t, kind, "DROP ROLE reader") })
	} else {
		exec(t, admin.DB, "CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'correct-horse'", "GRANT SELECT ON oversell.* TO reader@'127.0.0.1'")
		t.Cleanup(func() { dropReader(t, kind, "DROP USER reader@'127.0.0.1'") })
	}
	return strings.Replace(servers.DSN(t, kind), "oversell:", "reader:", 1)
}

func dropReader(t *testing.T, kind, statement string) {
	admin, err := database.Open(context.Background(), database.Spec{DSN: servers.AdminDSN(t, kind)})
	if err != nil {
		t.Error(err)
		return
	}
	defer admin.Close()
	if _, err := admin.Exec(statement); err != nil {
		t.Error(err)
	}
}

func TestServersThatAreDown(t *testing.T) {
	port, err := freeport.One()
	if err != nil {
		t.Fatal(err)
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for _, dsn := range []string{"postgres://u:secret@" + addr + "/db", "mysql://u:secret@" + addr + "/db", "mysql://u:secret@tcp(" + addr + ")/db"} {
		servertest.WantError(t, open(t, dsn), database.ErrEnvironment, addr, "connection refused")
	}
}

func TestServersThatDoNotAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, kind := range []string{"postgres", "mysql"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := database.Open(ctx, database.Spec{DSN: kind + "://u:secret@" + l.Addr().String() + "/db"})
		cancel()
		servertest.WantError(t, err, database.ErrEnvironment, l.Addr().String())
	}
}

func TestSQLiteLeavesNoFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // where no other program makes temporary directories
	db, err := database.Open(t.Context(), database.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if len(temporaries(t)) != 1 {
		t.Errorf("there is no temporary directory: %v", temporaries(t))
	}
	exec(t, db.DB, "CREATE TABLE a (b BIGINT)", "INSERT INTO a VALUES (1)")
	for range 2 {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if after := temporaries(t); len(after) != 0 {
		t.Errorf("files are left: %v", after)
	}
}

func temporaries(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "oversell-*", "*", "oversell.db"))
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

func TestSQLiteFileOfTheUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%41&e.db") // no character in a file name has a special meaning
	for want := range 2 {
		db, err := database.Open(t.Context(), database.Spec{DSN: "sqlite:" + path})
		if err != nil {
			t.Fatal(err)
		}
		names, err := db.Dialect.Tables(t.Context(), db.DB)
		if err != nil || len(names) != want {
			t.Errorf("the file holds the tables %v, %v; want %d", names, err, want)
		}
		exec(t, db.DB, "CREATE TABLE IF NOT EXISTS a (b BIGINT)")
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestSQLiteFilesThatWillNotDo(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database at all. ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	servertest.WantError(t, open(t, "sqlite:"+text), database.ErrEnvironment, text, "not a database")
	servertest.WantError(t, open(t, "sqlite:"+dir), database.ErrEnvironment, dir, "unable to open database file")
	servertest.WantError(t, open(t, "sqlite:"+dir+"/no/such.db"), database.ErrEnvironment, "unable to open database file")
	if runtime.GOOS == "linux" && os.Getuid() == 0 {
		servertest.WantError(t, open(t, "sqlite:/proc/oversell.db"), database.ErrEnvironment, "/proc/oversell.db")
	}
}
