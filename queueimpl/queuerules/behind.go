package queuerules

import (
	"context"
	"fmt"
	"slices"
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

// BehindExtended extends the claims of many tasks again and again, except for the task that was taken last. When the claim of that
// task has run out, the task must be delivered again.
func BehindExtended(ctx context.Context, b queueclient.Bench) error {
	const lasting = 1200 * time.Millisecond
	long := func(o *queueimpl.Options) { o.Visibility = lasting }
	c, other := b.Client(long), b.Client(long)
	x := c.Queue.(queueimpl.Extender)
	ids := queueclient.Numbered(b.Fits(ctx, 250, 150, lasting/6))
	if _, err := c.Enter(ctx, queueclient.TheInterface, ids...); err != nil {
		return err
	}
	got, err := c.All(ctx, len(ids), len(ids))
	if err == nil && len(got) < len(ids) { // another rule's business
		err = &suitetest.Remark{Text: fmt.Sprintf("not tried: of %d tasks, %d were handed out", len(ids), len(got))}
	}
	if err != nil {
		return err
	}
	last := slices.IndexFunc(got, func(t queueimpl.Task) bool { return t.ID == ids[len(ids)-1] })
	if last < 0 {
		return nil
	}
	end := got[last].Until.Add(queueclient.Lateness)
	extended := slices.Delete(slices.Clone(got), last, last+1)
	for c.Env.Clock.Now().Before(end) {
		for i, t := range extended {
			if extended[i], err = x.Extend(ctx, c.Name, t); err != nil { // other errors than ErrLost are another rule's business
				return &suitetest.Remark{Text: fmt.Sprintf("not tried: while the claims of %d tasks, of %v each, were extended again and again, an extend was answered %q, as on a busy machine", len(extended), lasting, err)}
			}
		}
		b.Passes(ctx, lasting/8)
		again, err := other.Take(ctx, 1)
		if err == nil && len(again) > 0 && again[0].ID != got[last].ID {
			err = &suitetest.Remark{Text: fmt.Sprintf("not tried: the claim of one of %d tasks, which were extended again and again, ran out, as on a busy machine", len(extended))}
		}
		if err != nil || len(again) > 0 {
			return err
		}
	}
	return c.Lost(ctx, []string{got[last].ID}, "the claim of one of %d tasks had run out, and the task was not delivered for %v while the claims of the others were extended", len(ids), queueclient.Lateness)
}

// BehindDelayed enqueues many tasks that are due in an hour, then one that is due at once, and then one that is due soon. The last
// two must be delivered when they are due.
func BehindDelayed(ctx context.Context, b queueclient.Bench) error {
	const soon = queueclient.Claim
	c := b.Client()
	if _, err := c.EnterAfter(ctx, variant.NoLostTask, time.Hour, queueclient.Numbered(b.Fits(ctx, 250, 12, queueclient.Lateness))...); err != nil {
		return err
	}
	if _, err := c.Enter(ctx, variant.NoLostTask, "now"); err != nil {
		return err
	}
	due, err := c.EnterAfter(ctx, variant.NoLostTask, soon, "soon")
	if err != nil {
		return err
	}
	now, err := c.ExpectNext(ctx, variant.NoLostTask, "now")
	if err != nil && now.ID != "" && now.ID != "now" && now.ID != "soon" {
		return suitetest.Broken(variant.NotEarly, "%q, which is due in an hour, was delivered; want %q, which is due now", now.ID, "now")
	}
	if err == nil {
		err = c.Done(ctx, now)
	}
	if err != nil {
		return fmt.Errorf("behind tasks that are due in an hour: %w", err)
	}
	c.PassesUntilDue(ctx, due, soon)
	if _, err := c.ExpectNext(ctx, variant.NoLostTask, "soon"); err != nil {
		return fmt.Errorf("a task with a delay of %v, behind tasks that are due in an hour: %w", soon, err)
	}
	return nil
}
