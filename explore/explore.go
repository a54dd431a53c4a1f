// Package explore runs a scenario's real code under a search that tries every interleaving of its clients, every expiry
// of a lease, and every crash, lost and late message, within bounds. It ends with a schedule that breaks a promise (the
// shortest one, unless a limit ended the search), with a proof, within those bounds, that none does, or undecided.
//
// # How
//
// What a deterministic client does next depends only on what it has observed: answers, errors, readings of the clock.
// So its code is run once for each list of observations, alone, as a coroutine ([oversell/internal/coro]), and the
// lists are kept in a trie. The search itself visits states: what the servers hold (an immutable model,
// [oversell/internal/redismodel]), the trie's node of each client, what must be remembered to judge the promises, the
// time, and what is left of the bounds. A few hundred runs of the code stand for billions of schedules.
//
// The search is breadth-first, on up to eight processors, so the first violation is one in the
// fewest steps. It recognizes a state by a fingerprint of 128 bits.
//
// Package [oversell/explore/clients] runs the code and holds the trie, [oversell/explore/servers] models the servers,
// [oversell/explore/rules] judges the promises, [oversell/explore/table] has the tables that all workers share,
// [oversell/explore/replay] drives a schedule on real servers, and [oversell/explore/bubbletest] runs code that is not
// a coroutine. This package has the states: what can happen in each, the state that follows, which states are equal,
// and how a counterexample is described.
//
// # What is one step
//
// A command is sent, executed and answered in one step: anything else that happens meanwhile might as well happen
// before or after. A client may be held up for any time before a command, in a critical section, and before it looks at
// the clock; a bound limits how often it is held up between such a look and the next command. Private actions of a
// client, such as looking at the clock or beginning an acquisition, are one step with the command that follows.
//
// Time moves only to a moment from which on something may happen differently: a key expires, a lease, a sleep or a
// time limit ends, a stored time comes, or a client would act differently on its clock. Moves made while some client
// could run (advances) are bounded, since they mean that it was held up.
//
// A crashed client is one that never goes on. Promises that are judged step by step need no crashes: schedules in which
// a client never goes on are searched anyway. So crashes are tried only at the end, when the state of the servers is
// judged: whether the lock can be obtained again, and whether the data on the servers are right.
//
// # Reductions
//
// Clients of the same role are exchangeable, so states that differ only in a permutation of them are one. Between two
// rounds, a client's list of observations is replaced by what it remembers of it. Tokens that no client remembers any
// more are replaced by one name. All reductions can be switched off; the verdicts are the same.
//
// They are valid only if a program does no more with names than compare them for equality. That is checked, in the code
// and in the servers, by spelling the names in other ways (package names). A program that does more with them is
// searched with names like real ones, once for each of several namings. Values that a program draws at random are
// names.
//
// # Limits
//
// A command or a Lua function that the model does not know makes the result
// inconclusive, and so does a search in which no client ever entered the critical section, or that ended before its
// bounds. Promises about whole histories, like linearizability, are not judged here.
package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/errclass"
	"oversell/internal/limits"
	"oversell/internal/names"
	"oversell/internal/phrase"
	"oversell/lockimpl/lockfinding"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/system"
	"oversell/variant"
)

// Config says what to search and how far.
type Config struct {
	// Run is the scenario, its variants, and their options.
	// The clients, faults and limits of a run under load are ignored.
	Run    scenarios.Config
	Bounds reports.Bounds
	// Masters is the number of independent servers; 0: as many as the variants need.
	Masters int
	// Look lists the promises to look for; nil: all that the variants make and that a search can judge.
	Look []history.Promise
	// Plain switches off the reductions.
	Plain bool
	// inside lets time pass to moments inside a lease.
	inside bool
	// given is Bounds.TimeMS of the whole search, of which this one has a part.
	given float64
	// scripts are those that all searches have seen.
	scripts *coro.Scripts
	// clocked reports whether a search has seen a command that uses the clock.
	clocked *atomic.Bool
	// failure is the first error of a client's call in this search, unless the lock was held or a message lost.
	failure *atomic.Pointer[string]
	// stopped is called when Bounds.Waits ends a client's waiting.
	stopped func()
	// Exhaustive ends a search when it runs out of time or memory. Otherwise it tries random schedules until its
	// time is up: for at least the last fifth of it.
	Exhaustive bool
	// Progress, unless nil, is called from time to time with the progress of the search.
	Progress func(reports.Effort)
	// System replaces a variant of Run if its code is outside of this program; otherwise nil.
	// Run ends the processes that it starts.
	System *system.System
	// Start starts the code of a client, instead of the scenario's. The execution reports canonical names: it handles
	// itself what a program draws at random.
	Start func(Who) Execution
}

// ErrUsage is wrapped by the errors about a wrong Config.
var ErrUsage = errors.New("cannot be searched")

// Complete fills in what is zero, and reports what cannot be searched.
func (c *Config) Complete() error {
	c.defaults()
	return c.check()
}

