package queuerules

import (
	"context"
	"fmt"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// JournalLater sends a request again after seconds, minutes, hours and a day, by the virtual clock. The journal must still tell what the
// request took: the end of a run, at which it is settled, may be that late.
func JournalLater(ctx context.Context, b queueclient.Bench) error {
	after := func(all ...time.Duration) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			base := b.Queue
			for i, d := range all {
				b.Queue = fmt.Sprint(base, i)
				if err := journalAfter(ctx, b, d); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return b.OnVirtualClock(after(time.Second), after(10*time.Second, 2*time.Minute, 20*time.Minute, 3*time.Hour, 26*time.Hour))
}

func journalAfter(ctx context.Context, b queueclient.Bench, after time.Duration) error {
	c := b.Client(func(o *queueimpl.Options) {
		if o.Visibility = 0; b.Variant.AtLeastOnce {
			o.Visibility = 2*after + time.Minute
		}
	})
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a", "b"); err != nil {
		return err
	}
	first, err := pops(ctx, c, c.Request(0), 1)
	if err != nil {
		return err
	}
	b.Pass(after)
	return sentAgain(ctx, c, c.Request(0), first, fmt.Sprintf("%v later, while its consumer still had the task,", after))
}

// limited returns a client with the visibility timeout of these rules and a limit on the attempts.
func limited(b queueclient.Bench, attempts int) *queueclient.Client {
	return b.Client(queueclient.SetVisibility, func(o *queueimpl.Options) { o.MaxAttempts = attempts })
}

// letters waits until a client that pops finds no task, and the queue has a dead letter, which the client returns.
func letters(ctx context.Context, c *queueclient.Client) (dead []queueimpl.Task, _ error) {
	err := c.Bench.Until(ctx, "the dead letter", func() (bool, error) {
		if _, err := c.ExpectTake(ctx, queueclient.TheInterface, 1); err != nil {
			return false, fmt.Errorf("after all attempts: %w", err)
		}
		var err error
		if dead, err = c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name); err != nil {
			return false, suitetest.Broken(queueclient.TheInterface, "dead letters: %q", err)
		}
		return len(dead) > 0, nil
	})
	return dead, err
}

// WithdrawnLetter withdraws a dead letter with its score. A dead letter does not wait, so that must be answered with ErrChanged, and it
// must stay.
func WithdrawnLetter(ctx context.Context, b queueclient.Bench) error {
	c := limited(b, 1)
	in, err := c.Enter(ctx, queueclient.TheInterface, "a")
	if err != nil {
		return err
	}
	if _, err := c.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
		return err
	}
	if _, err := letters(ctx, c); err != nil {
		return err
	}
	answer := c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, c.Name, "a", in[0].Score)
	left, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
	switch {
	case err != nil:
		return suitetest.Broken(queueclient.TheInterface, "dead letters: %q", err)
	case len(left) == 0:
		return suitetest.Broken(variant.NoLostTask, "dequeue of a dead letter, with the score that its task had, answered %s, and the dead letter is gone: want ErrChanged, since it does not wait", queueclient.Say(answer))
	case answer == nil:
		return suitetest.Broken(queueclient.TheInterface, "dequeue of a dead letter, with the score that its task had, answered success: want ErrChanged, since it does not wait")
	}
	return nil
}

// OtherLimit has a task delivered as often as one client allows, and then a client with a lower limit goes on. The task must be a dead
// letter, and the letter must tell how often it was delivered.
func OtherLimit(ctx context.Context, b queueclient.Bench) error {
	const deliveries = 3
	first, then := limited(b, deliveries), limited(b, deliveries-1)
	if _, err := first.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	for range deliveries {
		if _, err := first.ExpectNext(ctx, variant.NoLostTask, "a"); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("a task was delivered %d times by a client that allows as many, and then a client went on that allows %d", deliveries, deliveries-1)
	dead, err := letters(ctx, then)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", what, err)
	case len(dead) != 1 || dead[0].ID != "a":
		return suitetest.Broken(variant.NoLostTask, `%s: the dead letters are %q; want "a"`, what, queueclient.IDsOf(dead))
	case dead[0].Attempt != 0 && dead[0].Attempt != deliveries:
		return suitetest.Broken(queueclient.TheInterface, "%s, which was told that the dead letter has %d attempts", what, dead[0].Attempt)
	}
	return nil
}

// FineDelay delays a task by a time with a fraction of a millisecond, on the virtual clock. A queue that counts in whole milliseconds, or
// seconds, must round it up.
func FineDelay(ctx context.Context, b queueclient.Bench) error {
	at := func(delay, early time.Duration) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			c := b.Client()
			in, err := c.EnterAfter(ctx, queueclient.TheInterface, delay, "a")
			if err != nil {
				return err
			}
			b.Pass(early)
			if _, err := c.ExpectTake(ctx, variant.NotEarly, 1); err != nil {
				return fmt.Errorf("%v after it was enqueued with a delay of %v: %w", early, delay, err)
			}
			c.PassesUntilDue(ctx, in, delay)
			_, err = c.ExpectNext(ctx, variant.NoLostTask, "a")
			return err
		}
	}
	return b.OnVirtualClock(at(time.Second, 400*time.Millisecond), at(1900*time.Microsecond, 1500*time.Microsecond))
}

// ReclaimsThousands lets more than a thousand claims run out, by the virtual clock, and calls [queueimpl.Reclaimer.Reclaim] once. It must end them all.
func ReclaimsThousands(ctx context.Context, b queueclient.Bench) error {
	of := func(n int) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			c := b.Client(func(o *queueimpl.Options) { o.Visibility = time.Minute })
			if _, err := c.Enter(ctx, queueclient.TheInterface, queueclient.Numbered(n)...); err != nil {
				return err
			}
			if got, err := c.All(ctx, n, n); err != nil || len(got) != n {
				return err // another rule's business
			}
			b.Pass(time.Hour)
			ended, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name)
			if err != nil {
				return suitetest.Broken(queueclient.TheInterface, "reclaim answered %q", err)
			}
			s, err := c.State(ctx, c.Name)
			if err == nil && (ended != n || len(s.Claimed) > 0) {
				return suitetest.Broken(queueclient.TheInterface, "%d claims had run out: a reclaim said that it ended %d, and %d tasks are claimed still; want all of them ended by one call", n, ended, len(s.Claimed))
			}
			return nil
		}
	}
	return b.OnVirtualClock(of(3), of(1300))
}
