package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"oversell/campaign"
	"oversell/campaign/judging"
	"oversell/checker"
	"oversell/database"
	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// quiet is a watcher that ignores everything.
type quiet struct{}

func (quiet) Target(*server.Target)                             {}
func (quiet) Database(*database.DB)                             {}
func (quiet) Start(int, int, scenarios.Config, *scenarios.Live) {}
func (quiet) Done(int, int, reports.Run)                        {}
func (quiet) Round(reports.Comparison)                          {}

// comparison returns the plan of a command line.
func comparison(t *testing.T, args ...string) *Plan {
	t.Helper()
	p, err := planned(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planned(t *testing.T, args ...string) (*Plan, error) {
	t.Helper()
	o := &Options{Dir: t.TempDir()}
	f := pflag.NewFlagSet("compare", pflag.ContinueOnError)
	o.Bind(f)
	if err := f.Parse(append([]string{"--seed=7"}, args...)); err != nil {
		return nil, err
	}
	return New(t.Context(), o)
}

// compared carries out a comparison. It skips the test where no redis-server is installed.
func compared(t *testing.T, p *Plan) reports.Comparison {
	t.Helper()
	c, err := Run(t.Context(), p, quiet{})
	opentest.Check(t, err)
	return c
}

// small returns the arguments of a comparison that takes a second or two.
func small(more ...string) []string {
	return append([]string{"--quick", "--plain", "--target=process", "--clients=24", "--stock=60", "--measure=100ms"}, more...)
}

func (p *Plan) names() (names []string) {
	for _, c := range p.contenders {
		names = append(names, c.String())
	}
	return names
}

func TestContenders(t *testing.T) {
	for _, c := range []struct {
		args      []string
		with, not []string
		n         int // 0: any number
	}{
		{[]string{"--quick"}, []string{"lua-release + plain", "fenced + fenced", "none + lua", "php-lock-printed + plain"}, []string{"none + watch"}, 5},
		{[]string{"--quick", "--lock=redlock,none", "--sale=plain,watch"}, []string{"redlock + plain", "none + watch"}, nil, 4}, // named by the user
		{nil, []string{"lua-release + plain", "fenced + fenced", "php-lock-printed + plain", "none + lua", "none + watch"},
			[]string{"none + plain", "fair-no-reap + plain", "none + decr", "none + sql-version"}, 0},
		{[]string{"--lock=none,lua-release", "--sale=plain,lua"}, []string{"none + plain", "lua-release + lua"}, nil, 4},
		{[]string{"--lock=fair-no-reap"}, []string{"fair-no-reap + plain"}, nil, 1}, // named by the user
		{[]string{"--sale=lua"}, []string{"none + lua", "lua-release + lua"}, []string{"none + watch"}, 0},
		{[]string{"--scenario=mutex"}, []string{"lua-release"}, []string{"none"}, 0},
		{[]string{"--scenario=queue"}, []string{"zset-atomic", "lua-release + zset-locked"}, []string{"range-run-remove"}, 0},
		{[]string{"--scenario=queue", "--queue=zset-atomic,zset-locked", "--lock=lua-release"}, []string{"zset-atomic", "lua-release + zset-locked"}, nil, 2},
		{[]string{"--scenario=ids"}, []string{"none + incr", "lua-release + get-set"}, []string{"none + get-set"}, 0},
		{[]string{"--scenario=dispatch"}, []string{"lua-release + dispatch-locked", "fenced + dispatch-fenced"}, nil, 0},
	} {
		names := comparison(t, append([]string{"--target=embedded"}, c.args...)...).names()
		if c.n > 0 && len(names) != c.n {
			t.Errorf("%v: contenders %q; want %d", c.args, names, c.n)
		}
		for _, name := range c.with {
			if !slices.Contains(names, name) {
				t.Errorf("%v: %s is not among %q", c.args, name, names)
			}
		}
		for _, name := range c.not {
			if slices.Contains(names, name) {
				t.Errorf("%v: %s is among %q", c.args, name, names)
			}
		}
	}
}

func TestConfigurations(t *testing.T) {
	p := comparison(t, "--lock=lua-release,php-lock", "--target=process,embedded", "--clients=10,20", "--ttl=1s,500ms",
		"--fault=slow 600ms 5%", "--fault=crash after SETNX 1%; freeze holder 600ms")
	if n := 2 * 3 * 2 * 2; len(p.configurations) != n {
		t.Fatalf("%d configurations; want %d", len(p.configurations), n)
	}
	seen := map[string]bool{}
	for i, f := range p.configurations {
		seen[f.report.String()] = true
		for _, x := range p.in(i) {
			if got := fmt.Sprintf("--clients=%d --ttl=%v", x.config.Clients, x.config.TTL); got != strings.Join(f.report.Swept, " ") {
				t.Errorf("%s runs with %s", f.report, got)
			}
			if len(x.config.Faults) != len(f.report.Faults) {
				t.Errorf("%s runs with the faults %v", f.report, x.config.Faults)
			}
			if x.lone.config.Clients != 1 || len(x.lone.config.Faults) > 0 || x.lone.config.TTL != x.config.TTL {
				t.Errorf("alone: %+v", x.lone.config)
			}
			if x.config.Waiting != p.configurations[0].options.Waiting {
				t.Errorf("%s waits by %s", f.report, x.config.Waiting)
			}
		}
		// php-lock counts whole seconds.
		if want := 1 + strings.Count(f.report.Swept[1], "1s"); len(p.in(i)) != want {
			t.Errorf("%s has %d cells; want %d", f.report, len(p.in(i)), want)
		}
	}
	if len(seen) != len(p.configurations) || len(p.skipped) != 1 || !strings.Contains(p.skipped[0], "whole seconds") {
		t.Errorf("configurations %v, left out %q", seen, p.skipped)
	}
	if c := p.configurations[4]; !slices.Equal(c.report.Faults, []string{"slow 600ms 5%"}) {
		t.Errorf("the second fault's: %v", c.report)
	}
	if p := comparison(t, "--target=embedded", "--lock=lua-release", "--faults-only", "--fault=slow 10ms 1%"); len(p.configurations) != 1 || len(p.cells[0].config.Faults) != 1 || len(p.alone[0].config.Faults) != 0 {
		t.Errorf("with faults only: %d configurations, faults %v, alone %v", len(p.configurations), p.cells[0].config.Faults, p.alone[0].config.Faults)
	}
	if len(p.alone) != 2*(2+1) {
		t.Errorf("%d runs alone; want one for each contender, target and lease", len(p.alone))
	}
}

// TestASectionThatOutlivesItsLease checks the configuration that a comparison adds by itself, in which a section
// outlives its lease.
func TestASectionThatOutlivesItsLease(t *testing.T) {
	p := comparison(t, "--quick", "--target=embedded", "--lock=lua-release,fenced,none", "--sale=fenced,plain", "--clients=10,20")
	if len(p.configurations) != 4 {
		t.Fatalf("%d configurations; want 2 as they are, and 2 in which a section outlives its lease", len(p.configurations))
	}
	f := p.configurations[2]
	if got, want := f.report.String(), "embedded, --clients=10, --ttl=1s, fault: slow 1200ms nth 3"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	for _, x := range p.in(2) {
		outcome, _ := x.config.Expect()
		if x.config.Lock.Name == "none" || x.config.TTL != time.Second || (outcome == scenarios.ExpectPass) != (x.config.Sale.Name == "fenced") {
			t.Errorf("%s with a lease of %v, declared %s", campaign.ContenderOf(x.config), x.config.TTL, outcome)
		}
		for _, u := range x.config.KnownToBreak() {
			if u.Under == string(variant.Overrun) && x.config.Sale.Name == "plain" {
				t.Errorf("%s: an overrun counts as not tried", campaign.ContenderOf(x.config))
			}
		}
	}
	c := &comparing{Plan: p}
	for n, want := range map[int]int{1: 2*(len(p.in(0))+len(p.in(1))) + len(p.in(2)) + len(p.in(3)), 2: 2 * (len(p.in(0)) + len(p.in(1)))} {
		got := 0
		for _, j := range c.jobs(n) {
			if strings.HasPrefix(j.what, "c") && !strings.HasPrefix(j.what, "control") {
				got++
			}
		}
		if got != want {
			t.Errorf("round %d: %d runs; want %d", n, got, want)
		}
	}
	for _, args := range [][]string{{"--plain"}, {"--ttl=5s"}, {"--hold=1ms"}, {"--fault=slow 11s"}, {"--lock=none"}} {
		all := comparison(t, append([]string{"--quick", "--target=embedded", "--sale=plain"}, args...)...).configurations
		if slices.ContainsFunc(all, func(f *configuration) bool { return f.added }) {
			t.Errorf("%v: the configuration is added", args)
		}
	}
}

// TestControlIsKnownToBreakHere checks that, with faults, the control is chosen by a flaw that they trigger; only if
// there is none, by a flaw that load triggers.
func TestControlIsKnownToBreakHere(t *testing.T) {
	p := comparison(t, "--target=embedded", "--lock=lua-release,fenced", "--ttl=100ms", "--fault=slow 150ms 5%", "--fault=script-flush at 200ms")
	for i, want := range []struct {
		first    string
		property variant.Property
	}{
		{"", variant.NoOversell},
		{"token-del + plain", variant.OwnerOnlyRelease},
		{"", variant.NoOversell}, // no declared flaw is triggered by this fault
	} {
		control := &p.configurations[i].control
		first := control.candidates[0]
		if want.first != "" && first.who.String() != want.first {
			t.Errorf("%s: first %s; want %s", p.configurations[i].report, first.who, want.first)
		}
		for _, c := range control.candidates {
			if outcome, _ := c.config.Expect(); outcome != scenarios.ExpectViolated {
				t.Errorf("%s: %s is not declared to break", p.configurations[i].report, c.who)
			}
		}
		if !slices.ContainsFunc(first.breaks, func(b history.Promise) bool { return b.Property == want.property }) {
			t.Errorf("%s: %s is to break %v; want %s among them", p.configurations[i].report, first.who, first.breaks, want.property)
		}
	}
	under := p.configurations[1].control.candidates
	if slices.ContainsFunc(under, func(c *controlCandidate) bool { return c.who.String() == "none + plain" }) {
		t.Error("a variant that load alone breaks is a control where others break by the fault")
	}
}

func TestOrderIsShuffledByRound(t *testing.T) {
	order := func(seed uint64, n int) (names []string) {
		p := comparison(t, "--target=embedded", "--clients=4,8", fmt.Sprint("--seed=", seed))
		for _, j := range (&comparing{Plan: p}).jobs(n) {
			names = append(names, j.what+subjects(j.config)+fmt.Sprint(j.config.Clients))
		}
		return names
	}
	first, again, second, other := order(1, 1), order(1, 1), order(1, 2), order(2, 1)
	if !slices.Equal(first, again) || slices.Equal(first, other) {
		t.Error("the seed does not decide the order")
	}
	// Leaves out the runs alone, most of which are in the first round.
	cells := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.HasPrefix(s, "alone-") })
	}
	a, b := cells(first), cells(second)
	if slices.Equal(a, b) {
		t.Error("two rounds have the same order")
	}
	if changes := len(slices.CompactFunc(slices.Clone(a), func(x, y string) bool { return x[:2] == y[:2] })); changes < len(a)/4 {
		t.Errorf("configurations are not interleaved: %q", a)
	}
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) || len(slices.Compact(a)) != len(b) {
		t.Error("a round does not have every cell once")
	}
}

