package queuerules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// RemainsAfterCalls makes each kind of call for the task "a" while the task "waits" is there, and lets weeks pass by the virtual clock. The
// second task must still be there, and a claim that was extended must still count.
func RemainsAfterCalls(ctx context.Context, b queueclient.Bench) error {
	at := func(passes time.Duration) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			base := b.Queue
			for _, call := range []string{"Pop", "Dequeue", "Peek", "Ack", "Extend", "Reclaim"} {
				b.Queue = base + "-" + call
				if err := remains(ctx, b, call, passes); err != nil {
					return fmt.Errorf("%v after a call of %s: %w", passes, call, err)
				}
			}
			return nil
		}
	}
	return b.OnVirtualClock(at(time.Second), at(40*day))
}

// remains makes one call for the task "a", where the queue has it, and lets a time pass.
func remains(ctx context.Context, b queueclient.Bench, call string, passes time.Duration) error {
	claim := 100 * day
	if call == "Reclaim" {
		claim = queueclient.Claim
	}
	c := b.Client(func(o *queueimpl.Options) {
		if b.Variant.AtLeastOnce {
			o.Visibility = claim
		}
	})
	in, err := c.Enter(ctx, queueclient.TheInterface, "a")
	if err != nil {
		return err
	}
	var mine []queueimpl.Task
	if call != "Dequeue" && call != "Peek" {
		if mine, err = c.ExpectTake(ctx, queueclient.TheInterface, 1, "a"); err != nil {
			return err
		}
	}
	if _, err := c.Enter(ctx, queueclient.TheInterface, "waits"); err != nil {
		return err
	}
	has := true
	switch call {
	case "Dequeue":
		var d queueimpl.Dequeuer
		if d, has = c.Queue.(queueimpl.Dequeuer); has {
			err = d.Dequeue(ctx, c.Name, "a", in[0].Score)
		}
	case "Peek":
		var p queueimpl.Peeker
		if p, has = c.Queue.(queueimpl.Peeker); has {
			_, err = p.Peek(ctx, c.Name, 1)
		}
	case "Ack":
		err = c.Done(ctx, mine...)
	case "Extend":
		var x queueimpl.Extender
		if x, has = c.Queue.(queueimpl.Extender); has && queueclient.Lends(b.Variant) {
			mine[0], err = x.Extend(ctx, c.Name, mine[0])
		}
	case "Reclaim":
		var r queueimpl.Reclaimer
		if r, has = c.Queue.(queueimpl.Reclaimer); has {
			b.Pass(time.Minute)
			_, err = r.Reclaim(ctx, c.Name)
		}
	}
	if err != nil || !has {
		return nil // another rule's business
	}
	b.Pass(passes)
	got, err := c.Found(ctx, "waits")
	if err == nil && !got {
		err = suitetest.Broken(variant.NoLostTask, "the task %q, for which nothing was called, is neither waiting nor claimed", "waits")
	}
	if err == nil && call == "Extend" {
		if err = c.Done(ctx, mine...); err != nil {
			err = fmt.Errorf("the claim had been extended to %v: %w", claim, err)
		}
	}
	return err
}

// LateAcks acknowledges a task hours, days and weeks after the end of its claim, by the virtual clock. Nobody has called the queue since, so
// the ack counts.
func LateAcks(ctx context.Context, b queueclient.Bench) error {
	at := func(all ...time.Duration) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			base := b.Queue
			for i, late := range all {
				b.Queue = fmt.Sprint(base, i)
				c := b.Client(queueclient.SetVisibility)
				mine, err := c.Given(ctx, queueclient.TheInterface)
				if err != nil {
					return err
				}
				b.Pass(queueclient.Claim + late)
				if err := c.Queue.(queueimpl.Acker).Ack(ctx, c.Name, mine[0]); err != nil {
					return suitetest.Broken(queueclient.TheInterface, "ack of a task whose claim had ended %v before, and that nobody else had taken, answered %s", late, queueclient.Say(err))
				}
			}
			return nil
		}
	}
	return b.OnVirtualClock(at(time.Second), at(2*time.Hour, 26*time.Hour, 40*day))
}

// RefusedCalls lets a claim run out and has another client take the task. The first one acknowledges and extends its claim, which is refused
// and changes nothing: the other can extend and acknowledge its own.
func RefusedCalls(ctx context.Context, b queueclient.Bench) error {
	at := func(passes time.Duration) func(queueclient.Bench) error {
		return func(b queueclient.Bench) error {
			for i, call := range []string{"ack", "extend"} {
				own := b
				own.Queue = fmt.Sprint(b.Queue, i)
				if err := refused(ctx, own, call, passes); err != nil {
					return err
				}
			}
			return nil
		}
	}
	short := func(b queueclient.Bench) error {
		return attempts(ctx, b, queueclient.SetVisibility, 1, queueclient.Claim)
	}
	return b.OnVirtualClock(short, at(time.Hour))
}

func refused(ctx context.Context, b queueclient.Bench, call string, passes time.Duration) error {
	first, other := b.Client(queueclient.SetVisibility), b.Client(func(o *queueimpl.Options) { o.Visibility = time.Hour })
	old, err := first.Given(ctx, queueclient.TheInterface)
	if err != nil {
		return err
	}
	b.Pass(queueclient.Claim + passes)
	mine, err := other.ExpectNext(ctx, variant.NoLostTask, "a")
	if err != nil {
		return err
	}
	x, extends := first.Queue.(queueimpl.Extender)
	switch {
	case call == "ack":
		err = first.Queue.(queueimpl.Acker).Ack(ctx, first.Name, old[0])
	case extends:
		_, err = x.Extend(ctx, first.Name, old[0])
	default:
		return nil
	}
	if !errors.Is(err, queueimpl.ErrLost) {
		return nil // another rule's business
	}
	what := fmt.Sprintf("a claim had run out, another client took the task, and the %s of the first one was answered with ErrLost, which changes nothing", call)
	if extends {
		if mine, err = other.Queue.(queueimpl.Extender).Extend(ctx, other.Name, mine); err != nil {
			return suitetest.Broken(queueclient.TheInterface, "%s: then the other's extend answered %s", what, queueclient.Say(err))
		}
	}
	if err := other.Queue.(queueimpl.Acker).Ack(ctx, other.Name, mine); err != nil {
		return suitetest.Broken(queueclient.TheInterface, "%s: then the other's ack answered %s", what, queueclient.Say(err))
	}
	return nil
}
