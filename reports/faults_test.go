package reports

import "testing"

// TestFaultStory checks what is said of a fault that fired, that did not, and that fired in part.
func TestFaultStory(t *testing.T) {
	for _, tt := range []struct {
		f    Fault
		want string
	}{
		{Fault{}, "never fired"},
		{Fault{Failed: "the run ended before it could fire"}, "never fired; the run ended before it could fire"},
		{Fault{Partly: 1, Failed: "the run ended while it took effect"}, "fired only in part; the run ended while it took effect"},
		{Fault{Fired: 2, Holders: 1}, "fired 2 times (1 hit a holder)"},
		{Fault{Fired: 1, Partly: 1, Failed: "no answer"}, "fired once; no answer"},
		{Fault{Vain: 1, VainWhy: "nobody waited"}, "never fired with an effect; had no effect once: nobody waited"},
	} {
		if got := tt.f.Story(); got != tt.want {
			t.Errorf("the story is %q; want %q", got, tt.want)
		}
	}
}
