package prefetch

import (
	"fmt"
	"testing"
)

// TestBatches checks that a loop gets all batches in their order, that slices come back to be filled again, and that the reader has
// returned when the loop ends, also if it ends early.
func TestBatches(t *testing.T) {
	for _, until := range []int{0, 1, 2, 3, 10, 100} {
		ended, rooms := false, 0
		var got []string
		for items, note := range Batches(func(yield func([]int, string) ([]int, bool)) {
			defer func() { ended = true }()
			var room []int
			for n := range 50 {
				if cap(room) > 0 {
					rooms++
				}
				more := false
				if room, more = yield(append(room[:0], n, n*n), fmt.Sprint("note ", n)); !more {
					return
				}
			}
		}) {
			if len(got) == until {
				break
			}
			got = append(got, fmt.Sprint(items, note))
		}
		if want := min(until, 50); len(got) != want || !ended || until == 100 && rooms < 45 {
			t.Errorf("until %d: %d batches, room came back %d times, the reader has ended: %t", until, len(got), rooms, ended)
		}
		for n, text := range got {
			if want := fmt.Sprint([]int{n, n * n}, fmt.Sprint("note ", n)); text != want {
				t.Errorf("batch %d is %s; want %s", n, text, want)
			}
		}
	}
}
