package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/faults"
	"oversell/history"
	"oversell/load"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/variant"
)

// Redial is how long after the end of a fault of a server its clients may take to
// notice: a pool whose dials failed looks every second whether the server is back.
const Redial = 2 * time.Second

// inject readies the run's faults.
func (r *run) inject(ctx context.Context) (err error) {
	if len(r.config.Faults) == 0 {
		return nil
	}
	r.injector, err = faults.New(ctx, faults.Options{
		Faults: r.config.Faults, Seed: r.config.Seed, Target: r.target,
		Key: r.lockKey(), Near: r.prefix, Record: r.injected,
		Masters: r.config.mastersUsed(), Bare: !r.config.commandsInSections(),
	})
	if err == nil {
		counts := r.counts
		r.live.faults.Store(&counts)
	}
	if err == nil && r.injector.HitsClients() && r.config.Pool > 0 && r.target.Topology == "cluster" {
		return errors.Join(fmt.Errorf("%w: on a cluster, faults of clients need a connection for each of them: leave out --pool", server.ErrUsage), r.injector.Close())
	}
	return err
}

// lockKey returns the key of the lock under test; empty if there is no lock, or more
// than one.
func (r *run) lockKey() string {
	switch {
	case !r.config.oneLock():
		return ""
	case r.config.Scenario.Uses(variant.Queue) && r.config.Queue.Locked:
		return lockimpl.Key(queueimpl.LockName(r.queue.name))
	}
	return lockimpl.Key(r.lock.name)
}

// dial makes the redis clients of a client.
func (r *run) dial(id int32, connections int) []redis.UniversalClient {
	o := server.ConnOptions{PoolSize: connections, Timeout: r.config.Timeout}
	if r.injector != nil && (id >= 0 || id == load.Pipeline) {
		o.Dialed = func(conn net.Conn) {
			if id >= 0 {
				r.injector.Dialed(int(id), conn)
			}
			r.lifeline.add(conn)
		}
	}
	return r.target.Clients(o)
}

// lifeline holds the connections of the clients, so that they can all be broken: what
// a fault holds up for a minute must not keep a run from ending.
type lifeline struct {
	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

// add takes note of a connection, and breaks it if all are broken.
func (l *lifeline) add(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		conn.Close()
		return
	}
	l.conns = append(l.conns, conn)
}

// sever breaks all connections, and those that come later.
func (l *lifeline) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// lastWords is how long a run that was interrupted waits for what its faults hold up,
// and again for what they have to heal.
const lastWords = 1500 * time.Millisecond

// endSoon ends a run with faults shortly after ctx does, even if faults still hold up
// operations: the answers that are missing then are never known.
func (r *run) endSoon(ctx context.Context, over <-chan struct{}) {
	if r.injector == nil {
		return
	}
	for _, step := range []func(){func() {}, r.lifeline.sever, r.injector.Abandon} {
		select {
		case <-ctx.Done():
			step()
		case <-over:
			return
		}
		select {
		case <-time.After(lastWords):
		case <-over:
			return
		}
	}
}

// injectClient lets the faults change a client's world.
func (r *run) injectClient(id int32, env *variant.Env) redis.Hook {
	c := r.injector.Client(int(id))
	r.injured.Store(id, c)
	env.Clock, env.Wait, env.Go = c.Clock(env.Clock), c.Wait(env.Wait), c.Go(env.Go)
	return c
}

// injuredBy is what the faults know of a client that takes the place of old, if
// that is not nil.
func (r *run) injuredBy(id int32, old *faults.Client) *faults.Client {
	c, injected := r.injured.Load(id)
	if !injected {
		return nil
	}
	if old != nil {
		r.injector.Replace(old, c.(*faults.Client))
	}
	return c.(*faults.Client)
}

// injected records an injection. Calls come one after the other.
func (r *run) injected(s faults.Injection) {
	if r.injections == nil {
		r.injections = r.log.Recorder(nobody)
	}
	offset := r.began
	op := history.Op{
		Kind: history.Fault, Key: history.Text(s.Fault.Text), Arg: history.Text(s.Fault.Kind.Name), Result: history.Text(s.At),
		Outcome: history.OK, Due: offset + s.From, Call: offset + s.From, Return: offset + s.To,
	}
	if s.Until > 0 {
		op.Until = offset + s.Until
	}
	r.injections.As(r.nameOf(s.Client - 1))
	r.injections.Record(&op)
}

// nameOf is the present ID of the client that was made under a number.
func (r *run) nameOf(number int) int32 {
	if id, renamed := r.renamed.Load(number); renamed {
		return id.(int32)
	}
	return int32(number)
}

// nobody stands for the client number of an operation that no client called.
const nobody = -1

// lasting reports whether the run must go on for the sake of its faults: one that has
// a time has not fired yet, or the clients have not recovered so far.
func (r *run) lasting() bool {
	return r.injector != nil && !r.recovered.Load() && !r.engine.Stopping()
}

