package page

import "testing"

// TestTimesFitBesideANarrowDiagram checks that a time is as long as its room at most.
func TestTimesFitBesideANarrowDiagram(t *testing.T) {
	for ms, want := range map[float64]string{0: "0 ms", 9.5: "9.5 ms", 69.665: "69.7 ms", 169.665: "170 ms", 1169.665: "1170 ms", 61169.665: "61.17 s", 86_400_000: "86400 s"} {
		if got := narrowTime(ms, 7); got != want {
			t.Errorf("%v ms is %q; want %q", ms, got, want)
		}
	}
}
