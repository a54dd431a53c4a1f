package faults

import (
	"context"
	"time"

	"oversell/server"
)

// kindClientPause has a server hold back the commands of all clients. It ends early
// when the run is stopped.
var kindClientPause = Kind{
	Name: "client-pause", Level: OnServer,
	Syntax:   "client-pause D" + timedSyntax,
	Summary:  "a server holds back the commands of all clients for D, and executes them afterwards",
	Takes:    []Part{TakesNode, TakesAmount},
	Requires: []Part{TakesAmount},
	Provokes: stallProvokes,
	Needs:    needsKeys(server.CanAdminister),
	Lasts:    amount,
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		healed, err := on.Target.Intend(server.Undo{Server: on.Chosen, Paused: true})
		if err != nil {
			return nil, err
		}
		resume, err := on.Target.Pause(ctx, on.Chosen, f.Amount)
		if err != nil {
			healed()
			return nil, err
		}
		began := time.Now()
		return func(ctx context.Context) error {
			// Measured before resume: its reply comes only after all commands that its connection has monitored.
			paused := min(time.Since(began), f.Amount)
			on.brought(unanswered, paused.Milliseconds())
			on.over(began.Add(paused))
			if err := on.insist(ctx, resume); err != nil {
				return err
			}
			healed()
			return on.settle(ctx, on.Chosen)
		}, nil
	},
}
