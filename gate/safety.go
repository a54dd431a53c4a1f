package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/campaign"
	"oversell/internal/stats"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// tally collects the runs of one combination of an entry.
type tally struct {
	g       *safetyEntry
	config  scenarios.Config
	title   string
	command func(seed uint64) string

	kept    []made // the runs that count: a retry replaces its run
	broken  []made
	retried int
	total   int
	control *entryControl // nil: no control is needed
	elapsed time.Duration
}

// runs carries out an entry whose runs this program makes.
func (r *running) runs(ctx context.Context, g *safetyEntry) (cases []reports.GateCase, err error) {
	var tallies []*tally
	for _, c := range g.plan.Runs {
		t := &tally{g: g, config: c, command: func(seed uint64) string { return g.again(c, seed) }}
		if g.Expect.V == reports.Pass {
			t.control = r.controlOf(ctx, g, c)
		}
		tallies = append(tallies, t)
	}
	started := time.Now()
	for round := 0; err == nil && g.goesOn(round, time.Since(started)) && ctx.Err() == nil; round++ {
		for _, t := range tallies {
			if err == nil && !t.settled() && ctx.Err() == nil {
				err = r.round(ctx, t, round)
			}
		}
	}
	for _, t := range tallies {
		if t.total > 0 {
			cases = append(cases, t.judge(time.Since(started)))
		}
	}
	return cases, err
}

// goesOn reports whether there is another round: up to the number in the plan, within the budget.
func (g *safetyEntry) goesOn(round int, spent time.Duration) bool {
	if g.repeat > 0 && round >= g.repeat {
		return false
	}
	return round == 0 || g.budget == 0 || spent < g.budget
}

// late reports whether a fixed number of rounds took longer than the budget. Without a number, the budget only says when
// the last one begins.
func (g *safetyEntry) late(spent time.Duration) bool {
	return g.repeat > 0 && g.budget > 0 && spent > g.budget
}

// settled reports whether further runs cannot change the result.
func (t *tally) settled() bool {
	if t.g.Expect.V == reports.Violated {
		return slices.ContainsFunc(t.broken, func(m made) bool { return unfired(m.run) == "" })
	}
	return len(t.broken) > 0
}

// unfired names a fault that never fired in a run; empty if all did.
func unfired(r reports.Run) string {
	for _, f := range r.Faults {
		if f.Fired == 0 {
			return f.Name
		}
	}
	return ""
}

// fewestOpportunities is how many opportunities each promise needs, over all runs of a combination, for an entry of
// kind run to pass. With fewer, even a violation in every seventh opportunity (1 - 0.05^(1/20)) could go unseen, at
// 95 % confidence. The runs of other programs need what the check of a history needs.
const fewestOpportunities = 20

// round makes one run of a combination, again if it decided nothing, and then the control.
func (r *running) round(ctx context.Context, t *tally, round int) error {
	started := time.Now()
	defer func() { t.elapsed += time.Since(started) }()
	m, err := r.make(ctx, t.g.plan, t.config, r.seedOf(t.g, round, false), t.g.Name.V)
	if m == nil {
		return err
	}
	t.add(m)
	last := t.g.repeat > 0 && round == t.g.repeat-1
	if err == nil && ctx.Err() == nil && t.again(m, last) {
		r.watcher.Said(fmt.Sprintf("%s: %s; once more", t.g.Name.V, or(m.run.Why, "nothing was broken")))
		t.retried++
		if m, err = r.make(ctx, t.g.plan, t.config, r.seedOf(t.g, round, true), t.g.Name.V+"-again"); m != nil {
			if t.g.Expect.V == reports.Pass {
				t.kept = t.kept[:len(t.kept)-1] // the retry replaces it
			}
			t.add(m)
		}
	}
	if err == nil && t.control != nil && !t.settled() && ctx.Err() == nil {
		r.controlRound(ctx, t.control, round)
	}
	return err
}

func (t *tally) add(m *made) {
	t.total++
	t.title = m.run.Title()
	t.kept = append(t.kept, *m)
	if m.run.Verdict == reports.Violated {
		t.broken = append(t.broken, *m)
	}
}

