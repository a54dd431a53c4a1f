package locks

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// turns judges progress: while clients try, one of them obtains the lock within the lease plus a grace after it became
// free.
//
// The lock became free when the last session ended: at the return of its
// release, whatever the answer, or at the end of its lease if it was never
// released. A client whose acquire had no answer may have obtained the lock at
// any time until it gave up; the lease in the bound is then that of the lost
// grant. In the same way an extension without an answer may have prolonged the lease at
// any time until its client gave up, if the lease was not over when it was called.
// Clients try from the call to the return of an acquire, whatever its
// outcome, with pauses of up to a grace between two of them; a client that
// stopped because the run ended had been trying until then.
//
// A stall is a stretch longer than TTL + grace in which the lock was free, clients
// tried, and no grant can have happened. The smallest bad history, with a TTL
// of 10 and a grace of 1:
//
//	client 1  acquire  [1, 2]    ok
//	client 1  release  [3, 4]    ok
//	client 2  acquire  [5, 20]   refused (held)
//
// Time under faults of servers or of the wire does not count: a stall begins at the earliest when the last such fault
// before it had healed.
//
// The tries of a client that is still waiting are known only when its acquire returns.
// So a stall that ends with a grant is measured from the calls of the acquires that had
// returned by then, including the granted one.
//
// The end of a lease that is never released shows in the grant after it. If the last session was never released, and
// the whole run has no such grant, the verdict is unknown: the run ended too early.
//
// An opportunity is a grant that followed another client's: without an effect of the other's release or of the end of
// its lease, the lock would have been stuck.
type turns struct {
	h         *history.Header
	disturbed *monitor.Disturbances
	key       history.Value
	live      []*turn       // sessions that were not released and whose lease may not be over
	freeAt    time.Duration // the last session's end, among those that ended
	freed     history.Op    // what ended it
	tried     bool
	start     time.Duration // since when clients have been trying
	last      time.Duration // until when
	lastTry   history.Op
	grants    int64
	lost      int64         // acquires without an answer
	longest   time.Duration // the longest stretch free under tries that was not a stall
	stalls    []stall       // they do not overlap, the earliest first
	deserted  *turn         // the last session that was granted, if it was never released
	outlived  int64         // grants after a session that had not been released by then
	renews    bool
	spare     *monitor.FreeList[turn]
}

// turn is a session.
type turn struct {
	acq history.Op
	turnState
}

// turnState is the part of a turn that changes.
type turnState struct {
	number int64         // among those that were entered
	since  time.Duration // the time from which it may have held the lock
	until  time.Duration
	gone   time.Duration // when the lease must be over
	place  int           // index in turns.live plus one
	// released says that it was released, perhaps: the release had no answer.
	released bool
}

// kept reports whether the session was granted and never released.
func (o *turn) kept() bool { return o.acq.Outcome == history.OK && !o.released }

// lasts returns how long a session that was never released may have held the lock. If its section was long enough for a
// renewal in the background, it may have been renewed, which a dead client does not report.
func (o *turn) lasts(h *history.Header) time.Duration {
	if 4*h.Hold > h.TTL && o.kept() {
		return max(o.until, monitor.After(o.acq.Return, h.Hold, h.TTL))
	}
	return o.until
}

func openTurns(ls *locks, l *lock) {
	l.turns = &turns{h: ls.h, key: l.key, disturbed: &ls.disturbed, spare: &ls.turns}
}

func (t *turns) enliven(o *turn) {
	if o.place == 0 {
		t.live = append(t.live, o)
		o.place = len(t.live)
	}
}

func (t *turns) fade(o *turn) {
	if o.place == 0 {
		return
	}
	t.live = withdrawn(t.live, o)
}

// stall is a stretch without a grant. Later operations can only shorten it.
type stall struct {
	from, to    time.Duration
	freed, next history.Op
}

// judged reports whether the history gives a bound.
func (t *turns) judged() bool { return monitor.Bound(t.h) > 0 }

func (t *turns) observe(op *history.Op, s *lockSession) {
	switch op.Kind {
	case history.Acquire:
		t.acquire(op, s)
	case history.Extend:
		if s != nil && s.turn != nil {
			t.extend(op, s.turn)
		}
	case history.Release:
		if s != nil && s.turn != nil {
			t.release(op, s)
		}
	}
}

// disturb takes note of a fault that began at a time.
func (t *turns) disturb(from time.Duration) {
	t.shorten(from, func(s *stall) { s.from = t.disturbed.Calm(s.from, s.to) })
}

func (t *turns) acquire(op *history.Op, s *lockSession) {
	switch {
	case op.Outcome == history.OK:
		t.try(op)
		t.obtained(op, monitor.Granted(t.h, op))
		t.grants++
		until := monitor.Leased(op)
		t.enter(s, op, turnState{since: op.Return, until: until, gone: monitor.Expiry(t.h, op.Return, until)})
		t.enliven(s.turn)
		if t.deserted != nil {
			t.outlived++
		}
		t.deserted = s.turn
	case op.Outcome == history.Unknown:
		t.try(op)
		t.obtained(op, op.Call)
		t.lost++
		if s.turn == nil {
			t.enter(s, op, turnState{since: op.Call, until: op.Return, gone: history.Forever})
		}
	case op.Reason == history.Held, op.Reason == history.Stopped:
		t.try(op)
	}
}

