package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"
)

// Dialect holds the differences between the kinds of databases. The zero value is invalid.
type Dialect struct {
	Kind Kind
	// Text is the type of a short text that is compared byte by byte, and can be a key.
	Text string
	// quote delimits a name.
	quote string
	// engine ends every CREATE TABLE statement.
	engine string
}

var dialects = map[Kind]Dialect{
	SQLite:   {Kind: SQLite, Text: "TEXT", quote: `"`},
	Postgres: {Kind: Postgres, Text: "TEXT", quote: `"`},
	MySQL: {
		Kind: MySQL, quote: "`",
		// Without the collation, "a" and "A" would be equal only here.
		Text: "VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
		// Other engines have no transactions.
		engine: " ENGINE=InnoDB",
	},
}

// DialectOf returns the dialect of the database behind db, by its driver.
func DialectOf(db *sql.DB) (Dialect, error) {
	if db == nil {
		return Dialect{}, errors.New("there is no SQL database")
	}
	switch d := db.Driver().(type) {
	case *sqlite.Driver:
		return dialects[SQLite], nil
	case *stdlib.Driver:
		return dialects[Postgres], nil
	case *mysql.MySQLDriver, mysql.MySQLDriver:
		return dialects[MySQL], nil
	default:
		return Dialect{}, fmt.Errorf("the SQL driver %T is not known; it should be that of SQLite, PostgreSQL or MySQL", d)
	}
}

// Bind replaces the ? of a statement by the database's placeholders.
func (d Dialect) Bind(statement string) string {
	if d.Kind != Postgres {
		return statement
	}
	var b strings.Builder
	n := 0
	for _, r := range statement {
		if r != '?' {
			b.WriteRune(r)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// maxName is the length of a name, in bytes, that PostgreSQL does not silently truncate; the other kinds allow as
// much.
const maxName = 63

// Name returns the quoted name of a table or index: its content, a colon, and its owner. The owner is kept whole,
// as in Redis keys, so that the prefix of a run also marks its tables.
func (d Dialect) Name(of, whose string) (string, error) {
	name := of + ":" + whose
	switch {
	case d.Kind == "":
		return "", errors.New("there is no SQL database")
	case len(name) > maxName:
		return "", fmt.Errorf("the name %q of a table is %d bytes long; at most %d are possible", name, len(name), maxName)
	case strings.ContainsFunc(name, unfit):
		return "", fmt.Errorf("the name %q cannot be that of a table: it contains a quote, a question mark or a control character", name)
	}
	return d.quoted(name), nil
}

func (d Dialect) quoted(name string) string { return d.quote + name + d.quote }

func unfit(r rune) bool { return r < ' ' || strings.ContainsRune("\"`'\\?$%\x7f", r) }

// CreateTable creates a table with this quoted name and these columns unless it exists. When ctx ends, it still waits
// for the server, for a few seconds at most: a server may complete the statement of a client that has gone, after the
// tables of the run have been dropped.
func (d Dialect) CreateTable(ctx context.Context, db *sql.DB, table, columns string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(createLimit, cancel) })()
	_, err := db.ExecContext(whole, "CREATE TABLE IF NOT EXISTS "+table+" ("+columns+")"+d.engine)
	return err
}

// createLimit is how long CreateTable waits after the end of its context.
const createLimit = 5 * time.Second

// NoTable reports whether err reports that a table does not exist.
func (d Dialect) NoTable(err error) bool {
	switch d.Kind {
	case Postgres:
		e := (*pgconn.PgError)(nil)
		return errors.As(err, &e) && e.Code == codeNoTable
	case MySQL:
		e := (*mysql.MySQLError)(nil)
		return errors.As(err, &e) && e.Number == numberNoTable
	}
	e := (*sqlite.Error)(nil)
	return errors.As(err, &e) && strings.Contains(e.Error(), "no such table")
}

// Tables lists the tables of the database, or of the schema, that db uses.
func (d Dialect) Tables(ctx context.Context, db *sql.DB) ([]string, error) {
	query := "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
	switch d.Kind {
	case SQLite:
		query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
	case Postgres:
		query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
	}
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return Column[string](rows)
}

// Column reads rows of one column, and closes them.
func Column[T any](rows *sql.Rows) (all []T, err error) {
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
