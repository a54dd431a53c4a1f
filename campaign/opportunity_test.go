package campaign

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/dispatchimpl"
	"oversell/history"
	"oversell/idimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/stockimpl"
	"oversell/variant"
)

// everything returns options that together name every scenario and every sale, id generator and dispatch. Locks and
// queues are not named where they can be swept.
func everything(base Options) (os []Options) {
	for _, s := range scenarios.All {
		o := base
		o.Scenario = s.Name
		os = append(os, o)
		has := func(of variant.Object) bool { return slices.Contains(s.Objects, of) }
		if has(variant.Sale) {
			for _, v := range stockimpl.Variants {
				o := o
				o.Locks, o.Sale = []string{"none"}, v.Name
				os = append(os, o)
			}
		}
		if has(variant.IDs) {
			for _, v := range idimpl.Variants {
				o := o
				o.Locks, o.IDs = []string{"none"}, v.Name
				os = append(os, o)
			}
		}
		if has(variant.Dispatch) {
			for _, v := range dispatchimpl.Variants {
				o := o
				o.Locks, o.Dispatch = []string{"none"}, v.Name
				os = append(os, o)
			}
		}
	}
	return os
}

// TestNoPassWithoutOpportunity checks that no scenario passes with one client, in 1 ms, or with a key of its own for
// each client.
func TestNoPassWithoutOpportunity(t *testing.T) {
	base := options()
	base.Target = server.Spec{Target: "embedded"}
	base.TTL, base.Wait = time.Second, time.Second
	base.Stock, base.Clients, base.Ops, base.Duration = 6, 2, 12, 50*time.Millisecond
	alone, brief := base, base
	alone.Clients = 1
	brief.Ops, brief.Duration = 0, time.Millisecond
	for _, c := range []struct {
		name string
		base Options
		keys bool
	}{{"one client", alone, false}, {"1 ms", brief, false}, {"two keys", base, true}} {
		t.Run(c.name, func(t *testing.T) {
			runs := 0
			for k, o := range everything(c.base) {
				p, err := NewPlan(t.Context(), o)
				if err != nil {
					continue // this combination cannot run
				}
				if os.Getenv("OVERSELL_LONG") != "1" && len(p.Runs) > 3 { // every third run of a sweep
					var some []scenarios.Config
					for i := k % 3; i < len(p.Runs); i += 3 {
						some = append(some, p.Runs[i])
					}
					p.Runs = some
				}
				p.Dir = t.TempDir()
				d, err := Run(t.Context(), p, silent{})
				if err != nil {
					t.Errorf("%s: %v", spelt(o), err)
				}
				for i, r := range d.Runs {
					runs++
					if c.keys {
						h, err := history.Read(filepath.Join(p.Dir, runName(i, p.Runs[i]), HistoryFile))
						if err != nil {
							t.Error(err)
							continue
						}
						r = judging.Judge(apart(h)).Run
					}
					if r.Verdict != reports.Pass {
						continue
					}
					t.Errorf("%s: passes after %d opportunities\n%s", r.Title(), opportunities(r), story(r))
				}
			}
			t.Logf("%d runs", runs)
			if runs < 20 {
				t.Errorf("only %d runs were made", runs)
			}
		})
	}
}

// opportunities returns the smallest number of opportunities among the promises of a run.
func opportunities(r reports.Run) int64 {
	fewest := int64(-1)
	for _, p := range r.Properties {
		if p.Result != reports.NotClaimed && (fewest < 0 || p.Opportunities < fewest) {
			fewest = p.Opportunities
		}
	}
	return max(fewest, 0)
}

func spelt(o Options) string {
	return strings.Join(append([]string{o.Scenario, o.Sale, o.IDs, o.Queue, o.Dispatch}, o.Locks...), " ")
}

// apart gives each client of a history its own key.
func apart(h *history.History) *history.History {
	for i := range h.Ops {
		op := &h.Ops[i]
		op.Key = history.Text(fmt.Sprintf("%s of %d", op.Key, op.Client))
	}
	return h
}

// TestPromiseOfObject checks that a promise is judged by its object, whatever the names of the
// scenario and the variants, and that a promise of something unknown does not pass.
func TestPromiseOfObject(t *testing.T) {
	for _, c := range []struct {
		name, header string
		stock, sold  int
		want         string
	}{
		{"a scenario that is not known", `"scenario":"flash-sale","stock":30,"promises":[{"of":"sale","property":"no-oversell"},{"of":"sale","property":"no-undersell"}]`, 30, 59, reports.Violated},
		{"a scenario without a sale", `"scenario":"mutex","stock":1,"promises":[{"of":"sale","property":"no-oversell"}]`, 1, 299, reports.Violated},
		{"a property that is not known", `"scenario":"mutex","stock":400,"promises":[{"of":"sale","property":"kindness"}]`, 400, 299, reports.Inconclusive},
		{"an object that is not known", `"scenario":"mutex","stock":400,"promises":[{"of":"kettle","property":"no-oversell"}]`, 400, 299, reports.Inconclusive},
		{"a fault that the trailer does not list", `"scenario":"seckill","stock":10,"faults":["crash after buy 1%"],"promises":[{"of":"sale","property":"no-oversell"}]`, 10, 10, reports.Inconclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			fmt.Fprintf(&b, "{\"schema\":%q,%s}\n", history.Schema, c.header)
			for i := range c.sold {
				fmt.Fprintf(&b, "{\"client\":%d,\"kind\":\"buy\",\"key\":\"phone\",\"arg\":\"o%d\",\"outcome\":\"ok\",\"due_ns\":1,\"call_ns\":%d,\"return_ns\":%d}\n", i, i, i+1, 1000+i)
			}
			fmt.Fprintf(&b, "{\"trailer\":{\"elapsed_ns\":5000,\"operations\":%d}}\n", c.sold)
			h, err := history.ReadJSONL(&b)
			if err != nil {
				t.Fatal(err)
			}
			if r := judging.Judge(h).Run; r.Verdict != c.want {
				t.Errorf("%s: %s; want %s", r.Verdict, r.Why, c.want)
			}
		})
	}
}
