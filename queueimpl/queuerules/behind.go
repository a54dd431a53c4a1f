package queuerules

import (
	"context"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// BehindLiveClaims: of many claims that have run out, all but one are taken again at once, so that the
// last one stands behind claims that go on.
func BehindLiveClaims(ctx context.Context, b queueclient.Bench) error {
	const lasting = 1200 * time.Millisecond
	long := func(o *queueimpl.Options) { o.Visibility = lasting }
	c, other := b.Client(long), b.Client(long)
	n := b.Fits(ctx, 1500, 12, lasting/6)
	if b.Pass != nil {
		n = min(n, 120) // an emulation takes its time
	}
	if _, err := c.Enter(ctx, queueclient.TheInterface, queueclient.Numbered(n)...); err != nil {
		return err
	}
	if got, err := c.All(ctx, n, n); err != nil || len(got) < n {
		return err // another rule's business
	}
	b.Passes(ctx, lasting+lasting/8)
	start := c.Env.Clock.Now()
	again := map[string]bool{} // each once, though its claim may run out once more
	var idle time.Time         // since when none has come
	var slow, stuck bool
	if err := b.Until(ctx, "the return of many tasks", func() (bool, error) {
		got, err := c.Take(ctx, n-1-len(again))
		for _, t := range got {
			again[t.ID] = true
		}
		now := c.Env.Clock.Now()
		if len(got) > 0 || idle.IsZero() {
			idle = now
		}
		stuck = now.Sub(idle) > queueclient.Lateness
		slow = now.Sub(start) > lasting // claims of tasks that came back have run out, too
		return len(again) >= n-1 || stuck || slow, err
	}); err != nil || slow && !stuck {
		return err
	}
	end := start.Add(lasting)
	for n := 0; ; n++ {
		got, err := other.Take(ctx, 1)
		if err != nil || len(got) > 0 {
			return err
		}
		if now := other.Env.Clock.Now(); now.After(end.Add(-queueclient.Grain)) {
			return nil // too slow a machine: the others' claims are over
		} else if now.Sub(start) > queueclient.Lateness && n > 3 {
			break
		}
		b.Passes(ctx, 10*queueclient.Look)
	}
	return suitetest.Broken(variant.Progress, "%d claims had run out, and %d of the tasks were taken again: no other was delivered for %v, behind claims that went on", n, len(again), queueclient.Lateness)
}
