package faults

import (
	"testing"
	"time"

	"oversell/server"
)

// TestMendingAClockKeepsLeases checks that healing a jump of the clock changes no lease: a lease that was granted in the
// meantime neither gets longer by the jump nor ends at once.
func TestMendingAClockKeepsLeases(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Clocks: true})
	c := tg.Admin(1)
	const lease = 40 * time.Second
	for _, jump := range []string{"+60s", "-60s", "+1s", "-1s"} {
		heal := broken(t, Site{Target: tg}, "clock "+jump+" on node 1")
		if err := c.Set(t.Context(), "lock", "token", lease).Err(); err != nil {
			t.Fatal(err)
		}
		heal()
		left, err := c.PTTL(t.Context(), "lock").Result()
		if err != nil || left > lease || left < lease-10*time.Second {
			t.Errorf("after a jump of %s was healed, a lease of %v has %v left (%v)", jump, lease, left, err)
		}
		began := time.Now()
		wantReply(t, c, "OK", "SET", "k", "v") // writes are not blocked
		if took := time.Since(began); took > pauseWrites {
			t.Errorf("the first write after a jump of %s was healed took %v", jump, took)
		}
	}
}

// TestAClockThatNobodyReads checks that a jump of the clock counts as without effect if no key has a lease and no command
// reads the time.
func TestAClockThatNobodyReads(t *testing.T) {
	t.Parallel()
	tg := openServers(t, server.Spec{Target: "process", Clocks: true})
	why := ""
	on := Site{Target: tg, Vain: func(w string) { why = w }}
	broken(t, on, "clock +60s on node 1")()
	if why == "" {
		t.Error("the jump is reported to have had an effect")
	}
	wantReply(t, tg.Admin(1), "OK", "SET", "lock", "a", "PX", "60000")
	why = ""
	cut := int64(0)
	on.Brought = func(what string, n int64) {
		if what == "leases cut short" {
			cut = n
		}
	}
	broken(t, on, "clock +70s on node 1")()
	if why != "" || cut != 1 {
		t.Errorf("with a lease open: %d leases cut short, in vain: %q", cut, why)
	}
	wantReply(t, tg.Admin(1), "redis: nil", "GET", "lock")
}
