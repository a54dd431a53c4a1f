package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/campaign/judging"
	"oversell/checker/monitor"
	"oversell/history"
	"oversell/internal/stats"
	"oversell/reports"
	"oversell/variant"
)

// tally collects the runs of one subject. It merges latencies, so its size grows little per run.
type tally struct {
	runs      []sample
	repeated  int
	took      [parts]time.Duration // by the last run of each part
	latencies *reports.Latencies
	requests  *reports.Latencies
	kind      history.Kind    // of requests
	last      *judging.Result // the last run; its latencies are not merged yet, because it may be replaced
}

// part is the purpose of a run.
type part uint8

// The parts.
const (
	wholly   part = iota // promises and speed
	toItsEnd             // promises; its speed means little
	forATime             // speed; its violations count, but their absence does not
	parts
)

// measured reports whether such a run measures speed and latency.
func (p part) measured() bool { return p != toItsEnd }

// proves reports whether such a run tests promises.
func (p part) proves() bool { return p != forATime }

// sample is the summary of one run.
type sample struct {
	part         part
	round        int
	dir          string
	run          reports.Run // without properties
	why          string      // why it was inconclusive
	broken       []brokenOnce
	chances      map[history.Promise]int64 // opportunities of each promise
	done         int64                     // pieces of work
	rate         float64
	longest      float64 // longest wait for the lock, in ms
	interrupted  bool
	inconclusive bool
}

// brokenOnce is a promise that a run broke.
type brokenOnce struct {
	history.Promise
	count    int
	unit     string
	at       time.Duration
	why      string
	declared bool // as the run met it
}

// add counts a run of job of. It may replace the last run if that decided nothing.
func (t *tally) add(round int, dir string, j *judging.Result, of job) {
	s := sample{
		part: of.part, round: round, dir: dir, run: j.Run, why: whyNot(j.Run), done: j.Work.Done, rate: j.Work.Rate(), interrupted: j.Run.Interrupted,
		inconclusive: j.Run.Verdict == reports.Inconclusive, longest: j.Run.Latency[history.Acquire.String()].Call.Max,
	}
	end := reports.FromMS(j.Run.ElapsedMS)
	for _, p := range j.Run.Properties {
		if p.Result != reports.NotClaimed {
			if s.chances == nil {
				s.chances = map[history.Promise]int64{}
			}
			s.chances[history.Promise{Of: p.Of, Property: p.Name}] += p.Opportunities
		}
		if p.Result != reports.Broken {
			continue
		}
		b := brokenOnce{Promise: history.Promise{Of: p.Of, Property: p.Name}, count: p.Count, unit: p.Unit, why: p.Why, declared: p.Declared}
		for _, v := range j.Verdicts {
			if v.Of == p.Of && v.Property == p.Name {
				b.at = judging.Seen(v, j.Work.Began, end)
			}
		}
		s.broken = append(s.broken, b)
	}
	s.run.Properties, s.run.Latency, s.run.Request, s.run.Phases = nil, nil, nil, nil // they are large
	if i := t.latest(of.part); of.instead && i >= 0 {
		t.runs = slices.Delete(t.runs, i, i+1)
		t.repeated++
		if of.part.measured() {
			t.last = nil
		}
	}
	t.runs = append(t.runs, s)
	if s.part.measured() {
		t.settle()
		if !s.interrupted { // an interrupted run was measured while it stopped
			t.last = j
		}
	}
}

// latest returns the index of the last run of this part; -1: there was none.
func (t *tally) latest(p part) int {
	for i, s := range slices.Backward(t.runs) {
		if s.part == p {
			return i
		}
	}
	return -1
}

// settle merges the latencies of the last run, which can no longer be replaced.
func (t *tally) settle() {
	if t.last == nil {
		return
	}
	if t.latencies == nil {
		t.latencies, t.requests, t.kind = reports.NewLatencies(), reports.NewLatencies(), t.last.Work.Kind
	}
	t.latencies.Merge(t.last.Latencies)
	t.requests.Merge(t.last.Work.Requests)
	t.last = nil
}

// whyNot explains why a run was inconclusive; for an undecided promise, it names the first.
func whyNot(r reports.Run) string {
	for _, p := range r.Properties {
		if (r.Why == judging.NotDecided || judging.Uncontended(r.Why)) && p.Result == reports.Unknown {
			return fmt.Sprintf("%s; %s of the %s: %s", r.Why, p.Name, p.Of, p.Why)
		}
	}
	return r.Why
}

// undecided reports whether the last run of a part decided nothing and a repetition may decide. A run that was cut
// short would most likely be cut short again.
func (t *tally) undecided(p part) bool {
	i := t.latest(p)
	if i < 0 {
		return false
	}
	last := t.runs[i]
	return last.inconclusive && !last.interrupted && !strings.HasPrefix(last.why, judging.CutShort)
}

// whole returns the runs that were not interrupted.
func (t *tally) whole() []sample {
	return slices.DeleteFunc(slices.Clone(t.runs), func(s sample) bool { return s.interrupted })
}

// measured returns those of the whole runs that are measured.
func (t *tally) measured() []sample {
	return slices.DeleteFunc(t.whole(), func(s sample) bool { return !s.part.measured() })
}

// proving returns those of the whole runs that test promises.
func (t *tally) proving() []sample {
	return slices.DeleteFunc(t.whole(), func(s sample) bool { return !s.part.proves() })
}

