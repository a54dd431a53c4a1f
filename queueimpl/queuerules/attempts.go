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

// AttemptsOverDays lets the claims on a task run out, each after minutes, hours or days, as often as MaxAttempts allows. The limits of
// 12 and 300 catch numbers that are compared as text, and numbers that are kept in a byte. Each delivery must have the next number, and after the last one the task must be a dead
// letter, if the queue has these.
func AttemptsOverDays(ctx context.Context, b queueclient.Bench) error {
	dead := queueclient.Can[queueimpl.DeadLetters](b.Variant)
	for _, c := range []struct {
		attempts   int
		visibility time.Duration
	}{{3, 40 * time.Second}, {3, 20 * time.Minute}, {12, 90 * time.Minute}, {4, 30 * 24 * time.Hour}, {300, 40 * time.Second}} {
		limited := func(o *queueimpl.Options) {
			o.Visibility = c.visibility
			if dead {
				o.MaxAttempts = c.attempts
			}
		}
		short := func(b queueclient.Bench) error {
			return attempts(ctx, b, queueclient.SetVisibility, 1, queueclient.Claim)
		}
		if err := b.OnVirtualClock(short, func(b queueclient.Bench) error { return attempts(ctx, b, limited, c.attempts, c.visibility) }); err != nil {
			return fmt.Errorf("with claims of %v: %w", c.visibility, err)
		}
	}
	return nil
}

// attempts delivers a task n times, on a clock that it moves.
func attempts(ctx context.Context, b queueclient.Bench, options func(*queueimpl.Options), n int, visibility time.Duration) error {
	c := b.Client(options)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	for i := 1; i <= n; i++ {
		t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
		if letters, ok := c.Queue.(queueimpl.DeadLetters); ok && err != nil {
			if all, _ := letters.Dead(ctx, c.Name); slices.Contains(queueclient.IDsOf(all), "a") {
				return suitetest.Broken(queueclient.TheInterface, "a task was a dead letter after %d deliveries, with %d attempts allowed", i-1, n)
			}
		}
		if err != nil {
			return fmt.Errorf("of %d attempts, attempt %d: %w", n, i, err)
		}
		if t.Attempt != i && t.Attempt != 0 {
			return suitetest.Broken(queueclient.TheInterface, "delivery %d of a task is called attempt %d", i, t.Attempt)
		}
		b.Pass(max(visibility, t.Until.Sub(c.Env.Clock.Now())) + queueclient.Grain)
	}
	letters, ok := c.Queue.(queueimpl.DeadLetters)
	if !ok || n == 1 {
		return nil
	}
	return b.Until(ctx, "the dead letter", func() (bool, error) {
		again, err := c.Take(ctx, 1)
		if err != nil {
			return false, err
		}
		if len(again) > 0 {
			return false, suitetest.Broken(queueclient.TheInterface, "a task was delivered %d times, with %d attempts allowed", n+1, n)
		}
		all, err := letters.Dead(ctx, c.Name)
		if err != nil {
			return false, suitetest.Broken(queueclient.TheInterface, "dead letters: %q", err)
		}
		return slices.Equal(queueclient.IDsOf(all), []string{"a"}), nil
	})
}

// ReclaimIsNoAttempt ends the claims on a task by Reclaim. A delivery is counted, the end of a claim is not.
func ReclaimIsNoAttempt(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(queueclient.SetVisibility)
	if _, err := c.Enter(ctx, queueclient.TheInterface, "a"); err != nil {
		return err
	}
	for i := 1; i <= 3; i++ {
		t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
		if err != nil {
			return err
		}
		if t.Attempt != i && t.Attempt != 0 {
			return suitetest.Broken(queueclient.TheInterface, "delivery %d of a task is called attempt %d; each claim before was ended by a reclaim", i, t.Attempt)
		}
		if err := reclaimed(ctx, c, t); err != nil {
			return err
		}
	}
	return nil
}

// reclaimed calls Reclaim until it has ended the claim on a task that has run out.
func reclaimed(ctx context.Context, c *queueclient.Client, t queueimpl.Task) error {
	if err := c.Bench.Ended(ctx, c, t.Until); err != nil {
		return err
	}
	return c.Bench.Until(ctx, "the end of a claim by a reclaim", func() (bool, error) {
		n, err := c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, c.Name)
		if err != nil {
			return false, suitetest.Broken(queueclient.TheInterface, "reclaim answered %q", err)
		}
		return n > 0, nil
	})
}

