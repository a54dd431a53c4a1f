package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/joshdk/go-junit"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"oversell/history"

	"oversell/variant"
)

// gateOf is a gate in which everything has happened, with names that are hard to escape.
func gateOf() Gate {
	part := func(x float64) *float64 { return &x }
	witness := history.Op{Client: 2, Kind: history.Acquire, Key: history.Text("order"), Outcome: history.OK, Call: time.Millisecond, Return: 2 * time.Millisecond}
	control := &GateControl{What: "lock none", Of: "sale", Property: "no-oversell", Runs: 3, Caught: 3, Good: true, Why: "sold 5 of 3", Tried: []string{"sale *ticket*: it held"}}
	faults := []Fault{{Name: "slow 10ms | 5%", Fired: 12}, {Name: "crash after `ZREM`", Fired: 0}}
	g := Gate{
		Schema: GateSchema, Plan: "plans/gate.yaml", Seed: 5, FalseAlarms: 0.01, Machine: Machine{CPU: "X|Y", Cores: 2, OS: "linux/amd64", Go: "go1.26"},
		Safety: []GateEntry{
			{Name: "sound", Kind: "run", Line: 3, Column: 11, Expect: Pass, Verdict: Pass, Cases: []GateCase{{
				Title: "seckill, lock lua-release, sale plain", Contender: Contender{Lock: "lua-release"}, Verdict: Pass, Runs: 3, Opportunities: 1284,
				Properties: []GateProperty{{Name: "no-oversell", Of: "sale", Result: Holds, Why: "sold 500 of 500"}}, Control: control,
			}}},
			{Name: "a|b `c`, <d> 100%: *e* & \x01\xff", Kind: "run", Line: 9, Column: 11, Expect: Pass, Verdict: Violated, Cases: []GateCase{{
				Title: "mutex, lock x|y", Contender: Contender{Lock: "x|y"}, Verdict: Violated, Why: "mutual-exclusion of the lock was broken", Runs: 2, Broke: 1, Faults: faults,
				Properties: []GateProperty{
					{Name: "mutual-exclusion", Of: "lock", Result: Broken, Runs: 1, Why: "client 2 got it\nwhile client 1 held it, \x00", Witness: []history.Op{witness}, Story: "```\n*a story*\n```"},
					{Name: "progress", Of: "lock", Result: Unknown, Why: "not decided"},
				},
				Control: control, Command: "oversell run '--fault=slow 10ms | 5%'",
				Limits: []GateLimit{{"acquire", "p99", 5, part(7)}, {"pop", "p50", 5, nil}},
			}}},
			{Name: "broke", Kind: "explore", Line: 20, Column: 11, Expect: Violated, Verdict: Pass, Cases: []GateCase{{
				Title: "mutex, lock none", Contender: Contender{Lock: "none"}, Verdict: Pass, Runs: 1, Broke: 1, Searched: "broken within these bounds",
				Properties: []GateProperty{{Name: "mutual-exclusion", Of: "lock", Result: Broken, Runs: 1, Why: "two held it"}},
			}}},
			{Name: "powerless", Kind: "run", Line: 30, Column: 11, Expect: Pass, Verdict: Inconclusive, Cases: []GateCase{{
				Title: "mutex, lock fair", Contender: Contender{Lock: "fair"}, Verdict: Inconclusive, Why: "the gate had no power", Runs: 1, Opportunities: 7,
				Control: &GateControl{What: NoControl, Why: "the plan wants none"},
			}}},
		},
		Performance: []GatePerformance{{
			Name: "speed", Line: 40, Column: 11, Verdict: Slower, Candidate: "lock a", Baseline: "lock b", Rounds: 20, MostRounds: 80,
			Measures: []GateMeasure{{Name: "throughput", Unit: "a second", Candidate: 700, Baseline: 1000, Slowdown: Estimate{0.43, part(0.3), part(0.5)}, Noise: Estimate{0, part(-0.03), part(0.04)}, Allowed: 0.1, Verdict: Slower}},
		}},
		Notes: []string{"a note"}, Command: "oversell gate plans/gate.yaml",
	}
	g.Verdict = g.Judged()
	return g
}

