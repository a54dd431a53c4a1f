package scenarios

import (
	"testing"

	"oversell/clock"
	"oversell/faults"
	"oversell/server"
)

// TestUnknownRolesAreLeftOut checks that a run does not count holders and waiters of a fault that hit clients which are
// unknown.
func TestUnknownRolesAreLeftOut(t *testing.T) {
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	f, err := faults.Parse("delay PING 100us 100%")
	if err != nil {
		t.Fatal(err)
	}
	in, err := faults.New(t.Context(), faults.Options{Seed: 1, Target: tg, Faults: []faults.Fault{f}, Record: func(faults.Injection) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	in.Start()
	r := &run{injector: in}
	if c := r.counts()[0]; c.Holders == nil || c.Waiters == nil {
		t.Errorf("nothing fired, and that is not known: %+v", c)
	}
	client := tg.Client(0, server.ConnOptions{}) // whose connection belongs to nobody
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if c := r.counts()[0]; c.Fired == 0 || c.Holders != nil || c.Waiters != nil {
		t.Errorf("%+v; want injections, and neither holders nor waiters", c)
	}
}
