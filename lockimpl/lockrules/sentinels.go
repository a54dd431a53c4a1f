package lockrules

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/interrupt"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// LostIsTold are cases in which a client extends or releases a lock that another client holds, since the client's lease is over, or
// it has released the lock before. The answer must be ErrLost.
var LostIsTold = func() (cases []Case) {
	for _, act := range []string{"release", "extend"} {
		for _, released := range []bool{false, true} {
			after := map[bool]string{false: "the end of the lease", true: "a release"}[released]
			cases = append(cases, Case{fmt.Sprintf("%s after %s", act, after), func(b Bench) error {
				return b.eachTime(2, func(b Bench) error { return b.lostIsTold(act, released) })
			}})
		}
	}
	return cases
}()

func (b Bench) lostIsTold(act string, released bool) error {
	if act == "extend" && !b.Extends || b.Renews && !released {
		return nil // the lease of a holder that renews does not end while it lives
	}
	ttl, what := b.TTL, "whose lease was over"
	if released {
		ttl, what = long, "that it had released before"
	}
	c, other, l, err := b.heldByOne(ttl)
	if err != nil {
		return err
	}
	if released && c.Release(l) != nil {
		return errElsewhere
	}
	m, err := other.Take(b.Name, long, b.TTL)
	if err != nil {
		return errElsewhere
	}
	found := b.answers(lockimpl.ErrLost, variant.OwnerOnlyRelease, fmt.Sprintf("another client held the lock, and a client's %s of the lock %s", act, what), func() error {
		if act == "release" {
			return c.Release(l)
		}
		_, err := c.Extend(l, b.TTL)
		return err
	})
	if time.Until(other.Until(m)) <= 0 {
		return nil
	}
	return found
}

// atOnce is longer than a call takes that does not wait, and shorter than the time limit of a command.
const atOnce = time.Second

// answers expects that a call is answered with want, which is ErrLost or ErrHeld, and not with the other one. An error of its own leaves
// the outcome open, unless three calls in a row are answered with one at once.
func (b Bench) answers(want error, p variant.Property, what string, call func() error) (found error) {
	for range 3 {
		began := time.Now()
		err := call()
		if err == nil || errors.Is(err, want) {
			return nil // other rules are about success
		}
		found = lockfinding.BrokenInterface("lockimpl.Locker", p, "%s was answered with %q; want an error that is %q", what, err.Error(), want.Error()) // the texts: nobody was refused a lock that is free
		if errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, lockimpl.ErrLost) {
			return found
		}
		if b.Ctx.Err() != nil || time.Since(began) > atOnce || unanswered(err) || errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
	}
	return found
}

// unanswered reports whether an error says that a command had no answer.
func unanswered(err error) bool {
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled, redis.ErrClosed, redis.ErrPoolTimeout} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.As(err, new(net.Error))
}

// RefusedAsHeld are cases in which an acquire of a held lock ends: at once, when its wait is over, or because [variant.Env].Wait returned
// an error. The answer must be ErrHeld.
var RefusedAsHeld = []Case{
	{"a single attempt", func(b Bench) error { return b.refusedAsHeld(lockimpl.Options{}) }},
	{"a wait that is over", func(b Bench) error { return b.refusedAsHeld(lockimpl.Options{Wait: 100 * time.Millisecond}) }},
	{"attempts that are used up", func(b Bench) error { return b.refusedAsHeld(lockimpl.Options{Wait: long, MaxTries: 2}) }},
	{"a wait that is told to stop", func(b Bench) error {
		return b.stopsAsHeld("returned variant.ErrStopped", false, func(*interrupt.Ending) error { return variant.ErrStopped })
	}},
	{"a wait whose context is cancelled", func(b Bench) error {
		return b.stopsAsHeld("returned the error of the context, which was cancelled", false, ends)
	}},
	{"a wait whose deadline passes", func(b Bench) error {
		return b.stopsAsHeld("returned the error of the context, whose deadline passed", true, ends)
	}},
}

// refusedAsHeld makes an acquire with a wait and a limit on the attempts. A lock that knows no such limit would wait for long.
func (b Bench) refusedAsHeld(o lockimpl.Options) error {
	_, c, _, err := b.heldByOne(long)
	if err != nil {
		return err
	}
	o.TTL, o.RetryEvery = b.TTL, lockclient.Pace
	return b.answers(lockimpl.ErrHeld, variant.Progress, fmt.Sprintf("an acquire of a held lock with Options.Wait = %v and Options.MaxTries = %d", o.Wait, o.MaxTries), func() error {
		ctx, cancel := context.WithTimeout(b.Ctx, 2*b.TTL)
		defer cancel()
		_, err := c.Acquire(ctx, b.Name, o)
		return err
	})
}

// ends ends a context, and returns its error.
func ends(ctx *interrupt.Ending) error {
	ctx.End()
	return ctx.Err()
}

// stopsAsHeld has the first pause of a wait end with an error. A client that withdraws its request then sends commands. They may fail when
// the context is over, and leave the outcome open.
func (b Bench) stopsAsHeld(what string, deadline bool, cause func(*interrupt.Ending) error) error {
	holder, _, err := b.holder(long)
	if err != nil {
		return err
	}
	ctx := interrupt.NewEnding(b.Ctx, deadline)
	var c *lockclient.Client
	sent := func() int64 { return int64(c.Sent()) + c.Hooked.Load() }
	var before atomic.Int64
	var paused atomic.Bool
	c, err = b.Client(func(env *variant.Env) {
		env.Wait = func(context.Context, string, time.Duration) error {
			if !paused.Swap(true) {
				before.Store(sent())
			}
			return cause(ctx)
		}
	})
	if err != nil {
		return err
	}
	l, err := c.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace})
	switch {
	case err == nil:
		_ = c.Release(l)
	case !paused.Load() || errors.Is(err, lockimpl.ErrHeld) || holder.Ctx.Err() != nil || b.Ctx.Err() != nil:
	case sent() > before.Load() && (ctx.Err() != nil || unanswered(err)):
	default:
		return lockfinding.BrokenInterface("lockimpl.Locker", variant.Progress, "a client waited for a held lock, and Env.Wait %s: Acquire was answered with %q; want an error that is %q", what, err.Error(), lockimpl.ErrHeld.Error())
	}
	return nil
}
