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

// TestReasonForNoRecovery checks that a run does not say that a fault was healed which never is.
func TestReasonForNoRecovery(t *testing.T) {
	for _, c := range []struct {
		sentences []string
		want      string
	}{
		{[]string{"cut for good at 500ms"}, `the fault "cut for good at 500ms", which is never healed`},
		{[]string{"kill at 1s for 1s", "kill at 2s for good"}, `the fault "kill at 2s for good", which is never healed`},
		{[]string{"crash 100%"}, "the load began"},
		{[]string{"crash 100%", "kill at 1s for 1s"}, "the last fault was healed"},
		{[]string{"drop-reply SET always at 1s"}, "the last fault was due"},
	} {
		var fs []faults.Fault
		for _, sentence := range c.sentences {
			f, err := faults.Parse(sentence)
			if err != nil {
				t.Fatal(err)
			}
			fs = append(fs, f)
		}
		if got := settledBy(fs); got != c.want {
			t.Errorf("%q: %s; want %s", c.sentences, got, c.want)
		}
	}
}

// TestMastersThatAreThere checks the sentence about too few masters.
func TestMastersThatAreThere(t *testing.T) {
	for n, want := range map[int]string{1: "is one", 2: "are 2"} {
		if got := areThere(n); got != want {
			t.Errorf("there %s; want %s", got, want)
		}
	}
}
