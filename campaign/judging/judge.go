package judging

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"oversell/checker"
	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/internal/phrase"
	"oversell/reports"
	"oversell/variant"
)

// Result is a judged history. It depends on the history alone.
type Result struct {
	Run       reports.Run
	Latencies *reports.Latencies
	Verdicts  []checker.Verdict
	// Work is the useful work of the run.
	Work Work
}

// Judge judges a history. It makes as few passes as possible over a file on disk.
func Judge(h *history.History) Result {
	t := NewCounting(h)
	j := checker.Judge(h, t.Read)
	lat, ops := t.latencies, t.ops
	elapsed := elapsed(h)
	r := reports.Run{
		Scenario: h.Header.Scenario, Lock: h.Header.Lock, Sale: h.Header.Sale, Queue: h.Header.Queue, IDs: h.Header.IDs, Dispatch: h.Header.Dispatch, SQL: h.Header.SQL,
		Target: h.Header.Target, Topology: h.Header.Topology, ServerVersion: h.Header.ServerVersion,
		Engine: h.Header.Engine, Waiting: h.Header.Waiting, Seed: h.Header.Seed,
		Clients: h.Header.Clients, Pool: h.Header.Pool,
		RTT: Round(float64(h.Header.RTT) / 1e6), Pipelines: h.Header.Pipelines, Intervals: intervals(h, t.widths),
		Operations: ops, ElapsedMS: Round(float64(elapsed) / 1e6), Latency: lat.Summary(), Faults: fired(h), Phases: phases(h),
		Expected: h.Header.Expected, ExpectedWhy: h.Header.ExpectedFlaws,
		KnownToBreak: h.Header.KnownToBreak,
		Overruns:     j.Overruns, FirstOverrun: j.FirstOverrun, Refusals: byName(j.Refusals), Fairness: Round(j.Fairness), Cut: h.Cut,
	}
	if elapsed > 0 {
		r.Throughput = Round(float64(ops) / elapsed.Seconds())
	}
	r.Acquired = j.Acquired
	if t := h.Trailer; t != nil {
		r.Interrupted, r.Notes, r.Commands, r.Servers = t.Interrupted, t.Notes, t.Commands, serverLoads(t)
	}
	r.Arrivals, r.PoolWait = arrivalsOf(h), poolWaitOf(h)
	if note := engineNote(&r); note != "" {
		r.Notes = append([]string{note}, r.Notes...)
	}
	if h.Header.Has(variant.Sale) {
		j.Sold -= t.returned
		r.Returned = t.returned
		stock := h.Header.Stock * int64(max(len(t.products), 1))
		r.Stock, r.Sold, r.Unknown = &stock, &j.Sold, &j.Unknown
	}
	r.Notes = append(r.Notes[:len(r.Notes):len(r.Notes)], h.Remarks...)
	if h.Damaged {
		j.Verdicts = undecided(j.Verdicts, "the history is "+h.Cut)
	}
	results := properties(&r, h, j.Verdicts)
	r.Verdict, r.Why = Verdict(h, results, t.Contended)
	befall(&r, h)
	work := t.Work(h, j.Sold+j.Unknown)
	r.Request = work.Request()
	return Result{r, lat, j.Verdicts, work}
}

func byName(refusals map[history.Reason]int64) map[string]int64 {
	names := map[string]int64{}
	for reason, n := range refusals {
		names[reason.String()] = n
	}
	return names
}

// elapsed returns how long the load ran; if the history does not record it, from the first call to the last return.
func elapsed(h *history.History) time.Duration {
	if h.Trailer != nil && h.Trailer.Elapsed > 0 {
		return h.Trailer.Elapsed
	}
	first, last := history.Forever, history.Forever
	for op := range h.Each() {
		first, last = min(first, op.Call), op.Return
	}
	return last - first
}

// intervals returns how wide the recorded intervals are.
func intervals(h *history.History, operations *hdrhistogram.Histogram) (i reports.Intervals) {
	if operations.TotalCount() > 0 {
		i.Operations = widthsOf(time.Duration(reports.ValueAt(operations, 50)), time.Duration(reports.ValueAt(operations, 99)))
	}
	if t := h.Trailer; t != nil && t.CommandTail > 0 {
		i.Commands = widthsOf(t.CommandMedian, t.CommandTail)
	}
	return i
}

