package explore

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

func TestBig(t *testing.T) {
	l, _ := lockimpl.Find("fenced")
	s, _ := scenarios.Find("seckill")
	sale, _ := stockimpl.Find("fenced")
	var b reports.Bounds
	fmt.Sscanf(os.Getenv("B"), "%d,%d,%d,%d,%d,%d,%d", &b.Clients, &b.Tries, &b.Advances, &b.Crashes, &b.Lost, &b.Late, &b.Stalls)
	if b.Clients == 0 {
		t.Skip()
	}
	b.TimeMS = 60000
	start := time.Now()
	f, _ := os.Create("/tmp/cpu.prof")
	pprof.StartCPUProfile(f)
	r, err := Run(t.Context(), Config{Run: scenarios.Config{Scenario: s, Lock: l, Sale: sale, Stock: 2}, Look: look(), Bounds: b, Plain: os.Getenv("PLAIN") != ""})
	pprof.StopCPUProfile()
	fmt.Println(time.Since(start), err, r.Verdict, r.Why)
	j, _ := json.Marshal(r.Stats)
	fmt.Println(string(j), float64(r.Stats.Transitions)/time.Since(start).Seconds())
	if c := r.Counterexample; c != nil {
		for i, s := range c.Steps {
			fmt.Println(i+1, s.AtMS, s.Client, s.Kind, s.Text, s.Marks, "|", s.Redis)
		}
	}
}

func look() (l []history.Promise) {
	for _, p := range strings.Fields(os.Getenv("LOOK")) {
		of, name, _ := strings.Cut(p, "/")
		l = append(l, history.Promise{Of: variant.Object(of), Property: variant.Property(name)})
	}
	return l
}
