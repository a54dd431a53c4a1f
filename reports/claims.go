package reports

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// ClaimsSchema identifies the format of Claims.
const ClaimsSchema = "oversell-claims/1"

// Answers to a claim. A claim that could not be decided is Inconclusive.
const (
	Confirmed = "confirmed"
	Refuted   = "refuted"
	Depends   = "depends"
)

// Claims are statements of published texts, each with the result of a measurement.
type Claims struct {
	Schema string `json:"schema"`
	// Target is the kind of servers that were measured: process, container or address.
	Target string `json:"target"`
	// ServerVersions are the versions of all measured servers.
	ServerVersions []string `json:"server_versions"`
	// Cores is the number of processors of this machine that the program could use.
	Cores int `json:"cores"`
	// Measured is when the measurement began.
	Measured time.Time `json:"measured"`
	// Quick means fewer repetitions.
	Quick  bool    `json:"quick"`
	Claims []Claim `json:"claims"`

	ElapsedMS float64 `json:"elapsed_ms"`
	// Interrupted means that the measurement was stopped early; Claims then holds the claims answered by then.
	Interrupted bool `json:"interrupted,omitempty"`
	// Command is the command line that repeats the measurement.
	Command string `json:"command"`
}

// Claim is one statement and its answer.
type Claim struct {
	// Number is its identifier, like "C14".
	Number string `json:"number"`
	// Words is the claim; From names the texts that make it.
	Words string `json:"words"`
	From  string `json:"from"`

	// Answer is Confirmed, Refuted, Depends or Inconclusive.
	Answer string `json:"answer"`
	// Declared is the expected answer.
	Declared string `json:"declared"`
	// DeclaredToo is a second expected answer, for servers that behave differently; empty if there is none.
	DeclaredToo string `json:"declared_too,omitempty"`
	// Sentence explains the answer, with the most important numbers.
	Sentence string `json:"sentence"`
	// DependsOn says what the answer depends on; empty unless it is Depends.
	DependsOn string     `json:"depends_on,omitempty"`
	Numbers   []Quantity `json:"numbers"`
	// Method says how the claim was measured; NotMeasured says which part of it was not.
	Method      string `json:"method"`
	NotMeasured string `json:"not_measured,omitempty"`
	// ServerVersion is the version of the servers measured; empty if no server was
	// measured.
	ServerVersion string `json:"server_version,omitempty"`
	// Repeat are command lines that repeat it.
	Repeat    []string `json:"repeat"`
	ElapsedMS float64  `json:"elapsed_ms"`
}

// Quantity is a measured quantity.
type Quantity struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit,omitempty"`
	// Spread is the spread over the repetitions, whose median is Value; nil without repetitions.
	Spread *Spread `json:"spread,omitempty"`
}

// AsDeclared reports whether the answer is the declared one.
func (c Claim) AsDeclared() bool {
	return c.Answer == c.Declared || c.DeclaredToo != "" && c.Answer == c.DeclaredToo
}

// Differs reports whether the claim was answered otherwise than declared.
func (c Claim) Differs() bool { return c.Answer != Inconclusive && !c.AsDeclared() }

// ExitCode returns the process's exit code for these claims: ExitPass if every answer is as declared.
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

// Told formats the value with its unit and its spread, if it has one.
func (q Quantity) Told() string {
	s := Joined(" ", figure(q.Value), separated(q.Unit))
	if q.Spread != nil && q.Spread.Low < q.Spread.High {
		s += fmt.Sprintf(" (%s to %s)", figure(q.Spread.Low), figure(q.Spread.High))
	}
	return s
}

// ofSoMany matches a unit that names the total.
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

// Sum summarizes the answers.
func (c Claims) Sum() string {
	counts := map[string]int{}
	other := 0
	for _, x := range c.Claims {
		counts[x.Answer]++
		if x.Differs() {
			other++
		}
	}
	if len(c.Claims) == 0 {
		return "No claim was answered"
	}
	s := fmt.Sprintf("%s: %d confirmed, %d refuted, %d depend on a condition", Count(int64(len(c.Claims)), "claim"), counts[Confirmed], counts[Refuted], counts[Depends])
	if n := counts[Inconclusive]; n > 0 {
		s += fmt.Sprintf(", %d inconclusive", n)
	}
	if other > 0 {
		s += fmt.Sprintf("; %d not as declared (marked with !)", other)
	}
	switch {
	case c.Interrupted:
		s += "; the other claims were not answered"
	case other == 0 && counts[Inconclusive] == 0:
		s += "; every answer is as declared"
	}
	return s
}
