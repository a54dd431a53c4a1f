package monitor

import (
	"time"

	"oversell/history"
)

// Span is the stretch of time over which one session surely held the lock. Its owner decides which: for mutual
// exclusion it is the promise to the client, for linearizability the time that the answers imply.
type Span struct {
	Acq, Rel history.Op // the grant and, if it came, the release; otherwise one without a kind
	spanState
}

// spanState is the part of a span that changes.
type spanState struct {
	Number int64         // among the grants
	Start  time.Duration // the grant's return
	Until  time.Duration // as long as the span is open: it lasts until here unless it is closed before
	end    time.Duration // when closed: its end

	Closed  bool
	Leaving bool    // its release had no answer: from until on nothing is certain
	Void    bool    // so far empty: until <= start
	judged  bool    // compared with everything that started before it
	live    int     // index in overlaps.live plus one; 0: not in there
	after   []*Span // the spans that started after this one had lapsed, up to the first that is not void
	hit     *Span   // for a void span: the spans that it would have overlapped
	refs    int32   // the places that point here; it is reused at zero

	// For linearizability; see tryLock.
	From time.Duration // the earliest time of the grant
	Gone time.Duration // the latest time at which the lease can have run out
	Late bool          // an extension without an answer was called after gone
}

// Overlaps finds spans that overlap, in one pass and with memory for the open
// ones only.
//
// Two spans overlap when each starts strictly before the other ends. A span that ends
// when another starts does not overlap it: the end is a call (of a release), the start
// is a return (of a grant), and calls sort before returns at equal times, so the lock
// can change hands at that very instant. If a lease ended the span, neither holder
// owns that instant.
//
// Spans are opened in the order of their starts. A span can be compared with
// its predecessors only when every release called before its start is known,
// that is when lowWater has passed it; until then it waits in pending.
type Overlaps struct {
	pending []*Span
	head    int     // pending[:head] are done
	live    []*Span // judged, open, and not known to have lapsed
	holder  *Span   // of all judged and closed spans the one that ends last; nil if it no longer matters
	other   *Span   // the same, of those that are not of the holder's user; only with Same
	count   int     // spans that overlap an earlier one
	first   [2]*Span
	now     time.Duration // the latest return that is known
	Spare   *FreeList[Span]

	// Same, if there is one, reports whether two spans are of one user: these may overlap.
	Same func(a, b *Span) bool
}

// apart reports whether two spans must not overlap.
func (o *Overlaps) apart(a, b *Span) bool { return o.Same == nil || !o.Same(a, b) }

// closed returns the closed span that ends last, of those that must not overlap s.
func (o *Overlaps) closed(s *Span) *Span {
	if o.holder != nil && !o.apart(o.holder, s) {
		return o.other
	}
	return o.holder
}

func (o *Overlaps) drop(s *Span) {
	if s == nil {
		return
	}
	if s.refs--; s.refs == 0 {
		for _, n := range s.after {
			o.drop(n)
		}
		o.drop(s.hit)
		o.Spare.Give(s)
	}
}

func hold(s *Span) *Span {
	if s != nil {
		s.refs++
	}
	return s
}

// Start begins a span at op.Return that lasts until until. The caller ends it with Close.
func (o *Overlaps) Start(op *history.Op, number int64, until time.Duration) *Span {
	s := o.Spare.Take()
	s.Acq, s.Rel.Kind = *op, history.NoKind // cheaper than all of it
	s.spanState = spanState{Number: number, Start: op.Return, Until: until, Void: until <= op.Return, refs: 1}
	o.now = max(o.now, op.Return)
	if o.head == len(o.pending) && o.alone(s) {
		o.judge(s)
		return s
	}
	o.pending = append(o.pending, hold(s))
	return s
}

// alone reports whether no operation in flight can matter to the first span that is not judged, so that it can be
// judged now: all before it were closed when it started.
func (o *Overlaps) alone(s *Span) bool {
	return len(o.live) == 0 && (o.holder == nil || o.holder.end <= s.Start)
}

// Prolong moves the end of an open span. heldAt is a time at which the session is known to have held the lock, even if
// its lease was over.
func (o *Overlaps) Prolong(s *Span, heldAt, until time.Duration) {
	o.reach(s, heldAt)
	s.Until = max(s.Until, until, heldAt)
	if s.Void && s.Until > s.Start {
		o.fill(s)
	}
	if s.judged && s.live == 0 {
		o.enliven(s)
	}
}

// Weaken notes that an open span may be over from the call of rel on, because the
// outcome of rel is unknown.
func (o *Overlaps) Weaken(s *Span, rel *history.Op) {
	s.Rel, s.Leaving = *rel, true
	s.Until = min(s.Until, rel.Call)
}

// reach compares s, found to have lasted until end, with the spans that
// started when it was taken to have lapsed.
func (o *Overlaps) reach(s *Span, end time.Duration) {
	for len(s.after) > 0 && end > s.after[0].Start {
		n := s.after[0]
		s.after = s.after[1:]
		switch {
		case !o.apart(s, n):
		case !n.Void:
			o.found(s, n)
		case n.hit == nil:
			n.hit = hold(s)
		}
		o.drop(n)
	}
}

