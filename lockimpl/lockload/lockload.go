// Package lockload puts a lock under load for a conformance suite: clients acquire and release a
// few locks for a time, extend them, overrun their leases, freeze and die, and what they saw is
// judged by the monitors of package checker.
package lockload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/scenarios"
	"oversell/variant"
	"oversell/wire"
)

// Config is what a load is put on.
type Config struct {
	Ctx  context.Context
	Lock lockimpl.Variant
	Seed uint64
	// Client makes a client. It fails when the run is over.
	Client func() (*lockclient.Client, error)
	// Promises are the promises by which the history is judged.
	Promises []variant.Property
	// Extends, Tells and Reenters say what the lock can do: extend, tell that it was lost, and be
	// granted to its holder again.
	Extends, Tells, Reenters bool
}

// Plan is a load: clients that acquire and release a few locks for a time, and what hits them.
type Plan struct {
	Name     string
	Clients  int
	Locks    []string
	Lease    time.Duration
	Lasts    time.Duration
	Grants   int64 // ends it before its time; 0: no
	Troubled bool  // commands are delayed and lost, clients freeze, overrun and die
	Faults   []variant.Fault
}

// On returns the plan with three locks, whose names begin with this one.
func (p Plan) On(name string) Plan {
	p.Locks = []string{name, name + "-", name + "--"}
	return p
}

// Crowd is a load of high contention without faults.
func Crowd(lasts time.Duration) Plan {
	return Plan{Name: "of many grants", Clients: 8, Lease: 10 * time.Second, Lasts: lasts, Grants: 8000}
}

// Trouble is a load with every fault of clients.
func Trouble(lease, lasts time.Duration) Plan {
	return Plan{
		Name: "with clients in trouble", Clients: 8, Lease: lease, Lasts: lasts, Troubled: true,
		Faults: []variant.Fault{variant.Overrun, variant.Crash, variant.DropReply, variant.LateRequest, variant.FreezeRenewal, variant.Resend},
	}
}

// Traffic is a load under way.
type Traffic struct {
	Config
	Plan
	start time.Time

	mu       sync.Mutex
	ops      []history.Op
	ids      atomic.Int32
	sessions atomic.Int64
	granted  atomic.Int64
	lastErr  error
}

// New returns a load that is yet to run.
func New(w Config, p Plan) *Traffic { return &Traffic{Config: w, Plan: p} }

// Granted is how many grants there were, and the last error of a call.
func (t *Traffic) Granted() (n int64, last error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.granted.Load(), t.lastErr
}

// Run runs the load. It returns when all clients have ended, or their calls do not return.
func (t *Traffic) Run() {
	t.start = time.Now()
	end := t.start.Add(t.Lasts)
	var all sync.WaitGroup
	for range t.Clients {
		all.Go(func() {
			if c, err := t.Client(); err == nil {
				t.drive(c, end)
			}
		})
	}
	all.Wait()
}

func (t *Traffic) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Ctx.Done():
	}
}

// grant is a lock that a driver was granted.
type grant struct {
	c       *lockclient.Client
	l       lockimpl.Lock
	name    string
	session int64
	id      int32
	over    bool // it was released
}

// drive runs one client. After an operation without an answer, the client goes on under a new
// identity.
func (t *Traffic) drive(c *lockclient.Client, end time.Time) {
	id := t.ids.Add(1)
	if t.Troubled {
		c.Plan(t.trouble(c))
	}
	var old []grant // that are over
	for time.Now().Before(end) && t.Ctx.Err() == nil && (t.Grants == 0 || t.granted.Load() < t.Grants) {
		o := lockimpl.Options{TTL: t.Lease, RetryEvery: time.Millisecond}
		if c.IntN(3) > 0 {
			o.Wait = 2 * t.Lease
			o.Wait = min(o.Wait, max(time.Until(end), 0))
		}
		g, ok, known := t.acquire(c, id, t.Locks[c.IntN(len(t.Locks))], o)
		if !known {
			id = t.ids.Add(1)
		}
		if !ok {
			t.sleep(time.Millisecond)
			continue
		}
		if !t.Troubled {
			if c.IntN(8) == 0 {
				t.sleep(time.Duration(c.IntN(200)) * time.Microsecond)
			}
			if t.release(&g) == history.Unknown {
				id = t.ids.Add(1)
			}
			continue
		}
		switch clean, dies := t.section(&g); {
		case dies:
			c.Die()
			var err error
			if c, err = t.Client(); err != nil {
				return
			}
			id, old = t.ids.Add(1), nil
			c.Plan(t.trouble(c))
			continue
		case !clean:
			id = t.ids.Add(1)
			if t.Reenters || c.IntN(4) == 0 {
				c.Again()
				old = nil
			}
		}
		if old = append(old, g); c.IntN(6) == 0 && !t.Reenters {
			g := old[c.IntN(len(old))]
			if g.c == c && c.IntN(2) == 0 && t.Extends {
				t.extend(&g)
			}
			t.release(&g)
			id = t.ids.Add(1)
		}
	}
}

// section is what a holder does. It reports whether it released its lock in time, or dies
// with it.
func (t *Traffic) section(g *grant) (clean, dies bool) {
	c, lease := g.c, t.Lease
	part := func(from, to int) time.Duration { return lease * time.Duration(from+c.IntN(to-from)) / 100 }
	extends := t.Extends
	switch n := c.IntN(100); {
	case n < 45:
		t.sleep(time.Duration(c.IntN(5000)) * time.Microsecond)
	case n < 60 && extends:
		for range 1 + c.IntN(3) {
			t.sleep(part(0, 60))
			if t.extend(g) != history.OK {
				break
			}
		}
	case n < 70:
		t.sleep(part(100, 150))
		if extends && c.IntN(2) == 0 {
			t.extend(g)
		}
	case n < 80:
		c.Freeze()
		t.sleep(part(100, 160))
		c.Thaw()
	case n < 92:
		t.sleep(time.Until(c.Until(g.l).Add(time.Duration(c.IntN(8000)-4000) * time.Microsecond)))
		if extends && c.IntN(2) == 0 {
			t.extend(g)
			t.sleep(part(0, 30))
		}
	default:
		return false, true
	}
	return t.release(g) == history.OK, false
}

