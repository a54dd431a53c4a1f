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

// Spec selects a database. The zero value is SQLite, in a temporary file.
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
	// Mend drops tables left by runs that were killed. Without it, Open only notes them.
	Mend bool
}

// String formats the Spec without passwords.
func (s Spec) String() string {
	if s.DSN == "" {
		return string(SQLite)
	}
	return redact(s.DSN)
}

// GoString is String, so that no format of a Spec shows a password.
func (s Spec) GoString() string { return "database.Spec(" + s.String() + ")" }

// Validate reports errors in the Spec, before anything is opened or connected to. It resolves host names to check
// whether they are on this machine. The error is of class [ErrUsage], or [ErrEnvironment] if a name cannot be
// resolved.
func (s Spec) Validate(ctx context.Context) error {
	_, err := s.plan(ctx)
	return err
}

// PasswordVariable is the environment variable with the password for DSNs without one: every user of the machine
// can read a command line.
const PasswordVariable = "OVERSELL_SQL_PASSWORD"

// plan is a parsed Spec.
type plan struct {
	kind Kind
	// where names the database in messages, without credentials.
	where string
	// path is SQLite's file; empty for a temporary one.
	path string
	// hosts are the hosts that a server's DSN connects to, without ports. A path is a Unix socket.
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

// redact hides the credentials in a DSN, valid or not: everything up to the last @, and the query, which may
// contain some, too.
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

// allLoopback refuses hosts that are not this machine. It does not connect.
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
