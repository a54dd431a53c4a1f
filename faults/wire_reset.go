package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindReset is a connection that breaks with an error, as it does when a server or
// a firewall forgets it.
var kindReset = Kind{
	Name: "reset", Level: OnWire,
	Syntax:   "reset [before|after] [COMMAND]" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the client's connection is reset, before the server has the command or after it has executed it",
	Takes:    append([]Part{TakesMoment}, onTheWire...),
	Rule:     resetRule,
	Provokes: resetProvokes,
}

func resetRule(f Fault) wire.Action {
	if f.Where.Moment == After {
		return wire.Action{Verb: wire.ResetAfter}
	}
	return wire.Action{Verb: wire.Reset}
}

func resetProvokes(f Fault, _ time.Duration) []variant.Fault {
	if f.Where.Moment == After {
		return []variant.Fault{variant.DropReply}
	}
	return nil
}
