package queueclient

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/internal/stats"
	"oversell/internal/suitetest"
)

// Never reports that something a rule waited for did not happen in time.
type Never struct {
	What  string
	After time.Duration
	Holds string // what the queue holds, as the end of a sentence
}

func (n *Never) Error() string {
	return fmt.Sprintf("%s has not happened in %v%s", n.What, n.After.Round(100*time.Millisecond), n.Holds)
}

// Near: if reading a queue takes less than this, slow calls are not the reason why a rule ran
// out of time.
const Near = time.Millisecond

// RoundTrip is how long a look at an empty queue takes, by State or by Pop, whichever is longer; the
// median of some. It is not answered if there is an error.
func (b Bench) RoundTrip() (_ time.Duration, answered bool) {
	ctx, cancel := context.WithTimeout(context.Background(), Answer)
	defer cancel()
	c := b.Client()
	c.Name += "-unused"
	var took []time.Duration
	for range 3 {
		start := time.Now()
		if _, err := c.State(ctx, c.Name); err != nil {
			return time.Since(start), false
		}
		between := time.Now()
		if _, err := c.Take(ctx, 1); err != nil {
			return time.Since(between), false
		}
		took = append(took, max(between.Sub(start), time.Since(between)))
	}
	return stats.Median(took), true
}

// Fits is how many tasks go through the queue in some time, one by one; not more than most, nor
// fewer than least. If it is less than most, [Bench.Fewer] returns a remark.
func (b Bench) Fits(ctx context.Context, most, least int, within time.Duration) int {
	if b.Pass != nil {
		return most // its clock stands still meanwhile
	}
	const n = 4
	c := b.Client()
	c.Name += "-pace"
	_, _ = c.Enqueue(ctx, c.Name, "p0") // scripts are loaded
	if tasks, err := c.Take(ctx, 1); err == nil {
		_ = c.Done(ctx, tasks...)
	}
	var took []time.Duration
	for i := range n { // not the mean of them: a machine may be held up once
		start := time.Now()
		_, _ = c.Enqueue(ctx, c.Name, fmt.Sprint("p", i+1))
		if tasks, err := c.Take(ctx, 1); err == nil {
			_ = c.Done(ctx, tasks...)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	each := max(took[n/2-1], time.Microsecond)
	fits := max(min(most, int(within/each)), min(least, most))
	if fits < most && b.fewer != nil {
		b.fewer.Store(new(fmt.Sprintf("tried with %d instead of %d tasks, since one takes %v to go through the queue", fits, most, each.Round(time.Microsecond))))
	}
	return fits
}

// Fewer returns a remark if the rule was tried with fewer tasks than it would have been on a quick queue and machine.
func (b Bench) Fewer() error {
	if b.fewer == nil || b.fewer.Load() == nil {
		return nil
	}
	return &suitetest.Remark{Text: *b.fewer.Load()}
}

// SomeOf returns the ids, or every second or third of them, so that they pass through the queue in a time.
func (b Bench) SomeOf(ctx context.Context, ids []string, within time.Duration) (some []string) {
	fits := b.Fits(ctx, len(ids), 10, within)
	for i := 0; i < len(ids); i += (len(ids) + fits - 1) / fits {
		some = append(some, ids[i])
	}
	return some
}
