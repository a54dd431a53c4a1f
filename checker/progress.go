package checker

import (
	"fmt"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// progress judges that, while clients try, somebody obtains the lock within the
// lease plus a grace of the moment at which it became free.
//
// The lock became free when the last session ended: at the return of its
// release, whatever the answer, or at the end of its lease if it was never
// released. A client whose acquire had no answer may have obtained the lock at
// any time until it gave up; the lease in the bound is then that of the lost
// grant. Clients try from the call to the return of an acquire, whatever its
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
// A time in which servers or the wire were broken on purpose does not count: a stall
// begins at the earliest when the last such fault before it had healed.
//
// The tries of a client that is still waiting are known only when it returns,
// so a stall that ends with somebody's grant is seen from the calls of those
// that had returned by then, the granted one included.
type progress struct {
	h         *history.Header
	locks     keyed[turns]
	disturbed disturbances
	ended     bool
}

type turns struct {
	disturbed *disturbances
	key       history.Value
	open      map[int64]*turn // sessions that were not released so far
	live      []*turn         // those of them whose lease may not be over
	freeAt    time.Duration   // the last session's end, among those that ended
	freed     history.Op      // what ended it
	tried     bool
	start     time.Duration // since when clients have been trying
	last      time.Duration // until when
	lastTry   history.Op
	grants    int64
	lost      int64 // acquires without an answer
	refusals  int64
	longest   time.Duration // the longest stretch free under tries that was no stall
	stalls    []stall
	renews    bool
}

// turn is a session.
type turn struct {
	acq   history.Op
	until time.Duration
	place int // index in turns.live plus one
}

// lasts is how long a session that was never released may have held the lock. When
// its section was long enough for a renewal in the background it may have been
// renewed, of which a client that died tells nothing.
func (o *turn) lasts(h *history.Header) time.Duration {
	if 4*h.Hold > h.TTL {
		return max(o.until, after(o.acq.Return, h.Hold, h.TTL))
	}
	return o.until
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
	last := len(t.live) - 1
	t.live[o.place-1] = t.live[last]
	t.live[o.place-1].place = o.place
	t.live[last] = nil
	t.live = t.live[:last]
	o.place = 0
}

// stall is a stretch without a grant. What comes to light later can only
// shorten it.
type stall struct {
	from, to    time.Duration
	freed, next history.Op
}

func newProgress(h *history.Header) *progress {
	m := &progress{h: h, disturbed: disturbances{redial: h.Redial}}
	m.locks = newKeyed(func(key history.Value) *turns {
		return &turns{key: key, open: make(map[int64]*turn), disturbed: &m.disturbed}
	})
	return m
}

// bound is how long a lock may be free while clients try: its lease, a grace, and
// the pause between two looks of a client that waits.
func bound(h *history.Header) time.Duration { return after(h.TTL, h.Grace, h.Retry) }

// Observe implements [Monitor].
func (m *progress) Observe(op *history.Op) {
	switch op.Kind {
	case history.Acquire:
		m.locks.at(op.Key).acquire(m.h, op)
	case history.Extend:
		m.locks.at(op.Key).extend(op)
	case history.Release:
		m.locks.at(op.Key).release(m.h, op)
	case history.Fault:
		if _, disturbs := m.disturbed.observe(op); disturbs {
			for _, t := range m.locks.all {
				t.shorten(m.h, func(s *stall) { s.from = m.disturbed.calm(s.from, s.to) })
			}
		}
	}
}

func (t *turns) acquire(h *history.Header, op *history.Op) {
	switch {
	case op.Outcome == history.OK:
		t.try(h, op)
		t.obtained(h, op, granted(h, op))
		t.grants++
		o := &turn{acq: *op, until: leased(op)}
		t.open[session(op)] = o
		t.enliven(o)
	case op.Outcome == history.Unknown:
		t.try(h, op)
		t.obtained(h, op, op.Call)
		t.lost++
	case op.Reason == history.Held, op.Reason == history.Stopped:
		t.refusals++
		t.try(h, op)
	}
}

// try notes that a client tried from op.Call to op.Return.
func (t *turns) try(h *history.Header, op *history.Op) {
	if !t.tried || op.Call > after(t.last, h.Grace) {
		t.start = op.Call
	}
	t.tried = true
	t.start = min(t.start, op.Call)
	if op.Return >= t.last {
		t.last = op.Return
		t.lastTry = *op
	}
}

// obtained notes that somebody can have been granted the lock from a time on,
// up to op.Return.
func (t *turns) obtained(h *history.Header, op *history.Op, from time.Duration) {
	t.shorten(h, func(s *stall) { s.to = min(s.to, from) })
	if s, ok := t.free(h, from); ok {
		s.next = *op
		if s.to-s.from > bound(h) {
			t.stalls = append(t.stalls, s)
		} else {
			t.longest = max(t.longest, s.to-s.from)
		}
	}
	t.end(op.Return, op)
}

// free is the stretch up to a time in which the lock was free and clients tried.
func (t *turns) free(h *history.Header, to time.Duration) (stall, bool) {
	s := stall{from: max(t.freeAt, t.start), to: to, freed: t.freed}
	if to-s.from <= min(bound(h), t.longest) {
		return s, false // not worth a look at the sessions
	}
	for _, o := range t.live {
		until := o.lasts(h)
		switch {
		case until >= to:
			return s, false
		case until > s.from, until == s.from && session(&o.acq) < session(&s.freed):
			s.from, s.freed = until, o.acq
		}
	}
	s.from = t.disturbed.calm(s.from, s.to)
	return s, s.from < to
}

// shorten applies what came to light to the stalls found so far.
func (t *turns) shorten(h *history.Header, f func(*stall)) {
	if len(t.stalls) == 0 {
		return
	}
	for i := range t.stalls {
		f(&t.stalls[i])
	}
	t.stalls = slices.DeleteFunc(t.stalls, func(s stall) bool { return s.to-s.from <= bound(h) })
}

func (t *turns) end(when time.Duration, op *history.Op) {
	if when >= t.freeAt {
		t.freeAt, t.freed = when, *op
	}
}

func (t *turns) extend(op *history.Op) {
	if o := t.open[session(op)]; o != nil && op.Outcome == history.OK {
		o.until = max(o.until, leased(op))
		t.enliven(o)
	}
}

func (t *turns) release(h *history.Header, op *history.Op) {
	o := t.open[session(op)]
	if o == nil {
		return
	}
	delete(t.open, session(op))
	t.fade(o)
	t.renews = t.renews || op.Until > o.until
	t.end(op.Return, op)
	t.shorten(h, func(s *stall) {
		if o.acq.Return <= s.to && op.Return > s.from {
			s.from, s.freed = op.Return, *op
		}
	})
}

// Advance implements [Monitor].
func (m *progress) Advance(lowWater time.Duration) {
	for _, t := range m.locks.all {
		for i := len(t.live) - 1; i >= 0; i-- {
			if o := t.live[i]; o.lasts(m.h) <= lowWater { // no grant to come can be earlier
				t.fade(o)
				t.end(o.lasts(m.h), &o.acq)
			}
		}
	}
}

func (m *progress) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *progress) Verdict() Verdict {
	return m.locks.verdict(variant.Lock, variant.Progress, "nobody tried to obtain the lock", func(t *turns) Verdict {
		return t.verdict(m.h, m.ended)
	})
}

