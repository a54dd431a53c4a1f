package sales

import (
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
)

// orders is the record of all orders: of their purchases, or of their refunds.
type orders struct {
	index monitor.Table[int32] // of an id: the number of its order
	more  map[orderKey]int32   // the same, for ids that several products have
	list  monitor.Pages[order]
	tried []tries
}

type orderKey struct {
	product int32
	id      history.Value
}

// order is one order.
type order struct {
	call, ret time.Duration // of the answer that showed its first effect
	client    int32
	product   int32
	tried     int32 // its entry in orders.tried, plus one
	pieces    int32 // of its first effect
	back      int32 // its entry in product.list, plus one
	effects   uint8 // that are known; the largest value stands for more
	sent      bool  // the order was sent before
	fresh     bool  // an answer said that it had its effect now
	told      bool  // its first effect is known from an answer that it was counted before
}

// tries is the record of an order that was sent without an answer, or that an answer called already counted.
type tries struct {
	lost     int64         // tries without an answer
	earliest time.Duration // the earliest call of those
	by       time.Duration // the earliest return of an answer that the order had been counted
	repeated bool          // there is such an answer
	given    bool          // it is that of a refund
	pieces   int64         // of a try without an answer
	first    int64         // of the one that was called first: refunds of one order may be of parts
	fresh    bool          // it refers to an effect that another answer reported
	credited bool          // it refers to the try without an answer that was called first
}

// newOrders returns an empty record.
func newOrders() orders { return orders{list: monitor.NewPages(packOrder)} }

// add makes room for one more order of a product, and returns its number, from 1 on.
func (os *orders) add(product int32) int32 {
	number := os.list.Add() + 1
	os.at(number).product = product
	return number
}

// at returns an order, which may be changed until many others have been read.
func (os *orders) at(number int32) *order { return os.list.At(number - 1) }

// of finds an order, or makes it.
func (os *orders) of(p *product, id history.Value) *order {
	i := os.index.At(id)
	if *i == 0 {
		*i = os.add(p.number)
	}
	o := os.at(*i)
	if o.product != p.number {
		key := orderKey{p.number, id}
		j := os.more[key]
		if j == 0 {
			if os.more == nil {
				os.more = make(map[orderKey]int32)
			}
			j = os.add(p.number)
			os.more[key] = j
		}
		o = os.at(j)
	}
	return o
}

// tries returns the entry of an order, made if necessary.
func (os *orders) tries(o *order) *tries {
	if o.tried == 0 {
		os.tried = append(os.tried, tries{})
		o.tried = int32(len(os.tried))
	}
	return &os.tried[o.tried-1]
}

// ledger counts the effects of the orders of one product, in pieces: of purchases, or of
// refunds.
//
// An answer that an order had been counted before shows one effect by its return: the effect that another answer
// reports if one was called by then, and otherwise that of a try without an answer, or of the operation itself, which may
// have been sent twice; see unexplained. Of several such tries it is the one called first: all of them may take effect
// later or never, and the one called first could have done so whenever another could.
type ledger struct {
	// sure is what surely took effect: every fresh success, and one effect for
	// an order that was called repeated although no success of it is known.
	sure int64
	// once is the same with every order counted once.
	once int64
	// unknown is the sum of all operations without an answer, less those that
	// a repetition shows to have taken effect.
	unknown int64
	// untold is the part of unknown in orders without a known effect, each counted once.
	untold int64
	// spare counts the operations in unknown by how many pieces each takes or returns.
	spare []unanswered
	// untoldSpare is the same for untold.
	untoldSpare []unanswered
	// implied is the part of sure that no fresh success showed. undated is the part of implied that only refunds show:
	// those pieces were sold for a while, since an unknown time.
	implied, undated int64

	sent, resent int64 // orders, and operations beyond the first of an order
	// again counts the operations that had a chance to count an order twice: it may have
	// been counted, and was sent again, and one of the two was answered.
	again    int64
	doubtful int64 // orders that may have had more effects than are known
	broken   int64 // effects beyond the first of an order

	// closing is the return of the first refusal as sold out; open is how many pieces tries without an answer that were
	// called by then may have taken; late counts effects, shown by a repetition, that were called after it.
	closing time.Duration
	open    int64
	late    int64
	// bound says that a repetition bound the time of an effect.
	bound bool
	// unexplained are repetitions of orders without another operation that can have had an effect before. A program that
	// repeats commands by itself gets such answers: the effect is the operation's own, at a moment from the earliest
	// call of a repetition on. For an order that was refunded, it is the refund: it shows a purchase without a trace.
	unexplained map[int32]history.Op
}

// unanswered counts the operations without an answer that take, or return, the same number of pieces. Each may have taken
// effect, or not.
type unanswered struct {
	pieces, count int64
	late          int64 // more of them, that count only after the first reading
}

