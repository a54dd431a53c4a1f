package judging

import (
	"time"

	"oversell/history"
	"oversell/reports"
)

// phases compares the parts of a run before, during and after its faults; nil if none fired.
func phases(h *history.History) []reports.Phase {
	if len(h.Header.Faults) == 0 {
		return nil
	}
	first, last := history.Forever, time.Duration(0)
	began := history.Forever
	for op := range h.Each() {
		switch {
		case op.Kind == history.Fault:
			first, last = min(first, op.Call), max(last, op.Return)
		case Measured(op):
			began = min(began, op.Call)
		}
	}
	if first == history.Forever || began == history.Forever {
		return nil
	}
	end := max(last, began+elapsed(h))
	parts := []phase{
		{name: "before", from: min(began, first), to: first},
		{name: "during", from: first, to: last},
		{name: "after", from: last, to: end},
	}
	at := 0
	for i := range parts {
		parts[i].latencies = reports.NewLatencies()
	}
	for op := range h.Each() { // in the order of completion
		for at < len(parts)-1 && op.Return > parts[at].to {
			at++
		}
		if Measured(op) {
			parts[at].add(op)
		}
	}
	return summaries(parts)
}

// phase is a part of the run.
type phase struct {
	name      string
	from, to  time.Duration
	answered  int
	failed    int
	latencies *reports.Latencies
}

func (p *phase) add(op *history.Op) {
	if op.Outcome == history.Unknown { // a refused connection is no work of the server
		p.failed++
		return
	}
	p.answered++
	p.latencies.Add(op)
}

func summaries(parts []phase) (all []reports.Phase) {
	for _, p := range parts {
		s := reports.Phase{
			Name: p.name, FromMS: Round(float64(p.from) / 1e6), ToMS: Round(float64(p.to) / 1e6),
			Operations: p.answered, Failed: p.failed, Latency: p.latencies.Summary(),
		}
		if p.to > p.from {
			s.Throughput = Round(float64(p.answered) / (p.to - p.from).Seconds())
		}
		all = append(all, s)
	}
	return all
}

// Measured reports whether a record is an operation of a client that ended, with or without an answer, before the
// run was stopped.
func Measured(op *history.Op) bool {
	return op.Kind != history.ReadState && op.Kind != history.Fault && op.Kind != history.Join && op.Reason != history.Stopped
}
