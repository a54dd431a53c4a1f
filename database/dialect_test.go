package database

import (
	"database/sql"
	"database/sql/driver"
	"strings"
	"testing"
)

func TestBind(t *testing.T) {
	const statement = "UPDATE t SET a = a - ? WHERE id = ? AND a >= ?"
	if got := dialects[SQLite].Bind(statement); got != statement {
		t.Error(got)
	}
	if got, want := dialects[Postgres].Bind(statement), "UPDATE t SET a = a - $1 WHERE id = $2 AND a >= $3"; got != want {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	for _, d := range dialects {
		got, err := d.Name("Stock", "{ov-1A}phone")
		if want := d.quote + "Stock:{ov-1A}phone" + d.quote; err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", d.Kind, got, err, want)
		}
		for _, bad := range []string{`a"b`, "a`b", "a'b", `a\b`, "a?b", "a$1", "a%b", "a\nb", strings.Repeat("x", maxName)} {
			if got, err := d.Name("Stock", bad); err == nil {
				t.Errorf("%s: %q became the name %s", d.Kind, bad, got)
			}
		}
	}
	if _, err := (Dialect{}).Name("Stock", "phone"); err == nil {
		t.Error("a name without a database")
	}
}

type stranger struct{ driver.Driver }

type strangersConnector struct{ driver.Connector }

func (strangersConnector) Driver() driver.Driver { return stranger{} }

func TestDialectOfNobody(t *testing.T) {
	if d, err := DialectOf(nil); err == nil {
		t.Errorf("no database speaks %s", d.Kind)
	}
	db := sql.OpenDB(strangersConnector{})
	defer db.Close()
	if d, err := DialectOf(db); err == nil || !strings.Contains(err.Error(), "stranger") {
		t.Errorf("a stranger speaks %s, %v", d.Kind, err)
	}
}