// telling returns the runs that say something about promises: the whole ones, and interrupted ones that broke one.
func (t *tally) telling() []sample {
	return slices.DeleteFunc(slices.Clone(t.runs), func(s sample) bool { return s.interrupted && len(s.broken) == 0 })
}

// request returns the latency of the requests; nil if none ended.
func (t *tally) request() *reports.Latency {
	t.settle()
	return judging.LatencyOf(t.requests, t.kind)
}

// summary returns the latencies by kind of operation.
func (t *tally) summary() map[string]reports.Latency {
	t.settle()
	if t.latencies == nil {
		return map[string]reports.Latency{}
	}
	return t.latencies.Summary()
}

// declaredIn lists the promises that these runs broke under conditions for which flaws declare it, whether or not they
// were asked for.
func declaredIn(runs []sample) (all []history.Promise) {
	for _, r := range runs {
		for _, b := range r.broken {
			if b.declared {
				all = append(all, b.Promise)
			}
		}
	}
	return all
}

// brokenIn lists the promises that these runs broke, in the order of variant.Properties.
func brokenIn(runs []sample) (all []reports.BrokenPromise) {
	for _, info := range variant.Properties {
		b := reports.BrokenPromise{Of: info.Of, Property: info.Name}
		var at []float64
		for _, r := range runs {
			for _, x := range r.broken {
				if x.Of != info.Of || x.Property != info.Name {
					continue
				}
				b.Unit = monitor.OneUnit(b.Count, b.Unit, x.count, x.unit)
				b.Runs, b.Count = b.Runs+1, b.Count+x.count
				b.Why = cmp.Or(b.Why, x.why)
				at = append(at, judging.Round(float64(x.at)/1e6))
			}
		}
		if b.Runs > 0 {
			s := spreadOf(at)
			b.SoonestMS, b.MedianMS = s.Low, s.Median
			all = append(all, b)
		}
	}
	return all
}

// soldIn returns what these runs sold, and their stock; nil without a sale.
func soldIn(runs []sample) (sold *reports.Spread, stock int64) {
	if len(runs) == 0 || runs[0].run.Sold == nil {
		return nil, 0
	}
	s := spreadOf(measure(runs, func(s sample) float64 { return float64(*s.run.Sold) }))
	return &s, *runs[0].run.Stock
}

// spreadOf summarizes a measure over the rounds; zero if there were none.
func spreadOf(values []float64) reports.Spread {
	if len(values) == 0 {
		return reports.Spread{}
	}
	s := slices.Sorted(slices.Values(values))
	return reports.Spread{Median: judging.Round(stats.Middle(s)), Low: judging.Round(s[0]), High: judging.Round(s[len(s)-1])}
}

// measure returns a measure of every run.
func measure(runs []sample, of func(sample) float64) (values []float64) {
	for _, r := range runs {
		values = append(values, of(r))
	}
	return values
}

// fewest returns the smallest total number of opportunities of any promise in these runs, and the number of
// promises.
func fewest(runs []sample) (n int64, promises int) {
	sums := map[history.Promise]int64{}
	for _, r := range runs {
		for p, chances := range r.chances {
			sums[p] += chances
		}
	}
	for _, sum := range sums {
		if sum > 0 && (n == 0 || sum < n) {
			n = sum
		}
	}
	return n, len(sums)
}

// judge decides the outcome of a cell. power reports whether its configuration caught its control. alone are the
// runs with a single client: they do not test promises, but their violations count. The outcome is as declared only
// if flaws declare every violation.
func judge(x *reports.ComparisonCell, runs, alone []sample, power bool, declared []history.Promise) {
	x.Broken = brokenIn(runs)
	if len(x.Broken) == 0 && x.Expected == reports.Pass {
		x.Broken = brokenIn(alone)
		for i := range x.Broken {
			x.Broken[i].Alone = true
		}
	}
	x.Outcome = reports.Undecided
	unclear, proving := "", 0
	for _, r := range runs {
		if !r.part.proves() {
			continue
		}
		proving++
		if r.inconclusive {
			x.Unclear++
			unclear = cmp.Or(unclear, r.why)
		}
	}
	switch {
	case len(x.Broken) > 0:
		x.Outcome = reports.Broke
		x.AsDeclared = !slices.ContainsFunc(x.Broken, func(b reports.BrokenPromise) bool {
			return !slices.Contains(declared, history.Promise{Of: b.Of, Property: b.Property})
		})
		for _, b := range x.Broken {
			if x.Expected == reports.Violated && !slices.Contains(declared, history.Promise{Of: b.Of, Property: b.Property}) {
				x.Why = fmt.Sprintf("no flaw declares that it breaks %s of the %s", b.Property, b.Of)
			}
		}
	case proving == 0:
		x.Why = "none of its runs was completed"
	case x.Unclear == proving:
		x.Why = unclear
	case x.Unclear > 0:
		x.Why = fmt.Sprintf("%d of %d runs decided nothing: %s", x.Unclear, proving, unclear)
	case !power:
		x.Why = "no violation was seen, but the control was not caught, so this configuration shows nothing"
	case x.Expected == reports.Violated:
		x.Outcome, x.AsDeclared = reports.NotSeen, true
	default:
		x.Outcome, x.AsDeclared = reports.NoViolation, true
	}
}
