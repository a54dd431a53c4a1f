package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// taskReturns judges that a task whose hold ended by its limit returns to the pool
// within a grace, as long as users keep asking.
//
// A hold that is not submitted before its limit ends there. A submit that is declined has no effect, so that the task must
// still return; only a late one that was asked shows that it has. Its task has returned when
// it is given to any user, when another user has done it, when the final audit lists it
// as free, or when a late submit is declined. It is stuck for certain when
//
//   - after the limit, a user who is known to be eligible for the task, because he was
//     given it once, is told that there is nothing to do; a grace later an eligible user
//     is told so again, before the task is given to anyone. Two refusals are needed
//     because the first request may be the one that makes the task return;
//   - or a user asked in vain after the limit, and a grace later the final audit still
//     lists the task as held;
//   - or a grace after the limit the final audit does not list the task at all, or lists it as done, though nobody can have
//     submitted it. Then it is gone, whether anybody asked or not.
//
// If the audit calls a task held a grace after its limit, and nobody asked, the verdict is unknown: the next request may be
// the one that makes it return.
//
// A Take without an answer may hold a task for good, so each such Take excuses one stuck
// task. A Submit without an answer may have finished its task; nothing is concluded
// about that task from then on. An audit that only counts tasks is used for what the
// count alone can show. An opportunity is a hold that ended by its limit and whose task
// is known to have returned or to be stuck. The smallest bad history, with a grace of 1:
//
//	client 1  take  [1, 2]    task 7  until 10
//	client 1  take  [12, 13]  refused (empty)
//	client 1  take  [15, 16]  refused (empty)
//
//	client 1  take   [1, 2]    task 7  until 10
//	reading   audit  [20, 21]  0 tasks
//
//	client 1  take    [1, 2]    task 7  until 10
//	client 1  submit  [3, 4]    task 7  refused
//	client 1  take    [12, 13]  refused (empty)
//	client 1  take    [15, 16]  refused (empty)
func taskReturns(s *monitor.Shared) monitor.Monitor {
	b := &monitor.Book[lendings]{All: monitor.NewKeyed(func(history.Value) *lendings {
		return &lendings{tasks: make(map[history.Value]*taskRecord), number: make(map[history.Value]int32), refused: make(map[history.Value][]history.Op)}
	})}
	b.Enter = func(op *history.Op) {
		switch op.Kind {
		case history.Take:
			b.All.At(op.Key).take(op)
		case history.Submit:
			b.All.At(op.Key).submit(op)
		case history.ReadState:
			switch op.Arg {
			case monitor.IsFree, monitor.IsHeld, monitor.IsDone, monitor.TheAudit, countsHeld:
				b.All.At(op.Key).look(op)
			}
		}
	}
	return aspect(b, variant.TaskReturns, func(l *lendings) monitor.Verdict { return l.verdict(s.Header.Grace, b.Ended) })
}

type lendings struct {
	tasks   map[history.Value]*taskRecord
	order   []*taskRecord
	takes   []timedHold
	number  map[history.Value]int32        // of a hold in takes
	refused map[history.Value][]history.Op // for lack of work, by user
	asked   []history.Op                   // the same of all users
	lost    int64                          // takes without an answer
	audit   monitor.Audit
	end     time.Duration // the last return
	read    time.Duration // the first call of the audit
	held    int64         // the number of tasks held, from an audit that counts
	counted bool
}

// timedHold is one hold.
type timedHold struct {
	take      history.Op
	submitted bool
	declined  bool          // a submit, after the limit
	when      time.Duration // of the submit that landed
}

// over returns the latest time at which the hold can have ended.
func (h *timedHold) over() time.Duration {
	if h.submitted {
		return min(monitor.Leased(&h.take), h.when)
	}
	return monitor.Leased(&h.take)
}

// taskRecord is the record of a task.
type taskRecord struct {
	task             history.Value
	takes            []int32
	done             time.Duration // the earliest call of a commit that landed
	maybeDone        bool
	free, held, over bool // in the audit
}

// countsHeld is the name under which an audit that only counts reports the tasks held.
var countsHeld = history.Text("count-held")

