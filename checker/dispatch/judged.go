// Package dispatch judges histories of tasks that are lent to users for a time: one user at a time holds a task, only
// that user submits it, and tasks return when the time is over.
package dispatch

import (
	"oversell/checker/monitor"
	"oversell/variant"
)

// Judged lists the monitors of dispatch.
var Judged = []monitor.Judged{
	{Of: variant.Dispatch, Property: variant.OneHolderPerTask, New: func(*monitor.Shared) monitor.Monitor { return newOneHolder() }},
	{Of: variant.Dispatch, Property: variant.HolderCommits, New: func(*monitor.Shared) monitor.Monitor { return newHolderCommits() }},
	{Of: variant.Dispatch, Property: variant.TaskReturns, New: func(s *monitor.Shared) monitor.Monitor { return newTaskReturns(s.Header) }},
}
