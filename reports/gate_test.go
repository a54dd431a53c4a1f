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
