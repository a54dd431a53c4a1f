package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
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

// Redial is how long clients may take to notice the end of a fault of a server: a pool whose dials failed retries
// every second.
const Redial = 2 * time.Second

// inject prepares the run's faults.
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

// dial creates the redis clients of a client.
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

// connBreaker holds the connections of the clients, to break them all at once: an operation that a fault delays for a
// minute must not delay the end of a run.
type connBreaker struct {
	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

// add registers a connection, and breaks it if all are broken.
func (l *connBreaker) add(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		conn.Close()
		return
	}
	l.conns = append(l.conns, conn)
}

// sever breaks all connections, also future ones.
func (l *connBreaker) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// lastWords is how long an interrupted run waits for operations that its faults delay, and again for faults to
// heal.
const lastWords = 1500 * time.Millisecond

// endSoon ends a run with faults shortly after ctx ends, even if faults still delay operations: their outcomes stay
// unknown.
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

// injectClient lets the faults change a client's environment.
func (r *run) injectClient(id int32, env *variant.Env) redis.Hook {
	c := r.injector.Client(int(id))
	r.injured.Store(id, c)
	env.Clock, env.Wait, env.Go = c.Clock(env.Clock), c.Wait(env.Wait), c.Go(env.Go)
	return c
}

// injuredBy returns the fault injector's state of a client that replaces old, if that is not nil.
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

// injected records an injection. It is never called concurrently.
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
	if s.Fault.When.ForGood && !r.survives(op.Until) {
		op.Until = history.Forever
	}
	r.injections.SetClient(r.nameOf(s.Client - 1))
	r.injections.Record(&op)
}

// survives reports whether the servers can still serve although faults are never healed, one of which took effect at
// the given time: a majority of the independent masters is left, or an operation that was called after that time had a
// useful answer. If they cannot, missing progress is no violation.
func (r *run) survives(at time.Duration) bool {
	return time.Duration(r.lastServed.Load()) > at || r.config.majority(len(r.target.Servers()), r.target.Topology)
}

// majority reports whether a majority of n independent masters is left by the faults that are never healed. What the
// run keeps in Redis besides the lock is on the first.
func (c Config) majority(n int, topology string) bool {
	if !strings.HasPrefix(topology, "masters") || c.mastersUsed() != 0 {
		return false
	}
	hit := map[int]bool{}
	for _, f := range c.Faults {
		switch {
		case !f.When.ForGood:
		case f.Kind.Cuts && f.Where.Node == 0:
			return false
		default:
			hit[max(1, f.Where.Node)] = true
		}
	}
	return 2*(n-len(hit)) > n && !(hit[1] && c.inRedis())
}

// nameOf returns the current ID of the client that was created with a number.
func (r *run) nameOf(number int) int32 {
	if id, renamed := r.renamed.Load(number); renamed {
		return id.(int32)
	}
	return int32(number)
}

// nobody is the client number of an operation without a client.
const nobody = -1

// lasting reports whether the run must go on for its faults: a timed fault has not fired yet, or the clients have
// not recovered so far.
func (r *run) lasting() bool {
	return r.injector != nil && !r.recovered.Load() && !r.engine.Stopping()
}

