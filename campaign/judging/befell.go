package judging

import (
	"slices"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// befall takes account of conditions that the run did not ask for and met all the same: sections that outlived their
// leases, and what the trailer names. They were tried, and what they broke is declared.
func befall(r *reports.Run, h *history.History) {
	met := func(u history.Untried) bool {
		return u.Under == string(variant.Overrun) && r.Overruns > 0 || h.Trailer != nil && slices.Contains(h.Trailer.Befell, variant.Fault(u.Under))
	}
	for _, u := range r.KnownToBreak {
		if !met(u) || r.Verdict != reports.Violated {
			continue
		}
		for i := range r.Properties {
			p := &r.Properties[i]
			if p.Result == reports.Broken && !p.Declared && slices.Contains(u.Breaks, history.Promise{Of: p.Of, Property: p.Name}) {
				p.Declared, r.Expected = true, reports.Violated
				if !slices.Contains(r.ExpectedWhy, u.Why) {
					r.ExpectedWhy = append(slices.Clone(r.ExpectedWhy), u.Why)
				}
			}
		}
	}
	r.KnownToBreak = slices.DeleteFunc(slices.Clone(r.KnownToBreak), met)
}
