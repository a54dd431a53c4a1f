// Package databasetest gives tests real databases, and stops client code before
// each of its statements.
//
//	var servers databasetest.Servers // started when first asked for
//
//	func TestMain(m *testing.M) { os.Exit(servers.Run(m)) }
//
//	func TestMyPool(t *testing.T) {
//		for _, kind := range databasetest.Kinds {
//			t.Run(kind, func(t *testing.T) { db := servers.Open(t, kind) … })
//		}
//	}
//
// PostgreSQL and MariaDB are child processes of the test on free ports, with their data in a temporary directory;
// the machine's own databases are not touched. A test of a kind that is not installed is skipped, or fails if
// OVERSELL_REQUIRE_ALL=1.
package databasetest

import (
	"errors"
	"os"
	"sync"
	"testing"

	"oversell/database"
)

// Kinds of databases for tests.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	MariaDB  = "mariadb"
)

// Kinds lists all of them.
var Kinds = []string{SQLite, Postgres, MariaDB}

// Servers holds the databases of one test binary. Its methods are safe for concurrent use. The zero value is ready;
// end it with Close, or use Run.
type Servers struct {
	mu     sync.Mutex
	opened map[string]opened
}

type opened struct {
	server *server
	err    error
}

// Run runs the tests, stops the servers, and returns the exit code.
func (s *Servers) Run(m *testing.M) int {
	defer s.Close()
	return m.Run()
}

// Close stops the servers and removes their data.
func (s *Servers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.opened {
		if o.err == nil {
			o.server.stop()
		}
	}
	s.opened = nil
}

// DSN returns the address of a database of this kind: for SQLite a new one each time; a server is started once and
// shared, so tests use names of their own.
func (s *Servers) DSN(t testing.TB, kind string) string {
	t.Helper()
	if kind == SQLite {
		return "sqlite"
	}
	return s.server(t, kind).dsn
}

// AdminDSN is like DSN, for an account with all privileges.
func (s *Servers) AdminDSN(t testing.TB, kind string) string {
	t.Helper()
	return s.server(t, kind).admin
}

// Open opens a database of this kind until the test ends.
func (s *Servers) Open(t testing.TB, kind string) *database.DB {
	t.Helper()
	db, err := database.Open(t.Context(), database.Spec{DSN: s.DSN(t, kind)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

func (s *Servers) server(t testing.TB, kind string) *server {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	o, known := s.opened[kind]
	if !known {
		o.server, o.err = startServer(kind)
		if s.opened == nil {
			s.opened = map[string]opened{}
		}
		s.opened[kind] = o
	}
	switch {
	case errors.Is(o.err, errNotInstalled) && os.Getenv("OVERSELL_REQUIRE_ALL") != "1":
		t.Skip(o.err)
	case o.err != nil:
		t.Fatal(o.err)
	}
	return o.server
}
