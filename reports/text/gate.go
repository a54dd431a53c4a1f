package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

// gateRow is a row of a gate's table.
type gateRow struct{ entry, what, under, verdict, measured string }

func gateRows(g reports.Gate) (rows []gateRow) {
	for _, e := range g.Safety {
		if len(e.Cases) == 0 {
			rows = append(rows, gateRow{e.Name, e.Kind, "", e.Verdict, strings.Join(e.Notes, "; ")})
		}
		for _, c := range e.Cases {
			verdict := c.Verdict
			if e.Expect == reports.Violated && verdict == reports.Pass {
				verdict = "pass (broke, as it must)"
			}
			rows = append(rows, gateRow{e.Name, c.Title, c.Under(), verdict, briefCase(c)})
		}
	}
	for _, p := range g.Performance {
		rows = append(rows, gateRow{p.Name, p.Candidate + " against " + p.Baseline, fmt.Sprintf("%d rounds", p.Rounds), p.Verdict, briefPerformance(p)})
	}
	return rows
}

// briefCase is what was measured in a few words.
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

// Gate writes a table, a paragraph for every entry, and the verdict last.
func (t Terminal) Gate(g reports.Gate) error {
	g = printable.Of(g)
	var b strings.Builder
	t.align(&b, paint, func(w io.Writer) {
		fmt.Fprintln(w, "ENTRY\tWHAT\tUNDER\tVERDICT\tMEASURED\t")
		for _, r := range gateRows(g) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", r.entry, r.what, cmp.Or(r.under, "-"), r.verdict, cmp.Or(r.measured, "-"))
		}
	})
	for _, e := range g.Safety {
		explainEntry(&b, e)
	}
	for _, p := range g.Performance {
		explainPerformance(&b, p)
	}
	for _, s := range g.Missing {
		fmt.Fprintf(&b, "\nmissing: %s\n", s)
	}
	for _, s := range g.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", s)
	}
	fmt.Fprintf(&b, "\n%s\n", g.Headline())
	_, err := io.WriteString(t.W, b.String())
	return err
}

func explainEntry(b *strings.Builder, e reports.GateEntry) {
	if len(e.Cases) == 0 {
		fmt.Fprintf(b, "\n%s: %s\n", e.Name, e.Verdict)
	}
	for _, c := range e.Cases {
		fmt.Fprintf(b, "\n%s: %s\n  %s\n", e.Name, c.Title, c.Sentence())
		for _, s := range c.Control.TriedInVain() {
			fmt.Fprintf(b, "  %s\n", s)
		}
		for _, s := range c.Seen() {
			fmt.Fprintf(b, "  %s\n", s)
		}
		if c.Verdict == reports.Pass {
			continue
		}
		fmt.Fprintf(b, "  %s", c.Verdict)
		if c.Why != "" {
			fmt.Fprintf(b, ": %s", c.Why)
		}
		fmt.Fprintln(b)
		for _, p := range c.Properties {
			if p.Result == reports.Broken && e.Expect == reports.Pass {
				fmt.Fprintf(b, "  %s\n%s", p.Label(), indented(p.Text()))
			}
		}
		if s := c.Struck(); s != "" {
			fmt.Fprintf(b, "  %s\n", s)
		}
		for _, l := range c.Limits {
			fmt.Fprintf(b, "  %s\n", l.Sentence())
		}
		if c.Command != "" {
			fmt.Fprintf(b, "  again: %s\n", c.Command)
		}
	}
	for _, n := range e.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
}

func explainPerformance(b *strings.Builder, p reports.GatePerformance) {
	fmt.Fprintf(b, "\n%s: %s against %s, %s\n", p.Name, p.Candidate, p.Baseline, reports.Count(int64(p.Rounds), "round"))
	for _, m := range p.Measures {
		fmt.Fprintf(b, "  %s: %s\n", m.Verdict, m.Sentence())
	}
	if p.Why != "" {
		fmt.Fprintf(b, "  %s: %s\n", p.Verdict, p.Why)
	}
	for _, q := range p.Broken {
		fmt.Fprintf(b, "  %s\n%s", q.Label(), indented(q.Text()))
	}
	for _, n := range p.Notes {
		fmt.Fprintf(b, "  note: %s\n", n)
	}
}
