package scenarios

import (
	"strings"
	"testing"
	"time"

	"oversell/faults"
)

// TestWhatFaultsAddToTheTime checks that a run says so if its faults keep it going after its time, or take long to
// heal after the clients have ended.
func TestWhatFaultsAddToTheTime(t *testing.T) {
	s := openServer(t, "process", "")
	f, err := faults.Parse("freeze node 1 600ms at 100ms")
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, "mutex", "lua-release", "")
	c.Faults, c.Duration = []faults.Fault{f}, 300*time.Millisecond
	h := runOn(t, t.Context(), c, s)
	if n := strings.Join(h.Trailer.Notes, "; "); !strings.Contains(n, "instead of 300ms (see --duration)") {
		t.Errorf("after %v: %q", h.Trailer.Elapsed, n)
	}
	r := &run{runObjects: &runObjects{}}
	if n := r.overtime(time.Second, noticeable/2); len(n) != 0 {
		t.Errorf("%q", n)
	}
	if n := r.overtime(time.Second, 3*time.Second); len(n) != 1 || !strings.Contains(n[0], "healed 3s after") {
		t.Errorf("%q", n)
	}
}

// TestReasonOfASaleCutShort checks that the reason is that most calls failed, if they did, and the time limit
// otherwise.
func TestReasonOfASaleCutShort(t *testing.T) {
	for failures, want := range map[int64]string{3: "3 of 4 operations ended in an error", 1: "some clients had no answer after 1m0s (see --duration)"} {
		r := &run{runObjects: &runObjects{config: Config{Duration: time.Minute, capped: true}}, live: &Live{}, failures: failures}
		r.timeUp.Store(true)
		r.live.Ops.Store(4)
		if got := r.aborted(nil, time.Minute); got != want {
			t.Errorf("%d of 4 operations failed: %q, want %q", failures, got, want)
		}
	}
}
