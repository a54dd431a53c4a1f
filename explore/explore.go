// Package explore runs a scenario's real code under a search that tries every
// interleaving of its clients, every expiry of a lease, and every crash, lost and
// late message, within bounds. It ends in the shortest schedule that breaks a promise,
// or in the certainty that there is none within those bounds.
//
// # How
//
// What a deterministic client does next depends on nothing but the list of what it has
// observed: answers, errors, readings of the clock. So its code is run once for
// each list, alone, as a coroutine ([oversell/internal/coro]), and the lists are kept
// in a trie. The search itself then goes over situations: what the servers hold (an
// immutable model, [oversell/internal/redismodel]), the trie's node of each client,
// what must be remembered to judge the promises, the time, and what is left of the
// bounds. A few hundred runs of the code stand for billions of schedules.
//
// The search is breadth-first, on all processors, and knows a situation by a
// fingerprint of 128 bits, so the first violation is one in the fewest steps.
//
// # What is one step
//
// A command is sent, executed and answered in one step: what happens on the way is
// the same as if it happened before or after. A client may be held up for any time
// before a command, in a critical section, and before it looks at the clock; how often
// between such a look and the next command is a bound. What a client does in private,
// looking at the clock or beginning an acquisition, is one step with the command that
// follows.
//
// Time moves only to the next moment at which something happens by itself: a key
// expires, a sleep or a time limit ends, or a queue's visibility time-out has passed. Moves made while some client could run are
// bounded, since they mean that it was held up.
//
// A client that crashes is one that is never let go on. For what is judged step by
// step that is a schedule like others; so crashes are tried only where it matters, at
// the end, when what the servers hold is judged: whether the lock can be obtained ever
// again, and whether the books are right.
//
// # Reductions
//
// Clients of the same role are exchangeable, so situations that differ only in who
// is who are one. Between two rounds, a client's list of observations is replaced by
// what it remembers of it; and a token that no client remembers any more is nobody's.
// All can be switched off; they give the same verdicts.
//
// # What is not said
//
// A command or a Lua function that the model does not know makes the result
// inconclusive, and so does a search in which nobody ever entered the critical
// section, or that ended before its bounds. Promises about whole histories, like
// linearizability, are not judged here.
package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/coro"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// Config says what to search and how far.
type Config struct {
	// Run is the scenario, its variants, and what there is to choose about them.
	// Clients, faults and limits of a run under load say nothing.
	Run    scenarios.Config
	Bounds reports.Bounds
	// Masters is the number of independent servers; 0: as many as the variants need.
	Masters int
	// Look are the promises to look for; nil: all that the variants make and that a
	// search can judge.
	Look []history.Promise
	// Plain switches the reductions off.
	Plain bool
	// Progress is told from time to time how far the search is; nil: nobody is.
	Progress func(reports.Effort)
	// Start makes a run of the code of a client, instead of the scenario's: index is 0
	// for a queue's producer, 1 for its consumers, and 0 for all clients of other scenarios.
	Start func(index int) Execution
}

// ErrUsage wraps what is wrong with a Config.
var ErrUsage = errors.New("cannot be searched")

// Complete fills in what is zero, and reports what cannot be searched.
func (c *Config) Complete() error {
	c.defaults()
	return c.check()
}

