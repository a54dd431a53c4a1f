package faults

import (
	"time"

	"oversell/variant"
)

// kindResend acts like a driver that repeats a command after its reply was lost: the caller sees only the second
// answer.
var kindResend = Kind{
	Name: "resend", Level: OnClient,
	Syntax:   "resend [COMMAND]" + whoSyntax + whenSyntax,
	Summary:  "the command is sent twice, and the client sees the second answer only",
	Takes:    without(anyCommand, TakesMoment),
	Complete: func(f *Fault) { f.Where.Moment = After },
	Disrupt:  func(Fault) Disruption { return Disruption{Resend: true} },
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.Retry, variant.Resend} },
}
