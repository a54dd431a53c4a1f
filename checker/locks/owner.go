package locks

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// owners judges that no release or extension changes a lock that another session holds.
//
// An operation X of session A that changed something is surely a violation if another session B
//
//   - was granted the lock after A: B's earliest possible grant is later than the return of A's grant,
//   - was surely holding it during the whole of X: B's grant returned before X was called, and X returned before B called
//     its release and before B's lease was over, and
//   - was not harmed before: no extension of A that succeeded was called after B's grant had returned.
//
// Then the last grant before X is not A's: A's own key had been removed, had expired or was overwritten when B was
// granted the lock. Either X changed B's key, or an extension of A did before it, which set A's key anew: one that overlaps
// B's grant, or has no answer. A renewal in the background could do so at any time and is not in the history, so a session
// whose lease was renewed is not blamed. The smallest bad history:
//
//	client 1  acquire  [1, 2]    until 10
//	client 2  acquire  [12, 13]  until 22
//	client 1  release  [14, 15]  ok
//
// A also has no key if it was never granted the lock, or had released it: then only the second condition counts. An
// acquire without an answer may have been granted, and the verdict is unknown:
//
//	client 1  acquire  [1, 2]  until 10
//	client 2  acquire  [3, 4]  refused (held)
//	client 2  release  [5, 6]  ok
//
// A lock on several servers must answer OK only when it changed a majority.
//
// An opportunity is a release or an extension with an answer that overlaps, in time, a tenure of another client or
// another client's acquire with an answer: a lock that does not check the owner could have changed the other's. See
// [encounters]. The smallest history with one:
//
//	client 1  acquire  [1, 2]  ok
//	client 1  release  [3, 5]  ok
//	client 2  acquire  [4, 6]  ok
type owners struct {
	h       *history.Header
	open    []*owner // those that may hold the lock
	spare   *monitor.FreeList[owner]
	renews  bool // a renewal in the background was seen
	changes int64
	late    int64 // releases and extensions that were refused as too late, and changed nothing
	broken  int
	unsure  int        // changes that are violations unless an acquire without an answer was granted
	proofs  []trespass // the first ones counted, each with its victim
	strays  map[history.Value][]*trespass
	vague   map[history.Value]bool // sessions that may hold the lock again after they released it
}

// owner is one session.
type owner struct {
	acq, rel history.Op // rel is the operation that ended it, if it was harmed
	ownerState
}

// ownerState is the part of an owner that changes.
type ownerState struct {
	from     time.Duration // its earliest grant
	granted  time.Duration // when its grant returned; Forever if its lease was renewed
	extended time.Duration // the call of its latest extension that succeeded
	until    time.Duration
	place    int // index in owners.open plus one
	trespass []*trespass
}

func openOwners(ls *locks, l *lock) { l.owners = &owners{h: ls.h, spare: &ls.owners} }

// trespass is a change by one session that may have harmed others.
type trespass struct {
	x, acq  history.Op // acq has no kind if the session did not, or no longer, hold a grant
	until   time.Duration
	counted bool
	unsure  bool // an acquire of the session has no answer
	void    bool // the session was granted the lock by then
	victim  owner
	self    *trespass
}

// Once a lock is known to be broken, its other violations are counted among
// this many candidates each, to keep the time linear.
const trespassLimit = 64

func (o *owners) observe(op *history.Op, t *lockSession) {
	if len(o.strays) > 0 && op.Kind == history.Acquire && op.Outcome != history.Refused {
		o.explain(op)
	}
	switch {
	case op.Outcome == history.OK && (op.Kind == history.Extend || op.Kind == history.Release) && (t == nil || t.owner == nil):
		o.stray(op, t)
	case t == nil:
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		s := o.spare.Take()
		s.acq, s.rel.Kind = *op, history.NoKind // cheaper than comparing all of it
		s.ownerState = ownerState{from: monitor.Granted(o.h, op), granted: op.Return, extended: -1, until: monitor.Leased(op)}
		o.open = append(o.open, s)
		s.place = len(o.open)
		t.owner = s
	case op.Kind == history.Extend && t.owner != nil:
		o.extend(op, t.owner)
	case op.Kind == history.Release && t.owner != nil:
		o.release(op, t.owner)
		if op.Outcome != history.Unknown { // or it may be tried again
			o.spare.Give(t.owner)
			t.owner = nil
		}
	}
}

