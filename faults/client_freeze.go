package faults

import (
	"time"

	"oversell/variant"
)

// kindFreeze stops all of a client, as a stop-the-world garbage collection or a migration of its virtual machine does.
var kindFreeze = Kind{
	Name: "freeze", Level: OnClient,
	Syntax:   "freeze [before|after] [COMMAND] D" + whoSyntax + whenSyntax,
	Summary:  "all of the client stops for D, the renewal of its lock included",
	Takes:    withAmount(anyCommand),
	Requires: []Part{TakesAmount},
	Disrupt:  func(f Fault) Disruption { return Disruption{Freeze: f.Amount} },
	Provokes: func(f Fault, lease time.Duration) []variant.Fault {
		if f.Amount < lease {
			return nil
		}
		return []variant.Fault{variant.Overrun, variant.FreezeRenewal}
	},
}
