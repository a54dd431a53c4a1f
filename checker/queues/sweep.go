package queues

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
)

// sweep goes through the operations of a queue in order of time and decides
// whether its answers fit one legal order. It is the streaming procedure of
// [oversell/checker], for due times that are not known exactly.
//
// The object is a set of task ids, each with the time at which it is due. A pop takes a
// task that is due, but not if another task in the set is surely due earlier; it may
// find nothing when no task in the set is surely due.
//
// The due time is the Until of the enqueue, as the queue keeps it, so that tasks
// compare exactly; those due at the same time are handed out in any order. Compared with the time of the run it is
// exact except for the drift that clocks may have. If an enqueue has no due time, its task is due at a time between its
// call and its return or, if it had no answer, at any time from its call on. If an enqueue had no answer and its client
// set the due time, the task is due at that time.
//
//   - core_y, open: from the return of y's enqueue to the call of the pop that took it.
//     During core_y, y is surely there. An enqueue without an answer has an empty core.
//   - P_x, closed: from the call of x's enqueue and of the pop that took it, and
//     from when it can be due, to the return of the pop. Somewhere in it x was taken.
//   - x is legal iff some moment of P_x lies in no core of a task surely due earlier:
//     iff the largest m over P_x is not surely due before x, with m(t) the smallest
//     latest due time of the cores round t. If x was handed out before it can have been
//     due, the due time does not delay the begin of P_x: besides the time, the order is
//     then wrong if a task due earlier was there.
//   - An empty answer is legal iff some moment of it lies in no core of a task
//     that is surely due.
//
// That is exact for ids that are enqueued once: choose for every x the earliest moment
// that is left. If x cannot be taken at once, the cores of earlier tasks block it, and
// these cores also block every task that x blocks.
//
// An id that is enqueued again is judged as a new task if what took the old one had
// returned by then, and as the same task if nothing had been called to take it: with
// its new due time where the run overwrites, else, or until the new enqueue has returned, with
// that of either. It is there all the time; without due times it is also due all the time, if the clocks agree. If its
// operations overlap otherwise, or if it is taken after it was enqueued again without an answer, it is tangled until
// all its enqueues are used up: it has no core, it may be taken in any order, and only the number of its deliveries
// is compared with that of its enqueues. That is sound, but no longer exact. The smallest bad history of a task that nobody took:
//
//	client 1  enqueue  [1, 2]    task 7  ok
//	client 2  pop      [5, 20]   refused (empty)
//	client 1  enqueue  [10, 30]  task 7  ok
//
// A pop without an answer may have taken anything at any time. The sweep waits at the
// call of the first one until the end, when the journal may tell what it took. If it
// does not, the sweep runs twice. The first run assumes that such pops took nothing,
// which is legal if any order is; the second assumes that they may have taken every
// missing task. What is illegal even in the second run is illegal for certain.
type sweep struct {
	q      *queue
	states monitor.Pages[state]
	calls  []event // not yet entered
	sorted int     // calls[:sorted] are
	head   int32   // the next record to return
	extra  []record
	now    time.Duration
	lax    bool // pops without an answer take the missing tasks
	asked  bool // such a pop was called

	cores    eventHeap // by the latest due time
	opens    eventHeap // when a task that is being taken can be due
	sights   eventHeap // when a task is surely due
	samples  []sample  // m at the moments that matter; times rise, m falls
	n        int32     // moments so far
	dirty    bool      // a task left or began since the last one
	visible  int       // cores of tasks surely due
	lastFree int32     // the last moment with none

	loose  int64 // tasks enqueued again that were not judged exactly
	judged int64 // deliveries that were
	found  [5]findings
	twice  int // deliveries that were found out of order and too early
	polls  polls

	latest  waiter // the task that is due last of those that are there, if it is known
	tooSoon int64  // answered pops during which a task of another client was there and not due
	choices int64  // first deliveries during whose call another task was there
}

// waiter is a task that is there from a time on.
type waiter struct {
	since, due time.Duration
	task       int32
	version    int32
}

// The kinds of violations.
const (
	outOfOrder = iota
	notEmpty
	fromNowhere
	tooEarly
	stalled
)

