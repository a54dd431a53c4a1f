package monitor

import "oversell/history"

// The texts in Arg of operations that read a final state, and of faults.
var (
	IsLeft     = history.Text("left") // of a stock
	IsReserved = history.Text("reserved")
	IsSold     = history.Text("sold")

	IsWaiting = history.Text("waiting") // of a queue
	IsClaimed = history.Text("claimed")
	IsDead    = history.Text("dead")
	WasPopped = history.Text("popped")
	TheAudit  = history.Text("audit")

	IsFree = history.Text("free") // of dispatch
	IsHeld = history.Text("held")
	IsDone = history.Text("done")

	TheLast = history.Text("last") // of an id generator

	Crash = history.Text("crash") // a fault
)

// Audit is the final reading of the remaining entries.
type Audit struct {
	Started  bool
	Complete bool
	Listed   int64 // entries read
	Want     int64 // entries that exist
}
