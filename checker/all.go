package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/checker/dispatch"
	"oversell/checker/ids"
	"oversell/checker/locks"
	"oversell/checker/monitor"
	"oversell/checker/queues"
	"oversell/checker/sales"
	"oversell/history"
	"oversell/variant"
)

// All lists the monitors. A property that is not in it has no monitor: its verdict is Unknown.
var All = slices.Concat(sales.Factories, ids.Factories, queues.Factories, dispatch.Factories, locks.Factories)

// find returns the line of [All] for a property.
func find(of variant.Object, p variant.Property) (Factory, bool) {
	for _, j := range All {
		if j.Of == of && j.Property == p {
			return j, true
		}
	}
	return Factory{}, false
}

// Monitors returns the monitors of a history: for every promise in its header, and for
// every other property that can be measured of an object that the header names. They
// are in the order of [All]; promises that no monitor judges come last. Only the header's objects and promises count,
// never the name of a scenario or a variant.
func Monitors(h history.Header) []Monitor {
	s := &Shared{Header: &h}
	var out []Monitor
	for _, j := range All {
		if h.Promised(j.Of, j.Property) || h.Has(j.Of) && !j.OnlyPromised {
			out = append(out, j.New(s))
		}
	}
	var told []history.Promise
	for _, p := range h.Promises {
		if _, judged := find(p.Of, p.Property); !judged && !slices.Contains(told, p) {
			told = append(told, p)
			out = append(out, unjudged(p))
		}
	}
	return out
}

// unjudged stands for a promise that no monitor judges.
type unjudged history.Promise

// Observe implements [Monitor].
func (unjudged) Observe(*history.Op) {}

// Advance implements [Monitor].
func (unjudged) Advance(time.Duration) {}

// Verdict implements [Monitor].
func (u unjudged) Verdict() Verdict {
	why := fmt.Sprintf("no monitor judges %q of %q", u.Property, u.Of)
	var known []string
	for _, j := range All {
		if j.Of == u.Of {
			known = append(known, string(j.Property))
		}
	}
	if near := variant.Nearest(string(u.Property), known); len(near) > 0 {
		why += "; perhaps " + strings.Join(near, " or ") + " is meant"
	}
	v := monitor.Undecided(why)
	v.Of, v.Property = u.Of, u.Property
	return v
}

// witnessed returns the verdict that a history supports: Holds without an opportunity is Unknown.
func witnessed(v Verdict) Verdict {
	if v.Result == Holds && v.Opportunities == 0 {
		v.Result, v.Why = Unknown, "nothing in the history could have broken it: "+v.Why
	}
	return v
}