// findings are the violations of one kind.
type findings struct {
	count   int
	when    time.Duration
	why     string
	witness []history.Op
}

// event is an event of a record or a task at a time.
type event struct {
	when    time.Duration
	id      int32 // of a record, or of a task; negative: of an extra record
	version int32 // of the task
}

// sample is m at one moment.
type sample struct {
	n   int32
	put int32 // the enqueue that it belongs to
	m   time.Duration
}

// phase is the state of a task that is not tangled.
type phase uint8

const (
	absent   phase = iota
	entering       // being enqueued
	present        // enqueued
	anew           // being enqueued, and enqueued or being enqueued by another client
	gone           // taken while it was being enqueued
)

// state is the sweep's view of a task.
type state struct {
	lo, hi, sight time.Duration // when it can be due, must be due, and is seen to be
	put           int32         // its enqueue
	asked         int32         // the first moment at which it was being taken
	since         int32         // the first moment at which it can have been taken; 0: none so far
	credit        int32         // enqueues called less pops returned
	flying        int32         // known operations in flight
	version       int32
	phase         phase
	taking        bool // one pop or withdrawal is in flight
	core, seen    bool
	tangled       bool
	tainted       bool // for good
	perhaps       bool // it was enqueued again without an answer
	replaced      bool // anew: the enqueue replaces the entry that is there
}

// call enters the call of record i.
func (s *sweep) call(when time.Duration, i int32) {
	s.calls = append(s.calls, event{when: when, id: i})
}

func (s *sweep) record(i int32) *record {
	if i < 0 {
		return &s.extra[-i-1]
	}
	return s.q.record(i)
}

// advance takes all events before lowWater: at equal times first calls, then the takings that they
// allow, then returns, and then the moments from which tasks are surely due.
func (s *sweep) advance(lowWater time.Duration) {
	if s.sorted < len(s.calls) {
		slices.SortFunc(s.calls, func(a, b event) int { return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(a.id, b.id)) })
	}
	for s.states.Len() < s.q.tasks.Len() {
		s.states.Add()
	}
	i := 0
	for {
		begins, ends := history.Forever, history.Forever
		if i < len(s.calls) {
			begins = s.calls[i].when
		}
		opens := s.opens.first()
		for s.head < s.q.records.Len() && !s.returns(s.q.record(s.head)) {
			s.head++
		}
		if s.head < s.q.records.Len() {
			ends = s.q.record(s.head).ret
		}
		sights := s.sights.first()
		next := min(begins, opens, ends, sights)
		if next >= lowWater || next == history.Forever {
			break
		}
		s.now = next
		switch {
		case begins == next:
			s.begin(s.calls[i].id)
			i++
		case opens == next:
			s.open(s.opens.pop())
		default:
			s.sample()
			if ends == next {
				s.finish(s.q.record(s.head), s.head)
				s.head++
			} else {
				s.see(s.sights.pop())
			}
		}
	}
	s.calls = append(s.calls[:0], s.calls[i:]...)
	s.sorted = len(s.calls)
}

// returns reports whether the return of a record matters.
func (s *sweep) returns(r *record) bool {
	switch r.kind {
	case history.Enqueue, history.Dequeue:
		return r.outcome == history.OK && r.reason != history.Repeated
	case history.Pop:
		return true
	}
	return false
}

// begin handles the call of a record.
func (s *sweep) begin(i int32) {
	r := s.record(i)
	switch r.kind {
	case history.Enqueue:
		s.enter(i, r)
	case history.Dequeue:
		st := s.states.At(r.task)
		if r.outcome == history.Unknown {
			s.haunt(st)
		} else {
			s.leave(st, r.task)
		}
	case history.Pop:
		switch {
		case r.outcome == history.Refused:
			r.since, s.dirty = s.n+1, true
			return
		case r.outcome == history.Unknown:
			s.ask()
		case r.attempt > 1:
			if st := s.states.At(r.task); st.phase != absent {
				s.haunt(st) // it has been handed out before, at an unknown time
			}
		default:
			st := s.states.At(r.task)
			s.leave(st, r.task)
			s.choice(st, r)
		}
		if i >= 0 { // the journal shows which request took what, not when
			s.polls.hands++
		}
	}
}

