package locks

import (
	"slices"
	"sort"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// locks is the shared state of the monitors of locks. They judge the same operations in different ways, so the first
// monitor that sees an operation passes it to all parts in use, together with its session.
type locks struct {
	h         *history.Header
	keys      monitor.Keyed[lock]
	parts     []func(*locks, *lock) // opens the parts that a monitor needs of a lock
	active    []*lock               // busy ones with operations since their last complete advance
	entered   int64
	waters    []time.Duration // the arguments of Advance, rising
	calm      int             // the most operations of a lock that is not busy
	disturbed monitor.Disturbances
	ended     bool // the history was cut off

	free   monitor.FreeList[lockSession]
	spans  monitor.FreeList[monitor.Span]
	owners monitor.FreeList[owner]
	turns  monitor.FreeList[turn]
}

// lock is one lock. A part is nil when no monitor asked for it.
type lock struct {
	key      history.Value
	sessions sessions
	encounters
	last     time.Duration // the latest return
	ended    []use         // the last operations of sessions that are gone, as long as others may overlap with them
	shared   *use          // the first session whose operations by two clients overlapped
	seen     int           // operations
	active   bool
	advanced int // how many of locks.waters are applied

	cores  *cores
	owners *owners
	tokens *tokens
	line   *line
	turns  *turns
	linear *linearization
}

// lockMonitor is one property of all locks.
type lockMonitor struct {
	*locks
	seen     int64
	property variant.Property
	nothing  string
	judge    func(*lock, *locks) monitor.Verdict
}

// lockJudge makes a monitor of one property of locks. open opens the parts that it needs of a lock, judge judges it,
// and nothing says why there is no verdict without an operation on a lock. The monitors of one history share their
// sessions.
func lockJudge(p variant.Property, open func(*locks, *lock), judge func(*lock, *locks) monitor.Verdict, nothing string) func(*monitor.Shared) monitor.Monitor {
	return func(s *monitor.Shared) monitor.Monitor {
		ls := monitor.StateOf(s, variant.Lock, newLocks)
		ls.parts = append(ls.parts, open)
		return &lockMonitor{locks: ls, property: p, judge: judge, nothing: nothing}
	}
}

func newLocks(s *monitor.Shared) *locks {
	ls := &locks{h: s.Header, calm: s.Lazy(), disturbed: monitor.Disturbances{Redial: s.Header.Redial}}
	ls.keys = monitor.NewKeyed(func(key history.Value) *lock {
		l := &lock{key: key}
		for _, open := range ls.parts {
			open(ls, l)
		}
		return l
	})
	return ls
}

// Observe implements [monitor.Monitor].
func (m *lockMonitor) Observe(op *history.Op) {
	if m.seen++; m.seen > m.entered {
		m.entered = m.seen
		m.enter(op)
	}
}

// ObserveAll implements [monitor.Batcher].
func (m *lockMonitor) ObserveAll(ops []history.Op) {
	ops = monitor.Unseen(ops, &m.seen, &m.entered)
	for i := range ops {
		m.enter(&ops[i])
	}
}

// Advance implements [monitor.Monitor].
func (m *lockMonitor) Advance(lowWater time.Duration) { m.advance(lowWater) }

// Cut implements [monitor.CutAware].
func (m *lockMonitor) Cut(is bool) { m.ended = is }

// Verdict implements [monitor.Monitor].
func (m *lockMonitor) Verdict() monitor.Verdict {
	return m.keys.Verdict(variant.Lock, m.property, m.nothing, func(l *lock) monitor.Verdict { return m.judge(l, m.locks) })
}

func (ls *locks) enter(op *history.Op) {
	if op.Reason == history.Stopped && op.Kind != history.Acquire {
		return // nothing was asked, so that a lock that was to be released is still held
	}
	switch op.Kind {
	case history.Acquire, history.Extend, history.Release, history.Join:
		ls.operation(op)
	case history.Fault:
		if _, disturbs := ls.disturbed.Observe(op); disturbs {
			for _, l := range ls.keys.All {
				if l.turns != nil {
					l.turns.disturb(op.Call)
				}
			}
		}
	}
}

func (ls *locks) operation(op *history.Op) {
	l := ls.keys.At(op.Key)
	if l.seen <= ls.calm {
		ls.catchUp(l)
	}
	if l.seen++; l.seen > ls.calm && !l.active {
		l.active = true
		ls.active = append(ls.active, l)
	}
	l.last = max(l.last, op.Return)
	t := l.sessions.find(op.Arg)
	l.use(op, t)
	if t == nil && opens(op, l) {
		t = ls.free.Take()
		*t = lockSession{id: op.Arg, asked: t.asked[:0]}
		l.sessions.add(t)
	}
	l.observe(op, t)
	if t == nil {
		return
	}
	t.used = use{op.Arg, op.Client, op.Return}
	if t.over() {
		l.ended = append(l.ended, t.used)
		l.sessions.remove(t)
		ls.free.Give(t)
	}
}

// use is the last operation of a session so far.
type use struct {
	session history.Value
	client  int32
	ret     time.Duration
}

// use notes whether an operation overlaps with an earlier one of its session, by another client: then the order of their
// returns does not say which came first.
func (l *lock) use(op *history.Op, t *lockSession) {
	earlier := l.ended
	switch {
	case l.shared != nil || t == nil && op.Kind != history.Extend && op.Kind != history.Release:
		return
	case t != nil:
		earlier = []use{t.used}
	}
	if i := slices.IndexFunc(earlier, func(u use) bool { return u.session == op.Arg && u.client != op.Client && op.Call < u.ret }); i >= 0 {
		u := earlier[i]
		l.shared = &u
	}
}

// opens reports whether an unknown session begins with op.
func opens(op *history.Op, l *lock) bool {
	switch op.Kind {
	case history.Acquire:
		return op.Outcome != history.Refused
	case history.Join:
		return l.line != nil && op.Outcome == history.OK
	}
	return false
}

// observe hands an operation and its session to the parts.
func (l *lock) observe(op *history.Op, t *lockSession) {
	l.encounters.observe(op, t)
	if l.cores != nil {
		l.cores.observe(op, t)
	}
	if l.owners != nil {
		l.owners.observe(op, t)
	}
	if l.tokens != nil {
		l.tokens.observe(op)
	}
	if l.line != nil {
		l.line.observe(op, t)
	}
	if l.turns != nil {
		l.turns.observe(op, t)
	}
	if l.linear != nil {
		l.linear.observe(op, t)
	}
	if t != nil && op.Outcome == history.Unknown && (op.Kind == history.Acquire || op.Kind == history.Release) {
		t.doubtful = true
		t.unheard = t.unheard || op.Kind == history.Acquire
	}
}

// advance advances the busy locks with operations that their last advance did not pass.
func (ls *locks) advance(lowWater time.Duration) {
	if n := len(ls.waters); n > 0 && lowWater <= ls.waters[n-1] {
		return
	}
	ls.waters = append(ls.waters, lowWater)
	left := ls.active[:0]
	for _, l := range ls.active {
		l.advance(lowWater)
		if l.active = l.last >= lowWater; l.active {
			left = append(left, l)
		}
	}
	clear(ls.active[len(left):])
	ls.active = left
	if lowWater == history.Forever {
		for _, l := range ls.keys.All {
			if l.seen <= ls.calm {
				ls.catchUp(l)
			}
		}
	}
}

// catchUp advances a lock that is not busy as Advance would have done since its last operation, until it is advanced
// beyond that. Without overlaps, one step has the effect of several.
func (ls *locks) catchUp(l *lock) {
	waters := ls.waters[l.advanced:]
	l.advanced = len(ls.waters)
	if len(waters) == 0 || l.seen == 0 {
		return
	}
	beyond := sort.Search(len(waters)-1, func(i int) bool { return waters[i] > l.last })
	if l.single() {
		l.advance(waters[beyond])
		return
	}
	for _, w := range waters[:beyond+1] {
		l.advance(w)
	}
}

// single reports whether in every part at most one session holds the lock.
func (l *lock) single() bool {
	return len(l.open) <= 1 && (l.owners == nil || len(l.owners.open) <= 1) && (l.turns == nil || len(l.turns.live) <= 1)
}

func (l *lock) advance(lowWater time.Duration) {
	gone := 0 // they are in the order of their returns
	for gone < len(l.ended) && l.ended[gone].ret < lowWater {
		gone++
	}
	l.ended = l.ended[gone:]
	l.encounters.advance(lowWater)
	if l.cores != nil {
		l.cores.spans.Advance(lowWater)
	}
	if l.owners != nil {
		l.owners.advance(lowWater)
	}
	if l.tokens != nil {
		l.tokens.largest.Forget(lowWater)
	}
	if l.line != nil {
		l.line.advance(lowWater)
	}
	if l.turns != nil {
		l.turns.advance(lowWater)
	}
	if l.linear != nil {
		l.linear.advance(lowWater)
	}
}

// lockSession is the state of one session of a lock, by part, while it may still hold the lock or come back.
type lockSession struct {
	id    history.Value
	index int // in sessions.all
	used  use

	// Of encounters: a tenure in the strict sense, while place is not 0.
	client int32
	until  time.Duration
	place  int // index in encounters.open plus one
	asked  []asking

	// doubtful says that its acquire or its release had no answer, so that it may hold the
	// lock although its client does not think so.
	doubtful bool
	unheard  bool // its acquire had no answer
	// told is when its client learned from an extension that the lock is lost; 0: it did not.
	told time.Duration

	core   *monitor.Span // the promise to its client
	owner  *owner
	turn   *turn
	joined *history.Op
	leased time.Duration // of line: the end of the lease that was granted, 0 if it was over by then

	linear   *monitor.Span // the time implied by the answers
	lost     bool          // its acquire had no answer, and nothing shows that it succeeded
	lostCall time.Duration
	leaving  bool // a release of the lost one had no answer either
}

// over reports whether the session is no longer needed.
func (t *lockSession) over() bool {
	return t.core == nil && t.owner == nil && t.turn == nil && t.linear == nil && t.joined == nil && t.place == 0 && !t.doubtful && !t.lost && t.told == 0
}

// sessions holds the sessions of one lock that are needed, by their identities, numbers or texts. Usually they are few
// and searched in order; more are found by a hash.
type sessions struct {
	all   []*lockSession
	index map[history.Value]*lockSession
}

// fewSessions is how many sessions are searched in order.
const fewSessions = 8

func (s *sessions) find(id history.Value) *lockSession {
	if s.index != nil {
		return s.index[id]
	}
	for _, t := range s.all {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (s *sessions) add(t *lockSession) {
	t.index = len(s.all)
	s.all = append(s.all, t)
	switch {
	case s.index != nil:
		s.index[t.id] = t
	case len(s.all) > fewSessions:
		s.index = make(map[history.Value]*lockSession)
		for _, t := range s.all {
			s.index[t.id] = t
		}
	}
}

func (s *sessions) remove(t *lockSession) {
	last := len(s.all) - 1
	s.all[t.index] = s.all[last]
	s.all[t.index].index = t.index
	s.all[last] = nil
	s.all = s.all[:last]
	if s.index != nil {
		delete(s.index, t.id)
	}
}

// placed is what knows its place in a list, counted from 1; 0: it is in none.
type placed interface{ at() *int }

func (s *lockSession) at() *int { return &s.place }
func (s *owner) at() *int       { return &s.place }
func (o *turn) at() *int        { return &o.place }

// withdrawn is a list without one that was in it. The last takes its place.
func withdrawn[P placed](list []P, p P) []P {
	place, last := *p.at(), len(list)-1
	list[place-1] = list[last]
	*list[place-1].at() = place
	clear(list[last:])
	*p.at() = 0
	return list[:last]
}
