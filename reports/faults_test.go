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
		{Fault{Fired: 2, Holders: new(int64(1))}, "fired 2 times (1 hit a holder)"},
		{Fault{Fired: 1, Partly: 1, Failed: "no answer"}, "fired once; no answer"},
		{Fault{Vain: 1, VainWhy: "nobody waited"}, "never fired with an effect; had no effect once: nobody waited"},
	} {
		if got := tt.f.Story(); got != tt.want {
			t.Errorf("the story is %q; want %q", got, tt.want)
		}
	}
}

// TestFaultsAddUp checks the sum of two runs: whom a fault hit is unknown if it is unknown of one.
func TestFaultsAddUp(t *testing.T) {
	f := Fault{Fired: 1, Holders: new(int64(1)), Waiters: new(int64(2))}
	first := f.Holders
	f.Add(Fault{Fired: 2, Holders: new(int64(3)), Failed: "no answer"})
	if f.Fired != 3 || *f.Holders != 4 || f.Waiters != nil || f.Failed != "no answer" || *first != 1 {
		t.Errorf("%+v", f)
	}
}