// enter handles the call of an enqueue.
func (s *sweep) enter(i int32, r *record) {
	st := s.states.At(r.task)
	st.credit++
	known := r.outcome == history.OK
	if known {
		st.flying++
	}
	switch {
	case st.tangled:
	case st.phase == absent:
		st.put, st.phase = i, entering
		st.lo, st.hi, st.sight = s.window(r)
		if st.taking {
			s.take(st, r.task)
		}
	case st.phase == gone || st.taking:
		s.tangle(st)
	case known && !st.perhaps && s.record(st.put).outcome == history.OK:
		st.replaced = st.phase == present && s.q.h.Overwrite
		s.widen(st, r)
		st.put, st.phase = i, anew
	case st.core || known || s.record(st.put).outcome == history.OK: // it is there, or will be, whatever becomes of this one
		if !st.perhaps {
			st.perhaps = true
			s.loose++
		}
		s.widen(st, r)
		if known {
			st.put = i
		}
	default:
		s.tangle(st)
	}
}

// widen notes that a task may have the due time of another enqueue instead of its own.
func (s *sweep) widen(st *state, r *record) {
	there := st.core
	s.endCore(st)
	lo, hi, sight := s.window(r)
	st.lo, st.hi, st.sight = min(st.lo, lo), max(st.hi, hi), max(st.sight, sight)
	if there {
		s.startCore(st, r.task)
	}
}

// window returns when a task can be due, must be due, and is surely seen to be.
func (s *sweep) window(r *record) (lo, hi, sight time.Duration) {
	drift := s.q.h.Drift
	if r.due > 0 { // also of one without an answer, whose client set it
		return r.due, r.due, monitor.After(r.due, drift)
	}
	hi = monitor.After(r.end(), drift)
	if drift == 0 { // due from the moment on at which it was entered, whenever that was
		return r.call, hi, r.call
	}
	return r.call - drift, hi, hi
}

// leave handles the call of a pop or a withdrawal that took a task.
func (s *sweep) leave(st *state, task int32) {
	st.flying++
	switch {
	case st.tangled:
	case st.taking || st.phase == anew || st.phase == gone || st.perhaps:
		s.tangle(st)
	default:
		st.taking = true
		s.endCore(st)
		if st.phase != absent {
			s.take(st, task)
		}
	}
}

// choice counts a first delivery that is called while another task is there, surely due
// at another time.
func (s *sweep) choice(st *state, r *record) {
	if st.tangled || st.phase == absent {
		return
	}
	other, due := s.earliest()
	if other < 0 {
		return
	}
	x, y := s.record(st.put), s.record(other)
	if apart := due < st.lo || s.states.At(y.task).lo > st.hi; apart && (x.client != r.client || y.client != r.client) {
		s.choices++
	}
}

// ahead counts a pop that was answered while a task of another client was there that was
// not due.
func (s *sweep) ahead(r *record) {
	if w := s.latest; s.waits(w) && w.since < r.call && monitor.After(r.ret, s.q.h.Drift) < w.due && s.record(s.states.At(w.task).put).client != r.client {
		s.tooSoon++
	}
}

// waits reports whether a task is still there.
func (s *sweep) waits(w waiter) bool {
	return w.due > 0 && s.states.At(w.task).core && s.states.At(w.task).version == w.version
}

// take opens the time in which a task can have been taken.
func (s *sweep) take(st *state, task int32) {
	st.asked, s.dirty = s.n+1, true
	if from := st.lo - s.q.h.Drift; from > s.now {
		s.opens.push(event{from, task, st.version})
		return
	}
	st.since = st.asked
}

func (s *sweep) open(e event) {
	if st := s.states.At(e.id); st.taking && st.since == 0 && st.version == e.version && !st.tangled {
		st.since, s.dirty = s.n+1, true
	}
}

