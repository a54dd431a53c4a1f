package ci

import (
	"fmt"
	"io"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

// Annotations writes a line for each red entry, which GitHub Actions shows at the entry's position in the plan.
// file is the plan's path from the root of the repository.
func Annotations(w io.Writer, g reports.Gate, file string) error {
	g = printable.Of(g)
	var b strings.Builder
	annotate := func(line, column int, title, message string) {
		fmt.Fprintf(&b, "::error file=%s,line=%d,col=%d,title=%s::%s\n", property(printable.Text(file)), max(line, 1), max(column, 1), property(title), data(message))
	}
	for _, e := range g.Safety {
		for _, c := range e.Cases {
			if c.Verdict != reports.Pass {
				annotate(e.Line, e.Column, e.Name+": "+c.Verdict, caseMessage(e, c))
			}
		}
		if len(e.Cases) == 0 && e.Verdict != reports.Pass {
			annotate(e.Line, e.Column, e.Name+": "+e.Verdict, strings.Join(e.Notes, "; "))
		}
	}
	for _, p := range g.Performance {
		if p.Verdict != reports.Pass {
			annotate(p.Line, p.Column, p.Name+": "+p.Verdict, performanceMessage(p))
		}
	}
	for _, m := range g.Missing {
		annotate(1, 1, "missing in the plan", m)
	}
	if g.Failed != "" {
		annotate(1, 1, "environment error", g.Failed)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func caseMessage(e reports.GateEntry, c reports.GateCase) string {
	lines := []string{c.Title + " under " + c.Under()}
	for _, p := range c.Properties {
		if p.Result == reports.Broken && e.Expect == reports.Pass {
			lines = append(lines, p.Label()+": "+p.Why)
		}
	}
	if c.Why != "" {
		lines = append(lines, c.Why)
	}
	return strings.Join(append(lines, c.Sentence()), "\n")
}

func performanceMessage(p reports.GatePerformance) string {
	lines := []string{p.Candidate + " against " + p.Baseline}
	for _, m := range p.Measures {
		lines = append(lines, m.Verdict+": "+m.Sentence())
	}
	for _, b := range p.Broken {
		lines = append(lines, b.Label()+": "+b.Why)
	}
	if p.Why != "" {
		lines = append(lines, p.Why)
	}
	return strings.Join(lines, "\n")
}

// data escapes the message of a workflow command, and property one of its properties, like the toolkit of GitHub
// Actions.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}
