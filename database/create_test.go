package database

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
)

// TestCreateTableIsCompleted checks that the creation of a table, once begun, is completed when the context ends, and that
// none begins after that.
func TestCreateTableIsCompleted(t *testing.T) {
	db, err := Open(t.Context(), Spec{DSN: "sqlite:" + filepath.Join(t.TempDir(), "tables.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.DB.SetMaxOpenConns(1)
	held, err := db.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits := db.DB.Stats().WaitCount
	done := make(chan error)
	go func() { done <- db.Dialect.CreateTable(ctx, db.DB, "begun", "id BIGINT PRIMARY KEY") }()
	for db.DB.Stats().WaitCount == waits { // until it waits for the connection
		runtime.Gosched()
	}
	cancel()
	held.Close()
	if err := <-done; err != nil {
		t.Errorf("a table whose creation had begun: %v", err)
	}
	if err := db.Dialect.CreateTable(ctx, db.DB, "late", "id BIGINT PRIMARY KEY"); err == nil {
		t.Error("a table was created after the end of the context")
	}
	if names, err := db.Dialect.Tables(t.Context(), db.DB); err != nil || len(names) != 1 {
		t.Errorf("there are the tables %q, %v; want one", names, err)
	}
}