// startCore starts a core.
func (s *sweep) startCore(st *state, task int32) {
	st.core, st.phase = true, present
	s.cores.push(event{st.hi, task, st.version})
	if st.lo > s.latest.due || st.lo > 0 && !s.waits(s.latest) {
		s.latest = waiter{s.now, st.lo, task, st.version}
	}
	if st.sight > s.now {
		s.sights.push(event{st.sight, task, st.version})
		return
	}
	s.show(st)
}

func (s *sweep) see(e event) {
	if st := s.states.At(e.id); st.core && st.version == e.version {
		s.show(st)
	}
}

func (s *sweep) show(st *state) {
	st.seen = true
	if s.visible++; s.visible == 1 {
		s.polls.since = s.now
	}
}

// endCore ends a core.
func (s *sweep) endCore(st *state) {
	if !st.core {
		return
	}
	st.core, s.dirty = false, true
	st.version++
	if st.seen {
		st.seen = false
		s.visible--
	}
}

// tangle stops judging a task exactly.
func (s *sweep) tangle(st *state) {
	if !st.tangled {
		s.endCore(st)
		st.version++
		st.tangled, st.taking, st.perhaps, st.since = true, false, false, 0
		s.loose++
	}
}

func (s *sweep) haunt(st *state) {
	s.tangle(st)
	st.tainted = true
}

// settle ends a tangle when nothing is left of it.
func (s *sweep) settle(st *state) {
	if !st.tainted && st.flying == 0 && st.credit == 0 {
		st.tangled, st.phase = false, absent
	}
}

// ask handles the call of a pop without an answer. A task that is enqueued later may be taken by it, too.
func (s *sweep) ask() {
	if !s.lax || s.asked {
		return
	}
	s.asked = true
	for i := range s.states.Len() {
		if s.doubtful(i) {
			s.haunt(s.states.At(i))
		}
	}
}

// doubtful reports whether a pop without an answer can have taken a task. In a queue that hands tasks out again it can have
// taken any, which came back afterwards.
func (s *sweep) doubtful(task int32) bool {
	t := s.q.tasks.At(task)
	if s.q.handsOutAgain() {
		return true
	}
	known := t.takes + t.drops
	if s.q.audited() {
		known += t.waiting
	}
	return t.puts+t.maybePuts > known
}

// finish handles the return of a record.
func (s *sweep) finish(r *record, i int32) {
	switch r.kind {
	case history.Enqueue:
		s.entered(s.states.At(r.task), r.task)
	case history.Dequeue:
		s.left(s.states.At(r.task), r)
	case history.Pop:
		switch {
		case r.outcome == history.Refused:
			if r.reason == history.Empty && s.lastFree < r.since {
				s.wrongEmpty(r)
			}
			if r.reason == history.Empty {
				s.ahead(r)
			}
			s.poll(r)
			return
		case r.outcome == history.OK && r.attempt <= 1:
			s.ahead(r)
			s.left(s.states.At(r.task), r)
		}
		s.handed(r)
	}
}

// entered handles the return of an enqueue.
func (s *sweep) entered(st *state, task int32) {
	st.flying--
	switch {
	case st.tangled:
		s.settle(st)
	case st.phase == gone:
		st.phase = absent
	case st.phase == anew && st.flying > 0: // another one is under way
		if !st.core {
			s.startCore(st, task)
			st.phase = anew
		}
	case st.phase == anew:
		s.endCore(st)
		if !st.perhaps { // otherwise there may be more to take, with another due time
			st.credit = 1
			s.loose++
			if st.replaced {
				st.lo, st.hi, st.sight = s.window(s.record(st.put))
			}
		}
		s.startCore(st, task)
	case st.taking:
		st.phase = present
	case st.core: // it was there
	default:
		s.startCore(st, task)
	}
}

// left handles the return of a pop or a withdrawal that took a task.
func (s *sweep) left(st *state, r *record) {
	st.flying--
	if st.credit--; st.credit < 0 {
		st.credit = 0
		if !s.cameBack(r) {
			s.nowhere(r)
		}
		if !st.tangled {
			st.phase, st.taking = absent, false
		}
	} else if !st.tangled {
		s.taken(st, r)
	}
	if st.tangled {
		s.settle(st)
	}
}

