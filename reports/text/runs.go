package text

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"oversell/internal/printable"
	"oversell/reports"
)

// latencyColumns are the kinds of operation whose latency has a column, in order,
// where they occur.
var latencyColumns = []string{"acquire", "enqueue", "pop", "take", "submit", "buy", "next-id", "release"}

// Table writes one row per run.
func (t Terminal) Table(d reports.Document) error {
	d = printable.Of(d)
	var b strings.Builder
	table(t, &b, runColumns(d), d.Runs, paint)
	_, err := io.WriteString(t.W, b.String())
	return err
}

// runColumns are those that say something about at least one run.
func runColumns(d reports.Document) []column[reports.Run] {
	all := []column[reports.Run]{
		{"LOCK", "", func(r reports.Run) string { return r.Lock }},
		{"SALE", "", func(r reports.Run) string { return r.Sale }},
		{"QUEUE", "", func(r reports.Run) string { return r.Queue }},
		{"DISPATCH", "", func(r reports.Run) string { return r.Dispatch }},
		{"IDS", "", func(r reports.Run) string { return r.IDs }},
		{"VERDICT", "", verdictWord},
		{"NO VIOLATION IN", "opportunities", reports.Run.Without},
		{"SOLD", "of stock", reports.Run.SoldOfStock},
		{"OPS/S", "", func(r reports.Run) string { return reports.Thousands(int64(r.Throughput)) }},
	}
	for _, kind := range latencyColumns {
		all = append(all, column[reports.Run]{strings.ToUpper(kind), "p50 / p99 / p99.9 ms", func(r reports.Run) string { return r.LatencySummary(kind) }})
	}
	all = append(all, column[reports.Run]{"FAULTS", "struck", reports.Run.FaultCounts})
	all = append(all, column[reports.Run]{"BROKE", "", reports.Run.BrokeWord})
	return slices.DeleteFunc(all, func(c column[reports.Run]) bool {
		return !slices.ContainsFunc(d.Runs, func(r reports.Run) bool { return c.cell(r) != "" }) && c.title != "BROKE"
	})
}

// verdictWord is the verdict, marked when no flaw declares what broke.
func verdictWord(r reports.Run) string {
	if r.Surprise() {
		return r.Verdict + "!"
	}
	return r.Verdict
}

// Explain writes a paragraph for a single run, for every run that did not pass, or that
// broke what nobody promised, and then the sum of it all.
func (t Terminal) Explain(d reports.Document) error {
	d = printable.Of(d)
	var b strings.Builder
	for _, r := range d.Runs {
		if len(d.Runs) == 1 || r.Verdict != reports.Pass || len(r.Broke()) > 0 || len(r.Notes)+len(r.Faults) > 0 {
			explainRun(&b, r)
		}
	}
	fmt.Fprintf(&b, "\n%s\n", d.Sum())
	_, err := io.WriteString(t.W, b.String())
	return err
}

func explainRun(b *strings.Builder, r reports.Run) {
	fmt.Fprintf(b, "\n%s: %s%s\n", r.Title(), r.Verdict, r.VersusDeclared())
	switch {
	case r.Verdict == reports.Pass:
		fmt.Fprintf(b, "  %s\n", r.Seen())
	case r.Why != "":
		fmt.Fprintf(b, "  %s\n", reports.Joined("; ", r.Why, r.NotTried()))
	}
	var others []reports.Property
	for _, p := range r.Properties {
		switch {
		case p.Result == reports.Broken:
			fmt.Fprintf(b, "  %s%s\n    %s.\n", p.Label(r), reports.Extent(p.Count, p.Name), p.Why)
		case p.Result == reports.Unknown:
			fmt.Fprintf(b, "  %s: unknown\n    %s.\n", p.Label(r), p.Why)
		case p.Result == reports.Holds && r.Verdict != reports.Violated:
			fmt.Fprintf(b, "  %s\n    %s.\n", reports.Joined(": ", p.Label(r), p.Seen()), p.Why)
		case p.Result == reports.NotClaimed && p.Measured == reports.Broken && r.PromisesOf(p.Of):
			others = append(others, p)
		}
	}
	explainOthers(b, r, others)
	explainFaults(b, r)
	if r.Overruns > 0 {
		fmt.Fprintf(b, "  overruns: %s outlived the lease\n    %s.\n", reports.Count(int64(r.Overruns), "section"), r.FirstOverrun)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
}

// explainOthers tells what was broken that nobody had promised: in full where
// that is all that broke, and briefly beside broken promises.
func explainOthers(b *strings.Builder, r reports.Run, others []reports.Property) {
	if r.Verdict != reports.Violated {
		for _, p := range others {
			fmt.Fprintf(b, "  (%s)%s; nobody promised it here\n    %s.\n", p.Label(r), reports.Extent(p.Count, p.Name), p.Why)
		}
		return
	}
	var brief []string
	for _, p := range others {
		brief = append(brief, p.Label(r)+reports.Extent(p.Count, p.Name))
	}
	if len(brief) > 0 {
		fmt.Fprintf(b, "  not promised, and not kept: %s\n", strings.Join(brief, "; "))
	}
}

// explainFaults tells what was done to the run, and how it went on before, during
// and after that.
func explainFaults(b *strings.Builder, r reports.Run) {
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
		fmt.Fprintf(w, "  %s the faults, %.2fs\t%s\t%s\n", p.Name, (p.ToMS-p.FromMS)/1e3, p.Rate(), p.LatencySummary(main))
	}
	w.Flush()
}