// defaults fills in what is zero.
func (c *Config) defaults() {
	r := &c.Run
	r.TTL = cmp.Or(r.TTL, DefaultTTL(*r))
	r.Wait = cmp.Or(r.Wait, (r.TTL * 2 / 3).Truncate(time.Millisecond))
	r.Retry = cmp.Or(r.Retry, 100*time.Millisecond)
	r.MaxTries = cmp.Or(r.MaxTries, 1)
	r.Quantity = cmp.Or(r.Quantity, 1)
	if r.Scenario.Uses(variant.Queue) && r.Queue.AtLeastOnce {
		r.QueueOptions.Visibility = cmp.Or(r.QueueOptions.Visibility, time.Second)
	}
	if r.Scenario.Uses(variant.Sale) {
		r.Stock = cmp.Or(r.Stock, 1)
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
			if rules.CanJudge(p.Of, p.Property) && (p != ownerOnly || lockfinding.Exclusive(r.Lock)) {
				c.Look = append(c.Look, p)
			}
		}
	}
}

// ownerOnly is the promise that only the holder releases a lock.
var ownerOnly = history.Promise{Of: variant.Lock, Property: variant.OwnerOnlyRelease}

// DefaultTTL returns the lease of a search that sets none: not a whole number of seconds, since a lock might truncate
// it, unless a variant takes no other.
func DefaultTTL(c scenarios.Config) time.Duration {
	for _, s := range c.Subjects() {
		if s.Needs.WholeSeconds {
			return time.Second
		}
	}
	return 1500 * time.Millisecond
}

