package lockrules

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// notAsked says that a lock does not do what the options of an acquire say.
func notAsked(format string, args ...any) error {
	return lockfinding.BrokenInterface("lockimpl.Options", variant.Progress, format, args...)
}

// Waits are cases about [lockimpl.Options].Wait, for a held lock. Without a wait, Acquire makes one attempt. With a wait that is shorter than
// RetryEvery, Acquire returns when the wait is over, and not after the pause.
var Waits = []Case{
	{"no wait", func(b Bench) error { return b.eachTime(3, Bench.waitsNot) }},
	{"a wait that is shorter than the pause", func(b Bench) error { return b.eachTime(2, Bench.overstays) }},
}

// waitsNot makes single attempts.
func (b Bench) waitsNot() error {
	const attempts, most = 5, 200 * time.Millisecond
	holder, _, err := b.holder(long)
	if err != nil {
		return err
	}
	var pauses atomic.Int64
	c, err := b.Client(func(env *variant.Env) {
		wait := env.Wait
		env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
			pauses.Add(1)
			return wait(ctx, key, atMost)
		}
	})
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	quickest := time.Hour
	for range attempts {
		pauses.Store(0)
		start := b.Lasted()
		_, err := c.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, RetryEvery: lockclient.Pace})
		took := b.Lasted() - start
		if !errors.Is(err, lockimpl.ErrHeld) || holder.Ctx.Err() != nil {
			return nil // another rule's business
		}
		if pauses.Load() > 0 {
			return notAsked("an acquire of a held lock with Options.Wait = 0 called Env.Wait, which pauses before another attempt: want one attempt")
		}
		quickest = min(quickest, took)
	}
	if quickest > most {
		return notAsked("each of %d acquires of a held lock with Options.Wait = 0 took %v or more, while the server answered in time: want one attempt", attempts, quickest.Round(time.Millisecond))
	}
	return nil
}

// overstays waits for a moment, with a long pause between attempts. Some locks wait for whole seconds.
func (b Bench) overstays() error {
	const wait, pause, most = 100 * time.Millisecond, 5 * time.Second, 1700 * time.Millisecond
	_, c, _, err := b.heldByOne(long)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(b.Ctx, pause+wait)
	defer cancel()
	start := b.Lasted()
	_, err = c.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: wait, RetryEvery: pause})
	if took := b.Lasted() - start; err != nil && b.Ctx.Err() == nil && took > most {
		return notAsked("an acquire of a held lock with Options.Wait = %v and Options.RetryEvery = %v returned after %v: want a last pause that ends with the wait", wait, pause, took.Round(time.Millisecond))
	}
	return nil
}

// MostTries are cases about [lockimpl.Options].MaxTries, for a held lock: no attempt follows the last one. An attempt is known by its first
// command, which is like that of the attempt after the first pause. Only pauses by [variant.Env].Wait are known.
var MostTries = []Case{
	{"one attempt", func(b Bench) error { return b.mostTries(1) }},
	{"two attempts", func(b Bench) error { return b.mostTries(2) }},
	{"five attempts", func(b Bench) error { return b.mostTries(5) }},
}

func (b Bench) mostTries(tries int) error {
	holder, _, err := b.holder(long)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	firsts := []string{""} // the first command after each pause
	c, err := b.Client(func(env *variant.Env) {
		wait := env.Wait
		env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
			mu.Lock()
			firsts = append(firsts, "")
			mu.Unlock()
			return wait(ctx, key, atMost)
		}
	})
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	_, _ = c.Try(b.Name, b.TTL) // so that a refusal sends nothing for the first time
	mu.Lock()
	firsts = []string{""}
	mu.Unlock()
	c.Plan(func(_ int, cmd wire.Command) wire.Action {
		mu.Lock()
		defer mu.Unlock()
		if last := &firsts[len(firsts)-1]; *last == "" {
			*last = fmt.Sprintf("%q", cmd.Args[:min(2, len(cmd.Args))])
		}
		return wire.Action{}
	})
	ctx, cancel := context.WithTimeout(b.Ctx, 2*b.TTL)
	defer cancel()
	_, err = c.Acquire(ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: 4 * lockclient.Pace, MaxTries: tries})
	c.Plan(nil)
	mu.Lock()
	defer mu.Unlock()
	known := min(1, tries-1) // an attempt for sure
	if err == nil || b.Ctx.Err() != nil || holder.Ctx.Err() != nil || len(firsts) < 2 || firsts[known] == "" {
		return nil
	}
	attempts := 1
	for _, first := range firsts[1:] {
		if first == firsts[known] {
			attempts++
		}
	}
	if attempts > tries {
		return notAsked("an acquire of a held lock with Options.MaxTries = %d made %d attempts", tries, attempts)
	}
	return nil
}
