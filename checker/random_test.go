package checker

import (
	"math/rand/v2"
	"slices"
	"time"

	"oversell/history"
)

// person is a client of a generator; the times of its operations strictly rise.
type person struct {
	free    time.Duration // its next call comes after this time
	session int64         // the session that it holds or believes to hold; 0: none
	lost    bool          // the acquire of that session had no answer
	until   time.Duration
}

// lockRun generates a history by simulating a correct lock: every operation takes effect at one moment, and its
// interval is stretched at random around it. A TTL of 0 means no lease. At most one corruption is applied.
func lockRun(r *rand.Rand, h *history.Header, n int, corrupt bool) []history.Op {
	people := make([]person, 2+r.IntN(3))
	for i := range people {
		people[i].free = -1
	}
	var ops []history.Op
	var now, leaseLo, leaseHi time.Duration
	var holder, sessions int64
	unknowns := 0
	for tries := 0; len(ops) < n && tries < 20*n; tries++ {
		now += upTo(r, 2)
		if holder != 0 && h.TTL > 0 && (now > leaseHi || now >= leaseLo && chance(r, 30)) {
			holder = 0 // the lease ran out
		}
		i := r.IntN(len(people))
		p := &people[i]
		if p.free >= now {
			continue
		}
		call := max(p.free+1, now-upTo(r, 4))
		ret := now + upTo(r, 4)
		op := history.Op{Client: int32(i), Key: lockKey, Call: call, Return: ret}
		mine := p.session != 0 && holder == p.session
		switch {
		case p.session == 0:
			sessions++
			op.Kind, op.Arg = history.Acquire, history.Int(sessions)
			if holder != 0 {
				op.Outcome, op.Reason = history.Refused, history.Held
				break
			}
			holder = sessions
			op.Outcome = history.OK
			if h.TTL > 0 {
				began := call + time.Duration(r.Int64N(int64(now-call)+1))
				op.Until = began + h.TTL
				leaseLo, leaseHi = op.Until, now+h.TTL+h.Drift
			}
			p.session, p.until, p.lost = sessions, op.Until, false
			if unknowns < 3 && chance(r, 8) {
				unknowns++
				op.Outcome, op.Until = history.Unknown, 0
				p.until, p.lost = 0, true
				if chance(r, 30) {
					holder = 0 // the request was lost
				}
				if chance(r, 50) {
					p.session = 0 // the client does not know of its session
				}
			}
		case chance(r, 20):
			op.Kind, op.Arg = history.Extend, history.Int(p.session)
			op.Outcome, op.Reason = history.Refused, history.Lost
			if mine {
				op.Outcome, op.Reason = history.OK, history.NoReason
				was, wasHi := leaseLo, leaseHi
				if h.TTL > 0 {
					op.Until = max(p.until, call+h.TTL)
					leaseLo, leaseHi = op.Until, max(leaseHi, now+h.TTL+h.Drift)
				}
				if unknowns < 3 && chance(r, 25) {
					unknowns++
					op.Outcome, op.Until = history.Unknown, 0
					if chance(r, 40) {
						leaseLo, leaseHi = was, wasHi // the request was lost
					}
				}
				p.until = max(p.until, op.Until)
			} else if unknowns < 3 && chance(r, 25) {
				unknowns++
				op.Outcome, op.Reason = history.Unknown, history.NoReason
			} else {
				p.session = 0
			}
		default:
			op.Kind, op.Arg, op.Until = history.Release, history.Int(p.session), p.until
			op.Outcome, op.Reason = history.Refused, history.Lost
			if mine {
				op.Outcome, op.Reason = history.OK, history.NoReason
			}
			again := false
			if unknowns < 3 && chance(r, 12) {
				unknowns++
				op.Outcome, op.Reason = history.Unknown, history.NoReason
				mine = mine && chance(r, 70) // otherwise the request was lost
				again = chance(r, 50)
			}
			if mine {
				holder = 0
			}
			if !again {
				p.session, p.until, p.lost = 0, 0, false
			}
		}
		p.free = ret
		ops = append(ops, op)
	}
	if corrupt && len(ops) > 0 {
		i := r.IntN(len(ops))
		corruptLock(r, &ops[i])
		inTurn(ops, i)
	}
	return complete(ops)
}

// inTurn keeps the times of a client rising after the times of ops[i] were changed. ops must hold the operations of
// each client in the order of their calls.
func inTurn(ops []history.Op, i int) {
	op := &ops[i]
	for j := range ops {
		o := &ops[j]
		switch {
		case o.Client != op.Client:
		case j < i:
			op.Call = max(op.Call, o.Return+1)
		case j > i:
			op.Return = min(op.Return, o.Call-1)
		}
	}
	op.Return = max(op.Return, op.Call)
}

