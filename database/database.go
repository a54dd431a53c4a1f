package database

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"oversell/internal/errclass"
	"oversell/internal/guard"
	"oversell/internal/mark"
	"oversell/internal/phrase"
)

// DB is an open database with its properties. [Open] sets the exported fields, which do not change.
type DB struct {
	// DB is the pool of connections that the variants use.
	*sql.DB
	Kind Kind
	// Why says in one sentence what was chosen and why.
	Why string
	// ServerVersion is what the database calls itself, like "15.18" or
	// "10.11.19-MariaDB".
	ServerVersion string
	// Dialect is its SQL dialect.
	Dialect Dialect
	// Notes tell the user about tables left by runs that were killed, and whether they were removed.
	Notes []string

	where     string
	connector driver.Connector
	conns     int
	remove    func() error // of the temporary file; nil if there is none
	guard     *guard.Guard // nil for a temporary file

	mu     sync.Mutex
	claims []claim
}

const (
	// serverConns is the largest number of connections to a server.
	serverConns = 32
	// sparedConns is the number of a server's connections that are left to others.
	sparedConns = 5
	// probeTimeout bounds all queries of Open together.
	probeTimeout = 10 * time.Second
)

// Open opens the database of spec and checks that it answers and that tables can be created. ctx bounds only the
// opening. The error is of class [ErrUsage] or [ErrEnvironment].
func Open(ctx context.Context, spec Spec) (*DB, error) {
	p, err := spec.plan(ctx)
	if err != nil {
		return nil, err
	}
	db, err := newDB(p)
	if err != nil {
		return nil, err
	}
	if err := db.examine(ctx, spec); err != nil {
		_ = db.Close() // the first error explains enough
		return nil, err
	}
	return db, nil
}

// newDB creates a DB without connecting.
func newDB(p plan) (*DB, error) {
	db := &DB{Kind: p.kind, Dialect: dialects[p.kind], where: p.where, connector: p.connector, conns: serverConns}
	if p.kind == SQLite {
		if err := db.openFile(p.path); err != nil {
			return nil, err
		}
	}
	db.DB = db.Pool(unwrapped)
	return db, nil
}

func unwrapped(c driver.Connector) driver.Connector { return c }

func (db *DB) openFile(path string) (err error) {
	db.conns = sqliteConns
	if path == "" {
		if path, db.remove, err = temporaryFile(); err != nil {
			return err
		}
	}
	if db.connector, err = sqliteConnector(path); err != nil {
		return errclass.Environmentf("open %s: %w", db.where, err)
	}
	return nil
}

// Pool opens another pool of connections to the same database, through wrap, which can delay or break them. The
// caller closes it.
func (db *DB) Pool(wrap func(driver.Connector) driver.Connector) *sql.DB {
	pool := sql.OpenDB(wrap(db.connector))
	pool.SetMaxOpenConns(db.conns)
	pool.SetMaxIdleConns(db.conns) // the default of two would dial all others again and again
	return pool
}

// Close closes the pool, and removes a temporary file. A guard process drops tables that were claimed and not
// swept.
func (db *DB) Close() error {
	err := errors.Join(db.DB.Close(), db.end())
	if db.remove != nil {
		err = errors.Join(err, db.remove())
	}
	return err
}

// examine queries the version and the connection limit, looks for tables of runs that were killed, and checks the
// privileges that a run needs.
func (db *DB) examine(ctx context.Context, spec Spec) error {
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	version, err := db.askVersion(ctx)
	if err != nil {
		if parent.Err() == nil && ctx.Err() != nil {
			err = fmt.Errorf("no answer within %v", probeTimeout)
		}
		return errclass.Environmentf("open %s: %s", db.where, reason(err))
	}
	db.ServerVersion = version
	if err := db.fitPool(ctx); err != nil {
		return errclass.Environmentf("ask %s for its connections: %s", db.where, reason(err))
	}
	if err := db.leftovers(ctx, spec.Mend); err != nil {
		return err
	}
	if err := db.guarded(parent, spec); err != nil {
		return err
	}
	if err := db.tryRights(ctx); err != nil {
		return err
	}
	db.Why = db.explain()
	return nil
}

func (db *DB) askVersion(ctx context.Context) (version string, err error) {
	query := map[Kind]string{
		SQLite:   "SELECT sqlite_version()",
		Postgres: "SELECT current_setting('server_version')",
		MySQL:    "SELECT VERSION()",
	}[db.Kind]
	err = db.QueryRowContext(ctx, query).Scan(&version)
	return version, err
}

// fitPool limits the pool to what the server allows, less sparedConns.
func (db *DB) fitPool(ctx context.Context) error {
	query := map[Kind]string{
		Postgres: "SELECT CAST(current_setting('max_connections') AS INTEGER)",
		MySQL:    "SELECT @@max_connections",
	}[db.Kind]
	if query == "" {
		return nil
	}
	var allowed int
	if err := db.QueryRowContext(ctx, query).Scan(&allowed); err != nil {
		return err
	}
	db.conns = max(1, min(db.conns, allowed-sparedConns))
	db.SetMaxOpenConns(db.conns)
	db.SetMaxIdleConns(db.conns)
	return nil
}

// tryRights creates a table, writes to it, and drops it.
func (db *DB) tryRights(ctx context.Context) error {
	own := mark.New()
	table, err := db.Dialect.Name("Probe", own)
	if err != nil {
		return err
	}
	if err := db.Claim(ctx, own); err != nil {
		return err
	}
	if err := db.Dialect.CreateTable(ctx, db.DB, table, "id BIGINT PRIMARY KEY"); err != nil {
		return errclass.Environmentf("create a table in %s, as a run will: %s", db.where, reason(err))
	}
	_, err = db.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)")
	_, dropErr := db.ExecContext(ctx, "DROP TABLE "+table)
	switch {
	case err != nil:
		return errclass.Environmentf("write to a table in %s, as a run will: %s", db.where, reason(err))
	case dropErr != nil:
		return errclass.Environmentf("drop the table %s in %s, as a run will: %s", table, db.where, reason(dropErr))
	}
	db.unclaim(own)
	return nil
}

func (db *DB) explain() string {
	switch {
	case db.remove != nil:
		return fmt.Sprintf("SQLite %s inside this program, in a temporary file", db.ServerVersion)
	case db.Kind == SQLite:
		return fmt.Sprintf("SQLite %s inside this program, in the given file", db.ServerVersion)
	}
	name, at, _ := strings.Cut(db.where, " on ")
	if strings.Contains(db.ServerVersion, "MariaDB") {
		name = "MariaDB"
	}
	return fmt.Sprintf("%s %s answers at the given address %s", name, db.ServerVersion, at)
}

// reason returns an error in one line and in the database's own words. The driver's additions may be long, and may
// contain secrets.
func reason(err error) string {
	for _, of := range []func(error) (string, bool){sqliteReason, postgresReason, mysqlReason} {
		if text, ok := of(err); ok {
			return phrase.OneLine(text)
		}
	}
	text := phrase.OneLine(err.Error())
	if i := strings.LastIndex(text, "dial "); i >= 0 { // the last of several addresses
		text = text[i:]
	}
	return text
}