// doubt enters n operations without an answer of q pieces each, or removes them.
func (l *ledger) doubt(q, n int64) {
	l.unknown += q * n
	l.spare = enter(l.spare, q, n)
}

// distrust does the same for orders of which no effect is known.
func (l *ledger) distrust(q, n int64) {
	l.untold += q * n
	l.untoldSpare = enter(l.untoldSpare, q, n)
}

func enter(list []unanswered, q, n int64) []unanswered {
	i := slices.IndexFunc(list, func(s unanswered) bool { return s.pieces == q })
	if i < 0 {
		i = len(list)
		list = append(list, unanswered{pieces: q})
	}
	list[i].count += n
	return list
}

// effect is the evidence of an operation.
type effect struct {
	more   int64       // pieces that are newly known to have changed hands
	second bool        // it is the order's second effect, or a further one
	before *history.Op // then the answer that showed the first one
	// own is the repetition that had this effect itself; was is the repetition that was credited with it before.
	own, was *history.Op
}

// observe enters a purchase or a refund, and returns its order. Refusals only count as sent.
func (l *ledger) observe(os *orders, p *product, op *history.Op) (effect, *order) {
	o := os.of(p, op.Arg)
	if !o.sent {
		o.sent = true
		l.sent++
	} else {
		l.resent++
	}
	if op.Outcome == history.Refused {
		return effect{}, o
	}
	fresh := op.Outcome == history.OK && op.Reason != history.Repeated
	if fresh && o.tried == 0 && o.effects == 0 { // as almost always
		o.effects, o.fresh = 1, true
		o.call, o.ret, o.client, o.pieces = op.Call, op.Return, op.Client, int32(op.Pieces())
		l.sure += op.Pieces()
		l.once += op.Pieces()
		return effect{more: op.Pieces()}, o
	}
	t := os.tries(o)
	if op.Outcome == history.OK && (o.effects > 0 || t.lost > 0) || op.Outcome == history.Unknown && o.effects > 0 {
		l.again++
	}
	return l.learn(o, t, op), o
}

// imply enters that an order was refunded, which shows that it had been bought by the end of the refund.
func (l *ledger) imply(os *orders, p *product, refund *history.Op) (e effect) {
	o := os.of(p, refund.Arg)
	if o.effects > 0 {
		return effect{}
	}
	t := os.tries(o)
	op := *refund
	op.Outcome, op.Reason = history.OK, history.Repeated
	if t.lost > 0 {
		op.Amount = int32(t.pieces) // the refund may be of a part
	}
	t.given = true
	e = l.learn(o, t, &op)
	l.undated += e.more
	return e
}

// learn enters an operation of an order that is not its first, or has no fresh answer.
func (l *ledger) learn(o *order, t *tries, op *history.Op) (e effect) {
	fresh := op.Outcome == history.OK && op.Reason != history.Repeated
	doubted, known := o.doubtful(t), o.effects > 0
	was, unexplained := l.unexplained[o.tried]
	switch {
	case fresh:
		e = l.succeed(o, t, op)
	case op.Outcome == history.OK:
		e = l.repeat(o, t, op)
	default:
		e = l.lose(o, t, op)
	}
	if !known && o.effects > 0 {
		l.once += op.Pieces()
		if t.lost > 0 {
			l.distrust(op.Pieces(), -1)
		}
	}
	switch now := o.doubtful(t); {
	case now && !doubted:
		l.doubtful++
	case doubted && !now:
		l.doubtful--
	}
	l.sure += e.more
	if unexplained && was.Kind == op.Kind {
		e.was = &was
	}
	if now, is := l.unexplained[o.tried]; is && now.Kind == op.Kind {
		e.own = &now
	}
	return e
}

// doubtful reports whether an order may have had more effects than are known.
func (o *order) doubtful(t *tries) bool {
	spare := t.lost
	if t.credited {
		spare--
	}
	return spare > 1 || spare == 1 && o.effects > 0
}

func (l *ledger) succeed(o *order, t *tries, op *history.Op) (e effect) {
	if t.repeated && !t.fresh && op.Call <= t.by { // this is what the repetition meant
		t.fresh = true
		if t.credited {
			l.takeBack(t)
		} else {
			e.more = l.explain(o, op)
		}
		o.fresh, l.bound = true, true
		l.implied -= op.Pieces() - e.more
		if t.given {
			l.undated -= op.Pieces() - e.more
		}
		return e
	}
	if o.effects > 0 {
		e.second, e.before = true, o.answer(t, op)
		l.broken++
		o.effects = max(o.effects, o.effects+1)
	} else {
		o.effects = 1
		o.call, o.ret, o.client, o.pieces = op.Call, op.Return, op.Client, int32(op.Pieces())
	}
	o.fresh = true
	e.more = op.Pieces()
	return e
}

