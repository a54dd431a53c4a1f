package judging

import (
	"reflect"
	"testing"
	"time"

	"oversell/history"
	"oversell/reports"
)

func TestServerLoad(t *testing.T) {
	at := func(ms, cpu time.Duration, commands int64) history.LoadSample {
		return history.LoadSample{At: ms * time.Millisecond, CPU: cpu * time.Millisecond, Commands: commands}
	}
	for _, c := range []struct {
		name    string
		samples []history.LoadSample
		want    reports.ServerLoad
	}{
		{"nothing", nil, reports.ServerLoad{}},
		{"one sample", []history.LoadSample{at(0, 1, 1)}, reports.ServerLoad{}},
		{"two", []history.LoadSample{at(0, 10, 100), at(500, 260, 1100)},
			reports.ServerLoad{CPU: 50, Commands: 2000, Intervals: []reports.LoadInterval{{ToMS: 500, CPU: 50, Commands: 2000}}}},
		{"a short end", []history.LoadSample{at(0, 0, 0), at(500, 500, 500), at(1000, 500, 500), at(1010, 505, 600)},
			reports.ServerLoad{CPU: 50, Commands: 594.059, Intervals: []reports.LoadInterval{{ToMS: 500, CPU: 100, Commands: 1000}, {FromMS: 500, ToMS: 1010, CPU: 0.98, Commands: 196.078}}}},
		{"started again", []history.LoadSample{at(0, 0, 0), at(500, 500, 500), at(1000, 1, 1), at(1500, 251, 101)},
			reports.ServerLoad{CPU: 75, Commands: 600, Intervals: []reports.LoadInterval{{ToMS: 500, CPU: 100, Commands: 1000}, {FromMS: 1000, ToMS: 1500, CPU: 50, Commands: 200}}}},
		{"from elsewhere, out of order", []history.LoadSample{at(500, 0, 0), at(0, 1, 1)}, reports.ServerLoad{}},
	} {
		got, ok := serverLoad(history.ServerLoad{Samples: c.samples})
		if ok != (c.want.Intervals != nil) || ok && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, ok, c.want)
		}
	}
}