// trouble delays and loses a part of a client's commands.
func (t *Traffic) trouble(c *lockclient.Client) func(int, wire.Command) wire.Action {
	ms := func(n int) time.Duration { return time.Duration(c.IntN(n*1000)) * time.Microsecond }
	return func(int, wire.Command) wire.Action {
		switch n := c.IntN(1000); {
		case n < 120:
			return wire.Action{Verb: wire.Delay, After: ms(6)}
		case n < 132:
			return wire.Action{Verb: wire.Delay, After: t.Lease + ms(20)}
		case n < 150:
			return wire.Action{Verb: wire.DropReply}
		case n < 160:
			return wire.Action{Verb: wire.DropRequest}
		case n < 166:
			return wire.Action{Verb: wire.Late, After: ms(500)}
		}
		return wire.Action{}
	}
}

// since is the time of the load; all operations are timed by one clock.
func (t *Traffic) since() time.Duration { return time.Since(t.start) }

// record keeps an operation that has ended.
func (t *Traffic) record(op history.Op, err error, declared error, why history.Reason) history.Outcome {
	op.Return = max(t.since(), op.Call+1)
	op.Due = op.Call
	switch {
	case err == nil:
		op.Outcome = history.OK
	case errors.Is(err, declared) && !errors.Is(err, context.DeadlineExceeded):
		op.Outcome, op.Reason = history.Refused, why
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ops = append(t.ops, op)
	if err != nil {
		t.lastErr = err
	}
	return op.Outcome
}

func (t *Traffic) acquire(c *lockclient.Client, id int32, name string, o lockimpl.Options) (g grant, granted, known bool) {
	op := history.Op{Client: id, Kind: history.Acquire, Key: history.Text(name), Call: t.since()}
	g = grant{c: c, name: name, session: t.sessions.Add(1), id: id}
	op.Arg = history.Int(g.session)
	var err error
	if g.l, err = c.Acquire(t.Ctx, name, o); err == nil {
		op.Fence, op.Until = g.l.Fence, t.until(g.l)
		t.granted.Add(1)
		if !g.l.Joined.IsZero() {
			join := op
			join.Kind, join.Fence, join.Until, join.Outcome = history.Join, 0, 0, history.OK
			join.Return = max(g.l.Joined.Sub(t.start), join.Call+1)
			join.Due = join.Call
			t.mu.Lock()
			t.ops = append(t.ops, join)
			t.mu.Unlock()
		}
	}
	out := t.record(op, err, lockimpl.ErrHeld, history.Held)
	return g, out == history.OK, out != history.Unknown
}

// until returns when a lease may end at the earliest.
func (t *Traffic) until(l lockimpl.Lock) time.Duration {
	return l.Until.Sub(t.start) - lockclient.Grain
}

func (t *Traffic) extend(g *grant) history.Outcome {
	op := history.Op{Client: g.id, Kind: history.Extend, Key: history.Text(g.name), Arg: history.Int(g.session), Call: t.since()}
	l, err := g.c.Extend(g.l, t.Lease)
	if err == nil {
		g.l = l
		op.Until = t.until(l)
	}
	return t.record(op, err, lockimpl.ErrLost, history.Lost)
}

func (t *Traffic) release(g *grant) history.Outcome {
	op := history.Op{Client: g.id, Kind: history.Release, Key: history.Text(g.name), Arg: history.Int(g.session), Call: t.since()}
	// Renewals in the background while their client is frozen are not judged here.
	op.Until = t.until(g.l)
	err := g.c.Release(g.l)
	if err == nil && !t.Tells && (g.over || t.since() > op.Until) {
		err = errors.New("the lock does not tell whether it was lost")
	}
	g.over = true
	return t.record(op, err, lockimpl.ErrLost, history.Lost)
}

// Finding is a promise that was broken, and how.
type Finding struct {
	Property variant.Property
	Text     string
}

// Judge feeds the history to the monitors. grace is how long a lock that is free may take to be granted.
func (t *Traffic) Judge(grace time.Duration) (all []Finding) {
	slices.SortStableFunc(t.ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	h := &history.History{
		Header: history.Header{
			Schema: history.Schema, Scenario: "mutex", Lock: t.Lock.Name, Objects: []variant.Object{variant.Lock}, Seed: t.Seed, Clients: t.Clients,
			TTL: t.Lease, Grace: scenarios.Grace + grace, Drift: 2 * time.Second, Renews: t.Lock.Renews, Expected: string(scenarios.ExpectPass),
		},
		Ops: t.ops, Trailer: &history.Trailer{},
	}
	for _, p := range t.Promises {
		h.Header.Promises = append(h.Header.Promises, history.Promise{Of: variant.Lock, Property: p})
	}
	for _, v := range checker.Judge(h).Verdicts {
		if v.Result == checker.Violated && h.Header.Promised(v.Of, v.Property) {
			witness := ""
			for _, op := range v.Witness {
				witness += fmt.Sprintf("\n%v", op)
			}
			all = append(all, Finding{v.Property, v.Why + witness})
		}
	}
	return all
}
