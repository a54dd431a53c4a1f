package faults

import (
	"time"

	"oversell/variant"
	"oversell/wire"
)

// kindCut is a partition, of one direction or of both.
var kindCut = Kind{
	Name: "cut", Level: OnWire, Cuts: true,
	Syntax:   "cut [requests|replies] for D|for good [node N] [at D] [every D] [times N|once]",
	Summary:  "nothing passes between the clients and a node, or all nodes, in one or both directions",
	Takes:    []Part{TakesDirection, TakesNode, TakesFor},
	Requires: []Part{TakesFor},
	Provokes: cutProvokes,
}

// cutProvokes: a client does not wait for ever. A held reply is lost to a client that has given up, and a held request
// takes effect after that. A holder that is cut off can neither release nor renew.
func cutProvokes(f Fault, lease time.Duration) []variant.Fault {
	fs := []variant.Fault{variant.DropReply}
	if f.Where.Direction != wire.Replies {
		fs = append(fs, variant.LateRequest)
	}
	if f.When.ForGood || f.When.For >= lease {
		fs = append(fs, variant.Overrun)
	}
	return fs
}
