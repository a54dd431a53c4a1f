package reports

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"oversell/variant"
)

// FaultsText is how often the faults struck, in their order.
func (r Run) FaultsText() string {
	var counts []string
	for _, f := range r.Faults {
		counts = append(counts, Thousands(f.Fired))
	}
	return strings.Join(counts, "+")
}

// explainFaults tells what was done to the run, and how it went on before, during
// and after that.
func (r Run) explainFaults(b *strings.Builder) {
	for _, f := range r.Faults {
		fmt.Fprintf(b, "  fault %q: %s\n", f.Name, f.Story())
	}
	if len(r.Phases) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	main := r.MainKind()
	fmt.Fprintf(w, "  \tops/s\t%s p50 / p99 / p99.9 ms\n", main)
	for _, p := range r.Phases {
		if p.ToMS-p.FromMS < 10 && p.Operations == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s the faults, %.2fs\t%s\t%s\n", p.Name, (p.ToMS-p.FromMS)/1e3, p.Rate(), p.LatencyText(main))
	}
	w.Flush()
}

// Story tells how often a fault struck and whom it hit.
func (f Fault) Story() string {
	var hit []string
	if f.Holders > 0 {
		hit = append(hit, Thousands(f.Holders)+" hit a holder")
	}
	if f.Waiters > 0 {
		hit = append(hit, Thousands(f.Waiters)+" a waiter")
	}
	s := "struck" + strings.TrimPrefix(times(int(f.Fired)), ",")
	switch {
	case f.Fired == 0 && f.Vain > 0:
		s = "never struck so that it could matter"
	case f.Fired == 0:
		s = "never struck"
	case len(hit) > 0:
		s += " (" + strings.Join(hit, ", ") + ")"
	}
	if f.Effect != "" {
		s += "; " + f.Effect
	}
	if f.Vain > 0 {
		s += "; came to nothing" + strings.TrimPrefix(times(int(f.Vain)), ",") + ": " + f.VainWhy
	}
	if f.Failed != "" {
		s += "; " + f.Failed
	}
	return s
}

// Rate is the throughput of a phase; of one too short to tell, a dash.
func (p Phase) Rate() string {
	if p.ToMS-p.FromMS < 1 {
		return "-"
	}
	return Thousands(int64(p.Throughput))
}

func (p Phase) LatencyText(kind string) string {
	l, ok := p.Latency[kind]
	if !ok {
		return "-"
	}
	return Short(l.Call.P50) + " / " + Short(l.Call.P99) + " / " + Short(l.Call.P999)
}

// MainKind is the operation whose latency tells most of a run.
func (r Run) MainKind() string {
	for _, kind := range []string{"acquire", "pop", "take", "buy", "next-id"} {
		if _, ok := r.Latency[kind]; ok && (kind != "acquire" || r.PromisesOf(variant.Lock)) { // no lock is obtained in no time
			return kind
		}
	}
	return "acquire"
}
