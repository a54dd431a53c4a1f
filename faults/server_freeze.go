package faults

import (
	"context"

	"oversell/target"
)

// kindFreezeNode stops a server for a time: its machine is suspended, or swaps.
// Clients stay connected and wait.
var kindFreezeNode = Kind{
	Name: "freeze-node", Level: OnServer,
	Syntax:   "freeze D node N [at D] [every D] [times N|once]",
	Summary:  "a server stops for D as of SIGSTOP; its connections stay open, and what was sent meanwhile is executed afterwards",
	Takes:    []Part{TakesNode, TakesAmount},
	Requires: []Part{TakesAmount},
	Provokes: stallProvokes,
	Needs:    needs(target.CanStop),
	Lasts:    amount,
	Inject: func(_ context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		if err := on.Target.Freeze(on.Chosen); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			if err := on.Target.Thaw(on.Chosen); err != nil {
				return err
			}
			return on.settle(ctx, on.Chosen)
		}, nil
	},
}
