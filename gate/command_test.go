package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/variant"
)

// needShell skips a test on a machine without a shell; where everything is required it fails.
func needShell(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		servertest.Unable(t, err)
	}
}

// TestCommandControl checks that a control counts only if it breaks what the entry is judged by.
func TestCommandControl(t *testing.T) {
	needShell(t)
	const header = `{"schema":"oversell-history/1","scenario":"mutex","lock":"theirs","ttl_ns":1000000000,"promises":[{"of":"lock","property":"mutual-exclusion"}],"expected":"pass"}`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sound := write("sound.jsonl", header+`
{"client":1,"kind":"acquire","key":"order","arg":1,"outcome":"ok","call_ns":0,"return_ns":10,"until_ns":1000000000}
{"client":1,"kind":"release","key":"order","arg":1,"outcome":"ok","call_ns":20,"return_ns":30,"until_ns":1000000000}
{"trailer":{"operations":2,"elapsed_ns":100}}
`)
	oversold := write("violated.json", jsonOf(t, reports.Violated))
	for _, c := range []struct {
		what, script, history, control string
		runs                           int
		good                           bool
		say                            string
	}{
		{"both by exit code", "exit 0", "", `command: [/bin/sh, -c, "echo build failed >&2; exit 1"]`, 1, true, "only its exit code was seen, which is also 1 for a program that does not build: the command exited with 1: build failed"},
		{"a history, and a control without", "cp " + sound + " h1.jsonl", "h1.jsonl", `command: [/bin/sh, -c, "exit 1"]`, 0, false, "its control must be, too"},
		{"a history, and a control that leaves none", "cp " + sound + " h1.jsonl", "h1.jsonl", `command: [/bin/sh, -c, "exit 1"], history: h2.jsonl`, 2, false, "left no history"},
		{"an exit code, and a control that breaks something", "exit 0", "", fmt.Sprintf(`command: [/bin/sh, -c, "cat %s; exit 1"]`, oversold), 2, false, "broke no-oversell of the sale, which the entry is not judged by"},
	} {
		t.Run(c.what, func(t *testing.T) {
			history := ""
			if c.history != "" {
				history = "    history: " + c.history + "\n"
			}
			g := gated(t, mustLoad(t, fmt.Sprintf("safety:\n  - name: x\n    expect: pass\n    repeat: 1\n    command: [/bin/sh, -c, %q]\n%s    control: {%s}\n", c.script, history, c.control)), Options{})
			control, said := g.Safety[0].Cases[0].Control, story(g)
			if control == nil || control.Good != c.good || control.Runs != c.runs || !strings.Contains(said, c.say) {
				t.Errorf("%+v, want good %v and to be told of %q:\n%s", control, c.good, c.say, said)
			}
		})
	}
}

// TestCaughtBy checks that a control is caught by the first broken promise that the entry also makes.
func TestCaughtBy(t *testing.T) {
	property := func(name variant.Property, result string) reports.Property {
		return reports.Property{Name: name, Of: variant.Sale, Result: result, Measured: result}
	}
	of := func(verdict string, ps ...reports.Property) reports.Run {
		return reports.Run{Verdict: verdict, Properties: ps}
	}
	entry := &tally{kept: []made{{run: of(reports.Pass, property(variant.NoOversell, reports.Holds), property(variant.OncePerOrder, reports.NotClaimed))}}}
	for _, c := range []struct {
		what    string
		control reports.Run
		caught  bool
	}{
		{"what the entry promises", of(reports.Violated, property(variant.OncePerOrder, reports.Broken), property(variant.NoOversell, reports.Broken)), true},
		{"what the entry does not promise", of(reports.Violated, property(variant.OncePerOrder, reports.Broken)), false},
		{"nothing", of(reports.Pass, property(variant.NoOversell, reports.Holds)), false},
		{"nothing that is named", of(reports.Violated), false},
	} {
		if p, why := entry.caughtBy(c.control); (p != nil) != c.caught || (why == "") != c.caught || p != nil && p.Name != variant.NoOversell {
			t.Errorf("%s: %+v, %q", c.what, p, why)
		}
	}
}

// TestBudgetOfTheLastRun checks that the budget counts for the last of a fixed number of runs, too, and that what
// was found in it counts.
func TestBudgetOfTheLastRun(t *testing.T) {
	for _, c := range []struct{ settings, command, verdict, why string }{
		{"expect: pass, repeat: 1, budget: 1us", "true", reports.Inconclusive, "longer than the budget of 1µs"},
		{"expect: pass, repeat: 1, budget: 1h", "true", reports.Pass, ""},
		{"expect: pass, budget: 1us", "true", reports.Pass, ""}, // at least one run is made
		{"expect: pass, repeat: 1, budget: 1us", "false", reports.Violated, "was broken"},
		{"expect: violated, repeat: 1, budget: 1us", "false", reports.Pass, ""},
	} {
		control := ", control: {command: [\"false\"]}"
		if strings.Contains(c.settings, reports.Violated) {
			control = ""
		}
		p := mustLoad(t, "safety:\n  - {name: c, "+c.settings+", command: [\""+c.command+"\"]"+control+"}\n")
		g, err := p.Run(t.Context(), Options{Dir: t.TempDir()}, silent{})
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Safety[0].Cases[0]; g.Verdict != c.verdict || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s, %s: %s, %q; want %s, %q", c.settings, c.command, g.Verdict, got.Why, c.verdict, c.why)
		}
	}
}
