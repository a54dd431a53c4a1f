package scenarios

import (
	"context"
	"sync"
	"testing"
)

// TestStopWithASignal checks that a run that a signal and a caller stop at once is stopped with the first given
// reason, and that a run can be stopped before it begins.
func TestStopWithASignal(t *testing.T) {
	var live Live
	ctx, cancel := context.WithCancel(t.Context())
	until, done := live.until(ctx)
	defer done()
	var all sync.WaitGroup
	all.Go(cancel)
	all.Go(func() { live.Stop("broken") })
	all.Wait()
	<-until.Done()
	live.Stop("again")
	if live.Stopped() != "broken" {
		t.Errorf("stopped: %q", live.Stopped())
	}
	before := Live{}
	before.Stop("early")
	until, done = before.until(t.Context())
	defer done()
	<-until.Done()
}