func (o *owners) extend(op *history.Op, s *owner) {
	switch {
	case op.Outcome == history.OK:
		o.change(s, op)
		s.extended = max(s.extended, op.Call)
		if op.Return > s.until {
			// Whether this put its key back or changed another session's is open, so it
			// cannot be a victim from here on.
			o.end(s, &history.Op{}, s.until)
		}
		s.until = max(s.until, monitor.Leased(op))
	case op.Reason == history.Lost:
		o.late++
		o.end(s, op, min(op.Call, s.until))
	}
}

func (o *owners) release(op *history.Op, s *owner) {
	if op.Until > s.until {
		o.renews = true
		o.markVague(op)
		s.granted, s.until = history.Forever, op.Until
	}
	o.end(s, op, min(op.Call, s.until))
	switch {
	case op.Outcome == history.OK:
		o.change(s, op)
	case op.Reason == history.Lost:
		o.late++
	}
}

// markVague notes that a session may hold the lock again at any time.
func (o *owners) markVague(op *history.Op) {
	if o.vague == nil {
		o.vague = make(map[history.Value]bool)
	}
	o.vague[monitor.Session(op)] = true
}

// stray looks for sessions that may have been harmed by a session that does not hold the lock.
func (o *owners) stray(x *history.Op, s *lockSession) {
	if o.vague[monitor.Session(x)] {
		o.changes++
		return
	}
	t := o.change(&owner{ownerState: ownerState{granted: -1, extended: -1}}, x)
	if t == nil {
		return
	}
	t.unsure = s != nil && s.unheard
	if o.strays == nil {
		o.strays = make(map[history.Value][]*trespass)
	}
	o.strays[monitor.Session(x)] = append(o.strays[monitor.Session(x)], t)
}

// explain finds changes by a session that was, or may have been, granted the lock by then.
func (o *owners) explain(acq *history.Op) {
	for _, t := range o.strays[monitor.Session(acq)] {
		if acq.Call > t.x.Return || t.void {
			continue
		}
		if t.counted {
			o.tally(t, -1)
		}
		if acq.Outcome == history.OK {
			t.void = true
		}
		t.unsure = true
		if t.counted {
			o.tally(t, 1)
		}
	}
}

// tally counts a trespass against a session, or removes it from the count.
func (o *owners) tally(t *trespass, n int) {
	switch {
	case t.void:
	case t.unsure:
		o.unsure += n
	default:
		o.broken += n
	}
}

// suffer counts a trespass if its victim was surely holding the lock until end.
func (o *owners) suffer(t *trespass, victim *owner, end time.Duration) {
	if t.x.Return >= end || t.counted {
		return
	}
	t.counted = true
	o.tally(t, 1)
	if len(o.proofs) < trespassLimit {
		proof := *t
		proof.victim, proof.self = *victim, t
		o.proofs = append(o.proofs, proof)
	}
}

// change looks for sessions that s may have harmed by x.
func (o *owners) change(s *owner, x *history.Op) *trespass {
	o.changes++
	if s.granted >= x.Call {
		return nil
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
		if b == s || b.from <= s.granted || b.acq.Return >= x.Call || s.extended > b.acq.Return {
			continue
		}
		if t == nil {
			t = &trespass{x: *x, acq: s.acq, until: s.until}
		}
		b.trespass = append(b.trespass, t)
		found++
	}
	return t
}