// ranAs returns a made-up sample.
func ranAs(verdict string, broke ...variant.Property) sample {
	s := sample{inconclusive: verdict == reports.Inconclusive, run: reports.Run{Verdict: verdict}, why: "for want of luck"}
	for i, p := range broke {
		s.broken = append(s.broken, brokenOnce{Promise: history.Promise{Of: variant.Sale, Property: p}, count: 2, at: time.Duration(i+1) * time.Millisecond, why: "so"})
	}
	return s
}

// TestDeclaredAsMet checks that a violation is as declared if each run met the condition for it.
func TestDeclaredAsMet(t *testing.T) {
	broke := ranAs(reports.Violated, variant.NoOversell)
	for _, declared := range []bool{false, true} {
		broke.broken[0].declared = declared
		x := reports.ComparisonCell{Expected: reports.Pass}
		judge(&x, []sample{broke}, nil, true, declaredIn([]sample{broke}))
		if x.Outcome != reports.Broke || x.AsDeclared != declared {
			t.Errorf("declared %v: %s, as declared: %v", declared, x.Outcome, x.AsDeclared)
		}
	}
}

func TestOutcomeOfACell(t *testing.T) {
	pass, vague := ranAs(reports.Pass), ranAs(reports.Inconclusive)
	broke := ranAs(reports.Violated, variant.NoOversell)
	for _, c := range []struct {
		name        string
		runs, alone []sample
		expected    string
		blind       bool
		outcome     string
		declared    bool
		why         string
	}{
		{name: "kept", runs: []sample{pass, pass}, expected: reports.Pass, outcome: reports.NoViolation, declared: true},
		{name: "a surprise", runs: []sample{pass, broke}, expected: reports.Pass, outcome: reports.Broke},
		{name: "a surprise, with nobody else caught", runs: []sample{broke}, expected: reports.Pass, blind: true, outcome: reports.Broke},
		{name: "as declared", runs: []sample{vague, broke}, expected: reports.Violated, outcome: reports.Broke, declared: true},
		{name: "more than declared", runs: []sample{broke, ranAs(reports.Violated, variant.NoOversell, variant.OncePerOrder)}, expected: reports.Violated, outcome: reports.Broke, why: "no flaw declares that it breaks once-per-order of the sale"},
		{name: "the flaw did not show", runs: []sample{pass, pass}, expected: reports.Violated, outcome: reports.NotSeen, declared: true},
		{name: "nor did the control", runs: []sample{pass}, expected: reports.Violated, blind: true, outcome: reports.Undecided, why: "control"},
		{name: "the control was not caught", runs: []sample{pass}, expected: reports.Pass, blind: true, outcome: reports.Undecided, why: "control"},
		{name: "one decided nothing", runs: []sample{pass, vague}, expected: reports.Pass, outcome: reports.Undecided, why: "1 of 2 runs decided nothing: for want of luck"},
		{name: "nothing was decided", runs: []sample{vague}, expected: reports.Pass, outcome: reports.Undecided, why: "for want of luck"},
		{name: "not run", expected: reports.Pass, outcome: reports.Undecided, why: "none of its runs was completed"},
		{name: "broken alone", runs: []sample{pass}, alone: []sample{broke}, expected: reports.Pass, outcome: reports.Broke},
		{name: "alone nothing shows", runs: []sample{pass}, alone: []sample{vague}, expected: reports.Pass, outcome: reports.NoViolation, declared: true},
	} {
		x := reports.ComparisonCell{Expected: c.expected}
		var declared []history.Promise
		if c.expected == reports.Violated {
			declared = []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}
		}
		judge(&x, c.runs, c.alone, !c.blind, declared)
		if x.Outcome != c.outcome || x.AsDeclared != c.declared || !strings.Contains(x.Why, c.why) || (c.why != "") != (x.Why != "") {
			t.Errorf("%s: %s (%s), as declared: %v; want %s, %v", c.name, x.Outcome, x.Why, x.AsDeclared, c.outcome, c.declared)
		}
	}
	b := brokenIn([]sample{broke, pass, ranAs(reports.Violated, variant.Linearizable, variant.NoOversell)})
	want := []reports.BrokenPromise{
		{Of: variant.Sale, Property: variant.NoOversell, Runs: 2, Count: 4, SoonestMS: 1, MedianMS: 1.5, Why: "so"},
		{Of: variant.Sale, Property: variant.Linearizable, Runs: 1, Count: 2, SoonestMS: 1, MedianMS: 1, Why: "so"},
	}
	if !slices.Equal(b, want) {
		t.Errorf("broken: %+v; want %+v", b, want)
	}
}

