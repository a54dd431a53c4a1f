package lockrules

import (
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// UnheardRelease are cases in which the answer to a command of a release is lost. Another client is granted the lock, and the first one
// asks for it: it must be refused, whatever it remembers of its own grant.
var UnheardRelease = []Case{
	{"to the first command", func(b Bench) error { return b.unheardRelease(1) }},
	{"to the second command", func(b Bench) error { return b.unheardRelease(2) }},
}

func (b Bench) unheardRelease(n int) error {
	c, other, err := b.two()
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	l, err := b.held(c, long)
	if err != nil {
		return err
	}
	c.Arm(n, wire.DropReply)
	err = c.Release(l)
	c.Plan(nil)
	if err == nil || errors.Is(err, lockimpl.ErrLost) {
		return nil // it was answered
	}
	m, refused := other.TakeWithin(b.Name, long, soon)
	if refused != nil {
		return nil // the release may not have been carried out
	}
	_, err = c.Try(b.Name, b.TTL)
	if left := time.Until(other.Until(m)); err == nil && left > 0 {
		return lockfinding.Broken(variant.MutualExclusion, "a release had no answer (%s); another client was granted the lock, and then the first one was granted it again, %v before the end of the other's lease", wire.DropReply, left.Round(time.Millisecond))
	}
	_ = other.Release(m)
	return nil
}

// ComesBack are cases about a line in which a client's wait ends. Another client joins the line, and then the first one comes back: it has
// arrived later.
var ComesBack = []Case{{"after another has joined", func(b Bench) error {
	const tries = 3 // a waiter that a busy machine holds up for long may lose its place
	return b.eachTime(tries, Bench.comesBack)
}}}

func (b Bench) comesBack() error {
	const apart = 150 * time.Millisecond
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	first, err := b.joins(nil, nil)
	if err != nil {
		return err
	}
	second, err := b.joins(nil, nil)
	if err != nil {
		return err
	}
	_, err = first.Acquire(b.Ctx, b.Name, lockimpl.Options{TTL: b.TTL, Wait: apart, RetryEvery: b.TTL / 20})
	if !errors.Is(err, lockimpl.ErrHeld) || !b.awaits(first.joined, apart) {
		return nil // it waits by its own means
	}
	served := make(chan string, 2)
	waits := func(w *inLine, name string) {
		m, err := w.TakeEvery(b.Name, b.TTL, b.TTL/20, b.Patience)
		if err != nil {
			name = "" // another rule's business
		}
		served <- name
		if err == nil {
			_ = w.Release(m)
		}
	}
	go waits(second, "second")
	if !b.awaits(second.joined, 2*time.Second) {
		return nil
	}
	go waits(first, "first")
	if !b.pass(apart) || holder.Release(l) != nil {
		return nil
	}
	if got := <-served; got == "first" {
		return lockfinding.Broken(variant.FIFO, "a client gave up waiting and was answered %q; another client joined the line, and then the first came back: when the holder released the lock, the client that had come back was served before the other", lockimpl.ErrHeld)
	}
	return nil
}
