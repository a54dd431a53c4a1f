package scenarios

import (
	"slices"
	"testing"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/variant"
)

// TestBreakable checks that Breakable tells what load alone breaks from what only faults or other conditions break.
func TestBreakable(t *testing.T) {
	freeze, err := faults.Parse("freeze holder 2s 5%")
	if err != nil {
		t.Fatal(err)
	}
	ofSale := func(p variant.Property) history.Promise { return history.Promise{Of: variant.Sale, Property: p} }
	for _, c := range []struct {
		lock, sale       string
		change           func(*Config)
		byLoad, byFaults []history.Promise // some of them; nil: none at all
	}{
		{lock: "lua-release", sale: "plain"},
		{lock: "none", sale: "plain", byLoad: []history.Promise{ofSale(variant.NoOversell)}},
		{lock: "lua-release", sale: "plain", change: func(c *Config) { c.Faults, c.TTL = []faults.Fault{freeze}, time.Second }, byFaults: []history.Promise{ofSale(variant.NoOversell)}},
		{lock: "none", sale: "plain", change: func(c *Config) { c.Faults, c.TTL = []faults.Fault{freeze}, time.Second }, byLoad: []history.Promise{ofSale(variant.NoOversell)}},
		{lock: "none", sale: "check-then-act", change: func(c *Config) { c.Resend = 0.5 }, byFaults: []history.Promise{ofSale(variant.OncePerOrder)}},
		{lock: "lua-release", sale: "lua", change: func(c *Config) { c.Resend = 0.5 }},
	} {
		cfg := config(t, "seckill", c.lock, c.sale)
		if c.change != nil {
			c.change(&cfg)
		}
		byLoad, byFaults := cfg.Breakable()
		for _, x := range []struct {
			name      string
			got, want []history.Promise
		}{{"by load", byLoad, c.byLoad}, {"by faults", byFaults, c.byFaults}} {
			for _, p := range x.want {
				if !slices.Contains(x.got, p) {
					t.Errorf("%s + %s, %s: %v; want %v among them", c.lock, c.sale, x.name, x.got, p)
				}
			}
			if x.want == nil && len(x.got) > 0 {
				t.Errorf("%s + %s, %s: %v; want none", c.lock, c.sale, x.name, x.got)
			}
		}
		if outcome, _ := cfg.Expect(); (outcome == ExpectViolated) != (len(byLoad)+len(byFaults) > 0) {
			t.Errorf("%s + %s: declared %s, and breakable %v %v", c.lock, c.sale, outcome, byLoad, byFaults)
		}
	}
}
