package faults

import (
	"context"
	"fmt"

	"oversell/target"
)

// kindClientPause has a server hold back the commands of all clients. Nothing can
// end that early: the command that would is held back, too.
var kindClientPause = Kind{
	Name: "client-pause", Level: OnServer,
	Syntax:   "client-pause D" + timedSyntax,
	Summary:  "a server holds back the commands of all clients for D, and executes them afterwards",
	Takes:    []Part{TakesNode, TakesAmount},
	Requires: []Part{TakesAmount},
	Provokes: stallProvokes,
	Needs:    needsKeys(target.CanAdminister),
	Lasts:    amount,
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		if err := on.admin().ClientPause(ctx, f.Amount).Err(); err != nil {
			return nil, fmt.Errorf("pause the clients of server %d: %w", on.Chosen, err)
		}
		return func(ctx context.Context) error { return on.settle(ctx, on.Chosen) }, nil
	},
}
