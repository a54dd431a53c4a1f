package reports

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"oversell/internal/phrase"
	"oversell/internal/printable"
)

// ClaimsSchema names the form of Claims.
const ClaimsSchema = "oversell-claims/1"

// The answers to a claim. One that could not be decided is Inconclusive.
const (
	Confirmed = "confirmed"
	Refuted   = "refuted"
	Depends   = "depends"
)

// Claims are statements of the source documents, each with what a measurement made
// of it.
type Claims struct {
	Schema string `json:"schema"`
	// Target is what was measured: process, container or address.
	Target string `json:"target"`
	// ServerVersions are those of all servers that were measured.
	ServerVersions []string `json:"server_versions"`
	// Cores is the number of processors of this machine that the program could use.
	Cores int `json:"cores"`
	// Measured is when the measuring began.
	Measured time.Time `json:"measured"`
	// Quick says that there were fewer repetitions.
	Quick  bool    `json:"quick"`
	Claims []Claim `json:"claims"`

	ElapsedMS float64 `json:"elapsed_ms"`
	// Interrupted says that the measuring was stopped before its end; the claims are
	// then those that had been answered.
	Interrupted bool `json:"interrupted,omitempty"`
	// Command is the command line that measures all this again.
	Command string `json:"command"`
}

// Claim is one statement and its answer.
type Claim struct {
	// Number is its name, like "C14".
	Number string `json:"number"`
	// Words are the claim, and From the texts that make it.
	Words string `json:"words"`
	From  string `json:"from"`

	// Answer is Confirmed, Refuted, Depends or Inconclusive.
	Answer string `json:"answer"`
	// Declared is the answer that this project gives.
	Declared string `json:"declared"`
	// DeclaredToo is another answer that this project gives, of servers that behave in
	// another way; empty if there is none.
	DeclaredToo string `json:"declared_too,omitempty"`
	// Sentence gives the answer in words, with the most important numbers.
	Sentence string `json:"sentence"`
	// DependsOn says what the answer depends on; empty unless it is Depends.
	DependsOn string     `json:"depends_on,omitempty"`
	Numbers   []Quantity `json:"numbers"`
	// Method says how it was measured, and NotMeasured what was not.
	Method      string `json:"method"`
	NotMeasured string `json:"not_measured,omitempty"`
	// ServerVersion is that of the servers measured; empty if there was none.
	ServerVersion string `json:"server_version,omitempty"`
	// Repeat are command lines that show the same.
	Repeat    []string `json:"repeat"`
	ElapsedMS float64  `json:"elapsed_ms"`
}

// Quantity is something measured.
type Quantity struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Spread is over the repetitions, Value being the median; nil: there were none.
	Spread *Spread `json:"spread,omitempty"`
}

// AsDeclared tells whether the answer is the declared one.
func (c Claim) AsDeclared() bool {
	return c.Answer == c.Declared || c.DeclaredToo != "" && c.Answer == c.DeclaredToo
}

// ExitCode is the process's exit code for these claims: ExitPass when every answer
// is the declared one.
func (c Claims) ExitCode() int {
	code := ExitPass
	for _, x := range c.Claims {
		switch {
		case x.Answer == Inconclusive:
			code = ExitInconclusive
		case !x.AsDeclared():
			return ExitViolated
		}
	}
	if c.Interrupted || len(c.Claims) == 0 {
		return ExitInconclusive
	}
	return code
}

// Told is the value with its unit and, where there is one, its spread.
func (q Quantity) Told() string {
	s := Joined(" ", figure(q.Value), q.Unit)
	if q.Spread != nil && q.Spread.Low < q.Spread.High {
		s += fmt.Sprintf(" (%s to %s)", figure(q.Spread.Low), figure(q.Spread.High))
	}
	return s
}

