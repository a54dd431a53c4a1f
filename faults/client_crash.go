package faults

import (
	"time"

	"oversell/variant"
)

// kindCrash ends a client between two commands, as the end of its process would.
var kindCrash = Kind{
	Name: "crash", Level: OnClient,
	Syntax:  "crash [before|after] [COMMAND]" + whoSyntax + whenSyntax,
	Summary: "the client dies: no command of it goes out any more, nor does it see an answer",
	Takes:   anyCommand,
	Disrupt: func(Fault) Disruption { return Disruption{Crash: true} },
	// A command that was executed, but not answered before the crash, does not
	// count as a lost reply: the client is gone and cannot ask again.
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.Crash} },
}
