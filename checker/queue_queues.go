package checker

import (
	"time"

	"oversell/history"
	"oversell/variant"
)

// queues is what the monitors of task queues know. They ask different questions
// about the same operations, so they share one book of them, which whichever of
// them sees an operation first enters.
//
// A task is known by its id. An id may be enqueued again; what that means, each
// monitor says for itself. An operation takes 56 bytes in the book and a task
// about 170, which is not forgotten: a task may be lost or handed out again at
// any time.
type queues struct {
	h         *history.Header
	all       keyed[queue]
	crashes   map[int32][]history.Op // by client
	disturbed disturbances
	entered   int64
	ended     bool // the history was cut off
}

// queueMonitor is one property of all queues.
type queueMonitor struct {
	*queues
	seen     int64
	property variant.Property
	judge    func(*queue) Verdict
}

// queueMonitors are the monitors of task queues, with one book for all.
func queueMonitors(h *history.Header) []Monitor {
	qs := newQueues(h)
	return []Monitor{
		qs.monitor(variant.NoLostTask, (*queue).lost),
		qs.monitor(variant.NoDuplicateDelivery, (*queue).duplicates),
		qs.monitor(variant.EffectOnce, (*queue).effectsOnce),
		qs.monitor(variant.NotEarly, (*queue).early),
		qs.monitor(variant.InOrder, (*queue).inOrder),
		qs.monitor(variant.OneEntryPerID, (*queue).oneEntry),
		qs.monitor(variant.Progress, (*queue).progress),
		qs.monitor(variant.Linearizable, (*queue).linear),
	}
}

func newQueues(h *history.Header) *queues {
	qs := &queues{h: h, crashes: make(map[int32][]history.Op), disturbed: disturbances{redial: h.Redial}}
	qs.all = newKeyed(func(key history.Value) *queue {
		q := &queue{queues: qs, key: key, firstAsk: history.Forever, journal: make(map[int64][]int32)}
		q.sweep.q = q
		return q
	})
	return qs
}

func (qs *queues) monitor(p variant.Property, judge func(*queue) Verdict) *queueMonitor {
	return &queueMonitor{queues: qs, property: p, judge: judge}
}

// Observe implements [Monitor].
func (m *queueMonitor) Observe(op *history.Op) {
	if m.seen++; m.seen > m.entered {
		m.entered = m.seen
		m.enter(op)
	}
}

// Advance implements [Monitor].
func (m *queueMonitor) Advance(lowWater time.Duration) {
	for _, q := range m.all.all {
		q.sweep.advance(min(lowWater, q.firstAsk))
	}
}

func (m *queueMonitor) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *queueMonitor) Verdict() Verdict {
	return m.all.verdict(variant.Queue, m.property, "nothing was enqueued and nothing handed out", m.judge)
}

func (qs *queues) enter(op *history.Op) {
	switch op.Kind {
	case history.Enqueue, history.Pop, history.Dequeue, history.Effect:
		qs.all.at(op.Key).observe(op)
	case history.ReadState:
		if readsQueue(op) {
			qs.all.at(op.Key).read(op)
		}
	case history.Buy: // the effect of an order that came through a queue
		if qs.h.Scenario == "seckill-queued" {
			for _, q := range qs.all.all {
				if i := *q.index.at(op.Arg); i > 0 {
					q.observe(op)
				}
			}
		}
	case history.Fault:
		if op.Arg == crash {
			qs.crashes[op.Client] = append(qs.crashes[op.Client], *op)
		}
		qs.disturbed.observe(op)
	}
}

// The texts of final readings and faults.
var (
	crash     = history.Text("crash")
	isWaiting = history.Text("waiting")
	isClaimed = history.Text("claimed")
	isDead    = history.Text("dead")
	wasPopped = history.Text("popped")
	theAudit  = history.Text("audit")
	isFree    = history.Text("free")
	isHeld    = history.Text("held")
	isDone    = history.Text("done")
	theLast   = history.Text("last")
)