// followFaults records when the clients have recovered from all timed faults, or that they do not recover.
func (r *run) followFaults(over <-chan struct{}) {
	select {
	case <-r.injector.Settled():
	case <-over:
		return
	}
	healed, last := r.since(), &r.lastGood
	if slices.ContainsFunc(r.config.Faults, func(f faults.Fault) bool { return f.When.ForGood }) {
		last = &r.lastServed // an answer may have been on its way when the fault took effect
	}
	for limit := healed + r.config.patience(); ; {
		switch now := r.since(); {
		case time.Duration(last.Load()) > healed && now > healed+afterglow:
			r.recovered.Store(true)
			return
		case now > limit:
			r.unrecovered.Store(fmt.Sprintf("no client had a useful answer in %v after %s", r.config.patience().Round(time.Millisecond), settledBy(r.config.Faults)) + r.errorsSince())
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

// settledBy says from when on the clients should recover from these faults, see [faults.Injector.Settled].
func settledBy(fs []faults.Fault) string {
	is := func(f func(faults.Fault) bool) int { return slices.IndexFunc(fs, f) }
	if i := is(func(f faults.Fault) bool { return f.When.ForGood }); i >= 0 {
		return fmt.Sprintf("the fault %q, which is never healed", fs[i].Text)
	}
	if is(func(f faults.Fault) bool { return f.Kind.Inject != nil || f.Kind.Cuts }) >= 0 {
		return "the last fault was healed"
	}
	if is(func(f faults.Fault) bool { return f.When.At > 0 }) >= 0 {
		return "the last fault was due"
	}
	return "the load began"
}

// afterglow is how long a run goes on after it has recovered from its faults, so that the phase after them can be
// measured.
const afterglow = 500 * time.Millisecond

// patience returns how long a healthy run can go without a useful answer to any client, including the lease of a
// client that died, plus a margin, so that the history shows the stall.
func (c Config) patience() time.Duration {
	p := c.TTL + (c.TTL+c.Grace()+c.Retry)*5/4 + c.Hold + c.Delay + c.QueueOptions.Visibility
	redial := time.Duration(0)
	for _, f := range c.Faults {
		if f.Kind.Level != faults.OnClient {
			redial = Redial
		}
		p += min(f.Amount.Abs(), time.Hour)
	}
	return p + redial
}

// withFaults returns the default duration of a run: usual or, with faults, long enough to distinguish a stuck lock
// from a slow one.
func (c Config) withFaults(usual time.Duration) time.Duration {
	if len(c.Faults) > 0 {
		usual += c.patience()
	}
	for _, f := range c.Faults {
		usual = max(usual, f.When.At+c.patience())
	}
	return usual
}

// spread returns how long the sections of a sale must last for the sale to be running when timed faults fire;
// otherwise it would already be over.
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

// longestSpread bounds how long a sale is stretched.
const longestSpread = 20 * time.Second

// watchProgress ends a run with faults when clients no longer get useful answers.
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
			text := fmt.Sprintf("no client had a useful answer in %v, so the run was ended", still.Round(time.Millisecond)) + r.errorsSince()
			r.stuck.CompareAndSwap(nil, &text)
			r.halt()
			return
		}
	}
}

// since is the time since the run's start.
func (r *run) since() time.Duration { return time.Since(r.log.Start()) }

// goods are the operations that do the useful work: an answer to one of them shows that the system works, even if
// nothing is left.
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

// went records how an operation of a client ended.
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
			r.lastServed.Store(int64(op.Call))
		}
		if op.Reason != history.Stopped {
			r.silence.answered(&op)
		}
		if r.failing.Load() > 0 {
			r.failing.Store(0)
		}
	case !c.dead():
		if r.injector == nil || !r.injector.Disturbed() {
			r.silence.failed(&op)
		}
		r.failed(fmt.Errorf("client %d: %w", c.ID, err))
	}
}

// counts returns the number of injections of each fault.
func (r *run) counts() (counts []history.FaultCount) {
	if r.injector == nil {
		return nil
	}
	for _, c := range r.injector.Counts() {
		count := history.FaultCount{
			Name: c.Fault.Text, Level: string(c.Fault.Kind.Level), Fired: c.Fired, Vain: c.Vain, VainWhy: c.VainWhy, Matched: c.Matched, Partly: c.Partly, Effect: c.Effect(), Failed: c.Failed,
		}
		if c.Unknown == 0 {
			count.Holders, count.Waiters = &c.Holders, &c.Waiters
		}
		counts = append(counts, count)
	}
	return counts
}

// unseen explains, in a run of a system, why faults on the wire may never have fired.
func (r *run) unseen(counts []history.FaultCount) []history.FaultCount {
	for i, c := range counts {
		if r.config.Outside != nil && c.Level == string(faults.OnWire) && c.Fired == 0 && c.Vain == 0 && c.Matched == 0 && c.Failed == "" {
			counts[i].Failed = "nothing matched it; the commands of a system are seen only if it uses the Redis at {redis}"
		}
	}
	return counts
}

// sentences returns the run's faults as they were given.
func (c Config) sentences() (texts []string) {
	for _, f := range c.Faults {
		texts = append(texts, f.Text)
	}
	return texts
}

// BreaksServers reports whether a fault acts on the servers themselves, so that they are not reusable after the
// run.
func (c Config) BreaksServers() bool {
	return slices.ContainsFunc(c.Faults, func(f faults.Fault) bool { return f.Kind.Level == faults.OnServer })
}

// forgotten reports whether a fault of this run ends a server that comes back, perhaps without its data, however long
// it is away. Tasks, pieces and numbers are then lost even if all leases have run out. Of independent masters only the
// first has any of these.
func (c Config) forgotten() bool {
	return slices.ContainsFunc(c.Faults, func(f faults.Fault) bool {
		return !f.When.ForGood && (f.Where.Node <= 1 || c.mastersUsed() != 0) &&
			slices.Contains(f.Kind.Provokes(f, math.MaxInt64), variant.RestartEmpty)
	})
}

// provoked returns the faults of this run in the vocabulary of flaws. A pause of a client does not make a section
// outlive a lease that is renewed meanwhile; a freeze, which also stops the renewal, does.
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
