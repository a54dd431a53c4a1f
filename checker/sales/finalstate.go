package sales

import (
	"time"

	"oversell/checker/monitor"
	"oversell/history"
)

// finalState is the server's state when all clients had ended: the last
// readings, provided that they were called when every purchase and refund had ended.
type finalState struct {
	left, reserved, sold int64
	haveLeft, haveSold   bool
	ended                time.Duration // of the purchase or refund that ended last
	any                  bool          // there was one
	readings             []history.Op
	passed               int64 // readings that were made before all had ended: they are not judged

	// most is the reading with the most pieces sold, whenever it was made.
	most *history.Op
}

// readsStock reports whether a reading is of a stock; there are others, of queues.
func readsStock(op *history.Op) bool {
	return op.Arg == monitor.IsLeft || op.Arg == monitor.IsReserved || op.Arg == monitor.IsSold
}

func (f *finalState) observe(op *history.Op) {
	n, ok := op.Result.Num()
	if op.Outcome != history.OK || !ok {
		return
	}
	if op.Arg == monitor.IsSold {
		if most, _ := f.mostSold(); f.most == nil || n > most {
			read := *op
			f.most = &read
		}
	}
	if f.any && op.Call <= f.ended {
		f.passed++
		return // it may have read an earlier state
	}
	switch op.Arg {
	case monitor.IsLeft:
		f.left, f.haveLeft = n, true
	case monitor.IsReserved:
		f.reserved = n
	case monitor.IsSold:
		f.sold, f.haveSold = n, true
	}
	f.readings = append(f.readings, *op)
}

// moved notes that a purchase or a refund ended, which makes older readings void.
func (f *finalState) moved(op *history.Op) {
	if len(f.readings) > 0 {
		*f = finalState{most: f.most, passed: f.passed + int64(len(f.readings))}
	}
	f.ended, f.any = op.Return, true
}

// mostSold returns the largest number of pieces that the server ever counted as sold.
func (f *finalState) mostSold() (int64, bool) {
	if f.most == nil {
		return 0, false
	}
	return f.most.Result.Num()
}

// taken returns the least and the most pieces of the stock that are gone and not reserved; they differ if the server's
// own count of sold pieces does. The state is known when the stock left was read and the history was not cut off.
func (p *product) taken() (least, most int64, known bool) {
	f := &p.final
	if !f.haveLeft || p.ended {
		return 0, 0, false
	}
	gone := p.h.Stock - f.left - f.reserved
	if f.haveSold {
		return min(gone, f.sold), max(gone, f.sold), true
	}
	return gone, gone, true
}
