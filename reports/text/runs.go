package text

import (
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/internal/printable"
	"oversell/reports"
)

// latencyColumns are the kinds of operations whose latency has a column, in order, if they occur.
var latencyColumns = []string{"acquire", "enqueue", "pop", "take", "submit", "buy", "next-id", "release"}

// Table writes one row per run and, below several runs, the untried conditions.
func (t Terminal) Table(d reports.Document) error {
	d = printable.Of(d)
	s := t.sheet()
	table[reports.Run]{columns: runColumns(d)}.write(s, d.Runs)
	if len(d.Runs) > 1 {
		naming := namedBy(d.Runs)
		var names []string
		var conditions [][]history.Untried
		for _, r := range d.Runs {
			names, conditions = append(names, called(r, naming)), append(conditions, r.KnownToBreak)
		}
		s.untried(names, conditions)
	}
	return t.show(s)
}

// nameColumns are the columns with the names of variants.
var nameColumns = []struct {
	title string
	name  func(reports.Run) string
}{
	{"LOCK", func(r reports.Run) string { return r.Lock }},
	{"SALE", func(r reports.Run) string { return r.Sale }},
	{"QUEUE", func(r reports.Run) string { return r.Queue }},
	{"DISPATCH", func(r reports.Run) string { return r.Dispatch }},
	{"IDS", func(r reports.Run) string { return r.IDs }},
}

// Ranks of columns of runs.
const (
	latencyRank   = 5
	otherNameRank = 100 // for a name that does not distinguish runs
)

// runColumns returns all columns of runs. If they do not fit, they are left out in this order: names that do not
// distinguish runs, the faults, the latencies from the last kind to the first, the throughput, what the verdict is
// based on, the pieces sold, and what broke.
func runColumns(d reports.Document) (all []column[reports.Run]) {
	naming := namedBy(d.Runs)
	for i, n := range nameColumns {
		c := column[reports.Run]{title: n.title, cell: n.name}
		if !slices.Contains(naming, i) {
			c.rank = otherNameRank
		}
		all = append(all, c)
	}
	all = append(all,
		column[reports.Run]{title: "VERDICT", cell: verdictWord, tone: func(r reports.Run) tone { return toneOf(r.Verdict) }},
		column[reports.Run]{title: "NO VIOLATION IN", unit: "opportunities", rank: 3, cell: reports.Run.Without},
		column[reports.Run]{title: "SOLD", unit: "of stock", rank: 2, cell: reports.Run.SoldOfStock},
		column[reports.Run]{title: "OPS/S", rank: 4, cell: func(r reports.Run) string { return reports.Rate(r.Throughput) }})
	for i, kind := range latencyColumns {
		all = append(all, column[reports.Run]{title: strings.ToUpper(kind) + " ms", unit: "p50/p99/p99.9", rank: latencyRank + i, cell: func(r reports.Run) string {
			l, ok := r.Latency[kind]
			if !ok {
				return ""
			}
			return reports.PercentilesOf(&l)
		}})
	}
	return append(all,
		column[reports.Run]{title: "FAULTS", unit: "fired", rank: latencyRank + len(latencyColumns), prose: true, cell: reports.Run.FaultCounts},
		column[reports.Run]{title: "BROKE", rank: 1, prose: true, cell: func(r reports.Run) string {
			return reports.Joined("; ", strings.Join(r.Broke(), ", "), reports.DeclaredNotSeen(r.NotSeen()))
		}})
}

// namedBy returns the indices of the name columns that distinguish the runs: the columns in which they differ, from
// the first on, as many as are needed. If all runs have the same names, it is their first name.
func namedBy(runs []reports.Run) (columns []int) {
	first := -1
	for i, n := range nameColumns {
		if first < 0 && slices.ContainsFunc(runs, func(r reports.Run) bool { return n.name(r) != "" }) {
			first = i
		}
		if slices.ContainsFunc(runs, func(r reports.Run) bool { return n.name(r) != n.name(runs[0]) }) {
			columns = append(columns, i)
		}
		names := map[string]bool{}
		for _, r := range runs {
			names[called(r, columns)] = true
		}
		if len(names) == len(runs) && len(columns) > 0 {
			break
		}
	}
	if len(columns) == 0 && first >= 0 {
		return []int{first}
	}
	return columns
}