func corruptLock(r *rand.Rand, op *history.Op) {
	switch r.IntN(4) {
	case 0: // change the answer
		if op.Outcome == history.OK {
			op.Outcome, op.Reason = history.Refused, history.Lost
			if op.Kind == history.Acquire {
				op.Reason = history.Held
				op.Until = 0
			}
		} else {
			op.Outcome, op.Reason = history.OK, history.NoReason
		}
	case 1:
		op.Call = max(0, op.Call-upTo(r, 6))
	case 2:
		op.Return += upTo(r, 6)
	case 3: // shorten the interval
		if d := op.Return - op.Call; d > 1 {
			op.Call += time.Duration(r.Int64N(int64(d)))
		}
	}
}

// lockNoise generates a random history of a lock.
func lockNoise(r *rand.Rand, h *history.Header, n int) []history.Op {
	people := make([]person, 2+r.IntN(3))
	for i := range people {
		people[i].free = upTo(r, 4) - 1
	}
	var ops []history.Op
	var sessions int64
	unknowns := 0
	for len(ops) < n {
		i := r.IntN(len(people))
		p := &people[i]
		op := history.Op{Client: int32(i), Key: lockKey, Outcome: history.OK}
		op.Call = p.free + 1 + upTo(r, 2)
		op.Return = op.Call + upTo(r, 5)
		if unknowns < 3 && chance(r, 10) {
			unknowns++
			op.Outcome = history.Unknown
		}
		switch {
		case p.session == 0:
			sessions++
			op.Kind, op.Arg = history.Acquire, history.Int(sessions)
			p.until, p.lost = 0, false
			if op.Outcome == history.OK && chance(r, 50) {
				op.Outcome, op.Reason = history.Refused, history.Held
			}
			if op.Outcome == history.OK {
				p.session = sessions
				if h.TTL > 0 {
					p.until = op.Call + upTo(r, 2) + h.TTL
					if chance(r, 50) {
						p.until = op.Call + h.TTL
					}
					op.Until = p.until
				}
			}
			if op.Outcome == history.Unknown && chance(r, 40) {
				p.session, p.lost = sessions, true
			}
		case chance(r, 20):
			op.Kind, op.Arg = history.Extend, history.Int(p.session)
			switch {
			case op.Outcome == history.OK && chance(r, 40):
				op.Outcome, op.Reason = history.Refused, history.Lost
				p.session = 0
			case op.Outcome == history.OK && h.TTL > 0:
				op.Until = max(p.until, op.Call+h.TTL)
				p.until = op.Until
			}
		default:
			op.Kind, op.Arg, op.Until = history.Release, history.Int(p.session), p.until
			if op.Outcome == history.OK && chance(r, 30) {
				op.Outcome, op.Reason = history.Refused, history.Lost
			}
			if op.Outcome != history.Unknown || chance(r, 50) { // otherwise the client releases again
				p.session, p.until, p.lost = 0, 0, false
			}
		}
		p.free = op.Return
		ops = append(ops, op)
	}
	return complete(ops)
}

// named sometimes gives the sessions names that are texts.
func named(r *rand.Rand, ops []history.Op) []history.Op {
	if chance(r, 20) {
		for i := range ops {
			ops[i].Arg = history.Text("s" + ops[i].Arg.String())
		}
	}
	return ops
}

// saleMix says what occurs in a generated history of a sale.
type saleMix struct {
	amounts, refunds, unknown, resend, reads bool
}

// patience returns how much longer than usual a client waits for an answer that does not come. Where orders are sent
// again, this makes tries overlap and end in another order than they were called.
func (m saleMix) patience(r *rand.Rand) time.Duration {
	if m.resend && chance(r, 50) {
		return upTo(r, 40)
	}
	return 0
}

func (m saleMix) pieces(r *rand.Rand) int32 {
	if m.amounts {
		return int32(1 + r.IntN(3))
	}
	return int32(r.IntN(2)) // 0 means 1
}

