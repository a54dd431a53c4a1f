package faults

import (
	"math"
	"sync/atomic"
	"time"
)

// trigger decides at which of its opportunities a fault fires. It is called at every matching command of every client,
// and so takes no lock: a fault that has fired as often as allowed costs one load of a number that no longer changes.
type trigger struct {
	when   When
	limit  int64 // of injections; 0: none
	seed   uint64
	seen   atomic.Int64 // opportunities so far, if they are counted
	fired  atomic.Int64 // injections so far
	period atomic.Int64 // with When.Every: the latest period with an injection, counted from 1
}

// newTrigger makes a trigger. The same seed picks the same opportunities.
func newTrigger(w When, seed uint64) *trigger {
	t := &trigger{when: w, limit: w.Times, seed: seed}
	if w.Times == 0 && w.Every == 0 && w.Chance == 0 {
		t.limit = 1
	}
	return t
}

// fires reports whether the fault fires at this opportunity, which comes at now since
// the start of the load. Commands before [When.At] are not opportunities.
func (t *trigger) fires(now time.Duration) bool {
	w := &t.when
	switch {
	case now < w.At:
		return false
	case w.Nth > 0:
		return t.seen.Load() < w.Nth && t.seen.Add(1) == w.Nth
	case t.limit > 0 && t.fired.Load() >= t.limit:
		return false
	case w.Chance > 0 && w.Chance < 1 && !t.lucky():
		return false
	case w.Every > 0 && !t.claims(int64((now-w.At)/w.Every)+1):
		return false
	}
	return t.fired.Add(1) <= t.limit || t.limit == 0
}

// lucky draws for one opportunity. The draw depends on the seed and on the number of earlier ones, so that clients need
// not wait for a generator.
func (t *trigger) lucky() bool {
	n := uint64(t.seen.Add(1))
	return float64(mix(t.seed+n*0x9e3779b97f4a7c15)>>11)/(1<<53) < t.when.Chance
}

// claims returns true to one caller in each period.
func (t *trigger) claims(period int64) bool {
	for {
		last := t.period.Load()
		if period <= last {
			return false
		}
		if t.period.CompareAndSwap(last, period) {
			return true
		}
	}
}

// mix applies the finalizer of splitmix64: every bit of x affects every bit of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// firstScheduled is when a fault that is not triggered by commands fires if its sentence gives no time: the load is
// steady by then. A sentence that only gives a period fires first after the first period.
const firstScheduled = 500 * time.Millisecond

// schedule returns date n, counted from 0, of a fault that is not triggered by commands, and whether there is such a
// date. It ignores [When.Times]: the caller counts the injections.
func (w When) schedule(n int) (time.Duration, bool) {
	if n == 0 {
		return w.At, true
	}
	if w.Every <= 0 {
		return 0, false
	}
	if int64(n) > (math.MaxInt64-int64(w.At))/int64(w.Every) {
		return 0, false // in some centuries
	}
	return w.At + time.Duration(n)*w.Every, true
}
