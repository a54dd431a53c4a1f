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

// duplicates judges that there is an enqueue between two deliveries of a task id: no enqueue is handed out twice.
//
// Deliveries of an id are points in their intervals, enqueues too, one without an
// answer at any time after its call. For every stretch of time: the deliveries that
// lie in it are at most one more than the enqueues that may; and from the
// beginning on, at most as many as the enqueues called by then. If that is broken, a task was surely handed out twice.
// A delivery that calls itself a repeated one counts: queues that redeliver do not make this promise. A pop without an
// answer delivered nothing. An opportunity is a pop that contended with another consumer's, where one of the two was
// handed a task; see [queues]. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  pop      [3, 4]  task 7
//	client 3  pop      [3, 5]  task 7
//
//	client 2  pop      [3, 4]  task 8
func (q *queue) duplicates() monitor.Verdict {
	var bad, announced int64
	var why string
	var witness []history.Op
	earliest := history.Forever
	for _, i := range q.doubted {
		t := q.tasks.At(i)
		if t.pops == 0 {
			continue
		}
		a, b := q.twice(t)
		if b == nil {
			continue
		}
		bad++
		if b.attempt > 1 || a != nil && a.attempt > 1 {
			announced++
		}
		if b.ret < earliest {
			earliest = b.ret
			why, witness = q.handedTwice(t, a, b)
		}
	}
	switch {
	case bad > 0 && q.Ended:
		return monitor.Undecided(why + "; but " + monitor.CutOff)
	case bad > 0:
		if bad > 1 || announced > 0 {
			why += fmt.Sprintf("; %s in all, %s of them announced as another attempt", say.Count(bad, "task"), say.Thousands(announced))
		}
		return monitor.Verdict{Result: monitor.Violated, Count: int(bad), Opportunities: q.races, Why: why, Witness: witness}
	case q.pops == 0:
		return monitor.Verdict{Why: "nobody was handed a task"}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: q.races, Why: fmt.Sprintf("%s, each after an enqueue of its own, in %s", deliveries(q.pops), say.Count(q.races, "contended pop"))}
}

// twice finds a delivery b of a task without an enqueue of its own, and an earlier one with which it shares one; a is
// nil if the task had not been enqueued.
func (q *queue) twice(t *task) (a, b *record) {
	puts := q.entries(t)
	if t.pops == 1 {
		q.each(t, func(r *record) {
			if r.kind == history.Pop && puts.by(r.ret) == 0 {
				b = r
			}
		})
		return nil, b
	}
	var pops []*record
	var calls []time.Duration
	q.each(t, func(r *record) {
		if r.kind == history.Pop {
			pops, calls = append(pops, r), append(calls, r.call)
		}
	})
	slices.Sort(calls)
	calls = slices.Compact(calls)
	stretches := newStretches(len(calls))
	for j, p := range pops {
		from, _ := slices.BinarySearch(calls, p.call)
		stretches.add(from, puts.over(p.call))
		if most, from := stretches.most(); most-1 > puts.by(p.ret) {
			i := slices.IndexFunc(pops, func(o *record) bool { return o.call == calls[from] })
			if i == j { // the last to return was called first
				return q.before(pops, j), p
			}
			return pops[i], p
		}
		if j+1 > puts.by(p.ret) {
			return pops[max(0, j-1)], p
		}
	}
	return nil, nil
}

// before returns the delivery that returned last before pops[j], which lies within it.
func (q *queue) before(pops []*record, j int) *record {
	for i := j - 1; i >= 0; i-- {
		if pops[i].call >= pops[j].call {
			return pops[i]
		}
	}
	return pops[max(0, j-1)]
}

// entries holds the enqueues of a task, each anywhere between its call and its end.
type entries struct {
	calls, ends []time.Duration // sorted
}

