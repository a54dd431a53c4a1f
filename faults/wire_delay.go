package faults

import "oversell/wire"

// kindDelay is a slow network, or a slow server: the command waits, and everything after it on its connection.
var kindDelay = Kind{
	Name: "delay", Level: OnWire,
	Syntax:   "delay [COMMAND] D" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the command and all after it on its connection reach the server D late",
	Takes:    withAmount(onTheWire),
	Requires: []Part{TakesAmount},
	Rule:     func(f Fault) wire.Action { return wire.Action{Verb: wire.Delay, After: f.Amount} },
	Provokes: overrunsBy(amount),
}
