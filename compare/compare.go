// Package compare runs variants against each other under the same settings, loads and faults, and reports which of
// them kept their promises and how fast they were.
//
// A comparison consists of cells: a contender, which is a combination of variants, in a configuration, which is
// everything else. A round runs the cells in random order, so that other load on the machine affects all alike, and
// with the same seed, so that contenders can be compared round by round. A configuration that is added to see what
// breaks takes part in the first rounds only.
//
// The runs that test promises, sales to the last piece, take milliseconds and say little about speed. So in
// configurations without faults each round runs each cell twice: first all to their end, then all for a fixed time
// that is measured.
//
// The absence of violations proves nothing if a violation could not have been caught. So each configuration has a
// control: a variant that is declared to break under these settings and faults. If it is not caught, the
// configuration shows nothing.
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/campaign/judging"
	"oversell/faults"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/system"
	"oversell/variant"
)

// Plan is a comparison. It can be run once.
type Plan struct {
	// Notes are about flags whose values take effect only in part.
	Notes []string

	rounds  int           // 0: no limit
	time    time.Duration // 0: no limit
	dir     string
	sql     campaign.Plan // the database, and whether to write JSON lines
	work    string
	window  window // zero: whole runs are measured
	waiting string
	seed    uint64
	name    string // of the scenario

	contenders     []reports.Contender
	configurations []*configuration
	cells          []*cell // ordered by configuration, then by contender
	alone          []*lone
	skipped        []string
	conditions     []string
	command        string
}

// configuration is everything but the contender.
type configuration struct {
	options campaign.Options // of every run in it
	report  reports.Configuration
	control control
	// added means that the user did not choose it; rounds is then how many rounds run it.
	added  bool
	rounds int // 0: all
}

// in reports whether the configuration is run in round n.
func (f *configuration) in(n int) bool { return f.rounds == 0 || n <= f.rounds }

// cell is a contender in a configuration, with its results.
type cell struct {
	contender, configuration int
	subject
	timed *subject // the same for a fixed time; nil: the run to its end is measured
	lone  *lone
	tally
}

// lone is a contender with a single client.
type lone struct {
	key string
	subject
	tally
}

// subject is a run and its target.
type subject struct {
	config scenarios.Config
	spec   server.Spec
	window window // the part that is measured; zero: all
}

// New resolves names into a comparison. It refuses one that is impossible before anything is started.
func New(ctx context.Context, o *Options) (*Plan, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	scenario, err := campaign.Find("scenario", o.Scenario, scenarios.All, func(s scenarios.Scenario) string { return s.Name })
	if err != nil {
		return nil, err
	}
	if o.System != "" {
		if o.Outside, err = system.Read(o.System); err != nil {
			return nil, err
		}
	}
	o.scale(scenario)
	p := &Plan{
		rounds: o.Rounds, time: o.Time, dir: o.Dir, sql: campaign.Plan{SQL: o.Database(), JSONL: o.JSONL, Outside: o.Outside},
		window: o.window(), waiting: string(o.Waiting), seed: o.Seed, name: scenario.Name, command: o.command(), conditions: o.conditions(scenario),
	}
	_, p.work = judging.WorkIn(scenario.Uses)
	if p.configurations, err = o.configurations(); err != nil {
		return nil, err
	}
	first := p.configurations[0].options
	base, err := first.Base()
	if err != nil {
		return nil, err
	}
	if p.contenders, err = o.contenders(first, base); err != nil {
		return nil, err
	}
	if err := p.fill(ctx); err != nil {
		return nil, err
	}
	if err := o.ineffective(p); err != nil {
		return nil, err
	}
	if err := o.unused(p); err != nil {
		return nil, err
	}
	return p, p.chooseControls(ctx, base)
}