// cameBack reports whether what was taken may have come back when an earlier claim ended: a delivery that has no number may
// be a later one.
func (s *sweep) cameBack(r *record) (back bool) {
	if !s.q.handsOutAgain() || r.kind == history.Pop && r.attempt > 0 {
		return false
	}
	s.q.each(s.q.tasks.At(r.task), func(o *record) {
		back = back || o.kind == history.Pop && o.outcome == history.OK && o != r && o.call <= r.ret
	})
	return back
}

// taken judges the order.
func (s *sweep) taken(st *state, r *record) {
	if r.kind == history.Pop {
		s.judged++
		from := st.since
		if from == 0 {
			s.wrongTime(st, r)
			from = st.asked
		}
		if top := s.most(from); top.m < st.lo {
			if s.wrongOrder(st, r, top.put); st.since == 0 {
				s.twice++
			}
		}
	}
	st.taking, st.since = false, 0
	st.version++
	if st.phase == entering && s.record(st.put).outcome == history.OK {
		st.phase = gone
	} else {
		st.phase = absent
	}
}

// sample notes m if it may have grown since the last time. It is called before
// each return, for a return can only make m smaller and more tasks due.
func (s *sweep) sample() {
	if !s.dirty {
		return
	}
	s.dirty = false
	s.n++
	if s.visible == 0 {
		s.lastFree = s.n
	}
	put, m := s.earliest()
	k := len(s.samples)
	for k > 0 && s.samples[k-1].m <= m {
		k--
	}
	s.samples = append(s.samples[:k], sample{s.n, put, m})
}

// earliest returns m now, and its enqueue.
func (s *sweep) earliest() (int32, time.Duration) {
	for len(s.cores) > 0 {
		e := s.cores[0]
		if st := s.states.At(e.id); st.core && st.version == e.version {
			return st.put, e.when
		}
		s.cores.pop()
	}
	return -1, history.Forever
}

// most returns the sample with the largest m from moment n on.
func (s *sweep) most(n int32) sample {
	i := sort.Search(len(s.samples), func(i int) bool { return s.samples[i].n >= n })
	return s.samples[i]
}

// end judges the pops without a return, which only the journal lists.
func (s *sweep) end() {
	s.advance(history.Forever)
	s.now = history.Forever
	s.sample()
	for i := range s.extra {
		r := &s.extra[i]
		s.left(s.states.At(r.task), r)
	}
}

// clone returns an independent copy of the sweep.
func (s *sweep) clone() *sweep {
	c := *s
	c.states, c.calls = s.states.Clone(), slices.Clone(s.calls)
	c.cores, c.opens, c.sights = slices.Clone(s.cores), slices.Clone(s.opens), slices.Clone(s.sights)
	c.samples, c.extra = slices.Clone(s.samples), slices.Clone(s.extra)
	return &c
}

// outcome is the sweep as if the history ended now: with pops without an answer
// that took nothing, and that may have taken the missing tasks.
func (s *sweep) outcome() (strict, lax *sweep) {
	if s.q.asks == 0 && len(s.calls) == 0 && s.head == s.q.records.Len() {
		return s, s
	}
	strict = s.clone()
	if s.q.asks == 0 {
		strict.end()
		return strict, strict
	}
	open := int64(0)
	for i := int32(0); i < s.q.records.Len(); i++ {
		r := s.q.record(i)
		if r.kind != history.Pop || r.outcome != history.Unknown {
			continue
		}
		took := s.q.journal[r.session]
		if len(took) == 0 {
			open++
		}
		for _, t := range took {
			x := *r
			x.task, x.outcome, x.ret, x.next = t.task, history.OK, history.Forever, -1
			strict.extra = append(strict.extra, x)
			strict.call(x.call, -int32(len(strict.extra)))
		}
	}
	strict.sorted = 0
	if open == 0 {
		strict.end()
		return strict, strict
	}
	lax = strict.clone()
	lax.lax = true
	strict.end()
	lax.end()
	return strict, lax
}

func (s *sweep) fail(kind int, why func() (string, []history.Op)) {
	f := &s.found[kind]
	if f.count++; f.count == 1 {
		f.when = s.now
		f.why, f.witness = why()
	}
}

