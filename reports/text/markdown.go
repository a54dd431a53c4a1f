package text

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/reports"
)

// longestMarkdown is the maximum size of a summary, far below GitHub's limit of 1 MiB per step.
const longestMarkdown = 64 << 10

// gateHead begins a summary of a gate.
const gateHead = "## oversell gate: "

// IsGateMarkdown reports whether a file with this text was written by GateMarkdown.
func IsGateMarkdown(text []byte) bool { return bytes.HasPrefix(text, []byte(gateHead)) }

// GateMarkdown writes the gate as GitHub Flavored Markdown: the verdict first, a table, and
// the stories of the red entries.
func GateMarkdown(w io.Writer, g reports.Gate) error {
	g = printable.Of(g)
	head := fmt.Sprintf(gateHead+"%s\n\n", escaped(g.Headline()))
	blocks := []string{markdownTable(g)}
	for _, e := range g.Safety {
		for _, c := range e.Cases {
			blocks = append(blocks, markdownCase(e, c))
		}
	}
	for _, p := range g.Performance {
		blocks = append(blocks, markdownPerformance(p))
	}
	for _, m := range g.Missing {
		blocks = append(blocks, fmt.Sprintf("- missing: %s\n", escaped(m)))
	}
	for _, n := range g.Notes {
		blocks = append(blocks, fmt.Sprintf("- note: %s\n", escaped(n)))
	}
	foot := fmt.Sprintf("\nPlan %s, seed %d, %s; again with:\n\n%s", code(g.Plan), g.Seed, escaped(g.Machine.String()), fenced(g.Command))
	_, err := io.WriteString(w, head+fitting(blocks, longestMarkdown-len(head)-len(foot))+foot)
	return err
}

// fitting joins the blocks that fit, in order, and says how many do not.
func fitting(blocks []string, room int) string {
	const reserve = 200 // for the remark about what was cut
	var b strings.Builder
	for i, block := range blocks {
		if b.Len()+len(block)+reserve > room {
			fmt.Fprintf(&b, "\n**Cut here: %d of %d sections are left out, which would make this longer than %d KiB; all of it is in the JSON document and the JUnit file.**\n", len(blocks)-i, len(blocks), longestMarkdown>>10)
			break
		}
		b.WriteString(block)
	}
	return b.String()
}

// mostRows bounds the table.
const mostRows = 100

func markdownTable(g reports.Gate) string {
	var b strings.Builder
	b.WriteString("| | entry | what | under | verdict | measured |\n|---|---|---|---|---|---|\n")
	rows := gateRows(g)
	for i, r := range rows {
		if i == mostRows {
			fmt.Fprintf(&b, "\n…and %d rows more.\n", len(rows)-i)
			break
		}
		mark := "❌"
		if r.accepted {
			mark = "⚠️"
		} else if strings.HasPrefix(r.verdict, reports.Pass) {
			mark = "✅"
		} else if r.verdict == reports.Inconclusive {
			mark = "❔"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", mark, tableCell(r.entry), tableCell(r.what), tableCell(r.under), tableCell(r.verdict), tableCell(r.measured))
	}
	b.WriteString("\n")
	return b.String()
}

// tableCell shortens and escapes the text of a table cell.
func tableCell(s string) string { return escaped(shortened(s, 200)) }

func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// markdownCase returns the sentence of a case and, if it is red, its story, folded.
func markdownCase(e reports.GateEntry, c reports.GateCase) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s**, %s under %s: %s.\n", escaped(e.Name), escaped(c.Title), escaped(c.Under()), escaped(c.Sentence()))
	for _, s := range append(c.Control.TriedInVain(), c.Seen()...) {
		fmt.Fprintf(&b, "  - %s\n", escaped(s))
	}
	if c.Verdict == reports.Pass {
		return b.String()
	}
	fmt.Fprintf(&b, "\n<details><summary>%s: %s, %s</summary>\n\n", htmlEscaped(e.Name), htmlEscaped(c.Title), htmlEscaped(c.Verdict))
	if c.Why != "" {
		fmt.Fprintf(&b, "%s\n\n", escaped(c.Why))
	}
	for _, p := range c.Properties {
		if p.Result == reports.Broken && e.Expect == reports.Pass {
			fmt.Fprintf(&b, "**%s**\n\n%s\n", escaped(p.Label()), fenced(shortened(p.Text(), 8000)))
		}
	}
	if s := c.FaultsFired(); s != "" {
		fmt.Fprintf(&b, "%s\n\n", escaped(s))
	}
	for _, l := range c.Limits {
		fmt.Fprintf(&b, "%s\n\n", escaped(l.Sentence()))
	}
	if c.Command != "" {
		fmt.Fprintf(&b, "Again:\n\n%s\n", fenced(c.Command))
	}
	b.WriteString("</details>\n\n")
	return b.String()
}

func markdownPerformance(p reports.GatePerformance) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s**, %s against %s, %s: %s.\n", escaped(p.Name), escaped(p.Candidate), escaped(p.Baseline), reports.Count(int64(p.Rounds), "round"), escaped(p.Outcome()))
	for _, m := range p.Measures {
		fmt.Fprintf(&b, "  - %s: %s\n", escaped(m.Outcome()), escaped(m.Sentence()))
	}
	if p.Why != "" {
		fmt.Fprintf(&b, "  - %s\n", escaped(p.Why))
	}
	for _, q := range p.Broken {
		fmt.Fprintf(&b, "\n<details><summary>%s</summary>\n\n%s\n</details>\n\n", htmlEscaped(q.Label()), fenced(shortened(q.Text(), 8000)))
	}
	return b.String()
}

// escaped escapes a text for Markdown, also in a cell of a table, on one line.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range phrase.OneLine(s) {
		if strings.ContainsRune("\\`*_{}[]<>()#+!|~$&@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func htmlEscaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ").Replace(s)
}

// fenced returns a block of code, fenced by more backticks than it contains in a row.
func fenced(s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + "text\n" + strings.TrimRight(s, "\n") + "\n" + fence + "\n"
}

// code returns a span of code on one line.
func code(s string) string {
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	return fence + " " + phrase.OneLine(s) + " " + fence
}

func longestRun(s string, of rune) (longest int) {
	run := 0
	for _, r := range s {
		if r != of {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
