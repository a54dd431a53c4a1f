package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// ownerOnlyRelease judges that nobody's release or extension changes a lock
// that another session holds.
//
// An operation X of session A that changed something is a violation for certain
// when another session B
//
//   - was granted the lock after A: B's earliest possible grant is later than
//     the return of A's grant and of all A's extensions before X, and
//   - was surely holding it during the whole of X: B's grant returned before X
//     was called, and X returned before B called its release and before B's
//     lease was over.
//
// For then the last grant before X is not A's: A's own key had been removed, had
// expired or was overwritten when B was granted the lock, nothing put it back,
// and what X changed was not A's. Extensions count as grants, because some
// locks extend by setting the key anew; one of unknown outcome could do so at
// any time, and so could a renewal in the background, so that neither such a
// session nor its later operations are ever blamed. The smallest bad history:
//
//	client 1  acquire  [1, 2]    until 10
//	client 2  acquire  [12, 13]  until 22
//	client 1  release  [14, 15]  ok
//
// A lock on several servers must answer OK only when it changed a majority.
type ownerOnlyRelease struct {
	h     *history.Header
	locks keyed[owners]
	ended bool
}

type owners struct {
	key      history.Value
	sessions map[int64]*owner
	open     []*owner // those that may hold the lock
	free     []*owner // for the next sessions
	renews   bool     // a renewal in the background was seen
	changes  int64
	lost     int64 // releases and extensions that were told to be too late, and changed nothing
	broken   int
	first    trespass
	victim   owner
}

// owner is one session.
type owner struct {
	acq, rel history.Op
	from     time.Duration // its earliest grant
	owned    time.Duration // its latest grant or extension, for certain
	until    time.Duration
	place    int // index in owners.open plus one
	trespass []*trespass
}

// trespass is a change by one session that others may have suffered.
type trespass struct {
	x, acq  history.Op
	until   time.Duration
	counted bool
}

// Once a lock is known to be broken, its other violations are counted among
// this many candidates each, to keep the time linear.
const trespassLimit = 64

func newOwnerOnlyRelease(h *history.Header) *ownerOnlyRelease {
	return &ownerOnlyRelease{h: h, locks: newKeyed(func(key history.Value) *owners {
		return &owners{key: key, sessions: make(map[int64]*owner)}
	})}
}

// Observe implements [Monitor].
func (m *ownerOnlyRelease) Observe(op *history.Op) {
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK {
			m.locks.at(op.Key).acquire(m.h, op)
		}
	case history.Extend:
		m.locks.at(op.Key).extend(op)
	case history.Release:
		m.locks.at(op.Key).release(op)
	}
}

func (o *owners) acquire(h *history.Header, op *history.Op) {
	s := new(owner)
	if n := len(o.free); n > 0 {
		s, o.free = o.free[n-1], o.free[:n-1]
	}
	*s = owner{acq: *op, from: granted(h, op), owned: op.Return, until: leased(op)}
	o.open = append(o.open, s)
	s.place = len(o.open)
	o.sessions[session(op)] = s
}

func (o *owners) extend(op *history.Op) {
	s := o.sessions[session(op)]
	if s == nil {
		return
	}
	switch {
	case op.Outcome == history.OK:
		o.change(s, op)
		s.owned = max(s.owned, op.Return)
		if op.Return > s.until {
			// Whether this put its key back or changed another's is open, so
			// it is nobody's victim from here on.
			o.end(s, &history.Op{}, s.until)
		}
		s.until = max(s.until, leased(op))
	case op.Outcome == history.Unknown:
		s.owned = history.Forever
	case op.Reason == history.Lost:
		o.lost++
		o.end(s, op, min(op.Call, s.until))
	}
}

func (o *owners) release(op *history.Op) {
	n := session(op)
	s := o.sessions[n]
	if s == nil {
		return
	}
	if op.Until > s.until {
		o.renews = true
		s.owned, s.until = history.Forever, op.Until
	}
	o.end(s, op, min(op.Call, s.until))
	switch {
	case op.Outcome == history.OK:
		o.change(s, op)
	case op.Reason == history.Lost:
		o.lost++
	}
	if op.Outcome != history.Unknown { // or it may be tried again
		delete(o.sessions, n)
		o.free = append(o.free, s)
	}
}

