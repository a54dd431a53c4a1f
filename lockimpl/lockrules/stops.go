package lockrules

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/internal/interrupt"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/variant"
	"oversell/wire"
)

// StopsAsReleased are cases in which a client stops waiting because its context ends, or because [variant.Env].Wait says so, and the holder
// releases the lock just before its last commands. A client that is then told ErrHeld holds nothing, also if it has made a last attempt.
var StopsAsReleased = func() (cases []Case) {
	for _, s := range []struct {
		name     string
		deadline bool
		cause    func(*interrupt.Ending) error
	}{
		{"cancelled in a pause", false, ends},
		{"a deadline that passes in a pause", true, ends},
		{"told to stop in a pause", false, func(*interrupt.Ending) error { return variant.ErrStopped }},
	} {
		cases = append(cases, Case{s.name, func(b Bench) error { return b.stopsInPause(s.deadline, s.cause) }})
	}
	for n := 1; n <= 3; n++ {
		cases = append(cases, Case{fmt.Sprintf("cancelled, before command %d after that", n), func(b Bench) error { return b.stopsAt(after(n)) }})
	}
	for n := 2; n <= 5; n++ {
		cases = append(cases, Case{fmt.Sprintf("cancelled, while command %d is held up", n), func(b Bench) error { return b.stopsAt(nth(n)) }})
	}
	return cases
}()

// nth is true for the n-th command.
func nth(n int) func(wire.Command, bool) bool {
	sent := 0
	return func(wire.Command, bool) bool { sent++; return sent == n }
}

// stopsInPause has the pauses of a waiting client end with an error, when the holder has released the lock.
func (b Bench) stopsInPause(deadline bool, cause func(*interrupt.Ending) error) error {
	holder, l, err := b.holder(long)
	if err != nil {
		return err
	}
	ctx := interrupt.NewEnding(b.Ctx, deadline)
	paused, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c, err := b.Client(func(env *variant.Env) {
		env.Wait = func(context.Context, string, time.Duration) error {
			once.Do(func() { close(paused) })
			select {
			case <-goOn:
			case <-b.Ctx.Done():
			}
			return cause(ctx)
		}
	})
	if err != nil {
		return err
	}
	got := make(chan grant, 1)
	go func() {
		m, err := c.Acquire(ctx, b.Name, lockimpl.Options{TTL: long, Wait: long, RetryEvery: lockclient.Pace})
		got <- grant{c, m, err}
	}()
	if !b.awaits(paused, 2*time.Second) {
		ctx.End()
		close(goOn)
		return nil // it waits by its own means
	}
	released := holder.Release(l)
	close(goOn)
	g, answered, err := b.awaited(got)
	if !answered || released != nil {
		return err
	}
	return b.holdsNothing(g, "a client stopped waiting in a pause, in which the holder had released the lock,")
}

// stopsAt cancels a wait, holds the client up before a command for which stands is true, and lets it go on when the holder has released the
// lock and the context is over. stands is called with each command, and whether the context is over.
func (b Bench) stopsAt(stands func(cmd wire.Command, over bool) bool) error {
	holder, c, l, err := b.heldByOne(long)
	if err != nil {
		return err
	}
	c.Practise(b.Name, b.TTL, b.Extends)
	ctx := interrupt.NewEnding(b.Ctx, false)
	ends := time.AfterFunc(20*lockclient.Pace, ctx.End)
	defer ends.Stop()
	g := grant{c: c}
	s := c.StalledWhen(func(cmd wire.Command) bool { return stands(cmd, ctx.Err() != nil) }, func() {
		g.l, g.err = c.Acquire(ctx, b.Name, lockimpl.Options{TTL: long, Wait: long, RetryEvery: lockclient.Pace})
	})
	if s == nil {
		return nil // it has sent fewer
	}
	released := holder.Release(l)
	ctx.End()
	s.GoOn()
	if released != nil || b.Ctx.Err() != nil {
		return nil
	}
	return b.holdsNothing(g, "a client whose wait was cancelled sent a command when the holder had released the lock, and")
}

// holdsNothing expects that a client that was told ErrHeld does not hold the lock, which nobody else holds.
func (b Bench) holdsNothing(g grant, what string) error {
	switch {
	case g.err == nil:
		_ = g.c.Release(g.l)
	case errors.Is(g.err, lockimpl.ErrHeld):
		return b.free(fmt.Sprintf("%s was answered %q", what, g.err))
	}
	return nil
}