// TestWhatIsMadeOnceMore checks that a run that another seed may decide is repeated, and that only the repetition
// counts.
func TestWhatIsMadeOnceMore(t *testing.T) {
	judged := func(verdict, why string, done int64) *judging.Result {
		l := reports.NewLatencies()
		for range done {
			l.Add(&history.Op{Kind: history.Buy, Return: time.Millisecond})
		}
		return &judging.Result{Run: reports.Run{Verdict: verdict, Why: why}, Latencies: l, Work: judging.Work{Kind: history.Buy, Done: done, Requests: l}}
	}
	var x tally
	once, more := job{}, job{instead: true}
	x.add(1, "a", judged(reports.Pass, "", 5), once)
	if x.undecided(wholly) {
		t.Error("a decided run would be made once more")
	}
	x.add(2, "b", judged(reports.Inconclusive, judging.CutShort+"it took too long", 7), once)
	if x.undecided(wholly) {
		t.Error("a run that was cut short would be made once more")
	}
	x.add(3, "c", judged(reports.Inconclusive, "the fault never fired", 100), once)
	if !x.undecided(wholly) {
		t.Error("a run whose fault never fired would not be made once more")
	}
	x.add(3, "d", judged(reports.Pass, "", 11), more)
	if len(x.runs) != 3 || x.runs[2].dir != "d" || x.repeated != 1 || x.summary()["buy"].Count != 23 || x.request().Count != 23 {
		t.Errorf("%d runs, %d repeated, latencies of %d; want 3, 1, 5 + 7 + 11", len(x.runs), x.repeated, x.summary()["buy"].Count)
	}
	stopped := judged(reports.Violated, "", 100)
	stopped.Run.Interrupted = true
	x.add(4, "e", stopped, once)
	if len(x.runs) != 4 || x.summary()["buy"].Count != 23 || x.request().Count != 23 {
		t.Errorf("latencies of %d; want 23: a run that was stopped was measured on its way out", x.summary()["buy"].Count)
	}
}

