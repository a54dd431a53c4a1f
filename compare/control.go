package compare

import (
	"context"
	"fmt"
	"slices"

	"oversell/campaign"
	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
)

// control is what a configuration must catch: any variant that was run in it and is declared to break, also a
// contender. The one that was caught most often is reported. While none has been caught, further candidates from
// the lists of variants are tried.
type control struct {
	candidates []*controlCandidate // in the order in which they are tried
	best       *controlCandidate   // of those that were run; nil: none
}

// controlCandidate is a variant that is known to break.
type controlCandidate struct {
	who reports.Contender
	subject
	// breaks are the promises that it is known to break here. In a configuration with faults, they are only those
	// that need the faults: what load alone breaks does not show what the faults can do.
	breaks []history.Promise
	tally  *tally // the contender's own, if it is one
	extra  bool   // it is not a contender
}

// runs returns the runs that could show the violation; runs for a fixed time need not.
func (c *controlCandidate) runs() []sample {
	return slices.DeleteFunc(c.tally.telling(), func(s sample) bool { return !s.part.proves() })
}

// caught returns in how many of its runs a known violation was seen.
func (c *controlCandidate) caught() (n int) {
	for _, r := range c.runs() {
		if c.shows(r) {
			n++
		}
	}
	return n
}

func (c *controlCandidate) shows(r sample) bool {
	return slices.ContainsFunc(r.broken, func(b brokenOnce) bool { return slices.Contains(c.breaks, b.Promise) })
}

// report returns the candidate's part of the report.
func (c *controlCandidate) report() reports.Control {
	r := reports.Control{Contender: c.who, Of: c.breaks[0].Of, Property: c.breaks[0].Property, Runs: len(c.runs()), Caught: c.caught()}
	for _, run := range c.runs() {
		for _, b := range run.broken {
			if slices.Contains(c.breaks, b.Promise) {
				r.Of, r.Property, r.Why = b.Of, b.Property, b.why
				return r
			}
		}
	}
	for _, run := range c.runs() {
		r.Why = "no violation was seen"
		if run.why != "" {
			r.Why = run.why
			break
		}
	}
	return r
}

// chooseControls finds candidates for the control of each configuration.
func (p *Plan) chooseControls(ctx context.Context, base scenarios.Config) error {
	for i, f := range p.configurations {
		all, err := p.known(ctx, i, f, base)
		if err != nil {
			return err
		}
		byFaults := slices.ContainsFunc(all, func(c *controlCandidate) bool { return len(c.breaks) > 0 })
		for _, c := range all {
			if !byFaults {
				c.breaks, _ = c.config.Breakable()
			}
		}
		all = slices.DeleteFunc(all, func(c *controlCandidate) bool { return len(c.breaks) == 0 })
		// Variants that break in many ways are caught soonest.
		slices.SortStableFunc(all, func(a, b *controlCandidate) int { return len(b.breaks) - len(a.breaks) })
		f.control.candidates = all
	}
	return nil
}

// known returns the combinations that can run in a configuration, contenders first, with the promises that its
// faults break.
func (p *Plan) known(ctx context.Context, i int, f *configuration, base scenarios.Config) (all []*controlCandidate, err error) {
	usesSQL := false
	for _, x := range p.in(i) {
		c := &controlCandidate{who: p.contenders[x.contender], subject: x.subject, tally: &x.tally}
		usesSQL = usesSQL || x.config.NeedsSQL()
		all = append(all, c)
	}
	x := f.options
	x.Locks, x.Sale, x.Queue, x.IDs, x.Dispatch = nil, "", "", "", ""
	more, err := x.Combinations(base)
	if err != nil {
		return nil, err
	}
	for _, c := range slices.Concat(unlocked(x, base), more) {
		who := campaign.ContenderOf(c)
		if slices.ContainsFunc(all, func(c *controlCandidate) bool { return c.who == who }) || c.NeedsSQL() && !usesSQL {
			continue
		}
		s, err := subjectOf(ctx, x, who)
		if err != nil {
			continue // it cannot run here
		}
		all = append(all, &controlCandidate{who: who, subject: s, tally: &tally{}, extra: true})
	}
	for _, c := range all {
		_, c.breaks = c.config.Breakable()
	}
	return all, nil
}

// choose selects the candidate that was caught most often.
func (c *control) choose() {
	c.best = nil
	share := func(x *controlCandidate) float64 { return float64(x.caught()) / float64(len(x.runs())) }
	for _, x := range c.candidates {
		if len(x.runs()) > 0 && (c.best == nil || share(x) > share(c.best)) {
			c.best = x
		}
	}
}

// untried returns the first candidate that was not run; nil if all were.
func (c *control) untried() *controlCandidate {
	for _, x := range c.candidates {
		if len(x.runs()) == 0 {
			return x
		}
	}
	return nil
}

// report describes the control and the other candidates that were tried.
func (c *control) report() reports.Control {
	if c.best == nil {
		if len(c.candidates) == 0 {
			return reports.Control{Why: "no variant is known to break under these settings, so there is no control"}
		}
		return reports.Control{Why: "none was run"}
	}
	r := c.best.report()
	for _, x := range c.candidates {
		if x != c.best && x.extra && len(x.runs()) > 0 {
			r.Tried = append(r.Tried, fmt.Sprintf("%s: caught in %d of %d runs", x.who, x.caught(), len(x.runs())))
		}
	}
	return r
}
