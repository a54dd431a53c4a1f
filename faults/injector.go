package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"oversell/server"
)

// Options configure an Injector.
type Options struct {
	Faults []Fault
	// Seed fixes every random choice.
	Seed   uint64
	Target *server.Target
	// Key is the name of the lock's key under test; empty if there is none.
	Key string
	// Near is any key in the hash slot of the run's keys; only a cluster needs it.
	Near string
	// Masters is how many independent masters the clients use; 0: all.
	Masters int
	// Bare says that the clients' sections contain no Redis command. Faults that fire after the first command of a
	// section then fire at its beginning.
	Bare bool
	// Record is called with every injection when it is over. Calls are sequential.
	Record func(Injection)
}

// Injection is one time that a fault fired.
type Injection struct {
	Fault Fault
	// At says what was hit: "client 3", "node 2", "connection 7".
	At string
	// Client is the number of the client that was hit, from 1; 0: none or unknown.
	Client int
	// From and To are the times since the start of the load at which the fault
	// fired and at which it was healed.
	From, To time.Duration
	// Until is when the fault stopped excusing errors: To or, for a fault that lasts for good, the time at which it was
	// injected. 0 for faults of clients, which do not excuse the others.
	Until time.Duration
}

// Count is the result of one fault in a run.
type Count struct {
	Fault Fault
	// Fired is how often it fired in a way that could matter. Holders and Waiters count
	// the injections that hit a client while it held the lock, or while it was trying
	// to obtain it. A fault of a server hits a holder if any client holds the lock.
	Fired, Holders, Waiters int64
	// Unknown is how many of the injections hit an unknown client: on connections that clients share, a command on the wire
	// may be of any of them.
	Unknown int64
	// Vain is how often it was carried out without an effect; VainWhy is the reason the first time.
	Vain    int64
	VainWhy string
	// Matched is how often it might have fired, if it fires at one of these times or by chance; otherwise 0.
	Matched int64
	// Partly is how often an error, or the end of the run, ended an injection that had begun to take effect.
	Partly int64
	// Effects lists the known effects of the injections on the run.
	Effects []Effect
	// Failed is the first error of its injection or healing.
	Failed string
}

// Effect is an effect of injections on a run, and how often it occurred.
type Effect struct {
	What string // "sections lengthened"
	N    int64
}

// Effect describes the effects of the injections on the run: "sections lengthened: 12, leases outlived: 3". It returns
// "" if none are known.
func (c Count) Effect() string {
	parts := make([]string, len(c.Effects))
	for i, e := range c.Effects {
		parts[i] = e.What + ": " + humanize.Comma(e.N)
	}
	return strings.Join(parts, ", ")
}

// Injector carries out the faults of one run. Its methods are safe for concurrent
// use. Nothing fires before Start.
type Injector struct {
	o         Options
	onClients []*armed
	onWire    []*armed
	timed     []*armed // those of servers, and cuts
	clocks    []*armed // those that move clocks of clients
	wires

	epoch   time.Time
	began   atomic.Int64 // when Start was called, since epoch
	active  atomic.Bool  // from Start to Halt
	inForce atomic.Int32 // faults of servers and of the wire
	calm    atomic.Int64 // until then, errors are attributed to a fault that has ended

	// alive ends when the injector no longer waits for faults to be healed.
	alive   context.Context
	abandon context.CancelFunc

	// acting ends when the faults are stopped.
	acting context.Context
	rest   context.CancelFunc

	startStop sync.Mutex
	stop      chan struct{} // closed by Halt
	stopOnce  sync.Once
	done      chan struct{} // closed by Stop
	doneOnce  sync.Once
	settled   chan struct{}
	running   sync.WaitGroup

	mu      sync.Mutex
	clients map[int]*Client
	conns   map[string]int // client number by the address of its connection
	heirs   map[int]int    // by client number: the client that has replaced it
	holds   grants
}

// armed is a fault with its counts.
type armed struct {
	index   int
	fault   Fault
	trigger *trigger

	disruption Disruption // of a fault of clients

	fired, holders, waiters atomic.Int64
	unknown                 atomic.Int64 // of the wire: of a command whose client is unknown
	ordered                 atomic.Int64 // of the wire or of clocks: ordered, and perhaps without an effect
	moved                   bool         // of a clock fault: it is in force; guarded by Injector.mu

	mu      sync.Mutex
	failed  error
	vainly  int64
	partly  int64
	why     string
	effects []Effect
}

// brought notes an injection's effect on the run.
func (s *armed) brought(what string, n int64) {
	if n <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.effects, func(e Effect) bool { return e.What == what }); i >= 0 {
		s.effects[i].N += n
		return
	}
	s.effects = append(s.effects, Effect{what, n})
}