// saleRun generates a history by simulating a correct sale, which is idempotent when orders are sent again. At most
// one corruption is applied.
func saleRun(r *rand.Rand, h *history.Header, n int, m saleMix, corrupt bool) []history.Op {
	people := make([]person, 2+r.IntN(4))
	for i := range people {
		people[i].free = -1
	}
	var ops []history.Op
	var now time.Duration
	left, orders := h.Stock, int64(0)
	effect := make(map[int64]bool)
	amount := make(map[int64]int32)
	var standing, returned []int64 // orders that stand, and orders that were refunded
	unknowns := 0
	for tries := 0; len(ops) < n && tries < 20*n; tries++ {
		now += upTo(r, 2)
		i := r.IntN(len(people))
		p := &people[i]
		if p.free >= now {
			continue
		}
		op := history.Op{Client: int32(i), Kind: history.Buy, Outcome: history.OK, Key: shopKey, Result: history.Int(-1),
			Call: max(p.free+1, now-upTo(r, 4)), Return: now + upTo(r, 4), Amount: m.pieces(r)}
		order := orders + 1
		if m.resend && orders > 0 && chance(r, 40) {
			order = 1 + r.Int64N(orders)
			op.Amount = amount[order]
		}
		orders = max(orders, order)
		amount[order] = op.Amount
		op.Arg = history.Int(order)
		back := m.refunds && chance(r, 25)
		switch {
		case back && len(returned) > 0 && chance(r, 20):
			order = returned[r.IntN(len(returned))]
			op.Kind, op.Reason, op.Arg, op.Amount = history.Refund, history.Repeated, history.Int(order), amount[order]
		case back && len(standing) > 0:
			i := r.IntN(len(standing))
			order = standing[i]
			op.Kind, op.Arg, op.Amount = history.Refund, history.Int(order), amount[order]
			left += op.Pieces()
			standing, returned = slices.Delete(standing, i, i+1), append(returned, order)
		case m.resend && effect[order]:
			op.Reason = history.Repeated
		case left < op.Pieces():
			op.Outcome, op.Reason = history.Refused, history.SoldOut
		default:
			left -= op.Pieces()
			effect[order] = true
			standing = append(standing, order)
		}
		if m.unknown && unknowns < 3 && chance(r, 15) {
			unknowns++
			op.Outcome, op.Reason = history.Unknown, history.NoReason
			op.Return += m.patience(r)
		}
		p.free = op.Return
		ops = append(ops, op)
	}
	if corrupt && len(ops) > 0 {
		i := r.IntN(len(ops))
		op := &ops[i]
		switch r.IntN(4) {
		case 0:
			if op.Kind == history.Buy && op.Outcome == history.OK {
				op.Outcome, op.Reason = history.Refused, history.SoldOut
			} else {
				op.Outcome, op.Reason = history.OK, history.NoReason
			}
		case 1:
			op.Call = max(0, op.Call-upTo(r, 6))
		case 2:
			op.Return += upTo(r, 6)
		case 3:
			if d := op.Return - op.Call; d > 1 {
				op.Call += time.Duration(r.Int64N(int64(d)))
			}
		}
		inTurn(ops, i)
	}
	return reads(r, h, complete(ops), left, m)
}

// reads ends a history with readings of the stock, most of them right.
func reads(r *rand.Rand, h *history.Header, ops []history.Op, left int64, m saleMix) []history.Op {
	if !m.reads || len(ops) == 0 {
		return ops
	}
	end := ops[len(ops)-1].Return + 1
	if chance(r, 30) {
		left += int64(r.IntN(3)) - 1
	}
	ops = append(ops, read("left", left, end))
	if chance(r, 50) {
		sold := h.Stock - left
		if chance(r, 30) {
			sold += int64(r.IntN(3)) - 1
		}
		ops = append(ops, read("sold", sold, end+upTo(r, 2)))
	}
	return complete(ops)
}

// saleNoise generates a random history of a sale.
func saleNoise(r *rand.Rand, h *history.Header, n int, m saleMix) []history.Op {
	people := make([]person, 2+r.IntN(4))
	for i := range people {
		people[i].free = upTo(r, 4) - 1
	}
	var ops []history.Op
	unknowns, soldOuts := 0, 20+r.IntN(40)
	amount := []int32{0} // by order number
	for len(ops) < n {
		i := r.IntN(len(people))
		p := &people[i]
		order := len(amount)
		if again := m.resend && len(amount) > 1 && chance(r, 40); again {
			order = 1 + r.IntN(len(amount)-1)
		} else {
			amount = append(amount, m.pieces(r))
		}
		op := history.Op{Client: int32(i), Kind: history.Buy, Outcome: history.OK, Key: shopKey, Arg: history.Int(int64(order)), Result: history.Int(-1), Amount: amount[order]}
		op.Call = p.free + 1 + upTo(r, 2)
		op.Return = op.Call + upTo(r, 6)
		switch {
		case m.unknown && unknowns < 3 && chance(r, 15):
			unknowns++
			op.Outcome = history.Unknown
			op.Return += m.patience(r)
			if m.refunds && chance(r, 30) {
				op.Kind = history.Refund
			}
		case m.refunds && chance(r, 25):
			op.Kind = history.Refund
			if chance(r, 10) {
				op.Reason = history.Repeated
			}
		case chance(r, soldOuts):
			op.Outcome, op.Reason = history.Refused, history.SoldOut
		case m.resend && chance(r, 40):
			op.Reason = history.Repeated
		}
		if op.Kind == history.Refund && order > 1 && chance(r, 80) { // usually a refund is of an earlier order
			order = 1 + r.IntN(order-1)
			op.Arg, op.Amount = history.Int(int64(order)), amount[order]
		}
		p.free = op.Return
		ops = append(ops, op)
	}
	left := h.Stock
	for i := range ops {
		switch op := &ops[i]; {
		case op.Outcome == history.Refused || op.Reason == history.Repeated || op.Outcome == history.Unknown && chance(r, 50):
		case op.Kind == history.Buy:
			left -= op.Pieces()
		default:
			left += op.Pieces()
		}
	}
	return reads(r, h, complete(ops), left, m)
}
