package reports

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
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
	// Interrupted says that the measurement was stopped before its end; Claims then
	// holds the claims answered by then.
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
	// DeclaredToo is a second answer that this project declares, for servers that
	// behave differently; empty if there is none.
	DeclaredToo string `json:"declared_too,omitempty"`
	// Sentence gives the answer in words, with the most important numbers.
	Sentence string `json:"sentence"`
	// DependsOn says what the answer depends on; empty unless it is Depends.
	DependsOn string     `json:"depends_on,omitempty"`
	Numbers   []Quantity `json:"numbers"`
	// Method says how the claim was measured, and NotMeasured which part of it was
	// not.
	Method      string `json:"method"`
	NotMeasured string `json:"not_measured,omitempty"`
	// ServerVersion is the version of the servers measured; empty if no server was
	// measured.
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

// AsDeclared reports whether the answer is the declared one.
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
	s := Joined(" ", figure(q.Value), separated(q.Unit))
	if q.Spread != nil && q.Spread.Low < q.Spread.High {
		s += fmt.Sprintf(" (%s to %s)", figure(q.Spread.Low), figure(q.Spread.High))
	}
	return s
}

// ofSoMany is how a unit says of how many the value is a part.
var ofSoMany = regexp.MustCompile(`^of [0-9]+`)

// separated returns a unit with its number written with thousands separators, as
// all other numbers are.
func separated(unit string) string {
	return ofSoMany.ReplaceAllStringFunc(unit, func(s string) string {
		n, err := strconv.ParseInt(s[len("of "):], 10, 64)
		if err != nil {
			return s
		}
		return "of " + Thousands(n)
	})
}

// Sum counts the answers.
func (c Claims) Sum() string {
	counts := map[string]int{}
	other := 0
	for _, x := range c.Claims {
		counts[x.Answer]++
		if !x.AsDeclared() {
			other++
		}
	}
	if len(c.Claims) == 0 {
		return "No claim was answered"
	}
	s := fmt.Sprintf("%s: %d confirmed, %d refuted, %d depend on something", Count(int64(len(c.Claims)), "claim"), counts[Confirmed], counts[Refuted], counts[Depends])
	if n := counts[Inconclusive]; n > 0 {
		s += fmt.Sprintf(", %d inconclusive", n)
	}
	if other > 0 {
		return s + fmt.Sprintf("; %d not as declared (marked with !)", other)
	}
	return s + "; every answer is the declared one"
}
