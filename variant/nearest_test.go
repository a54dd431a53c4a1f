package variant

import (
	"slices"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		name string
		of   []string
		want []string
	}{
		{"foo", []string{"ok", "object", "go"}, nil},
		{"rnu", []string{"run", "man"}, []string{"run"}},
		{"chek", []string{"check"}, []string{"check"}},
		{"lua-relase", []string{"lua-release", "redlock"}, []string{"lua-release"}},
		{"release", []string{"lua-release"}, []string{"lua-release"}},
		{"LUA-RELASE", []string{"lua-release", "Redlock"}, []string{"lua-release"}},
		{"redlok", []string{"lua-release", "Redlock"}, []string{"Redlock"}},
		{"", []string{"ok", "check"}, nil},
	} {
		if got := Nearest(c.name, c.of); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"rnu", "run", 1}, {"kitten", "sitting", 3}, {"plian", "plain", 1}, {"ca", "abc", 3}, {"a", "a", 0}} {
		if got := Edits(c.a, c.b); got != c.want || Edits(c.b, c.a) != got {
			t.Errorf("%s, %s: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
