package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindDropRequest loses a command before the server has it.
var kindDropRequest = Kind{
	Name: "drop-request", Level: OnWire,
	Syntax:  "drop-request [COMMAND]" + whoSyntax + nodeSyntax + whenSyntax,
	Summary: "the command never reaches the server, and the client's connection is closed",
	Takes:   onTheWire,
	Rule:    func(Fault) wire.Action { return wire.Action{Verb: wire.DropRequest} },
	// The client gets an error and nothing has happened. It cannot know that; every variant must handle it without any
	// flaw.
	Provokes: func(Fault, time.Duration) []variant.Fault { return nil },
}