// entries lists the enqueues of a task that did or may have done something. An enqueue that was told that the task is
// there, although no other had been called, may have entered it itself: a request that reaches a server twice is
// answered twice. The list is valid until the next call.
func (q *queue) entries(t *task) *entries {
	told, out := (*record)(nil), &q.put
	out.calls, out.ends = out.calls[:0], out.ends[:0]
	q.each(t, func(r *record) {
		switch {
		case r.fresh():
			out.calls, out.ends = append(out.calls, r.call), append(out.ends, r.end())
		case r.kind == history.Enqueue && told == nil:
			told = r
		}
	})
	slices.Sort(out.calls)
	if told != nil && (len(out.calls) == 0 || told.ret < out.calls[0]) {
		out.calls, out.ends = append(out.calls, told.call), append(out.ends, told.ret)
		slices.Sort(out.calls)
	}
	slices.Sort(out.ends)
	return out
}

// by counts the enqueues that were called by a time.
func (e *entries) by(t time.Duration) int {
	n, _ := slices.BinarySearch(e.calls, t+1)
	return n
}

// over counts the enqueues that had ended before a time.
func (e *entries) over(t time.Duration) int {
	n, _ := slices.BinarySearch(e.ends, t)
	return n
}

// stretches counts, for stretches of time that begin with the call of a delivery and end
// now, the deliveries that lie in them and the enqueues that had ended before them. It is a
// tree over the beginnings: a stretch that begins earlier has all deliveries of a later one.
type stretches struct {
	leaves int
	sum    []int // of the deliveries called in the part
	top    []int // the largest count of a stretch that begins in the part, as if it ended with that
}

// noStretch is the count where no delivery begins.
const noStretch = -1 << 60

func newStretches(n int) *stretches {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	s := &stretches{leaves: leaves, sum: make([]int, 2*leaves), top: make([]int, 2*leaves)}
	for i := range s.top {
		s.top[i] = noStretch
	}
	return s
}

// add adds a delivery that was called at a beginning, before which so many enqueues ended.
func (s *stretches) add(from, over int) {
	i := s.leaves + from
	s.sum[i]++
	s.top[i] = over + s.sum[i]
	for i /= 2; i > 0; i /= 2 {
		s.sum[i] = s.sum[2*i] + s.sum[2*i+1]
		s.top[i] = max(s.top[2*i+1], s.top[2*i]+s.sum[2*i+1])
	}
}

// most returns the largest count, and the last beginning of a stretch that has it.
func (s *stretches) most() (n, from int) {
	i, rest := 1, 0
	n = s.top[1]
	for i < s.leaves {
		if i *= 2; s.top[i+1]+rest == n {
			i++
		} else {
			rest += s.sum[i+1]
		}
	}
	return n, i - s.leaves
}

func (q *queue) handedTwice(t *task, a, b *record) (string, []history.Op) {
	attempt := ""
	if b.attempt > 1 {
		attempt = fmt.Sprintf(" (as attempt %d)", b.attempt)
	}
	if a == nil {
		return fmt.Sprintf("task %s was handed to %s between %s and %s%s, and nobody had enqueued it by then", t.id, who(b), say.At(b.call), say.At(b.ret), attempt), []history.Op{q.op(b)}
	}
	witness := []history.Op{q.op(a), q.op(b)}
	how := "and not enqueued in between"
	q.each(t, func(r *record) {
		if len(witness) == 2 && r.fresh() {
			witness = append(witness, q.op(r))
		}
	})
	if t.puts+t.maybePuts == 1 {
		how = "and enqueued once"
	}
	return fmt.Sprintf("task %s was handed to %s between %s and %s and to %s between %s and %s%s, %s", t.id,
		who(a), say.At(a.call), say.At(a.ret), who(b), say.At(b.call), say.At(b.ret), attempt, how), monitor.InOrder(witness...)
}

