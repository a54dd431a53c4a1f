package inpieces

import "testing"

// TestNumber checks that the orders for single pieces have numbers of their own, which have six digits for small orders.
func TestNumber(t *testing.T) {
	seen := map[int64]bool{}
	for _, id := range []int64{1, 2, 3, 100, 1000, 1561, 1562, 5000, 1 << 30} {
		for k := 1; k < mostOrders; k++ {
			n := number(id, k)
			if seen[n] || n == id {
				t.Fatalf("piece %d of order %d has the number %d, which is taken", k, id, n)
			}
			if seen[n] = true; id <= 1561 && n >= 1_000_000 {
				t.Errorf("piece %d of order %d has the number %d; want six digits", k, id, n)
			}
		}
	}
}