func (t *turns) enter(s *lockSession, op *history.Op, o turnState) {
	if s.turn != nil { // a number used twice
		t.fade(s.turn)
	} else {
		s.turn = t.spare.Take()
	}
	o.number = t.grants + t.lost
	s.turn.acq, s.turn.turnState = *op, o
}

// try notes that a client tried from op.Call to op.Return.
func (t *turns) try(op *history.Op) {
	if !t.tried || op.Call > monitor.After(t.last, t.h.Grace) {
		t.start = op.Call
	}
	t.tried = true
	t.start = min(t.start, op.Call)
	if op.Return >= t.last {
		t.last = op.Return
		t.lastTry = *op
	}
}

// obtained notes that some client may have been granted the lock between from and
// op.Return.
func (t *turns) obtained(op *history.Op, from time.Duration) {
	t.shorten(from, func(s *stall) { s.to = min(s.to, from) })
	if t.short(from) { // as almost always
	} else if s, ok := t.unused(from); ok {
		s.next = *op
		if s.to-s.from > monitor.Bound(t.h) {
			t.stalls = append(t.stalls, s)
		} else {
			t.longest = max(t.longest, s.to-s.from)
		}
	}
	t.end(op.Return, op)
}

// unused returns the stretch up to a time in which the lock was free and clients tried.
func (t *turns) unused(to time.Duration) (stall, bool) {
	if t.short(to) {
		return stall{}, false
	}
	s := stall{from: max(t.freeAt, t.start), to: to, freed: t.freed}
	number := int64(-1)
	for i := len(t.live) - 1; i >= 0; i-- {
		o := t.live[i]
		until := o.lasts(t.h)
		switch {
		case until >= to:
			return s, false
		case until < t.freeAt: // and so for all times to come
			t.fade(o)
		case until > s.from, until == s.from && number >= 0 && o.number < number:
			s.from, s.freed, number = until, o.acq, o.number
		}
	}
	s.from = t.disturbed.Calm(s.from, s.to)
	return s, s.from < to
}

// short reports whether the stretch up to a time in which the lock may have been free is too short to examine the sessions.
func (t *turns) short(to time.Duration) bool {
	return !t.judged() || to-max(t.freeAt, t.start) <= min(monitor.Bound(t.h), t.longest)
}

// shorten applies later operations to the stalls found so far that ended at since or later.
func (t *turns) shorten(since time.Duration, f func(*stall)) {
	i := len(t.stalls)
	for i > 0 && t.stalls[i-1].to >= since {
		i--
		f(&t.stalls[i])
	}
	if i < len(t.stalls) {
		keep := slices.DeleteFunc(t.stalls[i:], func(s stall) bool { return s.to-s.from <= monitor.Bound(t.h) })
		t.stalls = t.stalls[:i+len(keep)]
	}
}

// held notes that a session may have held the lock until a time.
func (t *turns) held(o *turn, until time.Duration, by *history.Op) {
	t.shorten(o.since, func(s *stall) {
		if until > s.from {
			s.from, s.freed = until, *by
		}
	})
}

func (t *turns) end(when time.Duration, op *history.Op) {
	if when >= t.freeAt {
		t.freeAt, t.freed = when, *op
	}
}

func (t *turns) extend(op *history.Op, o *turn) {
	switch {
	case op.Outcome == history.OK:
		o.until, o.released = max(o.until, monitor.Leased(op)), false
		o.gone = max(o.gone, monitor.Expiry(t.h, op.Return, o.until))
	case op.Outcome == history.Unknown && (op.Call <= max(o.gone, o.lasts(t.h)) || t.h.Renews):
		o.until = max(o.until, op.Return)
		o.gone = max(o.gone, monitor.Expiry(t.h, op.Return, o.until))
	default:
		return
	}
	t.enliven(o)
	t.held(o, o.until, op)
}

func (t *turns) release(op *history.Op, s *lockSession) {
	o := s.turn
	if o.acq.Outcome == history.Unknown && op.Outcome != history.OK {
		return // it need not have held the lock
	}
	t.fade(o)
	if t.deserted == o {
		t.deserted = nil
	}
	t.renews = t.renews || op.Until > o.until && o.acq.Outcome == history.OK
	t.end(op.Return, op)
	t.held(o, op.Return, op)
	if op.Outcome == history.Unknown {
		o.until, o.released = op.Return, true
		return
	}
	t.spare.Give(o)
	s.turn = nil
}

