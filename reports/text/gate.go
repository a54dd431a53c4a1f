package text

import (
	"fmt"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

// gateRow is a row of a gate's table.
type gateRow struct {
	entry, what, under, verdict, measured string
	// accepted means that it is slower than allowed, and recorded.
	accepted bool
}

func gateRows(g reports.Gate) (rows []gateRow) {
	for _, e := range g.Safety {
		if len(e.Cases) == 0 {
			rows = append(rows, gateRow{entry: e.Name, what: e.Kind, verdict: e.Verdict, measured: strings.Join(e.Notes, "; ")})
		}
		for _, c := range e.Cases {
			verdict := c.Verdict
			if e.Expect == reports.Violated && verdict == reports.Pass {
				verdict = "pass (broke, as it must)"
			}
			rows = append(rows, gateRow{e.Name, c.Title, c.Under(), verdict, briefCase(c), false})
		}
	}
	for _, p := range g.Performance {
		rows = append(rows, gateRow{p.Name, p.Candidate + " against " + p.Baseline, fmt.Sprintf("%d rounds", p.Rounds), p.Outcome(), briefPerformance(p), p.Accepts()})
	}
	return rows
}

// briefCase describes briefly what was measured.
func briefCase(c reports.GateCase) string {
	var parts []string
	switch {
	case c.Broke > 0 && c.Searched == "":
		parts = append(parts, fmt.Sprintf("broke in %d of %d", c.Broke, c.Runs))
	case c.Searched == "" && len(c.Properties) > 0:
		parts = append(parts, fmt.Sprintf("0 in %s", reports.Thousands(c.Opportunities)))
	}
	for _, p := range c.Properties {
		if p.Result == reports.Broken {
			parts = append(parts, string(p.Name))
		}
	}
	if c.Control != nil {
		parts = append(parts, fmt.Sprintf("control %d/%d", c.Control.Caught, c.Control.Runs))
	}
	return strings.Join(parts, ", ")
}

func briefPerformance(p reports.GatePerformance) string {
	var parts []string
	for _, m := range p.Measures {
		parts = append(parts, fmt.Sprintf("%s %+.1f %%", m.Name, m.Slowdown.Middle*100))
	}
	return strings.Join(parts, ", ")
}

// gateColumns returns all columns of a gate. If they do not fit, they are left out in this order: the conditions,
// what was run, and what was measured.
func gateColumns() []column[gateRow] {
	return []column[gateRow]{
		{title: "ENTRY", prose: true, cell: func(r gateRow) string { return r.entry }},
		{title: "WHAT", rank: 2, prose: true, cell: func(r gateRow) string { return r.what }},
		{title: "UNDER", rank: 3, prose: true, cell: func(r gateRow) string { return r.under }},
		{title: "VERDICT", prose: true, cell: func(r gateRow) string { return r.verdict }, tone: func(r gateRow) tone { return toneOf(r.verdict) }},
		{title: "MEASURED", rank: 1, prose: true, cell: func(r gateRow) string { return r.measured }},
	}
}

// Gate writes a table, a paragraph for every entry, and the verdict last.
func (t Terminal) Gate(g reports.Gate) error {
	g = printable.Of(g)
	s := t.sheet()
	table[gateRow]{columns: gateColumns()}.write(s, gateRows(g))
	for _, e := range g.Safety {
		explainEntry(s, e)
	}
	for _, p := range g.Performance {
		explainPerformance(s, p)
	}
	for _, m := range g.Missing {
		s.linef("\nmissing: %s", m)
	}
	for _, n := range g.Notes {
		s.linef("\nnote: %s", n)
	}
	s.linef("\n%s", g.Headline())
	return t.show(s)
}

func explainEntry(s *sheet, e reports.GateEntry) {
	if len(e.Cases) == 0 {
		s.linef("\n%s: %s", e.Name, s.verdict(e.Verdict))
	}
	for _, c := range e.Cases {
		s.linef("\n%s: %s\n  %s", e.Name, c.Title, c.Sentence())
		for _, line := range append(c.Control.TriedInVain(), c.Seen()...) {
			s.linef("  %s", line)
		}
		if c.Verdict == reports.Pass {
			continue
		}
		s.linef("  %s", reports.Joined(": ", s.verdict(c.Verdict), c.Why))
		for _, p := range c.Properties {
			if p.Result == reports.Broken && e.Expect == reports.Pass {
				s.linef("  %s\n%s", p.Label(), indented(p.Text()))
			}
		}
		if fired := c.FaultsFired(); fired != "" {
			s.linef("  %s", fired)
		}
		for _, l := range c.Limits {
			s.linef("  %s", l.Sentence())
		}
		if c.Command != "" {
			s.commandLine("  again:", c.Command)
		}
	}
	for _, n := range e.Notes {
		s.linef("  note: %s", n)
	}
}

func explainPerformance(s *sheet, p reports.GatePerformance) {
	s.linef("\n%s: %s against %s, %s", p.Name, p.Candidate, p.Baseline, reports.Count(int64(p.Rounds), "round"))
	for _, m := range p.Measures {
		s.linef("  %s: %s", m.Outcome(), m.Sentence())
	}
	if p.Why != "" {
		s.linef("  %s: %s", s.verdict(p.Verdict), p.Why)
	}
	for _, q := range p.Broken {
		s.linef("  %s\n%s", q.Label(), indented(q.Text()))
	}
	for _, n := range p.Notes {
		s.linef("  note: %s", n)
	}
}

// indented indents a text of several lines.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}
