package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/history"
)

var queueKey = history.Text("Queue:{run}orders")

func queueOp(kind history.Kind, client int32, task int64, call, ret time.Duration, outcome history.Outcome, reason history.Reason) history.Op {
	op := history.Op{Client: client, Kind: kind, Outcome: outcome, Reason: reason, Key: queueKey, Call: call, Return: ret}
	if kind == history.Pop {
		op.Result = history.Int(task)
	} else {
		op.Arg = history.Int(task)
	}
	return op
}

func enqueued(client int32, task int64, call, ret, due time.Duration) history.Op {
	return withUntil(queueOp(history.Enqueue, client, task, call, ret, history.OK, history.NoReason), due)
}

func popped(client int32, task int64, call, ret time.Duration) history.Op {
	op := queueOp(history.Pop, client, task, call, ret, history.OK, history.NoReason)
	op.Amount = 1
	return op
}

func nothingFor(client int32, call, ret time.Duration) history.Op {
	return queueOp(history.Pop, client, 0, call, ret, history.Refused, history.Empty)
}

func showTasks(h *history.Header, ops []history.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ttl %d, drift %d, grace %d\n", h.TTL, h.Drift, h.Grace)
	for _, op := range ops {
		fmt.Fprintf(&b, "  [%d..%d] client %d %s arg %s result %s amount %d session %s %s (%s) until %d\n", int64(op.Call), int64(op.Return), op.Client, op.Kind,
			op.Arg, op.Result, op.Amount, op.Session, op.Outcome, op.Reason, int64(op.Until))
	}
	return b.String()
}

// agree compares a monitor with an oracle over many histories. A Violated must always be right; exact says whether a
// Holds must be right too.
func agree(t *testing.T, mostUnknown float64, open func(*history.Header) Monitor, make func(*rand.Rand) (*history.Header, []history.Op),
	legal func(*history.Header, []history.Op) bool, exact func(Verdict) bool) {
	t.Helper()
	t.Parallel()
	var c crossCount
	missed := 0
	start := time.Now()
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 20240521))
		h, ops := make(r)
		v, w := feed(open(h), ops), feedAdvancing(open(h), ops)
		if v.Result != w.Result || v.Count != w.Count {
			t.Fatalf("seed %d: advancing changes the verdict from %v (%s) to %v (%s):\n%s", seed, v.Result, v.Why, w.Result, w.Why, showTasks(h, ops))
		}
		c.add(v)
		ok := legal(h, ops)
		switch {
		case v.Result == Violated && ok, v.Result == Holds && !ok && exact(v):
			t.Fatalf("seed %d: the monitor says %v (%s), the oracle says legal=%v\n%s", seed, v.Result, v.Why, ok, showTasks(h, ops))
		case v.Result == Holds && !ok:
			missed++
		}
	}
	t.Logf("%d histories in %v: %d hold, %d violated, %d unknown, %d missed %v", crossRuns(), time.Since(start).Round(time.Millisecond), c.holds, c.violated, c.unknown, missed, c.open)
	if c.holds == 0 || c.violated == 0 {
		t.Errorf("the generator makes only one kind of history: %+v", c)
	}
	if share := float64(c.unknown) / float64(crossRuns()); share > mostUnknown {
		t.Errorf("%.2f %% of the verdicts are unknown, more than %.2f %%", 100*share, 100*mostUnknown)
	}
}

func toTheLetter(Verdict) bool { return true }

// queueMix says what occurs in a generated history of a queue.
type queueMix struct {
	timed     bool // due times near the present, so that tasks become due; otherwise all are due before the first call
	lost      bool // enqueues without an answer
	asks      bool // pops without an answer
	withdraws bool
	again     bool // ids enqueued again
	audit     bool
}

// entry is a task in a simulated queue.
type entry struct {
	id  int64
	due time.Duration
}

