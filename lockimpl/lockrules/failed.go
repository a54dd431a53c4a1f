package lockrules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/interrupt"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// ServerFails has the server answer the commands of a call with errors that say nothing about the lock.
var ServerFails = func() (cases []Case) {
	for _, r := range interrupt.Refusals {
		for _, c := range calls(func(b Bench) (*failing, error) {
			return intercepted(b, "in which the server answered that "+r.What, func(l *interrupt.Interceptor) { interrupt.Outage{Answer: r.Err, Nth: 1}.On(l) })
		}) {
			c.Name += ", the server answered that " + r.What
			cases = append(cases, c)
		}
	}
	return cases
}()

// ScriptsForgotten has the server forget the scripts that a client has sent.
var ScriptsForgotten = calls(func(b Bench) (*failing, error) {
	return intercepted(b, "on a server that had forgotten its scripts", (*interrupt.Interceptor).ForgetScripts)
})

// intercepted returns a client. Before each of its calls that are to fail, begin sets what happens to the commands.
func intercepted(b Bench, what string, begin func(*interrupt.Interceptor)) (*failing, error) {
	var line *interrupt.Interceptor
	c, err := b.Client(func(env *variant.Env) { *env, line = interrupt.Intercept(*env) })
	if err != nil {
		return nil, err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	return &failing{c, func(call func(context.Context)) bool {
		line.Plan(nil)
		begin(line)
		call(b.Ctx)
		sent := line.Sent()
		line.Plan(nil)
		return sent > 0
	}, what, nil, nil}, nil
}

// ConnectionFails resets or closes the connections of a release, before or after the server executes it. The connections of a
// release that is repeated until it succeeds are reset for a while only.
var ConnectionFails = []Case{
	{"a release that does not arrive", func(b Bench) error { return b.cutOff(wire.Reset, "reset") }},
	{"a release without an answer", func(b Bench) error { return b.cutOff(wire.ResetAfter, "reset") }},
	{"a release that does not arrive on a connection that is closed", func(b Bench) error { return b.cutOff(wire.DropRequest, "closed") }},
	{"a release without an answer on a connection that is closed", func(b Bench) error { return b.cutOff(wire.DropReply, "closed") }},
}

// resetFor is how long connections are reset or closed.
const resetFor = 2 * time.Second

func (b Bench) cutOff(verb wire.Verb, how string) error {
	c, l, err := b.practisedHolder(long)
	if err != nil {
		return err
	}
	end := time.Now().Add(resetFor)
	c.Plan(func(int, wire.Command) wire.Action {
		if time.Now().After(end) {
			return wire.Action{}
		}
		return wire.Action{Verb: verb}
	})
	err = c.Release(l)
	c.Plan(nil)
	if err == nil || errors.Is(err, lockimpl.ErrLost) {
		return nil // the same
	}
	return b.releasedAgain(c, l, fmt.Sprintf("a release whose connection was %s failed", how))
}

// releasedAgain repeats a release that failed. When it is answered with success or ErrLost, the lock can be taken.
func (b Bench) releasedAgain(c *lockclient.Client, l lockimpl.Lock, what string) error {
	for range 3 {
		switch err := c.Release(l); {
		case err == nil:
			return b.free(what + ", and when it was repeated it was answered with success")
		case errors.Is(err, lockimpl.ErrLost):
			return b.free(what + ", and when it was repeated it was answered with ErrLost")
		}
		if !b.pass(lockclient.Pace) {
			break
		}
	}
	return nil
}

// stands tries to take a lock whose holder was answered with ErrLost. Before the end of the lease, a grant breaks mutual
// exclusion, and a refusal shows that the lock is still the holder's.
func (b Bench) stands(f *failing, l lockimpl.Lock, what string) error {
	other, err := b.client()
	if err != nil {
		return err
	}
	m, err := other.Try(b.Name, b.TTL)
	left := time.Until(f.Until(l)).Round(time.Millisecond)
	if err == nil {
		_ = other.Release(m)
	}
	switch {
	case left <= 0:
		return nil
	case err == nil:
		return lockfinding.Broken(variant.MutualExclusion, "%s, and another client got the lock %v before the end of the lease", what, left)
	case errors.Is(err, lockimpl.ErrHeld):
		return lockfinding.Broken(b.FalseLoss, "%s %v before the end of the lease, and others are refused: the lock is still the holder's", what, left)
	}
	return nil
}

// EndsInside ends the context of an acquire of a free lock when the server has executed one of its commands. A client that is
// then told ErrHeld holds nothing.
var EndsInside = func() (cases []Case) {
	for n, name := range []string{"its first command", "its second command", "its third command"} {
		cases = append(cases,
			Case{"cancelled after " + name, func(b Bench) error { return b.endsInside(n+1, false, false) }},
			Case{"a deadline that passes after " + name, func(b Bench) error { return b.endsInside(n+1, true, false) }},
			Case{"cancelled while the answer to " + name + " is under way", func(b Bench) error { return b.endsInside(n+1, false, true) }})
	}
	return append(cases, Case{"cancelled while an answer is held up", Bench.endsOnWire})
}()

// ender is a hook that ends a context after a command. If loses is set, the reply is lost: the client gets the context's
// error.
type ender struct {
	after atomic.Int64 // how many commands are left until then; 0: it does nothing
	end   func()
	loses bool
}

func (e *ender) DialHook(next redis.DialHook) redis.DialHook { return next }

// executed is called after each command with its error, and returns the error that the client gets.
func (e *ender) executed(ctx context.Context, err error) error {
	if e.after.Load() <= 0 || e.after.Add(-1) != 0 {
		return err
	}
	e.end()
	if e.loses && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (e *ender) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := e.executed(ctx, next(ctx, cmd))
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

func (e *ender) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { return e.executed(ctx, next(ctx, cmds)) }
}

func (b Bench) endsInside(n int, deadline, loses bool) error {
	e := &ender{loses: loses}
	c, err := b.Client(func(env *variant.Env) {
		env.Redis = slices.Clone(env.Redis)
		for _, rdb := range env.Redis {
			rdb.AddHook(e)
		}
	})
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	ctx := interrupt.NewEnding(b.Ctx, deadline)
	e.end = ctx.End
	e.after.Store(int64(n))
	l, err := c.Acquire(ctx, b.Name, lockimpl.Options{TTL: long, RetryEvery: lockclient.Pace})
	if e.after.Swap(0) > 0 {
		return nil // it has sent fewer
	}
	return b.endedInside(c, l, err)
}

// endsOnWire is for locks whose Redis client is their own.
func (b Bench) endsOnWire() error {
	const held = 100 * time.Millisecond
	c, err := b.client()
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	ctx, cancel := context.WithCancel(b.Ctx)
	defer cancel()
	c.Plan(func(nth int, _ wire.Command) wire.Action {
		if nth > 1 {
			return wire.Action{}
		}
		time.AfterFunc(held/4, cancel)
		return wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: held}
	})
	l, err := c.Acquire(ctx, b.Name, lockimpl.Options{TTL: long, RetryEvery: lockclient.Pace})
	c.Plan(nil)
	if ctx.Err() == nil {
		return nil
	}
	return b.endedInside(c, l, err)
}