func (l *lendings) task(id history.Value) *taskRecord {
	t := l.tasks[id]
	if t == nil {
		t = &taskRecord{task: id, done: history.Forever}
		l.tasks[id] = t
		l.order = append(l.order, t)
	}
	return t
}

func (l *lendings) take(op *history.Op) {
	l.moved(op)
	switch {
	case op.Outcome == history.Unknown:
		l.lost++
	case op.Outcome == history.OK:
		t := l.task(op.Result)
		l.number[op.Session] = int32(len(l.takes))
		t.takes = append(t.takes, int32(len(l.takes)))
		l.takes = append(l.takes, timedHold{take: *op})
	case op.Reason == history.Empty:
		l.refused[op.Arg] = append(l.refused[op.Arg], *op)
		l.asked = append(l.asked, *op)
	}
}

func (l *lendings) submit(op *history.Op) {
	if op.Reason == history.Stopped {
		return // nothing was asked
	}
	l.moved(op)
	i, ok := l.number[op.Session]
	if !ok || l.takes[i].take.Result != op.Arg { // the hold is not of this task: its effect is not known
		if t := l.task(op.Arg); op.Outcome != history.Refused {
			t.maybeDone = true
		}
		if ok {
			l.task(l.takes[i].take.Result).maybeDone = true
		}
		return
	}
	h := &l.takes[i]
	t := l.task(op.Arg)
	switch op.Outcome {
	case history.OK:
		if !h.submitted || op.Call < h.when {
			h.submitted, h.when = true, op.Call
		}
		t.done = min(t.done, op.Call)
	case history.Refused:
		h.declined = h.declined || op.Call > monitor.Leased(&h.take)
	case history.Unknown:
		t.maybeDone = true
	}
}

func (l *lendings) look(op *history.Op) {
	if op.Outcome != history.OK || op.Call <= l.end {
		return // it may have read an earlier state
	}
	if !l.audit.Started {
		l.audit.Started, l.read = true, op.Call
	}
	switch op.Arg {
	case monitor.TheAudit:
		l.audit.Want, l.audit.Complete = op.Result.Num()
		return
	case countsHeld:
		l.held, l.counted = op.Result.Num()
		return
	}
	l.audit.Listed++
	t := l.task(op.Result)
	switch op.Arg {
	case monitor.IsFree:
		t.free = true
	case monitor.IsHeld:
		t.held = true
	case monitor.IsDone:
		t.over = true
	}
}

// moved notes that operations continued after an audit, which makes the audit void.
func (l *lendings) moved(op *history.Op) {
	if l.end = max(l.end, op.Return); !l.audit.Started {
		return
	}
	l.audit, l.counted = monitor.Audit{}, false
	for _, t := range l.order {
		t.free, t.held, t.over = false, false, false
	}
}

// stuck describes a task that did not return.
type stuck struct {
	task    history.Value
	why     string
	witness []history.Op
}

// returns counts the holds by what became of them.
type returns struct {
	submitted, lapsed int64
	shown             int64         // lapsed, and the task returned
	current           int64         // may not have ended at the audit
	unheard           int64         // may have been submitted
	open              int64         // lapsed, and nothing more is known
	idle              int64         // lapsed, still held at the audit, and nobody asked
	limit             time.Duration // the last of the open ones
	last              *history.Op
	bad               []stuck
}

