package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindHalfOpen is a peer that vanished silently: the connection stays open, and nothing passes.
var kindHalfOpen = Kind{
	Name: "half-open", Level: OnWire,
	Syntax:   "half-open [COMMAND] [for D|for good]" + whoSyntax + nodeSyntax + whenSyntax,
	Summary:  "the connection stays open and nothing passes on it any more, this command included",
	Takes:    append([]Part{TakesFor}, onTheWire...),
	Rule:     func(f Fault) wire.Action { return wire.Action{Verb: wire.HalfOpen, After: f.When.For} },
	Provokes: halfOpenProvokes,
}

// halfOpenProvokes: the client hangs until its own time limit, cut off from the server. Held commands take effect later
// if the connection recovers, and never otherwise.
func halfOpenProvokes(f Fault, lease time.Duration) (fs []variant.Fault) {
	if f.When.For > 0 {
		fs = append(fs, variant.LateRequest, variant.DropReply)
	}
	if f.When.For == 0 || f.When.For >= lease {
		fs = append(fs, variant.Overrun)
	}
	return fs
}