// TestWhatStoppedRunsTell checks that a stopped run counts only with its violations.
func TestWhatStoppedRunsTell(t *testing.T) {
	whole, broke, vague := ranAs(reports.Pass), ranAs(reports.Violated, variant.NoOversell), ranAs(reports.Inconclusive)
	broke.interrupted, vague.interrupted = true, true
	x := tally{runs: []sample{whole, broke, vague}}
	if got := x.telling(); len(got) != 2 || len(got[1].broken) != 1 || len(x.whole()) != 1 {
		t.Errorf("%d tell something, %d are whole; want 2 and 1", len(got), len(x.whole()))
	}
}

// TestTheFastestIsSafe checks that a contender with a violation is never the reference, however fast it is.
func TestTheFastestIsSafe(t *testing.T) {
	cells := []reports.ComparisonCell{
		{Outcome: reports.Broke, Rounds: ratesOf(9, 9)},
		{Outcome: reports.NoViolation, Rounds: ratesOf(2, 2)},
		{Outcome: reports.NoViolation, Rounds: ratesOf(3, 2)},
		{Outcome: reports.Undecided, Rounds: ratesOf(8, 8)},
	}
	if got := fastestOf(cells); got != 2 {
		t.Errorf("the fastest is %d; want 2", got)
	}
	if got := fastestOf(cells[:1]); got != -1 {
		t.Errorf("nothing is safe, and the fastest is %d", got)
	}
}

// ratesOf returns a run for each of these throughputs, each in its own round.
func ratesOf(rates ...float64) (rs []reports.ComparedRun) {
	for i, r := range rates {
		rs = append(rs, reports.ComparedRun{Round: i + 1, Throughput: r, Measured: true})
	}
	return rs
}

// TestRatioIsPairedByRound checks that a round in which the machine was slow for both contenders does not affect the
// ratio.
func TestRatioIsPairedByRound(t *testing.T) {
	ratio := func(of, to []reports.ComparedRun) *reports.Spread { return spreadOrNil(paired(of, to)) }
	half := reports.Spread{Median: 0.5, Low: 0.5, High: 0.5}
	if r := ratio(ratesOf(50, 5, 400), ratesOf(100, 10, 800)); *r != half {
		t.Errorf("half as fast in each round: %+v", r)
	}
	if r := ratio(ratesOf(50), nil); r != nil {
		t.Errorf("no round in common: %+v", r)
	}
	stopped := ratesOf(100, 10)
	stopped[1].Interrupted = true
	if r := ratio(ratesOf(50, 10), stopped); *r != half {
		t.Errorf("a run that was stopped is compared: %+v", r)
	}
	proof := append(ratesOf(100), reports.ComparedRun{Round: 1, Throughput: 1})
	if r := ratio(ratesOf(50), proof); *r != half {
		t.Errorf("a run that is not measured is compared: %+v", r)
	}
}

