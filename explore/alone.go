package explore

import (
	"context"
	"errors"
	"time"

	"oversell/explore/clients"
	"oversell/explore/servers"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/lockimpl"
	"oversell/scenarios"
)

// alone is a client without any other on the servers.
type alone struct {
	servers *servers.Servers
	options coro.Options
	// patience is how long it tries before it gives up; most is its longest wait between two attempts.
	patience, most time.Duration
}

// run runs the code of the client: commands are executed in order, and a wait ends at the next
// moment at which something changes, or after a.most. It returns the events and the state of the
// servers.
func (a alone) run(from uint32, now time.Duration, p coro.Program) (events []Event, to uint32, err error) {
	s := a.servers
	x := coro.Start(p, a.options)
	defer x.Close()
	for end := now + a.patience; len(x.Pending()) > 0; {
		i := first(x.Pending())
		r := x.Pending()[i]
		obs := coro.Observation{Now: now}
		switch r.Kind {
		case coro.Command:
			c := servers.Call{Client: names.Nobody, Node: r.Node, Commands: r.Commands, Tx: r.Tx, Conn: r.Conn}
			e := s.Execute(from, s.CallID(c), now)
			if e.Unknown {
				return nil, from, s.Unknown()
			}
			from = e.Servers
			obs.Reply = names.Global(s.Answer(e.Answer).Reply, names.Nobody)
		case coro.Sleep, coro.Pause:
			if r.Label == "start" {
				break
			}
			if now >= end {
				return nil, from, errImpatient
			}
			last := end
			if r.Kind == coro.Pause {
				last = min(end, now+a.most)
			}
			by := s.Until(from, now, r.Until, last)
			now += by
			from = s.Later(from, by)
			obs.Now = now
		}
		x.Resume(i, obs)
	}
	for _, e := range x.Events() {
		events = append(events, e.(Event))
	}
	return events, from, x.Err()
}

// first returns the thread that can run first.
func first(rs []coro.Request) (best int) {
	for i, r := range rs {
		switch {
		case r.Kind != coro.Sleep && r.Kind != coro.Pause:
			return i
		case r.Kind == coro.Pause || (rs[best].Kind == coro.Sleep && r.Until < rs[best].Until):
			best = i
		}
	}
	return best
}

// errImpatient ends a client that has run out of time.
var errImpatient = errors.New("the client waits longer than it may")

// apart returns the options of a client that is not part of the search.
func apart(masters int, scripts *coro.Scripts, naming *names.Namer) coro.Options {
	return coro.Options{Masters: masters, Epoch: Epoch, Scripts: scripts, Token: naming.Outsider, Number: naming.DictionaryOfNobody().Number(names.ClientNumber)}
}

// probed is the result of a new client's tries for the lock.
type probed struct {
	got    bool
	waited bool
	why    error  // why its last try failed, unless the lock was held
	after  uint32 // the servers then
}

// probe returns the program of a new client that tries for the scenario's lock for that long.
func probe(c scenarios.Config, wait time.Duration, p *probed) coro.Program {
	return func(ctx context.Context, w *coro.Runtime) {
		o := clients.LockOptions(c)
		o.Wait, o.MaxTries = wait, 0
		env := w.Env()
		locker := c.Lock.New(env)
		began := env.Clock.Now()
		for end := began.Add(wait); ; {
			_, p.why = locker.Acquire(ctx, clients.LockName(c), o)
			p.waited = env.Clock.Now().After(began)
			if p.got = p.why == nil; p.got {
				return
			}
			if errors.Is(p.why, lockimpl.ErrHeld) {
				p.why = nil
			}
			if env.Clock.Now().After(end) {
				return
			}
			w.Pause("again") // a lock may try only once, whatever its options say, or have an error of its own when it is held
		}
	}
}
