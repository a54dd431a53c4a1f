package replay

import (
	"testing"
	"time"

	"oversell/explore/servers"
)

// TestInstant checks that a time by a server's clock, and one by the clock of the schedule, mean the same moment.
func TestInstant(t *testing.T) {
	r := &replay{now: 2 * time.Second}
	for _, at := range []time.Duration{0, time.Second, 70 * time.Minute} {
		if got := r.instant(at); got != at {
			t.Errorf("%v by the clock of the schedule became %v", at, got)
		}
	}
	before := time.Now()
	due := before.Add(time.Minute).Sub(servers.Epoch)
	got, late := r.instant(due), time.Since(before)
	if least := r.now + time.Minute - late; got < least || got > r.now+time.Minute {
		t.Errorf("a minute from now by the server's clock became %v; want from %v to %v", got, least, r.now+time.Minute)
	}
}