func TestGateExitCodes(t *testing.T) {
	entry := func(v string) GateEntry { return GateEntry{Verdict: v} }
	speed := func(v string) GatePerformance { return GatePerformance{Verdict: v} }
	for _, c := range []struct {
		what string
		g    Gate
		want int
	}{
		{"nothing", Gate{}, ExitInconclusive},
		{"pass", Gate{Safety: []GateEntry{entry(Pass)}}, ExitPass},
		{"slower", Gate{Safety: []GateEntry{entry(Pass)}, Performance: []GatePerformance{speed(Slower)}}, ExitRegression},
		{"slower and inconclusive", Gate{Safety: []GateEntry{entry(Inconclusive)}, Performance: []GatePerformance{speed(Slower)}}, ExitInconclusive},
		{"violated and inconclusive", Gate{Safety: []GateEntry{entry(Inconclusive), entry(Violated)}}, ExitViolated},
		{"violated and failed", Gate{Safety: []GateEntry{entry(Violated)}, Failed: "disk full"}, ExitEnvironment},
		{"stopped", Gate{Safety: []GateEntry{entry(Pass)}, Interrupted: true}, ExitInconclusive},
		{"violated and stopped", Gate{Safety: []GateEntry{entry(Violated)}, Interrupted: true}, ExitViolated},
		{"something missing", Gate{Safety: []GateEntry{entry(Pass)}, Missing: []string{"x"}}, ExitInconclusive},
		{"an unheard-of verdict", Gate{Safety: []GateEntry{entry("fine")}}, ExitInconclusive},
	} {
		if got := c.g.ExitCode(); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestGateSentences(t *testing.T) {
	g := gateOf()
	if got, want := g.Safety[0].Cases[0].Sentence(), "no violation seen in 1,284 opportunities (95 %: below 3/1284 = 0.23 % for this schedule distribution), the control (lock none, which broke no-oversell) was caught 3 of 3 times"; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	quiet := g.Safety[0].Cases[0]
	quiet.NotSeen = []string{"mutual-exclusion"}
	if got := quiet.Sentence(); !strings.HasSuffix(got, "; declared, not seen: mutual-exclusion") {
		t.Errorf("a declared flaw that did not show: %s", got)
	}
	var b strings.Builder
	if err := (Terminal{W: &b}).Gate(g); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; last != "RED: violated (2 passed, 1 violated, 1 inconclusive, 1 slower than allowed)" {
		t.Errorf("the last line is %q", last)
	}
}

// TestTriedControls: whoever reads the gate is told which controls were tried in vain.
func TestTriedControls(t *testing.T) {
	var terminal, markdown, xml strings.Builder
	g := gateOf()
	if err := errors.Join(Terminal{W: &terminal}.Gate(g), g.Markdown(&markdown), g.JUnit(&xml)); err != nil {
		t.Fatal(err)
	}
	const says = "tried as a control, and not caught: sale %s: it held"
	for what, c := range map[string]struct{ got, want string }{
		"terminal": {terminal.String(), fmt.Sprintf(says, "*ticket*")},
		"Markdown": {markdown.String(), fmt.Sprintf(says, "\\*ticket\\*")},
		"JUnit":    {xml.String(), "<system-out>" + fmt.Sprintf(says, "*ticket*") + "</system-out>"},
	} {
		if strings.Count(c.got, c.want) != 2 { // two combinations have that control
			t.Errorf("%s: not told twice of %q:\n%s", what, c.want, c.got)
		}
	}
}

// TestJUnit: a strict XML parser and a parser of JUnit files both take it, and its counts
// are right.
func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := gateOf().JUnit(&b); err != nil {
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
	// Failed: the property, the limit, the verdict of its case, and the speed. Errors: the
	// property that is not decided, the fault that never struck, the limit of what did not
	// happen, the control that is not wanted, and the verdict of its case.
	if count[junit.StatusFailed] != 4 || count[junit.StatusError] != 5 {
		t.Errorf("%v:\n%s", count, b.String())
	}
}

// structure checks what the schema of Jenkins and Surefire demands.
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

// TestMarkdown: rendered as GitHub does, it has the verdict first, a table whose rows all
// have six cells, and no tag but its own.
func TestMarkdown(t *testing.T) {
	g := gateOf()
	page, source := rendered(t, g)
	if !strings.HasPrefix(page, "<h2>oversell gate: RED: violated") {
		t.Errorf("it does not begin with the verdict:\n%s", page)
	}
	rows := strings.Count(page, "<tr>")
	if rows != 6 || strings.Count(page, "<td>")+strings.Count(page, "<td ") != (rows-1)*6 {
		t.Errorf("%d rows with %d cells:\n%s", rows, strings.Count(page, "<td"), page)
	}
	for _, want := range []string{
		"a|b `c`, &lt;d&gt; 100%: *e* &amp;", "3/1284 = 0.23 %", "<details><summary>", "client 2 acquire order", "*a story*", "<td>a|b `c`, ", "lock lua-release, sale plain",
		"crash after `ZREM`",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s\n%s", want, page, source)
		}
	}
	for _, never := range []string{"<d>", "<em>", "<strong>e", "<p>|"} {
		if strings.Contains(page, never) {
			t.Errorf("%q is in\n%s", never, page)
		}
	}
	if strings.Count(page, "<details>") != strings.Count(page, "</details>") {
		t.Errorf("unbalanced details:\n%s", page)
	}
}

func rendered(t *testing.T, g Gate) (page, source string) {
	t.Helper()
	var b, out bytes.Buffer
	if err := g.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	// Unsafe, as GitHub, which lets details and summary through.
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe())).Convert(b.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	return out.String(), b.String()
}

