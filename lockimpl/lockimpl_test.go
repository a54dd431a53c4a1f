package lockimpl_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/variant"
)

// sample lists the locks that the short tests check, one of each design. The value says whether the suite also runs on
// the emulation.
var sample = map[string]bool{"lua-release": true, "watchdog": false, "fenced": false, "fair": false, "set-nx-ex": false}

// TestConformance runs the suite on the locks in sample. With OVERSELL_LONG=1, it runs on every lock that promises
// anything, on a real Redis and on the emulation.
func TestConformance(t *testing.T) {
	all := os.Getenv("OVERSELL_LONG") == "1"
	o := locktest.Options{Load: time.Second}
	if all {
		o = locktest.Options{}
	}
	for _, v := range lockimpl.Variants {
		embedded, chosen := sample[v.Name]
		if !all && !chosen || len(v.Promises) == 0 {
			continue
		}
		topology := "single"
		if v.Needs.Masters > 1 {
			topology = "masters:5"
		}
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			t.Run("process", func(t *testing.T) { locktest.RunWith(t, v, locktest.Process(topology), o) })
			if all || embedded {
				t.Run("embedded", func(t *testing.T) { locktest.RunWith(t, v, locktest.Embedded(topology), o) })
			}
		})
	}
}

func TestDeclarationsOfLocks(t *testing.T) {
	for _, v := range lockimpl.Variants {
		if v.Fences != slices.Contains(v.Promises, variant.Fencing) {
			t.Errorf("%s: granting tokens and promising fencing must go together", v.Name)
		}
		if len(v.Flaws) == 0 && v.Needs.Masters <= 1 {
			t.Errorf("%s declares no flaw; on a single master at least a failover breaks it", v.Name)
		}
	}
}