func (s *sweep) wrongOrder(st *state, r *record, other int32) {
	s.fail(outOfOrder, func() (string, []history.Op) {
		q := s.q
		x, y, p := s.record(st.put), s.record(other), q.op(r)
		return fmt.Sprintf("%s was handed task %s, due %s, between %s and %s, while task %s was there, due %s, enqueued by %s by %s",
			say.Client(&p), q.tasks.At(r.task).id, st.due(), say.At(p.Call), say.At(p.Return), q.tasks.At(y.task).id, s.states.At(y.task).due(), who(y), say.At(y.ret)), monitor.InOrder(q.op(x), q.op(y), p)
	})
}

func (s *sweep) wrongEmpty(r *record) {
	s.fail(notEmpty, func() (string, []history.Op) {
		p := s.q.op(r)
		put, _ := s.earliest()
		if put < 0 {
			return fmt.Sprintf("%s was told between %s and %s that there was nothing to do, while there always was", say.Client(&p), say.At(p.Call), say.At(p.Return)), []history.Op{p}
		}
		y := s.record(put)
		return fmt.Sprintf("%s was told between %s and %s that there was nothing to do, while there was task %s, due %s, enqueued by %s by %s",
			say.Client(&p), say.At(p.Call), say.At(p.Return), s.q.tasks.At(y.task).id, s.states.At(y.task).due(), who(y), say.At(y.ret)), monitor.InOrder(s.q.op(y), p)
	})
}

func (s *sweep) nowhere(r *record) {
	s.fail(fromNowhere, func() (string, []history.Op) {
		p, t := s.q.op(r), s.q.tasks.At(r.task)
		verb := "was handed"
		if r.kind == history.Dequeue {
			verb = "withdrew"
		}
		why := "which nobody had enqueued"
		witness := []history.Op{p}
		s.q.each(t, func(o *record) {
			if (o.call != r.call || o.ret != r.ret || o.client != r.client) && o.kind == history.Pop && o.ret <= r.ret && o.ret < history.Forever {
				why = fmt.Sprintf("which had been handed to %s by %s and not been enqueued since", who(o), say.At(o.ret))
				witness = []history.Op{s.q.op(o), p}
			}
		})
		return fmt.Sprintf("%s %s task %s between %s and %s, %s", say.Client(&p), verb, t.id, say.At(p.Call), say.At(p.Return), why), monitor.InOrder(witness...)
	})
}

func (s *sweep) wrongTime(st *state, r *record) {
	s.fail(tooEarly, func() (string, []history.Op) {
		x, p := s.record(st.put), s.q.op(r)
		return fmt.Sprintf("%s was handed task %s between %s and %s, which was due only at %s", say.Client(&p), s.q.tasks.At(r.task).id, say.At(p.Call), say.At(p.Return), say.At(st.lo)), monitor.InOrder(s.q.op(x), p)
	})
}

// due describes when a task is due.
func (st *state) due() string {
	switch {
	case st.lo == st.hi:
		return "at " + say.At(st.lo)
	case st.hi < history.Forever:
		return fmt.Sprintf("between %s and %s", say.At(st.lo), say.At(st.hi))
	}
	return fmt.Sprintf("at %s or later", say.At(st.lo))
}

func who(r *record) string { return say.Client(&history.Op{Client: r.client}) }

// eventHeap holds events, the earliest first.
type eventHeap []event

func (h eventHeap) first() time.Duration {
	if len(h) == 0 {
		return history.Forever
	}
	return h[0].when
}

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	a := *h
	i := len(a) - 1
	for i > 0 {
		up := (i - 1) / 2
		if a[up].when <= e.when {
			break
		}
		a[i] = a[up]
		i = up
	}
	a[i] = e
}

func (h *eventHeap) pop() event {
	a := *h
	top, e := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	if len(a) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(a) {
			break
		}
		if down+1 < len(a) && a[down+1].when < a[down].when {
			down++
		}
		if a[down].when >= e.when {
			break
		}
		a[i] = a[down]
		i = down
	}
	a[i] = e
	return top
}
