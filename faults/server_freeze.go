package faults

import (
	"context"
	"time"

	"oversell/server"
)

// kindFreezeNode stops a server for a time, as if its machine were suspended or swapping. Clients stay connected and
// wait.
var kindFreezeNode = Kind{
	Name: "freeze-node", Level: OnServer,
	Syntax:   "freeze D node N [at D] [every D] [times N|once]",
	Summary:  "a server stops for D as by SIGSTOP; its connections stay open, and what was sent meanwhile is executed afterwards",
	Takes:    []Part{TakesNode, TakesAmount},
	Requires: []Part{TakesAmount},
	Provokes: stallProvokes,
	Needs:    needs(server.CanStop),
	Lasts:    amount,
	Inject: func(_ context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		if err := on.Target.Freeze(on.Chosen); err != nil {
			return nil, err
		}
		began := time.Now()
		return func(ctx context.Context) error {
			on.brought(unanswered, time.Since(began).Milliseconds())
			if err := on.Target.Thaw(on.Chosen); err != nil {
				return err
			}
			return on.settle(ctx, on.Chosen)
		}, nil
	},
}

// unanswered is the effect of a server that does not answer for a time.
const unanswered = "milliseconds without an answer"