// again reports whether a run is repeated: one that must hold and decided nothing or, after the last round, one
// that must break and did not.
func (t *tally) again(m *made, last bool) bool {
	if t.g.Expect.V == reports.Violated {
		return last && !t.settled()
	}
	return m.run.Verdict == reports.Inconclusive
}

// judge returns the result of the runs of a combination.
func (t *tally) judge(spent time.Duration) reports.GateCase {
	c := reports.GateCase{
		Title: t.title, Contender: campaign.ContenderOf(t.config), Runs: t.total, Broke: len(t.broken), Retried: t.retried,
		Faults: t.faults(), ElapsedMS: milliseconds(t.elapsed), Command: t.command(t.kept[0].seed),
	}
	if len(t.broken) > 0 {
		c.Command = t.command(t.broken[0].seed)
	}
	for _, m := range t.kept {
		c.KnownToBreak = m.run.KnownToBreak
		c.Dirs = append(c.Dirs, m.dir)
		c.Operations += m.run.Operations
	}
	if c.Broke == 0 && len(t.kept) > 0 {
		c.NotSeen = t.kept[0].run.NotSeen()
	}
	c.Properties = t.properties()
	c.Opportunities = fewest(c.Properties)
	if t.control != nil && (t.control.runs > 0 || len(t.broken) == 0) { // an entry that broke its promise needs no control
		control := t.control.told()
		c.Control = &control
	}
	c.Limits = t.limits()
	c.Verdict, c.Why = t.verdict(c, spent)
	return c
}

func (t *tally) verdict(c reports.GateCase, spent time.Duration) (verdict, why string) {
	g := t.g
	undecided := slices.IndexFunc(t.kept, func(m made) bool { return m.run.Verdict != reports.Pass && m.run.Verdict != reports.Violated })
	switch {
	case g.Expect.V == reports.Violated && t.settled():
		return reports.Pass, ""
	case g.Expect.V == reports.Violated && c.Broke > 0:
		return reports.Inconclusive, fmt.Sprintf("the fault %q never fired in a run with a violation, so it did not cause the violation", unfired(t.broken[0].run))
	case g.Expect.V == reports.Violated:
		return reports.Inconclusive, fmt.Sprintf("it must break, and did not in %d runs: either the plan has no power here, or the flaw was fixed", c.Runs)
	case c.Broke > 0:
		return reports.Violated, firstBroken(c)
	case undecided >= 0:
		return reports.Inconclusive, "also in the second try: " + or(t.kept[undecided].run.Why, "nothing was decided")
	case g.kind == kindRun && c.Opportunities < fewestOpportunities:
		return reports.Inconclusive, fmt.Sprintf("a promise had only %d opportunities to break, and at least %d are needed: use more clients, longer runs or more runs", c.Opportunities, fewestOpportunities)
	case len(t.kept) < g.repeat:
		return reports.Inconclusive, fmt.Sprintf("%d of %d runs were made in %v (see budget)", len(t.kept), g.repeat, spent.Round(time.Second))
	case g.late(spent):
		return reports.Inconclusive, fmt.Sprintf("its runs, with those of its control, took %v, longer than the budget of %v", spent.Round(time.Millisecond), g.budget)
	case !c.Control.Good:
		return reports.Inconclusive, "the gate had no power: " + c.Control.Why
	}
	return limited(c.Limits)
}

// firstBroken names the first violation.
func firstBroken(c reports.GateCase) string {
	for _, p := range c.Properties {
		if p.Result == reports.Broken {
			return fmt.Sprintf("%s of the %s was broken", p.Name, p.Of)
		}
	}
	return "a promise was broken"
}

// limited judges absolute limits.
func limited(ls []reports.GateLimit) (verdict, why string) {
	for _, l := range ls {
		if l.MeasuredMS == nil {
			return reports.Inconclusive, l.Sentence()
		}
	}
	for _, l := range ls {
		if l.Exceeded() {
			return reports.Slower, l.Sentence()
		}
	}
	return reports.Pass, ""
}

