package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindDropReply loses the answer to an executed command. A client cannot distinguish that from a lost command.
var kindDropReply = Kind{
	Name: "drop-reply", Level: OnWire,
	Syntax:   "drop-reply [COMMAND]" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the server executes the command, its reply is lost, and the client's connection is closed",
	Takes:    onTheWire,
	Rule:     func(Fault) wire.Action { return wire.Action{Verb: wire.DropReply} },
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.DropReply} },
}
