package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// Declared outcomes of a combination.
const (
	ExpectPass     = "pass"
	ExpectViolated = "violated"
)

// Promises returns the promises of this run's variants, in the order of variant.Properties.
func (c Config) Promises() []history.Promise {
	ps := []history.Promise{}
	for _, info := range variant.Properties {
		for _, s := range c.Subjects() {
			if info.Name == variant.FIFO && c.Scenario.NoLine {
				continue
			}
			if s.Of == info.Of && slices.Contains(s.Promises, info.Name) {
				ps = append(ps, history.Promise{Of: info.Of, Property: info.Name})
			}
		}
	}
	return ps
}

// Expect returns the outcome that the variants' flaws declare for this combination, and the flaws that lead to it.
// Soundness belongs to the combination: a sale that relies on the lock breaks if the lock does.
func (c Config) Expect() (outcome string, why []string) { return c.expect(c.flawConditions()) }

// Breakable returns the promises that flaws declare broken in this run: those that load alone breaks, and those
// that break only under the run's faults or other adverse settings, such as orders that are sent twice.
func (c Config) Breakable() (byLoad, byFaults []history.Promise) {
	alone, all := c.offers([]variant.Fault{variant.NoFault}), c.flawConditions()
	for _, s := range c.Subjects() {
		for _, p := range s.Promises {
			breaks := func(m conditions) bool {
				return slices.ContainsFunc(s.Flaws, func(f variant.Flaw) bool { return f.Property == p && m.takes(s.Of, f) })
			}
			switch {
			case breaks(alone):
				byLoad = append(byLoad, history.Promise{Of: s.Of, Property: p})
			case breaks(all):
				byFaults = append(byFaults, history.Promise{Of: s.Of, Property: p})
			}
		}
	}
	return byLoad, byFaults
}

// declared returns the promises that flaws declare broken in this run.
func (c Config) declared() []history.Promise {
	byLoad, byFaults := c.Breakable()
	return append(byLoad, byFaults...)
}

// KnownToBreak returns conditions, faults and options, that are not part of this run and each of which would break
// further promises, by the declared flaws.
func (c Config) KnownToBreak() (all []history.Untried) {
	brought, promises := c.flawConditions(), c.Promises()
	with := func(under string, m conditions) {
		u := history.Untried{Under: under}
		for _, s := range c.Subjects() {
			for _, f := range s.Flaws {
				broken := history.Promise{Of: s.Of, Property: f.Property}
				if slices.Contains(promises, broken) && m.takes(s.Of, f) && !brought.takes(s.Of, f) && !slices.Contains(u.Breaks, broken) {
					u.Breaks = append(u.Breaks, broken)
					u.Why = cmp.Or(u.Why, f.Why)
				}
			}
		}
		if len(u.Breaks) > 0 {
			all = append(all, u)
		}
	}
	for _, f := range variant.Faults {
		if !slices.Contains(brought.faults, f) {
			with(string(f), c.offers(append(slices.Clone(brought.faults), f)))
		}
	}
	for _, option := range variant.Options {
		if option == variant.WithAbandoned && !c.Scenario.Uses(variant.Dispatch) {
			continue
		}
		if !slices.Contains(brought.under, option) {
			m := brought
			m.under = append(slices.Clone(m.under), option)
			with(option, m)
		}
	}
	return all
}

// flawConditions returns the conditions of this run under which flaws show.
func (c Config) flawConditions() conditions {
	m := c.offers(c.flawFaults())
	m.forgotten = c.forgotten()
	return m
}

// flawFaults returns the faults of this run in the vocabulary of flaws.
func (c Config) flawFaults() []variant.Fault {
	faults := []variant.Fault{variant.NoFault}
	if c.Resend > 0 {
		faults = append(faults, variant.Resend)
	}
	if !c.Scenario.Extends && c.Hold >= c.TTL && !c.Lock.Renews {
		faults = append(faults, variant.Overrun)
	}
	faults = append(faults, c.provoked()...)
	if c.Die > 0 {
		faults = append(faults, c.Scenario.death())
	}
	return faults
}

// ExpectUnder is like Expect, for a run with these faults instead of those of c.
func (c Config) ExpectUnder(faults []variant.Fault) (outcome string, why []string) {
	return c.expect(c.offers(faults))
}

func (c Config) expect(m conditions) (outcome string, why []string) {
	for _, s := range c.Subjects() {
		why = append(why, m.broken(s)...)
	}
	if len(why) > 0 {
		return ExpectViolated, why
	}
	return ExpectPass, nil
}

// offers returns the conditions of c with these faults under which flaws show.
func (c Config) offers(faults []variant.Fault) conditions {
	m := conditions{faults: faults, under: []string{""}}
	for _, s := range c.Subjects() {
		m.under = append(m.under, s.Name)
	}
	if c.Repeat > 0 {
		m.under = append(m.under, variant.WithRepeats)
	}
	if c.Quantity > 1 {
		m.under = append(m.under, variant.WithQuantity)
	}
	if c.Refund > 0 {
		m.under = append(m.under, variant.WithRefunds)
	}
	if c.Abandon > 0 {
		m.under = append(m.under, variant.WithAbandoned)
	}
	loses := func(p variant.Property) bool {
		return slices.ContainsFunc(c.Lock.Flaws, func(f variant.Flaw) bool { return f.Property == p && m.takes(variant.Lock, f) })
	}
	if !slices.Contains(c.Lock.Promises, variant.MutualExclusion) || loses(variant.MutualExclusion) {
		m.under = append(m.under, variant.Unserialized)
	}
	if loses(variant.Progress) {
		m.under = append(m.under, variant.Stuck)
	}
	return m
}

// death returns the fault caused by the death of a task's holder: a consumer disappears, and a user returns too
// late.
func (s Scenario) death() variant.Fault {
	if s.Uses(variant.Dispatch) {
		return variant.Overrun
	}
	return variant.Crash
}

// conditions holds the conditions of a run under which flaws show.
type conditions struct {
	faults []variant.Fault
	under  []string
	// forgotten says that a server may come back without its data; see Config.forgotten.
	forgotten bool
}

// takes reports whether a flaw of an object shows. A lock does not break if a server forgets grants that are over.
func (m conditions) takes(of variant.Object, f variant.Flaw) bool {
	befell := slices.Contains(m.faults, f.Fault) || m.forgotten && f.Fault == variant.RestartEmpty && of != variant.Lock
	return befell && !slices.ContainsFunc(strings.Split(f.Under, variant.And), func(part string) bool {
		return !slices.Contains(m.under, part)
	})
}

func (m conditions) broken(s Subject) (why []string) {
	for _, f := range s.Flaws {
		if m.takes(s.Of, f) && slices.Contains(s.Promises, f.Property) {
			why = append(why, fmt.Sprintf("%s %s, %s: %s", s.Of, s.Name, f.Property, f.Why))
		}
	}
	return why
}
