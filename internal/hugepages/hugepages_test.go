package hugepages

import "testing"

// TestAdviseChangesNothing checks that Advise does not change the contents of a table, whatever its size.
func TestAdviseChangesNothing(t *testing.T) {
	Advise([]int(nil))
	for _, n := range []int{1, 1000, 1 << 20} {
		table := make([]int, n)
		for i := range table {
			table[i] = i
		}
		Advise(table)
		for i := range table {
			if table[i] != i {
				t.Fatalf("%d of %d became %d", i, n, table[i])
			}
		}
	}
}
