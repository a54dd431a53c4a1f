package reports

import "testing"

func TestExitCodeOfClaims(t *testing.T) {
	answered := func(answers ...string) (c Claims) {
		for _, a := range answers {
			c.Claims = append(c.Claims, Claim{Answer: a, Declared: Confirmed})
		}
		return c
	}
	for _, c := range []struct {
		claims Claims
		want   int
	}{
		{answered(Confirmed, Confirmed), ExitPass},
		{answered(Confirmed, Refuted), ExitViolated},
		{answered(Confirmed, Depends), ExitViolated},
		{answered(Confirmed, Inconclusive), ExitInconclusive},
		{answered(Inconclusive, Refuted), ExitViolated},
		{answered(), ExitInconclusive},
	} {
		if got := c.claims.ExitCode(); got != c.want {
			t.Errorf("%+v: exit %d; want %d", c.claims.Claims, got, c.want)
		}
	}
	stopped := answered(Confirmed)
	stopped.Interrupted = true
	if got := stopped.ExitCode(); got != ExitInconclusive {
		t.Errorf("stopped: exit %d", got)
	}
}
