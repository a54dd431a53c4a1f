// Package lockrules holds rules of package locktest about the answers of single calls. Some are about calls that fail:
// no command may write, the context of the call has ended, or a client stops waiting just as the lock is released.
// After an error the outcome of a call is unknown; a grant, success and ErrHeld must be true. Other rules make calls in
// an order that few clients use: a holder acquires the lock again, extends it several times, or uses one of two grants;
// a client waits and dies; a client loses the lock while it renews it; many calls are made in quick succession; calls of a
// client fail, and then it goes on. Others are about the options of an acquire, and about leases with a fraction of a second or a
// millisecond.
package lockrules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/internal/interrupt"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// long is a lease that does not run out within a case.
const long = time.Minute

// soon is how long a client asks at first for a lock that is free.
const soon = 2 * time.Second

// failing is a client whose calls can be made to fail.
type failing struct {
	*lockclient.Client
	// during makes a call that fails. It returns false if it could not.
	during func(call func(context.Context)) bool
	what   string // of such a call
	end    func() // unless nil: of the fault
	// unheard, unless nil, reports after a call that no command after the first that failed was answered.
	unheard func() bool
}

// WritesFail makes every command that writes fail during a call, as on a replica. In a script redis.pcall returns the error.
var WritesFail = calls(func(b Bench) (*failing, error) {
	var writes *interrupt.User
	var unfit error
	c, err := b.Client(func(env *variant.Env) { *env, writes, unfit = interrupt.WithUser(b.Ctx, *env) })
	if err != nil {
		return nil, err
	}
	if unfit != nil {
		b.Log("failing commands within a script were not tested: %v", unfit)
		return nil, nil
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	return &failing{c, func(call func(context.Context)) bool {
		return writes.During(b.Ctx, func() { call(b.Ctx) }) == nil
	}, "while the client had no right to write (ACL)", writes.Close, nil}, nil
})

// OutOfMemory has two clients ask for a lock while the servers refuse to store more (OOM). It changes maxmemory on the
// servers until it returns, so nothing else may use them.
func OutOfMemory(b Bench) error {
	var clients []*lockclient.Client
	for range 2 {
		c, err := b.client()
		if err != nil {
			return err
		}
		clients = append(clients, c)
	}
	for _, rdb := range clients[0].Env.Redis {
		before, err := rdb.ConfigGet(b.Ctx, "maxmemory").Result()
		if err != nil || rdb.ConfigSet(b.Ctx, "maxmemory", "1").Err() != nil {
			return nil // the emulation has no such limit
		}
		defer rdb.ConfigSet(context.WithoutCancel(b.Ctx), "maxmemory", before["maxmemory"])
	}
	for _, c := range clients {
		if _, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: long, RetryEvery: lockclient.Pace}); err != nil {
			return nil
		}
	}
	return lockfinding.Broken(variant.MutualExclusion, "two clients were granted the lock while the server refused to write (OOM)")
}

// ContextOver makes calls with a context that is over.
var ContextOver = append(calls(func(b Bench) (*failing, error) {
	return over(b, "with a context that was cancelled", func() (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(b.Ctx)
		cancel()
		return ctx, cancel
	})
}), calls(func(b Bench) (*failing, error) {
	return over(b, "with a context whose deadline had passed", func() (context.Context, context.CancelFunc) {
		return context.WithDeadline(b.Ctx, time.Now().Add(-time.Second))
	})
})...)