func (b Bench) endedInside(c *lockclient.Client, l lockimpl.Lock, err error) error {
	switch {
	case err == nil:
		return b.kept(&failing{Client: c}, l, "an acquire whose context ended meanwhile was granted a free lock", 0)
	case errors.Is(err, lockimpl.ErrHeld):
		return b.free("an acquire of a free lock, whose context ended when the server had executed a command, was answered with ErrHeld")
	}
	return nil
}

// CancelledWait cancels the wait for a held lock: long before its release, or as it is released.
var CancelledWait = []Case{
	{"long before the release", func(b Bench) error {
		holder, waiter, err := b.two()
		if err != nil {
			return err
		}
		l, err := holder.Take(b.Name, long, 0)
		if err != nil {
			return lockfinding.Broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		got, cancel := b.waits(waiter)
		defer cancel()
		b.pass(20 * time.Millisecond)
		cancel()
		if g, answered, err := b.awaited(got); err != nil || !answered {
			return err
		} else if g.err == nil {
			return lockfinding.Broken(variant.MutualExclusion, "a wait whose context was cancelled was granted a lock that is held")
		}
		if err := holder.Release(l); errors.Is(err, lockimpl.ErrLost) {
			return b.stands(&failing{Client: holder}, l, "after a cancelled wait, the holder's release was answered with ErrLost")
		}
		return b.taken("after a cancelled wait")
	}},
	{"as the lock is released", func(b Bench) error {
		holder, waiter, err := b.two()
		if err != nil {
			return err
		}
		for range 15 {
			l, err := holder.Take(b.Name, long, b.TTL)
			if err != nil {
				return lockfinding.Broken(variant.Progress, "after a cancelled wait nobody could take the lock: %v", err)
			}
			if err := b.cancelsBeside(holder, waiter, l); err != nil {
				return err
			}
		}
		return nil
	}},
}

// taken expects that a new client obtains the lock, within the lease of others.
func (b Bench) taken(after string) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	l, err := c.Take(b.Name, b.TTL, b.TTL)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "%s, nobody could take the lock: %v", after, err)
	}
	_ = c.Release(l)
	return nil
}

