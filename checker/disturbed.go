package checker

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
)

// disturbances are the times in which servers or the wire were broken on purpose,
// and a while after, in which clients may not have noticed that they work again.
// What clients could not do then is not held against a lock or a queue: liveness is
// promised for the time after faults have healed.
type disturbances struct {
	redial time.Duration
	lease  time.Duration // how long a strike at a client is remembered that it held up
	all    []unrest
	delays []unrest // such strikes, by their ends
}

type unrest struct{ from, to time.Duration }

// observe notes a fault. One that struck clients only is no excuse: the others are
// well.
func (d *disturbances) observe(op *history.Op) (s unrest, disturbs bool) {
	if op.Kind != history.Fault {
		return unrest{}, false
	}
	if op.Until == 0 {
		if op.Call < op.Return && op.Return-op.Call <= d.lease {
			d.delays = append(d.delays, unrest{op.Call, op.Return})
		}
		return unrest{}, false
	}
	s = unrest{op.Call, after(op.Until, d.redial)}
	d.all = append(d.all, s)
	return s, true
}

// calm is where, within a stretch from a time to another, the time begins after
// which nothing was disturbed.
func (d *disturbances) calm(from, to time.Duration) time.Duration {
	for moved := true; moved; {
		moved = false
		for _, s := range d.all {
			if s.from < to && s.to > from {
				from, moved = s.to, true
			}
		}
	}
	return from
}

// heldUp is for how much of a stretch faults held up some client, each for no longer than
// a lease. Whoever was held up may have held the lock round a queue, which such a delay
// does not cost it, so that the others wait for as long.
func (d *disturbances) heldUp(from, to time.Duration) (sum time.Duration) {
	var within []unrest
	for i := len(d.delays) - 1; i >= 0 && d.delays[i].to > from; i-- {
		if s := d.delays[i]; s.from < to {
			within = append(within, unrest{max(s.from, from), min(s.to, to)})
		}
	}
	slices.SortFunc(within, func(a, b unrest) int { return cmp.Compare(a.from, b.from) })
	for _, s := range within {
		if from = max(from, s.from); s.to > from {
			sum += s.to - from
			from = s.to
		}
	}
	return sum
}
