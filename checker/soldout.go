package checker

import (
	"sort"
	"time"

	"oversell/history"
)

// soldOut finds refusals for which stock was surely left at every moment
// between their call and their return: even if every purchase called by the
// return had taken its pieces before, and only the refunds that returned
// before the call had given theirs back, enough would be left.
//
// A purchase that was called in time may return later than the refusal, so a
// refusal is decided when lowWater has passed it. Until then it waits, sorted by return,
// and a later purchase called at t reduces what was left for all that returned
// at t or later: a suffix, entered once as a difference.
type soldOut struct {
	stock    int64
	bought   int64 // pieces of all purchases so far, without an answer or with
	returned []paid
	waiting  []refused
	passed   int64 // differences of those no longer waiting
	entered  int64 // all differences
	refusals int64
	wrong    int
	first    refused
}

// paid is how many pieces had been given back in all at a moment.
type paid struct {
	when time.Duration
	sum  int64
}

type refused struct {
	op    history.Op
	left  int64 // what was surely left, before differences
	minus int64 // difference: for this one and all later ones
}

func (r *soldOut) buy(op *history.Op) {
	q := op.Pieces()
	r.bought += q
	if len(r.waiting) == 0 {
		return
	}
	i := sort.Search(len(r.waiting), func(i int) bool { return r.waiting[i].op.Return >= op.Call })
	if i < len(r.waiting) {
		r.waiting[i].minus += q
		r.entered += q
	}
}

func (r *soldOut) refund(op *history.Op) {
	sum := op.Pieces()
	if n := len(r.returned); n > 0 {
		sum += r.returned[n-1].sum
	}
	r.returned = append(r.returned, paid{op.Return, sum})
}

func (r *soldOut) refuse(op *history.Op) {
	r.refusals++
	left := r.stock - r.bought
	if len(r.returned) > 0 {
		// Strictly before the call: at equal times calls sort before returns.
		if i := sort.Search(len(r.returned), func(i int) bool { return r.returned[i].when >= op.Call }); i > 0 {
			left += r.returned[i-1].sum
		}
	}
	if left >= op.Pieces() {
		r.waiting = append(r.waiting, refused{op: *op, left: left + r.entered})
	}
}

func (r *soldOut) advance(lowWater time.Duration) {
	i := 0
	for ; i < len(r.waiting) && r.waiting[i].op.Return < lowWater; i++ {
		w := r.waiting[i]
		r.passed += w.minus
		if w.left -= r.passed; w.left >= w.op.Pieces() {
			if r.wrong++; r.wrong == 1 {
				r.first = w
			}
		}
	}
	r.waiting = append(r.waiting[:0], r.waiting[i:]...)
	if j := sort.Search(len(r.returned), func(i int) bool { return r.returned[i].when >= lowWater }); j > 1024 {
		r.returned = append(r.returned[:0], r.returned[j-1:]...)
	}
}

// final is the count as if the history ended now. With cut, purchases that
// explain the refusals still waiting may be missing.
func (r *soldOut) final(cut bool) (wrong int, first refused) {
	if cut {
		return r.wrong, r.first
	}
	end := *r
	end.waiting = append([]refused(nil), r.waiting...)
	end.returned = nil
	end.advance(history.Forever)
	return end.wrong, end.first
}