// TestEstimate checks the geometric mean of the ratios and its interval, which needs three rounds.
func TestEstimate(t *testing.T) {
	e := estimateOf([]float64{0.5, 2, 1})
	if e.Ratio != 1 || e.Rounds != 3 || *e.Low >= 0.5 || *e.High <= 2 || math.Abs(*e.Low**e.High-1) > 1e-3 {
		t.Errorf("%+v, %v to %v; want 1, and as much below it as above", e, *e.Low, *e.High)
	}
	for _, few := range [][]float64{{0.25}, {0.25, 0.25}} {
		if e := estimateOf(few); e.Ratio != 0.25 || e.Low != nil || e.High != nil {
			t.Errorf("of %d rounds: %+v", len(few), e)
		}
	}
	if e := estimateOf([]float64{0.25, 0}); e.Ratio != 0 || e.Low != nil {
		t.Errorf("of one in which nothing was done: %+v", e)
	}
	if e := estimateOf(nil); e != nil {
		t.Errorf("of none: %+v", e)
	}
}

// TestRank checks that contenders with overlapping intervals share a rank, as do all that a chain of overlaps
// connects.
func TestRank(t *testing.T) {
	cell := func(outcome string, ratio, low, high float64) reports.ComparisonCell {
		return reports.ComparisonCell{Outcome: outcome, Estimate: &reports.RatioEstimate{Ratio: ratio, Low: &low, High: &high}}
	}
	cells := []reports.ComparisonCell{
		cell(reports.NoViolation, 0.2, 0.15, 0.25),
		cell(reports.NoViolation, 0.5, 0.3, 0.6),
		cell(reports.NoViolation, 1, 1, 1),
		cell(reports.Broke, 0.9, 0.8, 1.1),
		cell(reports.NoViolation, 0.4, 0.35, 0.45), // overlaps the wide one before it
		cell(reports.NoViolation, 0.3, 0.28, 0.31), // and the wide one reaches down to this one
		cell(reports.NoViolation, 0.1, 0.09, 0.12),
	}
	rank(cells)
	var got []string
	for _, x := range cells {
		got = append(got, x.Place())
	}
	if want := []string{"5", "2=", "1", "", "2=", "2=", "6"}; !slices.Equal(got, want) {
		t.Errorf("ranks %q; want %q", got, want)
	}
	for _, wide := range [][]reports.ComparisonCell{
		{cell(reports.NoViolation, 1, 1, 1), cell(reports.NoViolation, 0.1656, 0.0375, 0.7305), cell(reports.NoViolation, 0.1202, 0.0074, 1.965)},
		{cell(reports.NoViolation, 0.1202, 0.0074, 1.965), cell(reports.NoViolation, 0.1656, 0.0375, 0.7305), cell(reports.NoViolation, 1, 1, 1)},
	} {
		rank(wide) // the last reaches up beyond the one in between
		for _, x := range wide {
			if x.Place() != "1=" {
				t.Errorf("%+v has the rank %s; want 1=", *x.Estimate, x.Place())
			}
		}
	}
	once := []reports.ComparisonCell{cell(reports.NoViolation, 1, 1, 1), {Outcome: reports.NoViolation, Estimate: &reports.RatioEstimate{Ratio: 0.5}}}
	if rank(once); once[0].Rank != 0 {
		t.Error("contenders have ranks after one round")
	}
}

// TestWindow checks that work counts from the end of the warm-up to the end of the window, as do the latencies of all
// requests. A request that still waits at the end counts with its wait so far.
func TestWindow(t *testing.T) {
	ms := time.Millisecond
	op := func(client int32, kind history.Kind, outcome history.Outcome, reason history.Reason, call, returned time.Duration) history.Op {
		return history.Op{Client: client, Kind: kind, Outcome: outcome, Reason: reason, Due: call * ms, Call: call * ms, Return: returned * ms}
	}
	h := &history.History{
		Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: endless},
		Ops: []history.Op{
			op(1, history.Acquire, history.OK, 0, 10, 11),
			op(1, history.Buy, history.OK, 0, 11, 20), // during the warm-up
			op(1, history.Release, history.OK, 0, 20, 21),
			op(2, history.Acquire, history.OK, 0, 10, 22),
			op(2, history.Buy, history.OK, 0, 22, 40), // its request began before the window
			op(2, history.Release, history.OK, 0, 40, 41),
			op(1, history.Acquire, history.OK, 0, 21, 60),
			op(1, history.Buy, history.OK, 0, 60, 112), // after the end of the window
			op(1, history.Release, history.OK, 0, 112, 113),
			op(3, history.Acquire, history.Refused, history.Stopped, 10, 114), // waits in vain all the time
			{Client: 1, Kind: history.ReadState, Outcome: history.OK, Call: 120 * ms, Return: 121 * ms},
		},
		Trailer: &history.Trailer{Elapsed: 104 * ms},
	}
	w, l := window{20 * ms, 80 * ms}.measure(h)
	if w.Done != 1 || w.Within != 80*ms {
		t.Errorf("%d purchases in %v; want 1 in 80 ms", w.Done, w.Within)
	}
	if got := w.Requests.Summary()["buy"]; got.Count != 3 || got.Call.Max < 103.9 || got.Call.Max > 104.1 || got.Call.P50 < 90 {
		t.Errorf("requests: %+v; want those of 30, 91 and 104 ms", got)
	}
	if got := l.Summary()["acquire"]; got.Count != 1 {
		t.Errorf("%d acquisitions; want the one that was granted after the warm-up", got.Count)
	}
}

