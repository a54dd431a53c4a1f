package arrival

import "testing"

// TestTinyRatesAreShort checks that a rate is printed without hundreds of zeros, and as it is read.
func TestTinyRatesAreShort(t *testing.T) {
	for text, want := range map[string]string{"1e-300": "1e-300", "2.5e-7": "2.5e-07", "0.001": "0.001", "20k": "20000"} {
		r, err := ParseRate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.String(); got != want {
			t.Errorf("%s is printed as %s; want %s", text, got, want)
		}
		if again, err := ParseRate(r.String()); err != nil || again[0].Rate != r[0].Rate {
			t.Errorf("%s is read again as %v: %v", r, again, err)
		}
	}
}
