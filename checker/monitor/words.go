package monitor

import "oversell/history"

// The texts by which the readings of a final state, and faults, say what they are about.
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

	TheLast = history.Text("last") // of a number generator

	Crash = history.Text("crash") // a fault
)

// Audit is the final reading of what was still there.
type Audit struct {
	Started  bool
	Complete bool
	Listed   int64 // entries read
	Want     int64 // entries there are
}
