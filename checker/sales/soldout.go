package sales

import (
	"slices"
	"sort"
	"time"

	"oversell/history"
)

// soldOut finds refusals for which stock was surely left at every moment
// between their call and their return: even if every purchase called by that
// moment had taken its pieces before it, and only the refunds that had returned
// before it had refunded theirs, enough would be left.
//
// What was surely left falls with the call of a purchase and rises with the return of a
// refund, so of the moments of a refusal only those at which a refund returned, and its own
// return, need to be looked at. A purchase that was called in time may return later, so such
// a moment is settled when lowWater has passed it. Until then it waits, in order of time, and
// a later purchase called at t reduces what was left at all moments from t on: a suffix,
// entered once as a difference.
//
// Purchases without an answer can explain a refusal. strict is the refusal that needs the most of
// them: the stock left at the end may show that they did not take effect.
type soldOut struct {
	stock    int64
	bought   sums // of all purchases so far
	returned []paid
	waiting  []point
	passed   sums // differences of those no longer waiting
	entered  sums // all differences
	low      lows // of the returns of refunds, with every purchase that may have taken effect
	lowKnown lows // the same, with those that had an answer
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

// point is a moment at which a refund returned, or a refusal.
type point struct {
	when  time.Duration
	op    *history.Op // the refusal
	left  int64       // what was left if no purchase without an answer took effect, before differences
	less  int64       // how much less if all did, before differences
	minus sums        // difference: for this one and all later ones
}

// refused is a refusal, and the least that was left during it.
type refused struct {
	op    history.Op
	left  int64 // if all purchases without an answer that were called by then took effect
	known int64 // if none of them did
}

// needed returns how many pieces must have been bought without an answer.
func (r *refused) needed() int64 { return r.known - r.op.Pieces() + 1 }

// lows finds the least that was left at any moment from a given one on. Only a moment at which less was left than at
// every later one can be the answer, so it keeps only those: from entry to entry, the moments and the numbers rise.
type lows []paid

func (l *lows) add(when time.Duration, left int64) {
	n := len(*l)
	for n > 0 && (*l)[n-1].sum >= left {
		n--
	}
	*l = append((*l)[:n], paid{when, left})
}

// since returns the least that was left at a moment not before from, and at most left.
func (l lows) since(from time.Duration, left int64) int64 {
	if i := firstFrom(l, from); i < len(l) {
		left = min(left, l[i].sum)
	}
	return left
}

// forget drops the moments before a time.
func (l *lows) forget(before time.Duration) {
	*l = slices.Delete(*l, 0, firstFrom(*l, before))
}

// firstFrom returns the index of the first entry that is not before a time.
func firstFrom(list []paid, t time.Duration) int {
	return sort.Search(len(list), func(i int) bool { return list[i].when >= t })
}

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
	i := sort.Search(len(r.waiting), func(i int) bool { return r.waiting[i].when >= op.Call })
	if i < len(r.waiting) {
		r.waiting[i].minus.add(q)
		r.entered.add(q)
	}
}

func (r *soldOut) refund(op *history.Op) {
	r.wait(op.Return, r.left(op.Return), nil)
	sum := op.Pieces()
	if n := len(r.returned); n > 0 {
		sum += r.returned[n-1].sum
	}
	r.returned = append(r.returned, paid{op.Return, sum})
}

func (r *soldOut) refuse(op *history.Op) {
	left := r.left(op.Return)
	if left >= op.Pieces() || len(r.guesses) > 0 { // otherwise others had bought the rest by then
		r.wait(op.Return, left, clone(op))
	}
}

// left returns what was left at a moment, by the purchases so far.
func (r *soldOut) left(when time.Duration) int64 {
	left := r.stock - r.bought.known
	// A refund that returned at this very moment may have come after it.
	if i := firstFrom(r.returned, when); i > 0 {
		left += r.returned[i-1].sum
	}
	return left
}

// wait enters a moment, which is not before any other that waits, and the refusal that returned at it.
func (r *soldOut) wait(when time.Duration, left int64, refusal *history.Op) {
	r.waiting = append(r.waiting, point{when: when, op: refusal, left: left + r.entered.known, less: r.bought.unknown - r.entered.unknown})
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
	for ; i < len(r.waiting) && r.waiting[i].when < lowWater; i++ {
		w := &r.waiting[i]
		r.passed.add(w.minus)
		known := w.left - r.passed.known
		left := known - w.less - r.passed.unknown
		if w.op == nil {
			r.low.add(w.when, left)
			r.lowKnown.add(w.when, known)
			continue
		}
		found := refused{*w.op, r.low.since(w.op.Call, left), r.lowKnown.since(w.op.Call, known)}
		switch {
		case found.left >= w.op.Pieces():
			if r.wrong++; r.wrong == 1 {
				r.first = &found
			}
		case found.needed() > 0 && (r.strict == nil || found.needed() > r.strict.needed()):
			r.strict = &found
		}
	}
	r.waiting = slices.Delete(r.waiting, 0, i)
	if len(r.low) > 0 {
		from := lowWater
		for _, w := range r.waiting {
			if w.op != nil {
				from = min(from, w.op.Call)
			}
		}
		r.low.forget(from)
		r.lowKnown.forget(from)
	}
	if j := firstFrom(r.returned, lowWater); j > 1024 {
		r.returned = append(r.returned[:0], r.returned[j-1:]...)
	}
}

// undecided reports whether a refusal waits for purchases that may explain it.
func (r *soldOut) undecided() bool {
	return slices.ContainsFunc(r.waiting, func(w point) bool { return w.op != nil })
}

// final returns the count as if the history ended now. With cut, purchases that
// explain the refusals still waiting may be missing.
func (r *soldOut) final(cut bool) (wrong int, first, strict *refused) {
	if cut {
		return r.wrong, r.first, nil
	}
	end := *r
	end.waiting = slices.Clone(r.waiting)
	end.low, end.lowKnown = slices.Clone(r.low), slices.Clone(r.lowKnown)
	end.returned = nil
	end.advance(history.Forever)
	return end.wrong, end.first, end.strict
}
