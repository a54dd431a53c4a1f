package text

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/reports"
)

// detailed is the maximum number of claims that are shown in full.
const detailed = 3

// Claims writes a row for each claim and, for a few claims, the numbers. For many, it says how to show those of
// one.
func (t Terminal) Claims(c reports.Claims) error {
	c = printable.Of(c)
	s := t.sheet()
	rows := table[reports.Claim]{columns: claimColumns()}
	if len(c.Claims) <= detailed {
		for _, x := range c.Claims {
			rows.write(s, []reports.Claim{x})
			claimDetails(s, x)
		}
		s.linef("%s.", c.Sum())
		return t.show(s)
	}
	rows.write(s, c.Claims)
	s.linef("\n%s. For the numbers of a claim, its method, and commands that repeat it: oversell claims %s", c.Sum(), c.Claims[0].Number)
	return t.show(s)
}

// claimColumns returns the columns for the claim, its answer and the sentence.
func claimColumns() []column[reports.Claim] {
	return []column[reports.Claim]{
		{cell: func(c reports.Claim) string { return c.Number }},
		{cell: func(c reports.Claim) string {
			if c.Differs() {
				return c.Answer + "!"
			}
			return c.Answer
		}, tone: func(c reports.Claim) tone { return toneOf(c.Answer) }},
		{prose: true, cell: func(c reports.Claim) string {
			said := c.Sentence
			if c.Differs() {
				said = "Declared: " + c.Declared + ". Measured: " + said
			}
			return c.Words + " (" + c.From + ")\n  " + said
		}},
	}
}

// claimDetails writes everything else about a claim.
func claimDetails(s *sheet, c reports.Claim) {
	const indent = "     "
	s.linef("")
	table[reports.Quantity]{indent: indent, columns: []column[reports.Quantity]{
		{prose: true, cell: func(q reports.Quantity) string { return q.Name }},
		{prose: true, cell: reports.Quantity.Told},
	}}.write(s, c.Numbers)
	for _, part := range claimParts(c) {
		s.linef("\n%s%s: %s", indent, part[0], part[1])
	}
	s.linef("\n%sRepeat:", indent)
	for _, command := range c.Repeat {
		s.commandLine(indent+"  ", command)
	}
	s.linef("")
}

// claimParts returns the paragraphs about a claim, each with its title.
func claimParts(c reports.Claim) [][2]string {
	on := ""
	if c.ServerVersion != "" {
		on = " Server: Redis " + c.ServerVersion + "."
	}
	return slices.DeleteFunc([][2]string{
		{"Depends on", c.DependsOn},
		{"Measured", c.Method + on},
		{"Not measured", c.NotMeasured},
	}, func(p [2]string) bool { return p[1] == "" })
}

// claimsHead is the first line of a page of claims.
const claimsHead = "# Claims of published texts, measured"

// IsClaimsMarkdown reports whether a file with this text was written by ClaimsMarkdown.
func IsClaimsMarkdown(text []byte) bool { return bytes.HasPrefix(text, []byte(claimsHead)) }

// ClaimsMarkdown writes the claims as a page: a table, and then a section for each.
func ClaimsMarkdown(w io.Writer, c reports.Claims) error {
	c = printable.Of(c)
	var b strings.Builder
	fmt.Fprint(&b, claimsHead+"\n\n")
	fmt.Fprintf(&b, "%s. %s\n\n", c.Sum(), circumstances(c))
	fmt.Fprint(&b, "**depends** means that both answers were measured; the condition between them is named.\n\n")
	fmt.Fprint(&b, "| claim | | from | answer |\n|---|---|---|---|\n")
	for _, x := range c.Claims {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", x.Number, strings.ToLower(x.Number), cell(x.Words), cell(x.From), markedAnswer(x))
	}
	for _, x := range c.Claims {
		claimSection(&b, x)
	}
	_, err := io.WriteString(w, markup.ReplaceAllString(b.String(), `\<$1`))
	return err
}

// markup matches the beginning of HTML markup: the page has none, and its texts are otherwise Markdown.
var markup = regexp.MustCompile(`<([A-Za-z!?/])`)

// circumstances describes the machine, the server and the date of the measurements.
func circumstances(c reports.Claims) string {
	how := ""
	if c.Quick {
		how = " with fewer repetitions (`--quick`)"
	}
	s := fmt.Sprintf("Measured%s on %s by `%s`, on Redis %s (target: %s) and %d cores, in %.0f seconds.",
		how, c.Measured.Format(time.DateOnly), c.Command, strings.Join(c.ServerVersions, ", "), c.Target, c.Cores, c.ElapsedMS/1e3)
	if c.Interrupted {
		s += " It was stopped early."
	}
	return s
}

// markedAnswer returns the answer, with the declared one if that differs.
func markedAnswer(c reports.Claim) string {
	if c.AsDeclared() {
		return c.Answer
	}
	return fmt.Sprintf("%s (declared: %s)", c.Answer, c.Declared)
}

func claimSection(b *strings.Builder, c reports.Claim) {
	fmt.Fprintf(b, "\n## %s\n\n> %s\n\n", c.Number, c.Words)
	fmt.Fprintf(b, "**%s** (%s). %s\n", markedAnswer(c), c.From, c.Sentence)
	if len(c.Numbers) > 0 {
		fmt.Fprint(b, "\n| measured | |\n|---|---|\n")
		for _, q := range c.Numbers {
			fmt.Fprintf(b, "| %s | %s |\n", cell(q.Name), cell(q.Told()))
		}
	}
	for _, p := range claimParts(c) {
		fmt.Fprintf(b, "\n%s: %s\n", p[0], p[1])
	}
	fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(c.Repeat, "\n"))
}

// cell escapes text for a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(phrase.OneLine(text), "|", `\|`)
}
