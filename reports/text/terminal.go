// Package text draws documents as text: for a terminal, in colour if wanted, and in
// Markdown for a step's summary or a page. Tables and their layout are decided here; the
// sentences are those of package reports, so that every drawing says the same.
package text

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"oversell/reports"
)

// Terminal writes documents for people.
type Terminal struct {
	W io.Writer
	// Color marks verdicts with ANSI colours.
	Color bool
}

// paint colours the verdict words of a line.
func paint(line string) string {
	for _, c := range []struct{ word, color string }{
		{" " + reports.Violated, "31"}, {" " + reports.Inconclusive, "33"}, {" " + reports.Pass, "32"},
	} {
		if i := strings.Index(line, c.word+" "); i >= 0 || strings.Contains(line, c.word+"!") {
			i = strings.Index(line, c.word)
			return line[:i] + "\x1b[" + c.color + "m" + c.word + "\x1b[0m" + line[i+len(c.word):]
		}
	}
	return line
}

// list writes a headed list, unless it is empty.
func list(b *strings.Builder, head string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", head)
	for _, item := range items {
		fmt.Fprintf(b, "  - %s\n", item)
	}
}

// paragraph breaks a text into lines that are no wider than a table, with an indent.
func paragraph(indent, text string) string {
	return indent + strings.Join(reports.Folded(text, tableWidth-len(indent)), "\n"+indent)
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

func indented(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		fmt.Fprintf(&b, "    %s\n", strings.TrimRight(line, "\n"))
	}
	return b.String()
}
