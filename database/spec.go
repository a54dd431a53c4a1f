package database

import (
	"context"
	"database/sql/driver"
	"strings"
	"time"

	"oversell/internal/errclass"
	"oversell/internal/loopback"
)

// Kind is the family of a database.
type Kind string

// The kinds of databases.
const (
	// SQLite runs inside this program.
	SQLite Kind = "sqlite"
	// Postgres is a PostgreSQL server.
	Postgres Kind = "postgres"
	// MySQL is a MySQL or a MariaDB server.
	MySQL Kind = "mysql"
)

// Spec says which database to use. The zero value is SQLite, in a
// temporary file.
type Spec struct {
	// DSN is one of
	//
	//	sqlite                                  (or empty) a temporary file
	//	sqlite:PATH                             this file, made if it is missing
	//	postgres://user:password@host:port/db   with the parameters of libpq
	//	mysql://user:password@host:port/db      MySQL or MariaDB
	//	mysql://user:password@tcp(host:port)/db the same as go-sql-driver writes it
	//
	// It may contain a password: print a Spec with String, never this field.
	DSN string
	// AllowRemote permits servers that are not on this machine.
	AllowRemote bool
	// Mend drops the tables that runs that were killed have left. Without it, Open notes
	// them.
	Mend bool
}

// String is the Spec without passwords.
func (s Spec) String() string {
	if s.DSN == "" {
		return string(SQLite)
	}
	return redact(s.DSN)
}

// GoString is String, so that no way of printing a Spec shows a password.
func (s Spec) GoString() string { return "database.Spec(" + s.String() + ")" }

// Validate reports what is wrong with the Spec, before anything is opened or
// connected to. Host names are looked up, because whether they are on this
// machine is part of the question. The error is of class [ErrUsage], or
// [ErrEnvironment] when a name cannot be looked up.
func (s Spec) Validate(ctx context.Context) error {
	_, err := s.plan(ctx)
	return err
}

// PasswordVariable is the environment variable that holds the password for DSNs that
// have none: a command line can be read by every user of the machine.
const PasswordVariable = "OVERSELL_SQL_PASSWORD"

// plan is a Spec that has been understood.
type plan struct {
	kind Kind
	// where names the database in messages, without credentials.
	where string
	// path is SQLite's file; empty for a temporary one.
	path string
	// hosts are what a server's DSN would have us connect to, without ports. A
	// path is a Unix socket.
	hosts []string
	// connector opens connections to a server; nil for SQLite.
	connector driver.Connector
}

func (s Spec) plan(ctx context.Context) (plan, error) {
	p, err := parse(s.DSN)
	if err == nil && !s.AllowRemote {
		err = allLoopback(ctx, p.hosts)
	}
	if err != nil {
		return plan{}, err
	}
	return p, nil
}

func parse(dsn string) (plan, error) {
	if dsn == "" || dsn == string(SQLite) {
		return plan{kind: SQLite, where: "SQLite in a temporary file"}, nil
	}
	scheme, rest, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		return parseSQLite(rest)
	case "postgres", "postgresql":
		return parsePostgres(dsn)
	case "mysql", "mariadb":
		return parseMySQL(dsn)
	}
	return plan{}, errclass.Usagef("database %s: unknown kind; the known ones are sqlite, sqlite:PATH, postgres://user:password@host:port/db and mysql://user:password@host:port/db", redact(dsn))
}

// redact hides the credentials in a DSN, be it well formed or not: everything
// up to the last @, and the query, which may hold some, too.
func redact(dsn string) string {
	scheme, rest, found := strings.Cut(dsn, ":")
	if strings.ContainsAny(scheme, "@= ") { // host=… password=…
		return "***"
	}
	if !found {
		return dsn
	}
	if scheme == string(SQLite) {
		return dsn
	}
	slashes := ""
	if strings.HasPrefix(rest, "//") {
		slashes, rest = "//", rest[2:]
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "***@" + rest[at+1:]
	} else if slashes == "" { // user:password, perhaps
		rest = "***"
	}
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + ":" + slashes + rest
}

// lookupTimeout bounds the resolution of all host names together.
const lookupTimeout = 3 * time.Second

// allLoopback refuses any host that is not this machine. It connects to none.
func allLoopback(ctx context.Context, hosts []string) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	for _, host := range hosts {
		if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") {
			continue // a Unix socket
		}
		outside, err := loopback.Outside(ctx, host)
		switch {
		case err != nil:
			return errclass.Environmentf("look up the host %s of the database: %w", host, err)
		case outside == "":
			continue
		}
		where := host
		if outside != host {
			where += " (" + outside + ")"
		}
		return errclass.Usagef("the database on %s is not on this machine; load goes to loopback only, unless --allow-remote is given", where)
	}
	return nil
}