func (t *turns) verdict(h *history.Header, cut bool) Verdict {
	stalls := slices.Clone(t.stalls)
	tail, waiting := t.free(h, t.last)
	if waiting && tail.to-tail.from > bound(h) {
		tail.next = t.lastTry
		stalls = append(stalls, tail)
	}
	certain := len(stalls)
	if t.renews {
		// A session that was never released may have been renewed for long.
		stalls = slices.DeleteFunc(stalls, func(s stall) bool {
			for _, o := range t.open {
				if o.acq.Return <= s.to {
					return true
				}
			}
			return false
		})
	}
	switch {
	case bound(h) <= 0:
		return Verdict{Why: "the history names neither a lease nor a grace"}
	case len(stalls) > 0 && cut:
		return Verdict{Why: fmt.Sprintf("nobody seems to have obtained %s from %s to %s; %s", title(t.key), at(stalls[0].from), at(stalls[0].to), cutOff)}
	case len(stalls) > 0:
		return Verdict{Result: Violated, Count: len(stalls), Why: stalls[0].why(t.key, h), Witness: inOrder(stalls[0].freed, stalls[0].next)}
	case certain > 0:
		return Verdict{Why: "nobody obtained the lock for long, but a session that was never released may have been renewed in the background"}
	case t.tooRestless(h):
		return Verdict{Why: fmt.Sprintf("nobody obtained %s from %s on, though clients kept trying; but the servers were never left in peace for %s",
			title(t.key), at(t.freeAt), at(bound(h)))}
	case t.grants == 0:
		return Verdict{Why: fmt.Sprintf("nobody obtained %s, but clients tried for %s only", title(t.key), at(max(0, t.last-t.start)))}
	}
	longest := t.longest
	if waiting {
		longest = max(longest, tail.to-tail.from)
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("%s; while clients tried, the lock was free for %s at the longest", many(t.grants, "grant"), at(longest))}
}

// tooRestless tells whether the lock was free in the end, for too long and with
// clients trying, at times in which servers were broken on purpose again and again:
// whether it is stuck, nobody can tell.
func (t *turns) tooRestless(h *history.Header) bool {
	if len(t.disturbed.all) == 0 {
		return false
	}
	calm := t.disturbed
	t.disturbed = &disturbances{}
	tail, waiting := t.free(h, t.last)
	t.disturbed = calm
	return waiting && tail.to-tail.from > bound(h)
}

func (s *stall) why(key history.Value, h *history.Header) string {
	since := "since the run began"
	switch {
	case s.freed.Kind == history.Release:
		since = fmt.Sprintf("after %s gave it back at %s", client(&s.freed), at(s.freed.Return))
	case s.freed.Kind == history.Acquire && s.freed.Outcome == history.OK:
		since = fmt.Sprintf("after the lease of %s ended at %s", client(&s.freed), at(leased(&s.freed)))
	case s.freed.Kind == history.Acquire:
		since = fmt.Sprintf("after %s gave up without an answer at %s", client(&s.freed), at(s.freed.Return))
	}
	return fmt.Sprintf("nobody obtained %s for %s, from %s to %s, %s, though clients kept trying; lease and grace are %s",
		title(key), at(s.to-s.from), at(s.from), at(s.to), since, at(bound(h)))
}