// TestMarkdownIsCut: however much there is to tell, a summary stays small and says what
// it leaves out.
func TestMarkdownIsCut(t *testing.T) {
	g := gateOf()
	long := strings.Repeat("a long story | ", 2000)
	for i := range 300 {
		e := g.Safety[1]
		e.Name = fmt.Sprintf("%s %d", e.Name, i)
		e.Cases = []GateCase{g.Safety[1].Cases[0]}
		e.Cases[0].Properties = []GateProperty{{Name: "mutual-exclusion", Of: "lock", Result: Broken, Why: long}}
		g.Safety = append(g.Safety, e)
	}
	page, source := rendered(t, g)
	if len(source) > longestMarkdown || !strings.Contains(page, "sections are left out") || !strings.Contains(page, "rows more") || !strings.HasPrefix(page, "<h2>oversell gate: RED") {
		t.Errorf("%d bytes, which end in …%s", len(source), source[max(0, len(source)-600):])
	}
	if strings.Count(page, "<details>") != strings.Count(page, "</details>") {
		t.Error("it was cut within details")
	}
}

// TestAnnotations: a line for each red entry, at its place.
func TestAnnotations(t *testing.T) {
	var b strings.Builder
	if err := gateOf().Annotations(&b, "plans/gate,1.yaml"); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), b.String())
	}
	for i, want := range []string{
		"::error file=plans/gate%2C1.yaml,line=9,col=11,title=a|b `c`%2C <d> 100%25%3A *e* & ",
		"::error file=plans/gate%2C1.yaml,line=30,col=11,title=powerless%3A inconclusive::mutex, lock fair under load alone%0Athe gate had no power%0A",
		"::error file=plans/gate%2C1.yaml,line=40,col=11,title=speed%3A slower::lock a against lock b%0Aslower: throughput: 700 instead of 1,000 a second, 43 %25 slower",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("%s\nmust begin with\n%s", lines[i], want)
		}
	}
	if !strings.Contains(lines[0], `client 2 got it\nwhile client 1 held it, \x00%0A`) {
		t.Errorf("the story is not in %s", lines[0])
	}
}

// TestGateJSON: what is written is read back the same.
func TestGateJSON(t *testing.T) {
	var b, again bytes.Buffer
	all := gateOf()
	all.Safety[1].Name = "in UTF-8, as JSON is"
	if err := WriteJSON(&b, all); err != nil {
		t.Fatal(err)
	}
	var g Gate
	if err := json.Unmarshal(b.Bytes(), &g); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&again, g); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("%v\n%s\n%s", err, b.String(), again.String())
	}
}

// TestAGateSaysWhatAPassRestsOn, wherever it is shown: how often each promise could have
// broken, and what is known to break it and was not tried.
func TestAGateSaysWhatAPassRestsOn(t *testing.T) {
	c := GateCase{
		Title: "lock lua-release", Verdict: Pass, Runs: 1, Opportunities: 40,
		Properties:   []GateProperty{{Name: variant.MutualExclusion, Of: variant.Lock, Result: Holds, Opportunities: 689, Why: "no two holders at once"}},
		KnownToBreak: []history.Untried{{Under: "failover"}},
	}
	g := Gate{Safety: []GateEntry{{Name: "locks", Expect: Pass, Verdict: Pass, Cases: []GateCase{c}}}}
	var terminal, junit, markdown strings.Builder
	for _, err := range []error{Terminal{W: &terminal}.Gate(g), g.JUnit(&junit), g.Markdown(&markdown)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for where, text := range map[string]string{"terminal": terminal.String(), "JUnit": junit.String(), "Markdown": markdown.String()} {
		for _, want := range []string{"no violation seen in 689 opportunities", "3/689 = 0.44 %", "known to break under: failover; not tried"} {
			if !strings.Contains(strings.ReplaceAll(text, `\`, ""), want) {
				t.Errorf("%s lacks %q:\n%s", where, want, text)
			}
		}
	}
}
