package reports

import (
	"slices"
	"testing"
)

func TestOpenLoad(t *testing.T) {
	if got := (Run{}).OpenLoad(); got != nil {
		t.Errorf("a closed load: %q", got)
	}
	r := Run{
		Arrivals: &Arrivals{
			Rate: "20000", Process: "poisson", Begun: 59_990, Missed: 10, Offered: 20_000, Achieved: 19_998.4,
			Late: Percentiles{P50: 0.1, P99: 2, P999: 3.5}, ForClient: Percentiles{P99: 1.5, P999: 3}, Driver: Percentiles{P50: 0.1, P99: 0.5, P999: 0.6},
		},
		Request: &Latency{Call: Percentiles{P50: 1, P99: 9, P999: 12}, Due: &Percentiles{P50: 1.1, P99: 533, P999: 540}},
	}
	want := []string{
		"20,000 a second, poisson; 59,990 arrivals begun, 10 never, 19,998 a second of 20,000",
		"late p50/p99/p99.9 0.10 / 2.00 / 3.50 ms: because no client was free 0.00 / 1.50 / 3.00, because oversell was late 0.10 / 0.50 / 0.60",
		"requests p50/p99/p99.9: response, from when due, 1.10 / 533 / 540 ms; service, from when begun, 1.00 / 9.00 / 12.0 ms",
	}
	if got := r.OpenLoad(); !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	r.Arrivals.Rate, r.Arrivals.Missed, r.Request = "0s:10,2s:500", 0, nil
	if got := r.OpenLoad(); len(got) != 2 || got[0] != "stages 0s:10,2s:500, poisson; 59,990 arrivals begun, 19,998 a second of 20,000" {
		t.Errorf("%q", got)
	}
}

func TestPoolWaiting(t *testing.T) {
	r := Run{Pool: 100, PoolWait: &PoolUse{Sent: 4000, Waited: 3900, Took: 260, Wait: 251.4}}
	if got, want := r.PoolWaiting(), "3,900 of 4,000 commands waited for one of 100 shared connections: on average 251 of 260 ms"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if r.PoolWait.Waited = 0; r.PoolWaiting() != "" || (Run{}).PoolWaiting() != "" {
		t.Error("nobody waited")
	}
}
