package campaign

import (
	"fmt"
	"math"
	"time"

	"oversell/checker"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// Judged is a judged history. All of it comes from the history alone.
type Judged struct {
	Run       reports.Run
	Latencies *reports.Latencies
	Verdicts  []checker.Verdict
	// Work is what the clients came for, as far as they got it.
	Work Work
}

// Judge judges a history.
func Judge(h *history.History) Judged {
	j := checker.Judge(h)
	lat := reports.NewLatencies()
	ops, returned := 0, int64(0)
	for _, op := range h.Ops {
		if !measured(op) {
			continue
		}
		ops++
		lat.Add(op)
		if op.Kind == history.Refund && op.Outcome == history.OK && op.Reason == history.NoReason {
			returned += op.Pieces()
		}
	}
	elapsed := elapsed(h)
	r := reports.Run{
		Scenario: h.Header.Scenario, Lock: h.Header.Lock, Sale: h.Header.Sale, Queue: h.Header.Queue, IDs: h.Header.IDs, Dispatch: h.Header.Dispatch, SQL: h.Header.SQL,
		Target: h.Header.Target, Topology: h.Header.Topology, ServerVersion: h.Header.ServerVersion,
		Engine: h.Header.Engine, Waiting: h.Header.Waiting, Seed: h.Header.Seed,
		Clients: h.Header.Clients, Pool: h.Header.Pool,
		Operations: ops, ElapsedMS: round(float64(elapsed) / 1e6), Latency: lat.Summary(), Faults: struck(h), Phases: phases(h),
		Expected: h.Header.Expected, ExpectedWhy: h.Header.ExpectedFlaws,
		Overruns: j.Overruns, FirstOverrun: j.FirstOverrun, Refusals: byName(j.Refusals), Fairness: round(j.Fairness), Cut: h.Cut,
	}
	if elapsed > 0 {
		r.Throughput = round(float64(ops) / elapsed.Seconds())
	}
	r.Acquired = j.Acquired
	if t := h.Trailer; t != nil {
		r.Interrupted, r.Notes, r.Commands = t.Interrupted, t.Notes, t.Commands
	}
	if h.Header.Sale != "" {
		j.Sold -= returned
		r.Returned = returned
		r.Stock, r.Sold, r.Unknown = &h.Header.Stock, &j.Sold, &j.Unknown
	}
	results := properties(&r, h, j.Verdicts)
	r.Verdict, r.Why = verdict(h, results)
	return Judged{r, lat, j.Verdicts, workOf(h, j.Sold+j.Unknown)}
}

func byName(refusals map[history.Reason]int64) map[string]int64 {
	names := map[string]int64{}
	for reason, n := range refusals {
		names[reason.String()] = n
	}
	return names
}

// elapsed is how long the load ran.
func elapsed(h *history.History) time.Duration {
	if h.Trailer != nil {
		return h.Trailer.Elapsed
	}
	if n := len(h.Ops); n > 0 {
		return h.Ops[n-1].Return
	}
	return 0
}

// round keeps three decimals, enough for any figure here.
func round(x float64) float64 { return math.Round(x*1e3) / 1e3 }

// struck are the faults of the run with what became of them; of a run that was killed
// only the strikes that were noted are known.
func struck(h *history.History) []reports.Fault {
	fs := []reports.Fault{}
	if h.Trailer == nil {
		for _, name := range h.Header.Faults {
			f := reports.Fault{Name: name}
			for _, op := range h.Ops {
				if op.Kind == history.Fault && op.Key.String() == name {
					f.Fired++
				}
			}
			fs = append(fs, f)
		}
		return fs
	}
	for _, f := range h.Trailer.Faults {
		fs = append(fs, reports.Fault{Name: f.Name, Level: f.Level, Fired: f.Fired, Holders: f.Holders, Waiters: f.Waiters, Failed: f.Failed})
	}
	return fs
}

// idle says which fault did not do what it should have; empty when all did.
func idle(t *history.Trailer) string {
	for _, f := range t.Faults {
		switch {
		case f.Fired == 0 && f.Failed != "":
			return fmt.Sprintf("the fault %q never struck: %s", f.Name, f.Failed)
		case f.Fired == 0:
			return fmt.Sprintf("the fault %q never struck: nothing that fits it came by", f.Name)
		case f.Failed != "":
			return fmt.Sprintf("the fault %q: %s", f.Name, f.Failed)
		}
	}
	if t.Unrecovered != "" {
		return "the run did not recover from its faults: " + t.Unrecovered
	}
	return ""
}

// properties fills in r.Properties in the order of variant.Properties, and
// returns the results of those that were promised.
func properties(r *reports.Run, h *history.History, vs []checker.Verdict) []checker.Result {
	r.Properties = []reports.Property{}
	var promised []checker.Result
	for _, info := range variant.Properties {
		for _, v := range vs {
			if v.Of != info.Of || v.Property != info.Name {
				continue
			}
			p := reports.Property{Name: v.Property, Of: v.Of, Measured: v.Result.String(), Count: v.Count, Why: v.Why, Witness: v.Witness}
			if p.Witness == nil {
				p.Witness = []history.Op{}
			}
			p.Result = p.Measured
			if h.Header.Promised(v.Of, v.Property) {
				promised = append(promised, v.Result)
			} else {
				p.Result = reports.NotClaimed
			}
			r.Properties = append(r.Properties, p)
		}
	}
	return promised
}

// verdict merges the promised results. What would have passed is inconclusive
// when the run had no power to show a violation.
func verdict(h *history.History, promised []checker.Result) (verdict, why string) {
	merged := checker.Merge(promised...)
	switch {
	case merged == checker.Violated:
		return reports.Violated, ""
	case h.Cut != "":
		return reports.Inconclusive, "the history is incomplete: " + h.Cut
	case h.Trailer == nil:
		return reports.Inconclusive, "the history has no end: the run was killed"
	case h.Trailer.Aborted != "":
		return reports.Inconclusive, cutShort + h.Trailer.Aborted
	case h.Trailer.Interrupted:
		return reports.Inconclusive, "the run was stopped before its end"
	case idle(h.Trailer) != "":
		return reports.Inconclusive, idle(h.Trailer)
	case len(promised) == 0:
		return reports.Inconclusive, "nothing was promised, and so nothing could be broken"
	case merged == checker.Unknown:
		return reports.Inconclusive, notDecided
	case !contended(h):
		return reports.Inconclusive, Uncontended
	}
	return reports.Pass, ""
}

// Why runs are inconclusive: a history leaves a promise open, or what follows ended the
// run before its time.
const (
	// Uncontended is why a run of clients that never met decides nothing. Its speed is
	// what it is.
	Uncontended = "no two clients were ever at work at the same time: such a run shows nothing"

	notDecided = "a promised property could not be decided"
	cutShort   = "the run was cut short: "
)

// contended tells whether operations of two clients ever overlapped.
func contended(h *history.History) bool {
	for i := 1; i < len(h.Ops); i++ {
		if a, b := h.Ops[i-1], h.Ops[i]; a.Client != b.Client && b.Call < a.Return && a.Kind != history.Fault && b.Kind != history.Fault && b.Kind != history.ReadState {
			return true
		}
	}
	return false
}
