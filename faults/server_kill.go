package faults

import (
	"context"
	"time"

	"oversell/server"
	"oversell/variant"
)

// kindKill is the sudden death of a server.
var kindKill = Kind{
	Name: "kill", Level: OnServer, Restarts: true,
	Syntax:   "kill [for D|for good]" + timedSyntax,
	Summary:  "a server dies as by kill -9, and comes back after D (1s) with what it had on disk",
	Takes:    []Part{TakesNode, TakesFor},
	Provokes: deathProvokes,
	Needs:    needs(server.CanStop),
	Lasts:    func(Fault) time.Duration { return time.Second },
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		connected := on.connections(ctx)
		if err := on.Target.Kill(on.Chosen); err != nil {
			return nil, err
		}
		on.brought("connections lost", connected)
		if f.When.ForGood {
			return nil, nil // there is nothing to recover to
		}
		return func(ctx context.Context) error { return on.revive(ctx, on.Chosen, false) }, nil
	},
}

// revive starts a killed server again. Its port may be taken for a moment: any process could use it for an outgoing
// connection.
func (s Site) revive(ctx context.Context, number int, empty bool) error {
	err := s.insist(ctx, func(ctx context.Context) error { return s.Target.Start(ctx, number, empty) })
	if err != nil {
		return err
	}
	return s.settle(ctx, number)
}

// deathProvokes: commands executed in the last moment have no reply. The server may also come back without its data,
// because it is not known here whether it persists any. If it stays away for a whole lease, all grants that it may have
// forgotten are over when it comes back; this is the sound way to restart a node of Redlock. Data that no lease ends,
// such as tasks, are lost in any case; see Config.forgotten in package scenarios.
func deathProvokes(f Fault, lease time.Duration) []variant.Fault {
	if f.lasts() >= lease {
		return []variant.Fault{variant.DropReply}
	}
	return []variant.Fault{variant.DropReply, variant.RestartEmpty}
}