// effectsOnce judges that a task that was enqueued once takes effect once, however often it is handed out: at no time
// are there more effects of an id not marked as repetitions than enqueues of that id called by then. A repetition says that
// the task had taken effect by then, and counts if no other effect of it was called before that returned. An opportunity is
// an effect of a task that was delivered while another consumer asked or, by several clients, delivered more than once
// or enqueued again. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  effect   [5, 6]  task 7
//	client 3  effect   [7, 8]  task 7
//
//	client 2  effect   [5, 6]  task 8
//
//	client 1  enqueue  [1, 2]  task 7
//	client 2  effect   [5, 6]  task 7  (repeated)
//	client 3  effect   [7, 8]  task 7
func (q *queue) effectsOnce() monitor.Verdict {
	var bad, doubtful, again int64
	opportunities := q.racedEffects
	var why string
	var witness []history.Op
	earliest := history.Forever
	for _, i := range q.doubted {
		t := q.tasks.At(i)
		again += int64(t.repeated)
		if t.raced || t.several && (t.pops > 1 || t.puts+t.maybePuts+t.repeats > 1) {
			opportunities += int64(t.effects + t.repeated)
		}
		if t.effects+t.maybeEffects == 0 {
			continue
		}
		done, allowed := q.tooMany(t, q.entries(t))
		switch {
		case done != nil:
		case t.effects+t.maybeEffects > max(1, t.puts+t.maybePuts):
			doubtful++
			continue
		default:
			continue
		}
		bad++
		last := done[allowed]
		if last.ret >= earliest {
			continue
		}
		earliest = last.ret
		ops := make([]history.Op, 0, len(done))
		for _, r := range done[:allowed+1] {
			ops = append(ops, q.op(r))
		}
		times := "once"
		if allowed > 1 {
			times = say.Thousands(allowed) + " times by then"
		}
		if allowed == 0 {
			why = fmt.Sprintf("task %s took effect by %s between %s and %s, and nobody had enqueued it by then", t.id, who(last), say.At(last.call), say.At(last.ret))
			witness = ops
			continue
		}
		prev := done[allowed-1]
		first := fmt.Sprintf("by %s between %s and %s", who(prev), say.At(prev.call), say.At(prev.ret))
		if prev.reason == history.Repeated {
			first = fmt.Sprintf("by %s, as %s was told", say.At(prev.ret), who(prev))
		}
		why = fmt.Sprintf("task %s, enqueued %s, took effect %s times: %s, and by %s between %s and %s", t.id, times, say.Thousands(len(done)),
			first, who(last), say.At(last.call), say.At(last.ret))
		witness = monitor.InOrder(ops[max(0, len(ops)-4):]...)
	}
	switch {
	case bad > 0 && q.Ended:
		return monitor.Undecided(why + "; but " + monitor.CutOff)
	case bad > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: int(bad), Opportunities: opportunities, Why: why, Witness: witness}
	case q.effects+q.maybeEffects == 0:
		return monitor.Verdict{Why: "no effect of a task is known"}
	case doubtful > 0:
		return monitor.Undecided(fmt.Sprintf("%s may have taken effect twice: not every effect was answered", say.Count(doubtful, "task")))
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: opportunities, Why: fmt.Sprintf("%s, none twice; %s told to be done already; %s could have been double",
		say.Count(q.effects, "effect"), say.Thousands(again), say.Thousands(opportunities))}
}

// tooMany lists the effects of a task, if one of them cannot have an enqueue of its own: when it had returned, only
// allowed enqueues had been called. The first may be a repetition that tells of an effect.
func (q *queue) tooMany(t *task, puts *entries) (done []*record, allowed int) {
	if t.effects == 0 || t.effects == 1 && t.repeated == 0 && len(puts.calls) > 0 && puts.calls[0] <= q.record(t.first).call {
		return nil, 0 // it began with its enqueue
	}
	var first *record       // the effect that returned first
	next := history.Forever // the earliest call of another
	q.each(t, func(r *record) {
		if r.kind != history.Effect {
			return
		}
		if r.outcome == history.OK && r.reason != history.Repeated {
			done = append(done, r)
		}
		switch {
		case first == nil:
			first = r
		case r.ret < first.ret:
			first, next = r, min(next, first.call)
		default:
			next = min(next, r.call)
		}
	})
	if first.outcome == history.OK && first.reason == history.Repeated && next > first.ret {
		done = slices.Insert(done, 0, first)
	}
	for n, r := range done {
		if allowed = puts.by(r.ret); n >= allowed {
			return done, allowed
		}
	}
	return nil, 0
}