// called returns the name of a run by some of the name columns.
func called(r reports.Run, columns []int) string {
	var parts []string
	for _, i := range columns {
		parts = append(parts, nameColumns[i].name(r))
	}
	return reports.Joined(" + ", parts...)
}

// verdictWord returns the verdict, marked if no flaw declares what broke.
func verdictWord(r reports.Run) string {
	if r.Surprise() {
		return r.Verdict + "!"
	}
	return r.Verdict
}

// Explain writes a paragraph for a single run or, of several, for every run that did not pass, that
// broke a property, promised or not, or that has notes or faults. Then it writes the summary.
func (t Terminal) Explain(d reports.Document) error {
	d = printable.Of(d)
	s := t.sheet()
	for _, r := range d.Runs {
		if len(d.Runs) == 1 || r.Verdict != reports.Pass || len(r.Broke()) > 0 || len(r.Notes)+len(r.Faults) > 0 {
			explainRun(s, r, len(d.Runs) > 1)
		}
	}
	s.linef("\n%s", d.Summary())
	return t.show(s)
}

// explainRun describes a run; among others, without the untried conditions, which are written once for all.
func explainRun(s *sheet, r reports.Run, among bool) {
	s.linef("\n%s: %s%s", r.Title(), s.verdict(r.Verdict), r.VersusDeclared())
	if among {
		r.KnownToBreak = nil
	}
	switch {
	case r.Verdict == reports.Pass:
		s.linef("  %s", r.Seen())
	case r.Why != "":
		s.linef("  %s", reports.Joined("; ", r.Why, r.NotTried()))
	}
	var others []reports.Property
	for _, p := range r.Properties {
		switch {
		case p.Result == reports.Broken:
			s.linef("  %s%s\n    %s.", p.Label(r), p.Extent(), p.Why)
		case p.Result == reports.Unknown:
			s.linef("  %s: unknown\n    %s.", p.Label(r), p.Why)
		case p.Result == reports.Holds && r.Verdict != reports.Violated:
			s.linef("  %s\n    %s.", reports.Joined(": ", p.Label(r), p.Seen()), p.Why)
		case p.Result == reports.NotClaimed && p.Measured == reports.Broken && r.PromisesOf(p.Of):
			others = append(others, p)
		}
	}
	explainOthers(s, r, others)
	explainFaults(s, r)
	for _, sentence := range r.OpenLoad() {
		s.linef("  open load: %s", sentence)
	}
	if wait := r.PoolWaiting(); wait != "" {
		s.linef("  connections: %s", wait)
	}
	if r.Overruns > 0 {
		s.linef("  overruns: %s outlived the lease\n    %s.", reports.Count(int64(r.Overruns), "section"), r.FirstOverrun)
	}
	for _, n := range r.Notes {
		s.linef("  note: %s", n)
	}
}

// explainOthers describes the broken properties that were not promised: in full if no promise broke, otherwise
// briefly.
func explainOthers(s *sheet, r reports.Run, others []reports.Property) {
	if r.Verdict != reports.Violated {
		for _, p := range others {
			s.linef("  (%s)%s; not promised here\n    %s.", p.Label(r), p.Extent(), p.Why)
		}
		return
	}
	var brief []string
	for _, p := range others {
		brief = append(brief, p.Label(r)+p.Extent())
	}
	if len(brief) > 0 {
		s.linef("  not promised, and broken: %s", strings.Join(brief, "; "))
	}
}

// explainFaults describes the injections, and the run before, during and after them.
func explainFaults(s *sheet, r reports.Run) {
	for _, f := range r.Faults {
		s.linef("  fault %q: %s", f.Name, f.Story())
	}
	if len(r.Phases) == 0 {
		return
	}
	main := r.MainKind()
	phases := table[reports.Phase]{indent: "  ", columns: []column[reports.Phase]{
		{blank: true, cell: func(p reports.Phase) string {
			return fmt.Sprintf("%s the faults, %.2fs", p.Name, (p.ToMS-p.FromMS)/1e3)
		}},
		{title: "ops/s", cell: reports.Phase.Answers},
		{title: main + " p50 / p99 / p99.9 ms", rank: 1, cell: func(p reports.Phase) string { return p.LatencySummary(main) }},
	}}
	phases.write(s, slices.DeleteFunc(slices.Clone(r.Phases), func(p reports.Phase) bool { return p.ToMS-p.FromMS < 10 && p.Operations+p.Failed == 0 }))
}
