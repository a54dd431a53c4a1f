package checker

import "oversell/history"

// ledger counts the effects of orders, in pieces. It keeps a byte per order.
type ledger struct {
	orders table[uint8]
	// sure is what surely took effect: every fresh success, and one effect for
	// an order that was called repeated although no success of it is known.
	sure int64
	// once is the same with every order counted once.
	once int64
	// unknown is the sum of all operations without an answer, less those that
	// a repetition shows to have taken effect.
	unknown int64
	// untold is the part of unknown that belongs to orders of which no effect
	// is known, each counted once.
	untold int64

	sent, resent int64 // orders, and operations beyond the first of an order
}

// The byte of an order: three counts that stop at their largest value, and a flag.
const (
	freshOne    uint8 = 1 << iota // successes: 0, 1, 2 or more
	freshTwo                      //
	lostOne                       // operations without an answer: 0, 1, 2 or more
	lostTwo                       //
	wasRepeated                   // an answer said that the order had been counted
	wasSent                       // the order was sent at all
	credited                      // that effect was taken from an operation without an answer
)

// observe enters a purchase or a refund, and returns how many pieces more are
// sure to have taken effect, and the order's byte as it is now. Refusals only
// count as sent.
func (l *ledger) observe(op *history.Op) (more int64, now uint8) {
	p := l.orders.at(op.Arg)
	was, q := *p, op.Pieces()
	now = was | wasSent
	if was&wasSent == 0 {
		l.sent++
	} else {
		l.resent++
	}
	switch {
	case op.Outcome == history.Refused:
	case op.Outcome == history.OK && op.Reason != history.Repeated:
		now = bump(now, freshOne, freshTwo)
		more = q
		if was&freshOne == 0 && was&wasRepeated != 0 { // the effect that the repetition meant
			more = 0
			if was&credited != 0 {
				l.unknown += q
			}
		}
	case op.Outcome == history.OK:
		now |= wasRepeated
		if was&(freshOne|wasRepeated) == 0 {
			more = q
			if was&lostOne != 0 {
				l.unknown -= q
				now |= credited
			}
		}
	case op.Outcome == history.Unknown:
		now = bump(now, lostOne, lostTwo)
		switch {
		case was&wasRepeated != 0 && was&(freshOne|credited) == 0:
			now |= credited
		default:
			l.unknown += q
		}
		if was&(freshOne|wasRepeated|lostOne) == 0 {
			l.untold += q
		}
	}
	if was&(freshOne|wasRepeated) == 0 && now&(freshOne|wasRepeated) != 0 {
		l.once += q
		if was&lostOne != 0 {
			l.untold -= q
		}
	}
	l.sure += more
	*p = now
	return more, now
}

func bump(b, one, two uint8) uint8 {
	if b&one == 0 {
		return b | one
	}
	return b | two
}