func readsQueue(op *history.Op) bool {
	switch op.Arg {
	case isWaiting, isClaimed, isDead, wasPopped, theAudit:
		return true
	}
	return false
}

// bookBits is the size of a page of the book: 256 operations.
const bookBits = 8

// queue is the book of one queue.
type queue struct {
	*queues
	key     history.Value
	records []*[1 << bookBits]record
	count   int32 // of records
	index   table[int32]
	tasks   []task

	puts, maybePuts, takes, pops, redelivered, effects, maybeEffects, again int64

	audit    audit
	asks     int64             // pops without an answer
	firstAsk time.Duration     // the earliest call of one
	journal  map[int64][]int32 // by request: what it took, as the final audit tells
	sweep    sweep
}

// audit is the final reading of what was still there.
type audit struct {
	started  bool
	complete bool
	listed   int64 // entries read
	want     int64 // entries there are
}

// record is an operation in the book.
type record struct {
	call, ret time.Duration
	due       time.Duration
	session   int64
	client    int32
	task      int32 // index in tasks
	next      int32 // the task's next record
	since     int32 // for the sweep
	attempt   int32
	kind      history.Kind
	outcome   history.Outcome
	reason    history.Reason
}

// end is the latest time at which it can have taken effect.
func (r *record) end() time.Duration {
	if r.outcome == history.Unknown {
		return history.Forever
	}
	return r.ret
}

// fresh tells whether it is an enqueue that did or may have done something.
func (r *record) fresh() bool {
	return r.kind == history.Enqueue && r.reason != history.Repeated
}

// task is what is known of a task id.
type task struct {
	id                              history.Value
	first, last                     int32 // its records; -1: none
	puts, maybePuts, repeats        int32 // enqueues: answered, not answered, without effect
	pops, takes                     int32 // deliveries, and first ones among them
	drops, maybeDrops               int32
	effects, repeated, maybeEffects int32
	done, maybeDone                 int32 // effects of any kind
	waiting, claimed, dead          int32 // in the audit
	delayed                         bool
}

func (q *queue) record(i int32) *record { return &q.records[i>>bookBits][i&(1<<bookBits-1)] }

func (q *queue) task(id history.Value) int32 {
	p := q.index.at(id)
	if *p == 0 {
		q.tasks = append(q.tasks, task{id: id, first: -1, last: -1})
		*p = int32(len(q.tasks))
	}
	return *p - 1
}

// add enters an operation, of task t or of none when t is negative.
func (q *queue) add(op *history.Op, t int32) *record {
	i := q.count
	if int(i>>bookBits) == len(q.records) {
		q.records = append(q.records, new([1 << bookBits]record))
	}
	q.count++
	r := q.record(i)
	*r = record{call: op.Call, ret: op.Return, due: op.Until, session: op.Session, client: op.Client, task: t, next: -1,
		attempt: op.Amount, kind: op.Kind, outcome: op.Outcome, reason: op.Reason}
	if t >= 0 {
		task := &q.tasks[t]
		if task.last >= 0 {
			q.record(task.last).next = i
		} else {
			task.first = i
		}
		task.last = i
	}
	return r
}

func (q *queue) observe(op *history.Op) {
	if op.Outcome == history.Refused && !(op.Kind == history.Pop && (op.Reason == history.Empty || op.Reason == history.Held)) &&
		!(op.Kind == history.Buy && op.Reason == history.SoldOut) {
		return // it did nothing, and tells nothing
	}
	if q.audit.started {
		q.moved()
	}
	switch op.Kind {
	case history.Enqueue:
		q.enqueue(op)
	case history.Pop:
		q.pop(op)
	case history.Dequeue:
		t := q.task(op.Arg)
		if op.Outcome == history.OK {
			q.tasks[t].drops++
		} else {
			q.tasks[t].maybeDrops++
		}
		q.add(op, t)
		q.sweep.call(op.Call, q.count-1)
	case history.Effect, history.Buy:
		q.effect(op)
	}
}

