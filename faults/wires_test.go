package faults

import (
	"net"
	"testing"

	"oversell/clock"
	"oversell/server"
	"oversell/wire"
)

// TestRolesAreThoseOfTheCommand checks that a fault on the wire hits the client that sent the command, in what it was doing
// then, although the command may be executed when the client, or another one in its place, does something else.
func TestRolesAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	f, err := Parse("late EVAL 50ms 100%")
	if err != nil {
		t.Fatal(err)
	}
	var hits []Injection
	in, err := New(t.Context(), Options{Seed: 1, Target: tg, Faults: []Fault{f}, Record: func(i Injection) { hits = append(hits, i) }})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := in.Client(2)
	in.Dialed(2, ours)
	in.Start()
	command := wire.Command{Name: "EVAL", Key: "lock", Client: ours.LocalAddr().String(), Conn: 7}
	for _, change := range []struct{ then, later func() }{
		{c.GivenUp, c.Tries},
		{c.GivenUp, func() { c.Granted(func() bool { return false }) }},
		{func() { c.Granted(func() bool { return false }) }, func() { c.Releases(); in.Replace(c, in.Client(3)) }},
	} {
		change.then()
		action := in.judge(1, command)
		change.later()
		in.tookEffect(1, command, action)
	}
	if got := in.Counts()[0]; got.Fired != 3 || got.Holders != 1 || got.Waiters != 0 {
		t.Errorf("%+v; want 3 hits, one of a holder", got)
	}
	stranger := wire.Command{Name: "EVAL", Key: "lock", Client: "shared", Conn: 8}
	in.tookEffect(1, stranger, in.judge(1, stranger))
	if got := in.Counts()[0]; got.Fired != 4 || got.Unknown != 1 {
		t.Errorf("%+v; want 4 hits, one of them of an unknown client", got)
	}
	for _, h := range hits[:3] {
		if h.Client != 3 || h.At != "client 3, EVAL" {
			t.Errorf("%+v; want client 3", h)
		}
	}
}