func (t *turns) advance(lowWater time.Duration) {
	for i := len(t.live) - 1; i >= 0; i-- {
		if o := t.live[i]; o.lasts(t.h) <= lowWater { // no later grant can be earlier
			t.fade(o)
			t.end(o.lasts(t.h), &o.acq)
		}
	}
}

// progress returns the verdict on progress.
func (l *lock) progress(ls *locks) monitor.Verdict {
	oldest := history.Forever // of the sessions that were never released
	if l.turns.renews {
		for _, s := range l.sessions.all {
			if s.turn != nil && s.turn.kept() {
				oldest = min(oldest, s.turn.acq.Return)
			}
		}
	}
	v := l.turns.verdict(ls.ended, oldest, l.passes)
	v.Opportunities = l.passes
	return v
}

// verdict judges the stalls. Sessions that were never released hold the lock from oldest
// on if they may have been renewed in the background.
func (t *turns) verdict(cut bool, oldest time.Duration, passes int64) monitor.Verdict {
	h := t.h
	stalls := slices.Clone(t.stalls)
	tail, waiting := t.unused(t.last)
	if waiting && tail.to-tail.from > monitor.Bound(h) {
		tail.next = t.lastTry
		stalls = append(stalls, tail)
	}
	certain := len(stalls)
	stalls = slices.DeleteFunc(stalls, func(s stall) bool { return oldest <= s.to })
	switch {
	case monitor.Bound(h) <= 0:
		return monitor.Verdict{Why: "the history names neither a lease nor a grace"}
	case len(stalls) > 0 && cut:
		return monitor.Undecided(fmt.Sprintf("nobody seems to have obtained %s from %s to %s; %s", say.Titled("lock", t.key), say.At(stalls[0].from), say.At(stalls[0].to), monitor.CutOff))
	case len(stalls) > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: len(stalls), Why: stalls[0].why(t.key, h), Witness: monitor.InOrder(stalls[0].freed, stalls[0].next)}
	case certain > 0:
		return monitor.Undecided("nobody obtained the lock for long, but a session that was never released may have been renewed in the background")
	case t.tooRestless():
		return monitor.Verdict{Open: true, Why: fmt.Sprintf("nobody obtained %s from %s on, though clients kept trying; but no time without faults of servers or of the wire lasted %s",
			say.Titled("lock", t.key), say.At(t.freeAt), say.At(monitor.Bound(h)))}
	case t.grants == 0:
		return monitor.Verdict{Idle: true, Say: func() string {
			return fmt.Sprintf("nobody obtained %s, but clients tried for %s only", say.Titled("lock", t.key), say.At(max(0, t.last-t.start)))
		}}
	case passes == 0:
		return monitor.Verdict{Result: monitor.Holds, Say: func() string { return say.Count(t.grants, "grant") + ", none of them after another client's" }}
	}
	if o := t.deserted; o != nil && t.outlived == 0 && t.last > o.acq.Return {
		return monitor.Verdict{Open: true, Why: fmt.Sprintf("%s never released %s, which it was granted at %s, and nobody obtained it until the end of the run at %s: too early to tell whether it is ever free again",
			say.Client(&o.acq), say.Titled("lock", t.key), say.At(o.acq.Return), say.At(t.last))}
	}
	longest := t.longest
	if waiting {
		longest = max(longest, tail.to-tail.from)
	}
	return monitor.Verdict{Result: monitor.Holds, Say: func() string {
		return fmt.Sprintf("%s, %s after another client's; the longest time in which clients tried and nobody is known to have held it was %s", say.Count(t.grants, "grant"), say.Thousands(passes), say.At(longest))
	}}
}

// tooRestless reports whether the lock was free at the end, for too long and with clients trying, while faults kept
// disturbing the servers. Then it is undecidable whether the lock is stuck.
func (t *turns) tooRestless() bool {
	if len(t.disturbed.All) == 0 {
		return false
	}
	calm := t.disturbed
	t.disturbed = &monitor.Disturbances{}
	tail, waiting := t.unused(t.last)
	t.disturbed = calm
	return waiting && tail.to-tail.from > monitor.Bound(t.h)
}

func (s *stall) why(key history.Value, h *history.Header) string {
	since := "since the run began"
	switch {
	case s.freed.Kind == history.Release:
		since = fmt.Sprintf("after %s released it at %s", say.Client(&s.freed), say.At(s.freed.Return))
	case s.freed.Kind == history.Acquire && s.freed.Outcome == history.OK:
		since = fmt.Sprintf("after the lease of %s ended at %s", say.Client(&s.freed), say.At(monitor.Leased(&s.freed)))
	case s.freed.Kind == history.Acquire:
		since = fmt.Sprintf("after %s gave up without an answer at %s", say.Client(&s.freed), say.At(s.freed.Return))
	}
	return fmt.Sprintf("nobody obtained %s for %s, from %s to %s, %s, though clients kept trying; lease and grace are %s",
		say.Titled("lock", key), say.At(s.to-s.from), say.At(s.from), say.At(s.to), since, say.At(monitor.Bound(h)))
}