// change looks for sessions that s may have harmed by x.
func (o *owners) change(s *owner, x *history.Op) {
	o.changes++
	if s.owned >= x.Call {
		return
	}
	var t *trespass
	found, looked := 0, 0
	for i := len(o.open) - 1; i >= 0 && found < trespassLimit && (o.broken == 0 || looked < trespassLimit); i-- {
		b := o.open[i]
		looked++
		if b.until < x.Call && len(b.trespass) == 0 && !o.renews {
			o.leave(b) // an extension to come returns later than that
			continue
		}
		if b == s || b.from <= s.owned || b.acq.Return >= x.Call {
			continue
		}
		if t == nil {
			t = &trespass{x: *x, acq: s.acq, until: s.until}
		}
		b.trespass = append(b.trespass, t)
		found++
	}
}

// end says until when s was surely holding, which decides what it suffered.
func (o *owners) end(s *owner, by *history.Op, end time.Duration) {
	if s.place > 0 {
		s.rel = *by
		for _, t := range s.trespass {
			if t.x.Return < end && !t.counted {
				t.counted = true
				if o.broken++; o.broken == 1 {
					o.first, o.victim = *t, *s
				}
			}
		}
		o.leave(s)
	}
}

func (o *owners) leave(s *owner) {
	if s.place == 0 {
		return
	}
	last := len(o.open) - 1
	o.open[s.place-1] = o.open[last]
	o.open[s.place-1].place = s.place
	o.open[last] = nil
	o.open = o.open[:last]
	s.place = 0
	s.trespass = nil
}

// Advance implements [Monitor].
func (m *ownerOnlyRelease) Advance(lowWater time.Duration) {
	for _, o := range m.locks.all {
		for i := len(o.open) - 1; i >= 0; i-- {
			if s := o.open[i]; s.until < lowWater && len(s.trespass) == 0 && !o.renews {
				o.leave(s)
			}
		}
	}
}

func (m *ownerOnlyRelease) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *ownerOnlyRelease) Verdict() Verdict {
	return m.locks.verdict(variant.Lock, variant.OwnerOnlyRelease, "nobody obtained the lock", func(o *owners) Verdict {
		broken, first, victim := o.broken, o.first, o.victim
		if !m.ended {
			counted := make(map[*trespass]bool)
			for _, s := range o.open {
				for _, t := range s.trespass {
					if t.x.Return < s.until && !t.counted && !counted[t] {
						counted[t] = true
						if broken++; broken == 1 || o.broken == 0 && t.x.Return < first.x.Return {
							first, victim = *t, *s
						}
					}
				}
			}
		}
		switch {
		case broken > 0:
			return Verdict{Result: Violated, Count: broken, Why: robbed(o.key, &first, &victim),
				Witness: inOrder(first.acq, victim.acq, first.x, victim.rel)}
		case o.changes == 0 && o.lost > 0:
			return Verdict{Result: Holds, Why: many(o.lost, "release or extension") + ", all refused as too late: none changed anything"}
		case o.changes == 0:
			return Verdict{Why: "nobody gave the lock back or extended it"}
		}
		return Verdict{Result: Holds, Why: many(o.changes, "release or extension") + ", none of another's lock for certain"}
	})
}

// robbed is the sentence about a change of another's lock.
func robbed(key history.Value, t *trespass, victim *owner) string {
	verb := "released"
	if t.x.Kind == history.Extend {
		verb = "extended"
	}
	lapse := ""
	if t.until < t.x.Call {
		lapse = fmt.Sprintf(" and lapsed at %s", at(t.until))
	}
	end := "never gave it back"
	if victim.rel.Kind != history.NoKind {
		end = "gave it back only at " + at(victim.rel.Call)
	}
	return fmt.Sprintf("%s %s %s between %s and %s, but its own grant was of %s%s, and %s held the lock since %s%s and %s",
		client(&t.x), verb, title(key), at(t.x.Call), at(t.x.Return), at(t.acq.Return), lapse,
		client(&victim.acq), at(victim.acq.Return), via(&victim.acq), end)
}
