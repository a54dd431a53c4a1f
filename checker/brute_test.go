package checker

import (
	"time"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/history"
)

// legalLease tries every order to decide whether a lock with leases can have given these answers. It is written from
// the definition of the object in the comment of tryLock and shares no code with the monitor.
//
// Every operation, and every expiry, happens at one moment of its window. An order is possible when rising moments
// can be chosen; the earliest choice, t = max(t, window start), is the best one.
func legalLease(h *history.Header, ops []history.Op) bool {
	b := brute{h: h, ops: ops, seen: make(map[bruteState]bool)}
	for i, op := range ops {
		if linear.Modelled(&op) && op.Outcome != history.Unknown {
			b.needed |= 1 << i
		}
	}
	return b.search(bruteState{until: history.Forever, gone: history.Forever})
}

type brute struct {
	h      *history.Header
	ops    []history.Op
	needed uint32
	seen   map[bruteState]bool
}

type bruteState struct {
	done        uint32
	now         time.Duration
	held        bool
	holder      history.Value
	until, gone time.Duration // the lease of the holder can run out in [until, gone]
}

func (b *brute) search(s bruteState) bool {
	if s.done&b.needed == b.needed {
		return true
	}
	if b.seen[s] {
		return false
	}
	b.seen[s] = true
	if s.held {
		e := s
		if e.now = max(s.now, s.until); e.now <= s.gone {
			e.held, e.holder = false, history.Value{}
			e.until, e.gone = history.Forever, history.Forever
			if b.search(e) {
				return true
			}
		}
	}
	for i := range b.ops {
		if s.done&(1<<i) != 0 || !linear.Modelled(&b.ops[i]) {
			continue
		}
		if n, ok := b.step(s, &b.ops[i]); ok {
			n.done |= 1 << i
			if b.search(n) {
				return true
			}
		}
	}
	return false
}

func (b *brute) step(s bruteState, op *history.Op) (bruteState, bool) {
	from, to := op.Call, op.Return
	if op.Kind == history.Acquire && op.Outcome == history.OK && b.h.TTL > 0 && op.Until > 0 {
		from = min(max(from, op.Until-b.h.TTL), to)
	}
	if op.Outcome == history.Unknown {
		to = history.Forever
	}
	s.now = max(s.now, from)
	if s.now > to || s.held && s.now > s.gone {
		return s, false
	}
	mine := s.held && s.holder == monitor.Session(op)
	late := func() time.Duration {
		if b.h.TTL <= 0 || op.Outcome == history.Unknown {
			return history.Forever
		}
		return op.Return + b.h.TTL + b.h.Drift
	}
	switch {
	case op.Outcome == history.Refused && op.Reason == history.Held:
		return s, s.held
	case op.Outcome == history.Refused:
		return s, !mine
	case op.Kind == history.Acquire:
		if s.held {
			return s, false
		}
		s.held, s.holder = true, monitor.Session(op)
		s.until, s.gone = monitor.Leased(op), max(late(), monitor.Leased(op))
		if op.Outcome == history.Unknown {
			s.until, s.gone = s.now, history.Forever
		}
		return s, true
	case !mine:
		return s, false
	case op.Kind == history.Extend && op.Outcome == history.Unknown:
		s.gone = history.Forever
		return s, true
	case op.Kind == history.Extend:
		s.until = max(s.until, monitor.Leased(op))
		s.gone = max(s.gone, late(), s.until)
		return s, true
	}
	s.held, s.holder = false, history.Value{}
	s.until, s.gone = history.Forever, history.Forever
	return s, true
}
