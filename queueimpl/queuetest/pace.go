package queuetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/internal/stats"
	"oversell/variant"
)

// The rules in this suite take time, and so does a distant server. The code in this file distinguishes the two.

// never is an event for which a rule waited in vain until its time was over.
type never struct {
	what  string
	after time.Duration
}

func (n *never) Error() string {
	return fmt.Sprintf("%s has not happened in %v", n.what, n.after.Round(time.Millisecond))
}

// tooSlow says that a rule could not be completed in time.
type tooSlow struct{ why string }

func (s *tooSlow) Error() string { return "too slow to judge: " + s.why }

// near is the longest duration of a look at a queue at which its calls do not excuse a rule that runs out of time.
const near = time.Millisecond

// nearly is how much earlier than the rule's a connection's time may be over.
const nearly = 50 * time.Millisecond

// outOfTime judges a rule that had not ended when its time was over. Earlier findings are true. An event that the rule
// awaited for long enough did not happen. Any other error comes from the suite's own context, and counts against the
// queue only if its calls are fast.
func (b bench) outOfTime(r rule, end time.Time, err error) error {
	if s := new(tooSlow); errors.As(err, &s) {
		return err
	}
	if w := new(breach); errors.As(err, &w) && w.at.Before(end.Add(-nearly)) {
		return err
	}
	of := r.of()
	if r.promise == "" && keeps(b.v, variant.Progress) {
		of = variant.Progress
	}
	if r.name == twentyThousandTasks {
		return &tooSlow{fmt.Sprintf("the calls with many tasks took longer than %v", patience)}
	}
	if n := new(never); errors.As(err, &n) && n.after >= patience/3 {
		return broken(of, "%w", err)
	}
	d, answered := b.roundTrip()
	if answered && d > near {
		return &tooSlow{fmt.Sprintf("the rule has not come to its end in %v, and a look at the queue takes %v", patience, d.Round(time.Microsecond))}
	}
	return broken(of, "the rule had not ended after %v, and its last call was %v; a look at the queue takes %v", patience, b.last.Load(), d.Round(time.Microsecond))
}

// of returns the promise that a rule belongs to, or the interface.
func (r rule) of() variant.Property {
	if r.promise == "" {
		return theInterface
	}
	return r.promise
}

// roundTrip returns how long a look at an empty queue takes, by State or by Pop, whichever is longer: the median of
// several. answered is false after an error.
func (b bench) roundTrip() (_ time.Duration, answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), answer)
	defer cancel()
	c := b.client()
	c.name += "-unused"
	var took []time.Duration
	for range 3 {
		start := time.Now()
		if _, err := c.State(ctx, c.name); err != nil {
			return time.Since(start), false
		}
		between := time.Now()
		if _, err := c.pop(ctx, 1); err != nil {
			return time.Since(between), false
		}
		took = append(took, max(between.Sub(start), time.Since(between)))
	}
	return stats.Median(took), true
}

// fits returns how many tasks go through the queue in some time, one by one; not more than most, nor
// fewer than least.
func (b bench) fits(ctx context.Context, most, least int, within time.Duration) int {
	if b.Pass != nil {
		return most // its clock stands still meanwhile
	}
	const n = 4
	c := b.client()
	c.name += "-pace"
	_, _ = c.Enqueue(ctx, c.name, "p0") // scripts are loaded
	if tasks, err := c.pop(ctx, 1); err == nil {
		_ = c.done(ctx, tasks...)
	}
	var took []time.Duration
	for i := range n { // not the mean of them: a machine may stall once
		start := time.Now()
		_, _ = c.Enqueue(ctx, c.name, fmt.Sprint("p", i+1))
		if tasks, err := c.pop(ctx, 1); err == nil {
			_ = c.done(ctx, tasks...)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	each := max(took[n/2-1], time.Microsecond)
	return max(min(most, int(within/each)), min(least, most))
}

// someOf returns all ids, or every second, or third, so that they go through the queue in some time.
func (b bench) someOf(ctx context.Context, ids []string, within time.Duration) (some []string) {
	fits := b.fits(ctx, len(ids), 10, within)
	for i := 0; i < len(ids); i += (len(ids) + fits - 1) / fits {
		some = append(some, ids[i])
	}
	return some
}

// claimEndsSoon: a task comes back soon after its claim has run out. A machine may stall once, but hardly each time.
func claimEndsSoon(ctx context.Context, b bench) error {
	var late time.Duration
	for try := range 3 {
		own := b
		own.Queue = fmt.Sprintf("%s-%d", b.Queue, try)
		c, _, err := lent(ctx, own, impatient)
		if err != nil {
			return err
		}
		end := c.env.Clock.Now().Add(visibility)
		other := own.client(impatient)
		if _, err := other.comes(ctx, variant.NoLostTask, "a"); err != nil {
			return err
		}
		if late = other.env.Clock.Now().Sub(end); late <= lateness {
			return nil
		}
	}
	return broken(variant.Progress, "a task came back %v after its claim of %v was over, and as late as that each time", late.Round(time.Millisecond), visibility)
}
