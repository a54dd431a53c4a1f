package stockrules

import (
	"fmt"

	"oversell/variant"
)

// Names are names of products, all different, that a sale may confuse.
type Names struct {
	// Of returns the names. They are made from a base, and contain a part of it.
	Of   func(base string) []string
	Base string
	// Open puts a new product on sale, and returns its first client; nil if the sale does not take the name.
	Open func(name string, stock int64) (*Caller, error)
	// Alone is Open for a product with a name like no other.
	Alone func(n int, stock int64) (*Caller, error)
}

// Apart puts products of all these names on sale, and buys from each. No product knows of the others. If the sale confuses a
// product with one of the others, the error names both.
func (n Names) Apart() error {
	names := n.Of(n.Base)
	all := make([]int, len(names))
	for i := range names {
		all[i] = i
	}
	return n.apart(n.Base, all, func(i int) string {
		if other := n.partner(i); other != "" {
			return fmt.Sprintf("product %q, which is confused with product %q", names[i], other)
		}
		return fmt.Sprintf("product %q, one of %q", names[i], names)
	})
}

// apart puts on sale the products with these indices, in this order.
func (n Names) apart(base string, indices []int, words func(index int) string) error {
	names := n.Of(base)
	var clients []*Caller
	var taken []int
	for _, i := range indices {
		c, err := n.Open(names[i], stockOf(i))
		if err != nil {
			return err
		}
		if c != nil {
			clients, taken = append(clients, c), append(taken, i)
		}
	}
	var calls, later []Call[*Caller]
	for at, i := range taken {
		stock, pieces := stockOf(i), i%3+1
		left := stock - int64(pieces)
		calls = append(calls,
			For(at, func(c *Caller) error { return c.Untouched(stock) }),
			For(at, func(c *Caller) error { return c.Buy(variant.NoUndersell, 1, pieces, nil, left) }))
		later = append(later, For(at, func(c *Caller) error { return c.State(variant.NoUndersell, left, int64(pieces)) }))
	}
	return Beside(clients, func(at int) (*Caller, error) {
		return n.Alone(taken[at], stockOf(taken[at]))
	}, func(at int) string { return words(taken[at]) }, append(calls, later...))
}

// stockOf is the number of pieces of the product with an index, which no other has.
func stockOf(index int) int64 { return int64(10 + index) }

// partner returns the name of a product that one is confused with when only the two are on sale; "" if there is none. It tries the
// names that are made in the same way from other bases.
func (n Names) partner(index int) string {
	names := n.Of(n.Base)
	for other := range names {
		if other == index {
			continue
		}
		pair := []int{min(index, other), max(index, other)}
		base := fmt.Sprintf("%s-pair-%d-", n.Base, other)
		confused := false
		if err := n.apart(base, pair, func(int) string { confused = true; return "" }); err != nil && confused {
			return names[other]
		}
	}
	return ""
}