func widthsOf(p50, p99 time.Duration) *reports.Widths {
	return &reports.Widths{P50: Round(float64(p50) / 1e6), P99: Round(float64(p99) / 1e6)}
}

// engineNote describes an engine other than the default, and what it means for the verdict.
func engineNote(r *reports.Run) string {
	if r.Pipelines == 0 {
		return ""
	}
	note := fmt.Sprintf("engine %s: %s on %s", r.Engine, phrase.Count(r.Clients, "client"), phrase.Count(r.Pipelines, "pipeline"))
	if r.RTT > 0 {
		note += fmt.Sprintf(", every reply delayed by %g ms on average", r.RTT)
	} else {
		note += ", with no virtual round-trip time, which hides races"
	}
	if c := r.Intervals.Commands; c != nil {
		note += fmt.Sprintf("; commands took %g ms (p50) and %g ms (p99) from call to reply; the longer, the weaker the check", c.P50, c.P99)
	}
	return note
}

// Round rounds to three decimals, enough for any figure here.
func Round(x float64) float64 { return math.Round(x*1e3) / 1e3 }

// fired returns the faults of the run with their results; for a run that was killed, only recorded injections are
// known.
func fired(h *history.History) []reports.Fault {
	fs := []reports.Fault{}
	if h.Trailer == nil {
		for _, name := range h.Header.Faults {
			f := reports.Fault{Name: name}
			for op := range h.Each() {
				if op.Kind == history.Fault && op.Key.String() == name {
					f.Fired++
				}
			}
			fs = append(fs, reports.Fault(f))
		}
		return fs
	}
	for _, f := range h.Trailer.Faults {
		fs = append(fs, reports.Fault(f))
	}
	return fs
}

// unlisted names a fault of the header that is missing from the trailer; empty if there is none.
func unlisted(h *history.History) string {
	for _, name := range h.Header.Faults {
		if !slices.ContainsFunc(h.Trailer.Faults, func(f history.FaultCount) bool { return f.Name == name }) {
			return fmt.Sprintf("the header declares the fault %q, but the trailer does not have it", name)
		}
	}
	return ""
}

// idle describes a fault that did not take effect; empty if all did.
func idle(t *history.Trailer) string {
	for _, f := range t.Faults {
		switch {
		case f.Fired == 0 && f.Partly > 0:
			return fmt.Sprintf("the fault %q fired only in part: %s", f.Name, f.Failed)
		case f.Fired == 0 && f.Failed != "":
			return fmt.Sprintf("the fault %q never fired: %s", f.Name, f.Failed)
		case f.Fired == 0 && f.Vain > 0:
			return fmt.Sprintf("the fault %q had no effect: %s", f.Name, f.VainWhy)
		case f.Fired == 0 && f.Matched > 0:
			return fmt.Sprintf("the fault %q never fired, though it matched %s", f.Name, say.Times(f.Matched))
		case f.Fired == 0:
			return fmt.Sprintf("the fault %q never fired: nothing matched it", f.Name)
		case f.Failed != "":
			return fmt.Sprintf("the fault %q: %s", f.Name, f.Failed)
		}
	}
	if t.Unrecovered != "" {
		return "the run did not recover from its faults: " + t.Unrecovered
	}
	return ""
}

// properties fills in r.Properties in the order of variant.Properties, unknown ones last, and returns the verdicts
// on those that were promised.
func properties(r *reports.Run, h *history.History, vs []checker.Verdict) []checker.Verdict {
	r.Properties = []reports.Property{}
	var promised []checker.Verdict
	for _, v := range inOrder(vs) {
		p := reports.Property{Name: v.Property, Of: v.Of, Measured: v.Result.String(), Count: v.Count, Unit: v.Unit, Opportunities: v.Opportunities, Why: v.Why, Witness: v.Witness}
		if p.Witness == nil {
			p.Witness = []history.Op{}
		}
		p.Result = p.Measured
		if h.Header.Promised(v.Of, v.Property) {
			promised = append(promised, v)
			p.Declared = h.Header.Declares(v.Of, v.Property)
		} else {
			p.Result = reports.NotClaimed
		}
		r.Properties = append(r.Properties, p)
	}
	return promised
}

// inOrder sorts verdicts by variant.Properties.
func inOrder(vs []checker.Verdict) []checker.Verdict {
	place := func(v checker.Verdict) int {
		i := slices.IndexFunc(variant.Properties, func(info variant.PropertyInfo) bool { return info.Of == v.Of && info.Name == v.Property })
		if i < 0 {
			return len(variant.Properties)
		}
		return i
	}
	vs = slices.Clone(vs)
	slices.SortStableFunc(vs, func(a, b checker.Verdict) int { return place(a) - place(b) })
	return vs
}

