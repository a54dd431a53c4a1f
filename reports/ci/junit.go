// Package ci writes a gate for continuous integration: as a JUnit file and as annotations that GitHub Actions shows
// beside the plan. The sentences come from package reports.
package ci

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"oversell/internal/printable"
	"oversell/reports"
)

// The elements of a JUnit file, as Jenkins and Surefire define them.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string       `xml:"name,attr"`
		Classname string       `xml:"classname,attr"`
		Time      string       `xml:"time,attr"`
		Failure   *junitReason `xml:"failure"`
		Error     *junitReason `xml:"error"`
		Output    string       `xml:"system-out,omitempty"`
	}
	junitReason struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// junitName begins the name of all the suites.
const junitName = "oversell gate "

// IsJUnit reports whether a file with this text was written by JUnit.
func IsJUnit(text []byte) bool {
	return bytes.HasPrefix(text, []byte(xml.Header+`<testsuites name="`+junitName))
}

// JUnit writes the gate as JUnit XML: a suite for each entry, with a case for each combination of variants ×
// property × fault, and the witness in the body of a failure. An inconclusive entry is an error, so that it does
// not count as passed; a limit that it exceeds is an error, too, not a failure. Characters that XML does not allow become
// U+FFFD, as in encoding/xml.
func JUnit(w io.Writer, g reports.Gate) error {
	g = printable.Of(g)
	all := junitSuites{Name: junitName + g.Plan, Time: inSeconds(g.ElapsedMS)}
	for _, e := range g.Safety {
		all.add(entrySuite(e))
	}
	for _, p := range g.Performance {
		all.add(performanceSuite(p))
	}
	if rest := gateSuite(g); len(rest.Cases) > 0 {
		all.add(rest)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func inSeconds(ms float64) string { return fmt.Sprintf("%.3f", ms/1000) }

// add adds a suite to the totals.
func (all *junitSuites) add(s junitSuite) {
	for i := range s.Cases {
		c := &s.Cases[i]
		if c.Time == "" {
			c.Time = inSeconds(0)
		}
		s.Tests++
		if c.Failure != nil {
			s.Failures++
		}
		if c.Error != nil {
			s.Errors++
		}
	}
	all.Tests += s.Tests
	all.Failures += s.Failures
	all.Errors += s.Errors
	all.Suites = append(all.Suites, s)
}

func entrySuite(e reports.GateEntry) junitSuite {
	s := junitSuite{Name: e.Name}
	total := 0.0
	for _, c := range e.Cases {
		total += c.ElapsedMS
		s.Cases = append(s.Cases, caseResults(e, c)...)
	}
	if len(s.Cases) == 0 {
		s.Cases = []junitCase{{Name: e.Kind, Classname: class(e), Error: undecidedCase(strings.Join(e.Notes, "; "))}}
	} else if e.Verdict == reports.Inconclusive && !slices.ContainsFunc(e.Cases, func(c reports.GateCase) bool { return c.Verdict == reports.Inconclusive }) {
		s.Cases = append(s.Cases, junitCase{Name: "ran to its end", Classname: class(e), Error: undecidedCase(strings.Join(e.Notes, "; "))})
	}
	s.Time = inSeconds(total)
	return s
}

func class(e reports.GateEntry) string { return "oversell." + e.Name }

func undecidedCase(why string) *junitReason {
	return &junitReason{Type: reports.Inconclusive, Message: why, Text: why}
}

// caseResults returns the cases of a combination: its properties, its faults, its control, its limits, and whether
// it decided anything at all.
func caseResults(e reports.GateEntry, c reports.GateCase) (cases []junitCase) {
	name := func(what string) string { return fmt.Sprintf("%s: %s under %s", c.Title, what, c.Under()) }
	add := func(what, out string, failure, error *junitReason) {
		cases = append(cases, junitCase{Name: name(what), Classname: class(e), Failure: failure, Error: error, Output: out})
	}
	for _, p := range c.Properties {
		failure, error := propertyReason(e, p)
		add(p.Label(), p.Seen(), failure, error)
	}
	for _, f := range c.Faults {
		var error *junitReason
		if c.Verdict == reports.Pass { // no injection was needed
		} else if f.Fired == 0 {
			error = undecidedCase(fmt.Sprintf("the fault %q %s", f.Name, f.Story()))
		} else if f.Failed != "" {
			error = undecidedCase(f.Failed)
		}
		add(fmt.Sprintf("fault %q fires", f.Name), "", nil, error)
	}
	if c.Control != nil {
		var error *junitReason
		if !c.Control.Good {
			error = undecidedCase(c.Control.Sentence())
		}
		add("the control is caught", strings.Join(c.Control.TriedInVain(), "\n"), nil, error)
	}
	for _, l := range c.Limits {
		var failure, error *junitReason
		switch {
		case c.Verdict == reports.Pass:
		case l.MeasuredMS == nil, l.Exceeded() && c.Verdict == reports.Inconclusive:
			error = undecidedCase(l.Sentence())
		case l.Exceeded():
			failure = &junitReason{Type: reports.Slower, Message: l.Sentence(), Text: l.Sentence()}
		}
		add(l.Operation+"."+l.Percentile, l.Sentence(), failure, error)
	}
	var failure, error *junitReason
	switch c.Verdict {
	case reports.Violated:
		failure = &junitReason{Type: reports.Violated, Message: c.Why, Text: c.Sentence()}
	case reports.Inconclusive:
		error = undecidedCase(c.Why)
	}
	add("verdict", c.Sentence(), failure, error)
	cases[len(cases)-1].Time = inSeconds(c.ElapsedMS)
	return cases
}

// propertyReason returns the result of an entry's property. In an entry that must break, any property may break.
func propertyReason(e reports.GateEntry, p reports.GateProperty) (failure, error *junitReason) {
	switch {
	case e.Expect == reports.Violated:
		return nil, nil
	case p.Result == reports.Broken:
		return &junitReason{Type: reports.Violated, Message: p.Why, Text: p.Text()}, nil
	case p.Result == reports.Unknown:
		return nil, undecidedCase(p.Why)
	}
	return nil, nil
}

func performanceSuite(p reports.GatePerformance) junitSuite {
	s := junitSuite{Name: p.Name, Time: inSeconds(p.ElapsedMS)}
	class := "oversell." + p.Name
	for _, m := range p.Measures {
		c := junitCase{Name: m.Name, Classname: class, Output: m.Sentence()}
		switch {
		case m.Verdict == reports.Inconclusive, m.Verdict == reports.Slower && p.Verdict == reports.Inconclusive:
			c.Error = undecidedCase(m.Sentence())
		case m.Verdict == reports.Slower:
			c.Failure = &junitReason{Type: reports.Slower, Message: m.Sentence(), Text: m.Sentence()}
		}
		s.Cases = append(s.Cases, c)
	}
	for _, b := range p.Broken {
		s.Cases = append(s.Cases, junitCase{Name: b.Label(), Classname: class, Failure: &junitReason{Type: reports.Violated, Message: b.Why, Text: b.Text()}})
	}
	verdict := junitCase{Name: "verdict", Classname: class, Time: s.Time}
	if p.Verdict == reports.Inconclusive {
		verdict.Error = undecidedCase(p.Why)
	}
	s.Cases = append(s.Cases, verdict)
	return s
}

// gateSuite returns the suite of the gate as a whole.
func gateSuite(g reports.Gate) (s junitSuite) {
	s = junitSuite{Name: "the gate itself", Time: inSeconds(0)}
	for _, m := range g.Missing {
		s.Cases = append(s.Cases, junitCase{Name: "guarded by the baseline", Classname: "oversell.gate", Error: undecidedCase(m)})
	}
	if g.Interrupted {
		s.Cases = append(s.Cases, junitCase{Name: "ran to its end", Classname: "oversell.gate", Error: undecidedCase("the gate was stopped before its end")})
	}
	if g.Failed != "" {
		s.Cases = append(s.Cases, junitCase{Name: "environment", Classname: "oversell.gate", Error: &junitReason{Type: reports.Failed, Message: g.Failed, Text: g.Failed}})
	}
	return s
}
