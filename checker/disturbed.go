package checker

import (
	"time"

	"oversell/history"
)

// disturbances are the times in which servers or the wire were broken on purpose,
// and a while after, in which clients may not have noticed that they work again.
// What clients could not do then is not held against a lock or a queue: liveness is
// promised for the time after faults have healed.
type disturbances struct {
	redial time.Duration
	all    []unrest
}

type unrest struct{ from, to time.Duration }

// observe notes a fault. One that struck clients only is no excuse: the others are
// well.
func (d *disturbances) observe(op *history.Op) (s unrest, disturbs bool) {
	if op.Kind != history.Fault || op.Until == 0 {
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
