package sales

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
)

// balance follows how many pieces are surely sold at each moment: purchases count from their return, refunds from their
// call, for they may have taken effect by then, but not before the purchase that they give back; see [givenBack]. It is
// exact: the moments are taken in order of time; refunds, whose calls are earlier, wait until lowWater has passed them.
type balance struct {
	stock   int64
	net     int64 // at the last moment that was settled
	peak    int64
	waiting []change
	mixed   bool // waiting may not be sorted
	passing passing

	estimate int64        // net with all that is waiting
	suspects []history.Op // purchases at which estimate was beyond the stock
	crossed  *change      // the change that took net beyond the stock, with net as its pieces
	crossing *history.Op  // the purchase that did it
}

type change struct {
	when   time.Duration
	pieces int64 // negative: a refund
	late   bool  // at the return of a purchase, not at a call
}

func (b *balance) sell(op *history.Op, pieces int64) {
	b.estimate += pieces
	if n := len(b.waiting); n > 0 && b.waiting[n-1].when > op.Return {
		b.mixed = true
	}
	b.waiting = append(b.waiting, change{op.Return, pieces, true})
	if b.estimate > b.stock && b.crossed == nil && len(b.suspects) < 1<<13 {
		b.suspects = append(b.suspects, *op)
	}
}

// refund enters a refund from its call on, or with late from the return of its purchase on.
func (b *balance) refund(when time.Duration, pieces int64, late bool) {
	b.estimate -= pieces
	b.waiting = append(b.waiting, change{when, -pieces, late})
	b.mixed = true
}

func (b *balance) advance(lowWater time.Duration) {
	if b.mixed {
		// Refunds first: at equal times calls sort before returns.
		slices.SortStableFunc(b.waiting, func(x, y change) int {
			switch {
			case x.when != y.when:
				return cmp.Compare(x.when, y.when)
			case x.late != y.late && y.late:
				return -1
			case x.late != y.late:
				return 1
			}
			return cmp.Compare(x.pieces, y.pieces)
		})
	}
	b.passing.sort()
	i := 0
	for ; i < len(b.waiting) && b.waiting[i].when < lowWater; i++ {
		c := b.waiting[i]
		if !b.passing.idle() {
			b.passing.begin(c.when, c.late, b.stock-b.net)
		}
		b.net += c.pieces
		if !c.late && !b.passing.idle() {
			b.passing.settle(c.when, b.stock-b.net)
		}
		b.peak = max(b.peak, b.net)
		if b.net > b.stock && b.crossed == nil {
			b.crossed = &change{c.when, b.net, c.late}
			if j := slices.IndexFunc(b.suspects, func(op history.Op) bool { return op.Return == c.when }); j >= 0 {
				b.crossing = &b.suspects[j]
			}
			b.suspects = nil
		}
	}
	if !b.passing.idle() {
		b.passing.begin(lowWater, false, b.stock-b.net)
	}
	n := copy(b.waiting, b.waiting[i:])
	b.waiting = b.waiting[:n]
	if n == 0 {
		b.mixed = false
	}
}

// final returns the balance as if the history ended now.
func (b *balance) final() balance {
	end := *b
	end.waiting = slices.Clone(b.waiting)
	end.passing = b.passing.clone()
	end.advance(history.Forever)
	return end
}
