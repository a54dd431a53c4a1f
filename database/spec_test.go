package database

import (
	"fmt"
	"strings"
	"testing"

	"oversell/internal/servertest"
)

func TestSpecIsRefusedBeforeAnythingIsOpened(t *testing.T) {
	for _, c := range []struct{ dsn, want string }{
		{"oracle://u:secret@127.0.0.1/db", "unknown kind; the known ones are sqlite, sqlite:PATH, postgres://"},
		{"127.0.0.1:5432", "unknown kind"},
		{"host=127.0.0.1 user=u password=secret", "unknown kind"},
		{"host=127.0.0.1 password=secret:secret", "unknown kind"},
		{"u:secret@tcp(127.0.0.1:3306)/db", "unknown kind"},
		{"sqlite:", "names no file"},
		{"sqlite::memory:", "wants the path of a file"},
		{"sqlite:///tmp/x.db", "wants the path of a file, like sqlite:/tmp/pool.db"},
		{"postgres:u:secret@127.0.0.1/db", "must begin with postgres://"},
		{"postgres://u:se/secret@127.0.0.1/db", "special characters in a password"},
		{"postgres://u:1?secret@127.0.0.1/db", "special characters in a password"},
		{"postgres://u:1#secret@127.0.0.1/db", "special characters in a password"},
		{"postgres://u:secret@127.0.0.1:port/db", "cannot be read as postgres://"},
		{"postgres://u:secret@127.0.0.1/db?sslmode=perhaps", "cannot be read as postgres://"},
		{"mysql:u:secret@127.0.0.1/db", "must begin with mysql://"},
		{"mysql://u:secret@127.0.0.1", "names no database"},
		{"mysql://u:secret@127.0.0.1/", "names no database"},
		{"mysql://u:secret@tcp(127.0.0.1:3306)", "cannot be read as mysql://"},
		{"mysql://u:1?secret@127.0.0.1/db", "cannot be read as mysql://"},
		{"mysql://u:secret@127.0.0.1:port/db", "cannot be read as mysql://"},
		{"mysql://u:secret@127.0.0.1/db?timeout=secret", "cannot be read as mysql://"},
		{"mysql://u:secret@pipe(x)/db", "connects by tcp or unix"},
		{"postgres://u:secret@192.0.2.1/db", "the database on 192.0.2.1 is not on this machine; load goes to loopback only, unless --allow-remote is given"},
		{"postgres://u:secret@127.0.0.1,192.0.2.1/db", "192.0.2.1 is not on this machine"},
		{"postgres://u:secret@127.0.0.1/db?host=192.0.2.1", "192.0.2.1 is not on this machine"},
		{"mysql://u:secret@192.0.2.1/db", "192.0.2.1 is not on this machine"},
		{"mysql://u:secret@tcp([2001:db8::1]:3306)/db", "is not on this machine"},
	} {
		t.Run(Spec{DSN: c.dsn}.String(), func(t *testing.T) {
			s := Spec{DSN: c.dsn}
			servertest.WantError(t, s.Validate(t.Context()), ErrUsage, c.want)
			_, err := Open(t.Context(), s)
			servertest.WantError(t, err, ErrUsage, c.want)
		})
	}
}

func TestSpecIsUnderstood(t *testing.T) {
	for _, c := range []struct {
		spec  Spec
		kind  Kind
		where string
	}{
		{Spec{}, SQLite, "SQLite in a temporary file"},
		{Spec{DSN: "sqlite"}, SQLite, "SQLite in a temporary file"},
		{Spec{DSN: "sqlite:/tmp/x.db"}, SQLite, "SQLite in /tmp/x.db"},
		{Spec{DSN: "postgres://u:p@localhost/db"}, Postgres, "PostgreSQL on localhost:5432"},
		{Spec{DSN: "postgresql://u:p@[::1]:7/db?sslmode=disable"}, Postgres, "PostgreSQL on [::1]:7"},
		{Spec{DSN: "postgres:///db?host=/tmp"}, Postgres, "PostgreSQL on /tmp:5432"},
		{Spec{DSN: "postgres://u:p@192.0.2.1/db", AllowRemote: true}, Postgres, "PostgreSQL on 192.0.2.1:5432"},
		{Spec{DSN: "mysql://u:p@127.0.0.1:7/db"}, MySQL, "MySQL on 127.0.0.1:7"},
		{Spec{DSN: "mysql://u:p@tcp(127.0.0.1:7)/db?timeout=1s"}, MySQL, "MySQL on 127.0.0.1:7"},
		{Spec{DSN: "mariadb://localhost/db"}, MySQL, "MySQL on localhost:3306"},
		{Spec{DSN: "mysql://u:a%40b@[::1]/db"}, MySQL, "MySQL on [::1]:3306"},
		{Spec{DSN: "mysql://root@unix(/tmp/s)/db"}, MySQL, "MySQL on /tmp/s"},
	} {
		p, err := c.spec.plan(t.Context())
		if err != nil {
			t.Errorf("%v: %v", c.spec, err)
		} else if p.kind != c.kind || p.where != c.where {
			t.Errorf("%v: %s, %q; want %s, %q", c.spec, p.kind, p.where, c.kind, c.where)
		}
	}
}

func TestMySQLPasswordsAreUnescapedInURLsOnly(t *testing.T) {
	for dsn, want := range map[string]string{
		"u:a%40b/c@127.0.0.1/db":           "",
		"u:a%40b%2Fc@127.0.0.1/db":         "a@b/c",
		"u:a%40b/c@d@tcp(127.0.0.1:1)/db":  "a%40b/c@d",
		"u:p@127.0.0.1/db?collation=x&a=b": "p",
	} {
		c, err := readMySQL(dsn)
		switch {
		case want == "" && err == nil:
			t.Errorf("%s was read; a / in a URL's password must be escaped", dsn)
		case want != "" && (err != nil || c.Passwd != want || c.User != "u" || c.DBName != "db"):
			t.Errorf("%s: %+v, %v; want the password %s", dsn, c, err, want)
		}
	}
}

func TestSpecPrintsNoPassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:secret@127.0.0.1/db", "mysql://u:sec@secret@tcp(127.0.0.1:1)/db", "mysql://u:sec/secret@127.0.0.1/db",
		"postgres://127.0.0.1/db?user=u&password=secret", "u:secret@tcp(h)/db", "host=h password=secret", "host=h password=x:secret",
		"mysql:u:secret", "@secret", "oracle:secret/secret@h",
	} {
		s := Spec{DSN: dsn}
		if text := fmt.Sprintf("%v %+v %#v %s", s, s, s, s); strings.Contains(text, "secret") {
			t.Errorf("a password is shown: %s", text)
		}
	}
	for dsn, want := range map[string]string{
		"":                                  "sqlite",
		"sqlite:/tmp/x@y?.db":               "sqlite:/tmp/x@y?.db",
		"postgres://u:p@127.0.0.1:1/db?a=b": "postgres://***@127.0.0.1:1/db",
	} {
		if got := (Spec{DSN: dsn}).String(); got != want {
			t.Errorf("shown as %s; want %s", got, want)
		}
	}
}
