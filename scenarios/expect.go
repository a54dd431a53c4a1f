package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// The declared outcomes of a combination.
const (
	ExpectPass     = "pass"
	ExpectViolated = "violated"
)

// Promises are what the variants of this run promise about the objects that
// the scenario exercises.
func (c Config) Promises() []history.Promise {
	ps := []history.Promise{}
	for _, info := range variant.Properties {
		if slices.Contains(c.Scenario.Objects, info.Of) && slices.Contains(c.promisesOf(info.Of), info.Name) {
			ps = append(ps, history.Promise{Of: info.Of, Property: info.Name})
		}
	}
	return ps
}

func (c Config) promisesOf(o variant.Object) []variant.Property {
	if o == variant.Sale {
		return c.Sale.Promises
	}
	return c.Lock.Promises
}

// Expect is the outcome that the variants' flaws declare for this combination,
// and the flaws that lead there. Soundness belongs to the combination: a sale
// that leans on the lock breaks where the lock does.
func (c Config) Expect() (outcome string, why []string) {
	m := match{
		faults: []variant.Fault{variant.NoFault},
		under:  []string{"", c.Lock.Name, c.Sale.Name},
	}
	if c.Resend > 0 {
		m.faults = append(m.faults, variant.Resend)
	}
	if c.Scenario.Sells() && c.Hold >= c.TTL { // a sale's section is not extended
		m.faults = append(m.faults, variant.Overrun)
	}
	if c.Quantity > 1 {
		m.under = append(m.under, variant.WithQuantity)
	}
	if c.Refund > 0 {
		m.under = append(m.under, variant.WithRefunds)
	}
	if !slices.Contains(c.Lock.Promises, variant.MutualExclusion) || slices.ContainsFunc(c.Lock.Flaws, func(f variant.Flaw) bool {
		return f.Property == variant.MutualExclusion && m.takes(f)
	}) {
		m.under = append(m.under, variant.Unserialized)
	}
	why = m.broken("lock "+c.Lock.Name, c.Lock.Promises, c.Lock.Flaws)
	if c.Scenario.Sells() {
		why = append(why, m.broken("sale "+c.Sale.Name, c.Sale.Promises, c.Sale.Flaws)...)
	}
	if len(why) > 0 {
		return ExpectViolated, why
	}
	return ExpectPass, nil
}

// match is what a run offers for flaws to show.
type match struct {
	faults []variant.Fault
	under  []string
}

func (m match) takes(f variant.Flaw) bool {
	return slices.Contains(m.faults, f.Fault) && !slices.ContainsFunc(strings.Split(f.Under, variant.And), func(part string) bool {
		return !slices.Contains(m.under, part)
	})
}

func (m match) broken(who string, promises []variant.Property, flaws []variant.Flaw) (why []string) {
	for _, f := range flaws {
		if m.takes(f) && slices.Contains(promises, f.Property) {
			why = append(why, fmt.Sprintf("%s, %s: %s", who, f.Property, f.Why))
		}
	}
	return why
}
