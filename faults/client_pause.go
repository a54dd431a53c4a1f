package faults

import (
	"time"

	"oversell/variant"
)

// kindPause stops the client's thread that sends the command, as a slow disk or a busy core does. A renewal in the
// background goes on.
var kindPause = Kind{
	Name: "pause", Level: OnClient,
	Syntax:   "pause [before|after] [COMMAND] D" + whoSyntax + whenSyntax,
	Summary:  "the client's thread stops for D; a renewal of its lock goes on",
	Takes:    withAmount(anyCommand),
	Requires: []Part{TakesAmount},
	Disrupt:  func(f Fault) Disruption { return Disruption{Pause: f.Amount} },
	Provokes: overrunsBy(amount),
}

// overrunsBy is Kind.Provokes of a fault that only holds a client up for some time. The client may be held up while it
// acquires the lock: the lease runs from the grant, and may be over when the client sees the grant.
func overrunsBy(lasts func(Fault) time.Duration) func(Fault, time.Duration) []variant.Fault {
	return func(f Fault, lease time.Duration) []variant.Fault {
		if lasts(f) < lease {
			return nil
		}
		return []variant.Fault{variant.Overrun}
	}
}
