package judging

import (
	"time"

	"oversell/history"
	"oversell/reports"
)

// shortestLoad is the shortest interval for which a server's load means anything; a shorter one at the end of a run
// is merged into the one before.
const shortestLoad = 50 * time.Millisecond

// serverLoads returns the load of the servers from a history's trailer.
func serverLoads(t *history.Trailer) (loads []reports.ServerLoad) {
	for _, s := range t.Servers {
		if l, ok := serverLoad(s); ok {
			loads = append(loads, l)
		}
	}
	return loads
}

// serverLoad computes rates from a server's counters. If a counter decreased, the server was restarted, and that
// interval is skipped.
func serverLoad(s history.ServerLoad) (reports.ServerLoad, bool) {
	l := reports.ServerLoad{Server: s.Server}
	var all history.LoadSample // the sum of the known intervals
	samples := s.Samples
	if n := len(samples); n > 2 && samples[n-1].At-samples[n-2].At < shortestLoad {
		samples = append(samples[:n-2:n-2], samples[n-1])
	}
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		d := history.LoadSample{At: b.At - a.At, CPU: b.CPU - a.CPU, Commands: b.Commands - a.Commands}
		if d.At <= 0 || d.CPU < 0 || d.Commands < 0 {
			continue
		}
		all = history.LoadSample{At: all.At + d.At, CPU: all.CPU + d.CPU, Commands: all.Commands + d.Commands}
		cpu, commands := rates(d)
		l.Intervals = append(l.Intervals, reports.LoadInterval{FromMS: Round(float64(a.At) / 1e6), ToMS: Round(float64(b.At) / 1e6), CPU: cpu, Commands: commands})
	}
	if all.At <= 0 {
		return l, false
	}
	l.CPU, l.Commands = rates(all)
	return l, true
}

// rates divides counts by their time.
func rates(d history.LoadSample) (cpuPercent, commandsPerSecond float64) {
	return Round(100 * float64(d.CPU) / float64(d.At)), Round(float64(d.Commands) / d.At.Seconds())
}
