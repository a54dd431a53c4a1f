package faults

import (
	"time"

	"oversell/wire"
)

// kindTrickle is a line so bad that a driver receives a reply in parts.
var kindTrickle = Kind{
	Name: "trickle", Level: OnWire,
	Syntax:   "trickle [requests|replies] [COMMAND] D" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the bytes of the reply, or of the request, pass one by one, D apart",
	Takes:    append([]Part{TakesDirection}, withAmount(onTheWire)...),
	Requires: []Part{TakesAmount},
	Rule: func(f Fault) wire.Action {
		return wire.Action{Verb: wire.Trickle, After: f.Amount, Direction: f.Where.Direction}
	},
	// The shortest reply is as long as ":1\r\n", and no request is shorter.
	Provokes: overrunsBy(func(f Fault) time.Duration { return 4 * f.Amount }),
}
