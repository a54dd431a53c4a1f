package campaign

import (
	"context"
	"strings"
	"testing"

	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/server"
	"oversell/stockimpl"
	"oversell/variant"
)

// TestWhoReadsTheServersClockSaysSo checks that a variant declares that it needs the server's clock exactly if its
// commands make the server read it: TIME, or XADD, which puts a time stamp on an entry of a stream.
func TestWhoReadsTheServersClockSaysSo(t *testing.T) {
	servertest.NeedServer(t)
	check := func(name string, needs variant.Needs, args ...string) {
		if needs.SQL || needs.Masters > 1 {
			return
		}
		t.Run(name, func(t *testing.T) {
			o, err := Parse(append(args, "--clients", "4", "--target", "process", "--seed", "1"))
			if err != nil {
				t.Fatal(err)
			}
			p, err := NewPlan(t.Context(), *o)
			if err != nil {
				t.Fatal(err)
			}
			p.Dir = t.TempDir()
			w := &asked{t: t}
			if _, err := Run(t.Context(), p, w); err != nil {
				t.Fatal(err)
			}
			if w.clock != needs.ServerClock {
				t.Errorf("the server was asked for the time: %t; it is said to be: %t", w.clock, needs.ServerClock)
			}
		})
	}
	for _, v := range lockimpl.Variants {
		check("lock "+v.Name, v.Needs, "--scenario", "mutex", "--ops", "20", "--lock", v.Name)
	}
	for _, v := range stockimpl.Variants {
		lock := "lua-release"
		if v.Needs.Fence {
			lock = "fenced"
		}
		check("sale "+v.Name, v.Needs, "--scenario", "seckill", "--stock", "20", "--lock", lock, "--sale", v.Name)
	}
	for _, v := range queueimpl.Variants {
		args := []string{"--scenario", "queue", "--ops", "20", "--queue", v.Name}
		if v.Locked {
			args = append(args, "--lock", "lua-release")
		}
		check("queue "+v.Name, v.Needs, args...)
	}
}

// asked is a watcher that finds out whether a run asked the server for its time.
type asked struct {
	silent
	t      *testing.T
	target *server.Target
	clock  bool
}

func (a *asked) Target(t *server.Target) { a.target = t }

func (a *asked) Done(int, int, reports.Run) {
	text, err := a.target.Admin(1).Info(context.Background(), "commandstats").Result()
	if err != nil {
		a.t.Error(err)
	}
	a.clock = strings.Contains(text, "cmdstat_time:") || strings.Contains(text, "cmdstat_xadd:")
}