func (c *Config) check() error {
	if err := c.checkNumbers(); err != nil {
		return fmt.Errorf("%w: %w", ErrUsage, err)
	}
	switch {
	case c.System != nil && c.System.CannotStep() != nil:
		return fmt.Errorf("%w: system %s: %w", ErrUsage, c.System.Name, c.System.CannotStep())
	case c.Run.NeedsSQL():
		return fmt.Errorf("%w: a variant needs SQL, and a search cannot step SQL: use oversell run", ErrUsage)
	case len(c.Look) == 0:
		return fmt.Errorf("%w: these variants promise nothing that a search can judge (see --property)", ErrUsage)
	}
	for _, p := range c.Look {
		if !rules.CanJudge(p.Of, p.Property) {
			return fmt.Errorf("%w: a search cannot judge %s of a %s: use oversell run", ErrUsage, p.Property, p.Of)
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

// checkNumbers rejects numbers out of their limits. The numbers of a trace come from a file.
func (c *Config) checkNumbers() error {
	b, r := c.Bounds, c.Run
	for _, number := range []struct {
		flag string
		is   float64
	}{
		{"clients", float64(b.Clients)}, {"tries", float64(b.Tries)}, {"crashes", float64(b.Crashes)}, {"lost", float64(b.Lost)}, {"late", float64(b.Late)},
		{"advances", float64(b.Advances)}, {"stalls", float64(b.Stalls)}, {"resends", float64(b.Resends)}, {"depth", float64(b.Depth)},
		{"time", b.TimeMS * float64(time.Millisecond)}, {"memory", float64(b.MemoryMB)}, {"masters", float64(c.Masters)},
		{"quantity", float64(r.Quantity)}, {"ttl", float64(r.TTL)}, {"hold", float64(r.Hold)}, {"visibility", float64(r.QueueOptions.Visibility)}, {"attempts", float64(r.QueueOptions.MaxAttempts)},
	} {
		if err := limits.Explore.Check(number.flag, number.is); err != nil {
			return err
		}
	}
	if r.Scenario.Uses(variant.Sale) {
		return limits.Explore.Check("stock", float64(r.Stock))
	}
	return nil
}

// Run searches. An error means that the search could not be made: a wrong
// configuration (ErrUsage), or code that cannot be stepped. When ctx ends, the search ends, and the result says what is
// known by then.
func Run(ctx context.Context, c Config) (reports.Exploration, error) {
	if err := c.Complete(); err != nil {
		return reports.Exploration{}, err
	}
	c.scripts, c.clocked = &coro.Scripts{}, &atomic.Bool{}
	if c.System == nil {
		return c.runWaiting(ctx)
	}
	defer c.System.CloseSearches()
	return c.misbehaved(c.run(ctx))
}

// misbehaved turns the error of an external program into an exploration that decided nothing.
func (c Config) misbehaved(r reports.Exploration, err error) (reports.Exploration, error) {
	if err == nil || errors.Is(err, ErrUsage) || errors.Is(err, errclass.ErrEnvironment) {
		return r, err
	}
	r = c.describe()
	r.Verdict, r.Why = reports.Inconclusive, phrase.OneLine(err.Error())
	r.Properties = c.properties(r, "")
	r.Expected, r.ExpectedWhy = c.Run.ExpectUnder(faultsIn(c.Bounds))
	return r, nil
}

// mostWaits is how often a client waits within one acquisition in the search that comes first, if it waits at all.
const mostWaits = 1

// runWaiting searches first with at most mostWaits waits within an acquisition and then, if a
// client was stopped by that, without this bound, which makes a search many times longer. If the
// second search does not end, the result of the first one stands.
func (c Config) runWaiting(ctx context.Context) (reports.Exploration, error) {
	if c.Bounds.Waits > 0 || c.Plain {
		return c.run(ctx)
	}
	began := time.Now()
	var waits atomic.Bool
	few := c
	few.Bounds.Waits = mostWaits
	few.stopped = func() { waits.Store(true) }
	r, err := few.run(ctx)
	if err != nil || !waits.Load() || r.Verdict != reports.Pass {
		if !waits.Load() {
			r.Bounds = c.Bounds
		}
		return r, err
	}
	long, err := c.within(began, 1).run(ctx)
	long.Bounds, long.Stats = c.Bounds, sum(r.Stats, long.Stats)
	if err != nil || long.Verdict != reports.Inconclusive {
		return long, err
	}
	r.Why += fmt.Sprintf(", if a client waits %s within an acquisition", phrase.Count(mostWaits, "time"))
	r.NotChecked = append(r.NotChecked, "acquisitions that wait more often: "+long.Why)
	r.Stats = long.Stats
	return r, nil
}

// run searches with one kind of names after the other, until one suits the program.
func (c Config) run(ctx context.Context) (reports.Exploration, error) {
	began := time.Now()
	var why error
	for naming := names.Short; naming < names.Concrete; naming++ {
		r, again, err := c.search(ctx, began, 1, naming, !c.Plain)
		if errors.Is(again, errOrdered) {
			// If the order of names shows, clients cannot be exchanged.
			r, again, err = c.search(ctx, began, 1, naming, false)
		}
		if again == nil && errors.Is(err, coro.ErrPanicked) {
			again = err // perhaps because tokens are longer, or other texts
		}
		if again == nil {
			r.Bounds = c.Bounds
			if err != nil {
				return r, err
			}
			if r, again = c.repeated(ctx, began, r, naming); again == nil {
				r, again = c.inLeases(ctx, began, r, naming)
			}
			if again == nil {
				return r, nil
			}
		}
		why = again
	}
	return runConcrete(ctx, c, began, why)
}

// oneEntry is the promise that an id is in a queue once.
var oneEntry = history.Promise{Of: variant.Queue, Property: variant.OneEntryPerID}

// repeated searches again, with a producer that enqueues an id twice, in half of the time that is
// left. It does so only if no promise was broken and one entry per id is looked for. again is as
// for search.
func (c Config) repeated(ctx context.Context, began time.Time, r reports.Exploration, naming names.Naming) (_ reports.Exploration, again error) {
	if !held(r) || c.Run.Repeat > 0 || !c.Run.Scenario.Uses(variant.Queue) || !slices.Contains(c.Look, oneEntry) {
		return r, nil
	}
	row := &r.Properties[slices.IndexFunc(r.Properties, func(p reports.Property) bool { return p.Of == oneEntry.Of && p.Name == oneEntry.Property })]
	if c.Bounds.Tries == 1 {
		leaveOpen(&r, row, "the producer enqueues only one id (--tries)")
		return r, nil
	}
	twice := c
	twice.Run.Repeat = 1
	s, why, again := twice.further(ctx, began, 2, naming, &r)
	switch {
	case again != nil:
		return r, again
	case s.Verdict == reports.Violated:
		return s, nil
	case why != "":
		leaveOpen(&r, row, "no id was enqueued again: "+why)
	default:
		row.Why += fmt.Sprintf(", also if an id is enqueued again (%s)", phrase.Count(s.Stats.States, "more state"))
	}
	return r, nil
}

// inLeases searches again for the promises that hold, in the time that is left, without crashes and late messages: time
// also passes to moments at which nothing ends. A client that is held up there may count a lease from then, or send a
// value computed from the rest of a lease. again is as for search: it tells of a program that does more with names than
// compare them.
func (c Config) inLeases(ctx context.Context, began time.Time, r reports.Exploration, naming names.Naming) (_ reports.Exploration, again error) {
	if !held(r) || c.Exhaustive || r.Bounds.Advances == 0 {
		return r, nil
	}
	times := "a lease"
	if c.Run.Scenario.Uses(variant.Queue) {
		times = "a lease or a claim"
	}
	inside := c
	inside.inside = true
	inside.Bounds.Crashes, inside.Bounds.Late = 0, 0
	s, why, again := inside.further(ctx, began, 1, naming, &r)
	switch {
	case again != nil:
		return r, again
	case s.Verdict == reports.Violated:
		return s, nil
	case why != "":
		r.NotChecked = append(r.NotChecked, "moments inside "+times+" at which nothing ends: "+why)
		except(&r, "moments inside "+times+" at which nothing ends were not tried: "+why)
	default:
		r.NotChecked = append(r.NotChecked, fmt.Sprintf("times inside %s, other than its middle, its last 100 ms and its last millisecond, and all of them after a crash or a late message (%s)", times, phrase.Count(s.Stats.States, "more state")))
	}
	return r, nil
}

// except says beside the verdict, and beside each promise that holds, what was not tried.
func except(r *reports.Exploration, untried string) {
	r.Why += "; " + untried
	for i := range r.Properties {
		if p := &r.Properties[i]; p.Result == reports.Holds {
			p.Why += "; " + untried
		}
	}
}

// further runs a search after r, in 1/parts of the time that is left, and adds its time to r. If it finds a violation, the effort of
// r is added to it. why is empty if it finds a violation or ends without one; again is as for search.
func (c Config) further(ctx context.Context, began time.Time, parts int, naming names.Naming, r *reports.Exploration) (s reports.Exploration, why string, again error) {
	s, again, err := c.search(ctx, began, parts, naming, !c.Plain)
	if errors.Is(again, errOrdered) {
		s, again, err = c.search(ctx, began, parts, naming, false)
	}
	r.Stats.ElapsedMS = max(r.Stats.ElapsedMS, float64(time.Since(began).Milliseconds()))
	switch {
	case err != nil:
		return reports.Exploration{}, phrase.OneLine(err.Error()), again
	case s.Verdict == reports.Violated:
		s.Bounds, s.Stats = r.Bounds, sum(r.Stats, s.Stats)
	case !held(s):
		why = "the time was over"
	}
	return s, why, again
}

// leaveOpen takes back that a promise holds, since nothing put it to the test. If no other promise holds, the search is
// inconclusive.
func leaveOpen(r *reports.Exploration, p *reports.Property, why string) {
	p.Result, p.Why = reports.Unknown, why
	r.NotChecked = append(r.NotChecked, fmt.Sprintf("%s of the %s: %s", p.Name, p.Of, why))
	if r.Verdict == reports.Pass && !slices.ContainsFunc(r.Properties, func(p reports.Property) bool { return p.Result == reports.Holds }) {
		r.Verdict, r.Why = reports.Inconclusive, "nothing put the promises to the test"
	}
}

// search runs one search in 1/parts of the remaining time. If again is not nil, it is the reason why the search must be
// repeated in another way.
func (c Config) search(ctx context.Context, began time.Time, parts int, naming names.Naming, exchange bool) (r reports.Exploration, again, err error) {
	once := func(by reductions) (reports.Exploration, error, error) {
		r, again, err := searchOnce(ctx, c.within(began, parts), naming, by)
		if errors.Is(again, errClocked) {
			c.clocked.Store(true)
			r, again, err = searchOnce(ctx, c.within(began, parts), naming, by)
		}
		return r, again, err
	}
	c.scripts.Late()
	r, again, err = once(reductions{exchange: exchange, merge: !c.Plain})
	if (again != nil || err != nil && !errors.Is(err, errFirstRun)) && c.scripts.Late() { // a client that was told NOSCRIPT, and now is not, seems to differ
		r, again, err = once(reductions{exchange: exchange, merge: !c.Plain})
	}
	if errors.Is(again, clients.ErrMerged) && c.System != nil && c.System.Stateless() {
		return r, nil, fmt.Errorf("%s keeps state from one request to the next: its file must not say stateless; a program that goes by a monotonic clock needs monotonic: true (see docs/systems.md): %w", c.System.Name, again)
	}
	if why := again; errors.Is(why, clients.ErrMerged) {
		r, again, err = once(reductions{exchange: exchange})
		if again == nil && err == nil && r.Verdict == reports.Inconclusive {
			r.NotChecked = append(r.NotChecked, fmt.Sprintf("histories of a client were not merged, so the search takes longer: %v", why))
		}
	}
	return r, again, err
}

// reductions says which states a search treats as equal.
type reductions struct {
	exchange bool // those that differ in a permutation of the clients
	merge    bool // those that differ in a client's history but not in what it remembers: see clients.Options
}

// within returns c with what is left of its time, or a part of that.
func (c Config) within(began time.Time, parts int) Config {
	if c.Bounds.TimeMS > 0 {
		c.given = cmp.Or(c.given, c.Bounds.TimeMS)
		left := c.Bounds.TimeMS - reports.InMS(time.Since(began))
		c.Bounds.TimeMS = max(left/float64(parts), 1)
	}
	return c
}

// runConcrete searches a program that does more with names than compare them, under
// each of several namings. What counts is the shortest counterexample of all.
func runConcrete(ctx context.Context, c Config, began time.Time, why error) (reports.Exploration, error) {
	var open, broken, last *reports.Exploration
	var all reports.Effort
	ways := namings(why)
	for i, naming := range ways {
		limited := c
		if broken != nil {
			if limited.Bounds.Depth = broken.Stats.Depth - 1; limited.Bounds.Depth == 0 {
				break
			}
		}
		r, again, err := limited.search(ctx, began, len(ways)-i, naming, false)
		if again != nil {
			err = fmt.Errorf("%w: %w", ErrNondeterministic, again)
		}
		if err != nil {
			return r, err
		}
		r.Bounds = c.Bounds
		all = sum(all, r.Stats)
		switch {
		case r.Verdict == reports.Violated && (broken == nil || len(r.Counterexample.Steps) < len(broken.Counterexample.Steps)):
			broken = &r
		case r.Verdict == reports.Inconclusive && open == nil:
			open = &r
		}
		last = &r
	}
	r := last
	switch {
	case broken != nil:
		all.Depth = broken.Stats.Depth
		r = broken
	case open != nil:
		r = open
	default:
		r.Why = fmt.Sprintf("no schedule within these bounds breaks a promise, with %d ways to spell names", len(ways))
		if left := unjudged(r.Properties); left != "" {
			r.Why += "; no search judges " + left
		}
	}
	r.Stats = all
	r.NotChecked = append(r.NotChecked, fmt.Sprintf("other spellings of names than %d: %v", len(ways), why))
	return *r, nil
}

// sum adds the effort of two searches.
func sum(a, b reports.Effort) reports.Effort {
	a.States, a.Transitions, a.Executions, a.Observed = a.States+b.States, a.Transitions+b.Transitions, a.Executions+b.Executions, a.Observed+b.Observed
	a.Entered, a.Sold, a.Advances, a.Expiries, a.Lapses = a.Entered+b.Entered, a.Sold+b.Sold, a.Advances+b.Advances, a.Expiries+b.Expiries, a.Lapses+b.Lapses
	a.Crashes, a.Lost, a.Late, a.Ends = a.Crashes+b.Crashes, a.Lost+b.Lost, a.Late+b.Late, a.Ends+b.Ends
	if a.Random == nil {
		a.Random = b.Random
	}
	a.Depth, a.BytesPerState = max(a.Depth, b.Depth), max(a.BytesPerState, b.BytesPerState)
	a.Collision, a.ElapsedMS = a.Collision+b.Collision, a.ElapsedMS+b.ElapsedMS
	return a
}

// errOrdered reports that the program depends on the order of clients' names, so that clients
// must not be permuted.
var errOrdered = errors.New("the program depends on the order of its clients' names")

// errClocked reports that a command uses the clock, so that clients must also begin late in a second.
var errClocked = errors.New("a command uses the clock")

// inScript is a reason to repeat the search that was found by executing commands on the servers, under one naming.
type inScript struct {
	error
	naming names.Naming
}

func (e *inScript) Unwrap() error { return e.error }

// namings returns the namings under which a program is searched that does more with names than compare them: all
// concrete ones, and the one under which this was found.
func namings(why error) (all []names.Naming) {
	for n := names.Concrete; n < names.Namings; n++ {
		all = append(all, n)
	}
	var server *inScript
	if errors.As(why, &server) {
		return append(all, server.naming)
	}
	if seed, known := names.ShownBy(why); known {
		all = append(all, names.Showing(seed, true))
	}
	return all
}

// again returns the reason why the search must be repeated in another way, or nil.
func (x *search) again() error {
	if why, seed := x.servers.SpellingShows(); why != "" {
		return &inScript{fmt.Errorf("%w: %s", names.ErrNotOpaque, why), names.Showing(seed, false)}
	}
	if x.reduce && x.servers.Ordered.Load() {
		return errOrdered
	}
	if x.servers.Names.Naming < names.Concrete {
		if err := names.Taken(x.scripts.Texts()); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case errors.Is(x.err, clients.ErrMerged), errors.Is(x.err, names.ErrNotOpaque):
		return x.err
	case x.odd && x.servers.Clocked.Load() && len(x.starts) == 0:
		return errClocked
	}
	return nil
}

// searchOnce runs one search. again is as for search.
func searchOnce(ctx context.Context, c Config, naming names.Naming, by reductions) (r reports.Exploration, again, err error) {
	scripts := c.scripts
	c.failure = &atomic.Pointer[string]{}
	namer := names.NewNamer(naming, c.Bounds.Clients)
	x := &search{bounds: c.Bounds, given: c.given, clients: c.Bounds.Clients, reduce: by.exchange, inside: c.inside, merge: by.merge, exhaustive: c.Exhaustive, span: c.Run.QueueOptions.Visibility, masters: c.Masters, entry: entryKind(c.Run.Scenario), scripts: scripts, rules: rules.New(c.Run, c.Bounds.Clients, c.Look)}
	x.began = time.Now()
	end := time.Time{}
	if c.Bounds.TimeMS > 0 {
		end = x.began.Add(x.most())
	}
	stop := x.guard(ctx, c.System, end)
	defer stop()
	keys, err := lockKeys(c, scripts, namer)
	if err != nil {
		return r, nil, err
	}
	x.servers = servers.New(Epoch, keys, scripts, namer)
	x.odd = !c.Run.Scenario.Uses(variant.Queue)
	if x.odd && c.clocked.Load() || c.inside {
		x.starts = oddStarts
	}
	if x.odd && c.clocked.Load() {
		x.beforeTurn = startBefore(c.Run.TTL)
	}
	x.servers.After = []time.Duration{0}
	if c.Run.Lock.New != nil {
		x.servers.After = append(x.servers.After, c.Run.TTL) // the instant may be the time of a grant
	}
	x.prepare()
	x.ends = &ends{
		config: c.Run, rules: x.rules, servers: x.servers, facts: x.facts, options: apart(c.Masters, scripts, &namer), failed: x.fail,
	}
	x.ends.lock, x.ends.books = rules.JudgesTheEnd(c.Look)
	x.ends.prepare()
	x.differ = newDifferences(c, x)
	start, err := x.begin(c, scripts)
	if x.overdue.Load() && errors.Is(err, net.ErrClosed) && x.stopped(ctx) {
		stop()
		r, err = x.result(c, start, x.counted(0))
		return r, nil, err
	}
	if errors.Is(err, servers.ErrUnknown) {
		x.err = err
		stop()
		r, err = x.result(c, start, x.counted(0))
		return r, nil, err
	}
	if err != nil {
		return r, nil, err
	}
	defer x.close()
	x.untouched = start.servers
	x.run(ctx, start, c.Progress)
	stats, whole := x.follow(ctx, start, c.Progress)
	if c.System == nil {
		x.repeat(ctx)
	}
	if x.endedEmpty() {
		x.compare(ctx)
	}
	stop()
	if again := x.again(); again != nil {
		return r, again, nil
	}
	if whole {
		stats = x.counted(x.reached)
	}
	if !c.Exhaustive && c.Bounds.Depth == 0 && x.cut.Load() != nil && ctx.Err() == nil && x.best() == nil && x.err == nil && c.Bounds.TimeMS > 0 {
		if stats, again = x.atRandom(ctx, c, start, stats); again != nil {
			return r, again, nil
		}
	}
	r, err = x.result(c, start, stats)
	return r, nil, err
}

// atRandom runs random schedules in the time that a search of all has left, and returns the effort of both. again is as for search.
func (x *search) atRandom(ctx context.Context, c Config, start state, stats reports.Effort) (_ reports.Effort, again error) {
	x.visited = table.Visited{}
	debug.FreeOSMemory() // the random search needs it
	until := x.began.Add(reports.FromMS(c.Bounds.TimeMS))
	stop := x.guard(ctx, c.System, until.Add(time.Second)) // a counterexample may be made shorter
	x.wandered = x.wander(ctx, start, until, c.Progress)
	stop()
	if again := x.again(); again != nil {
		return stats, again
	}
	now := x.counted(x.reached)
	now.States, now.BytesPerState, now.Collision = stats.States, stats.BytesPerState, stats.Collision
	if x.wandered != nil {
		now.Random = x.wandered.report()
	}
	return now, nil
}

// begin opens the scenario and sets up the clients' tries.
func (x *search) begin(c Config, scripts *coro.Scripts) (state, error) {
	var failed error
	_, opened, err := alone{x.servers, x.ends.options, time.Hour, time.Hour}.run(x.servers.Start(c.Masters), 0, clients.Administrator(c.Run, x.servers.Names.DictionaryOfNobody(), func(ctx context.Context, client *scenarios.Client) error {
		return client.Open(ctx)
	}, &failed))
	if err := errors.Join(err, failed); err != nil {
		return state{}, fmt.Errorf("open the scenario: %w", err)
	}
	x.ends.opened = opened
	for i := range x.clients {
		who := Who{Index: int(clients.RoleOf(c.Run, i)), Names: x.servers.Names.Scheme(i)}
		switch {
		case x.servers.Names.Naming >= names.Concrete:
			x.roles[i] = uint8(i) // each has names of its own
		default:
			x.roles[i] = uint8(who.Index)
			who.Names.Client = 0
		}
		if int(x.roles[i]) < len(x.tries) {
			continue
		}
		begin := func(book *names.Dictionary) Execution { return c.execution(who, book, scripts) }
		t, err := clients.New(clients.Options{Start: begin, Names: who.Names, Checked: c.Start == nil, Servers: x.servers, Merge: x.merge, Spans: c.probeSpans(), Sparse: c.System != nil})
		if err != nil {
			return state{}, err
		}
		x.tries = append(x.tries, t)
	}
	return state{servers: opened, facts: x.numbered(x.rules.Start())}, nil
}

func (x *search) close() {
	for _, t := range x.tries {
		t.Close()
	}
}

// result returns the outcome of the search.
func (x *search) result(c Config, start state, stats reports.Effort) (reports.Exploration, error) {
	if x.err != nil && !errors.Is(x.err, servers.ErrUnknown) {
		return reports.Exploration{}, x.err
	}
	r := c.describe()
	r.Stats = stats
	rests := ""
	if x.leased.Load() && r.Stats.Lapses == 0 && c.Bounds.Advances > 0 && (x.rules.LooksFor(variant.Lock, variant.MutualExclusion) || x.rules.LooksFor(variant.Lock, variant.OwnerOnlyRelease)) {
		rests = "no promised lease ran out before it was released, so the promises that rest on leases were not put to the test"
	}
	if err := x.decide(&r, c, start, rests); err != nil {
		return r, err
	}
	r.NotChecked = append(r.NotChecked, x.untried()...)
	if r.Verdict == reports.Pass && x.rules.LooksFor(variant.Lock, variant.OwnerOnlyRelease) && len(x.servers.LockKeys) == 0 && !x.differ.excludes() {
		r.Verdict = reports.Inconclusive
		r.Why = unkeyed
	}
	if why := x.ends.unknown.Load(); why != nil {
		switch {
		case r.Verdict == reports.Pass:
			r.Verdict, r.Why = reports.Inconclusive, unwaited+(*why).Error()
		case r.Why == unkeyed || r.Why == rests:
			r.Why += "; " + unwaited + (*why).Error() // so no promise is said to hold
		}
	}
	r.Properties = c.properties(r, rests)
	x.leaveUntried(c, &r)
	if open := unjudged(r.Properties); r.Verdict == reports.Pass && open != "" {
		r.Why += "; no search judges " + open
	}
	r.Expected, r.ExpectedWhy = c.Run.ExpectUnder(faultsIn(c.Bounds))
	if cx := r.Counterexample; cx != nil {
		r.ExpectedWhy = about(r.ExpectedWhy, cx.Property)
	}
	return r, nil
}

// leaveUntried leaves the promises of a queue open that the search did not put to the test.
func (x *search) leaveUntried(c Config, r *reports.Exploration) {
	for i := range r.Properties {
		switch p := &r.Properties[i]; {
		case p.Of != variant.Queue || p.Result != reports.Holds:
		case p.Name == variant.NotEarly && c.Run.Delay == 0:
			leaveOpen(r, p, "no task was delayed")
		case p.Name == variant.InOrder && !x.rules.Ordered():
			leaveOpen(r, p, "no task was handed out while one waited that was due later: no time passed between them, or their scores are not times")
		}
	}
}

// decide sets the verdict, the reason for it, and the counterexample. rests is the reason why nothing is known of promises
// that rest on leases, or "".
func (x *search) decide(r *reports.Exploration, c Config, start state, rests string) error {
	best := x.best()
	r.Verdict = reports.Inconclusive
	switch {
	case x.servers.Names.Naming >= names.Concrete && x.drawn():
		r.Why = "a client draws values at random by itself, and its behaviour depends on how names are spelled: let it take them from Env.Token"
	case best != nil, x.wandered != nil && x.wandered.found != nil:
		t, err := x.traceOfBest(start, best)
		if err != nil {
			return err
		}
		t.Naming, t.Repeat = int(x.servers.Names.Naming), c.Run.Repeat > 0
		r.Verdict, r.Counterexample = reports.Violated, t
		r.Why = t.Sentence
		r.Stats.Depth = max(r.Stats.Depth, len(t.Steps)) // with what happens in the end
	case x.err != nil:
		r.Why = x.err.Error()
	case x.cut.Load() != nil:
		r.Why = *x.cut.Load()
		if x.wandered != nil {
			r.Why += ", and schedules at random broke nothing"
		}
	case x.ends.never != nil:
		r.Why = "progress is unknown: a client that is alone with empty servers does not get the lock: " + phrase.OneLine(x.ends.never.Error())
	case rests != "":
		r.Why = rests
	case x.beyond.Load() && c.Bounds.Advances > 0:
		r.Why = fmt.Sprintf("the clock was not moved beyond %v, and something would have happened later", servers.Horizon)
	case r.Stats.Entered == 0:
		r.Why = "no client ever entered its section: nothing was put to the test"
		if why := c.failure.Load(); why != nil {
			r.Why += ", since " + *why
		}
	case c.Bounds.Clients == 1 && !slices.ContainsFunc(c.Look, c.testedAlone):
		r.Why = "no schedule of one client breaks a promise, and " + uncontended
	default:
		r.Verdict, r.Why = reports.Pass, "no schedule within these bounds breaks a promise"
	}
	return nil
}

// testedAlone reports whether a search with one client decides a promise within the bounds.
func (c *Config) testedAlone(p history.Promise) bool {
	b := c.Bounds
	return rules.TestedAlone(p) && b.Resends > 0 && b.Lost+b.Late > 0
}

// uncontended is the reason why a search with one client does not decide a promise.
const uncontended = "one client has no contention"

// untried returns what the search did not try, because of what the clients sent and how they used their clocks.
func (x *search) untried() (all []string) {
	if x.wandered != nil && x.wandered.found != nil {
		all = append(all, "whether a shorter schedule breaks it: this one was found at random and then shortened")
	}
	if x.servers.Pipelined.Load() {
		all = append(all, "what others do in the middle of a pipeline: one was sent, and treated as a single step")
	}
	if x.servers.Scripted.Load() {
		all = append(all, "what clients do where a server does not know a script (NOSCRIPT), as after a restart: here all are known from the start")
	}
	if x.servers.Clocked.Load() {
		all = append(all, "parts of a millisecond: a client begins with a whole one, so code that cuts a clock to milliseconds is not seen to end a lease early")
	}
	if x.distant.Load() {
		all = append(all, fmt.Sprintf("what happens when a key that lives for more than %v expires: it is assumed to stay", servers.Horizon))
	}
	if x.unfollowed {
		all = append(all, "clients that use a time which they read before a command only after it, in a way that depends on the answer: not all of that was looked at")
	}
	if x.crowded.Load() {
		all = append(all, "all the times that the servers hold as data: there are too many, so the latest were left out")
	}
	if left := x.compared.Sentence(); left != "" {
		all = append(all, left)
	}
	if slices.ContainsFunc(x.tries, func(t *clients.Trie) bool { return t.Blind() }) {
		all = append(all, "some of the instants with which the clients compare their clocks: there are too many")
	}
	if slices.ContainsFunc(x.tries, func(t *clients.Trie) bool { return t.Vague() }) {
		all = append(all, "clients that use the time in other ways than by adding to it: whether they behave differently from some time on")
	}
	return all
}

// drawn reports whether a client has drawn values at random.
func (x *search) drawn() bool {
	return slices.ContainsFunc(x.tries, func(t *clients.Trie) bool {
		return slices.ContainsFunc(t.Nodes(), func(n *clients.Node) bool { return n.Values > 0 })
	})
}

// unkeyed says why owner-only-release was not judged.
const unkeyed = "it is not known what the lock is: acquiring it changes no key that releasing it changes, or that expires, and keeps no other client out; so owner-only-release was not judged"

// unwaited says why progress was not judged.
const unwaited = "progress was not judged, since a client that waits for the lock sends what a search cannot execute: "

// held reports whether a search ended and found no promise broken, though it may not have judged progress.
func held(r reports.Exploration) bool {
	return r.Verdict == reports.Pass || strings.HasPrefix(r.Why, unwaited)
}

// unjudged names the promises that a search leaves open.
func unjudged(ps []reports.Property) string {
	var open []string
	for _, p := range ps {
		if p.Result == reports.Unknown {
			open = append(open, fmt.Sprintf("%s of the %s", p.Name, p.Of))
		}
	}
	return strings.Join(open, ", ")
}

// about returns the declared flaws that break this promise.
func about(flaws []string, p variant.Property) (of []string) {
	for _, why := range flaws {
		if strings.Contains(why, ", "+string(p)+": ") {
			of = append(of, why)
		}
	}
	return of
}

// extends reports whether the lock is extended in a section.
func (c *Config) extends() bool { return c.Run.Scenario.Extends && c.Run.Hold > c.Run.TTL/2 }

// describe fills in the facts known before the search.
func (c *Config) describe() reports.Exploration {
	r := reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: c.Run.Scenario.Name,
		Lock: c.Run.Lock.Name, Masters: c.Masters, Bounds: c.Bounds,
		TTLMS: reports.InMS(c.Run.TTL), HoldMS: reports.InMS(c.Run.Hold), NotChecked: c.notChecked(),
	}
	if c.Run.Scenario.Uses(variant.Sale) {
		r.Sale, r.Stock, r.Quantity = c.Run.Sale.Name, c.Run.Stock, c.Run.Quantity
	}
	if c.Run.Scenario.Uses(variant.Queue) {
		r.Queue, r.VisibilityMS = c.Run.Queue.Name, reports.InMS(c.Run.QueueOptions.Visibility)
	}
	if c.Run.Scenario.Uses(variant.IDs) {
		r.IDs = c.Run.IDs.Name
	}
	if c.System != nil {
		r.System = c.System.Path
	}
	return r
}

// properties returns the verdicts, one for each promise.
func (c *Config) properties(r reports.Exploration, rests string) (ps []reports.Property) {
	promised := c.Run.Promises()
	for _, p := range c.Look {
		if !slices.Contains(promised, p) {
			promised = append(promised, p)
		}
	}
	for _, p := range promised {
		row := reports.Property{Of: p.Of, Name: p.Property, Result: reports.Unknown, Measured: reports.Unknown, Witness: []history.Op{}}
		switch cx := r.Counterexample; {
		case !rules.CanJudge(p.Of, p.Property):
			row.Why = "a search judges states, not whole histories: see oversell run"
		case !slices.Contains(c.Look, p) && p == ownerOnly && !lockfinding.Exclusive(c.Run.Lock):
			row.Why = lockfinding.Shared
		case !slices.Contains(c.Look, p):
			row.Why = "not looked for"
		case cx != nil && cx.Of == p.Of && cx.Property == p.Property:
			row.Result, row.Why = reports.Broken, cx.Sentence
		case cx != nil:
			row.Why = "the search ended when it found another promise broken; name this one to judge it (--property)"
		case r.Verdict == reports.Pass && c.Bounds.Clients == 1 && !c.testedAlone(p):
			row.Why = uncontended
		case r.Verdict == reports.Pass, r.Why == rests && p.Of != variant.Lock, r.Why == unkeyed && p != ownerOnly,
			strings.HasPrefix(r.Why, unwaited) && p != history.Promise{Of: variant.Lock, Property: variant.Progress}:
			row.Result, row.Why = reports.Holds, "in all schedules within the bounds"
		default:
			row.Why = r.Why
		}
		ps = append(ps, row)
	}
	return ps
}

// notChecked lists what a search does not check.
func (c *Config) notChecked() []string {
	s := []string{
		"linearizable and fifo, which depend on whole histories: use oversell run",
		"more clients, tries or faults than the bounds allow",
		"times other than those at which a key expires, a sleep, a time limit or a promised lease ends, a stored time comes, or a client would act differently on its clock",
		"what code does only in a part of each second, minute or hour that lies between the times at which it is tried, such as from 150 ms to 179 ms",
		"what a lost master, a failover, an eviction or a step of a server's clock does (see oversell run --fault)",
	}
	if c.Run.Lock.New != nil {
		s = append(s, "more than one name, and leases of several lengths: all ask for the same lock in the same way")
		if c.System == nil && !c.extends() {
			s = append(s, "extensions of the lock: no section is longer than half its lease (--hold, of the scenario mutex)")
		}
	}
	s = append(s, "clocks that differ: the clients and the servers show the same time")
	if c.Run.Scenario.Uses(variant.Queue) {
		s = append(s, "several producers at once")
	}
	if c.Run.Scenario.Uses(variant.Sale) {
		s = append(s, fmt.Sprintf("other stocks than %d, and orders of another size than %d (--stock, --quantity)", c.Run.Stock, c.Run.Quantity))
	}
	s = append(s, "errors that a server answers with, such as OOM, READONLY or LOADING")
	if c.Bounds.Stalls == 0 {
		s = append(s, "clients that are held up between a look at the clock and what they do next (--stalls; in Go tests Bounds.Stalls)")
	}
	if c.Start != nil && c.Bounds.Stalls > 0 {
		s = append(s, "clients that are held up between two readings of the clock after one answer: code in a bubble reads it unnoticed")
	}
	if c.Start != nil {
		s = append(s, "what goroutines in a bubble do after they have slept twice since their client ended")
	}
	if c.Run.Scenario.Uses(variant.Sale) && c.Run.Refund <= 0 {
		s = append(s, "orders that are refunded: see oversell run --refund")
	}
	if c.System != nil {
		s = append(s, c.System.NotSearched()...)
	}
	if c.Run.MaxTries == 1 {
		s = append(s, "waiting for the lock, unless it waits though it is asked for one attempt only")
	}
	return s
}