// queueRun generates a history by simulating a correct queue, that overwrites: a new enqueue of an id replaces the
// old one. At most one corruption is applied.
func queueRun(r *rand.Rand, h *history.Header, n int, m queueMix, corrupt bool) []history.Op {
	people := make([]person, 2+r.IntN(4))
	for i := range people {
		people[i].free = 99
	}
	var ops []history.Op
	var in []entry
	var journal []history.Op
	now := time.Duration(100)
	tasks, unknowns, requests := int64(0), 0, int64(0)
	skew := func() time.Duration { return upTo(r, 2*int(h.Drift)) - h.Drift }
	at := func(id int64) int { return slices.IndexFunc(in, func(e entry) bool { return e.id == id }) }
	for tries := 0; len(ops) < n && tries < 20*n; tries++ {
		now += upTo(r, 2)
		i := r.IntN(len(people))
		p := &people[i]
		if p.free >= now {
			continue
		}
		op := history.Op{Client: int32(i), Key: queueKey, Outcome: history.OK, Call: max(p.free+1, now-upTo(r, 4)), Return: now + upTo(r, 4)}
		switch {
		case m.withdraws && len(in) > 0 && chance(r, 15):
			e := in[r.IntN(len(in))]
			op.Kind, op.Arg = history.Dequeue, history.Int(e.id)
			if m.lost && unknowns < 2 && chance(r, 20) {
				unknowns++
				op.Outcome = history.Unknown
				if chance(r, 50) {
					break
				}
			}
			in = slices.Delete(in, at(e.id), at(e.id)+1)
		case chance(r, 50):
			id := tasks + 1
			if m.again && tasks > 0 && chance(r, 40) {
				id = 1 + r.Int64N(tasks)
			}
			tasks = max(tasks, id)
			op.Kind, op.Arg = history.Enqueue, history.Int(id)
			due := 1 + upTo(r, 6)
			if m.timed {
				due = now + upTo(r, 8)
			}
			op.Until = due
			if m.timed && chance(r, 15) {
				due, op.Until = now, 0 // due at once; the due time is not recorded
			}
			if m.lost && unknowns < 2 && chance(r, 12) {
				unknowns++
				if op.Outcome = history.Unknown; chance(r, 50) {
					due, op.Until = now, 0 // the client did not record the due time
				}
				if chance(r, 40) {
					break
				}
			}
			if j := at(id); j >= 0 {
				in = slices.Delete(in, j, j+1)
			}
			in = append(in, entry{id, due})
		default:
			requests++
			op.Kind, op.Session = history.Pop, history.Int(requests)
			slices.SortFunc(in, func(a, b entry) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
			lost := m.asks && unknowns < 2 && chance(r, 15)
			if lost {
				unknowns++
				op.Outcome = history.Unknown
				if chance(r, 30) {
					break
				}
			}
			if len(in) == 0 || m.timed && in[0].due > now+skew() {
				if !lost {
					op.Outcome, op.Reason = history.Refused, history.Empty
				}
				break
			}
			if e := in[0]; lost {
				if chance(r, 50) {
					journal = append(journal, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: monitor.WasPopped, Session: history.Int(requests), Result: history.Int(e.id)})
				}
			} else {
				op.Result, op.Amount = history.Int(e.id), int32(r.IntN(2))
			}
			in = in[1:]
		}
		p.free = op.Return
		ops = append(ops, op)
	}
	if corrupt && len(ops) > 0 {
		i := r.IntN(len(ops))
		corruptQueue(r, &ops[i], tasks, m)
		inTurn(ops, i)
	}
	ops = complete(ops)
	end := ops[len(ops)-1].Return + 1
	if m.audit {
		if corrupt && chance(r, 20) {
			in = append(in, entry{id: 1 + r.Int64N(tasks+1)}) // perhaps a task that is not there, or that nobody enqueued
		}
		for _, e := range in {
			journal = append(journal, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: monitor.IsWaiting, Result: history.Int(e.id)})
		}
		journal = append(journal, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: monitor.TheAudit, Result: history.Int(int64(len(journal)))})
	}
	for i := range journal {
		journal[i].Call, journal[i].Return = end+2*time.Duration(i), end+2*time.Duration(i)+1
	}
	return append(ops, journal...)
}

