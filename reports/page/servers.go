package page

import (
	"fmt"
	"math"
	"slices"
	"time"

	"oversell/reports"
	"oversell/reports/page/chart"
)

// serverCharts draws the load of the servers; no charts if the run is too short.
func (s *series) serverCharts(r *reports.Run, x chart.Axis) (all []chart.Chart) {
	cpu := serverLines(r.Servers, func(i reports.LoadInterval) float64 { return i.CPU })
	commands := serverLines(r.Servers, func(i reports.LoadInterval) float64 { return i.Commands })
	if len(cpu) == 0 {
		return nil
	}
	percent := func(v float64) string { return amount(v) + " %" }
	c := chart.New("Redis: CPU time", "percent of one core", cpu, x, chart.Axis{Scale: chart.Linear(0, max(100, chart.FromZero(highest(cpu)).High)), Format: percent})
	c.Label = fmt.Sprintf("CPU time of Redis over time: at most %s of one core", percent(highest(cpu)))
	c.Foot = "by INFO, every half second or less often in a long run"
	all = append(all, s.timed(c, alike(cpu), x.Format, percent))
	c = chart.New("Redis: commands executed", "a second", commands, x, chart.Axis{Scale: chart.FromZero(highest(commands)), Format: amount})
	c.Label = fmt.Sprintf("Commands that Redis executed over time: at most %s a second", amount(highest(commands)))
	c.Foot = "by INFO; commands in scripts and of other clients count"
	return append(all, s.timed(c, alike(commands), x.Format, amount))
}

// alike returns lines if they share their x values, so that they fit one table.
func alike(lines []chart.Line) []chart.Line {
	if len(lines) > 1 {
		return nil // each server was sampled at other times
	}
	return lines
}

// serverLines returns a line for each measured server, if any was sampled more than once: beside it, a server that
// was mostly down shows, too.
func serverLines(servers []reports.ServerLoad, of func(reports.LoadInterval) float64) (lines []chart.Line) {
	if !slices.ContainsFunc(servers, func(s reports.ServerLoad) bool { return len(s.Intervals) > 1 }) {
		return nil
	}
	for i, s := range servers {
		if len(s.Intervals) == 0 {
			continue
		}
		l := chart.Line{Name: "Redis", Class: seriesClass(i), Steps: true}
		if len(servers) > 1 {
			l.Name = s.Server
		}
		last := math.NaN()
		for _, v := range s.Intervals {
			if !math.IsNaN(last) && v.FromMS > last { // no samples in between
				l.Points = append(l.Points, chart.Point{X: inRun(last), Y: math.NaN()})
			}
			l.Points = append(l.Points, chart.Point{X: inRun(v.FromMS), Y: of(v)}, chart.Point{X: inRun(v.ToMS), Y: of(v)})
			last = v.ToMS
		}
		lines = append(lines, l)
	}
	return lines
}

// inRun converts a time to the scale of the run.
func inRun(ms float64) float64 { return ms * float64(time.Millisecond) }

// serverNumbers describes the busiest server.
func serverNumbers(servers []reports.ServerLoad) (list []number) {
	if len(servers) == 0 {
		return nil
	}
	most := servers[0]
	for _, s := range servers[1:] {
		if s.CPU > most.CPU {
			most = s
		}
	}
	whose := "Redis"
	if len(servers) > 1 {
		whose = "Redis (" + most.Server + ", the busiest)"
	}
	return []number{{"CPU time of " + whose + ", of one core", amount(most.CPU) + " %"}, {"commands a second by " + whose, reports.Thousands(int64(math.Round(most.Commands)))}}
}
