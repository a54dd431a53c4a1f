package compare

import (
	"context"
	"fmt"
	"slices"

	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
)

// control is what a configuration must catch. Anything that was run in it and is
// declared to break will do, a contender too; what was caught most often shows best
// what the configuration can catch. While nothing has been caught, others are tried,
// from the whole lists.
type control struct {
	candidates []*candidate // those to be tried first, first
	best       *candidate   // of those that were run; nil: none was
}

// candidate is something known to be broken.
type candidate struct {
	who reports.Contender
	subject
	// breaks are the promises that it is known to break here. Where a configuration has
	// faults, they are those that it takes the faults for: what load alone breaks says
	// nothing about what the faults can do.
	breaks []history.Promise
	tally  *tally // a contender's own, if it is one
	extra  bool   // it is no contender
}

// runs are those that could show it: one for a time need not.
func (c *candidate) runs() []sample {
	return slices.DeleteFunc(c.tally.telling(), func(s sample) bool { return !s.part.proves() })
}

// caught is in how many of its runs it was seen to break what it is known to break.
func (c *candidate) caught() (n int) {
	for _, r := range c.runs() {
		if c.shows(r) {
			n++
		}
	}
	return n
}

func (c *candidate) shows(r sample) bool {
	return slices.ContainsFunc(r.broken, func(b brokenOnce) bool { return slices.Contains(c.breaks, b.Promise) })
}

// report is what is told of it.
func (c *candidate) report() reports.Control {
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

// chooseControls finds what can be the control of each configuration.
func (p *Plan) chooseControls(ctx context.Context, base scenarios.Config) error {
	for i, f := range p.configurations {
		all, err := p.known(ctx, i, f, base)
		if err != nil {
			return err
		}
		byFaults := slices.ContainsFunc(all, func(c *candidate) bool { return len(c.breaks) > 0 })
		for _, c := range all {
			if !byFaults {
				c.breaks, _ = c.config.Breakable()
			}
		}
		all = slices.DeleteFunc(all, func(c *candidate) bool { return len(c.breaks) == 0 })
		// What can break in many ways is seen to break soonest.
		slices.SortStableFunc(all, func(a, b *candidate) int { return len(b.breaks) - len(a.breaks) })
		f.control.candidates = all
	}
	return nil
}

// known are the combinations that can be run in a configuration, contenders first,
// with what its faults break of them.
func (p *Plan) known(ctx context.Context, i int, f *configuration, base scenarios.Config) (all []*candidate, err error) {
	usesSQL := false
	for _, x := range p.in(i) {
		c := &candidate{who: p.contenders[x.contender], subject: x.subject, tally: &x.tally}
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
		who := contenderOf(c)
		if slices.ContainsFunc(all, func(c *candidate) bool { return c.who == who }) || c.NeedsSQL() && !usesSQL {
			continue
		}
		s, err := subjectOf(ctx, x, who)
		if err != nil {
			continue // it cannot run here
		}
		all = append(all, &candidate{who: who, subject: s, tally: &tally{}, extra: true})
	}
	for _, c := range all {
		_, c.breaks = c.config.Breakable()
	}
	return all, nil
}

// choose picks what was caught most often of all that were run.
func (c *control) choose() {
	c.best = nil
	share := func(x *candidate) float64 { return float64(x.caught()) / float64(len(x.runs())) }
	for _, x := range c.candidates {
		if len(x.runs()) > 0 && (c.best == nil || share(x) > share(c.best)) {
			c.best = x
		}
	}
}

// untried is the first candidate of which there was no run; nil if all were run.
func (c *control) untried() *candidate {
	for _, x := range c.candidates {
		if len(x.runs()) == 0 {
			return x
		}
	}
	return nil
}

// report tells of the control and of others that were tried.
func (c *control) report() reports.Control {
	if c.best == nil {
		if len(c.candidates) == 0 {
			return reports.Control{Why: "no variant is known to break under these settings, so nothing shows that one would be caught"}
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
