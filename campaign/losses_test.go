package campaign

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oversell/dispatchimpl"
	"oversell/idimpl"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/stockimpl"
	"oversell/variant"
)

// losses are faults in which servers lose data, or disagree about it.
var losses = [][]string{
	{"--topology", "sentinel", "--fault", "split-brain at 200ms for 500ms"},
	{"--topology", "replica", "--fault", "failover at 200ms"},
	{"--fault", "restart empty at 200ms"},
	{"--fault", "kill at 200ms for 200ms"},
	{"--topology", "cluster", "--fault", "failover at 200ms"},
}

// independentLosses are such faults for locks on independent masters.
var independentLosses = [][]string{
	{"--topology", "masters:3", "--fault", "restart node 1 empty at 200ms", "--fault", "restart node 2 empty at 300ms", "--fault", "restart node 3 empty at 400ms"},
}

// TestLossesAreDeclared runs variants under faults in which servers lose data, and checks that a flaw declares every
// property that breaks. By default each lock, queue and generator runs under one of the faults, and sales under none: a sale
// whose stock is lost waits for half a minute. With OVERSELL_LOSSES=n, all variants run under all faults, with n seeds.
func TestLossesAreDeclared(t *testing.T) {
	servertest.NeedServer(t)
	seeds, _ := strconv.Atoi(os.Getenv("OVERSELL_LOSSES"))
	for i, args := range everyVariant() {
		faults := losses
		if strings.Contains(strings.Join(args, " "), "redlock") {
			faults = independentLosses
		}
		for j, fault := range faults {
			if seeds == 0 && (j != i%len(faults) || slices.Contains(args, "seckill") || slices.Contains(args, "dispatch")) {
				continue
			}
			c := Cell{Args: with(with(args, "--clients", "8", "--timeout", "500ms"), fault...)}
			t.Run(strings.ReplaceAll(strings.Join(c.Args, " "), "--", ""), func(t *testing.T) {
				t.Parallel()
				for seed := range max(1, seeds) {
					r := runCell(t, c, uint64(seed+1))
					for _, p := range r.Properties {
						if p.Result == reports.Broken && !p.Declared {
							t.Errorf("%s --seed %d: no flaw declares %s of the %s, broken %d times: %s", c.command(), seed+1, p.Name, p.Of, p.Count, p.Why)
						}
					}
				}
			})
		}
	}
}

// everyVariant returns flags of a run for each variant of each kind. A variant that needs a lock runs with a sound one.
func everyVariant() (all [][]string) {
	lockFor := func(needs variant.Needs) string {
		if needs.Fence {
			return "fenced"
		}
		return "lua-release"
	}
	for _, v := range lockimpl.Variants {
		if len(v.Promises) == 0 {
			continue
		}
		all = append(all, []string{"--scenario", "mutex", "--lock", v.Name, "--duration", "2s", "--ttl", "1s", "--wait", "500ms", "--hold", "20ms"})
	}
	for _, v := range queueimpl.Variants {
		args := []string{"--scenario", "queue", "--queue", v.Name, "--duration", "1s"}
		if v.Locked {
			args = append(args, "--lock", "lua-release", "--ttl", "1s")
		}
		if v.AtLeastOnce {
			args = append(args, "--visibility", "300ms")
		}
		all = append(all, args)
	}
	for _, v := range stockimpl.Variants {
		args := []string{"--scenario", "seckill", "--sale", v.Name, "--stock", "3000", "--resend", "0.1"}
		all = append(all, with(args, "--lock", lockFor(v.Needs), "--hold", "1ms", "--ttl", "1s"))
		if !v.Needs.Fence && !v.Needs.SQL {
			all = append(all, with(args, "--lock", "none"))
		}
	}
	for _, v := range idimpl.Variants {
		all = append(all, []string{"--scenario", "ids", "--ids", v.Name, "--lock", "none", "--duration", "1s"})
	}
	for _, v := range dispatchimpl.Variants {
		all = append(all, []string{"--scenario", "dispatch", "--dispatch", v.Name, "--lock", lockFor(v.Needs), "--ops", "400", "--ttl", "1s"})
	}
	return all
}
