package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules in this suite take time, and so does a server that is far away. The code in this file tells
// the two apart.

// nearly is by how much a connection's time may be over before that of the rule.
const nearly = 50 * time.Millisecond

// outOfTime judges a rule that had not ended at its time limit. A breach that was found before the limit counts, and so
// does an event that the rule waited for long enough. Any other error comes from the suite's own context; it counts
// against the queue only if one call took long although other calls are quick.
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
	last := b.Last()
	went := end.Sub(last.Since)
	switch d, answered := b.RoundTrip(); {
	case !answered:
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v, and looks at the queue then failed or took more than %v", patience, answer)}
	case d > near || went < patience/3:
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v: its last call, %s, had gone on for %v, and a look at the queue takes %v", patience, last.What, max(went, 0).Round(time.Millisecond), d.Round(time.Microsecond))}
	default:
		return broken(of, "the rule had not ended after %v, and its last call, %s, had gone on for %v, though a look at the queue takes %v", patience, last.What, went.Round(time.Millisecond), d.Round(time.Microsecond))
	}
}

// ofWaiting is the promise that is broken if something does not happen for which a rule waits.
func (r rule) ofWaiting(v queueimpl.Variant) variant.Property {
	of := r.of()
	if of == variant.NoLostTask || of == variant.Progress {
		return of
	}
	for _, p := range []variant.Property{variant.Progress, variant.NoLostTask} {
		if keeps(v, p) {
			return p
		}
	}
	return of
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
		if _, err := other.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
			return err
		}
		if late = other.Env.Clock.Now().Sub(end); late <= lateness {
			return nil
		}
	}
	return broken(variant.Progress, "a task came back %v after its claim of %v was over, and as late as that each time", late.Round(time.Millisecond), visibility)
}
