package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/scenarios"
	"oversell/variant"
	"oversell/wire"
)

// plan is a load: clients that acquire and release a few locks for a time, and the faults that
// hit them. Its history is judged by the monitors.
type plan struct {
	name     string
	clients  int
	locks    int
	lease    time.Duration
	lasts    time.Duration
	grants   int64 // ends it before its time; 0: no
	faults   []variant.Fault
	troubled bool // commands are delayed and lost, clients freeze, overrun and die
}

// crowded returns a load of high contention without faults.
func (r *run) crowded(lasts time.Duration) plan {
	return plan{name: "of many grants", clients: 8, locks: 3, lease: 10 * time.Second, lasts: lasts, grants: 8000}
}

// troubled returns a load with every fault of clients.
func (r *run) troubled(lasts time.Duration) plan {
	lease := r.able.lease
	if r.able.brief {
		lease = briefLease
	}
	return plan{
		name: "with clients in trouble", clients: 8, locks: 3, lease: lease, lasts: lasts, troubled: true,
		faults: []variant.Fault{variant.Overrun, variant.Crash, variant.DropReply, variant.LateRequest, variant.FreezeRenewal, variant.Resend},
	}
}

// traffic is a load under way.
type traffic struct {
	plan
	b     *bench
	start time.Time
	names []string

	mu       sync.Mutex
	ops      []history.Op
	ids      atomic.Int32
	sessions atomic.Int64
	granted  atomic.Int64
	lastErr  error
}

// load runs a plan and returns the broken promises. It repeats the plan once if the clients made no progress because
// the machine or the servers were too busy; a second failure is not judged: the rules judge the same promise.
func (r *run) load(ctx context.Context, p plan, name string) []error {
	broken, vain := r.loadOnce(ctx, p, name)
	if vain != nil {
		broken, vain = r.loadOnce(ctx, p, name+"-again")
	}
	if vain != nil {
		r.logf("the load %s was not judged, since the machine is too busy: %v", p.name, vain)
	}
	return broken
}

// loadOnce makes one attempt. vain says why the clients made no progress while not even the suite's own commands were
// answered in time.
func (r *run) loadOnce(ctx context.Context, p plan, name string) (broken []error, vain error) {
	b := &bench{ctx: ctx, run: r, name: name, ttl: p.lease}
	defer b.close()
	t := &traffic{plan: p, b: b}
	for i := range p.locks {
		t.names = append(t.names, name+strings.Repeat("-", i))
	}
	began, healthy := time.Now(), r.lasted()
	err := b.checked(t.run)
	switch {
	case ctx.Err() != nil:
		r.logf("the load %s was not judged, since other promises were found broken", p.name)
		return nil, nil
	case err != nil && r.lasted()-healthy < time.Since(began)*3/4:
		return nil, err
	case err != nil:
		return []error{err}, nil
	}
	return t.judge(), nil
}

// run ends when all clients have ended, or when their calls do not return.
func (t *traffic) run(b *bench) error {
	var crowd []*client
	for range t.clients {
		crowd = append(crowd, b.client())
	}
	t.start = time.Now()
	end := t.start.Add(t.lasts)
	done := make(chan struct{})
	go func() {
		var all sync.WaitGroup
		for _, c := range crowd {
			all.Go(func() { t.drive(c, end) })
		}
		all.Wait()
		close(done)
	}()
	limit := t.lasts + 2*t.lease + patience
	select {
	case <-done:
	case <-b.ctx.Done():
		return nil
	case <-time.After(limit):
		return broken(variant.Progress, "a load of %v did not end in %v: %s", t.lasts, limit, cmp.Or(b.stuck(), "no call is under way"))
	}
	if t.granted.Load() == 0 {
		return broken(variant.Progress, "nobody obtained the lock, the last error was: %v", t.lastErr)
	}
	b.mu.Lock()
	for _, c := range b.made {
		c.Die()
	}
	b.mu.Unlock()
	if !t.b.run.promises(variant.Progress, t.faults...) {
		return nil
	}
	for _, name := range t.names {
		if err := b.free(name, 2*t.lease, "after the load"); err != nil {
			return err
		}
	}
	return nil
}

// grant is a lock that a driver was granted.
type grant struct {
	c       *client
	l       lockimpl.Lock
	session int64
	id      int32
	over    bool // it was released
}

// drive runs one client. After an operation without an answer, the client goes on under a new
// identity.
func (t *traffic) drive(c *client, end time.Time) {
	id := t.ids.Add(1)
	if t.troubled {
		c.Plan(t.trouble(c))
	}
	var old []grant // that are over
	for time.Now().Before(end) && t.b.ctx.Err() == nil && (t.grants == 0 || t.granted.Load() < t.grants) {
		o := lockimpl.Options{TTL: t.lease, RetryEvery: time.Millisecond}
		if c.Chance(3) > 0 {
			o.Wait = 2 * t.lease
			o.Wait = min(o.Wait, max(time.Until(end), 0))
		}
		g, ok, known := t.acquire(c, id, t.names[c.Chance(len(t.names))], o)
		if !known {
			id = t.ids.Add(1)
		}
		if !ok {
			t.b.sleep(time.Millisecond)
			continue
		}
		if !t.troubled {
			if c.Chance(8) == 0 {
				t.b.sleep(time.Duration(c.Chance(200)) * time.Microsecond)
			}
			if t.release(&g) == history.Unknown {
				id = t.ids.Add(1)
			}
			continue
		}
		switch clean, dies := t.section(&g); {
		case dies:
			c.Die()
			c, id, old = t.b.client(), t.ids.Add(1), nil
			c.Plan(t.trouble(c))
			continue
		case !clean:
			id = t.ids.Add(1)
			if t.b.run.able.reenters || c.Chance(4) == 0 {
				c.Again()
				old = nil
			}
		}
		if old = append(old, g); c.Chance(6) == 0 && !t.b.run.able.reenters {
			g := old[c.Chance(len(old))]
			if g.c == c && c.Chance(2) == 0 && t.b.run.able.extends {
				t.extend(&g)
			}
			t.release(&g)
			id = t.ids.Add(1)
		}
	}
}

