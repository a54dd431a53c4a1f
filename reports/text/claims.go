package text

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/reports"
)

// The columns of the table of claims.
const (
	claimsWidth  = 100 // of all
	numberWidth  = 5
	answerWidth  = 14
	claimsIndent = numberWidth + answerWidth
)

// detailed is up to how many claims are told with everything that is known of them.
const detailed = 3

// Claims writes a row for each claim and, of a few, the numbers, too. Of many, it
// says how to see those of one.
func (t Terminal) Claims(c reports.Claims) error {
	c = printable.Of(c)
	var b strings.Builder
	for _, x := range c.Claims {
		claimRow(&b, x)
		if len(c.Claims) <= detailed {
			claimDetails(&b, x)
		}
	}
	said := c.Sum() + "."
	if len(c.Claims) > detailed {
		said += " The numbers of a claim, how it was measured, and commands that show the same: oversell claims " + c.Claims[0].Number
	}
	fmt.Fprintln(&b)
	for _, line := range reports.Folded(said, claimsWidth) {
		fmt.Fprintln(&b, line)
	}
	for line := range strings.Lines(b.String()) {
		if t.Color {
			line = paintAnswer(line)
		}
		if _, err := io.WriteString(t.W, line); err != nil {
			return err
		}
	}
	return nil
}

// claimRow is the claim, its answer and the sentence.
func claimRow(b *strings.Builder, c reports.Claim) {
	answer := c.Answer
	if !c.AsDeclared() {
		answer += "!"
	}
	head := pad(c.Number, numberWidth) + pad(answer, answerWidth)
	for _, line := range reports.Folded(c.Words+" ("+c.From+")", claimsWidth-claimsIndent) {
		fmt.Fprintln(b, head+line)
		head = pad("", claimsIndent)
	}
	said := c.Sentence
	if !c.AsDeclared() {
		said = "Declared: " + c.Declared + ". Measured: " + said
	}
	for _, line := range reports.Folded(said, claimsWidth-claimsIndent-2) {
		fmt.Fprintln(b, head+"  "+line)
	}
}

// claimDetails are everything else that is known of a claim.
func claimDetails(b *strings.Builder, c reports.Claim) {
	fmt.Fprintln(b)
	width := 0
	for _, q := range c.Numbers {
		width = max(width, utf8.RuneCountInString(q.Name))
	}
	for _, q := range c.Numbers {
		fmt.Fprintf(b, "     %s  %s\n", pad(q.Name, width), q.Told())
	}
	for _, part := range claimParts(c) {
		fmt.Fprintln(b)
		for _, line := range reports.Folded(part[0]+": "+part[1], claimsWidth-numberWidth) {
			fmt.Fprintln(b, pad("", numberWidth)+line)
		}
	}
	fmt.Fprintf(b, "\n     Repeat:\n")
	for _, command := range c.Repeat {
		fmt.Fprintf(b, "       %s\n", command)
	}
	fmt.Fprintln(b)
}

// claimParts are the paragraphs about a claim, each with its title.
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

// paintAnswer colours the answer in a claim's first line.
func paintAnswer(line string) string {
	if !strings.HasPrefix(line, "C") {
		return line
	}
	for answer, color := range map[string]string{reports.Confirmed: "32", reports.Refuted: "31", reports.Depends: "33", reports.Inconclusive: "33"} {
		if at := strings.Index(line, answer); at == numberWidth {
			return line[:at] + "\x1b[" + color + "m" + answer + "\x1b[0m" + line[at+len(answer):]
		}
	}
	return line
}

// ClaimsMarkdown writes the claims as a page: a table, and then a section for each.
func ClaimsMarkdown(w io.Writer, c reports.Claims) error {
	c = printable.Of(c)
	var b strings.Builder
	fmt.Fprint(&b, "# What the texts claim, measured\n\n")
	fmt.Fprintf(&b, "%s. %s\n\n", c.Sum(), circumstances(c))
	fmt.Fprint(&b, "**confirmed** and **refuted** are what they say; **depends** means that both sides were measured, and names what decides between them.\n\n")
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

// markup is what would begin markup: the page has none of its own, and its texts are
// otherwise Markdown.
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
		s += " It was stopped before its end."
	}
	return s
}

// markedAnswer is the answer, and the declared one if that is another.
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

// cell is text as a cell of a Markdown table takes it.
func cell(text string) string {
	return strings.ReplaceAll(phrase.OneLine(text), "|", `\|`)
}
