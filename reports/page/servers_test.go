package page

import (
	"strings"
	"testing"

	"oversell/reports"
)

// served returns a run whose servers report their load; the second server was down for a while.
func served() RunInput {
	in := takenOver()
	part := func(from, to, cpu, commands float64) reports.LoadInterval {
		return reports.LoadInterval{FromMS: from, ToMS: to, CPU: cpu, Commands: commands}
	}
	in.Run.Servers = []reports.ServerLoad{
		{Server: "server 1", CPU: 40, Commands: 5000, Intervals: []reports.LoadInterval{part(0, 20, 30, 4000), part(20, 40, 50, 6000)}},
		{Server: "server 2", CPU: 120, Commands: 7000, Intervals: []reports.LoadInterval{part(0, 10, 90, 1000), part(30, 40, 150, 13000)}},
	}
	return in
}

// TestServerCharts checks that each server has a line with a gap where it reported nothing, and that a run with a
// single interval has numbers only.
func TestServerCharts(t *testing.T) {
	in := served()
	s := seriesOf(in.History, &in.Run)
	all := s.serverCharts(&in.Run, timeAxis(s.end))
	if len(all) != 2 || len(all[0].Curves) != 2 || all[0].Curves[1].Name != "server 2" {
		t.Fatalf("%+v; want two charts of two servers", all)
	}
	if path := string(all[0].Curves[1].Path); strings.Count(path, "M") != 2 {
		t.Errorf("the path %q has no gap", path)
	}
	if !strings.Contains(all[0].Label, "at most 150 % of one core") {
		t.Errorf("the label is %q", all[0].Label)
	}
	var names []string
	for _, n := range numbersOf(&in.Run) {
		names = append(names, n.Name+"="+n.Value)
	}
	if told := strings.Join(names, "; "); !strings.Contains(told, "CPU time of Redis (server 2, the busiest), of one core=120 %") {
		t.Errorf("the numbers are %s", told)
	}
	in.Run.Servers = in.Run.Servers[:1]
	in.Run.Servers[0].Intervals = in.Run.Servers[0].Intervals[:1]
	if all := s.serverCharts(&in.Run, timeAxis(1)); len(all) != 0 || len(serverNumbers(in.Run.Servers)) != 2 {
		t.Errorf("of a run with one interval %d charts and %v", len(all), serverNumbers(in.Run.Servers))
	}
}
