package text

import (
	"strings"
	"testing"

	"oversell/reports"
)

// TestComparisonWithoutRuns checks that there is no table and no control where no run was completed.
func TestComparisonWithoutRuns(t *testing.T) {
	var b strings.Builder
	c := reports.Comparison{Interrupted: true, Contenders: []reports.Contender{{Lock: "lua-release"}}, Configurations: []reports.Configuration{{Target: "auto"}}}
	if err := (Terminal{W: &b}).Comparison(c); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); !strings.Contains(out, "No run was completed here") || strings.Contains(out, "CONTENDER ") || strings.Contains(out, "control:") {
		t.Error(out)
	}
}

// TestRowSet checks the names of sets of rows: "all but" is used only for a set that leaves a row out.
func TestRowSet(t *testing.T) {
	for _, c := range []struct {
		some, all []string
		want      string
	}{
		{[]string{"a"}, []string{"a"}, "a"},
		{[]string{"a"}, []string{"a", "a"}, "a"},
		{[]string{"a", "b"}, []string{"a", "b"}, "all"},
		{[]string{"a", "b"}, []string{"a", "b", "c"}, "all but c"},
		{[]string{"a"}, []string{"a", "b"}, "a"},
	} {
		if got := rowSet(c.some, c.all); got != c.want {
			t.Errorf("%v of %v: %q, want %q", c.some, c.all, got, c.want)
		}
	}
}
