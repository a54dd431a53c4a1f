package faults

import (
	"time"

	"oversell/variant"
)

// kindClock moves the clocks of clients. An opportunity is a client, not a command: 25% moves a quarter of the clocks,
// and no percentage moves all.
var kindClock = Kind{
	Name: "clock", Level: OnClient,
	Syntax:   "clock +D|-D [client N] [P%] [at D]",
	Summary:  "the clocks of all clients, of one or of some of them, are D ahead or behind for the rest of the run",
	Takes:    []Part{TakesAmount, TakesClient, TakesChance},
	Requires: []Part{TakesAmount},
	Disrupt:  func(f Fault) Disruption { return Disruption{Clock: f.Amount} },
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.ClockSkew} },
}
