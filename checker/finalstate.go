package checker

import (
	"time"

	"oversell/history"
)

// finalState is what the server held when all clients had ended: the last
// readings, provided that no purchase or refund went on after them.
type finalState struct {
	left, reserved, sold int64
	haveLeft             bool
	read                 time.Duration // the earliest call of these readings
	missing              bool          // the end of the history is missing
}

// readsStock tells whether a reading is of a stock; there are others, of queues.
func readsStock(op *history.Op) bool {
	switch op.Arg.String() {
	case "left", "reserved", "sold":
		return true
	}
	return false
}

func (f *finalState) observe(op *history.Op) {
	n, ok := op.Result.Num()
	if op.Outcome != history.OK || !ok {
		return
	}
	if !f.haveLeft {
		f.read = op.Call
	}
	switch op.Arg.String() {
	case "left":
		f.left, f.haveLeft = n, true
	case "reserved":
		f.reserved = n
	case "sold":
		f.sold = n
	}
}

// moved notes that a purchase or a refund ended, which makes older readings void.
func (f *finalState) moved() {
	if f.haveLeft {
		*f = finalState{missing: f.missing}
	}
}

func (f *finalState) known() bool { return f.haveLeft && !f.missing }

// taken is how many pieces of the stock are gone and not set aside.
func (f *finalState) taken(stock int64) int64 { return stock - f.left - f.reserved }