// LetterOfLast has a task become a dead letter after deliveries to two consumers. An ack by the first one must be refused,
// and so must an extend by either; the letter stays.
func LetterOfLast(ctx context.Context, b queueclient.Bench) error {
	const of = queueclient.TheInterface
	twice := func(o *queueimpl.Options) { o.MaxAttempts = 2 }
	c, other := b.Client(queueclient.SetVisibility, twice), b.Client(queueclient.SetVisibility, twice)
	if _, err := c.Enter(ctx, of, "a"); err != nil {
		return err
	}
	var had []queueimpl.Task
	for _, consumer := range []*queueclient.Client{c, other} {
		t, err := consumer.ExpectNext(ctx, of, "a")
		if err != nil {
			return err
		}
		if err := b.Ended(ctx, consumer, t.Until); err != nil {
			return err
		}
		had = append(had, t)
	}
	if err := ByPop(ctx, c); err != nil {
		return err
	}
	stays := func(what string) error {
		letters, err := c.Queue.(queueimpl.DeadLetters).Dead(ctx, c.Name)
		if err != nil {
			return suitetest.Broken(of, "dead letters: %q", err)
		}
		if got := queueclient.IDsOf(letters); !slices.Equal(got, []string{"a"}) {
			return suitetest.Broken(variant.NoLostTask, "after %s the dead letters are %q; want \"a\"", what, got)
		}
		if err := c.ExpectState(ctx, of, nil, nil); err != nil {
			return fmt.Errorf("a task is a dead letter, and after %s: %w", what, err)
		}
		return nil
	}
	if x, ok := c.Queue.(queueimpl.Extender); ok {
		for i, t := range had {
			if _, err := x.Extend(ctx, c.Name, t); err == nil {
				return suitetest.Broken(of, "an extend of a dead letter, by the consumer of delivery %d of 2, was answered with success; want %q", i+1, queueimpl.ErrLost)
			}
			if err := stays("an extend"); err != nil {
				return err
			}
		}
	}
	if had[0].Receipt == had[1].Receipt {
		return nil // the queue cannot tell them apart; other rules are about receipts
	}
	if err := c.ExpectAck(ctx, of, had[0], queueimpl.ErrLost); err != nil {
		return fmt.Errorf("the first consumer of a dead letter, which was delivered twice: %w", err)
	}
	return stays("an ack by the first of its two consumers")
}

// nothingLeft expects that within Lateness nothing waits any more and nothing is claimed.
func nothingLeft(ctx context.Context, c *queueclient.Client) error {
	for end := c.Env.Clock.Now().Add(queueclient.Lateness); ; c.Bench.Passes(ctx, queueclient.Look) {
		if _, err := c.ExpectTake(ctx, variant.NoLostTask, 1); err != nil { // a pop may be what ends claims that have run out
			return err
		}
		err := c.ExpectState(ctx, variant.NoLostTask, nil, nil)
		if err == nil || c.Env.Clock.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// DeadTwice enqueues the id of a dead letter. If the queue enters it, it becomes a dead letter once more.
func DeadTwice(ctx context.Context, b queueclient.Bench) error {
	c := b.Client(queueclient.SetVisibility, func(o *queueimpl.Options) { o.MaxAttempts = 1 })
	for life := range 3 {
		in, err := c.Enqueue(ctx, c.Name, "a")
		if err != nil {
			return suitetest.Broken(queueclient.TheInterface, "enqueue of a dead letter's id answered %q", err)
		}
		if len(in) == 0 && life > 0 {
			return nil // it counts as there
		}
		t, err := c.ExpectNext(ctx, variant.NoLostTask, "a")
		if err != nil {
			return fmt.Errorf("after its id had become a dead letter %d times: %w", life, err)
		}
		if err := b.Ended(ctx, c, t.Until); err != nil {
			return err
		}
		if err := aside(ctx, c, func() error { _, err := c.ExpectTake(ctx, queueclient.TheInterface, 1); return err }); err != nil {
			return suitetest.Broken(variant.NoLostTask, "an id was a dead letter %d times, and entered again each time; after its attempts it is to be one again: %w", life, err)
		}
		if err := nothingLeft(ctx, c); err != nil {
			return err
		}
		if found, err := c.Found(ctx, "a"); err != nil || !found {
			return suitetest.Broken(variant.NoLostTask, "an id was a dead letter %d times, was entered again, and had its attempts: it does not wait, is not claimed, and is no dead letter (%s)", life, queueclient.Say(err))
		}
	}
	return nil
}
