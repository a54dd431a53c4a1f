package monitor

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
)

// Disturbances are the times under faults of servers or of the wire, and a while after, in which clients may not have
// noticed the recovery. Failures of clients then do not count against a lock or a queue: liveness is promised for the
// time after faults have healed.
type Disturbances struct {
	Redial time.Duration // how long clients may take to notice that a server is back
	Lease  time.Duration // the longest stall of a client that is noted
	All    []Disturbance
	delays []Disturbance // such injections, by their ends
}

// Disturbance is a stretch of time under a fault.
type Disturbance struct{ from, to time.Duration }

// Observe notes a fault. A fault that hit only clients does not excuse the others.
func (d *Disturbances) Observe(op *history.Op) (s Disturbance, disturbs bool) {
	if op.Kind != history.Fault {
		return Disturbance{}, false
	}
	if op.Until == 0 {
		if op.Call < op.Return && op.Return-op.Call <= d.Lease {
			d.delays = append(d.delays, Disturbance{op.Call, op.Return})
		}
		return Disturbance{}, false
	}
	s = Disturbance{op.Call, After(op.Until, d.Redial)}
	d.All = append(d.All, s)
	return s, true
}

// Calm returns the beginning of the undisturbed rest of a stretch of time.
func (d *Disturbances) Calm(from, to time.Duration) time.Duration {
	for moved := true; moved; {
		moved = false
		for _, s := range d.All {
			if s.from < to && s.to > from {
				from, moved = s.to, true
			}
		}
	}
	return from
}

// HeldUp returns for how much of a stretch faults held up some client, each for no longer than a lease. The client may
// have held the queue's lock, and such a stall does not make it lose the lock, so the other clients wait as long.
func (d *Disturbances) HeldUp(from, to time.Duration) (sum time.Duration) {
	var within []Disturbance
	for i := len(d.delays) - 1; i >= 0 && d.delays[i].to > from; i-- {
		if s := d.delays[i]; s.from < to {
			within = append(within, Disturbance{max(s.from, from), min(s.to, to)})
		}
	}
	slices.SortFunc(within, func(a, b Disturbance) int { return cmp.Compare(a.from, b.from) })
	for _, s := range within {
		if from = max(from, s.from); s.to > from {
			sum += s.to - from
			from = s.to
		}
	}
	return sum
}