// cancelsBeside cancels a wait, and releases the lock at about the same time.
func (b Bench) cancelsBeside(holder, waiter *lockclient.Client, l lockimpl.Lock) error {
	got, cancel := b.waits(waiter)
	defer cancel()
	b.pass(time.Duration(waiter.IntN(3000)) * time.Microsecond)
	time.AfterFunc(time.Duration(waiter.IntN(500))*time.Microsecond, cancel)
	_ = holder.Release(l)
	g, answered, err := b.awaited(got)
	if answered && g.err == nil {
		_ = waiter.Release(g.l)
	}
	return err
}

// waits starts an Acquire that waits for the lock. cancel ends its context, and got receives its answer.
func (b Bench) waits(waiter *lockclient.Client) (got <-chan grant, cancel context.CancelFunc) {
	ctx, cancel := context.WithCancel(b.Ctx)
	answer := make(chan grant, 1)
	go func() {
		m, err := waiter.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: time.Millisecond})
		answer <- grant{waiter, m, err}
	}()
	return answer, cancel
}

// awaited returns the answer to a wait whose context was cancelled. It is an error if there is none after a time in which the
// machine and the servers answer.
func (b Bench) awaited(got <-chan grant) (g grant, answered bool, err error) {
	for start := b.Lasted(); b.Lasted()-start < lockclient.Patience; {
		select {
		case g := <-got:
			return g, true, nil
		case <-time.After(lockclient.Pace):
		case <-b.Ctx.Done():
			return grant{}, false, nil
		}
	}
	return grant{}, false, lockfinding.Broken(variant.Progress, "a wait had not returned %v after its context was cancelled", lockclient.Patience)
}

// AnsweredInLease delays the answers to an acquire of a free lock, for less than the lease. If Acquire returns ErrHeld, the client
// holds nothing, so another client must get the lock before the lease would be over.
var AnsweredInLease = []Case{
	{"after six tenths of the lease", func(b Bench) error { return b.answeredLate(b.TTL * 6 / 10) }},
	{"after seven tenths of the lease", func(b Bench) error { return b.answeredLate(b.TTL * 7 / 10) }},
	{"after eight tenths of the lease", func(b Bench) error { return b.answeredLate(b.TTL * 8 / 10) }},
}

func (b Bench) answeredLate(held time.Duration) error {
	c, other, err := b.two()
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	other.Practise(b.Name, b.TTL, b.Extends)
	c.Plan(func(int, wire.Command) wire.Action {
		return wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: held}
	})
	began := time.Now()
	_, err = c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace})
	c.Plan(nil)
	if !errors.Is(err, lockimpl.ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return nil
	}
	_, err = other.Try(b.Name, b.TTL)
	if left := b.TTL - time.Since(began); errors.Is(err, lockimpl.ErrHeld) && left > 0 {
		return lockfinding.Broken(variant.Linearizable, "the answers to a client were held up for %v, and it was told that a free lock is held, so nobody holds it; %v before the end of the lease another client was refused", held, left.Round(time.Millisecond))
	}
	return nil
}

// UnansweredExtend loses the answer to an extend. Only the server knows whether the lock was extended. If Release is then answered with
// success, with ErrLost before the end of the first lease, or later with ErrLost without a command to the server, others must get the lock
// when the first lease is over.
var UnansweredExtend = []Case{
	{"a release after the end of the first lease", func(b Bench) error { return b.unansweredExtend(1, true) }},
	{"a release at once", func(b Bench) error { return b.unansweredExtend(1, false) }},
	{"a release at once, the answer to the second command", func(b Bench) error { return b.unansweredExtend(2, false) }},
}