func corruptQueue(r *rand.Rand, op *history.Op, tasks int64, m queueMix) {
	switch r.IntN(5) {
	case 0, 1:
		switch {
		case op.Kind == history.Pop && op.Outcome == history.Refused && tasks > 0:
			op.Outcome, op.Reason, op.Result = history.OK, history.NoReason, history.Int(1+r.Int64N(tasks))
		case op.Kind == history.Pop && op.Outcome == history.OK && chance(r, 50):
			op.Outcome, op.Reason, op.Result = history.Refused, history.Empty, history.Value{}
		case op.Kind == history.Pop && op.Outcome == history.OK:
			op.Result = history.Int(1 + r.Int64N(tasks))
		case op.Kind == history.Enqueue && op.Outcome == history.OK:
			op.Until = max(1, op.Until+upTo(r, 8)-4)
		}
	case 2:
		op.Call = max(100, op.Call-upTo(r, 6))
	case 3:
		op.Return += upTo(r, 6)
	case 4:
		if d := op.Return - op.Call; d > 1 {
			op.Call += time.Duration(r.Int64N(int64(d)))
		}
	}
}

// queueNoise generates a random history of a queue.
func queueNoise(r *rand.Rand, n int, m queueMix) []history.Op {
	people := make([]person, 2+r.IntN(3))
	for i := range people {
		people[i].free = 99 + upTo(r, 4)
	}
	var ops []history.Op
	tasks, unknowns, requests := int64(0), 0, int64(0)
	var left []int64
	var journal []history.Op
	for len(ops) < n {
		i := r.IntN(len(people))
		p := &people[i]
		op := history.Op{Client: int32(i), Key: queueKey, Outcome: history.OK}
		op.Call = p.free + 1 + upTo(r, 2)
		op.Return = op.Call + upTo(r, 6)
		switch {
		case chance(r, 45):
			tasks++
			id := tasks
			if m.again && chance(r, 40) {
				id = 1 + r.Int64N(tasks)
			}
			op.Kind, op.Arg = history.Enqueue, history.Int(id)
			op.Until = 1 + upTo(r, 5)
			if m.timed {
				op.Until = op.Call + upTo(r, 8)
			}
			if m.lost && unknowns < 2 && chance(r, 12) {
				unknowns++
				if op.Outcome = history.Unknown; chance(r, 50) {
					op.Until = 0 // the client did not record the due time
				}
			}
			left = append(left, id)
		case m.withdraws && len(left) > 0 && chance(r, 15):
			op.Kind = history.Dequeue
			j := r.IntN(len(left))
			op.Arg = history.Int(left[j])
			left = slices.Delete(left, j, j+1)
			if m.lost && unknowns < 2 && chance(r, 20) {
				unknowns++
				op.Outcome = history.Unknown
			}
		default:
			requests++
			op.Kind, op.Session = history.Pop, history.Int(requests)
			switch {
			case m.asks && unknowns < 2 && chance(r, 15):
				unknowns++
				op.Outcome = history.Unknown
				if len(left) > 0 && chance(r, 50) {
					j := r.IntN(len(left))
					journal = append(journal, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: monitor.WasPopped, Session: history.Int(requests), Result: history.Int(left[j])})
					left = slices.Delete(left, j, j+1)
				}
			case len(left) == 0 && !chance(r, 5), chance(r, 20):
				op.Outcome, op.Reason = history.Refused, history.Empty
			default:
				op.Result = history.Int(tasks + 1)
				if len(left) > 0 {
					j := r.IntN(len(left))
					op.Result = history.Int(left[j])
					if !chance(r, 4) {
						left = slices.Delete(left, j, j+1)
					}
				}
			}
		}
		p.free = op.Return
		ops = append(ops, op)
	}
	ops = complete(ops)
	end := ops[len(ops)-1].Return + 1
	for i := range journal {
		journal[i].Call, journal[i].Return = end+2*time.Duration(i), end+2*time.Duration(i)+1
	}
	return append(ops, journal...)
}

// queueStep is an operation in the form that the models use. It is written from the definition of the object in the
// comment of sweep.
type queueStep struct {
	op         history.Op
	takes      []int64       // what an unanswered pop took, according to the journal
	end        time.Duration // the tasks in takes were taken by then, as the journal shows
	stays      room          // nonzero for tasks that it did not take, because they are still there at the end
	lo, hi     time.Duration
	from, seen time.Duration // when it may be due at the earliest, and when it is surely due
}