// early judges that no task is handed out before it is due.
//
// A first delivery is surely too early if its return, with the drift that clocks may have added, lies before the
// earliest due time among its possible enqueues: those called by then, less those used up. An enqueue is surely used up
// if a later one had returned before the pop was called, and when that one was called as many first deliveries of the
// id had returned as there can have been enqueues; a queue that overwrites has replaced the entry, so that there the
// later enqueue alone is enough. An opportunity is an answered pop during which a task of
// another client was there that was not yet due. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7  due 10
//	client 2  pop      [3, 4]  task 7
func (q *queue) early() monitor.Verdict {
	bad, delayed := int64(0), q.waited
	var why string
	var witness []history.Op
	earliest := history.Forever
	strict, _ := q.sweep.outcome()
	for _, i := range q.doubted {
		t := q.tasks.At(i)
		if !t.delayed || t.takes == 0 {
			continue
		}
		var puts, pops []*record
		q.each(t, func(r *record) {
			switch {
			case r.fresh():
				puts = append(puts, r)
			case r.kind == history.Pop && r.attempt <= 1:
				pops = append(pops, r)
			}
		})
		slices.SortStableFunc(puts, func(a, b *record) int { return cmp.Compare(a.call, b.call) })
		sources := q.sources(puts, pops)
		for i, p := range pops {
			put := sources[i]
			if put == nil || put.due <= 0 {
				continue
			}
			if put.due > monitor.After(put.end(), q.h.Drift) {
				delayed++
			}
			if monitor.After(p.ret, q.h.Drift) >= put.due {
				continue
			}
			if bad++; p.ret < earliest {
				earliest = p.ret
				why = fmt.Sprintf("task %s was handed to %s between %s and %s, but was due only at %s (enqueued by %s by %s)", t.id,
					who(p), say.At(p.call), say.At(p.ret), say.At(put.due), who(put), say.At(put.ret))
				witness = monitor.InOrder(q.op(put), q.op(p))
			}
		}
	}
	switch {
	case bad > 0 && q.Ended:
		return monitor.Undecided(why + "; but " + monitor.CutOff)
	case bad > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: int(bad), Opportunities: strict.tooSoon + bad, Why: why, Witness: witness}
	case q.takes == 0:
		return monitor.Verdict{Why: "nobody was handed a task"}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: strict.tooSoon, Why: fmt.Sprintf("%s, %s of delayed tasks, none before it was due, in %s while a task was there that was not due",
		first(q.takes), say.Thousands(delayed), say.Count(strict.tooSoon, "pop"))}
}

// sources returns, for each delivery, the enqueue with the earliest due time among its possible ones; nil if there is
// none. puts are sorted by their calls, pops by their returns.
func (q *queue) sources(puts, pops []*record) []*record {
	var used []*record // that use up what had returned before their calls, once they have returned
	for i, e := range puts {
		taken := sort.Search(len(pops), func(j int) bool { return pops[j].ret >= e.call })
		if e.outcome != history.Unknown && (q.h.Overwrite || taken >= i) {
			used = append(used, e)
		}
	}
	slices.SortStableFunc(used, func(a, b *record) int { return cmp.Compare(a.ret, b.ret) })
	last := make([]time.Duration, len(used)+1) // the latest call of the first of them
	last[0] = monitor.Always
	for i, e := range used {
		last[i+1] = max(last[i], e.call)
	}
	ends := make([]time.Duration, len(puts))
	for i, e := range puts {
		ends[i] = e.end()
	}
	slices.Sort(ends)
	open := newDues(ends)
	out := make([]*record, len(pops))
	called := 0
	for i, p := range pops {
		for ; called < len(puts) && puts[called].call <= p.ret; called++ {
			open.add(puts[called])
		}
		n := sort.Search(len(used), func(j int) bool { return used[j].ret >= p.call })
		out[i] = open.first(last[n])
	}
	return out
}