// figure writes a number with at most three significant digits after the point,
// and with separators when it is large.
func figure(x float64) string {
	switch a := math.Abs(x); {
	case a >= 1000 || x == math.Trunc(x):
		return Thousands(int64(math.Round(x)))
	case a >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

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
func (t Terminal) Claims(c Claims) error {
	c = printable.Of(c)
	var b strings.Builder
	for _, x := range c.Claims {
		x.row(&b)
		if len(c.Claims) <= detailed {
			x.details(&b)
		}
	}
	said := c.sum() + "."
	if len(c.Claims) > detailed {
		said += " The numbers of a claim, how it was measured, and commands that show the same: oversell claims " + c.Claims[0].Number
	}
	fmt.Fprintln(&b)
	for _, line := range Folded(said, claimsWidth) {
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

// row is the claim, its answer and the sentence.
func (c Claim) row(b *strings.Builder) {
	answer := c.Answer
	if !c.AsDeclared() {
		answer += "!"
	}
	head := pad(c.Number, numberWidth) + pad(answer, answerWidth)
	for _, line := range Folded(c.Words+" ("+c.From+")", claimsWidth-claimsIndent) {
		fmt.Fprintln(b, head+line)
		head = pad("", claimsIndent)
	}
	said := c.Sentence
	if !c.AsDeclared() {
		said = "Declared: " + c.Declared + ". Measured: " + said
	}
	for _, line := range Folded(said, claimsWidth-claimsIndent-2) {
		fmt.Fprintln(b, head+"  "+line)
	}
}

// details are everything else that is known of a claim.
func (c Claim) details(b *strings.Builder) {
	fmt.Fprintln(b)
	width := 0
	for _, q := range c.Numbers {
		width = max(width, utf8.RuneCountInString(q.Name))
	}
	for _, q := range c.Numbers {
		fmt.Fprintf(b, "     %s  %s\n", pad(q.Name, width), q.Told())
	}
	for _, part := range c.parts() {
		fmt.Fprintln(b)
		for _, line := range Folded(part[0]+": "+part[1], claimsWidth-numberWidth) {
			fmt.Fprintln(b, pad("", numberWidth)+line)
		}
	}
	fmt.Fprintf(b, "\n     Repeat:\n")
	for _, command := range c.Repeat {
		fmt.Fprintf(b, "       %s\n", command)
	}
	fmt.Fprintln(b)
}

// parts are the paragraphs about a claim, each with its title.
func (c Claim) parts() [][2]string {
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

// sum counts the answers.
func (c Claims) sum() string {
	counts := map[string]int{}
	other := 0
	for _, x := range c.Claims {
		counts[x.Answer]++
		if !x.AsDeclared() {
			other++
		}
	}
	s := fmt.Sprintf("%d claims: %d confirmed, %d refuted, %d depend on something", len(c.Claims), counts[Confirmed], counts[Refuted], counts[Depends])
	if n := counts[Inconclusive]; n > 0 {
		s += fmt.Sprintf(", %d inconclusive", n)
	}
	if other > 0 {
		return s + fmt.Sprintf("; %d not as declared (marked with !)", other)
	}
	return s + "; every answer is the declared one"
}

// paintAnswer colours the answer in a claim's first line.
func paintAnswer(line string) string {
	if !strings.HasPrefix(line, "C") {
		return line
	}
	for answer, color := range map[string]string{Confirmed: "32", Refuted: "31", Depends: "33", Inconclusive: "33"} {
		if at := strings.Index(line, answer); at == numberWidth {
			return line[:at] + "\x1b[" + color + "m" + answer + "\x1b[0m" + line[at+len(answer):]
		}
	}
	return line
}

// Markdown writes the claims as a page: a table, and then a section for each.
func (c Claims) Markdown(w io.Writer) error {
	c = printable.Of(c)
	var b strings.Builder
	fmt.Fprint(&b, "# What the texts claim, measured\n\n")
	fmt.Fprintf(&b, "%s. %s\n\n", c.sum(), c.circumstances())
	fmt.Fprint(&b, "**confirmed** and **refuted** are what they say; **depends** means that both sides were measured, and names what decides between them.\n\n")
	fmt.Fprint(&b, "| claim | | from | answer |\n|---|---|---|---|\n")
	for _, x := range c.Claims {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s |\n", x.Number, strings.ToLower(x.Number), cell(x.Words), cell(x.From), x.marked())
	}
	for _, x := range c.Claims {
		x.section(&b)
	}
	_, err := io.WriteString(w, markup.ReplaceAllString(b.String(), `\<$1`))
	return err
}

// markup is what would begin markup: the page has none of its own, and its texts are
// otherwise Markdown.
var markup = regexp.MustCompile(`<([A-Za-z!?/])`)

// circumstances say on what, and when, the claims were measured.
func (c Claims) circumstances() string {
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

// marked is the answer, and the declared one if that is another.
func (c Claim) marked() string {
	if c.AsDeclared() {
		return c.Answer
	}
	return fmt.Sprintf("%s (declared: %s)", c.Answer, c.Declared)
}

func (c Claim) section(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n> %s\n\n", c.Number, c.Words)
	fmt.Fprintf(b, "**%s** (%s). %s\n", c.marked(), c.From, c.Sentence)
	if len(c.Numbers) > 0 {
		fmt.Fprint(b, "\n| measured | |\n|---|---|\n")
		for _, q := range c.Numbers {
			fmt.Fprintf(b, "| %s | %s |\n", cell(q.Name), cell(q.Told()))
		}
	}
	for _, p := range c.parts() {
		fmt.Fprintf(b, "\n%s: %s\n", p[0], p[1])
	}
	fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(c.Repeat, "\n"))
}

// cell is text as a cell of a Markdown table takes it.
func cell(text string) string {
	return strings.ReplaceAll(phrase.OneLine(text), "|", `\|`)
}
