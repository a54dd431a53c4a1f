package stockrules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"oversell/variant"
)

// shelf holds what is left of products, by the names that a sale makes of theirs.
type shelf struct {
	left map[string]int64
	key  func(name string) string
}

func (s *shelf) open(name string, stock int64) (*Caller, error) {
	if strings.HasSuffix(name, "!") {
		return nil, nil // the sale does not take it
	}
	key := s.key(name)
	s.left[key] = stock
	holds := func(want int64) error {
		if s.left[key] != want {
			return fmt.Errorf("%d left; want %d", s.left[key], want)
		}
		return nil
	}
	return &Caller{
		Untouched: holds,
		Buy: func(_ variant.Property, _ int64, pieces int, _ error, left int64) error {
			s.left[key] -= int64(pieces)
			return holds(left)
		},
		State: func(_ variant.Property, left, _ int64) error { return holds(left) },
	}, nil
}

// TestNamesApart checks that the two names that a sale confuses are named, and only they.
func TestNamesApart(t *testing.T) {
	names := func(base string) []string {
		return []string{base, base + " b", base + "!", base + "_b", base + "/", base + "c"}
	}
	for _, tt := range []struct {
		name string
		key  func(string) string
		want string
	}{
		{"sound", func(name string) string { return name }, ""},
		{"spaces are replaced", func(name string) string { return strings.ReplaceAll(name, " ", "_") }, `product "phone b", which is confused with product "phone_b": `},
		{"a slash is trimmed", func(name string) string { return strings.TrimSuffix(name, "/") }, `product "phone", which is confused with product "phone/": `},
		{"names of this base", func(name string) string { return strings.TrimSuffix(strings.Replace(name, "phonec", "phone", 1), "!") }, `product "phone", one of ["phone" `},
	} {
		s := &shelf{left: map[string]int64{}, key: tt.key}
		err := Names{Of: names, Base: "phone", Open: s.open, Alone: func(n int, stock int64) (*Caller, error) {
			return s.open(fmt.Sprint("alone", n), stock)
		}}.Apart()
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
	failed := errors.New("no connection")
	if err := (Names{Of: names, Open: func(string, int64) (*Caller, error) { return nil, failed }}).Apart(); !errors.Is(err, failed) {
		t.Errorf("the error is %v; want %v", err, failed)
	}
}
