// Package text renders documents as text: for a terminal, optionally in colour, and in Markdown for a step's
// summary or a page. It decides on tables and layout; the sentences come from package reports, so that all
// renderings say the same.
//
// The output of a Terminal fits its width: text is folded at spaces, and a table folds its cells
// and leaves out the least important columns. Only the columns of a schedule shorten long words; a
// longer word elsewhere, or a word of a command, exceeds the width.
package text

import (
	"fmt"
	"io"
	"strings"

	"oversell/reports"
)

// Terminal writes documents as text.
type Terminal struct {
	W io.Writer
	// Color marks verdicts with ANSI colours.
	Color bool
	// Width is the number of columns of the output; 0: DefaultWidth.
	Width int
}

// Widths of an output.
const (
	// DefaultWidth is the width of an output that is not a terminal.
	DefaultWidth = 100
	// leastWidth is the minimum width; a narrower terminal wraps the lines itself.
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

// toneOf returns the tone of a verdict, of the result of a property, or of the answer to a claim. Text after a
// space is an explanation.
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

// sheet is the output under construction, in lines that fit its width, except for longer words.
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

// show writes out a sheet.
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

// folded returns the lines of a text, with lines that are too wide folded: continuation lines begin below the
// beginning of the line's text.
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

// verdict returns a verdict in its colour.
func (s *sheet) verdict(verdict string) string { return s.toned(toneOf(verdict), verdict) }

// list writes a list with a heading, unless it is empty.
func (s *sheet) list(head string, items []string) {
	if len(items) == 0 {
		return
	}
	s.linef("\n%s:", head)
	for _, item := range items {
		s.linef("  - %s", item)
	}
}

// commandLine writes a command that can be copied as a whole: it is folded between words, with a backslash at the
// end of the line.
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

// shellWords splits a command at spaces outside of single quotes.
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

// pad pads a text with spaces.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-reports.Width(text)))
}
