package checker

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
)

// balance follows how many pieces are surely sold at each moment: purchases
// count from their return, refunds already from their call, for they may have
// taken effect by then. It is exact: the moments are taken in order of time,
// for which refunds, whose call lies back, wait until lowWater has passed them.
type balance struct {
	stock   int64
	net     int64 // at the last moment that was settled
	peak    int64
	waiting []change
	mixed   bool // waiting may not be sorted

	estimate int64        // net with all that is waiting
	suspects []history.Op // purchases at which estimate was beyond the stock
	crossed  bool         // net was beyond the stock
	crossing history.Op   // the purchase that did it
}

type change struct {
	when   time.Duration
	pieces int64 // negative: a refund
}

func (b *balance) sell(op *history.Op, pieces int64) {
	b.estimate += pieces
	if n := len(b.waiting); n > 0 && b.waiting[n-1].when > op.Return {
		b.mixed = true
	}
	b.waiting = append(b.waiting, change{op.Return, pieces})
	if b.estimate > b.stock && !b.crossed && len(b.suspects) < 1<<13 {
		b.suspects = append(b.suspects, *op)
	}
}

// undo takes a sale back that was entered for a moment not yet settled.
func (b *balance) undo(when time.Duration, pieces int64) {
	b.estimate -= pieces
	b.waiting = append(b.waiting, change{when, -pieces})
	b.mixed = true
}

func (b *balance) refund(op *history.Op, pieces int64) {
	b.estimate -= pieces
	b.waiting = append(b.waiting, change{op.Call, -pieces})
	b.mixed = true
}

func (b *balance) advance(lowWater time.Duration) {
	if b.mixed {
		// Refunds first: at equal times calls sort before returns.
		slices.SortStableFunc(b.waiting, func(x, y change) int {
			return cmp.Or(cmp.Compare(x.when, y.when), cmp.Compare(x.pieces, y.pieces))
		})
	}
	i := 0
	for ; i < len(b.waiting) && b.waiting[i].when < lowWater; i++ {
		c := b.waiting[i]
		b.net += c.pieces
		b.peak = max(b.peak, b.net)
		if b.net > b.stock && !b.crossed {
			b.crossed = true
			if j := slices.IndexFunc(b.suspects, func(op history.Op) bool { return op.Return == c.when }); j >= 0 {
				b.crossing = b.suspects[j]
			}
			b.suspects = nil
		}
	}
	n := copy(b.waiting, b.waiting[i:])
	b.waiting = b.waiting[:n]
	if n == 0 {
		b.mixed = false
	}
}

// final is the balance as if the history ended now.
func (b *balance) final() balance {
	end := *b
	end.waiting = slices.Clone(b.waiting)
	end.advance(history.Forever)
	return end
}
