package lockrules

import (
	"context"
	"fmt"
	"sync"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// ReapedTwice are cases about a line whose first client dies. Two others find that out, and both are held up before a command that they
// send for the first time, with which they may remove it. Both go on, and the holder releases the lock: those in line must be served in
// their order.
var ReapedTwice = []Case{{"the first of the line is found dead by two", func(b Bench) error {
	const tries = 3 // a waiter that a busy machine holds up for long may lose its place
	return b.eachTime(tries, Bench.reapedTwice)
}}}

// inLine is a client that waits in line.
type inLine struct {
	*lockclient.Client
	joined  chan struct{} // closed when it waits
	stalled chan struct{} // closed when it is held up
}

// joins makes a client that waits for the lock, until it is in line or two seconds have passed. Once dead is closed, the first command of a
// kind that it has not sent before is held up until goOn is closed.
func (b Bench) joins(dead, goOn <-chan struct{}) (*inLine, error) {
	w := &inLine{joined: make(chan struct{}), stalled: make(chan struct{})}
	var joins, stalls sync.Once
	c, err := b.Client(func(env *variant.Env) {
		wait := env.Wait
		env.Wait = func(ctx context.Context, key string, atMost time.Duration) error {
			joins.Do(func() { close(w.joined) }) // its first attempt has put it in line
			return wait(ctx, key, atMost)
		}
	})
	if err != nil {
		return nil, err
	}
	w.Client = c
	if dead == nil {
		return w, nil
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	var mu sync.Mutex
	sent := map[string]bool{}
	c.Plan(func(_ int, cmd wire.Command) wire.Action {
		kind := fmt.Sprintf("%q", cmd.Args[:min(2, len(cmd.Args))])
		mu.Lock()
		known := sent[kind]
		sent[kind] = true
		mu.Unlock()
		select {
		case <-dead:
		default:
			return wire.Action{}
		}
		if !known {
			stalls.Do(func() {
				close(w.stalled)
				select {
				case <-goOn:
				case <-b.Ctx.Done():
				}
			})
		}
		return wire.Action{}
	})
	return w, nil
}

// awaits waits for an event, for at most a time.
func (b Bench) awaits(event <-chan struct{}, atMost time.Duration) bool {
	select {
	case <-event:
		return true
	case <-time.After(atMost):
	case <-b.Ctx.Done():
	}
	return false
}

func (b Bench) reapedTwice() error {
	const patient, together = 4 * time.Second, 150 * time.Millisecond
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	first, err := b.joins(nil, nil)
	if err != nil {
		return err
	}
	go func() {
		_, _ = first.Acquire(first.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: long, RetryEvery: lockclient.Pace})
	}()
	if !b.awaits(first.joined, 2*time.Second) {
		return nil // it waits by its own means
	}
	dead, goOn := make(chan struct{}), make(chan struct{})
	var others []*inLine
	served := make(chan int, 3)
	for i := range cap(served) {
		w, err := b.joins(dead, goOn)
		if err != nil {
			return err
		}
		others = append(others, w)
		go func() {
			m, err := w.TakeEvery(b.Name, b.TTL, lockclient.Pace, b.Patience)
			if err != nil {
				i = -1 // another rule's business
			}
			served <- i
			if err == nil {
				_ = w.Release(m)
			}
		}()
		if !b.awaits(w.joined, 2*time.Second) {
			return nil
		}
	}
	first.Die()
	close(dead)
	found := b.awaits(others[0].stalled, patient) && b.awaits(others[1].stalled, together)
	close(goOn)
	if !b.pass(together) || !found || holder.Release(l) != nil {
		return nil
	}
	for want := range others {
		switch got := <-served; {
		case got < 0:
			return nil
		case got != want:
			return lockfinding.Broken(variant.FIFO, "the first client of the line died, which two others found out; both were held up before a command that they had not sent before, and went on: when the holder released the lock, client %d of the others was served as number %d", got+1, want+1)
		}
	}
	return nil
}