// TestWhatIsMeasured checks that a sale runs once to its end and once for a fixed time, and a lock alone for a fixed
// time, and that runs with a given length or with faults are measured as a whole.
func TestWhatIsMeasured(t *testing.T) {
	for _, c := range []struct {
		args  []string
		timed bool // whether there is also a run for a fixed time
		lasts time.Duration
		of    window
	}{
		{nil, true, 1250 * time.Millisecond, window{250 * time.Millisecond, time.Second}},
		{[]string{"--measure=2s"}, true, 2500 * time.Millisecond, window{500 * time.Millisecond, 2 * time.Second}},
		{[]string{"--scenario=queue", "--queue=zset-atomic"}, true, 1250 * time.Millisecond, window{250 * time.Millisecond, time.Second}},
		{[]string{"--scenario=mutex"}, false, 1250 * time.Millisecond, window{250 * time.Millisecond, time.Second}},
		{[]string{"--measure=0"}, false, 0, window{}},
		{[]string{"--duration=3s"}, false, 3 * time.Second, window{}},
		{[]string{"--faults-only", "--fault=slow 10ms 1%"}, false, 0, window{}},
		{[]string{"--scenario=dispatch"}, false, 0, window{}},
		{[]string{"--scenario=seckill-queued", "--queue=zset-locked"}, false, 0, window{}},
	} {
		args := append([]string{"--quick", "--plain", "--target=embedded"}, c.args...)
		if !slices.Contains(c.args, "--queue=zset-atomic") {
			args = append(args, "--lock=lua-release")
		}
		p := comparison(t, args...)
		x := p.cells[0]
		s := x.subject
		if (x.timed != nil) != c.timed {
			t.Fatalf("%v: a run for a time besides: %v; want %v", c.args, x.timed != nil, c.timed)
		}
		if c.timed {
			s = *x.timed
		}
		if s.window != c.of || c.lasts > 0 && s.config.Duration != c.lasts || c.timed && s.config.Ops != 0 {
			t.Errorf("%v: measured %+v of %v; want %+v of %v", c.args, s.window, s.config.Duration, c.of, c.lasts)
		}
	}
}

// TestExpected checks the time that a comparison announces before it runs.
func TestExpected(t *testing.T) {
	e := comparison(t, "--quick", "--target=embedded").Expected()
	if e.Total > 55*time.Second || e.Rounds < 3 || e.First >= e.Total {
		t.Errorf("a quick comparison is expected to take %+v; want 3 rounds or more within 55 s", e)
	}
	p := comparison(t, "--rounds=3", "--plain", "--lock=lua-release", "--target=embedded", "--measure=4s")
	if e := p.Expected(); e.Rounds != 3 || e.Total < 15*time.Second || e.Total > 25*time.Second {
		t.Errorf("3 rounds of 5 s, and one alone: %+v", e)
	}
	if s := p.Announcement(); !strings.Contains(s, "1 contender in 1 configuration: this takes about") || strings.Contains(s, "--time") {
		t.Errorf("announced: %s", s)
	}
}

func TestWorkOfASale(t *testing.T) {
	ms := time.Millisecond
	h := &history.History{
		Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: 2},
		Ops: []history.Op{
			{Client: 1, Kind: history.Acquire, Outcome: history.OK, Due: 10 * ms, Call: 10 * ms, Return: 11 * ms},
			{Client: 1, Kind: history.Buy, Outcome: history.OK, Due: 11 * ms, Call: 11 * ms, Return: 13 * ms},
			{Client: 1, Kind: history.Release, Outcome: history.OK, Due: 13 * ms, Call: 13 * ms, Return: 14 * ms},
			{Client: 2, Kind: history.Acquire, Outcome: history.OK, Due: 10 * ms, Call: 10 * ms, Return: 15 * ms},
			{Client: 2, Kind: history.Buy, Outcome: history.OK, Reason: history.Repeated, Due: 15 * ms, Call: 15 * ms, Return: 16 * ms},
			{Client: 2, Kind: history.Buy, Outcome: history.OK, Due: 16 * ms, Call: 16 * ms, Return: 30 * ms},
			{Client: 2, Kind: history.Buy, Outcome: history.Refused, Reason: history.SoldOut, Due: 30 * ms, Call: 30 * ms, Return: 31 * ms},
		},
		Trailer: &history.Trailer{Elapsed: 100 * ms},
	}
	w := countedWork(h, 2)
	l := w.Requests.Summary()["buy"]
	if w.Done != 2 || w.Within != 20*ms || w.Rate() != 100 || l.Outcomes["ok"].Count != 3 || l.Outcomes["ok"].Max < 19.9 || l.Outcomes["ok"].Max > 20.1 {
		t.Errorf("%+v, %+v; want 2 purchases in 20 ms, after 20 ms at the latest", w, l)
	}
	if l.Count != 4 || l.Call.Max < 20.9 || l.Outcomes["refused"].Count != 1 || l.Due != nil {
		t.Errorf("%+v; want the one that was refused after 21 ms to count, too", l)
	}
	if w := countedWork(h, 1); w.Within != 100*ms { // with a piece left, the sale lasted until the end of the run
		t.Errorf("not sold out: %+v", w)
	}
}