// end notes until when s was surely holding, which decides what harmed it.
func (o *owners) end(s *owner, by *history.Op, end time.Duration) {
	if s.place > 0 {
		if len(s.trespass) > 0 {
			s.rel = *by
		}
		for _, t := range s.trespass {
			o.suffer(t, s, end)
		}
		o.leave(s)
	}
}

func (o *owners) leave(s *owner) {
	if s.place == 0 {
		return
	}
	o.open = withdrawn(o.open, s)
	s.trespass = nil
}

func (o *owners) advance(lowWater time.Duration) {
	for i := len(o.open) - 1; i >= 0; i-- {
		if s := o.open[i]; s.until < lowWater && len(s.trespass) == 0 && !o.renews {
			o.leave(s)
		}
	}
}

// ownership returns the verdict on releases and extensions by owners only.
func (l *lock) ownership(ls *locks) monitor.Verdict {
	o := l.owners
	v := monitor.Verdict{Opportunities: l.contended}
	if !ls.ended && len(o.open) > 0 {
		end := *o // as if the history ended now
		end.proofs = slices.Clone(o.proofs)
		var counted []*trespass
		for _, s := range o.open {
			for _, t := range s.trespass {
				if !t.counted {
					end.suffer(t, s, s.until)
					if t.counted {
						counted = append(counted, t)
					}
				}
			}
		}
		for _, t := range counted {
			t.counted = false
		}
		o = &end
	}
	var first *trespass
	for i := range o.proofs {
		if t := &o.proofs[i]; !t.self.void && (!t.self.unsure || o.broken == 0) && (first == nil || t.x.Return < first.x.Return) {
			first = t
		}
	}
	met := func() string {
		if l.contended > 0 {
			return fmt.Sprintf("; %s met another client that held the lock or asked for it", say.Thousands(l.contended))
		}
		return "; none of them met another client"
	}
	switch {
	case o.broken+o.unsure > 0:
		victim := &first.victim
		v.Why, v.Witness = robbed(l.key, first, victim), monitor.InOrder(first.acq, victim.acq, first.x, victim.rel)
		if o.broken > 0 {
			v.Result, v.Count = monitor.Violated, o.broken
		} else {
			v.Why += "; an acquire without an answer may have granted it the lock, too"
		}
	case o.changes == 0 && o.late > 0:
		v.Result, v.Say = monitor.Holds, func() string {
			return say.Count(o.late, "release or extension") + ", all refused as too late: none changed anything" + met()
		}
	case o.changes == 0:
		v.Why, v.Idle = "nobody released or extended the lock", l.grants == 0
	default:
		v.Result, v.Say = monitor.Holds, func() string {
			return say.Count(o.changes+o.late, "release or extension") + tooLate(o.late) + ", none provably of another's lock" + met()
		}
	}
	return v
}

// tooLate describes releases and extensions that were refused.
func tooLate(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s refused as too late)", say.Thousands(n))
}

// robbed returns the sentence about a change of another's lock.
func robbed(key history.Value, t *trespass, victim *owner) string {
	verb := "released"
	if t.x.Kind == history.Extend {
		verb = "extended"
	}
	lapse := ""
	if t.until < t.x.Call {
		lapse = fmt.Sprintf(" and lapsed at %s", say.At(t.until))
	}
	end := "never released it"
	if victim.rel.Kind != history.NoKind {
		end = "released it only at " + say.At(victim.rel.Call)
	}
	own := fmt.Sprintf("its own grant was of %s%s", say.At(t.acq.Return), lapse)
	if t.acq.Kind == history.NoKind {
		own = fmt.Sprintf("session %s did not hold it: it was not granted, or had been released", monitor.Session(&t.x))
	}
	return fmt.Sprintf("%s %s %s between %s and %s, but %s, and %s held the lock since %s%s and %s",
		say.Client(&t.x), verb, say.Titled("lock", key), say.At(t.x.Call), say.At(t.x.Return), own,
		say.Client(&victim.acq), say.At(victim.acq.Return), say.Via(&victim.acq), end)
}
