package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/explore"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/reports/page"
	"oversell/reports/text"
	"oversell/variant"
)

// searches carries out an entry of kind explore.
func (r *running) searches(ctx context.Context, g *safetyEntry) (cases []reports.GateCase, err error) {
	for _, s := range g.searches {
		if ctx.Err() != nil {
			return cases, nil
		}
		c, err := r.search(ctx, g, s)
		if err != nil {
			return cases, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// search makes one search, again if it could not decide, and its control.
func (r *running) search(ctx context.Context, g *safetyEntry, s explore.Config) (c reports.GateCase, err error) {
	started := time.Now()
	e, err := r.explored(ctx, s)
	if err != nil {
		return c, err
	}
	c = reports.GateCase{Contender: campaign.ContenderOf(s.Run), Runs: 1}
	if e.Verdict == reports.Inconclusive && ctx.Err() == nil {
		c.Runs, c.Retried = 2, 1
		if e, err = r.explored(ctx, s); err != nil {
			return c, err
		}
	}
	c.Title, c.Operations = e.Title(), int(e.Stats.Entered)
	c.Command = shell(append([]string{"oversell", "explore"}, naming(g.flags, s.Run).today().args()...))
	c.Searched = e.Headline()
	if e.Verdict == reports.Pass {
		c.Searched = fmt.Sprintf("%s (%s states, %s steps between them, %s entries into what is guarded)", e.Why,
			reports.Thousands(e.Stats.States), reports.Thousands(e.Stats.Transitions), reports.Thousands(e.Stats.Entered))
	}
	c.Properties = searched(e, s.Look)
	if e.Verdict == reports.Violated {
		c.Broke = 1
		c.Dirs = []string{r.keep(g.Name.V, e)}
	}
	if g.Expect.V == reports.Pass && c.Broke == 0 && ctx.Err() == nil {
		control := r.searchControl(ctx, g, s)
		c.Control = &control
	}
	c.Verdict, c.Why = searchVerdict(g, e, c)
	c.ElapsedMS = milliseconds(time.Since(started))
	return c, nil
}

func searchVerdict(g *safetyEntry, e reports.Exploration, c reports.GateCase) (verdict, why string) {
	switch {
	case g.Expect.V == reports.Violated && c.Broke > 0:
		return reports.Pass, ""
	case g.Expect.V == reports.Violated:
		return reports.Inconclusive, "it must break, and the search found no violation: " + e.Why
	case c.Broke > 0:
		return reports.Violated, firstBroken(c)
	case e.Verdict != reports.Pass:
		return reports.Inconclusive, "also in the second try: " + e.Why
	case c.Control == nil:
		return reports.Inconclusive, "it was stopped before the control was searched"
	case !c.Control.Good:
		return reports.Inconclusive, "the gate had no power: " + c.Control.Why
	}
	return reports.Pass, ""
}

// explored makes a search.
func (r *running) explored(ctx context.Context, s explore.Config) (e reports.Exploration, err error) {
	err = campaign.Explore(ctx, []explore.Config{s}, func(found reports.Exploration) { e = found })
	return e, err
}

// searched returns the properties that a search checks, with the schedule that breaks one.
func searched(e reports.Exploration, look []history.Promise) []reports.GateProperty {
	ps := []reports.GateProperty{}
	for _, p := range e.Properties {
		if !slices.Contains(look, history.Promise{Of: p.Of, Property: p.Name}) {
			continue // whole histories decide it
		}
		q := reports.GateProperty{Name: p.Name, Of: p.Of, Result: p.Result, Why: p.Why, Witness: p.Witness}
		if q.Result == reports.Broken {
			q.Runs = 1
			if e.Counterexample != nil && e.Counterexample.Property == p.Name && e.Counterexample.Of == p.Of {
				var b strings.Builder
				text.Terminal{W: &b}.Exploration(e) // writing to a builder cannot fail
				q.Story = b.String()
			}
		}
		ps = append(ps, q)
	}
	return ps
}

// keep writes a search with a counterexample to a file for replay, and returns its path; a full disk does not
// change the result.
func (r *running) keep(name string, e reports.Exploration) string {
	r.dirs++
	dir := filepath.Join(r.options.Dir, fmt.Sprintf("%03d-%s", r.dirs, fileName(name)))
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		trace := filepath.Join(dir, "explore.json")
		err = errors.Join(reports.ToFile(trace, func(f io.Writer) error { return reports.WriteJSON(f, campaign.BesideTrace(e, trace)) }),
			reports.ToFile(filepath.Join(dir, "explore.html"), func(f io.Writer) error { return page.Exploration(f, e, campaign.ReplayCommand(trace)) }))
	}
	if err != nil {
		r.gate.Notes = append(r.gate.Notes, "a search could not be saved: "+phrase.OneLine(err.Error()))
	}
	return dir
}

// searchControl searches a variant known to break, within the same bounds, for violations of the entry's
// properties.
func (r *running) searchControl(ctx context.Context, g *safetyEntry, s explore.Config) reports.GateControl {
	switch {
	case g.control.word.V == noControl:
		return reports.GateControl{What: reports.NoControl, Why: "the plan has none (control: none), so it is unknown whether a violation would have been found"}
	case g.control.flags != nil:
		c := r.searchSuspects(ctx, s, []flags{g.control.flags.beside(s.Run, g.flags)}, *g.control.flags)
		c.Caveats = elsewhere(altered("explore", func(s *pflag.FlagSet) { new(campaign.SearchOptions).BindSearch(s) }, g.control.flags.over(g.flags), g.flags))
		return c
	}
	return r.searchSuspects(ctx, s, searchSuspects(g.flags, s), flags{})
}

// searchSuspects returns flags of searches of variants that are known to break under what the bounds allow.
func searchSuspects(f flags, s explore.Config) (found []flags) {
	for _, x := range exchanges(s.Run) {
		changed := f.instead(s.Run, x)
		cs, _, err := searchesOf(looking(changed, s))
		if err != nil || len(cs) != 1 {
			continue
		}
		if breaks(promising(cs[0].Run, s.Run).ExpectUnder(possible(s.Bounds))) {
			found = append(found, changed)
		}
	}
	return found[:min(len(found), mostSuspects)]
}

// looking makes a search check the properties of s, promised or not.
func looking(f flags, s explore.Config) flags {
	var names []string
	for _, p := range s.Look {
		if !slices.Contains(names, string(p.Property)) {
			names = append(names, string(p.Property))
		}
	}
	return f.without("property").with("property", strings.Join(names, ","))
}

// possible returns the faults that can occur within the bounds of a search.
func possible(b reports.Bounds) []variant.Fault {
	fs := []variant.Fault{variant.NoFault}
	for _, x := range []struct {
		allowed bool
		fault   variant.Fault
	}{
		{b.Advances > 0, variant.Overrun}, {b.Crashes > 0, variant.Crash}, {b.Lost > 0, variant.DropReply},
		{b.Late > 0, variant.LateRequest}, {b.Resends > 0, variant.Resend},
	} {
		if x.allowed {
			fs = append(fs, x.fault)
		}
	}
	return fs
}

// searchSuspects makes the searches in order until one finds a violation.
func (r *running) searchSuspects(ctx context.Context, s explore.Config, all []flags, given flags) reports.GateControl {
	c := reports.GateControl{What: "none found", Why: "no shipped variant is known to break what this entry checks, within these bounds: name a control (control: {lock: …})"}
	for _, f := range all {
		cs, _, err := searchesOf(looking(f, s))
		if err != nil || len(cs) != 1 {
			c.Why = "the control cannot be searched"
			if err != nil {
				c.Why += ": " + err.Error()
			}
			continue
		}
		c.What = differs(cs[0].Run, s.Run, given)
		c.Runs = 1
		e, err := r.explored(ctx, cs[0])
		if err != nil {
			c.Why = phrase.OneLine(err.Error())
		} else if p := brokenAt(s.Look, e.Properties, func(p *reports.Property) string { return p.Result }); p != nil {
			c.Of, c.Property, c.Why, c.Caught, c.Good = p.Of, p.Name, p.Why, 1, true
			return c
		} else {
			c.Why = "it must break, and the search found no violation: " + e.Why
		}
		c.Tried = append(c.Tried, c.What+": "+c.Why)
		if ctx.Err() != nil {
			return c
		}
	}
	return c
}