// dues finds the enqueue that is due first among those that ended at some time or later. It is a
// binary indexed tree over the ends, the last one first.
type dues struct {
	ends []time.Duration // sorted
	tree []*record
}

func newDues(ends []time.Duration) *dues {
	return &dues{ends, make([]*record, len(ends)+1)}
}

// place returns how many ends are not before a time.
func (d *dues) place(end time.Duration) int {
	i, _ := slices.BinarySearch(d.ends, end)
	return len(d.ends) - i
}

func (d *dues) add(r *record) {
	for i := d.place(r.end()); i < len(d.tree); i += i & -i {
		if d.tree[i] == nil || r.due < d.tree[i].due {
			d.tree[i] = r
		}
	}
}

func (d *dues) first(end time.Duration) (out *record) {
	for i := d.place(end); i > 0; i -= i & -i {
		if r := d.tree[i]; r != nil && (out == nil || r.due < out.due || r.due == out.due && r.call < out.call) {
			out = r
		}
	}
	return out
}

// oneEntry judges that a queue holds at most one entry for each id: the final audit lists no id twice as waiting, and
// no request is handed one twice at once. A task that is claimed is not in the queue: its id may wait there again. The
// contents of the queue during the run are not observed, so they are not judged. An opportunity is an enqueue of an id that had been enqueued before, and that contended with another client's
// operation. The smallest bad history:
//
//	client 1  enqueue  [1, 2]  task 7
//	client 1  enqueue  [3, 4]  task 7
//	final audit: 7 waiting, 7 waiting
func (q *queue) oneEntry() monitor.Verdict {
	var bad int64
	var why string
	var witness []history.Op
	note := func(w string, ops ...history.Op) {
		if bad++; bad == 1 {
			why, witness = w, monitor.InOrder(ops...)
		}
	}
	for _, i := range q.doubted {
		t := q.tasks.At(i)
		if t.waiting > 1 && !q.Ended {
			var puts []history.Op
			q.each(t, func(r *record) {
				if r.fresh() && len(puts) < 4 {
					puts = append(puts, q.op(r))
				}
			})
			if len(puts) == 0 {
				puts = append(puts, history.Op{Kind: history.ReadState, Outcome: history.OK, Key: q.key, Arg: monitor.IsWaiting, Result: t.id})
			}
			note(fmt.Sprintf("the final audit lists task %s %s times as waiting; it was enqueued %s times", t.id, say.Thousands(t.waiting), say.Thousands(t.puts+t.maybePuts)), puts...)
		}
		if a, b := q.atOnce(t); a != nil {
			note(fmt.Sprintf("%s was handed task %s twice by one request, between %s and %s", who(a), t.id, say.At(a.call), say.At(a.ret)), q.op(a), q.op(b))
		}
	}
	switch {
	case bad > 0:
		return monitor.Verdict{Result: monitor.Violated, Count: int(bad), Opportunities: q.returned, Why: why, Witness: witness}
	case q.puts == 0:
		return monitor.Verdict{Why: "no task was enqueued for certain"}
	case !q.audited():
		return monitor.Undecided(q.noAudit())
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: q.returned, Why: fmt.Sprintf("%s enqueued, ids enqueued again %s, %s of these in contention; none is waiting twice",
		say.Count(q.puts, "task"), say.Times(q.again), say.Thousands(q.returned))}
}

// atOnce finds two deliveries of a task by one request.
func (q *queue) atOnce(t *task) (a, b *record) {
	if t.pops < 2 {
		return nil, nil
	}
	type request struct {
		session history.Value
		client  int32
		call    time.Duration
	}
	pops := make(map[request]*record)
	q.each(t, func(r *record) {
		if r.kind != history.Pop || r.session == (history.Value{}) || a != nil {
			return
		}
		of := request{r.session, r.client, r.call}
		if pops[of] != nil {
			a, b = pops[of], r
		}
		pops[of] = r
	})
	return a, b
}
