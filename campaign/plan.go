package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"oversell/database"
	"oversell/dispatchimpl"
	"oversell/faults"
	"oversell/load"
	"oversell/load/arrival"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/scenarios"
	"oversell/server"
	"oversell/system"
	"oversell/variant"
)

// Options are the settings of a campaign, by name.
type Options struct {
	Scenario string
	Locks    []string // empty: every shipped one
	Sale     string   // empty: the lock's default
	IDs      string   // empty: the default
	Queue    string   // empty: every shipped one
	Dispatch string   // empty: the lock's default
	// System is the path of a file that describes a system, which replaces one of the variants.
	System string
	SQL    database.Spec
	Target server.Spec

	// Engine and RTT are those of scenarios.Config.
	Engine string
	RTT    time.Duration

	Clients, Quantity, Pool          int
	Stock, Ops                       int64
	Resend, Refund                   float64
	TTL, Wait, Retry, Hold, Duration time.Duration
	Timeout                          time.Duration
	Waiting                          load.Waiting
	Seed                             uint64
	JSONL                            bool

	// Rate or Stages, one of them, is the rate of arrivals of an open load; Arrival is their distribution; see
	// scenarios.Config.
	Rate, Stages arrival.Rate
	Arrival      arrival.Process

	// Faults are sentences of package faults.
	Faults []string

	// Set reports which flags were given, by name; nil: none. A flag without effect is refused, unless Shared
	// reports that it was given for other runs, too.
	Set, Shared func(flag string) bool

	QueueOptions queueimpl.Options
	Delay        time.Duration
	Repeat, Die  float64
	Abandon      int
	// Batch, Withdraw and Peek are additional operations of queue clients, as in scenarios.Config; RefuseStale
	// belongs to the sale.
	Batch          int
	Withdraw, Peek float64
	RefuseStale    bool

	Outside *system.System // the system that System names
}

// DefaultDir returns the default directory of a campaign that begins now; it does not exist yet.
func DefaultDir(now time.Time) string {
	dir := filepath.Join("oversell-runs", now.Format("20060102-150405"))
	for n := 2; ; n++ {
		if _, err := os.Stat(dir); err != nil {
			return dir
		}
		dir = filepath.Join("oversell-runs", fmt.Sprintf("%s-%d", now.Format("20060102-150405"), n))
	}
}

// NewPlan resolves names into a plan. It refuses combinations that cannot run before anything is started.
func NewPlan(ctx context.Context, o Options) (Plan, error) {
	o.SuitEmulation()
	if err := o.readSystem(); err != nil {
		return Plan{}, err
	}
	p, err := o.Plan(ctx)
	if err != nil {
		return p, err
	}
	var runs []Subject
	for _, c := range p.Runs {
		runs = append(runs, Subject{Config: c, Spec: p.Target})
	}
	p.Notes, err = o.Effective(runs)
	if err != nil {
		return Plan{}, err
	}
	return p, nil
}

// CheckLockNames refuses a list of locks that is empty although set, or that holds an empty name or a name twice.
func CheckLockNames(locks []string, set bool) error {
	if slices.Contains(locks, "") || set && len(locks) == 0 {
		return errors.New("--lock has an empty name (see: oversell list)")
	}
	for i, name := range locks {
		if slices.Contains(locks[:i], name) {
			return fmt.Errorf("--lock %s is given twice", name)
		}
	}
	return nil
}

// meant reports whether a flag was set for just these runs.
func (o Options) meant(flag string) bool {
	return o.Set != nil && o.Set(flag) && (o.Shared == nil || !o.Shared(flag))
}

// Database returns the database, with the same permissions as the target.
func (o Options) Database() database.Spec {
	o.SQL.AllowRemote, o.SQL.Mend = o.Target.AllowRemote, o.Target.Mend
	return o.SQL
}

