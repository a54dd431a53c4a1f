package faults

import (
	"time"

	"oversell/variant"
)

// kindCancel ends an operation half-way, as its time limit does.
var kindCancel = Kind{
	Name: "cancel", Level: OnClient,
	Syntax:   "cancel [before|after] [COMMAND]" + whoSyntax + whenSyntax,
	Summary:  "the operation ends half-way, as if its context had been cancelled; the client lives on",
	Takes:    anyCommand,
	Disrupt:  func(Fault) Disruption { return Disruption{Cancel: true} },
	Provokes: cancelProvokes,
}

// cancelProvokes: like a crash, a cancellation leaves the operation half done, since the clean-up fails too. But the
// client lives, does not know whether the last command took effect, and may try again.
func cancelProvokes(f Fault, _ time.Duration) []variant.Fault {
	if f.Where.Moment == Before {
		return []variant.Fault{variant.Crash}
	}
	return []variant.Fault{variant.Crash, variant.DropReply}
}
