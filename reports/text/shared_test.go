package text

import "testing"

// TestRowSet: a set of rows is never named by what it is not, where there is nothing that it is
// not.
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