func over(b Bench, what string, ended func() (context.Context, context.CancelFunc)) (*failing, error) {
	c, err := b.client()
	if err != nil {
		return nil, err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	return &failing{c, func(call func(context.Context)) bool {
		ctx, cancel := ended()
		defer cancel()
		call(ctx)
		return true
	}, what, nil, nil}, nil
}

// calls returns the cases of each call of a client. A nil client says that they cannot be tried.
func calls(open func(Bench) (*failing, error)) []Case {
	var cases []Case
	for _, c := range []struct {
		name string
		try  func(Bench, *failing) error
	}{{"acquire", acquire}, {"extend", extend}, {"release", release}} {
		cases = append(cases, Case{c.name, func(b Bench) error {
			f, err := open(b)
			if err != nil || f == nil {
				return err
			}
			if f.end != nil {
				defer f.end()
			}
			return c.try(b, f)
		}})
	}
	return cases
}

// acquire expects that a lock which was granted is held, and that a client that was refused holds nothing. No other client has the lock, so
// a refusal after an answer may be due to the client's own first attempt.
func acquire(b Bench, f *failing) (err error) {
	var l lockimpl.Lock
	if !f.during(func(ctx context.Context) {
		l, err = f.Acquire(ctx, b.Name, lockimpl.Options{TTL: long, RetryEvery: lockclient.Pace})
	}) {
		return nil
	}
	if errors.Is(err, lockimpl.ErrHeld) && f.unheard != nil && f.unheard() {
		return b.free(fmt.Sprintf("an acquire of a free lock %s was answered %q", f.what, err))
	}
	if err != nil {
		return nil
	}
	return b.kept(f, l, "a free lock was granted "+f.what, 0)
}

// extend expects that a lease which was extended lasts.
func extend(b Bench, f *failing) error {
	if !b.Extends || b.Renews {
		return nil
	}
	l, err := b.held(f.Client, b.TTL)
	if err != nil {
		return err
	}
	m := l
	if !f.during(func(ctx context.Context) { m, err = f.Locker.Extend(ctx, l, 3*b.TTL) }) {
		return nil
	}
	if errors.Is(err, lockimpl.ErrLost) {
		return b.stands(f, l, fmt.Sprintf("an extend %s was answered with ErrLost", f.what))
	}
	if l = m; err != nil {
		return nil
	}
	if l.Until.IsZero() {
		l.Until = time.Now().Add(2 * b.TTL) // no later than the end of the lease if the call took less than a TTL
	}
	return b.kept(f, l, "an extend was answered with success "+f.what, 3*b.TTL)
}

// kept expects that nobody else gets the lock before the end of its lease, in one attempt or within a time.
func (b Bench) kept(f *failing, l lockimpl.Lock, what string, within time.Duration) error {
	other, err := b.client()
	if err != nil {
		return err
	}
	var m lockimpl.Lock
	if within == 0 {
		m, err = other.Try(b.Name, b.TTL)
	} else {
		m, err = other.Take(b.Name, b.TTL, within)
	}
	if left := time.Until(f.Until(l)); err == nil && left > 0 {
		return lockfinding.Broken(variant.MutualExclusion, "%s, and another client got the lock %v before the end of the lease", what, left.Round(time.Millisecond))
	}
	if err == nil {
		_ = other.Release(m)
	}
	return nil
}

// release expects that a lock which was released, or is not the caller's any more, can be taken.
func release(b Bench, f *failing) error {
	l, err := b.held(f.Client, long)
	if err != nil {
		return err
	}
	if !f.during(func(ctx context.Context) { err = f.Locker.Release(ctx, l) }) {
		return nil
	}
	if err != nil && !errors.Is(err, lockimpl.ErrLost) {
		return b.releasedAgain(f.Client, l, fmt.Sprintf("a release %s failed", f.what))
	}
	said := "success"
	if err != nil {
		said = fmt.Sprintf("%q", err)
	}
	return b.free(fmt.Sprintf("a release %s was answered with %s", f.what, said))
}

// free expects that a lock can be taken. A client that is refused at first asks for longer, and for a longer lease: on a busy
// machine, its own attempts without an answer may have left the lock held, and libraries give each a small part of the lease.
func (b Bench) free(what string) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	l, err := c.TakeWithin(b.Name, b.TTL, soon)
	if err != nil {
		l, err = c.TakeWithin(b.Name, 4*b.TTL, b.Patience)
	}
	if err != nil {
		return lockfinding.Broken(variant.Progress, "%s, and others are still refused: %v", what, err)
	}
	_ = c.Release(l)
	return nil
}

// GivesUp stops a waiting client before one of the commands that it sends when its wait is over, until the holder has
// released the lock. A lock with a wait line may then have granted the lock to that client. If Acquire returns ErrHeld,
// the client must not hold the lock.
var GivesUp = func() (cases []Case) {
	const waited = 300 * time.Millisecond
	for n := 1; n <= 4; n++ {
		for _, wait := range []time.Duration{0, waited} {
			cases = append(cases, Case{fmt.Sprintf("command %d of a client that has waited %v", n, wait), func(b Bench) error { return b.givesUp(wait, after(n)) }})
		}
		cases = append(cases, Case{fmt.Sprintf("new command %d of a client that has waited %v", n, waited), func(b Bench) error { return b.givesUp(waited, newAfter(n)) }})
	}
	return cases
}()

// givesUp holds the client up before the command for which stands is true. stands is called with each command, and whether the
// client's wait is over.
func (b Bench) givesUp(wait time.Duration, stands func(cmd wire.Command, over bool) bool) error {
	holder, waiter, err := b.two()
	if err != nil {
		return err
	}
	waiter.Practise(b.Name, b.TTL, b.Extends)
	l, err := b.held(holder, long)
	if err != nil {
		return err
	}
	start := time.Now() // before the client's own: its wait is not over sooner, however late its first command is
	s := waiter.StalledWhen(func(cmd wire.Command) bool { return stands(cmd, time.Since(start) >= wait) }, func() {
		_, err = waiter.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: long, Wait: wait, RetryEvery: lockclient.Pace})
	})
	released := holder.Release(l)
	if s == nil {
		return nil // it has sent fewer
	}
	s.GoOn()
	if released != nil || !errors.Is(err, lockimpl.ErrHeld) {
		return nil
	}
	return b.free(fmt.Sprintf("a client that gave up waiting was answered %q, and the holder had released the lock before the client's last commands", err))
}

// after is true for the n-th command that a client sends after its wait.
func after(n int) func(wire.Command, bool) bool {
	late := 0
	return func(_ wire.Command, over bool) bool {
		if over {
			late++
		}
		return over && late == n
	}
}

// newAfter is after for commands that differ from those before in their name or first argument, such as a script. How many
// others come before them depends on the time.
func newAfter(n int) func(wire.Command, bool) bool {
	sent, found := map[string]bool{}, 0
	return func(cmd wire.Command, over bool) bool {
		kind := fmt.Sprintf("%q", cmd.Args[:min(2, len(cmd.Args))])
		if over && !sent[kind] {
			found++
			return found == n
		}
		sent[kind] = true
		return false
	}
}
