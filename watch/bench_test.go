package watch

import (
	"path/filepath"
	"strconv"
	"testing"

	"oversell/campaign"
	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/scenarios"
)

// judging is a campaign.Watcher that judges runs while they go on.
type judging struct {
	silent
	stop bool // as with --stop-on-violation: judging keeps up with the load, whatever that costs
	run  *Run
}

func (j *judging) Start(_, _ int, _ scenarios.Config, live *scenarios.Live) {
	j.run = Start(live, Options{Stop: j.stop})
}

func (j *judging) Done(int, int, reports.Run) { j.run.Stop() }

// BenchmarkJudging compares the throughput of runs that are judged while they go on with that of runs that are not,
// in turns. "cost%" is the throughput that judging costs, and "cost%-stop" what it costs with --stop-on-violation.
func BenchmarkJudging(b *testing.B) {
	servertest.NeedServer(b)
	for name, args := range map[string][]string{
		"lock":   {"--scenario", "mutex", "--lock", "lua-release", "--hold", "1ns"},
		"sale":   {"--lock", "none", "--sale", "lua", "--stock", "10000000"},
		"queue":  {"--scenario", "queue", "--queue", "zset-atomic"},
		"number": {"--scenario", "ids", "--lock", "none", "--ids", "incr"},
	} {
		b.Run(name, func(b *testing.B) {
			var done [3]float64
			for i := 0; b.Loop(); i++ {
				for k, w := range []campaign.Watcher{silent{}, &judging{}, &judging{stop: true}} {
					done[k] += throughput(b, w, append(args, "--engine", "mux", "--clients", "1000", "--duration", "3s", "--seed", strconv.Itoa(i+1), "--target", "process"))
				}
			}
			b.ReportMetric(done[0]/float64(b.N), "ops/s-alone")
			b.ReportMetric(100*(1-done[1]/done[0]), "cost%")
			b.ReportMetric(100*(1-done[2]/done[0]), "cost%-stop")
		})
	}
}

// throughput makes a run and returns its throughput.
func throughput(b *testing.B, w campaign.Watcher, args []string) float64 {
	b.Helper()
	o, err := campaign.Parse(args)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := campaign.NewPlan(b.Context(), *o)
	if err != nil {
		b.Fatal(err)
	}
	plan.Dir = filepath.Join(b.TempDir(), "runs")
	d, err := campaign.Run(b.Context(), plan, w)
	if err != nil {
		b.Fatal(err)
	}
	return d.Runs[0].Throughput
}
