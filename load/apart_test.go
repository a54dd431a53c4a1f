package load

import (
	"testing"

	"oversell/variant"
)

// TestApart checks that a client made by Apart has no randomness, and needs no engine.
func TestApart(t *testing.T) {
	c := NewDetached(3, variant.Env{})
	for n := 1; n < 100; n++ {
		if got, got64 := c.Rand.IntN(n), c.Rand.Int64N(int64(n)<<40); got != n-1 || got64 != int64(n)<<40-1 {
			t.Fatalf("of %d, %d and %d are drawn", n, got, got64)
		}
		if f := c.Rand.Float64(); f >= 1 || f < 0.999999 {
			t.Fatalf("a draw of %v", f)
		}
	}
	c.Begin()
	c.Released(t.Context(), "order")
	c.End()
}
