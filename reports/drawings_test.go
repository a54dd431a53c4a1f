package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/ci"
	"oversell/reports/reportstest"
	"oversell/reports/text"
	"oversell/variant"
)

func TestGateSentences(t *testing.T) {
	g := reportstest.Gate()
	if got, want := g.Safety[0].Cases[0].Sentence(), "no violation seen in 1,284 opportunities (95 %: below 3/1,284 = 0.23 % for this schedule distribution), the control (lock none, which broke no-oversell) was caught 3 of 3 times"; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	quiet := g.Safety[0].Cases[0]
	quiet.NotSeen = []string{"mutual-exclusion"}
	if got := quiet.Sentence(); !strings.HasSuffix(got, "; declared, not seen: mutual-exclusion") {
		t.Errorf("a declared flaw that did not show: %s", got)
	}
	var b strings.Builder
	if err := (text.Terminal{W: &b}).Gate(g); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if last := lines[len(lines)-1]; last != "RED: violated (2 passed, 1 violated, 1 inconclusive, 1 slower than allowed)" {
		t.Errorf("the last line is %q", last)
	}
}

// TestTriedControls checks that every form of a gate's report names the controls that were tried in vain.
func TestTriedControls(t *testing.T) {
	var terminal, markdown, xml strings.Builder
	g := reportstest.Gate()
	if err := errors.Join(text.Terminal{W: &terminal}.Gate(g), text.GateMarkdown(&markdown, g), ci.JUnit(&xml, g)); err != nil {
		t.Fatal(err)
	}
	const says = "tried as a control, and not caught: sale %s: it held"
	for what, c := range map[string]struct{ got, want string }{
		"terminal": {terminal.String(), fmt.Sprintf(says, "*ticket*")},
		"Markdown": {markdown.String(), fmt.Sprintf(says, "\\*ticket\\*")},
		"JUnit":    {xml.String(), "<system-out>" + fmt.Sprintf(says, "*ticket*") + "</system-out>"},
	} {
		if strings.Count(c.got, c.want) != 2 { // two cases have that control
			t.Errorf("%s: not told twice of %q:\n%s", what, c.want, c.got)
		}
	}
}

// TestAGateSaysWhatAPassRestsOn checks that every form of a gate's report says how often a promise could have broken,
// and which conditions that are known to break it were not tried.
func TestAGateSaysWhatAPassRestsOn(t *testing.T) {
	c := reports.GateCase{
		Title: "lock lua-release", Verdict: reports.Pass, Runs: 1, Opportunities: 40,
		Properties:   []reports.GateProperty{{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.Holds, Opportunities: 689, Why: "no two holders at once"}},
		KnownToBreak: []history.Untried{{Under: "failover"}},
	}
	g := reports.Gate{Safety: []reports.GateEntry{{Name: "locks", Expect: reports.Pass, Verdict: reports.Pass, Cases: []reports.GateCase{c}}}}
	var terminal, junit, markdown strings.Builder
	for _, err := range []error{text.Terminal{W: &terminal}.Gate(g), ci.JUnit(&junit, g), text.GateMarkdown(&markdown, g)} {
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

// TestGateJSON checks that a gate in JSON reads back as it was written.
func TestGateJSON(t *testing.T) {
	var b, again bytes.Buffer
	all := reportstest.Gate()
	all.Safety[1].Name = "in UTF-8, as JSON is"
	if err := reports.WriteJSON(&b, all); err != nil {
		t.Fatal(err)
	}
	var g reports.Gate
	if err := json.Unmarshal(b.Bytes(), &g); err != nil {
		t.Fatal(err)
	}
	if err := reports.WriteJSON(&again, g); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Errorf("%v\n%s\n%s", err, b.String(), again.String())
	}
}
