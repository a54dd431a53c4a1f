package campaign

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"oversell/load"
	"oversell/lockimpl"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/target"
	"oversell/variant"
)

// Options are what a user says of a campaign, by names.
type Options struct {
	Scenario string
	Locks    []string // none: every shipped one
	Sale     string   // empty: the lock's default
	Target   target.Spec

	Clients, Quantity, Pool          int
	Stock, Ops                       int64
	Resend, Refund                   float64
	TTL, Wait, Retry, Hold, Duration time.Duration
	Waiting                          load.Waiting
	Seed                             uint64
	JSONL                            bool
}

// DefaultDir is where the run directories of a campaign begun now go.
func DefaultDir(now time.Time) string {
	return filepath.Join("oversell-runs", now.Format("20060102-150405"))
}

// NewPlan turns names into a plan, and refuses what cannot be run before
// anything is started.
func NewPlan(ctx context.Context, o Options) (Plan, error) {
	base := scenarios.Config{
		Clients: o.Clients, Pool: o.Pool, Waiting: o.Waiting, Seed: o.Seed,
		Stock: o.Stock, Quantity: o.Quantity, Resend: o.Resend, Refund: o.Refund,
		TTL: o.TTL, Wait: o.Wait, Retry: o.Retry, Hold: o.Hold, Duration: o.Duration, Ops: o.Ops,
	}
	var err error
	if base.Scenario, err = find("scenario", o.Scenario, scenarios.All, func(s scenarios.Scenario) string { return s.Name }); err != nil {
		return Plan{}, err
	}
	if o.Sale != "" && !base.Scenario.Sells() {
		return Plan{}, fmt.Errorf("scenario %s sells nothing: leave out --sale %s", o.Scenario, o.Sale)
	}
	p := Plan{Target: o.Target, JSONL: o.JSONL}
	locks := o.Locks
	if len(locks) == 0 {
		locks = names(lockimpl.Variants, lockName)
	}
	for _, name := range locks {
		c := base
		if c.Lock, err = find("lock", name, lockimpl.Variants, lockName); err != nil {
			return Plan{}, err
		}
		if c.Scenario.Sells() {
			sale := o.Sale
			if sale == "" {
				sale = DefaultSale(c.Lock)
			}
			if c.Sale, err = find("sale", sale, stockimpl.Variants, saleName); err != nil {
				return Plan{}, err
			}
		}
		// A sweep over all locks leaves out those that cannot run there; a lock
		// that was asked for by name must be able to.
		masters, err := specFor(o.Target, c.Lock).Masters(ctx)
		if err != nil {
			return Plan{}, err
		}
		if err := c.Complete(masters); err != nil {
			if len(o.Locks) == 0 && errors.As(err, new(scenarios.Unmet)) {
				p.Skipped = append(p.Skipped, err.Error())
				continue
			}
			return Plan{}, err
		}
		p.Runs = append(p.Runs, c)
	}
	return p, nil
}

// specFor is the target that a run under this lock gets: where nobody chose a
// topology and the servers are ours to start, as many masters as the lock needs.
func specFor(s target.Spec, l lockimpl.Variant) target.Spec {
	if s.Topology == "" && !s.IsAddress() && l.Needs.Masters > 1 {
		s.Topology = fmt.Sprintf("masters:%d", max(l.Needs.Masters, usualMasters))
	}
	return s
}

// usualMasters is the number that the literature on Redlock uses.
const usualMasters = 5

func lockName(v lockimpl.Variant) string  { return v.Name }
func saleName(v stockimpl.Variant) string { return v.Name }

func names[T any](all []T, name func(T) string) []string {
	var ns []string
	for _, v := range all {
		ns = append(ns, name(v))
	}
	return ns
}

// find returns the thing with this name, or an error that tells the nearest ones.
func find[T any](what, wanted string, all []T, name func(T) string) (T, error) {
	for _, v := range all {
		if name(v) == wanted {
			return v, nil
		}
	}
	var zero T
	known := names(all, name)
	if near := variant.Nearest(wanted, known); len(near) > 0 {
		return zero, fmt.Errorf("%s %q is not known: did you mean %s? (see: oversell list)", what, wanted, strings.Join(near, " or "))
	}
	return zero, fmt.Errorf("%s %q is not known: it is one of %s", what, wanted, strings.Join(known, ", "))
}
