package lockrules

import (
	"context"
	"errors"
	"fmt"
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

// Recovers are cases in which calls of a client fail, or end early. When the leases that it may have been granted meanwhile are
// over, it is granted the free lock like any other client, and refused a held one: nothing that it remembers of those calls keeps
// it out, or lets it in.
var Recovers = func() (cases []Case) {
	for _, t := range troubles {
		for _, of := range []string{"acquire", "extend", "release"} {
			if t.first && of != "acquire" {
				continue
			}
			cases = append(cases, Case{fmt.Sprintf("%s, %s", of, t.what), func(b Bench) error { return b.recovers(of, t) }})
		}
	}
	for _, waits := range []int{1, 10} {
		cases = append(cases, Case{fmt.Sprintf("cancelled waits: %d", waits), func(b Bench) error { return b.waitedBefore(waits) }})
	}
	return cases
}()

// trouble makes calls of a client fail or end early, in the client as an [interrupt.Trouble] does, or on the connection.
type trouble struct {
	what  string
	first bool // as interrupt.Trouble.First
	makes func(b Bench, c *lockclient.Client, line *interrupt.Interceptor, call func(context.Context)) (met bool)
}

// troubles are those of package interrupt, and two that also reach code with a Redis client of its own.
var troubles = func() (all []trouble) {
	for _, t := range interrupt.Troubles {
		all = append(all, trouble{t.What, t.First, func(b Bench, c *lockclient.Client, line *interrupt.Interceptor, call func(context.Context)) bool {
			return t.Makes(b.Ctx, line, c.IntN, call)
		}})
	}
	for _, first := range []bool{false, true} {
		n, which := interrupt.Calls(first)
		all = append(all,
			trouble{which + ", whose connection is reset", first, func(b Bench, c *lockclient.Client, _ *interrupt.Interceptor, call func(context.Context)) bool {
				var met atomic.Bool // c.Sent does not count the commands of a transaction before EXEC
				c.Plan(func(int, wire.Command) wire.Action { met.Store(true); return wire.Action{Verb: wire.Reset} })
				for range n {
					call(b.Ctx)
				}
				return met.Load()
			}},
			trouble{which + ", whose context ends before the answer", first, endsBeforeAnswers})
	}
	return all
}()

// endsBeforeAnswers ends the context of a call while its first answer is held up, and lets the answer arrive.
func endsBeforeAnswers(b Bench, c *lockclient.Client, _ *interrupt.Interceptor, call func(context.Context)) (met bool) {
	const held = 100 * time.Millisecond
	for range 2 {
		ctx, cancel := context.WithCancel(b.Ctx)
		c.Plan(func(nth int, _ wire.Command) wire.Action {
			if nth > 1 {
				return wire.Action{}
			}
			time.AfterFunc(held/4, cancel)
			return wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: held}
		})
		call(ctx)
		met = met || c.Sent() > 0
		cancel()
	}
	b.pass(held)
	return met
}

func (b Bench) recovers(of string, t trouble) error {
	if of == "extend" && !b.Extends {
		return nil
	}
	var line *interrupt.Interceptor
	c, err := b.Client(func(env *variant.Env) { *env, line = interrupt.Intercept(*env) })
	if err != nil {
		return err
	}
	if !t.first {
		c.Practise(b.Name, b.TTL, b.Extends)
	}
	var l lockimpl.Lock
	if of != "acquire" {
		if l, err = c.Take(b.Name, b.TTL, 0); err != nil {
			return nil // another rule's business
		}
	}
	call := map[string]func(context.Context){
		"acquire": func(ctx context.Context) {
			if m, err := c.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace}); err == nil {
				_ = c.Locker.Release(ctx, m)
			}
		},
		"extend":  func(ctx context.Context) { _, _ = c.Locker.Extend(ctx, l, b.TTL) },
		"release": func(ctx context.Context) { _ = c.Locker.Release(ctx, l) },
	}[of]
	met := t.makes(b, c, line, call)
	line.Plan(nil)
	c.Plan(nil)
	if !met {
		b.Log("calls of %s, %s, were not tried: the client sends no command that the suite can act upon", of, t.what)
		return nil
	}
	return b.asGoodAsNew(c, fmt.Sprintf("a client made calls of %s, %s", of, t.what))
}