// Plan returns the plan for exactly these settings; [NewPlan] first adapts defaults to the target.
func (o Options) Plan(ctx context.Context) (Plan, error) {
	o.SQL = o.Database()
	base, err := o.Base()
	if err != nil {
		return Plan{}, err
	}
	for _, f := range base.Faults {
		o.Target.Clocks = o.Target.Clocks || f.Kind.Name == "clock-node"
	}
	combinations, err := o.Combinations(base)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Target: o.Target, SQL: o.SQL, JSONL: o.JSONL, Outside: o.Outside}
	var unfit error // of the first combination that cannot have a fault
	if slices.ContainsFunc(combinations, scenarios.Config.NeedsSQL) {
		if err := o.SQL.Validate(ctx); err != nil {
			return Plan{}, err
		}
	}
	for _, c := range combinations {
		masters, err := SpecFor(o.Target, c.Lock).Masters(ctx)
		if err != nil {
			return Plan{}, err
		}
		// A sweep leaves out combinations that cannot run; a named one must be able to.
		err = c.Complete(masters)
		if err == nil {
			err = o.fitEngine(c)
		}
		if err == nil {
			err = o.fitSystem(c)
		}
		if err == nil && len(c.Faults) > 0 {
			err = o.fitServers(ctx, c)
		}
		switch {
		case err == nil:
			p.Runs = append(p.Runs, c)
		case o.Sweeps() && errors.As(err, new(scenarios.Unmet)):
			p.Skipped = append(p.Skipped, err.Error())
		case o.Sweeps() && (errors.As(err, new(*faults.ParseError)) || errors.Is(err, server.ErrUsage)):
			p.Skipped = append(p.Skipped, fmt.Sprintf("%s: %v", runName(0, c)[3:], err))
			unfit = cmp.Or(unfit, err)
		default:
			return Plan{}, err
		}
	}
	if len(p.Runs) == 0 && unfit != nil {
		return Plan{}, unfit
	}
	return p, nil
}

// Sweeps reports whether the runs cover every shipped variant, because no lock, queue or system was named: they
// demonstrate the declared flaws.
func (o Options) Sweeps() bool { return len(o.Locks) == 0 && o.Queue == "" && o.System == "" }

// fitEngine refuses combinations that the engine does not support.
func (o Options) fitEngine(c scenarios.Config) error {
	switch {
	case c.Engine != load.Coroutines:
		return nil
	case o.System != "":
		return errors.New("--system cannot be used with --engine mux: clients would block while they wait for the system; use --engine goroutine")
	case o.Target.Topology == "cluster":
		return scenarios.ErrClusterMux
	}
	return nil
}

// fitSystem refuses operations that the run's system does not have.
func (o Options) fitSystem(c scenarios.Config) error {
	if !serves(o.Outside, c) {
		return nil
	}
	if err := o.Outside.Fits(c.Refund > 0, c.Quantity); err != nil {
		return fmt.Errorf("system %s: %w", o.Outside.Name, err)
	}
	return o.fitFaults(c)
}

// fitServers refuses faults on servers that do not exist, if that is known before any is started.
func (o Options) fitServers(ctx context.Context, c scenarios.Config) error {
	spec := SpecFor(o.Target, c.Lock)
	for _, f := range c.Faults {
		if !f.Kind.Replica {
			continue
		}
		if err := spec.CanFailOver(ctx); err != nil {
			return err
		}
	}
	all, err := spec.Members(ctx)
	if err != nil || len(all) == 0 {
		return err
	}
	return c.FitServers(all)
}

// Base returns the settings that all runs share: everything except the variants.
func (o Options) Base() (c scenarios.Config, err error) {
	c = scenarios.Config{
		Engine: o.Engine, RTT: o.RTT, Clients: o.Clients, Pool: o.Pool, Waiting: o.Waiting, Seed: o.Seed,
		Stock: o.Stock, Quantity: o.Quantity, Resend: o.Resend, Refund: o.Refund,
		TTL: o.TTL, Wait: o.Wait, Retry: o.Retry, Hold: o.Hold, Duration: o.Duration, Ops: o.Ops,
		Timeout: o.Timeout, QueueOptions: o.QueueOptions, Delay: o.Delay, Repeat: o.Repeat, Die: o.Die, Abandon: o.Abandon,
		Batch: o.Batch, Withdraw: o.Withdraw, Peek: o.Peek, RefuseStale: o.RefuseStale, Arrival: o.Arrival,
	}
	if c.Rate, err = o.openLoad(); err != nil {
		return c, err
	}
	if c.Scenario, err = Find("scenario", o.Scenario, scenarios.All, func(s scenarios.Scenario) string { return s.Name }); err != nil {
		return c, err
	}
	if err := CheckLockNames(o.Locks, o.Set != nil && o.Set("lock")); err != nil {
		return c, err
	}
	if o.Set != nil && o.Set("rtt") && o.RTT == 0 {
		c.RTT = scenarios.None
	}
	if o.Set != nil && o.Set("delay") && o.Delay == 0 {
		c.Delay = scenarios.None
	}
	if o.Set != nil && o.Set("repeat") && o.Repeat == 0 {
		c.Repeat = scenarios.None
	}
	if o.Set != nil && o.Set("abandon") && o.Abandon == 0 {
		c.Abandon = scenarios.None
	}
	if o.Set != nil && o.Set("resend") && o.Resend == 0 {
		c.Resend = scenarios.None
	}
	for _, sentence := range o.Faults {
		f, err := faults.Parse(sentence)
		if err != nil {
			return c, err
		}
		c.Faults = append(c.Faults, f)
	}
	return c, nil
}