// defaults fills in what is zero.
func (c *Config) defaults() {
	r := &c.Run
	r.TTL = orDefault(r.TTL, time.Second)
	r.Wait = orDefault(r.Wait, time.Second)
	r.Retry = orDefault(r.Retry, 100*time.Millisecond)
	r.MaxTries = orDefault(r.MaxTries, 1)
	r.Quantity = orDefault(r.Quantity, 1)
	if r.Scenario.Uses(variant.Queue) && r.Queue.AtLeastOnce {
		r.QueueOptions.Visibility = orDefault(r.QueueOptions.Visibility, time.Second)
	}
	if r.Scenario.Uses(variant.Sale) {
		r.Stock = orDefault(r.Stock, 1)
	}
	r.Clients = c.Bounds.Clients
	if c.Masters == 0 {
		c.Masters = 1
		for _, s := range r.Subjects() {
			c.Masters = max(c.Masters, s.Needs.Masters)
		}
	}
	if c.Look == nil {
		for _, p := range r.Promises() {
			if judged(p.Of, p.Property) {
				c.Look = append(c.Look, p)
			}
		}
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (c *Config) check() error {
	b := c.Bounds
	switch {
	case c.Run.NeedsSQL():
		return fmt.Errorf("%w: a variant keeps its state in an SQL database, which only run can drive", ErrUsage)
	case b.Clients < 1 || b.Clients > maxSlots:
		return fmt.Errorf("%w: %d clients: it takes 1 to %d", ErrUsage, b.Clients, maxSlots)
	case b.Tries < 1 || b.Tries > 100:
		return fmt.Errorf("%w: %d tries: it takes 1 to 100", ErrUsage, b.Tries)
	case min(b.Crashes, b.Lost, b.Late, b.Advances, b.Stalls, b.Resends, b.Depth, b.MemoryMB) < 0 || b.TimeMS < 0:
		return fmt.Errorf("%w: a bound must not be negative", ErrUsage)
	case b.Resends > 1:
		return fmt.Errorf("%w: an order is sent again 0 or 1 times, not %d", ErrUsage, b.Resends)
	case max(b.Lost, b.Late, b.Advances, b.Stalls) > 100:
		return fmt.Errorf("%w: bounds of more than 100 faults are out of reach", ErrUsage)
	case c.Run.TTL < time.Millisecond || c.Run.TTL > horizon/4:
		return fmt.Errorf("%w: a lease of %v: it takes 1ms to %v", ErrUsage, c.Run.TTL, horizon/4)
	case len(c.Look) == 0:
		return fmt.Errorf("%w: these variants promise nothing that a search can judge (see --property)", ErrUsage)
	}
	for _, p := range c.Look {
		if !judged(p.Of, p.Property) {
			return fmt.Errorf("%w: %s of a %s is no matter of a search: see oversell run", ErrUsage, p.Property, p.Of)
		}
	}
	for _, s := range c.Run.Subjects() {
		if s.Needs.Masters > c.Masters {
			return fmt.Errorf("%w: %s needs %d masters", ErrUsage, s.Name, s.Needs.Masters)
		}
		if s.Needs.Fence && !c.Run.Lock.Fences {
			return fmt.Errorf("%w: %s needs a lock that grants fencing tokens, like fenced", ErrUsage, s.Name)
		}
		if s.Needs.WholeSeconds && c.Run.TTL%time.Second != 0 {
			return fmt.Errorf("%w: %s takes leases of whole seconds, not of %v", ErrUsage, s.Name, c.Run.TTL)
		}
	}
	return nil
}

// Run searches. An error means that the search could not be made: a wrong
// configuration (ErrUsage), or code that cannot be stepped. When ctx ends the search does, and
// the result says what is known by then.
func Run(ctx context.Context, c Config) (reports.Exploration, error) {
	if err := c.Complete(); err != nil {
		return reports.Exploration{}, err
	}
	r, again, err := run(ctx, c, !c.Plain)
	if again {
		// Clients whose names stand in an order that shows cannot be exchanged.
		r, _, err = run(ctx, c, false)
	}
	return r, err
}

// run makes one search, in which clients are exchanged or not. again tells that they
// should not have been.
func run(ctx context.Context, c Config, exchange bool) (r reports.Exploration, again bool, err error) {
	scripts := &coro.Scripts{}
	x := &search{bounds: c.Bounds, clients: c.Bounds.Clients, reduce: exchange, span: c.Run.QueueOptions.Visibility, masters: c.Masters, entry: entryKind(c.Run.Scenario), scripts: scripts, rules: newRules(c.Run, c.Bounds.Clients, c.Look)}
	lock := ""
	if c.Run.Lock.New != nil {
		lock = lockimpl.Key(lockName(c.Run))
	}
	x.servers = newServers(Epoch, lock, scripts)
	x.prepare()
	x.ends = &ends{
		config: c.Run, rules: x.rules, servers: x.servers, facts: x.facts, options: apart(c.Masters, scripts), crashes: c.Bounds.Crashes, failed: x.fail,
	}
	x.ends.look(c.Look)
	x.ends.prepare()
	start, err := x.begin(c, scripts)
	if err != nil {
		return r, false, err
	}
	defer x.close()
	x.run(ctx, start, c.Progress)
	if exchange && x.servers.ordered.Load() {
		return r, true, nil
	}
	r, err = x.result(c, start)
	return r, false, err
}

// begin opens the scenario and sets up the clients' tries.
func (x *search) begin(c Config, scripts *coro.Scripts) (state, error) {
	var failed error
	_, opened, err := x.servers.alone(x.ends.options, x.servers.start(c.Masters), 0, time.Hour, steward(c.Run, func(ctx context.Context, client *scenarios.Client) error {
		return client.Open(ctx)
	}, &failed))
	if err := errors.Join(err, failed); err != nil {
		return state{}, fmt.Errorf("open the scenario: %w", err)
	}
	roles := 0
	for i := range x.clients {
		x.roles[i] = roleOf(c.Run, i)
		roles = max(roles, int(x.roles[i])+1)
	}
	for index := range roles {
		begin := func() Execution {
			return coro.Start(program(c.Run, index, c.Bounds), coro.Options{Masters: c.Masters, Epoch: Epoch, Token: tokenOf, Scripts: scripts})
		}
		if c.Start != nil {
			begin = func() Execution { return c.Start(index) }
		}
		t, err := newTrie(begin, x.servers, !c.Plain)
		if err != nil {
			return state{}, err
		}
		x.tries = append(x.tries, t)
	}
	return state{servers: opened, facts: x.numbered(x.rules.start())}, nil
}

// roleOf numbers what a client is in a scenario: those with one role run the same
// code. In a queue the first client produces, and the others consume. Roles never fall
// from one client to the next: the canonical order of clients is by role.
func roleOf(c scenarios.Config, index int) uint8 {
	if c.Scenario.Uses(variant.Queue) && index > 0 {
		return 1
	}
	return 0
}

func (x *search) close() {
	for _, t := range x.tries {
		t.close()
	}
}

// look notes what is to be judged at the end.
func (e *ends) look(ps []history.Promise) {
	for _, p := range ps {
		switch {
		case p.Of == variant.Lock && p.Property == variant.Progress:
			e.lock = true
		case slices.Contains(atTheEnd, p.Property):
			e.books = true
		}
	}
}

// atTheEnd are the properties that what the servers hold at the end has a say in.
var atTheEnd = []variant.Property{variant.NoUndersell, variant.OncePerOrder, variant.NoGaps, variant.NoLostTask, variant.OneEntryPerID}

// result is what the search came to.
func (x *search) result(c Config, start state) (reports.Exploration, error) {
	if x.err != nil && !errors.Is(x.err, errUnknown) {
		return reports.Exploration{}, x.err
	}
	r := c.describe()
	r.Stats = x.counted(x.reached)
	best := x.best()
	switch {
	case best != nil:
		t, err := x.trace(start, best)
		if err != nil {
			return r, err
		}
		r.Verdict, r.Counterexample = reports.Violated, t
		r.Why = t.Sentence
	case x.err != nil:
		r.Verdict, r.Why = reports.Inconclusive, x.err.Error()
	case x.cut.Load() != nil:
		r.Verdict, r.Why = reports.Inconclusive, *x.cut.Load()
	case x.beyond.Load() && c.Bounds.Advances > 0:
		r.Verdict, r.Why = reports.Inconclusive, fmt.Sprintf("the clock was not moved beyond %v, and something would have happened then", horizon)
	case r.Stats.Entered == 0:
		r.Verdict, r.Why = reports.Inconclusive, "nobody ever got in: nothing was put to the test"
	case c.Bounds.Clients == 1:
		r.Verdict, r.Why = reports.Inconclusive, "no schedule of one client breaks a promise, and one client contends with nobody"
	default:
		r.Verdict, r.Why = reports.Pass, "no schedule within these bounds breaks a promise"
	}
	if x.servers.pipelined.Load() {
		r.NotChecked = append(r.NotChecked, "what others do in the middle of a pipeline: one was sent, and taken for a single step")
	}
	r.Properties = c.properties(r)
	r.Expected, r.ExpectedWhy = c.Run.ExpectUnder(faultsIn(c.Bounds))
	if cx := r.Counterexample; cx != nil {
		r.ExpectedWhy = about(r.ExpectedWhy, cx.Property)
	}
	return r, nil
}

// about are the declared flaws that break this property.
func about(flaws []string, p variant.Property) (of []string) {
	for _, why := range flaws {
		if strings.Contains(why, ", "+string(p)+": ") {
			of = append(of, why)
		}
	}
	return of
}

// describe fills in what is known before the search.
func (c *Config) describe() reports.Exploration {
	r := reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: c.Run.Scenario.Name,
		Lock: c.Run.Lock.Name, Masters: c.Masters, Bounds: c.Bounds,
		TTLMS: millis(c.Run.TTL), HoldMS: millis(c.Run.Hold), NotChecked: c.notChecked(),
	}
	if c.Run.Scenario.Uses(variant.Sale) {
		r.Sale, r.Stock, r.Quantity = c.Run.Sale.Name, c.Run.Stock, c.Run.Quantity
	}
	if c.Run.Scenario.Uses(variant.Queue) {
		r.Queue, r.VisibilityMS = c.Run.Queue.Name, millis(c.Run.QueueOptions.Visibility)
	}
	if c.Run.Scenario.Uses(variant.IDs) {
		r.IDs = c.Run.IDs.Name
	}
	return r
}

// properties are the verdicts, one for each promise.
func (c *Config) properties(r reports.Exploration) (ps []reports.Property) {
	promised := c.Run.Promises()
	for _, p := range c.Look {
		if !slices.Contains(promised, p) {
			promised = append(promised, p)
		}
	}
	for _, p := range promised {
		row := reports.Property{Of: p.Of, Name: p.Property, Result: reports.Unknown, Measured: reports.Unknown, Witness: []history.Op{}}
		switch cx := r.Counterexample; {
		case !judged(p.Of, p.Property):
			row.Why = "a search judges situations, not whole histories: see oversell run"
		case !slices.Contains(c.Look, p):
			row.Why = "not looked for"
		case cx != nil && cx.Of == p.Of && cx.Property == p.Property:
			row.Result, row.Why = reports.Broken, cx.Sentence
		case cx != nil:
			row.Why = "the search ended when it found another promise broken"
		case r.Verdict == reports.Pass:
			row.Result, row.Why = reports.Holds, "in all schedules within the bounds"
		default:
			row.Why = r.Why
		}
		ps = append(ps, row)
	}
	return ps
}

// notChecked are the limits of what a search says.
func (c *Config) notChecked() []string {
	s := []string{
		"the order and the number of whole histories: linearizable and fifo are judged by oversell run",
		"more clients, tries or faults than the bounds allow",
		"moments other than those at which a key expires, a sleep ends or a time limit is over (of deadlines kept as data, only a queue's visibility time-out)",
		"what a lost master, a failover, an eviction or a step of a server's clock does (see oversell run --fault)",
	}
	if c.Bounds.Stalls == 0 {
		s = append(s, "clients that are held up between a look at the clock and the command that follows (see --stalls)")
	}
	if c.Run.MaxTries == 1 {
		s = append(s, "waiting for the lock: each try is one attempt")
	}
	return s
}