// scale reduces the default load for the emulation, if any target is one, and for a quick comparison.
func (o *Options) scale(s scenarios.Scenario) {
	for _, t := range o.targetNames() {
		x := o.Options
		x.Target.Target = t
		if x.SuitEmulation(); x.Clients != o.Clients || x.Stock != o.Stock {
			o.Clients, o.Stock = x.Clients, x.Stock
			break // the same for all targets, so that they can be compared
		}
	}
	bounded := o.Set("duration") || o.Set("ops")
	switch {
	case !o.Quick:
	case s.Uses(variant.Sale) && !o.Set("stock"):
		o.Stock = quickStock
	case s.Uses(variant.Sale) || bounded:
	case s.Uses(variant.Dispatch):
		o.Ops = quickTasks
	case s.Uses(variant.Queue), s.Uses(variant.IDs):
		o.Ops = quickOps
	}
	// A scenario with only a lock has no end of its own: each of its runs has a time limit.
	if w := o.window(); len(s.Objects) == 1 && len(o.Faults) == 0 && !bounded && w != (window{}) {
		o.Duration = w.ends()
	}
}

// Sizes of the runs of a quick comparison.
const (
	quickStock = 200
	quickOps   = 400
	quickTasks = 100
)

// By default a quick comparison has the most common locks, one that is known to break, and the one sale that needs
// no lock.
var (
	quickLocks = []string{"lua-release", "watchdog", "fenced", "php-lock-printed"}
	quickSales = []string{"lua"}
)

func (o *Options) targetNames() []string {
	if len(o.targets.values) > 0 {
		return o.targets.values
	}
	return []string{o.Target.Target}
}

// configurations returns all combinations of targets, fault sets and values of flags that have several.
func (o *Options) configurations() (all []*configuration, err error) {
	sets, err := o.faultSets()
	if err != nil {
		return nil, err
	}
	var swept []*several
	for _, s := range o.swept {
		if s.sweeps() {
			swept = append(swept, s)
		}
	}
	for _, t := range o.targetNames() {
		for _, set := range sets {
			for settings := range product(swept) {
				x := o.Options
				x.Target.Target, x.Faults = t, set
				x.Set = func(flag string) bool { return flag != "lock" && o.Set(flag) } // a contender need not have a lock
				all = append(all, &configuration{options: x, report: reports.Configuration{Target: x.Target.String(), Topology: x.Target.Topology, Faults: set, Swept: settings}})
			}
		}
	}
	if o.outlives() {
		for _, f := range slices.Clone(all) {
			all = append(all, f.outliving(o))
		}
	}
	return all, nil
}

// outliving returns a configuration like f in which sections outlive their lease.
func (f *configuration) outliving(o *Options) *configuration {
	x, told := f.options, f.report
	x.TTL, x.Faults = shortLease, []string{outlived}
	if x.Duration == 0 || x.Duration < outlivedFor {
		x.Duration = outlivedFor // for runs without an end of their own; a sale ends earlier
	}
	told.Swept, told.Faults = append(slices.Clone(told.Swept), fmt.Sprintf("--ttl=%v", shortLease)), x.Faults
	rounds := addedRounds
	if o.Quick {
		rounds = 1
	}
	return &configuration{options: x, report: told, added: true, rounds: rounds}
}

// product sets the flags to each combination of their values in turn, and yields it as command-line arguments.
func product(swept []*several) func(yield func([]string) bool) {
	return func(yield func([]string) bool) { combine(swept, nil, yield) }
}

func combine(swept []*several, settings []string, yield func([]string) bool) bool {
	if len(swept) == 0 {
		return yield(slices.Clone(settings))
	}
	s := swept[0]
	for _, v := range s.values {
		s.Value.Set(v) // parsed before, so no error
		if !combine(swept[1:], append(settings, s.setting(v)), yield) {
			return false
		}
	}
	return true
}

