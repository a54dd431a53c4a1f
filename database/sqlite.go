package database

import (
	"database/sql/driver"
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"oversell/internal/errclass"
	"oversell/internal/workdir"
)

// busyTimeout is how long, in milliseconds, SQLite waits for the write lock.
const busyTimeout = "20000"

// sqliteConns is the pool's size: SQLite has one writer at a time, and the others poll for the lock, which more
// connections only slow down.
const sqliteConns = 4

func parseSQLite(path string) (plan, error) {
	switch {
	case path == "":
		return plan{}, errclass.Usagef("database sqlite: names no file; without the colon it is a temporary one")
	case strings.ContainsRune(path, 0):
		return plan{}, errclass.Usagef("database sqlite: the file name %q contains a zero byte", path)
	case strings.HasPrefix(path, ":memory:"), strings.HasPrefix(path, "//"):
		return plan{}, errclass.Usagef("database sqlite:%s: wants the path of a file, like sqlite:/tmp/pool.db", path)
	}
	return plan{kind: SQLite, path: path, where: "SQLite in " + path}, nil
}

// temporaryFile returns a path in a new directory, and a function that removes both. If this program is killed, the
// next one removes them.
func temporaryFile() (path string, remove func() error, err error) {
	dir, err := workdir.New()
	if err != nil {
		return "", nil, errclass.Environmentf("make a directory for SQLite: %w", err)
	}
	return filepath.Join(dir.Path, "oversell.db"), func() error { dir.Remove(); return nil }, nil
}

// sqliteConnector returns a connector whose connections wait for each other's locks. A writer does
// not block readers (WAL), and a transaction takes the write lock when it begins: one that reads
// first could not go on after another has written.
func sqliteConnector(path string) (driver.Connector, error) {
	query := url.Values{
		"_pragma": {"busy_timeout(" + busyTimeout + ")", "journal_mode(WAL)", "synchronous(NORMAL)"},
		"_txlock": {"immediate"},
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(abs), RawQuery: query.Encode()}
	return sqlite.NewConnector(name.String())
}

func sqliteReason(err error) (string, bool) {
	e := (*sqlite.Error)(nil)
	if !errors.As(err, &e) {
		return "", false
	}
	return e.Error(), true
}

// Failing reports whether after an error the database is useless to all clients: SQLite's disk is full, or cannot
// be written.
func Failing(err error) bool {
	e := (*sqlite.Error)(nil)
	if !errors.As(err, &e) {
		return false
	}
	code := e.Code() & 0xff // the other bits are details
	return code == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR
}
