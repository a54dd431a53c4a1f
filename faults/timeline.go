package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// breaking and healing bound the time of an injection and of the recovery.
	breaking = 20 * time.Second
	healing  = 30 * time.Second
	// opportunity is how long a run is kept going for a fault of a client or of the wire that has a time, so that it
	// finds a chance to fire.
	opportunity = 2 * time.Second
)

// follow fires at the times of the schedule. It calls broke when the fault has fired, and first
// when it has been healed as well, or when neither will happen.
func (in *Injector) follow(s *armed, broke, first func()) {
	defer first()
	defer broke()
	w := s.fault.When
	for n, tried := 0, int64(0); w.Times == 0 || tried < w.Times; n++ {
		at, more := w.schedule(n)
		if !more || !in.sleep(at-in.now()) {
			return
		}
		in.breakAndHeal(s, broke, first)
		tried++ // dates that were missed do not count towards Times
		for {   // times during this injection are skipped
			next, more := w.schedule(n + 1)
			if !more || next >= in.now() {
				break
			}
			n++
		}
		if w.Times == 0 && w.Every > 0 {
			first()
		}
	}
}

// breakAndHeal is one injection at a server, or at all connections.
func (in *Injector) breakAndHeal(s *armed, broke, first func()) {
	in.inForce.Add(1)
	defer func() {
		in.calm.Store(int64(in.now() + afterShock))
		in.inForce.Add(-1)
	}()
	from, state := in.now(), in.crowd()
	var vain atomic.Pointer[string]
	var over atomic.Pointer[time.Time]
	site := Site{
		Target: in.o.Target, Key: in.o.Key, Await: in.holds.await, Chosen: s.fault.Where.Node,
		Brought: s.brought, Vain: func(why string) { vain.Store(&why) },
		Over: func(at time.Time) { over.Store(&at) },
	}
	at, heal, err := in.inject(s, site)
	broke()
	until := in.now()
	if why := vain.Load(); why != nil && heal == nil && err == nil {
		s.vain(*why)
		return
	}
	if err != nil {
		if !errors.Is(err, errEnded) || !s.acted() {
			s.fail(err)
		}
	} else {
		if late := in.crowd(); late == Holding {
			state = late
		}
		if s.fault.When.ForGood {
			first() // the run waits only for this, and only this excuses errors
			in.calm.Store(int64(in.now() + afterShock))
			in.inForce.Add(-1)
			defer in.inForce.Add(1)
		}
		in.sleep(s.fault.lasts())
		if s.fault.When.ForGood && s.fault.Kind.HealLast {
			<-in.done
		}
	}
	if heal != nil {
		ctx, cancel := context.WithTimeout(in.alive, healing)
		defer cancel()
		if err := heal(ctx); err != nil {
			s.fail(fmt.Errorf("it was not healed: %w", err))
		}
	}
	if why := vain.Load(); why != nil && err == nil {
		s.vain(*why)
		return
	}
	if err != nil && heal != nil {
		s.inPart()
		in.tell(Injection{Fault: s.fault, At: at, From: from, To: in.now(), Until: in.now()})
	}
	if err == nil {
		h := hit{at: at, state: state, from: from, to: in.now(), until: until}
		if end := over.Load(); end != nil {
			h.to = max(from, in.at(*end))
		}
		if !s.fault.When.ForGood {
			h.until = h.to
		}
		in.injected(s, h)
	}
}

// inject injects the fault. It ends early when the run is stopped.
func (in *Injector) inject(s *armed, site Site) (at string, heal func(context.Context) error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), breaking)
	defer cancel()
	go func() {
		select {
		case <-in.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	if s.fault.Kind.Cuts {
		return in.cut(s.fault, site)
	}
	if site.Chosen == 0 {
		if site.Chosen, err = serverOfKey(ctx, in.o.Target, cmp.Or(in.o.Key, in.o.Near)); err != nil {
			return "", nil, whyStopped(ctx, err, "before it could fire")
		}
	}
	heal, err = s.fault.Kind.Inject(ctx, s.fault, site)
	if heal != nil {
		err = whyStopped(ctx, err, "while it took effect")
	} else {
		err = whyStopped(ctx, err, "before it could fire")
	}
	return fmt.Sprintf("node %d", site.Chosen), heal, err
}

// errEnded means that the end of the run stopped an injection. It counts as a failure only if the fault has not fired
// before, because a later date of the fault may fall on the end of the load.
var errEnded = errors.New("the run ended")

// whyStopped returns the error of an injection, or that the run has ended if ctx was cancelled for that.
func whyStopped(ctx context.Context, err error, when string) error {
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return fmt.Errorf("%w %s", errEnded, when)
	}
	return err
}

// acted reports whether an earlier injection was carried out.
func (s *armed) acted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired.Load() > 0 || s.vainly > 0
}

// awaitFirst keeps the run going for a fault of clients or of the wire that has a
// time.
func (in *Injector) awaitFirst(s *armed) {
	if s.fault.When.At == 0 || !in.sleep(s.fault.When.At-in.now()) {
		return
	}
	for end := s.fault.When.At + opportunity; s.fired.Load() == 0 && in.now() < end; {
		if !in.sleep(20 * time.Millisecond) {
			return
		}
	}
	in.sleep(s.fault.Amount)
}

// moveClocks makes the clients that the fault picks move their clocks, for the rest of the run: see Client.setClock.
func (in *Injector) moveClocks(s *armed) {
	if !in.sleep(s.fault.When.At - in.now()) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	s.moved = true
	for _, c := range in.clients {
		if s.picks(c) {
			c.moves.Store(&move{by: s})
			s.ordered.Add(1)
		}
	}
}

// crowd returns the state of all clients together: one holds a lock, or one tries to obtain it, or neither.
func (in *Injector) crowd() State {
	in.mu.Lock()
	defer in.mu.Unlock()
	state := Idle
	for _, c := range in.clients {
		switch c.stateNow() {
		case Holding:
			return Holding
		case Waiting:
			state = Waiting
		}
	}
	return state
}

// grants lets faults wait for a lock to be granted.
type grants struct {
	mu      sync.Mutex
	awaited chan struct{} // closed at the next grant; nil: no fault waits for it
}

// granted reports that a client has obtained a lock.
func (in *Injector) granted() {
	in.holds.mu.Lock()
	defer in.holds.mu.Unlock()
	if in.holds.awaited != nil {
		close(in.holds.awaited)
		in.holds.awaited = nil
	}
}

// await waits for a grant that comes after the call.
func (g *grants) await(ctx context.Context) error {
	g.mu.Lock()
	if g.awaited == nil {
		g.awaited = make(chan struct{})
	}
	awaited := g.awaited
	g.mu.Unlock()
	select {
	case <-awaited:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait until a client obtains the lock: %w", ctx.Err())
	}
}