// contenders returns the combinations of variants to compare.
func (o *Options) contenders(x campaign.Options, base scenarios.Config) (all []reports.Contender, err error) {
	add := func(c scenarios.Config) {
		if who := campaign.ContenderOf(c); !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	free := lockFree(o, x, base)
	for x := range o.named(x) {
		if q, known := queueimpl.Find(x.Queue); len(o.queues.values) > 1 && known && !q.Locked {
			x.Locks = nil // it takes no lock, but other variants that were named may
		}
		cs, err := x.Combinations(base)
		if err != nil {
			return nil, err
		}
		for _, c := range cs {
			// A control is compared only if it was named.
			onPurpose := len(o.Locks) == 0 && c.Lock.Control || len(o.queues.values) == 0 && c.Queue.Control
			beyond := o.Quick && len(o.Locks) == 0 && c.Lock.New != nil && !slices.Contains(quickLocks, c.Lock.Name)
			if !onPurpose && !beyond {
				add(c)
			}
		}
	}
	for _, c := range free {
		add(c)
	}
	outside, err := o.outside(x, base)
	for _, c := range outside {
		add(c)
	}
	return all, err
}

// outside returns the combinations of the system, if there is one, with the other named variants.
func (o *Options) outside(x campaign.Options, base scenarios.Config) (all []scenarios.Config, err error) {
	if o.Outside == nil {
		return nil, nil
	}
	for x := range o.named(x) {
		x.Set = nil // other named variants are compared with it
		if o.Outside.Object != variant.Lock && len(o.Locks) == 0 {
			x.Locks = nil
		}
		if err := x.Serve(o.Outside); err != nil {
			return nil, fmt.Errorf("--system %s: %w", o.System, err)
		}
		cs, err := x.Combinations(base)
		if err != nil {
			return nil, err
		}
		all = append(all, cs...)
	}
	return all, nil
}

// named returns the options for each combination of the named sales, queues, generators and dispatches.
func (o *Options) named(x campaign.Options) func(yield func(campaign.Options) bool) {
	return func(yield func(campaign.Options) bool) {
		for _, x.Sale = range o.sales.names() {
			for _, x.Queue = range o.queues.names() {
				for _, x.IDs = range o.ids.names() {
					for _, x.Dispatch = range o.dispatches.names() {
						if !yield(x) {
							return
						}
					}
				}
			}
		}
	}
}

// lockFree returns the combinations that need no lock, if no lock was named.
func lockFree(o *Options, x campaign.Options, base scenarios.Config) (cs []scenarios.Config) {
	if len(o.Locks) > 0 {
		return nil
	}
	for _, c := range unlocked(x, base) {
		outcome, _ := c.Expect()
		foreign := len(o.sales.values) > 0 && !slices.Contains(o.sales.values, c.Sale.Name) || len(o.ids.values) > 0 && !slices.Contains(o.ids.values, c.IDs.Name)
		onPurpose := len(o.sales.values) == 0 && (c.Sale.Control || c.Sale.Needs.SQL) || c.Dispatch.Control
		beyond := o.Quick && c.Sale.Name != "" && len(o.sales.values) == 0 && !slices.Contains(quickSales, c.Sale.Name)
		if outcome == scenarios.ExpectPass && len(c.Promises()) > 0 && !foreign && !onPurpose && !beyond {
			cs = append(cs, c)
		}
	}
	return cs
}

// unlocked returns all combinations without a lock, whose lock promises nothing, in scenarios in which another
// object makes promises.
func unlocked(x campaign.Options, base scenarios.Config) (cs []scenarios.Config) {
	if base.Scenario.Uses(variant.Queue) {
		return nil // in that case lock-free variants already have none
	}
	for _, l := range lockimpl.Variants {
		if (scenarios.Config{Lock: l}).Locks() {
			continue
		}
		x.Locks = []string{l.Name}
		for _, x.Sale = range usedNames(base, variant.Sale) {
			for _, x.IDs = range usedNames(base, variant.IDs) {
				for _, x.Dispatch = range usedNames(base, variant.Dispatch) {
					more, err := x.Combinations(base)
					if err == nil { // all names are known
						cs = append(cs, more...)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(cs, func(c scenarios.Config) bool { return c.Complete(1) != nil })
}

// usedNames returns the names of all variants of an object that the scenario uses.
func usedNames(c scenarios.Config, of variant.Object) []string {
	if !c.Scenario.Uses(of) {
		return []string{""}
	}
	return campaign.Shipped(of)
}

// subjectOf returns a contender with these options. The error is of class [scenarios.Unmet] if it cannot run.
func subjectOf(ctx context.Context, o campaign.Options, c reports.Contender) (subject, error) {
	o.Locks, o.Sale, o.Queue, o.IDs, o.Dispatch = nil, c.Sale, c.Queue, c.IDs, c.Dispatch
	if c.Lock != "" {
		o.Locks = []string{c.Lock}
	}
	p, err := o.Plan(ctx)
	if err != nil {
		return subject{}, err
	}
	return subject{config: p.Runs[0], spec: p.Target}, nil // all variants are named, so it is one run
}

// fill creates the cells.
func (p *Plan) fill(ctx context.Context) error {
	for i, f := range p.configurations {
		var first error
		for j, who := range p.contenders {
			s, err := subjectOf(ctx, f.options, who)
			// The added fault affects holders, and is refused in runs without a lock.
			if f.added && (err == nil && !s.config.Locks() || errors.As(err, new(*faults.ParseError))) {
				p.skip(who, fmt.Errorf("it has no lease that a section could outlive, so it runs only without that fault"))
				continue
			}
			switch {
			case errors.As(err, new(scenarios.Unmet)):
				first = cmp.Or(first, err)
				p.skip(who, err)
				continue
			case err != nil:
				return err
			}
			x := &cell{contender: j, configuration: i, subject: s}
			if err := p.addTimed(ctx, f, x); err != nil {
				return err
			}
			if x.lone, err = p.loneOf(ctx, f, who); err != nil {
				return err
			}
			p.cells = append(p.cells, x)
		}
		if p.in(i) == nil && !f.added {
			return first
		}
	}
	p.dropEmpty()
	return nil
}

// dropEmpty removes added configurations that no contender can run in.
func (p *Plan) dropEmpty() {
	var rest []*configuration
	for i, f := range p.configurations {
		cells := p.in(i)
		if f.added && cells == nil {
			continue
		}
		for _, x := range cells {
			x.configuration = len(rest)
		}
		rest = append(rest, f)
	}
	p.configurations = rest
}

// in returns the cells of a configuration.
func (p *Plan) in(configuration int) (cells []*cell) {
	for _, x := range p.cells {
		if x.configuration == configuration {
			cells = append(cells, x)
		}
	}
	return cells
}

// skip records why a contender is left out, each reason once.
func (p *Plan) skip(who reports.Contender, why error) {
	text := fmt.Sprintf("%s: %v", who, why)
	if !slices.Contains(p.skipped, text) {
		p.skipped = append(p.skipped, text)
	}
}

// Limits of a run with a single client, by time and by pieces of work, if whole runs are measured.
const (
	aloneOps  = 400
	aloneTime = 300 * time.Millisecond
)

// loneOf returns the contender with a single client on the same target, with the settings that matter to one
// client.
func (p *Plan) loneOf(ctx context.Context, f *configuration, who reports.Contender) (*lone, error) {
	settings := slices.DeleteFunc(slices.Clone(f.report.Swept), func(s string) bool {
		return strings.HasPrefix(s, "--clients=") || strings.HasPrefix(s, "--stock=") || strings.HasPrefix(s, "--pool=")
	})
	key := strings.Join(append(settings, f.options.Target.Target, who.String()), " ")
	for _, l := range p.alone {
		if l.key == key {
			return l, nil
		}
	}
	x := f.options
	x.Faults, x.Clients, x.Pool, x.Resend, x.Die = nil, 1, 0, scenarios.None, 0
	x.Ops, x.Duration, x.Stock = aloneOps, aloneTime, aloneOps
	w := p.windowOf(who).half()
	if w != (window{}) {
		x = w.timed(x)
	}
	if who.Queue != "" {
		x.Clients = 2 // one to enqueue, one to pop
	}
	s, err := subjectOf(ctx, x, who)
	if err != nil {
		return nil, err
	}
	s.window = w
	l := &lone{key: key, subject: s}
	p.alone = append(p.alone, l)
	return l, nil
}

// ineffective refuses a flag that matters in no cell, and notes those that take effect only in part.
func (o *Options) ineffective(p *Plan) (err error) {
	var runs []campaign.Subject
	for _, x := range p.cells {
		runs = append(runs, campaign.Subject{Config: x.config, Spec: x.spec})
	}
	p.Notes, err = o.Effective(runs)
	return err
}

// unused refuses a named variant that cannot run anywhere.
func (o *Options) unused(p *Plan) error {
	var used []string
	for _, x := range p.cells {
		for _, s := range x.config.Subjects() {
			used = append(used, string(s.Of)+" "+s.Name)
		}
	}
	for _, named := range []struct {
		of    variant.Object
		names []string
	}{{variant.Lock, o.Locks}, {variant.Sale, o.sales.values}, {variant.Queue, o.queues.values}, {variant.IDs, o.ids.values}, {variant.Dispatch, o.dispatches.values}} {
		for _, name := range named.names {
			if !slices.Contains(used, string(named.of)+" "+name) {
				i := slices.IndexFunc(p.skipped, func(s string) bool { return strings.Contains(s, name) })
				if i < 0 {
					return fmt.Errorf("%s %s cannot run with any other variant that was named", named.of, name)
				}
				return errors.New(p.skipped[i])
			}
		}
	}
	return nil
}

// conditions returns the settings that all runs share, as flags: the size of the load, and the flags that were set.
func (o *Options) conditions(s scenarios.Scenario) (settings []string) {
	notable := []string{"clients", "ttl"}
	if s.Uses(variant.Sale) {
		notable = append(notable, "stock")
	}
	other := []string{"scenario", "target", "fault", "faults-only", "rounds", "time", "measure", "quick", "plain", "seed", "waiting", "out", "json", "jsonl", "allow-remote", "sql"}
	o.flags.VisitAll(func(f *pflag.Flag) {
		if several, ok := f.Value.(*several); ok && several.sweeps() || slices.Contains(variant.Objects, variant.Object(f.Name)) || slices.Contains(other, f.Name) {
			return
		}
		if f.Changed || slices.Contains(notable, f.Name) {
			value := o.value(f)
			if f.Name == "ttl" && !f.Changed {
				value = s.DefaultLease().String()
			}
			settings = append(settings, "--"+f.Name+"="+value)
		}
	})
	return settings
}

// value returns the effective value of a flag, which may differ from its default.
func (o *Options) value(f *pflag.Flag) string {
	if s, ok := f.Value.(*several); ok && len(s.values) == 0 {
		return s.Value.String()
	}
	return f.Value.String()
}

// command returns the command line that repeats the comparison, without passwords.
func (o *Options) command() string {
	words := []string{"oversell", "compare"}
	add := func(flag string, values ...string) {
		for _, v := range values {
			words = append(words, "--"+flag, phrase.ShellWord(v))
		}
	}
	o.flags.VisitAll(func(f *pflag.Flag) {
		if !f.Changed && f.Name != "seed" || f.Name == "out" || f.Name == "json" {
			return
		}
		list, isList := f.Value.(pflag.SliceValue)
		switch {
		case f.Value.Type() == "bool" && f.Value.String() == "true":
			words = append(words, "--"+f.Name)
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name+"=false")
		case f.Name == "target":
			for _, t := range o.targetNames() {
				add(f.Name, server.Spec{Target: t}.String())
			}
		case f.Name == "sql":
			add(f.Name, o.SQL.String())
		case f.Name == "fault":
			add(f.Name, list.GetSlice()...)
		case isList:
			add(f.Name, strings.Join(list.GetSlice(), ","))
		default:
			add(f.Name, f.Value.String())
		}
	})
	return strings.Join(words, " ")
}