// unansweredExtend loses the answer to the n-th command of the extend.
func (b Bench) unansweredExtend(n int, late bool) error {
	if !b.Extends || b.Renews {
		return nil
	}
	c, l, err := b.practisedHolder(b.TTL)
	if err != nil {
		return err
	}
	c.Arm(n, wire.ResetAfter)
	_, err = c.Extend(l, long)
	sent := c.Sent()
	c.Plan(nil)
	if err == nil || errors.Is(err, lockimpl.ErrLost) || sent < n {
		return nil
	}
	what := fmt.Sprintf("an extend to %v had no answer, and the holder's release inside the first lease of %v was answered with ", long, b.TTL)
	if late {
		what = fmt.Sprintf("an extend to %v had no answer, and when the first lease of %v was over, the holder's release was answered without a command to the server with ", long, b.TTL)
		if !b.pass(time.Until(c.Until(l)) + 20*time.Millisecond) {
			return nil
		}
	}
	c.Plan(nil) // so that Sent counts the commands of the release
	switch err = c.Release(l); {
	case err != nil && !errors.Is(err, lockimpl.ErrLost), late && c.Sent() > 0, !late && time.Until(c.Until(l)) <= 0:
		return nil
	}
	return b.free(what + answer(err))
}

// RetriedAcquire loses the answer to a command of an acquire, which tries again after six tenths of the lease. If the first attempt
// took the lock, its lease began then, and Acquire must not promise a later end.
var RetriedAcquire = func() (cases []Case) {
	for n := 1; n <= 3; n++ {
		cases = append(cases, Case{fmt.Sprintf("command %d without an answer", n), func(b Bench) error {
			if b.Renews {
				return nil
			}
			c, err := b.client()
			if err != nil {
				return err
			}
			c.Practise(b.Name, b.TTL, b.Extends)
			c.Arm(n, wire.ResetAfter)
			l, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: 3 * b.TTL, RetryEvery: b.TTL * 6 / 10})
			sent := c.Sent()
			c.Plan(nil)
			if err != nil || sent < n {
				return nil
			}
			return b.kept(&failing{Client: c}, l, fmt.Sprintf("an acquire of which command %d had no answer was granted a free lock at a later attempt", n), 2*b.TTL)
		}})
	}
	return cases
}()

// FailedAndStalled are cases in which the server answers one command of a release or an extend with an error, and the client is held up
// before a later command, with which it may try in another way. Meanwhile its lease ends, and another client is granted the lock.
var FailedAndStalled = func() (cases []Case) {
	for _, act := range []string{"release", "extend"} {
		for failed := 1; failed <= 2; failed++ {
			for stalled := failed + 1; stalled <= failed+3; stalled++ {
				cases = append(cases, Case{fmt.Sprintf("%s, command %d fails, held up before command %d", act, failed, stalled), func(b Bench) error { return b.failedAndStalled(act, failed, stalled) }})
			}
		}
	}
	return cases
}()

func (b Bench) failedAndStalled(act string, failed, stalled int) error {
	if act == "extend" && !b.Extends || b.Renews {
		return nil // the lease of a holder that renews does not end, and its renewals are among the commands
	}
	var line *interrupt.Interceptor
	c, err := b.Client(func(env *variant.Env) { *env, line = interrupt.Intercept(*env) })
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	l, err := b.held(c, b.TTL)
	if err != nil {
		return err
	}
	line.Errors(interrupt.ErrRefused, interrupt.ErrRefused)
	s := line.StalledAfter(b.Ctx, failed, interrupt.Refuse, stalled, func() {
		if act == "release" {
			_ = c.Locker.Release(b.Ctx, l)
		} else {
			_, _ = c.Locker.Extend(b.Ctx, l, b.TTL)
		}
	})
	if s == nil {
		return nil // it has fewer commands
	}
	defer s.GoOn()
	next, other, err := b.two()
	if err != nil {
		return err
	}
	m, err := next.Take(b.Name, long, 2*b.TTL)
	if err != nil {
		return nil // another rule's business
	}
	if _, err := other.Try(b.Name, b.TTL); !errors.Is(err, lockimpl.ErrHeld) {
		return nil // granted twice before the client goes on: another rule's business
	}
	s.GoOn()
	until := next.Until(m)
	if _, err := other.Try(b.Name, b.TTL); err == nil && time.Until(until) > 0 {
		return lockfinding.Broken(variant.OwnerOnlyRelease, "the server answered command %d of a holder's %s with an error, and the client was held up before command %d until its lease was over and another client had the lock: when it went on, a third client got the lock %v before the end of that lease",
			failed, act, stalled, time.Until(until).Round(time.Millisecond))
	}
	return nil
}
