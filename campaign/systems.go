package campaign

import (
	"errors"
	"fmt"
	"slices"

	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/system"
	"oversell/variant"
)

// readSystem reads the file that --system names, and has its system take the place of a variant.
func (o *Options) readSystem() error {
	if o.System == "" {
		return nil
	}
	s, err := system.Read(o.System)
	if err != nil {
		return err
	}
	if err := o.takes(s); err != nil {
		return fmt.Errorf("--system %s: %w", o.System, err)
	}
	o.system = s
	return nil
}

// errFar refuses a system on another machine.
var errFar = errors.New("the system is not on this machine: load goes there with --allow-remote only")

// takes names the system where a variant of its kind is named.
func (o *Options) takes(s *system.System) error {
	set := func(flag string) bool { return o.Set != nil && o.Set(flag) }
	if flag := string(s.Object); set(flag) {
		return fmt.Errorf("the system is a %s: leave out --%s", s.Object, flag)
	}
	if !s.Local() && !o.Target.AllowRemote {
		return errFar
	}
	shipped := map[variant.Object][]string{
		variant.Lock: names(lockimpl.Variants, lockName), variant.Sale: names(stockimpl.Variants, saleName),
		variant.Queue: names(queueimpl.Variants, queueName), variant.IDs: names(idimpl.Variants, idsName),
	}
	if slices.Contains(shipped[s.Object], s.Name) {
		return fmt.Errorf("the name %s is that of a %s that is shipped: give the system another", s.Name, s.Object)
	}
	if today := lockimpl.Today(s.Name); s.Object == variant.Lock && today != s.Name {
		return fmt.Errorf("the name %s was that of the lock %s, which is shipped, and still means it: give the system another", s.Name, today)
	}
	scenario, known := scenarios.Find(o.Scenario)
	if i := slices.IndexFunc(scenarios.All, func(one scenarios.Scenario) bool { return one.Uses(s.Object) }); o.Set != nil && !set("scenario") && known && !scenario.Uses(s.Object) && i >= 0 {
		scenario = scenarios.All[i]
		o.Scenario = scenario.Name
	}
	if known && !scenario.Uses(s.Object) {
		return fmt.Errorf("scenario %s has no %s: choose one that has, with --scenario (see: oversell list scenarios)", o.Scenario, s.Object)
	}
	switch s.Object {
	case variant.Lock:
		o.Locks = []string{s.Name}
	case variant.Sale:
		o.Sale = s.Name
		if len(o.Locks) == 0 && !set("queue") {
			o.Locks = []string{"none"}
		}
	case variant.Queue:
		o.Queue = s.Name
	case variant.IDs:
		o.IDs = s.Name
		if len(o.Locks) == 0 {
			o.Locks = []string{"none"}
		}
	}
	return nil
}

// The variants that a name can mean: those that are shipped, and the system.

func (o Options) lockVariants() []lockimpl.Variant {
	if o.system != nil && o.system.Object == variant.Lock {
		return append(slices.Clone(lockimpl.Variants), o.system.Lock())
	}
	return lockimpl.Variants
}

func (o Options) saleVariants() []stockimpl.Variant {
	if o.system != nil && o.system.Object == variant.Sale {
		return append(slices.Clone(stockimpl.Variants), o.system.Sale())
	}
	return stockimpl.Variants
}

func (o Options) queueVariants() []queueimpl.Variant {
	if o.system != nil && o.system.Object == variant.Queue {
		return append(slices.Clone(queueimpl.Variants), o.system.Queue())
	}
	return queueimpl.Variants
}

func (o Options) idsVariants() []idimpl.Variant {
	if o.system != nil && o.system.Object == variant.IDs {
		return append(slices.Clone(idimpl.Variants), o.system.IDs())
	}
	return idimpl.Variants
}
