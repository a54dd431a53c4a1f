package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/reports"
)

// TestPrintedDocument checks that a document that a command prints passes only if each of its runs says so, and nothing
// in it contradicts that.
func TestPrintedDocument(t *testing.T) {
	needShell(t)
	const (
		good    = `"properties":[{"of":"sale","name":"no-oversell","result":"holds","measured":"holds","opportunities":50,"why":"sold 1 of 1"}]`
		broken  = `"properties":[{"of":"sale","name":"no-oversell","result":"violated","opportunities":50,"why":"sold 2 of 1"}]`
		passing = `{"verdict":"pass",` + good + `}`
	)
	document := func(runs ...string) string {
		return `{"schema":"oversell-report/1","runs":[` + strings.Join(runs, ",") + `]}`
	}
	result := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	dir := t.TempDir()
	for i, c := range []struct {
		what, document string
		exit           int
		verdict, say   string
	}{
		{"a pass", document(passing), 0, reports.Pass, "50 opportunities"},
		{"two passes", document(passing, passing), 0, reports.Pass, "100 opportunities"},
		{"a pass, and a code that says otherwise", document(passing), 1, reports.Inconclusive, "printed a pass, but exited with 1"},
		{"no verdict, and a broken promise", document(`{` + broken + `}`), 1, reports.Violated, "no-oversell of the sale was broken"},
		{"no verdict", document(`{` + good + `}`), 0, reports.Inconclusive, `is "", and must be pass, violated or inconclusive`},
		{"a verdict that is spelled in another way", document(`{"verdict":"Pass",` + good + `}`), 0, reports.Inconclusive, `is "Pass", and must be`},
		{"a violation that is", document(`{"verdict":"VIOLATED",` + good + `}`), 1, reports.Inconclusive, `is "VIOLATED", and must be`},
		{"a verdict of a gate", document(`{"verdict":"slower",` + good + `}`), 0, reports.Inconclusive, `is "slower", and must be`},
		{"a name that is spelled in another way", document(`{"Verdict":"pass",` + good + `}`), 0, reports.Inconclusive, `is "", and must be`},
		{"two verdicts", document(`{"verdict":"violated","verdict":"pass",` + good + `}`), 0, reports.Inconclusive, "cannot be read"},
		{"a pass with a broken promise", document(`{"verdict":"pass",` + broken + `}`), 0, reports.Violated, "no-oversell of the sale was broken"},
		{"an undecided run with a broken promise", document(`{"verdict":"inconclusive",` + broken + `}`), 3, reports.Violated, "no-oversell of the sale was broken"},
		{"a pass with what was measured otherwise", document(`{"verdict":"pass",` + result(`"measured":"holds"`, `"measured":"violated"`) + `}`), 0, reports.Violated, "was broken"},
		{"a pass with an undecided promise", document(`{"verdict":"pass",` + result(`"holds"`, `"unknown"`) + `}`), 0, reports.Inconclusive, "no-oversell of the sale is not decided"},
		{"a pass with a result that nobody knows", document(`{"verdict":"pass",` + result(`"holds"`, `"Violated"`) + `}`), 0, reports.Inconclusive, `its result is "Violated", and must be holds`},
		{"a pass without a promise", document(`{"verdict":"pass",` + result(`"holds"`, `"not-claimed"`) + `}`), 0, reports.Inconclusive, "nothing was promised"},
		{"a pass without a property", document(`{"verdict":"pass"}`), 0, reports.Inconclusive, "nothing was promised"},
		{"a pass without an opportunity", document(`{"verdict":"pass",` + result(`50`, `0`) + `}`), 0, reports.Inconclusive, "had 0 opportunities, and a pass needs 3"},
		{"a pass with few opportunities", document(`{"verdict":"pass",` + result(`50`, `7`) + `}`), 0, reports.Pass, "7 opportunities"},
		{"three of them", document(`{"verdict":"pass",`+result(`50`, `7`)+`}`, `{"verdict":"pass",`+result(`50`, `7`)+`}`, `{"verdict":"pass",`+result(`50`, `7`)+`}`), 0, reports.Pass, "21 opportunities"},
		{"a pass that was stopped", document(`{"verdict":"pass","interrupted":true,` + good + `}`), 0, reports.Inconclusive, "stopped before its end"},
		{"a pass of half a history", document(`{"verdict":"pass","cut":"cut off at byte 7",` + good + `}`), 0, reports.Inconclusive, "cut off at byte 7"},
		{"a pass with a fault that never fired", document(`{"verdict":"pass","faults":[{"name":"slow 1ms 5%","fired":0}],` + good + `}`), 0, reports.Inconclusive, "never fired"},
		{"a pass with a fault that fired", document(`{"verdict":"pass","faults":[{"name":"slow 1ms 5%","fired":4}],` + good + `}`), 0, reports.Pass, ""},
		{"a pass beside no verdict", document(passing, `{`+good+`}`), 0, reports.Inconclusive, `is "", and must be`},
		{"a pass beside nothing", document(passing, `null`), 0, reports.Inconclusive, `is "", and must be`},
		{"no runs", document(), 0, reports.Inconclusive, "has no runs (it exited with 0)"},
		{"another version", `{"schema":"oversell-report/2","runs":[` + passing + `]}`, 0, reports.Inconclusive, `the schema "oversell-report/2", and this build reads "oversell-report/1"`},
		{"half a document", document(passing)[:60], 0, reports.Inconclusive, "cannot be read"},
		{"two documents", document(`{"verdict":"violated",`+broken+`}`) + document(passing), 0, reports.Inconclusive, "cannot be read"},
		{"a number for a text", document(`{"verdict":1,` + good + `}`), 0, reports.Inconclusive, "cannot be read"},
		{"a document of something else", `{"schema":"junit","verdict":"fail"}`, 0, reports.Pass, ""},
		{"no document", "ok", 1, reports.Violated, "exited with 1: ok"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := filepath.Join(dir, fmt.Sprint(i))
			if err := os.WriteFile(path, []byte(c.document), 0o644); err != nil {
				t.Fatal(err)
			}
			// The control breaks what the entry is judged by: a property of a document, or an exit code.
			control := "exit 1"
			if strings.Contains(c.document, "oversell-report") {
				control = fmt.Sprintf("printf %%s '%s'; exit 1", document(`{"verdict":"violated",`+broken+`}`))
			}
			g := gated(t, mustLoad(t, fmt.Sprintf("safety:\n  - name: x\n    expect: pass\n    repeat: 1\n    command: [/bin/sh, -c, %q]\n    control: {command: [/bin/sh, -c, %q]}\n", fmt.Sprintf("cat %s; exit %d", path, c.exit), control)), Options{})
			if said := story(g); g.Verdict != c.verdict || !strings.Contains(said, c.say) {
				t.Errorf("%s, want %s, and to be told of %q:\n%s", g.Verdict, c.verdict, c.say, said)
			}
		})
	}
}