func (q *queue) enqueue(op *history.Op) {
	i := q.task(op.Arg)
	t := &q.tasks[i]
	q.add(op, i)
	if t.puts+t.maybePuts+t.repeats > 0 {
		q.again++
	}
	switch {
	case op.Outcome == history.Unknown:
		t.maybePuts++
		q.maybePuts++
	case op.Reason == history.Repeated:
		t.repeats++
		return
	default:
		t.puts++
		q.puts++
	}
	t.delayed = t.delayed || op.Until > 0
	q.sweep.call(op.Call, q.count-1)
}

func (q *queue) pop(op *history.Op) {
	switch {
	case op.Outcome == history.OK:
		i := q.task(op.Result)
		t := &q.tasks[i]
		t.pops++
		q.pops++
		if op.Amount <= 1 {
			t.takes++
			q.takes++
		} else {
			q.redelivered++
		}
		q.add(op, i)
	case op.Outcome == history.Unknown:
		q.asks++
		q.firstAsk = min(q.firstAsk, op.Call)
		q.add(op, -1)
	default:
		q.add(op, -1)
		if op.Reason == history.Held {
			return
		}
	}
	q.sweep.call(op.Call, q.count-1)
}

func (q *queue) effect(op *history.Op) {
	i := q.task(op.Arg)
	t := &q.tasks[i]
	switch {
	case op.Outcome == history.Unknown:
		t.maybeDone++
	default:
		t.done++
	}
	if op.Kind == history.Effect {
		switch {
		case op.Outcome == history.Unknown:
			t.maybeEffects++
			q.maybeEffects++
		case op.Reason == history.Repeated:
			t.repeated++
		default:
			t.effects++
			q.effects++
		}
	}
	q.add(op, i)
}

// read is a line of the final audit.
func (q *queue) read(op *history.Op) {
	if op.Outcome != history.OK {
		return
	}
	switch op.Arg {
	case wasPopped:
		q.journal[op.Session] = append(q.journal[op.Session], q.task(op.Result))
	case theAudit:
		q.audit.want, q.audit.complete = op.Result.Num()
	default:
		t := &q.tasks[q.task(op.Result)]
		switch op.Arg {
		case isWaiting:
			t.waiting++
		case isClaimed:
			t.claimed++
		case isDead:
			t.dead++
		}
	}
	if q.audit.started = true; op.Arg != theAudit {
		q.audit.listed++
	}
}

// moved notes that something went on after the audit, which makes it void.
func (q *queue) moved() {
	q.audit = audit{}
	for i := range q.tasks {
		t := &q.tasks[i]
		t.waiting, t.claimed, t.dead = 0, 0, 0
	}
}

// audited tells whether it is known what was there at the end.
func (q *queue) audited() bool {
	return q.audit.complete && q.audit.listed >= q.audit.want && !q.ended
}

// noAudit says why it is not.
func (q *queue) noAudit() string {
	switch {
	case q.ended:
		return cutOff
	case q.audit.complete:
		return "the final audit lists " + count(q.audit.listed) + " of " + many(q.audit.want, "entry")
	}
	return "there is no final audit of what was left"
}

// op is an operation as it was observed, as far as the book tells.
func (q *queue) op(r *record) history.Op {
	op := history.Op{Client: r.client, Amount: r.attempt, Kind: r.kind, Outcome: r.outcome, Reason: r.reason, Key: q.key,
		Session: r.session, Due: r.call, Call: r.call, Return: r.ret, Until: r.due}
	if r.task >= 0 {
		if id := q.tasks[r.task].id; r.kind == history.Pop {
			op.Result = id
		} else {
			op.Arg = id
		}
	}
	return op
}

// each calls f for every record of a task, in completion order.
func (q *queue) each(t *task, f func(*record)) {
	for i := t.first; i >= 0; {
		r := q.record(i)
		f(r)
		i = r.next
	}
}

// died is the crash that ended a client's work on what it took in r.
func (q *queue) died(r *record) (history.Op, bool) {
	for _, op := range q.crashes[r.client] {
		if op.Return >= r.call {
			return op, true
		}
	}
	return history.Op{}, false
}
