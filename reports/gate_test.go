package reports

import "testing"

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

// TestWorst checks the order of verdicts, and that one that nobody knows does not pass.
func TestWorst(t *testing.T) {
	for _, c := range []struct {
		verdicts []string
		want     string
	}{
		{nil, Inconclusive},
		{[]string{Pass, Pass}, Pass},
		{[]string{Pass, Slower}, Slower},
		{[]string{Slower, Inconclusive, Pass}, Inconclusive},
		{[]string{Inconclusive, Violated}, Violated},
		{[]string{Violated, Failed}, Failed},
		{[]string{Pass, ""}, Inconclusive},
		{[]string{"Pass", Slower}, Inconclusive},
		{[]string{"VIOLATED", Violated}, Violated},
	} {
		if got := Worst(c.verdicts...); got != c.want {
			t.Errorf("%q: %s, want %s", c.verdicts, got, c.want)
		}
	}
}