// vain notes that the fault was carried out without an effect.
func (s *armed) vain(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vainly++
	if s.why == "" {
		s.why = why
	}
}

// inPart notes that an injection ended after it had begun to take effect.
func (s *armed) inPart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partly++
}

// hit is one injection.
type hit struct {
	at       string
	client   int
	state    State
	from, to time.Duration
	until    time.Duration
}

// New checks the faults against the target and puts proxies before its servers if a fault of the wire needs them. An
// error of class server.ErrUsage says which fault is impossible there, and where it is possible. Close ends the
// injector.
func New(ctx context.Context, o Options) (*Injector, error) {
	in := &Injector{o: o, epoch: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), settled: make(chan struct{}), clients: map[int]*Client{}, conns: map[string]int{}, heirs: map[int]int{}}
	in.alive, in.abandon = context.WithCancel(context.Background())
	in.acting, in.rest = context.WithCancel(context.Background())
	for i, f := range o.Faults {
		if err := in.possible(ctx, f); err != nil {
			if !errors.As(err, new(*ParseError)) { // it quotes the sentence itself
				err = fmt.Errorf("fault %q: %w", f.Text, err)
			}
			return nil, err
		}
		s := &armed{index: i, fault: f, trigger: newTrigger(f.When, o.Seed+uint64(i)*0x9e3779b97f4a7c15)}
		if f.Kind.Disrupt != nil {
			s.disruption = f.Kind.Disrupt(f)
		}
		switch {
		case s.disruption.Clock != 0:
			in.clocks = append(in.clocks, s)
		case f.Kind.Inject != nil || f.Kind.Cuts:
			in.timed = append(in.timed, s)
		case f.Kind.Level == OnWire:
			in.onWire = append(in.onWire, s)
		default:
			in.onClients = append(in.onClients, s)
		}
	}
	if err := in.interpose(ctx); err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// possible refuses a fault that is impossible on this target.
func (in *Injector) possible(ctx context.Context, f Fault) error {
	if err := f.FitsServers(in.o.Target.Servers(), in.o.Faults, in.o.Masters); err != nil {
		return refusal{err}
	}
	if f.Kind.Needs == nil {
		return nil
	}
	return f.Kind.Needs(ctx, f, in.o.Target)
}

// HitsClients reports whether any fault hits clients, at their commands.
func (in *Injector) HitsClients() bool { return len(in.onClients) > 0 }

// Client makes the Client with this number, counted from 0.
func (in *Injector) Client(id int) *Client {
	c := &Client{in: in, id: id + 1}
	c.GivenUp()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.clients[c.id] = c
	for _, s := range in.clocks {
		if s.moved && s.picks(c) {
			c.moves.Store(&move{by: s})
			s.ordered.Add(1)
		}
	}
	return c
}

// Replace reports that a client replaces another one and uses its connections. The old client does nothing any more.
func (in *Injector) Replace(old, by *Client) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.clients, old.id)
	in.heirs[old.id] = by.id
}

// Dialed reports that a connection belongs to a client, counted from 0.
func (in *Injector) Dialed(id int, conn net.Conn) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.conns[conn.LocalAddr().String()] = id + 1
}

// who returns the client at the other end of a connection; nil if it is unknown.
func (in *Injector) who(conn string) *Client {
	in.mu.Lock()
	defer in.mu.Unlock()
	id := in.conns[conn]
	for heir, gone := in.heirs[id]; gone; heir, gone = in.heirs[id] {
		id = heir
	}
	in.conns[conn] = id
	return in.clients[id]
}

// picks reports whether a clock fault applies to a client.
func (s *armed) picks(c *Client) bool {
	w := &s.fault.When
	if n := s.fault.Where.Client; n != 0 && n != c.id {
		return false
	}
	return w.Chance == 0 || float64(mix(s.trigger.seed+uint64(c.id))>>11)/(1<<53) < w.Chance
}

// Start enables the faults: the load begins.
func (in *Injector) Start() { in.StartAt(time.Now()) }

// StartAt is Start for a load that began at the given time. The times of injections
// count from then. It returns when the faults that are due at 0s have fired, or after
// beforeLoad: the clients start after that.
func (in *Injector) StartAt(began time.Time) {
	select {
	case <-in.start(began):
	case <-in.stop:
	case <-time.After(beforeLoad):
	}
}

// beforeLoad is the longest wait of the clients for the faults that are due at 0s.
const beforeLoad = 250 * time.Millisecond

