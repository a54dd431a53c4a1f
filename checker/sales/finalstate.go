package sales

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
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
	if _, _, doubt := p.contradiction(); doubt {
		return 0, 0, false
	}
	gone := p.h.Stock - f.left - f.reserved
	if f.haveSold {
		return min(gone, f.sold), max(gone, f.sold), true
	}
	return gone, gone, true
}

// mostCompared is how many of the final readings are compared with each other.
const mostCompared = 256

// contradiction finds two final readings of one number that cannot both be right: what operations without an answer may
// have changed between them does not account for the difference. doubt says that two differ for which that may be so.
func (p *product) contradiction() (a, b *history.Op, doubt bool) {
	f := &p.final
	if p.ended || len(f.readings) < 2 {
		return nil, nil, false
	}
	bought, back := p.buys.unknown, p.refunds.unknown
	setAside := slices.ContainsFunc(f.readings, func(op history.Op) bool {
		n, _ := op.Result.Num()
		return op.Arg == monitor.IsReserved && n != 0
	})
	last := f.readings[max(0, len(f.readings)-mostCompared):]
	for i := range last {
		for j := range i {
			a, b := &last[j], &last[i]
			n, _ := a.Result.Num()
			m, _ := b.Result.Num()
			if a.Arg != b.Arg || n == m {
				continue
			}
			if doubt = true; a.Arg == monitor.IsReserved || a.Arg == monitor.IsLeft && setAside {
				continue // what was set aside may have been sold, or put back
			}
			fewer, more := bought, back // of the pieces left, from one reading to the next
			if a.Arg == monitor.IsSold {
				fewer, more = more, fewer
			}
			switch d := m - n; {
			case -fewer <= d && d <= more:
			case b.Call <= a.Return && a.Call <= b.Return && -more <= d && d <= fewer: // or the other one was first
			case b.Return < a.Call && -more <= d && d <= fewer:
			default:
				return a, b, true
			}
		}
	}
	return nil, nil, doubt
}

// agrees returns a verdict that relies on the final readings, unless two of them differ.
func (p *product) agrees(v monitor.Verdict) monitor.Verdict {
	if v.Result == monitor.Violated {
		return v
	}
	switch a, b, doubt := p.contradiction(); {
	case a != nil:
		return monitor.Verdict{Result: monitor.Violated, Count: 1, Witness: monitor.InOrder(*a, *b),
			Why: fmt.Sprintf("the final readings contradict each other: %s %s between %s and %s, and %s between %s and %s, which no operation without an answer accounts for",
				a.Result, a.Arg, say.At(a.Call), say.At(a.Return), b.Result, say.At(b.Call), say.At(b.Return))}
	case doubt && v.Result == monitor.Holds:
		return monitor.Undecided("two final readings of one number differ, and only the last one was compared with the answers")
	}
	return v
}
