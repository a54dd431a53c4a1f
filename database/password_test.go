package database_test

import (
	"strings"
	"testing"

	"oversell/database"
	"oversell/database/databasetest"
)

func TestPasswordFromTheEnvironment(t *testing.T) {
	for _, kind := range []string{databasetest.Postgres, databasetest.MariaDB} {
		t.Run(kind, func(t *testing.T) {
			with := servers.DSN(t, kind)
			without := strings.Replace(with, ":correct-horse@", "@", 1)
			if with == without {
				t.Fatalf("%s has no password", with)
			}
			_, err := database.Open(t.Context(), database.Spec{DSN: without})
			if err == nil {
				t.Fatal("it opens without a password")
			}
			t.Setenv(database.PasswordVariable, "correct-horse")
			db, err := database.Open(t.Context(), database.Spec{DSN: without})
			if err != nil {
				t.Fatal(err)
			}
			db.Close()
		})
	}
}

// TestAFullDiskIsKnown checks that a full disk is distinguished from other errors.
func TestAFullDiskIsKnown(t *testing.T) {
	db := servers.Open(t, databasetest.SQLite)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{"PRAGMA max_page_count = 20", "CREATE TABLE t (a TEXT)"} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	_, err = conn.ExecContext(t.Context(), "INSERT INTO missing VALUES (1)")
	if err == nil || database.Failing(err) {
		t.Errorf("%v counts as a full disk", err)
	}
	for range 1000 {
		if _, err = conn.ExecContext(t.Context(), "INSERT INTO t VALUES (?)", strings.Repeat("x", 1000)); err != nil {
			break
		}
	}
	if !database.Failing(err) {
		t.Errorf("%v does not count as a full disk", err)
	}
}