func (l *lendings) verdict(grace time.Duration, cut bool) monitor.Verdict {
	audited := l.audit.Complete && l.audit.Listed >= l.audit.Want && !cut
	var r returns
	for _, t := range l.order {
		l.judgeAll(t, grace, audited, &r)
	}
	l.count(grace, cut, &r)
	switch {
	case len(l.takes) == 0:
		return monitor.Verdict{Why: nothingTaken}
	case len(r.bad) > 0 && cut:
		return monitor.Undecided(r.bad[0].why + "; but " + monitor.CutOff)
	case int64(len(r.bad)) > l.lost:
		return monitor.Verdict{Result: monitor.Violated, Count: len(r.bad), Opportunities: r.shown + int64(len(r.bad)), Why: stuckTasks(r.bad), Witness: r.bad[0].witness}
	case len(r.bad) > 0:
		return monitor.Undecided(fmt.Sprintf("%s; but %s without an answer may hold as many tasks", r.bad[0].why, say.Count(l.lost, "request")))
	case r.idle > 0:
		return monitor.Undecided(fmt.Sprintf("the final audit at %s calls %s held long after the limit, and nobody asked since, so it is not known whether a request would have got one", say.At(l.read), say.Count(r.idle, "task")))
	case r.open > 0 && r.shown == 0:
		return monitor.Undecided(fmt.Sprintf("%s ended by the limit, and whether a task returned is not known: nobody asked for long enough, and there is no final audit that tells", say.Count(r.open, "hold")))
	case r.submitted+r.shown+r.unheard == 0:
		return monitor.Verdict{Why: "no hold is known to have ended"}
	}
	why := fmt.Sprintf("%s: %s submitted, %s ended by the limit", say.Count(len(l.takes), "hold"), say.Thousands(r.submitted), say.Thousands(r.lapsed))
	if r.shown > 0 {
		why += fmt.Sprintf(", of which %s returned", say.Thousands(r.shown))
	}
	if r.open > 0 {
		why += fmt.Sprintf(" and of %s nothing more is known", say.Thousands(r.open))
	}
	if r.unheard > 0 {
		why += fmt.Sprintf("; %s may have been submitted by a request that had no answer", say.Count(r.unheard, "hold"))
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: r.shown, Why: why}
}

// judgeAll judges all holds of a task.
func (l *lendings) judgeAll(t *taskRecord, grace time.Duration, audited bool, r *returns) {
	all := make([]turn, len(t.takes))
	next, given := t.done, history.Forever
	for n, i := range slices.Backward(t.takes) {
		all[n].next, all[n].given = next, given
		take := &l.takes[i].take
		next, given = min(next, take.Call), min(given, take.Return)
	}
	users, limit := l.users(t), time.Duration(0)
	for n, i := range t.takes {
		limit = max(limit, l.takes[i].over())
		all[n].timedHold, all[n].limit = &l.takes[i], max(limit, monitor.Leased(&l.takes[i].take))
		l.judge(t, all[n], users, grace, audited, r)
	}
}

// turn is one hold of a task among its holds.
type turn struct {
	*timedHold
	limit time.Duration // when it and all before it had ended, for a task may be held by two at once
	next  time.Duration // when another user had the task, or it was done
	given time.Duration // when another user had been given it, at the latest
}

// judge judges one hold of a task.
func (l *lendings) judge(t *taskRecord, hold turn, users []history.Value, grace time.Duration, audited bool, r *returns) {
	if hold.submitted && hold.when <= monitor.Leased(&hold.take) {
		r.submitted++
		return
	}
	limit, next, given := hold.limit, hold.next, hold.given
	if next <= limit {
		if !hold.submitted && !t.maybeDone && limit < given && given < history.Forever { // to one who asked before the limit
			r.lapsed++
			r.shown++
		}
		return // given to another user meanwhile, whose hold is judged
	}
	end := l.end
	if l.audit.Started {
		end = l.read
	}
	if next == history.Forever && monitor.After(limit, grace) >= end {
		r.current++
		return
	}
	r.lapsed++
	since := fmt.Sprintf("%s was given task %s at %s until %s and did not submit it by then", say.Client(&hold.take), t.task, say.At(hold.take.Return), say.At(limit))
	first, again := l.inVain(users, limit, next, grace)
	switch {
	case t.maybeDone: // at any time, so its return is unknown
		r.lapsed--
		r.unheard++
	case again != nil:
		r.bad = append(r.bad, stuck{t.task, fmt.Sprintf("%s; %s was told at %s that there was nothing to do, and %s again at %s", since,
			say.Client(first), say.At(first.Return), say.Client(again), say.At(again.Return)), monitor.InOrder(hold.take, *first, *again)})
	case hold.submitted && hold.when <= next: // late, but no other user had it
		r.lapsed--
		r.submitted++
	case next < history.Forever:
		r.shown++
	case audited && t.over && !t.free && !t.held:
		r.bad = append(r.bad, stuck{t.task, fmt.Sprintf("%s; the final audit at %s calls it done, though nobody can have submitted it", since, say.At(l.read)), []history.Op{hold.take}})
	case audited && !t.over && !t.free && !t.held:
		r.bad = append(r.bad, stuck{t.task, fmt.Sprintf("%s; the final audit at %s does not list it", since, say.At(l.read)), []history.Op{hold.take}})
	case hold.declined, audited && t.free && !t.over && !t.held:
		r.shown++
	case audited && l.wanted(limit, grace) && t.held && !t.over && !t.free:
		r.bad = append(r.bad, stuck{t.task, fmt.Sprintf("%s; the final audit at %s still calls it held", since, say.At(l.read)), []history.Op{hold.take}})
	case audited: // held, and nobody asked; or the audit contradicts itself
		r.open++
		r.idle++
	default:
		r.open++
		if limit >= r.limit {
			r.limit, r.last = limit, &hold.take
		}
	}
}

