package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/variant"
)

// The rules in this suite take time, and so does a server that is far away. The code in this file tells
// the two apart.

// nearly is by how much a connection's time may be over before that of the rule.
const nearly = 50 * time.Millisecond

// outOfTime judges a rule that had not ended when its time was over. What was found before is
// true. Something that was waited for long enough did not happen. Anything else is an error of
// the suite's own context, and says something about the queue only if its calls are quick.
func outOfTime(b bench, r rule, end time.Time, err error) error {
	if s := new(suitetest.TooSlow); errors.As(err, &s) {
		return err
	}
	if w := new(suitetest.Breach); errors.As(err, &w) && w.At.Before(end.Add(-nearly)) {
		return err
	}
	of := r.of()
	if r.promise == "" && keeps(b.Variant, variant.Progress) {
		of = variant.Progress
	}
	if slices.Contains(alone, r.name) {
		return &suitetest.TooSlow{Why: fmt.Sprintf("the calls with many tasks took longer than %v", patience)}
	}
	if n := new(never); errors.As(err, &n) && n.After >= patience/3 {
		return broken(of, "%w", err)
	}
	d, answered := b.RoundTrip()
	if answered && d > near {
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v: a look at the queue takes %v", patience, d.Round(time.Microsecond))}
	}
	return broken(of, "the rule had not ended after %v, and its last call was %v; a look at the queue takes %v", patience, b.Last(), d.Round(time.Microsecond))
}

// of is the promise that a rule belongs to, or the interface.
func (r rule) of() variant.Property {
	if r.promise == "" {
		return theInterface
	}
	return r.promise
}

// claimEndsSoon: when its claim has run out, a task comes back, and not much later. A machine may be
// held up once, but hardly each time.
func claimEndsSoon(ctx context.Context, b bench) error {
	var late time.Duration
	for try := range 3 {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, try)
		c, _, err := lent(ctx, own, impatient)
		if err != nil {
			return err
		}
		end := c.Env.Clock.Now().Add(visibility)
		other := own.Client(impatient)
		if _, err := other.Comes(ctx, variant.NoLostTask, "a"); err != nil {
			return err
		}
		if late = other.Env.Clock.Now().Sub(end); late <= lateness {
			return nil
		}
	}
	return broken(variant.Progress, "a task came back %v after its claim of %v was over, and as late as that each time", late.Round(time.Millisecond), visibility)
}