// Close ends a span for good. rel is the release, if that ended it.
func (o *Overlaps) Close(s *Span, end time.Duration, rel *history.Op) {
	s.Closed, s.end = true, end
	if rel != nil {
		s.Rel = *rel
		o.now = max(o.now, rel.Return)
	}
	if s.Void && end > s.Start {
		o.fill(s)
	}
	if s.judged {
		if s.live > 0 {
			o.fade(s)
		}
		o.reach(s, end)
		o.settle(s)
		for o.head < len(o.pending) && o.alone(o.pending[o.head]) {
			o.next()
		}
	}
	o.drop(s)
}

// next judges the first span that waits.
func (o *Overlaps) next() {
	s := o.pending[o.head]
	o.pending[o.head] = nil
	o.head++
	o.judge(s)
	o.drop(s)
	if o.head > 1024 && o.head*2 > len(o.pending) || o.head == len(o.pending) {
		n := copy(o.pending, o.pending[o.head:])
		clear(o.pending[n:])
		o.pending, o.head = o.pending[:n], 0
	}
}

// Advance compares every span that started before lowWater with its predecessors.
func (o *Overlaps) Advance(lowWater time.Duration) {
	for o.head < len(o.pending) && o.pending[o.head].Start < lowWater {
		o.next()
	}
}

// judge compares s with all spans that started before it. Closed spans end at their
// known end. Those that are open will be released later than s.start, if ever, so they
// last at least until their lease is over.
func (o *Overlaps) judge(s *Span) {
	s.judged = true
	var hit *Span
	if last := o.closed(s); last != nil && last.end > s.Start {
		hit = last
	}
	if s.Void { // it ends no lease, for it may have no effect
		for _, l := range o.live {
			if l.Until <= s.Start {
				l.after = append(l.after, hold(s))
			} else if hit == nil && o.apart(l, s) {
				hit = l
			}
		}
	}
	for i := 0; hit == nil && i < len(o.live) && !s.Void; {
		switch l := o.live[i]; {
		case l.Until <= s.Start: // lapsed
			l.after = append(l.after, hold(s))
			o.fade(l)
		case o.apart(l, s):
			hit = l
		default:
			i++
		}
	}
	switch {
	case hit != nil && s.Void:
		s.hit = hold(hit)
	case hit != nil:
		o.found(hit, s)
	}
	if s.Closed {
		o.settle(s)
	} else {
		o.enliven(s)
	}
}

// fill makes a span that was void a real one.
func (o *Overlaps) fill(s *Span) {
	s.Void = false
	if s.hit != nil {
		o.found(s.hit, s)
	}
}

func (o *Overlaps) found(a, b *Span) {
	o.count++
	if o.first[0] == nil {
		o.first = [2]*Span{hold(a), hold(b)}
	}
}

// settle remembers a closed span if it ends last, and if spans that are not judged may have started before its end.
func (o *Overlaps) settle(s *Span) {
	if s.end <= o.now && o.head == len(o.pending) {
		return
	}
	switch {
	case s.end <= s.Start:
	case o.holder == nil || s.end > o.holder.end:
		old := o.holder
		o.holder = hold(s)
		if old != nil && o.Same != nil && !o.Same(old, s) {
			old, o.other = o.other, old
		}
		o.drop(old)
	case o.Same != nil && !o.Same(o.holder, s) && (o.other == nil || s.end > o.other.end):
		old := o.other
		o.other = hold(s)
		o.drop(old)
	}
}

func (o *Overlaps) enliven(s *Span) {
	o.live = append(o.live, hold(s))
	s.live = len(o.live)
}

func (o *Overlaps) fade(s *Span) {
	i, last := s.live-1, len(o.live)-1
	o.live[i] = o.live[last]
	o.live[i].live = i + 1
	o.live[last] = nil
	o.live = o.live[:last]
	s.live = 0
	o.drop(s)
}

// Tally returns the number of spans that overlap an earlier one, and the first such
// pair, as if the history ended now. With cut, the releases of open spans may
// be missing, so that they do not count. It changes nothing.
func (o *Overlaps) Tally(cut bool) (n int, a, b *Span) {
	n, a, b = o.count, o.first[0], o.first[1]
	type ending struct {
		s   *Span
		end time.Duration
	}
	last, other := ending{end: -1 << 63}, ending{end: -1 << 63} // as holder and other
	add := func(e ending) {
		switch {
		case e.end > last.end:
			if last.s != nil && o.apart(last.s, e.s) {
				other = last
			}
			last = e
		case e.end > other.end && o.apart(last.s, e.s):
			other = e
		}
	}
	for _, s := range []*Span{o.holder, o.other} {
		if s != nil {
			add(ending{s, s.end})
		}
	}
	note := func(s *Span) {
		e := s.Until
		if s.Closed {
			e = s.end
		} else if cut && !s.Leaving {
			return
		}
		if e > s.Start {
			add(ending{s, e})
		}
	}
	for _, s := range o.live {
		note(s)
	}
	for _, s := range o.pending[o.head:] {
		before := last
		if last.s != nil && !o.apart(last.s, s) {
			before = other
		}
		if before.end > s.Start && !s.Void {
			n++
			if a == nil {
				a, b = before.s, s
			}
		}
		note(s)
	}
	return n, a, b
}
