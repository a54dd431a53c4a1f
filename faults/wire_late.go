package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindLate is a command that stays in a network buffer: its client has given up, and perhaps moved on, when the server
// gets it.
var kindLate = Kind{
	Name: "late", Level: OnWire,
	Syntax:   "late [COMMAND] D" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the client's connection is closed at once, and the server executes the command D later",
	Takes:    withAmount(onTheWire),
	Requires: []Part{TakesAmount},
	Rule:     func(f Fault) wire.Action { return wire.Action{Verb: wire.Late, After: f.Amount} },
	// The command takes effect in the end, and its client has no reply.
	Provokes: func(Fault, time.Duration) []variant.Fault {
		return []variant.Fault{variant.LateRequest, variant.DropReply}
	},
}
