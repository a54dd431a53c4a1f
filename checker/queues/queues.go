package queues

import (
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// queues is the book of task queues.
//
// Only concurrent clients can break a queue's promises. Two answered operations of different clients on one queue
// contend if they overlap in time; a pop that found the queue locked counts, too, since only the lock stopped it. One
// client alone, or two at queues of their own, do not contend.
//
// A task is identified by its id. An id may be enqueued again; each monitor defines what that means. An operation takes
// some 15 bytes in the book, and so does a task, if nothing happened to it for a while. Neither is forgotten: a task may be lost
// or handed out again at any time.
type queues struct {
	monitor.Book[queue]
	h         *history.Header
	crashes   map[int32][]history.Op // by client
	disturbed monitor.Disturbances
}

// queueJudge makes a monitor of one property of task queues.
func queueJudge(p variant.Property, judge func(*queue) monitor.Verdict) func(*monitor.Shared) monitor.Monitor {
	return func(s *monitor.Shared) monitor.Monitor {
		qs := monitor.StateOf(s, variant.Queue, newQueues)
		return &monitor.Aspect[queue]{Book: &qs.Book, Of: variant.Queue, Property: p, Nothing: "nothing was enqueued and nothing handed out", Judge: judge}
	}
}

func newQueues(s *monitor.Shared) *queues {
	h := s.Header
	qs := &queues{h: h, crashes: make(map[int32][]history.Op), disturbed: monitor.Disturbances{Redial: h.Redial, Lease: h.TTL}}
	qs.All = monitor.NewKeyed(func(key history.Value) *queue {
		q := &queue{queues: qs, key: key, firstAsk: history.Forever, busy: -1, journal: make(map[history.Value][]entryRead),
			records: monitor.NewPages(packRecord), tasks: monitor.NewPages(packTask)}
		q.sweep.q, q.sweep.states = q, monitor.NewPages(packState)
		return q
	})
	qs.Enter = qs.observe
	qs.Settle = func(q *queue, lowWater time.Duration) { q.sweep.advance(min(lowWater, q.firstAsk)) }
	return qs
}

func (qs *queues) observe(op *history.Op) {
	switch op.Kind {
	case history.Enqueue, history.Pop, history.Dequeue, history.Effect:
		qs.All.At(op.Key).observe(op)
	case history.Ack:
		if op.Outcome != history.Refused {
			qs.All.At(op.Key).moved(op)
		}
	case history.ReadState:
		if readsQueue(op) {
			qs.All.At(op.Key).read(op)
		}
	case history.Buy: // the effect of an order that came through a queue
		if qs.h.Has(variant.Sale) {
			for _, q := range qs.All.All {
				if i := *q.index.At(op.Arg); i > 0 {
					q.observe(op)
				}
			}
		}
	case history.Fault:
		if op.Arg == monitor.Crash {
			qs.crashes[op.Client] = append(qs.crashes[op.Client], *op)
		}
		qs.disturbed.Observe(op)
	}
}

func readsQueue(op *history.Op) bool {
	switch op.Arg {
	case monitor.IsWaiting, monitor.IsClaimed, monitor.IsDead, monitor.WasPopped, monitor.TheAudit:
		return true
	}
	return false
}

// queue is the book of one queue.
type queue struct {
	*queues
	key     history.Value
	records monitor.Pages[record]
	index   monitor.Table[int32] // of an id: its task, plus one
	tasks   monitor.Pages[task]

	// doubted are the tasks that were at some time not plain, in the order in which that was seen: only these are looked
	// at one by one.
	doubted      []int32
	waited       int64 // deliveries of other tasks, which were enqueued before they were due
	racedEffects int64 // effects of other tasks of which a delivery contended with another pop

	puts, takes, pops, redelivered, effects, maybeEffects, again int64

	met       monitor.Contention
	pollers   monitor.Contention // pops
	consumers monitor.Contention // deliveries
	contended int64              // operations that changed or reported something
	served    int64              // deliveries
	races     int64              // contending pops of which one was handed a task
	returned  int64              // enqueues of ids that had been enqueued before

	audit   monitor.Audit
	hasty   bool        // an audit was read before all operations had ended
	inAudit []entryRead // the tasks that it lists
	// overlapped are the tasks that were read as waiting when only operations without an answer may have gone on.
	overlapped []entryRead
	busy       time.Duration                 // when the last operation ended
	asks       int64                         // pops without an answer
	firstAsk   time.Duration                 // the earliest call of one
	journal    map[history.Value][]entryRead // by request: what it took, by the final audit
	sweep      sweep
	put        entries // the last list of them
}

// entryRead is a task that a line of the final audit lists.
type entryRead struct {
	task int32
	when time.Duration // the line of the journal had ended, or any other was called
}

// record is an operation in the book.
type record struct {
	call, ret time.Duration
	due       time.Duration
	session   history.Value
	client    int32
	task      int32 // index in tasks
	next      int32 // the task's next record
	since     int32 // for the sweep
	attempt   int32
	kind      history.Kind
	outcome   history.Outcome
	reason    history.Reason
}

// end returns the latest time at which it can have taken effect.
func (r *record) end() time.Duration {
	if r.outcome == history.Unknown {
		return history.Forever
	}
	return r.ret
}

// fresh reports whether it is an enqueue that had or may have had an effect.
func (r *record) fresh() bool {
	return r.kind == history.Enqueue && r.reason != history.Repeated
}

// task is the record of a task id.
type task struct {
	id                              history.Value
	first, last                     int32 // its records; -1: none
	puts, maybePuts, repeats        int32 // enqueues: answered, not answered, without effect
	pops, takes                     int32 // deliveries, and first ones among them
	drops, maybeDrops               int32
	effects, repeated, maybeEffects int32
	stopped                         bool  // the run ended while a client had it
	done, maybeDone                 int32 // effects of any kind
	waiting, claimed, dead          int32 // in the audit
	delayed                         bool
	client                          int32
	several                         bool // clients other than client have had operations on it
	met                             bool // one of its operations was contended
	raced                           bool // a delivery of it contended with another pop
	waited                          bool // its delivery is among queue.waited
	early                           bool // it was handed out before it was due
	doubted                         bool // it is among queue.doubted
}

// plain reports whether a task surely breaks no promise about its own deliveries and effects, if its operations were
// added in this order: one enqueue, then at most one delivery, not before it is due, then at most one effect, all of
// them answered.
func (t *task) plain() bool {
	return t.puts == 1 && t.maybePuts == 0 && t.repeats == 0 &&
		t.pops <= 1 && t.takes == t.pops && t.drops == 0 && t.maybeDrops == 0 && !t.early &&
		t.done <= t.pops && t.effects <= t.done && t.repeated == 0 && t.maybeEffects == 0 && t.maybeDone == 0 && t.waiting <= 1
}

func (q *queue) record(i int32) *record { return q.records.At(i) }

func (q *queue) task(id history.Value) int32 {
	p := q.index.At(id)
	if *p == 0 {
		t := q.tasks.Add()
		*q.tasks.At(t) = task{id: id, first: -1, last: -1}
		*p = t + 1
	}
	return *p - 1
}

// add enters an operation, of task t or of none when t is negative.
func (q *queue) add(op *history.Op, t int32) *record {
	i := q.records.Add()
	r := q.record(i)
	*r = record{call: op.Call, ret: op.Return, due: op.Until, session: op.Session, client: op.Client, task: t, next: -1,
		attempt: op.Amount, kind: op.Kind, outcome: op.Outcome, reason: op.Reason}
	if t >= 0 {
		task := q.tasks.At(t)
		task.several = task.several || task.last >= 0 && task.client != op.Client
		task.client = op.Client
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
	if op.Kind == history.Effect && op.Reason == history.Stopped {
		q.tasks.At(q.task(op.Arg)).stopped = true
		return
	}
	if op.Outcome == history.Refused && !(op.Kind == history.Pop && (op.Reason == history.Empty || op.Reason == history.Held)) &&
		!(op.Kind == history.Buy && op.Reason == history.SoldOut) {
		return // it did nothing, and shows nothing
	}
	q.moved(op)
	meets := op.Outcome != history.Unknown && q.meets(op)
	switch op.Kind {
	case history.Enqueue:
		q.enqueue(op, meets)
	case history.Pop:
		q.pop(op, meets)
	case history.Dequeue:
		t := q.task(op.Arg)
		task := q.tasks.At(t)
		task.met = task.met || meets
		if op.Outcome == history.OK {
			task.drops++
		} else {
			task.maybeDrops++
		}
		q.add(op, t)
		q.look(t)
		q.sweep.call(op.Call, q.records.Len()-1)
	case history.Effect, history.Buy:
		q.effect(op)
	}
}

// meets reports whether an answered operation contends with one that ended before it.
func (q *queue) meets(op *history.Op) bool {
	switch op.Kind {
	case history.Pop:
		raced := false
		if op.Outcome == history.OK {
			raced = q.pollers.Overlaps(op.Client, op.Call)
			q.consumers.Add(op.Client, op.Return)
		} else {
			raced = q.consumers.Overlaps(op.Client, op.Call)
		}
		q.pollers.Add(op.Client, op.Return)
		if raced {
			q.races++
			if op.Outcome == history.OK {
				q.race(q.tasks.At(q.task(op.Result)))
			}
		}
	case history.Enqueue, history.Dequeue:
	default:
		return false
	}
	if !q.met.Meets(op.Client, op.Call, op.Return) {
		return false
	}
	if op.Reason != history.Held {
		q.contended++
	}
	return true
}

// race notes that a delivery of a task contended with another pop.
func (q *queue) race(t *task) {
	if !t.raced && !t.doubted {
		q.racedEffects += int64(t.effects)
	}
	t.raced = true
}

func (q *queue) enqueue(op *history.Op, meets bool) {
	i := q.task(op.Arg)
	t := q.tasks.At(i)
	q.add(op, i)
	t.met = t.met || meets
	if t.puts+t.maybePuts+t.repeats > 0 {
		if q.again++; meets {
			q.returned++
		}
	}
	switch {
	case op.Outcome == history.Unknown:
		t.maybePuts++
	case op.Reason == history.Repeated:
		t.repeats++
		q.look(i)
		return
	default:
		t.puts++
		q.puts++
	}
	q.look(i)
	t.delayed = t.delayed || op.Until > 0
	q.sweep.call(op.Call, q.records.Len()-1)
}

func (q *queue) pop(op *history.Op, meets bool) {
	switch {
	case op.Outcome == history.OK:
		i := q.task(op.Result)
		t := q.tasks.At(i)
		if meets {
			t.met = true
			q.served++
		}
		t.pops++
		q.pops++
		if op.Amount <= 1 {
			t.takes++
			q.takes++
		} else {
			q.redelivered++
		}
		q.add(op, i)
		if t.delayed && !t.doubted && t.plain() {
			q.timely(t, op)
		}
		q.look(i)
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
	q.sweep.call(op.Call, q.records.Len()-1)
}

func (q *queue) effect(op *history.Op) {
	i := q.task(op.Arg)
	t := q.tasks.At(i)
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
			if t.raced && !t.doubted {
				q.racedEffects++
			}
		}
	}
	q.add(op, i)
	q.look(i)
}

// timely notes whether the delivery of a plain task was early and, if not, whether the task was delayed at all.
func (q *queue) timely(t *task, op *history.Op) {
	put := q.record(t.first)
	t.early = monitor.After(op.Return, q.h.Drift) < put.due
	if t.waited = !t.early && put.due > monitor.After(put.end(), q.h.Drift); t.waited {
		q.waited++
	}
}

// look adds a task to the doubted ones if it is not plain.
func (q *queue) look(i int32) {
	t := q.tasks.At(i)
	if t.doubted || t.plain() {
		return
	}
	t.doubted = true
	q.doubted = append(q.doubted, i)
	if t.raced {
		q.racedEffects -= int64(t.effects)
	}
	if t.waited {
		t.waited = false
		q.waited--
	}
}

// read enters a line of the final audit. A reading that was called before all operations had ended may show an earlier
// state, and is not final; but the journal's entries stay true.
func (q *queue) read(op *history.Op) {
	if op.Outcome != history.OK {
		return
	}
	if op.Call <= q.busy && op.Arg != monitor.WasPopped {
		if q.hasty = true; op.Arg == monitor.IsWaiting {
			q.overlapped = append(q.overlapped, entryRead{q.task(op.Result), op.Call})
		}
		return
	}
	switch op.Arg {
	case monitor.WasPopped:
		q.journal[op.Session] = append(q.journal[op.Session], entryRead{q.task(op.Result), op.Return})
	case monitor.TheAudit:
		q.audit.Want, q.audit.Complete = op.Result.Num()
	default:
		i := q.task(op.Result)
		t := q.tasks.At(i)
		q.inAudit = append(q.inAudit, entryRead{i, op.Call})
		switch op.Arg {
		case monitor.IsWaiting:
			t.waiting++
			q.look(i)
		case monitor.IsClaimed:
			t.claimed++
		case monitor.IsDead:
			t.dead++
		}
	}
	if q.audit.Started = true; op.Arg != monitor.TheAudit {
		q.audit.Listed++
	}
}

// moved notes that operations continued, which makes an earlier audit void.
func (q *queue) moved(op *history.Op) {
	answered := op.Outcome != history.Unknown
	if answered {
		q.overlapped = q.overlapped[:0]
	}
	if q.busy = max(q.busy, op.Return); !q.audit.Started {
		return
	}
	q.audit, q.hasty = monitor.Audit{}, true
	for _, e := range q.inAudit {
		t := q.tasks.At(e.task)
		if t.waiting > 0 && !answered {
			q.overlapped = append(q.overlapped, e)
		}
		t.waiting, t.claimed, t.dead = 0, 0, 0
	}
	q.inAudit = q.inAudit[:0]
}

// audited reports whether the final state is known.
func (q *queue) audited() bool {
	return q.audit.Complete && q.audit.Listed >= q.audit.Want && !q.Ended
}

// noAudit says why it is not.
func (q *queue) noAudit() string {
	switch {
	case q.Ended:
		return monitor.CutOff
	case q.audit.Complete:
		return "the final audit lists " + say.Thousands(q.audit.Listed) + " of " + say.Count(q.audit.Want, "entry")
	case q.hasty:
		return "the audit of what was left is not final: it was read before all operations had ended; one without an answer ends when its client gives up or goes on"
	}
	return "there is no final audit of what was left"
}

// op rebuilds the observed operation of a record from the book.
func (q *queue) op(r *record) history.Op {
	op := history.Op{Client: r.client, Amount: r.attempt, Kind: r.kind, Outcome: r.outcome, Reason: r.reason, Key: q.key,
		Session: r.session, Due: r.call, Call: r.call, Return: r.ret, Until: r.due}
	if r.task >= 0 {
		if id := q.tasks.At(r.task).id; r.kind == history.Pop {
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

// died returns the crash that ended a client's work on the task that it took in r.
func (q *queue) died(r *record) (history.Op, bool) {
	for _, op := range q.crashes[r.client] {
		if op.Return >= r.call {
			return op, true
		}
	}
	return history.Op{}, false
}