// queueSteps translates recorded operations for the models.
func queueSteps(h *history.Header, ops []history.Op) []queueStep {
	var out []queueStep
	for _, op := range ops {
		s := queueStep{op: op, end: op.End()}
		switch {
		case op.Kind == history.ReadState && op.Arg == monitor.IsWaiting:
		case op.Kind == history.ReadState, op.Outcome == history.Refused && op.Reason != history.Empty:
			continue
		case op.Kind == history.Enqueue && op.Outcome == history.Unknown && op.Until == 0:
			s.lo, s.hi, s.from, s.seen = op.Call-h.Drift, history.Forever, monitor.Always, history.Forever
		case op.Kind == history.Enqueue && op.Until == 0:
			s.lo, s.hi, s.from, s.seen = op.Call-h.Drift, op.Return+h.Drift, monitor.Always, op.Return+h.Drift
		case op.Kind == history.Enqueue && op.Until > 0:
			s.lo, s.hi, s.from, s.seen = op.Until, op.Until, op.Until-h.Drift, op.Until+h.Drift
		case op.Kind == history.Pop && op.Outcome == history.Unknown:
			for _, line := range ops {
				id, _ := line.Result.Num()
				if line.Arg == monitor.WasPopped && line.Session == op.Session {
					s.takes, s.end = append(s.takes, id), min(s.end, line.Return)
				}
				if line.Arg == monitor.IsWaiting && untold(ops, id) == 1 {
					s.stays[id] = 1
				}
			}
		}
		if op.Kind == history.Enqueue && op.Until == 0 && h.Drift == 0 { // it is due when it is entered, whenever that is
			s.seen = monitor.Always
		}
		out = append(out, s)
	}
	return out
}

// untold returns how many enqueues of a task no answered pop or dequeue accounts for.
func untold(ops []history.Op, id int64) (n int) {
	for _, op := range ops {
		switch {
		case op.Kind == history.Enqueue && op.Arg == history.Int(id):
			n++
		case op.Kind == history.Pop && op.Outcome == history.OK && op.Result == history.Int(id),
			op.Kind == history.Dequeue && op.Outcome == history.OK && op.Arg == history.Int(id):
			n--
		}
	}
	return n
}

const modelTasks = 20

// room is the state of the models: for each task, the index of the enqueue that its entry is from, plus one; 0 means
// no entry.
type room [modelTasks]int8

// after returns the possible states after the step is executed at time now.
func (s *queueStep) after(steps []queueStep, in room, now time.Duration) []room {
	taskOf := func(v history.Value) int { n, _ := v.Num(); return int(n) }
	takes := func(in room, id int) (room, bool) {
		if in[id] == 0 {
			return in, false
		}
		x := &steps[in[id]-1]
		if now < x.from {
			return in, false
		}
		for y, e := range in {
			if y != id && e != 0 && steps[e-1].hi < x.lo {
				return in, false
			}
		}
		in[id] = 0
		return in, true
	}
	switch op := &s.op; {
	case op.Kind == history.ReadState:
		if in[taskOf(op.Result)] == 0 {
			return nil
		}
		return []room{in}
	case op.Kind == history.Dequeue:
		id := taskOf(op.Arg)
		if in[id] == 0 && op.Outcome == history.OK {
			return nil
		}
		out := in
		out[id] = 0
		if op.Outcome == history.Unknown {
			return []room{in, out}
		}
		return []room{out}
	case op.Kind == history.Pop && op.Outcome == history.Refused:
		for _, e := range in {
			if e != 0 && now > steps[e-1].seen {
				return nil
			}
		}
		return []room{in}
	case op.Kind == history.Pop && op.Outcome == history.OK:
		if out, ok := takes(in, taskOf(op.Result)); ok {
			return []room{out}
		}
		return nil
	case op.Kind == history.Pop && len(s.takes) > 0:
		for _, id := range s.takes {
			var ok bool
			if in, ok = takes(in, int(id)); !ok {
				return nil
			}
		}
		return []room{in}
	case op.Kind == history.Pop:
		outs := []room{in}
		for id := range in {
			if out, ok := takes(in, id); ok && s.stays[id] == 0 {
				outs = append(outs, out)
			}
		}
		return outs
	}
	panic("no step")
}

