package ci

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"

	"oversell/reports"
	"oversell/reports/reportstest"
)

// TestJUnit checks that a strict XML parser and a parser of JUnit files both accept the file, and that its counts are
// right.
func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, reportstest.Gate()); err != nil {
		t.Fatal(err)
	}
	structure(t, b.Bytes())
	suites, err := junit.Ingest(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	count := map[junit.Status]int{}
	found := false
	names := map[string]bool{}
	for _, s := range suites {
		for _, c := range s.Tests {
			count[c.Status]++
			if key := c.Classname + "\x00" + c.Name; names[key] {
				t.Errorf("two cases are called %s", c.Name)
			} else {
				names[key] = true
			}
			if strings.Contains(c.Name, "mutual-exclusion of the lock under slow 10ms | 5% + crash after `ZREM`") && c.Status == junit.StatusFailed {
				found = strings.Contains(c.Error.Error(), "client 2 acquire order") && strings.Contains(c.Error.Error(), "*a story*")
			}
		}
	}
	if !found {
		t.Error("no case has the witness of the broken promise in its failure")
	}
	// Failed: the property, the limit, the verdict of its case, and the speed. Errors: the property that is not
	// decided, the fault that never fired, the limit of an operation that did not occur, the control that is not
	// wanted, and the verdict of its case.
	if count[junit.StatusFailed] != 4 || count[junit.StatusError] != 5 {
		t.Errorf("%v:\n%s", count, b.String())
	}
}

// TestJUnitVerdict checks that an entry that decided nothing has errors and no failures, also for what is slower than
// allowed, and that nothing that is slower counts as passed.
func TestJUnitVerdict(t *testing.T) {
	most := 2.0
	exceeded := reports.GateLimit{Operation: "acquire", Percentile: "p99", LimitMS: 1, MeasuredMS: &most}
	missed := reports.GateLimit{Operation: "pop", Percentile: "p99", LimitMS: 1}
	for _, c := range []struct {
		verdict          string
		limits           []reports.GateLimit
		failures, errors int
	}{
		{reports.Pass, nil, 0, 0},
		{reports.Inconclusive, []reports.GateLimit{exceeded}, 0, 2},
		{reports.Inconclusive, []reports.GateLimit{exceeded, missed}, 0, 3},
		{reports.Slower, []reports.GateLimit{exceeded}, 1, 0},
		{reports.Violated, []reports.GateLimit{exceeded, missed}, 2, 1},
	} {
		got := countsOf(t, reports.Gate{Safety: []reports.GateEntry{{Name: "x", Expect: reports.Pass, Verdict: c.verdict, Cases: []reports.GateCase{{
			Title: "mutex", Verdict: c.verdict, Why: "only 8 opportunities", Limits: c.limits,
		}}}}})
		if got.Failures != c.failures || got.Errors != c.errors {
			t.Errorf("%s with the limits %v: %d failures and %d errors, want %d and %d", c.verdict, c.limits, got.Failures, got.Errors, c.failures, c.errors)
		}
	}
	for _, c := range []struct {
		verdict, measure string
		failures, errors int
	}{
		{reports.Pass, reports.Pass, 0, 0},
		{reports.Slower, reports.Slower, 1, 0},
		{reports.Inconclusive, reports.Slower, 0, 2}, // the baseline file that accepts it does not apply
		{reports.Inconclusive, reports.Inconclusive, 0, 2},
	} {
		got := countsOf(t, reports.Gate{Performance: []reports.GatePerformance{{Name: "x", Verdict: c.verdict, Measures: []reports.GateMeasure{{Name: "p50", Verdict: c.measure}}}}})
		if got.Failures != c.failures || got.Errors != c.errors {
			t.Errorf("%s with a measure that is %s: %d failures and %d errors, want %d and %d", c.verdict, c.measure, got.Failures, got.Errors, c.failures, c.errors)
		}
	}
}

// countsOf returns the counts of a gate as a JUnit file.
func countsOf(t *testing.T, g reports.Gate) (all junitSuites) {
	t.Helper()
	var b bytes.Buffer
	if err := JUnit(&b, g); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal(b.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// structure checks what the schema of Jenkins and Surefire requires.
func structure(t *testing.T, source []byte) {
	t.Helper()
	type counts struct{ tests, failures, errors int }
	var open []string
	var said, seen counts
	d := xml.NewDecoder(bytes.NewReader(source))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		switch e := token.(type) {
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.StartElement:
			attributes := map[string]string{}
			for _, a := range e.Attr {
				attributes[a.Name.Local] = a.Value
			}
			inside := strings.Join(open, "/")
			want := map[string][]string{
				"testsuites": {"tests", "failures", "errors", "time"}, "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
				"testcase": {"name", "classname", "time"}, "failure": {"type", "message"}, "error": {"type", "message"}, "system-out": {},
			}[e.Name.Local]
			for _, name := range want {
				if _, ok := attributes[name]; !ok {
					t.Errorf("<%s> has no %s", e.Name.Local, name)
				}
			}
			switch e.Name.Local {
			case "testsuites":
				fmt.Sscan(attributes["tests"]+" "+attributes["failures"]+" "+attributes["errors"], &said.tests, &said.failures, &said.errors)
			case "testsuite":
				if inside != "testsuites" {
					t.Errorf("<testsuite> in %q", inside)
				}
			case "testcase":
				seen.tests++
			case "failure":
				seen.failures++
			case "error":
				seen.errors++
			case "system-out":
			default:
				t.Errorf("<%s> is not known to JUnit", e.Name.Local)
			}
			open = append(open, e.Name.Local)
		}
	}
	if said != seen || seen.tests == 0 {
		t.Errorf("it says %+v and has %+v", said, seen)
	}
}