func TestWorkOfAQueue(t *testing.T) {
	ms := time.Millisecond
	h := &history.History{
		Header: history.Header{Objects: []variant.Object{variant.Queue}},
		Ops: []history.Op{
			{Client: 1, Kind: history.Acquire, Outcome: history.OK, Due: 10 * ms, Call: 10 * ms, Return: 11 * ms}, // finds nothing
			{Client: 1, Kind: history.Release, Outcome: history.OK, Due: 13 * ms, Call: 13 * ms, Return: 14 * ms},
			{Client: 1, Kind: history.Pop, Outcome: history.OK, Due: 20 * ms, Call: 20 * ms, Return: 21 * ms, Amount: 1},
			{Client: 1, Kind: history.Pop, Outcome: history.OK, Due: 21 * ms, Call: 21 * ms, Return: 22 * ms, Amount: 2}, // a second attempt
			{Client: 1, Kind: history.Pop, Outcome: history.Refused, Reason: history.Empty, Due: 22 * ms, Call: 22 * ms, Return: 300 * ms},
		},
		Trailer: &history.Trailer{Elapsed: 400 * ms},
	}
	if w := countedWork(h, 0); w.Done != 1 || w.Within != 11*ms || w.Requests.Summary()["pop"].Outcomes["ok"].Max > 1.1 || w.Requests.Summary()["pop"].Call.Max < 277 {
		t.Errorf("%+v, %+v; want 1 delivery in 11 ms, after 1 ms, and a look in vain of 278 ms", w, w.Requests.Summary()["pop"])
	}
}

func TestWhenItWasSeen(t *testing.T) {
	op := func(kind history.Kind, returned time.Duration) history.Op {
		return history.Op{Kind: kind, Return: returned}
	}
	for _, c := range []struct {
		property variant.Property
		witness  []history.Op
		want     time.Duration
	}{
		{variant.MutualExclusion, []history.Op{op(history.Acquire, 12), op(history.Acquire, 15), op(history.Release, 90)}, 5},
		{variant.OwnerOnlyRelease, []history.Op{op(history.Acquire, 12), op(history.Acquire, 15), op(history.Release, 20), op(history.Release, 90)}, 10},
		{variant.NoOversell, []history.Op{op(history.Buy, 12), op(history.Buy, 40)}, 30},
		{variant.NoUndersell, nil, 77},
	} {
		if got := judging.Seen(checker.Verdict{Of: variant.Lock, Property: c.property, Witness: c.witness}, 10, 77); got != c.want {
			t.Errorf("%s: seen after %d; want %d", c.property, got, c.want)
		}
	}
}