// undecided returns verdicts that are all unknown, for the reason given.
func undecided(vs []checker.Verdict, why string) []checker.Verdict {
	vs = slices.Clone(vs)
	for i, v := range vs {
		vs[i] = checker.Verdict{Of: v.Of, Property: v.Property, Result: checker.Unknown, Why: why}
	}
	return vs
}

// Verdict merges the results for the promises. A run passes when every promise held and had opportunities to break;
// see [checker.Verdict.Opportunities].
func Verdict(h *history.History, promised []checker.Verdict, contended bool) (verdict, why string) {
	var results []checker.Result
	open := false // a promise is undecided for a reason other than too few opportunities
	for _, v := range promised {
		results = append(results, v.Result)
		open = open || v.Result == checker.Unknown && !v.Unwitnessed()
	}
	merged := monitor.Merge(results...)
	switch {
	case h.Damaged:
		return reports.Inconclusive, "the history is " + h.Cut
	case merged == checker.Violated:
		return reports.Violated, ""
	case h.Cut != "":
		return reports.Inconclusive, "the history is incomplete: " + h.Cut
	case h.Trailer == nil:
		return reports.Inconclusive, "the history has no end: the run was killed"
	case h.Trailer.Aborted != "":
		return reports.Inconclusive, CutShort + h.Trailer.Aborted
	case h.Trailer.Interrupted:
		return reports.Inconclusive, "the run was stopped before its end"
	case unlisted(h) != "":
		return reports.Inconclusive, unlisted(h)
	case idle(h.Trailer) != "":
		return reports.Inconclusive, idle(h.Trailer)
	case Unoffered(h) != "":
		return reports.Inconclusive, Unoffered(h)
	case len(promised) == 0:
		return reports.Inconclusive, "nothing was promised, so nothing could be broken"
	case merged == checker.Unknown && open:
		return reports.Inconclusive, NotDecided
	case !contended:
		return reports.Inconclusive, TooLittle + ": no two clients were active at the same time"
	case merged == checker.Unknown, FewestOf(promised).Opportunities < Needed:
		few := FewestOf(promised)
		why := fmt.Sprintf("%s: %s of the %s had %s, and a pass needs %d for each promise", TooLittle, few.Property, few.Of, phrase.Count(few.Opportunities, "opportunity"), Needed)
		if few.Property == variant.NoOversell && few.Opportunities == 0 {
			why += "; more orders, or a smaller stock, bring the stock to its end"
		}
		return reports.Inconclusive, why
	case h.Header.Duration > 0 && h.Header.Duration < Shortest:
		return reports.Inconclusive, fmt.Sprintf("the load was limited to %v, in which clients are hardly preempted: a pass needs %v or more", h.Header.Duration, Shortest)
	}
	return reports.Pass, ""
}

// Needed is how many opportunities a pass needs for each promise. With one or two, the bound 3/n of the rule of three
// is above 1.
const Needed = 3

// Shortest is the minimum duration of a load for a pass, if a time limit ends it. Go preempts a goroutine after 10
// ms; in a shorter load, the clients interleave only as their start made them.
const Shortest = 20 * time.Millisecond

// FewestOf returns the verdict on the promise with the fewest opportunities; among equals, an undecided one.
func FewestOf(promised []checker.Verdict) checker.Verdict {
	return slices.MinFunc(promised, func(a, b checker.Verdict) int {
		return cmp.Or(cmp.Compare(a.Opportunities, b.Opportunities), cmp.Compare(decided(a), decided(b)))
	})
}

// decided returns 0 for an Unknown verdict and 1 otherwise.
func decided(v checker.Verdict) int {
	if v.Result == checker.Unknown {
		return 0
	}
	return 1
}

// Reasons why a run is inconclusive: the history leaves a promise open, or the run was cut short.
const (
	TooLittle  = "there were too few opportunities to break a promise"
	NotDecided = "a promised property could not be decided"
	CutShort   = "the run was cut short: "
)

// Uncontended reports whether a run is inconclusive because its clients hardly overlapped. Its throughput is still
// valid.
func Uncontended(why string) bool { return strings.HasPrefix(why, TooLittle) }