// start enables the faults. The channel is closed when those at 0s have fired.
func (in *Injector) start(began time.Time) <-chan struct{} {
	in.startStop.Lock()
	defer in.startStop.Unlock()
	fired := make(chan struct{})
	select {
	case <-in.stop:
		return fired
	default:
	}
	in.began.Store(int64(began.Sub(in.epoch)))
	in.active.Store(true)
	var first, atOnce sync.WaitGroup
	for _, s := range in.clocks {
		in.running.Go(func() { in.moveClocks(s) })
	}
	for _, s := range in.timed {
		first.Add(1)
		broke := func() {}
		if s.fault.When.At == 0 {
			atOnce.Add(1)
			broke = sync.OnceFunc(atOnce.Done)
		}
		in.running.Go(func() { in.follow(s, broke, sync.OnceFunc(first.Done)) })
	}
	for _, s := range append(in.onClients[:len(in.onClients):len(in.onClients)], in.onWire...) {
		first.Add(1)
		in.running.Go(func() { defer first.Done(); in.awaitFirst(s) })
	}
	in.running.Go(func() { first.Wait(); close(in.settled) })
	in.running.Go(func() { atOnce.Wait(); close(fired) })
	return fired
}

// Settled returns a channel that is closed when every fault with a time has fired at least once and was healed: the run
// must not end before.
func (in *Injector) Settled() <-chan struct{} { return in.settled }

// Halt stops the faults: no fault fires any more, clients that are held up go on, and faults in force are healed in the
// background. Clients may still be active.
func (in *Injector) Halt() {
	in.startStop.Lock()
	defer in.startStop.Unlock()
	in.stopOnce.Do(func() {
		close(in.stop)
		in.rest()
	})
	in.active.Store(false)
}

// Stop calls Halt and waits until all faults are healed. Call it when all clients have ended.
func (in *Injector) Stop() {
	in.Halt()
	in.doneOnce.Do(func() { close(in.done) })
	in.running.Wait()
}

// Abandon makes Stop return without waiting: faults that are not healed by now stay
// in force, and every connection through the proxies breaks. It is for a run that
// must end at once.
func (in *Injector) Abandon() {
	in.abandon()
	in.severAll()
}

// Close calls Stop, and then ends the proxies and the connections through them.
func (in *Injector) Close() error {
	in.Stop()
	return in.unplug()
}

// Counts returns the results of the faults, in the given order.
func (in *Injector) Counts() []Count {
	counts := make([]Count, len(in.o.Faults))
	for _, s := range in.all() {
		c := Count{Fault: s.fault, Fired: s.fired.Load(), Matched: s.trigger.seen.Load(), Holders: s.holders.Load(), Waiters: s.waiters.Load(), Unknown: s.unknown.Load()}
		s.mu.Lock()
		c.Vain, c.VainWhy, c.Partly, c.Effects = s.vainly, s.why, s.partly, slices.Clone(s.effects)
		if lost := s.ordered.Load() - c.Fired; lost > 0 && !in.active.Load() {
			c.Vain += lost
			c.VainWhy = cmp.Or(c.VainWhy, s.unread())
		}
		if s.failed != nil {
			c.Failed = s.failed.Error()
		}
		s.mu.Unlock()
		counts[s.index] = c
	}
	return counts
}

// unread says why an ordered injection had no effect.
func (s *armed) unread() string {
	if s.fault.Kind.Level == OnClient {
		return "no client read the clock that was moved"
	}
	return "the run, or the connection, ended before it took effect"
}

func (in *Injector) all() (all []*armed) {
	for _, some := range [][]*armed{in.onClients, in.onWire, in.timed, in.clocks} {
		all = append(all, some...)
	}
	return all
}

// Disturbed reports whether a fault of a server or of the wire is in force, or was so recently that clients may not
// have recovered from it.
func (in *Injector) Disturbed() bool {
	return in.inForce.Load() > 0 || in.now() < time.Duration(in.calm.Load())
}

// afterShock is how long after the end of a fault errors are attributed to it.
const afterShock = 2 * time.Second

// injected counts an injection and reports it.
func (in *Injector) injected(s *armed, h hit) {
	s.fired.Add(1)
	switch h.state {
	case Holding:
		s.holders.Add(1)
	case Waiting:
		s.waiters.Add(1)
	}
	in.tell(Injection{Fault: s.fault, At: h.at, Client: h.client, From: h.from, To: h.to, Until: h.until})
}

func (in *Injector) tell(s Injection) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.o.Record(s)
}

// fail notes what went wrong with a fault.
func (s *armed) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// sleep waits, and reports false when the faults were stopped before the time was
// over, or before the call.
func (in *Injector) sleep(d time.Duration) bool {
	select {
	case <-in.stop:
		return false
	default:
	}
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-in.stop:
		return false
	}
}

// now returns the time since the start of the load.
func (in *Injector) now() time.Duration { return in.at(time.Now()) }

// at converts a time to the time since the start of the load.
func (in *Injector) at(t time.Time) time.Duration {
	return t.Sub(in.epoch) - time.Duration(in.began.Load())
}

func itoa(n int) string { return strconv.Itoa(n) }
