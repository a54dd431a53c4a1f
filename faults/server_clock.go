package faults

import (
	"context"
	"time"

	"oversell/target"
	"oversell/variant"
)

// kindClockNode moves the wall clock of a server, by which keys expire. What is
// timed by the server's monotonic clock goes on undisturbed. Mending it is a jump,
// too, the other way; so unless the sentence says "for", it is put off to the end. A
// node of a cluster that was set back does not look at the others until it is as
// late again as it was.
var kindClockNode = Kind{
	Name: "clock-node", Level: OnServer,
	Syntax:   "clock +D|-D node N [at D] [for D|for good]",
	Summary:  "the clock of a server jumps ahead by D, or back, and stays so to the end of the run, or jumps back after a time",
	Takes:    []Part{TakesNode, TakesAmount, TakesFor},
	Requires: []Part{TakesAmount},
	Complete: func(f *Fault) { f.When.ForGood = f.When.For == 0 },
	Provokes: clockProvokes,
	Needs:    needs(target.CanJump),
	Inject: func(_ context.Context, f Fault, on Site) (func(context.Context) error, error) {
		if err := on.Target.Jump(on.Chosen, f.Amount); err != nil {
			return nil, err
		}
		return func(ctx context.Context) error {
			if err := on.Target.Jump(on.Chosen, 0); err != nil {
				return err
			}
			return on.settle(ctx, on.Chosen)
		}, nil
	},
}

// clockProvokes: a jump ahead ends leases early. One back prolongs them, which
// breaks no promise, until it is taken back.
func clockProvokes(f Fault, _ time.Duration) []variant.Fault {
	if f.Amount < 0 && f.When.ForGood {
		return nil
	}
	return []variant.Fault{variant.ClockJump}
}
