// Package text draws documents as text: for a terminal, in colour if wanted, and in
// Markdown for a step's summary or a page. Tables and their layout are decided here; the
// sentences are those of package reports, so that every drawing says the same.
//
// What a Terminal writes is as wide as it says: text is folded at blanks, a table folds
// its cells and leaves out the columns that matter least, and no word is broken.
package text

import (
	"fmt"
	"io"
	"strings"

	"oversell/reports"
)

// Terminal writes documents for people.
type Terminal struct {
	W io.Writer
	// Color marks verdicts with ANSI colours.
	Color bool
	// Width is the number of columns of the output; 0: DefaultWidth.
	Width int
}

// The widths of an output.
const (
	// DefaultWidth is that of an output that is no terminal.
	DefaultWidth = 100
	// leastWidth is what a narrower terminal is taken for, which breaks the lines itself.
	leastWidth = 20
)

// tone is a colour, as its ANSI code.
type tone string

// The tones of verdicts.
const (
	plain   tone = ""
	good    tone = "32"
	bad     tone = "31"
	unclear tone = "33"
)

// toneOf is the tone of a verdict, of the result of a property, or of the answer to a claim.
// What follows a blank explains it.
func toneOf(verdict string) tone {
	word, _, _ := strings.Cut(verdict, " ")
	switch word {
	case reports.Pass, reports.Holds, reports.Confirmed:
		return good
	case reports.Violated, reports.Slower, reports.Failed, reports.Refuted:
		return bad
	case reports.Inconclusive, reports.Unknown, reports.Depends:
		return unclear
	}
	return plain
}

// sheet is what is being written, in lines that are no wider than it is.
type sheet struct {
	strings.Builder
	width int
	color bool
}

func (t Terminal) sheet() *sheet {
	width := t.Width
	if width == 0 {
		width = DefaultWidth
	}
	return &sheet{width: max(width, leastWidth), color: t.Color}
}

// show writes out what is on a sheet.
func (t Terminal) show(s *sheet) error {
	_, err := io.WriteString(t.W, s.String())
	return err
}

// linef writes lines that fit.
func (s *sheet) linef(format string, args ...any) {
	for _, line := range folded(fmt.Sprintf(format, args...), s.width) {
		s.WriteString(line + "\n")
	}
}

// folded are the lines of a text, those that are too wide in several: what does not fit
// goes on below the beginning of the line's text.
func folded(text string, width int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " ")
		if reports.Width(line) <= width {
			lines = append(lines, line)
			continue
		}
		rest := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", min(len(line)-len(rest), width/2))
		head := indent
		if item, is := strings.CutPrefix(rest, "- "); is {
			rest, head, indent = item, indent+"- ", indent+"  "
		}
		for _, part := range reports.Folded(rest, width-len(indent)) {
			lines = append(lines, head+part)
			head = indent
		}
	}
	return lines
}

// toned colours a text.
func (s *sheet) toned(t tone, text string) string {
	if !s.color || t == plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

// verdict is a verdict in its colour.
func (s *sheet) verdict(verdict string) string { return s.toned(toneOf(verdict), verdict) }

// list writes a headed list, unless it is empty.
func (s *sheet) list(head string, items []string) {
	if len(items) == 0 {
		return
	}
	s.linef("\n%s:", head)
	for _, item := range items {
		s.linef("  - %s", item)
	}
}

// commandLine writes a command so that it can be copied whole: where it is folded, between
// its words, the line ends in a backslash.
func (s *sheet) commandLine(head, command string) {
	if strings.HasSuffix(head, ":") {
		head += " "
	}
	if whole := head + command; reports.Width(whole) <= s.width {
		s.WriteString(whole + "\n")
		return
	}
	indent := strings.Repeat(" ", len(head)-len(strings.TrimLeft(head, " "))+4)
	line := head
	for i, word := range shellWords(command) {
		if i > 0 && reports.Width(line+" "+word+" \\") > s.width {
			s.WriteString(line + " \\\n")
			line = indent
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	s.WriteString(line + "\n")
}

// shellWords splits a command at the blanks that are not in quotes.
func shellWords(command string) (words []string) {
	quoted, begin := false, 0
	for i := range len(command) {
		switch {
		case command[i] == '\'' && (i == 0 || command[i-1] != '\\'):
			quoted = !quoted
		case command[i] == ' ' && !quoted:
			words = append(words, command[begin:i])
			begin = i + 1
		}
	}
	return append(words, command[begin:])
}

// pad fills a text up with blanks.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-reports.Width(text)))
}