// Defaults on the emulation: a script takes it 0.2 ms of CPU time, and a sweep should take seconds there, too.
const (
	emulatedClients = 16
	emulatedStock   = 200
)

// SuitEmulation reduces the default load for the emulation.
func (o *Options) SuitEmulation() {
	if o.Set == nil || !o.Target.Embeds() {
		return
	}
	if !o.Set("clients") {
		o.Clients = emulatedClients
	}
	if !o.Set("stock") {
		o.Stock = emulatedStock
	}
}

// Combinations returns the variants to run: the named ones; otherwise every lock, or every queue, and the default
// of the rest.
func (o Options) Combinations(base scenarios.Config) (cs []scenarios.Config, err error) {
	if base.Scenario.Uses(variant.Queue) {
		return o.queues(base)
	}
	for _, name := range o.locks() {
		c := base
		if c.Lock, err = find("lock", lockimpl.CurrentName(name), o.lockVariants()); err != nil {
			return nil, err
		}
		if c, err = o.withSale(c, cmp.Or(o.Sale, defaultSale(c.Lock))); err != nil {
			return nil, err
		}
		if c.Scenario.Uses(variant.IDs) {
			if c.IDs, err = find("generator (--ids)", cmp.Or(o.IDs, defaultIDs), o.idsVariants()); err != nil {
				return nil, err
			}
		}
		if c.Scenario.Uses(variant.Dispatch) {
			if c.Dispatch, err = find("dispatch", cmp.Or(o.Dispatch, defaultDispatch(c.Lock)), dispatchimpl.Variants); err != nil {
				return nil, err
			}
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// queueLocks are the default locks of a queue that needs one: the one it was printed with, and the corrected one.
var queueLocks = []string{"php-lock-printed", "lua-release"}

// queues returns the combinations of queues and, for those that take one, locks.
func (o Options) queues(base scenarios.Config) (cs []scenarios.Config, err error) {
	wanted := []string{o.Queue}
	if o.Queue == "" {
		wanted = Shipped(variant.Queue)
	}
	for _, name := range wanted {
		c := base
		if c.Queue, err = find("queue", name, o.queueVariants()); err != nil {
			return nil, err
		}
		locks := o.Locks
		switch {
		case !c.Queue.Locked && len(locks) > 0 && o.Queue != "":
			return nil, fmt.Errorf("queue %s takes no lock: leave out --lock", name)
		case !c.Queue.Locked:
			if c, err = o.withSale(c, cmp.Or(o.Sale, "lua")); err != nil {
				return nil, err
			}
			cs = append(cs, c)
			continue
		case len(locks) == 0:
			locks = queueLocks
		}
		for _, name := range locks {
			if c.Lock, err = find("lock", lockimpl.CurrentName(name), o.lockVariants()); err != nil {
				return nil, err
			}
			if c, err = o.withSale(c, cmp.Or(o.Sale, defaultSale(c.Lock))); err != nil {
				return nil, err
			}
			cs = append(cs, c)
		}
	}
	return cs, nil
}

// withSale returns c with the named sale, if its scenario sells.
func (o Options) withSale(c scenarios.Config, name string) (_ scenarios.Config, err error) {
	if c.Scenario.Uses(variant.Sale) {
		c.Sale, err = find("sale", name, o.saleVariants())
	}
	return c, err
}

// locks returns the names of the locks that were asked for: all, if none was.
func (o Options) locks() []string {
	if len(o.Locks) > 0 {
		return o.Locks
	}
	return Shipped(variant.Lock)
}

// SpecFor returns the target of a run under this lock. If no topology was chosen and oversell starts the servers,
// it has as many masters as the lock needs.
func SpecFor(s server.Spec, l lockimpl.Variant) server.Spec {
	if s.Topology == "" && !s.IsAddress() && l.Needs.Masters > 1 {
		s.Topology = fmt.Sprintf("masters:%d", max(l.Needs.Masters, usualMasters))
	}
	return s
}

// usualMasters is the number of masters in the Redlock literature.
const usualMasters = 5

// Find returns the item with this name, or an error that suggests similar names.
func Find[T any](what, wanted string, all []T, name func(T) string) (T, error) {
	for _, v := range all {
		if name(v) == wanted {
			return v, nil
		}
	}
	var zero T
	var known []string
	for _, v := range all {
		known = append(known, name(v))
	}
	if near := variant.Nearest(wanted, known); len(near) > 0 {
		return zero, fmt.Errorf("%s %q is not known: did you mean %s? (see: oversell list)", what, wanted, strings.Join(near, " or "))
	}
	return zero, fmt.Errorf("%s %q is not known: it is one of %s", what, wanted, strings.Join(known, ", "))
}