// users returns the users who were given the task and who were ever told that there was nothing to do.
func (l *lendings) users(t *taskRecord) (list []history.Value) {
	seen := make(map[history.Value]bool, len(t.takes))
	for _, i := range t.takes {
		if user := l.takes[i].take.Arg; !seen[user] && len(l.refused[user]) > 0 {
			list = append(list, user)
			seen[user] = true
		}
	}
	return list
}

// inVain finds two refusals, a grace apart, of users who can be given a task, after its hold ended and before it was
// given to any user.
func (l *lendings) inVain(users []history.Value, limit, next, grace time.Duration) (first, again *history.Op) {
	for _, look := range []func(op *history.Op){
		func(op *history.Op) {
			if op.Call > limit && op.Return < next && (first == nil || op.Return < first.Return) {
				first = op
			}
		},
		func(op *history.Op) {
			if first != nil && op.Call > monitor.After(first.Return, grace) && op.Return < next && (again == nil || op.Return < again.Return) {
				again = op
			}
		},
	} {
		for _, user := range users {
			ops := l.refused[user]
			for i := range ops {
				look(&ops[i])
			}
		}
	}
	return first, again
}

// wanted reports whether any user asked in vain after a time and a grace before the
// audit.
func (l *lendings) wanted(limit, grace time.Duration) bool {
	return slices.ContainsFunc(l.asked, func(op history.Op) bool {
		return op.Call > limit && monitor.After(op.Return, grace) < l.read
	})
}

// count uses an audit that only counts tasks.
func (l *lendings) count(grace time.Duration, cut bool, r *returns) {
	switch {
	case !l.counted || cut || r.open == 0:
	case l.held == 0:
		r.shown, r.open, r.idle = r.shown+r.open, 0, 0
	case l.held > r.current+l.lost && !l.wanted(r.limit, grace):
		r.idle = max(r.idle, min(l.held-r.current-l.lost, r.open))
	case l.held > r.current && l.wanted(r.limit, grace):
		for range min(l.held-r.current, r.open+l.lost) { // one for each hold of which anything is known
			r.bad = append(r.bad, stuck{r.last.Result, fmt.Sprintf("the final audit at %s counts %s held, though the limit of all but %s was over for long; the last was task %s, given to %s until %s",
				say.At(l.read), say.Count(l.held, "task"), say.Thousands(r.current), r.last.Result, say.Client(r.last), say.At(r.limit)), []history.Op{*r.last}})
		}
	}
}

func stuckTasks(bad []stuck) string {
	if len(bad) == 1 {
		return bad[0].why
	}
	var ids []string
	for i := range bad {
		if i == 10 {
			ids = append(ids, "…")
			break
		}
		ids = append(ids, bad[i].task.String())
	}
	return fmt.Sprintf("%s; %s in all did not return: %s", bad[0].why, say.Count(len(bad), "task"), strings.Join(ids, ", "))
}
