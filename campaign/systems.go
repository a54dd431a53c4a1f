package campaign

import (
	"errors"
	"fmt"
	"slices"

	"oversell/faults"
	"oversell/history"
	"oversell/idimpl"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/system"
	"oversell/variant"
)

// readSystem reads the file that --system names; the system replaces a variant.
func (o *Options) readSystem() error {
	if o.System == "" {
		return nil
	}
	s, err := system.Read(o.System)
	if err != nil {
		return err
	}
	if err := o.Serve(s); err != nil {
		return fmt.Errorf("--system %s: %w", o.System, err)
	}
	o.Outside = s
	return nil
}

// serves reports whether a run has the system, which is nil if there is none.
func serves(s *system.System, c scenarios.Config) bool {
	return s != nil && slices.ContainsFunc(c.Subjects(), func(is scenarios.Subject) bool { return is.Of == s.Object && is.Name == s.Name })
}

// operationsOf lists the operations that a system serves for an object, by their names in a history.
var operationsOf = map[variant.Object][]history.Kind{
	variant.Lock:  {history.Acquire, history.Extend, history.Release},
	variant.Sale:  {history.Buy, history.Refund},
	variant.Queue: {history.Enqueue, history.Pop, history.Ack},
	variant.IDs:   {history.NextID},
}

// fitFaults refuses faults that depend on the client or the operation of a command. Only the system knows these:
// the wire does not show for which client it sends a command.
func (o Options) fitFaults(c scenarios.Config) error {
	ours := slices.ContainsFunc(c.Subjects(), func(s scenarios.Subject) bool {
		return s.Name != o.Outside.Name && !s.Needs.SQL && (s.Of != variant.Lock || len(s.Promises) > 0)
	})
	for _, f := range c.Faults {
		w := f.Where
		during := slices.ContainsFunc(operationsOf[o.Outside.Object], func(k history.Kind) bool { return k.String() == w.During })
		wire := f.Kind.Level == faults.OnWire
		const why = "%s, but the run uses %s: the wire does not show for which client or operation a system sends a command"
		switch {
		case f.Kind.Level == faults.OnServer:
		case wire && during:
			return f.Errorf(faults.TakesDuring, why, "fires in "+w.During, o.Outside.Name)
		case wire && !ours && w.During != "":
			return f.Errorf(faults.TakesDuring, why, "fires in "+w.During, o.Outside.Name)
		case wire && !ours && w.Client != 0:
			return f.Errorf(faults.TakesClient, why, fmt.Sprintf("fires at client %d", w.Client), o.Outside.Name)
		case wire && !ours && w.State != faults.AnyState:
			return f.Errorf(faults.TakesState, why, fmt.Sprintf("fires at a %s", w.State), o.Outside.Name)
		case !wire && f.NeedsCommand() && (during || !ours):
			return f.Errorf(faults.TakesCommand, "fires at commands of the clients, but %s sends them itself: use faults on the wire or of servers", o.Outside.Name)
		}
	}
	return nil
}

// errFar refuses a system on another machine.
var errFar = errors.New("the system is not on this machine: use --allow-remote to put load on it")

// Serve names the system in place of a variant of its kind.
func (o *Options) Serve(s *system.System) error {
	set := func(flag string) bool { return o.Set != nil && o.Set(flag) }
	if flag := string(s.Object); set(flag) {
		return fmt.Errorf("the system is a %s: leave out --%s", s.Object, flag)
	}
	if !s.Local() && !o.Target.AllowRemote {
		return errFar
	}
	if shipped(s.Object, s.Name) {
		return fmt.Errorf("the name %s is that of a %s that is shipped: give the system another", s.Name, s.Object)
	}
	if today := lockimpl.CurrentName(s.Name); s.Object == variant.Lock && today != s.Name {
		return fmt.Errorf("%s is an earlier name of the shipped lock %s: give the system another", s.Name, today)
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

// The variants that a name can mean: the shipped ones and the system.

func (o Options) lockVariants() []lockimpl.Variant {
	return withOutside(o, variant.Lock, lockimpl.Variants, (*system.System).Lock)
}

func (o Options) saleVariants() []stockimpl.Variant {
	return withOutside(o, variant.Sale, stockimpl.Variants, (*system.System).Sale)
}

func (o Options) queueVariants() []queueimpl.Variant {
	return withOutside(o, variant.Queue, queueimpl.Variants, (*system.System).Queue)
}

func (o Options) idsVariants() []idimpl.Variant {
	return withOutside(o, variant.IDs, idimpl.Variants, (*system.System).IDs)
}

func withOutside[V any](o Options, object variant.Object, shipped []V, outside func(*system.System) V) []V {
	if o.Outside != nil && o.Outside.Object == object {
		return append(slices.Clone(shipped), outside(o.Outside))
	}
	return shipped
}
