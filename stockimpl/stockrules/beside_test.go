package stockrules

import (
	"fmt"
	"testing"
)

// TestBeside checks that products are named only if the calls of one of them succeed without the other.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails func(product string, call int) bool
		want  string
	}{
		{"sound", func(string, int) bool { return false }, "<nil>"},
		{"beside another", func(product string, call int) bool { return product == "one" && call == 2 }, "of two products: call 2"},
		{"alone as well", func(product string, call int) bool { return product != "two" && call == 2 }, "call 2"},
		{"another error alone", func(product string, call int) bool {
			return product == "one" && call == 2 || product == "alone" && call == 1
		}, "of two products: call 2"},
	} {
		calls := map[string]int{}
		do := func(product string) error {
			calls[product]++
			if c.fails(product, calls[product]) {
				return fmt.Errorf("call %d", calls[product])
			}
			return nil
		}
		err := Beside([]string{"one", "two"}, func(int) (string, error) { return "alone", nil }, func(product int) string { return "of two products" },
			[]Call[string]{{0, do}, {1, do}, {0, do}, {1, do}})
		if got := fmt.Sprint(err); got != c.want {
			t.Errorf("%s: %q; want %q", c.name, got, c.want)
		}
	}
}
