package faults

import (
	"context"
	"fmt"
	"time"

	"oversell/server"
)

// kindRestart kills a server and starts it again.
var kindRestart = Kind{
	Name: "restart", Level: OnServer, Restarts: true,
	Syntax:   "restart [empty] [after D]" + timedSyntax,
	Summary:  "a server dies as by kill -9 and is started again, after D, with what it had on disk or empty",
	Takes:    []Part{TakesNode, TakesEmpty, TakesAmount},
	Provokes: deathProvokes,
	Needs:    needs(server.CanStop),
	Lasts:    amount,
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		connected := on.connections(ctx)
		if err := on.Target.Kill(on.Chosen); err != nil {
			return nil, err
		}
		on.brought("connections lost", connected)
		back := time.Now().Add(f.Amount)
		return func(ctx context.Context) error { return restart(ctx, f, on, back) }, nil
	},
}

// restart brings a server back, not before its time even if the run was stopped: a fault that keeps a node without its
// data away until the leases have run out must not end early, since it is meant to show that nothing goes wrong then.
func restart(ctx context.Context, f Fault, on Site, back time.Time) error {
	select {
	case <-time.After(time.Until(back)):
	case <-ctx.Done():
		return fmt.Errorf("server %d was to stay away for %v: %w", on.Chosen, f.Amount, ctx.Err())
	}
	return on.revive(ctx, on.Chosen, f.Empty)
}