func TestComparison(t *testing.T) {
	p := comparison(t, small("--lock=lua-release,php-lock-printed,set-nx-ex", "--rounds=3")...)
	c := compared(t, p)
	if c.Rounds != 3 || c.ExitCode() != reports.ExitPass || len(c.Cells) != 3 {
		t.Fatalf("%d rounds, exit code %d, cells %+v", c.Rounds, c.ExitCode(), c.Cells)
	}
	f := c.Configurations[0]
	if f.Control.Contender.Lock != "php-lock-printed" || f.Control.Runs != 3 || !f.Control.Power() || f.Fastest < 0 {
		t.Errorf("the configuration: %+v", f)
	}
	for _, x := range c.Cells {
		who := c.Contenders[x.Contender]
		if want := map[bool]string{true: reports.Broke, false: reports.NoViolation}[who.Lock == "php-lock-printed"]; x.Outcome != want {
			t.Errorf("%s: %s (%s)", who, x.Outcome, x.Why)
		}
		if x.Runs != 6 || len(x.Rounds) != 6 || x.Throughput.Median <= 0 || x.Ratio == nil || x.Request == nil || x.RequestAlone == nil ||
			x.Fairness <= 0 || x.LongestWaitMS <= 0 || x.CommandsPerAcquisition < 3 || x.Uncontended["acquire"].Count == 0 {
			t.Errorf("%s: %+v", who, x)
		}
		// The latencies are merged from all rounds: they hold every purchase that was measured, and also some that
		// ended late, however late.
		measured, all := 0.0, 0.0
		for _, r := range x.Rounds {
			if !r.Measured {
				continue
			}
			measured += r.Throughput * c.MeasuredMS / 1e3
			h, err := history.Read(filepath.Join(p.dir, r.Dir, campaign.HistoryFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range h.Ops {
				if op.Kind == history.Buy && op.Outcome == history.OK {
					all++
				}
			}
		}
		if got := float64(x.Request.Outcomes["ok"].Count); got < measured-0.5 || got > all {
			t.Errorf("%s: latencies of %v purchases; want %v to %v", who, got, measured, all)
		}
		if x.Contender == f.Fastest && *x.Ratio != (reports.Spread{Median: 1, Low: 1, High: 1}) {
			t.Errorf("the fastest by itself: %+v", x.Ratio)
		}
		if x.Estimate == nil || x.Estimate.Rounds != 3 || (x.Rank > 0) != (x.Outcome == reports.NoViolation) {
			t.Errorf("%s: rank %d by %+v", who, x.Rank, x.Estimate)
		}
		for _, r := range x.Rounds {
			if r.Seed != uint64(6+r.Round) && x.Repeated == 0 {
				t.Errorf("%s, round %d: seed %d", who, r.Round, r.Seed)
			}
			if _, err := os.Stat(filepath.Join(p.dir, r.Dir, campaign.HistoryFile)); err != nil {
				t.Error(err)
			}
		}
	}
	var saved reports.Comparison
	if text, err := os.ReadFile(filepath.Join(p.dir, campaign.ComparisonFile)); err != nil || json.Unmarshal(text, &saved) != nil || len(saved.Cells) != 3 {
		t.Errorf("saved: %+v, %v", saved, err)
	}
	if _, err := Run(t.Context(), p, quiet{}); !errors.Is(err, campaign.ErrUsed) {
		t.Errorf("into a directory that is in use: %v", err)
	}
}

// plant declares a flawed lock to be sound.
func plant(p *Plan, lock string) {
	for _, x := range p.cells {
		if x.config.Lock.Name == lock {
			x.config.Lock.Flaws, x.config.Sale.Flaws = nil, nil
		}
	}
}

func TestASurpriseIsExit1(t *testing.T) {
	p := comparison(t, small("--lock=none,lua-release", "--sale=plain", "--rounds=1")...)
	plant(p, "none")
	c := compared(t, p)
	if s := c.Surprises(); c.ExitCode() != reports.ExitViolated || len(s) != 1 || c.Contenders[s[0].Contender].Lock != "none" {
		t.Errorf("exit code %d, surprises %+v", c.ExitCode(), s)
	}
}

// TestAControlThatIsNotCaughtIsExit3 checks that a comparison is inconclusive if its control was not caught, although
// there was no violation.
func TestAControlThatIsNotCaughtIsExit3(t *testing.T) {
	p := comparison(t, small("--lock=lua-release,set-nx-ex", "--rounds=1")...)
	control := &p.configurations[0].control
	x := p.cells[0]
	control.candidates = []*controlCandidate{{who: p.contenders[0], subject: x.subject, tally: &tally{}, extra: true, breaks: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}}}
	c := compared(t, p)
	if f := c.Configurations[0].Control; c.ExitCode() != reports.ExitInconclusive || f.Runs != 1 || f.Power() {
		t.Errorf("exit code %d, control %+v", c.ExitCode(), f)
	}
	for _, x := range c.Cells {
		if x.Outcome != reports.Undecided || x.AsDeclared {
			t.Errorf("%s: %s", c.Contenders[x.Contender], x.Outcome)
		}
	}
}

// TestAnExtraControlIsFound checks that a control is added where no contender is known to break.
func TestAnExtraControlIsFound(t *testing.T) {
	c := compared(t, comparison(t, small("--lock=lua-release", "--rounds=2")...))
	if f := c.Configurations[0].Control; !f.Power() || f.Runs != 2 || c.ExitCode() != reports.ExitPass {
		t.Errorf("control %+v, exit code %d", f, c.ExitCode())
	}
}

// stopping is a watcher that interrupts a comparison after a number of runs.
type stopping struct {
	quiet
	cancel context.CancelFunc
	after  int
}

func (s *stopping) Done(int, int, reports.Run) {
	if s.after--; s.after == 0 {
		s.cancel()
	}
}

func TestStoppedComparison(t *testing.T) {
	for _, c := range []struct {
		planted string
		want    int
	}{{"", reports.ExitInconclusive}, {"none", reports.ExitViolated}} {
		p := comparison(t, small("--lock=lua-release,none", "--sale=plain", "--rounds=9")...)
		plant(p, c.planted)
		ctx, cancel := context.WithCancel(t.Context())
		d, err := Run(ctx, p, &stopping{cancel: cancel, after: 9}) // in the second round
		opentest.Check(t, err)
		if !d.Interrupted || d.Rounds != 1 || len(d.Cells) != 2 || d.ExitCode() != c.want {
			t.Errorf("planted %q: interrupted %v, %d rounds, %d cells, exit code %d; want %d", c.planted, d.Interrupted, d.Rounds, len(d.Cells), d.ExitCode(), c.want)
		}
		if _, err := os.Stat(filepath.Join(p.dir, campaign.ComparisonFile)); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

// TestRoundsEnd checks that a comparison ends after the planned rounds, or before a round that would take too long.
func TestRoundsEnd(t *testing.T) {
	for _, c := range []struct {
		args    []string
		n       int
		longest time.Duration
		want    string
	}{
		{[]string{"--rounds=2"}, 2, time.Hour, ""},
		{[]string{"--rounds=2"}, 3, 0, "planned"},
		{[]string{"--time=1m"}, 1, time.Hour, ""},
		{[]string{"--time=1m"}, 2, time.Hour, "took longer"},
		{[]string{"--time=1m"}, 7, 10 * time.Second, ""},
		{[]string{"--quick"}, 6, 0, "planned"},
		{[]string{"--quick"}, 3, 55 * time.Second, "hardly"},
		{[]string{"--quick", "--rounds=20"}, 3, 55 * time.Second, "hardly"}, // --quick keeps its time even with --rounds
		{nil, 4, 10 * time.Minute, "hardly"},
	} {
		got := (&comparing{Plan: comparison(t, append(c.args, "--target=embedded", "--lock=lua-release")...), began: time.Now()}).enough(c.n, c.longest, c.longest)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v, before round %d: %q; want %q", c.args, c.n, got, c.want)
		}
	}
}

func TestCommandOfAComparison(t *testing.T) {
	p := comparison(t, "--quick", "--lock=lua-release,fenced", "--clients=10,20", "--fault=slow 150ms 5%; crash holder 1%", "--target=embedded", "--allow-remote")
	want := "oversell compare --allow-remote --clients 10,20 --fault 'slow 150ms 5%; crash holder 1%' --lock lua-release,fenced --quick --seed 7 --target embedded"
	if p.command != want {
		t.Errorf("%s\nwant\n%s", p.command, want)
	}
}

// countedWork returns the work in a history.
func countedWork(h *history.History, sold int64) judging.Work {
	c := judging.NewCounting(h)
	c.Read(h.Ops)
	return c.Work(h, sold)
}