// section runs a holder's section. It reports whether the holder gave its lock back in time, or dies with it.
func (t *traffic) section(g *grant) (clean, dies bool) {
	c, b, lease := g.c, t.b, t.lease
	part := func(from, to int) time.Duration { return lease * time.Duration(from+c.Chance(to-from)) / 100 }
	extends := b.run.able.extends
	switch n := c.Chance(100); {
	case n < 45:
		b.sleep(time.Duration(c.Chance(5000)) * time.Microsecond)
	case n < 60 && extends:
		for range 1 + c.Chance(3) {
			b.sleep(part(0, 60))
			if t.extend(g) != history.OK {
				break
			}
		}
	case n < 70:
		b.sleep(part(100, 150))
		if extends && c.Chance(2) == 0 {
			t.extend(g)
		}
	case n < 80:
		c.Freeze()
		b.sleep(part(100, 160))
		c.Thaw()
	case n < 92:
		b.sleepUntil(c.Until(g.l).Add(time.Duration(c.Chance(8000)-4000) * time.Microsecond))
		if extends && c.Chance(2) == 0 {
			t.extend(g)
			b.sleep(part(0, 30))
		}
	default:
		return false, true
	}
	return t.release(g) == history.OK, false
}

// trouble delays and loses a part of a client's commands.
func (t *traffic) trouble(c *client) func(int, wire.Command) wire.Action {
	ms := func(n int) time.Duration { return time.Duration(c.Chance(n*1000)) * time.Microsecond }
	return func(int, wire.Command) wire.Action {
		switch n := c.Chance(1000); {
		case n < 120:
			return wire.Action{Verb: wire.Delay, After: ms(6)}
		case n < 132:
			return wire.Action{Verb: wire.Delay, After: t.lease + ms(20)}
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

// since returns the time of the load; all operations are timed by one clock.
func (t *traffic) since() time.Duration { return time.Since(t.start) }

// record keeps an operation that has ended.
func (t *traffic) record(op history.Op, err error, declared error, why history.Reason) history.Outcome {
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

func (t *traffic) acquire(c *client, id int32, name string, o lockimpl.Options) (g grant, granted, known bool) {
	op := history.Op{Client: id, Kind: history.Acquire, Key: history.Text(name), Call: t.since()}
	g = grant{c: c, session: t.sessions.Add(1), id: id}
	op.Arg = history.Int(g.session)
	var err error
	if g.l, err = c.Acquire(t.b.ctx, name, o); err == nil {
		op.Fence, op.Until = g.l.Fence, g.l.Until.Sub(t.start)
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

func (t *traffic) extend(g *grant) history.Outcome {
	op := history.Op{Client: g.id, Kind: history.Extend, Key: history.Text(g.l.Key), Arg: history.Int(g.session), Call: t.since()}
	l, err := g.c.Extend(g.l, t.lease)
	if err == nil {
		g.l = l
		op.Until = l.Until.Sub(t.start)
	}
	return t.record(op, err, lockimpl.ErrLost, history.Lost)
}

func (t *traffic) release(g *grant) history.Outcome {
	op := history.Op{Client: g.id, Kind: history.Release, Key: history.Text(g.l.Key), Arg: history.Int(g.session), Call: t.since()}
	// Renewals in the background while their client is frozen are not judged here.
	op.Until = g.l.Until.Sub(t.start)
	err := g.c.Release(g.l)
	if err == nil && !t.b.run.able.tells && (g.over || t.since() > op.Until) {
		err = errors.New("the lock does not tell whether it was lost")
	}
	g.over = true
	return t.record(op, err, lockimpl.ErrLost, history.Lost)
}

// judge feeds the history to the monitors.
func (t *traffic) judge() (all []error) {
	r := t.b.run
	slices.SortStableFunc(t.ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	h := &history.History{
		Header: history.Header{
			Schema: history.Schema, Scenario: "mutex", Lock: r.lock.Name, Objects: []variant.Object{variant.Lock}, Seed: r.seed, Clients: t.clients,
			TTL: t.lease, Grace: scenarios.Grace + patience, Drift: 2 * time.Second, Renews: r.lock.Renews, Expected: string(scenarios.ExpectPass),
		},
		Ops: t.ops, Trailer: &history.Trailer{},
	}
	for _, p := range r.lock.Promises {
		if r.promises(p, t.faults...) && (!t.troubled || p != variant.Progress && p != variant.FIFO) {
			h.Header.Promises = append(h.Header.Promises, history.Promise{Of: variant.Lock, Property: p})
		}
	}
	for _, v := range checker.Judge(h).Verdicts {
		if v.Result == checker.Violated && h.Header.Promised(v.Of, v.Property) {
			witness := ""
			for _, op := range v.Witness {
				witness += fmt.Sprintf("\n%v", op)
			}
			all = append(all, broken(v.Property, "%s%s", v.Why, witness))
		}
	}
	return all
}