// followFaults notes when the clients have recovered from all faults that have a
// time, or that they do not.
func (r *run) followFaults(over <-chan struct{}) {
	select {
	case <-r.injector.Settled():
	case <-over:
		return
	}
	healed := r.since()
	for limit := healed + r.config.patience(); ; {
		switch now := r.since(); {
		case time.Duration(r.lastGood.Load()) > healed && now > healed+afterglow:
			r.recovered.Store(true)
			return
		case now > limit:
			r.unrecovered.Store(fmt.Sprintf("no client got what it came for in %v after the last fault was healed", r.config.patience().Round(time.Millisecond)))
			r.recovered.Store(true)
			r.halt()
			return
		}
		select {
		case <-over:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// afterglow is for how long a run goes on when it has recovered from its faults, so
// that what comes after them can be told from what came before.
const afterglow = 500 * time.Millisecond

// patience returns how long a healthy run can go on without a useful answer to any
// client, including the lease of a client that died, plus a margin, so that the
// history shows the stall.
func (c Config) patience() time.Duration {
	p := c.TTL + (c.TTL+Grace+c.Retry)*5/4 + c.Hold + c.Delay + c.QueueOptions.Visibility
	redial := time.Duration(0)
	for _, f := range c.Faults {
		if f.Kind.Level != faults.OnClient {
			redial = Redial
		}
		p += min(f.Amount.Abs(), time.Hour)
	}
	return p + redial
}

// withFaults returns the default duration of a run: usual or, with faults, long
// enough to tell a stuck lock from a slow one.
func (c Config) withFaults(usual time.Duration) time.Duration {
	if len(c.Faults) > 0 {
		usual += c.patience()
	}
	for _, f := range c.Faults {
		usual = max(usual, f.When.At+c.patience())
	}
	return usual
}

// spread is how long the sections of a sale have to last for the sale to be on when
// the faults fire that have a time: without, it would be over in an instant.
func (c Config) spread() time.Duration {
	latest := time.Duration(0)
	for _, f := range c.Faults {
		if at := f.When.At; at > 0 {
			latest = max(latest, at+f.When.For+f.Amount.Abs())
		}
	}
	if latest == 0 || c.Stock == 0 {
		return 0
	}
	each := (min(latest, longestSpread) + time.Second) / time.Duration(c.Stock)
	return min(each, c.TTL/4).Round(100 * time.Microsecond)
}

// longestSpread bounds for how long a sale is stretched.
const longestSpread = 20 * time.Second

// watchProgress ends a run with faults when no client gets a useful answer any more.
func (r *run) watchProgress(over <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	excused := time.Duration(0)
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if r.injector.Disturbed() {
			excused = r.since() // not the clients' fault
		}
		if still := r.since() - max(excused, time.Duration(r.lastGood.Load())); still > r.config.patience() {
			text := fmt.Sprintf("no client got what it came for in %v, and so the run was ended", still.Round(time.Millisecond))
			r.stuck.CompareAndSwap(nil, &text)
			r.halt()
			return
		}
	}
}

// since is the time since the run's start.
func (r *run) since() time.Duration { return time.Since(r.log.Start()) }

// goods are the operations that do the useful work: an answer to one of them shows
// that the system works, even if it says that nothing is left.
var goods = []history.Kind{history.Buy, history.Enqueue, history.Pop, history.NextID, history.Take, history.Submit}

// good reports whether an operation shows that the system works.
func (r *run) good(op *history.Op) bool {
	switch {
	case op.Outcome == history.Unknown, op.Reason == history.Held, op.Reason == history.Stopped:
		return false
	case r.config.LockAlone():
		return op.Kind == history.Acquire
	}
	return slices.Contains(goods, op.Kind)
}

// went notes how an operation of a client ended.
func (r *run) went(c *Client, op history.Op, err error) {
	if op.Kind == history.Buy && err == nil {
		r.live.Sold.Add(op.Pieces())
	}
	r.countSold(&op, err)
	if op.Kind == history.Submit && err == nil {
		r.live.Rounds.Add(1)
	}
	switch {
	case op.Outcome != history.Unknown:
		if r.injector != nil && r.good(&op) {
			r.lastGood.Store(int64(r.since()))
		}
		if r.failing.Load() > 0 {
			r.failing.Store(0)
		}
	case !c.dead():
		r.failed(fmt.Errorf("client %d: %w", c.ID, err))
	}
}

// counts are what became of the faults.
func (r *run) counts() (counts []history.FaultCount) {
	if r.injector == nil {
		return nil
	}
	for _, c := range r.injector.Counts() {
		counts = append(counts, history.FaultCount{
			Name: c.Fault.Text, Level: string(c.Fault.Kind.Level), Fired: c.Fired, Holders: c.Holders, Waiters: c.Waiters,
			Vain: c.Vain, VainWhy: c.VainWhy, Effect: c.Effect(), Failed: c.Failed,
		})
	}
	return counts
}

// unseen says of faults on the wire that never fired, in a run of a system, why that may be.
func (r *run) unseen(counts []history.FaultCount) []history.FaultCount {
	for i, c := range counts {
		if r.config.Outside != nil && c.Level == string(faults.OnWire) && c.Fired == 0 && c.Vain == 0 && c.Failed == "" {
			counts[i].Failed = "nothing that fits it came by; the commands of a system come by if it uses the Redis at {redis}, the address that it is given"
		}
	}
	return counts
}

// sentences are the run's faults as they were given.
func (c Config) sentences() (texts []string) {
	for _, f := range c.Faults {
		texts = append(texts, f.Text)
	}
	return texts
}

// BreaksServers reports whether a fault fires at the servers themselves, so that
// they are not what they were when the run has ended.
func (c Config) BreaksServers() bool {
	return slices.ContainsFunc(c.Faults, func(f faults.Fault) bool { return f.Kind.Level == faults.OnServer })
}

// provoked are the faults that this run brings about, in the vocabulary of flaws. A
// pause of a client does not make a section outlive a lease that is renewed
// meanwhile; a freeze, which stops the renewal too, does.
func (c Config) provoked() (fs []variant.Fault) {
	for _, f := range c.Faults {
		brought := f.Kind.Provokes(f, c.TTL)
		for _, b := range brought {
			if b == variant.Overrun && c.Lock.Renews && f.Kind.Level == faults.OnClient && !slices.Contains(brought, variant.FreezeRenewal) {
				continue
			}
			fs = append(fs, b)
		}
	}
	return fs
}