// legalQueue decides with porcupine, which knows no time: all due times must lie before the first call.
func legalQueue(h *history.Header, ops []history.Op) bool {
	steps := queueSteps(h, ops)
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{room{}} },
		Step: func(state, input, _ any) []any {
			i, in := input.(int), state.(room)
			s := &steps[i]
			if s.op.Kind == history.Enqueue {
				id, _ := s.op.Arg.Num()
				out := in
				out[id] = int8(i + 1)
				if in[id] != 0 && !h.Overwrite { // the entry may keep its old due time
					return []any{in, out}
				}
				return []any{out}
			}
			var outs []any
			for _, out := range s.after(steps, in, 1000) {
				outs = append(outs, out)
			}
			return outs
		},
		Equal: func(a, b any) bool { return a.(room) == b.(room) },
	}
	var list []porcupine.Operation
	for i, s := range steps {
		list = append(list, porcupine.Operation{ClientId: int(s.op.Client), Input: i, Call: int64(s.op.Call), Return: min(int64(s.end), linear.EndOfOpen)})
	}
	return porcupine.CheckOperations(model.ToModel(), list)
}

// legalTimed decides by trying every order, with each step at the earliest moment that is still possible.
func legalTimed(h *history.Header, ops []history.Op) bool {
	b := queueBrute{overwrite: h.Overwrite, steps: queueSteps(h, ops), seen: make(map[queueBruteState]bool)}
	for i, s := range b.steps {
		if s.op.Outcome != history.Unknown || len(s.takes) > 0 {
			b.needed |= 1 << i
		}
	}
	return b.search(queueBruteState{now: 0})
}

type queueBrute struct {
	overwrite bool
	steps     []queueStep
	needed    uint64
	seen      map[queueBruteState]bool
}

type queueBruteState struct {
	done uint64
	now  time.Duration
	in   room
}

func (b *queueBrute) search(s queueBruteState) bool {
	if s.done&b.needed == b.needed {
		return true
	}
	if b.seen[s] {
		return false
	}
	b.seen[s] = true
	for i := range b.steps {
		step := &b.steps[i]
		if s.done&(1<<i) != 0 {
			continue
		}
		n := s
		n.done |= 1 << i
		n.now = max(s.now, step.op.Call)
		if step.op.Kind == history.Pop && step.op.Outcome == history.OK {
			if id, _ := step.op.Result.Num(); n.in[id] != 0 {
				n.now = max(n.now, b.steps[n.in[id]-1].from)
			}
		}
		for _, id := range step.takes {
			if n.in[id] != 0 {
				n.now = max(n.now, b.steps[n.in[id]-1].from)
			}
		}
		if n.now > step.op.End() || b.waits(step, s.done) {
			continue
		}
		if step.op.Kind == history.Enqueue {
			id, _ := step.op.Arg.Num()
			if n.in[id] != 0 && !b.overwrite && b.search(n) { // the entry may keep its old due time
				return true
			}
			n.in[id] = int8(i + 1)
			if b.search(n) {
				return true
			}
			continue
		}
		for _, t := range b.moments(step, n) {
			for _, in := range step.after(b.steps, n.in, t) {
				if b.search(queueBruteState{n.done, t, in}) {
					return true
				}
			}
		}
	}
	return false
}

// waits reports whether this reading must wait for a pop that is not yet done: the journal showed before this reading
// that the pop took the task.
func (b *queueBrute) waits(read *queueStep, done uint64) bool {
	for i := range b.steps {
		if pop := &b.steps[i]; done&(1<<i) == 0 && read.op.Kind == history.ReadState && pop.op.Kind == history.Pop && pop.end < read.op.Call {
			if id, _ := read.op.Result.Num(); slices.Contains(pop.takes, id) {
				return true
			}
		}
	}
	return false
}

// moments returns the times worth trying: an unanswered pop may be executed later, when something is due.
func (b *queueBrute) moments(step *queueStep, n queueBruteState) []time.Duration {
	out := []time.Duration{n.now}
	if step.op.Kind == history.Pop && step.op.Outcome == history.Unknown && len(step.takes) == 0 {
		for _, e := range n.in {
			if e != 0 && b.steps[e-1].from > n.now {
				out = append(out, b.steps[e-1].from)
			}
		}
	}
	return out
}