// properties returns the promises of a combination with their worst results. Violations count even in runs that do
// not.
func (t *tally) properties() []reports.GateProperty {
	all := t.kept
	for _, m := range t.broken {
		if !slices.ContainsFunc(all, func(k made) bool { return k.dir == m.dir }) {
			all = append(slices.Clone(all), m)
		}
	}
	var runs []reports.Run
	for _, m := range all {
		runs = append(runs, m.run)
	}
	return merged(runs)
}

// merged returns the promised properties of runs with their worst results.
func merged(runs []reports.Run) []reports.GateProperty {
	ps := []reports.GateProperty{}
	for _, r := range runs {
		for _, p := range r.Properties {
			if p.Result == reports.NotClaimed {
				continue
			}
			at := slices.IndexFunc(ps, func(q reports.GateProperty) bool { return q.Of == p.Of && q.Name == p.Name })
			if at < 0 {
				at = len(ps)
				ps = append(ps, reports.GateProperty{Name: p.Name, Of: p.Of, Result: p.Result, Why: p.Why, Witness: p.Witness})
			}
			q := &ps[at]
			q.Opportunities += p.Opportunities
			if heavier(p.Result) > heavier(q.Result) {
				q.Result, q.Why, q.Witness = p.Result, p.Why, p.Witness
			}
			if p.Result == reports.Broken {
				q.Runs++
			}
		}
	}
	return ps
}

// fewest returns the smallest number of opportunities of any promise.
func fewest(ps []reports.GateProperty) (n int64) {
	for i, p := range ps {
		if i == 0 || p.Opportunities < n {
			n = p.Opportunities
		}
	}
	return n
}

// heavier orders results: violated before unknown before holds.
func heavier(result string) int {
	return slices.Index([]string{reports.Holds, reports.Unknown, reports.Broken}, result)
}

// faults sums up the injections of each fault.
func (t *tally) faults() (fs []reports.Fault) {
	for i, m := range t.kept {
		for j, f := range m.run.Faults {
			if i == 0 {
				fs = append(fs, f)
				continue
			}
			if j < len(fs) {
				fs[j].Add(f)
			}
		}
	}
	return fs
}

// limits measures the limited latencies: the median over the runs.
func (t *tally) limits() (ls []reports.GateLimit) {
	for _, l := range t.g.Limits {
		told := reports.GateLimit{Operation: l.operation, Percentile: l.percentile, LimitMS: reports.InMS(l.most.V)}
		var all []float64
		for _, m := range t.kept {
			if latency, ok := m.run.Latency[l.operation]; ok {
				all = append(all, percentileOf(latency.Call, l.percentile))
			}
		}
		if len(all) > 0 {
			middle := stats.Median(all)
			told.MeasuredMS = &middle
		}
		ls = append(ls, told)
	}
	return ls
}

func percentileOf(p reports.Percentiles, name string) float64 {
	return map[string]float64{"p50": p.P50, "p90": p.P90, "p99": p.P99, "p999": p.P999, "max": p.Max}[name]
}

// again returns the command line that repeats a run of an entry.
func (g *safetyEntry) again(c scenarios.Config, seed uint64) string {
	f := naming(g.flags, c).without("seed").with("seed", fmt.Sprint(seed))
	return shell(append([]string{"oversell", "run"}, f.today().args()...))
}

// naming returns the flags with the variants of a combination in place of the ones they named. A system stays named
// by its file.
func naming(f flags, c scenarios.Config) flags {
	is, system := campaign.ContenderOf(c), outside(c)
	if system == "" {
		f = f.without("system")
	}
	for _, of := range variant.Objects { // its flag is called like the object
		flag, name := string(of), is.Of(of)
		if f = f.without(flag); name != "" && flag != system {
			f = f.with(flag, name)
		}
	}
	return f
}

// planFor resolves flags into a plan with one combination, and that combination.
func planFor(ctx context.Context, f flags) (campaign.Plan, scenarios.Config, error) {
	p, err := planOf(ctx, f)
	if err != nil {
		return p, scenarios.Config{}, err
	}
	if len(p.Runs) != 1 {
		return p, scenarios.Config{}, fmt.Errorf("it is %d combinations", len(p.Runs))
	}
	return p, p.Runs[0], nil
}
