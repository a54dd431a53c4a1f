// Package dispatch judges histories of tasks that are lent to users for a time: one user at a time holds a task, only
// that user submits it, and tasks return when the time is over.
package dispatch

import (
	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// Factories lists the monitors of dispatch.
var Factories = []monitor.Factory{
	{Of: variant.Dispatch, Property: variant.OneHolderPerTask, New: oneHolder},
	{Of: variant.Dispatch, Property: variant.HolderCommits, New: holderCommits},
	{Of: variant.Dispatch, Property: variant.TaskReturns, New: taskReturns},
}

// sameUser reports whether two takes are of one user: both name it. One that names none is of a user of its own.
func sameUser(a, b *history.Op) bool { return a.Arg == b.Arg && a.Arg != (history.Value{}) }

// aspect returns the monitor of one property, which alone uses the book b.
func aspect[S any](b *monitor.Book[S], p variant.Property, judge func(*S) monitor.Verdict) monitor.Monitor {
	return &monitor.Aspect[S]{Book: b, Of: variant.Dispatch, Property: p, Nothing: nothingTaken, Judge: judge}
}