// waitedBefore cancels waits of a client.
func (b Bench) waitedBefore(waits int) error {
	holder, waiter, l, err := b.heldByOne(long)
	if err != nil {
		return err
	}
	start := time.Now()
	_, _ = waiter.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace})
	attempt := time.Since(start) // a context should end between attempts, too
	for range waits {
		ctx, cancel := context.WithTimeout(b.Ctx, 2*attempt+time.Duration(waiter.IntN(30))*time.Millisecond)
		m, err := waiter.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace})
		cancel()
		if err == nil {
			_ = waiter.Release(m)
		}
	}
	if holder.Release(l) != nil {
		return nil // another rule's business
	}
	return b.asGoodAsNew(waiter, "a client's waits for a held lock were cancelled, and the holder released it")
}

// asGoodAsNew expects that a client is refused a lock that another client holds, and granted it when it was released.
func (b Bench) asGoodAsNew(c *lockclient.Client, what string) error {
	other, err := b.client()
	if err != nil {
		return err
	}
	l, err := other.TakeWithin(b.Name, 2*b.TTL, 2*b.TTL+b.Patience)
	if err != nil {
		return nil // other rules are about that
	}
	for range 3 { // an answer that was late must not be taken for that to a later command
		if _, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace}); err == nil && time.Until(other.Until(l)) > 0 {
			return lockfinding.Broken(variant.MutualExclusion, "%s; then another client was granted the lock, and the first client, too", what)
		}
	}
	_ = other.Release(l)
	m, err := c.TakeWithin(b.Name, b.TTL, b.TTL+b.Patience)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "%s; then another client was granted the lock and released it, but the first client is still refused: %v", what, err)
	}
	_ = c.Release(m)
	return nil
}

// Libraries returns the names of the libraries of functions (Redis 7) that the masters have. The emulation and older servers
// have none.
func (b Bench) Libraries() map[string]bool {
	names := map[string]bool{}
	c, err := b.client()
	if err != nil {
		return names
	}
	for _, rdb := range c.Env.Redis {
		all, _ := rdb.FunctionList(b.Ctx, redis.FunctionListQuery{}).Result()
		for _, l := range all {
			names[l.Name] = true
		}
	}
	return names
}

// Forgotten has the servers forget all scripts, as in a restart, when a client has used those of its lock. It also deletes
// all libraries of functions but the ones that were there before the lock was used. Nothing else may run scripts meanwhile.
func Forgotten(b Bench, before map[string]bool) error {
	c, err := b.practised()
	if err != nil {
		return err
	}
	forget := func() {
		for _, rdb := range c.Env.Redis {
			_ = rdb.ScriptFlush(b.Ctx).Err()
		}
		for name := range b.Libraries() {
			if before[name] {
				continue // somebody else's
			}
			for _, rdb := range c.Env.Redis {
				_ = rdb.FunctionDelete(b.Ctx, name).Err()
			}
		}
	}
	const what = "the servers forgot their scripts and functions, as in a restart, which a client had used"
	l, err := c.Take(b.Name+"-kept", long, 0)
	if err != nil {
		return nil // another rule's business
	}
	forget()
	for range interrupt.InARow {
		if err = c.Release(l); err == nil || errors.Is(err, lockimpl.ErrLost) {
			break
		}
	}
	if err != nil && !errors.Is(err, lockimpl.ErrLost) {
		return lockfinding.Broken(variant.Progress, "%s: its release of a lock failed %d times; the last answer was: %v", what, interrupt.InARow, err)
	}
	forget()
	if _, err := c.TakeWithin(b.Name, b.TTL, b.Patience); err != nil {
		return lockfinding.Broken(variant.Progress, "%s: it is refused a free lock: %v", what, err)
	}
	return nil
}