// explain notes the operation to which an unexplained repetition of an order refers, and returns how many more pieces
// that had than the repetition showed: a refund may be of a part.
func (l *ledger) explain(o *order, op *history.Op) (more int64) {
	delete(l.unexplained, o.tried)
	more = op.Pieces() - int64(o.pieces)
	o.pieces += int32(more)
	l.once += more
	return more
}

// answer returns the answer that showed the first effect of an order.
func (o *order) answer(t *tries, like *history.Op) *history.Op {
	op := &history.Op{Client: o.client, Amount: like.Amount, Kind: like.Kind, Outcome: history.OK,
		Key: like.Key, Arg: like.Arg, Result: history.Int(-1), Due: o.call, Call: o.call, Return: o.ret}
	switch {
	case o.told && t.given:
		op.Kind = history.Refund
	case o.told:
		op.Reason = history.Repeated
	}
	return op
}

func (l *ledger) repeat(o *order, t *tries, op *history.Op) effect {
	if t.repeated { // of two repetitions the one that returned earlier binds
		return l.repeatAgain(o, t, op)
	}
	t.repeated, t.by = true, op.Return
	if o.fresh {
		t.fresh = true
		return effect{}
	}
	o.effects, o.told = 1, true
	o.call, o.ret, o.client, o.pieces = op.Call, op.Return, op.Client, int32(op.Pieces())
	l.implied += op.Pieces()
	if t.lost > 0 && (t.given || t.earliest <= op.Call) {
		l.doubt(t.first, -1)
		if t.earliest <= l.closing {
			l.open -= t.first
		}
		l.credit(t)
	} else {
		l.attempt(o, op)
	}
	return effect{more: op.Pieces()}
}

// attempt notes that the effect to which a repetition refers may be its own.
func (l *ledger) attempt(o *order, op *history.Op) {
	if l.unexplained == nil {
		l.unexplained = make(map[int32]history.Op)
	}
	l.unexplained[o.tried] = *op
}

// repeatAgain enters a further repetition. If an order has no other trace, its effect may be the
// effect of the repetition that was called first.
func (l *ledger) repeatAgain(o *order, t *tries, op *history.Op) (e effect) {
	r, is := l.unexplained[o.tried]
	switch {
	case t.credited && !t.given && op.Call < t.earliest:
		l.takeBack(t)
		l.attempt(o, op)
	case !is || op.Call > t.by:
	case o.fresh: // it refers to that effect
	case r.Kind != op.Kind: // it explains a refund
		e.more = l.explain(o, op)
		l.implied += e.more
		l.undated += e.more
		l.unexplained[o.tried] = *op
	case op.Call < r.Call:
		r.Call, r.Due = op.Call, op.Due
		l.unexplained[o.tried] = r
	}
	return e
}

func (l *ledger) lose(o *order, t *tries, op *history.Op) (e effect) {
	q, first := op.Pieces(), t.lost == 0
	t.pieces = q
	was, before := t.earliest, t.first
	if t.lost++; first || op.Call < was {
		t.earliest, t.first = op.Call, q
	}
	if first && o.effects == 0 {
		l.distrust(q, 1)
	}
	spare := op.Call // of the try that may, but need not, have taken effect
	switch {
	case t.repeated && !t.fresh && !t.credited && op.Call <= t.by && !l.attempted(o, op):
		e.more = l.explain(o, op)
		l.implied += e.more
		if t.given {
			l.undated += e.more
		}
		t.earliest, t.first = op.Call, q
		l.credit(t)
		return e
	case t.credited && op.Call < was: // it could have done so whenever the other could
		spare, q = was, before
		if was > l.closing {
			l.late--
		}
		l.credit(t)
	}
	l.doubt(q, 1)
	if spare <= l.closing {
		l.open += q
	}
	return effect{}
}

// attempted reports whether a repetition that may have had its effect itself was called before op.
func (l *ledger) attempted(o *order, op *history.Op) bool {
	r, is := l.unexplained[o.tried]
	return is && r.Kind == op.Kind && r.Call < op.Call
}

// credit assigns the effect that a repetition refers to to the try that was called first.
func (l *ledger) credit(t *tries) {
	t.credited, l.bound = true, true
	if t.earliest > l.closing {
		l.late++
	}
}

// takeBack undoes credit: the repetition refers to another effect.
func (l *ledger) takeBack(t *tries) {
	q := t.first
	t.credited = false
	l.doubt(q, 1)
	if t.earliest > l.closing {
		l.late--
	} else {
		l.open += q
	}
}
