package sales

import (
	"slices"
	"sort"
	"time"

	"oversell/history"
)

// soldOut finds refusals for which stock was surely left at every moment
// between their call and their return: even if every purchase called by the
// return had taken its pieces before, and only the refunds that returned
// before the call had refunded theirs, enough would be left.
//
// A purchase that was called in time may return later than the refusal, so a
// refusal is decided when lowWater has passed it. Until then it waits, sorted by return,
// and a later purchase called at t reduces what was left for all that returned
// at t or later: a suffix, entered once as a difference.
//
// Purchases without an answer can explain a refusal. strict is the refusal that needs the most of
// them: the stock left at the end may show that they did not take effect.
type soldOut struct {
	stock    int64
	bought   sums // of all purchases so far
	returned []paid
	waiting  []refused
	passed   sums // differences of those no longer waiting
	entered  sums // all differences
	refusals int64
	wrong    int
	first    *refused
	strict   *refused // of those that purchases without an answer explain
	guesses  []guess
}

// guess is a purchase of which only a repetition is known. While an operation that was called before its end is under
// way, that may be the purchase.
type guess struct{ call, end time.Duration }

// sums are pieces of purchases, with an answer or without.
type sums struct{ known, unknown int64 }

func (p *sums) add(q sums) { p.known, p.unknown = p.known+q.known, p.unknown+q.unknown }

// paid is how many pieces had been refunded by a moment.
type paid struct {
	when time.Duration
	sum  int64
}

type refused struct {
	op    history.Op
	left  int64 // what was left if no purchase without an answer took effect, before differences
	less  int64 // how much less if all did, before differences
	minus sums  // difference: for this one and all later ones
}

func (r *refused) clone() *refused {
	c := *r
	return &c
}

// needed returns how many pieces must have been bought without an answer.
func (r *refused) needed() int64 { return r.left - r.op.Pieces() + 1 }

func (r *soldOut) buy(op *history.Op) {
	q := sums{known: op.Pieces()}
	if op.Outcome == history.Unknown {
		q = sums{unknown: op.Pieces()}
	}
	r.take(op, q)
}

// suppose enters a purchase of which only a repetition is known.
func (r *soldOut) suppose(op *history.Op) {
	r.take(op, sums{known: op.Pieces()})
	r.guesses = append(r.guesses, guess{op.Call, op.Return})
}

// withdraw undoes suppose.
func (r *soldOut) withdraw(op *history.Op) {
	r.take(op, sums{known: -op.Pieces()})
	if i := slices.Index(r.guesses, guess{op.Call, op.Return}); i >= 0 {
		r.guesses = slices.Delete(r.guesses, i, i+1)
	}
}

func (r *soldOut) take(op *history.Op, q sums) {
	r.bought.add(q)
	if len(r.waiting) == 0 {
		return
	}
	i := sort.Search(len(r.waiting), func(i int) bool { return r.waiting[i].op.Return >= op.Call })
	if i < len(r.waiting) {
		r.waiting[i].minus.add(q)
		r.entered.add(q)
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
	left := r.stock - r.bought.known
	if len(r.returned) > 0 {
		// Strictly before the call: at equal times calls sort before returns.
		if i := sort.Search(len(r.returned), func(i int) bool { return r.returned[i].when >= op.Call }); i > 0 {
			left += r.returned[i-1].sum
		}
	}
	if left >= op.Pieces() || len(r.guesses) > 0 {
		r.waiting = append(r.waiting, refused{op: *op, left: left + r.entered.known, less: r.bought.unknown - r.entered.unknown})
	}
}

func (r *soldOut) advance(lowWater time.Duration) {
	open := r.guesses[:0:0]
	for _, g := range r.guesses {
		if g.end >= lowWater {
			open = append(open, g)
		}
	}
	r.guesses = open
	for _, g := range open {
		lowWater = min(lowWater, g.call)
	}
	i := 0
	for ; i < len(r.waiting) && r.waiting[i].op.Return < lowWater; i++ {
		w := &r.waiting[i]
		r.passed.add(w.minus)
		w.left, w.less = w.left-r.passed.known, w.less+r.passed.unknown
		switch {
		case w.needed() > w.less:
			if r.wrong++; r.wrong == 1 {
				r.first = w.clone()
			}
		case w.needed() > 0 && (r.strict == nil || w.needed() > r.strict.needed()):
			r.strict = w.clone()
		}
	}
	r.waiting = append(r.waiting[:0], r.waiting[i:]...)
	if j := sort.Search(len(r.returned), func(i int) bool { return r.returned[i].when >= lowWater }); j > 1024 {
		r.returned = append(r.returned[:0], r.returned[j-1:]...)
	}
}

// final returns the count as if the history ended now. With cut, purchases that
// explain the refusals still waiting may be missing.
func (r *soldOut) final(cut bool) (wrong int, first, strict *refused) {
	if cut {
		return r.wrong, r.first, nil
	}
	end := *r
	end.waiting = append([]refused(nil), r.waiting...)
	end.returned = nil
	end.advance(history.Forever)
	return end.wrong, end.first, end.strict
}
