package queuerules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/internal/phrase"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// patient is the timeout of the calls of queueimpl.Timed: no other client has the lock.
const patient = 5 * time.Second

// do makes one step. A step that makes no sense, since the steps that it needs were left out, does nothing.
func (w *walk) do(ctx context.Context, s step) error {
	c := *w.clients[s.client%len(w.clients)]
	m := w.queues[s.queue%len(w.queues)]
	c.Name = m.name
	ids := make([]string, len(s.ids))
	for i, id := range s.ids {
		ids[i] = w.real(id)
	}
	x := &act{walk: w, step: s, c: &c, m: m, ids: ids, now: w.now()}
	if !has(w.b.Variant, s.call) {
		return nil
	}
	switch s.call {
	case "pass":
		x.pass()
		return nil
	case "enqueue":
		return x.enqueue(ctx)
	case "pop":
		return x.pop(ctx)
	case "pop as":
		return x.popAs(ctx)
	case "again":
		return x.popAgain(ctx)
	case "popped":
		return x.popped(ctx)
	case "reclaim":
		return x.reclaim(ctx)
	case "peek":
		return x.peek(ctx)
	case "state":
		return x.audit(ctx, seen{})
	}
	if len(ids) == 0 {
		return nil
	}
	switch s.call {
	case "ack":
		return x.ack(ctx)
	case "extend":
		return x.extend(ctx)
	}
	return x.dequeue(ctx)
}

// act is a step that is made: by which client, on which queue, and when.
type act struct {
	*walk
	step
	c   *queueclient.Client
	m   *model
	ids []string
	now time.Time
}

// called notes a call with its answer for the report.
func (x *act) called(format string, args ...any) {
	x.walks.calls++
	queue := ""
	if len(x.queues) > 1 {
		queue = fmt.Sprintf(", queue %d", x.queue%len(x.queues)+1)
	}
	x.log = append(x.log, fmt.Sprintf("%s client %d%s: %s", x.since(x.now), x.number(), queue, fmt.Sprintf(format, args...)))
}

func (x *act) number() int { return x.client%len(x.clients) + 1 }

// since tells a time as one since the walk began.
func (w *walk) since(t time.Time) string { return "+" + t.Sub(w.start).String() }

// told describes tasks as an answer shows them, of many only the first ones.
func (w *walk) told(tasks []queueimpl.Task, err error) string {
	const few = 5
	var all []string
	for i, t := range tasks {
		if i == few && len(tasks) > few+1 {
			all = append(all, fmt.Sprintf("and %d more", len(tasks)-few))
			break
		}
		text := fmt.Sprintf("%q", t.ID)
		if t.Attempt != 0 {
			text += fmt.Sprintf(" attempt %d", t.Attempt)
		}
		if t.Receipt != "" {
			text += fmt.Sprintf(" receipt %q", t.Receipt)
		}
		if !t.Until.IsZero() {
			text += " until " + w.since(t.Until)
		}
		all = append(all, text)
	}
	switch {
	case err != nil && len(all) == 0:
		return err.Error()
	case err != nil:
		return fmt.Sprintf("%s and %v", strings.Join(all, ", "), err)
	case len(all) == 0:
		return "no tasks"
	}
	return strings.Join(all, ", ")
}

// refuses reports whether an answer says that the call was not made, which is no breach.
func (x *act) refuses(err error) bool {
	return errors.Is(err, queueimpl.ErrBadCall) || errors.Is(err, errors.ErrUnsupported) || x.b.Variant.Locked && errors.Is(err, queueimpl.ErrLocked)
}

// pass lets time pass.
func (x *act) pass() {
	d := x.after
	if x.until != "" {
		e := x.m.entries[x.ids[0]]
		switch {
		case e == nil:
			return
		case x.until == "due" && e.at == waits && x.after < 0:
			d = e.early.Add(x.after).Sub(x.now)
		case x.until == "due" && e.at == waits:
			d = e.late.Add(x.after).Sub(x.now)
		case x.until == "half" && e.at == lent:
			d = e.newest().end.Sub(x.now) / 2
		case x.until == "end" && e.at == lent && x.after < 0:
			d = e.newest().end.Add(x.after).Sub(x.now)
		case x.until == "end" && e.at == lent:
			d = e.newest().last.Add(x.after).Sub(x.now)
		default:
			return
		}
	}
	if d > 0 {
		x.b.Pass(d)
	}
}

// mayEnter returns those ids that the walk may enqueue. In a queue that keeps several entries with one id it enqueues no id that is there.
func (x *act) mayEnter() (ids []string) {
	dedupes := queueclient.Can[queueimpl.Deduper](x.b.Variant)
	for _, id := range x.ids {
		e := x.m.entries[id]
		there := e.here() || e != nil && e.at == taken && queueclient.Can[queueimpl.Acker](x.b.Variant)
		twice := !dedupes && (there || slices.Contains(ids, id))
		if !x.refused[id] && !twice && !(x.entersClaimed && e.here() && e.at == lent) {
			ids = append(ids, id)
		}
	}
	return ids
}

// enqueue enqueues the ids that it may enqueue in such a queue.
func (x *act) enqueue(ctx context.Context) error {
	ids := x.mayEnter()
	if len(ids) == 0 {
		return nil
	}
	if slices.ContainsFunc(ids, x.mayBeLetter) {
		if err := x.audit(ctx, seen{}); err != nil {
			return err
		}
	}
	in, err := x.enters(ctx, ids)
	what := "enqueue of " + list(ids)
	if x.after > 0 {
		what += fmt.Sprintf(" with a delay of %v", x.after)
	}
	if _, timed := x.c.Queue.(queueimpl.Timed); timed && x.within {
		what += fmt.Sprintf(" (EnqueueWithin, timeout %v)", patient)
	}
	x.called("%s entered %s", what, x.told(in, err))
	if x.refuses(err) {
		for _, id := range ids {
			x.refused[id] = len(ids) == 1 && id != "a"
		}
		return nil
	}
	if err != nil {
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q", what, err)
	}
	x.m.calls++
	return x.entered(what, ids, in)
}

// list quotes ids, of many only the first ones.
func list(ids []string) string {
	const few = 5
	if len(ids) <= few+1 {
		return fmt.Sprintf("%q", ids)
	}
	return fmt.Sprintf("%q and %d more", ids[:few], len(ids)-few)
}

// mayBeLetter reports whether an id may be that of a dead letter that was not seen yet.
func (x *act) mayBeLetter(id string) bool {
	e := x.m.entries[id]
	return e.here() && e.at == lent && x.m.spent(e) && !e.held(x.now)
}

// enters makes the call that enqueues.
func (x *act) enters(ctx context.Context, ids []string) ([]queueimpl.Task, error) {
	x.b.Calls("enqueue of %.40q", ids)
	if t, ok := x.c.Queue.(queueimpl.Timed); ok && x.within {
		return t.EnqueueWithin(ctx, x.c.Name, patient, x.after, ids...)
	}
	if d, ok := x.c.Queue.(queueimpl.Delayer); ok && x.after > 0 {
		return d.EnqueueAfter(ctx, x.c.Name, x.after, ids...)
	}
	return x.c.Queue.Enqueue(ctx, x.c.Name, ids...)
}

// entered judges which ids an enqueue entered.
func (x *act) entered(what string, ids []string, in []queueimpl.Task) error {
	overwrites := false
	if d, ok := x.c.Queue.(queueimpl.Deduper); ok {
		overwrites = d.Repeats() == queueimpl.Overwritten
	}
	times := map[string]int{}
	for _, t := range in {
		if times[t.ID]++; !slices.Contains(ids, t.ID) {
			return suitetest.Broken(queueclient.TheInterface, "%s entered %q", what, t.ID)
		}
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		e := x.m.entries[id]
		switch n := times[id]; {
		case n > 1 && !overwrites:
			return suitetest.Broken(queueclient.TheInterface, "%s reported %q as entered %d times; want once, since the queue ignores an id that is there", what, id, n)
		case n == 0 && !e.here():
			return suitetest.Broken(queueclient.TheInterface, "%s did not enter %q, which is not in the queue", what, id)
		case n == 0 && overwrites && e.at != letter && !(e.at == lent && x.m.spent(e)):
			return suitetest.Broken(variant.OneEntryPerID, "%s did not enter %q; want that it overwrites the entry, as the queue says that it does (Repeats)", what, id)
		case n > 0 && !overwrites && e.here() && e.at == waits:
			return suitetest.Broken(variant.OneEntryPerID, "%s entered %q, which waits, and the queue is to ignore such ids", what, id)
		case n > 0 && !overwrites && e.here() && e.at == lent:
			x.unclear, x.entersClaimed = true, x.entersClaimed || !x.mayBeLetter(id) // it may be another task from now on, beside the claimed one
			return nil
		}
	}
	for _, t := range in {
		x.m.enter(t, x.now, x.after, queueclient.DueIn(x.c, t, x.after))
	}
	return nil
}

// pop pops.
func (x *act) pop(ctx context.Context) error {
	what := "pop"
	pops := func() ([]queueimpl.Task, error) { return x.c.Queue.Pop(ctx, x.c.Name, x.count) }
	if t, ok := x.c.Queue.(queueimpl.Timed); ok && x.within && len(x.missing()) > 0 { // else it may wait
		what = "PopWithin"
		pops = func() ([]queueimpl.Task, error) { return t.PopWithin(ctx, x.c.Name, x.count, patient) }
	}
	_, err := x.popBy(what, pops)
	return err
}

// popBy pops by a call, and judges what it hands out. If it finds nothing although a task is due, it is made again for a while, since some
// queues look for what is due only now and then.
func (x *act) popBy(what string, pops func() ([]queueimpl.Task, error)) ([]queueimpl.Task, error) {
	const looks, look = 36, queueclient.Lateness / 35
	call := what
	for n := 0; ; n++ {
		x.count = min(x.count, x.most)
		what = fmt.Sprintf("%s of %d", call, x.count)
		x.b.Calls("%s", what)
		tasks, err := pops()
		if n == 0 || len(tasks) > 0 {
			x.called("%s returned %s", what, x.told(tasks, err))
		}
		switch {
		case x.refuses(err) && len(tasks) == 0 && x.count > 1:
			x.most = x.count / 2
			continue
		case x.refuses(err):
			return nil, nil
		case err != nil && (!errors.Is(err, queueimpl.ErrEmpty) || len(tasks) > 0):
			return nil, suitetest.Broken(queueclient.TheInterface, "%s answered %s", what, x.told(tasks, err))
		case len(tasks) > x.count:
			return nil, suitetest.Broken(queueclient.TheInterface, "%s returned %d tasks", what, len(tasks))
		case len(tasks) > 0:
			return tasks, x.delivered(what, tasks)
		}
		if len(x.missing()) == 0 {
			return nil, nil
		}
		if n == looks {
			return nil, x.lost(fmt.Sprintf("%s found nothing for %v", what, queueclient.Lateness))
		}
		x.b.Pass(look)
		x.now = x.walk.now()
	}
}

// missing are the tasks that a pop must find.
func (x *act) missing() []*entry {
	return x.m.those(func(e *entry) bool { return x.m.available(e, x.now) })
}

// lost accuses a queue that does not hand out what it must.
func (x *act) lost(what string) error {
	e := x.missing()[0]
	why := fmt.Sprintf("%q was due %s", e.id, x.since(e.early.Add(fine)))
	if e.at == lent {
		why = fmt.Sprintf("the claim on %q, its delivery %d, ended %s", e.id, len(e.had), x.since(e.newest().last))
	}
	ctx, cancel := context.WithTimeout(context.Background(), queueclient.Answer)
	defer cancel()
	if found, err := x.c.Found(ctx, e.id); err == nil && found {
		return suitetest.Broken(x.b.Waiting(), "%s: %s; want that it is handed out, since by the state or the dead letters the queue has it", what, why)
	}
	return suitetest.Broken(variant.NoLostTask, "%s: %s, and the queue has it neither among the waiting tasks nor elsewhere", what, why)
}

// delivered judges and notes what a pop handed out.
func (x *act) delivered(what string, tasks []queueimpl.Task) error {
	for i, t := range tasks {
		e := x.m.entries[t.ID]
		if slices.ContainsFunc(tasks[:i], func(o queueimpl.Task) bool { return o.ID == t.ID }) {
			return suitetest.Broken(variant.NoDuplicateDelivery, "%s returned %q twice", what, t.ID)
		}
		if err := x.mayDeliver(what, t, e); err != nil {
			return err
		}
		if e.at == waits && queueclient.Keeps(x.b.Variant, variant.InOrder) {
			if o := x.m.sooner(e, x.now); o != nil {
				return suitetest.Broken(variant.InOrder, "%s returned %q, due %s, before %q, which was enqueued by an earlier call, was due %s, and has not been delivered yet", what, e.id, x.since(e.early.Add(fine)), o.id, x.since(o.early.Add(fine)))
			}
		}
		x.note(e, t)
	}
	return nil
}

// mayDeliver judges one task that a pop handed out.
func (x *act) mayDeliver(what string, t queueimpl.Task, e *entry) error {
	const of = queueclient.TheInterface
	switch {
	case e == nil:
		return suitetest.Broken(of, "%s returned %q, which was never enqueued in this queue", what, t.ID)
	case e.at == waits && x.now.Before(e.early):
		return suitetest.Broken(variant.NotEarly, "%s returned %q %v before it was due", what, t.ID, e.early.Add(fine).Sub(x.now))
	case e.held(x.now):
		return suitetest.Broken(variant.NoDuplicateDelivery, "%s returned %q, which client %d has: it was told that its claim lasts until %s, another %v", what, t.ID, e.newest().client, x.since(e.newest().end), e.newest().end.Sub(x.now))
	case e.at == acked:
		return suitetest.Broken(of, "%s returned %q, which was acknowledged, and not enqueued since", what, t.ID)
	case e.at == removed:
		return suitetest.Broken(of, "%s returned %q, which a dequeue has removed, and which was not enqueued since", what, t.ID)
	case e.at == taken:
		return suitetest.Broken(variant.NoDuplicateDelivery, "%s returned %q, which was delivered before, and not enqueued since", what, t.ID)
	case e.at == letter || x.m.spent(e):
		return suitetest.Broken(of, "%s returned %q a %s time; want a dead letter, since it is allowed %d attempts", what, t.ID, ordinal(len(e.had)+1), x.m.most)
	case !e.sameScore(t.Score):
		return suitetest.Broken(of, "%s returned %q with the score %f; it was enqueued with %f, and the score stays the same", what, t.ID, t.Score, e.score)
	case x.short(t):
		return suitetest.Broken(of, "%s returned %q until %s; want the start of the call plus the timeout of %v", what, t.ID, x.since(t.Until), x.visibility())
	case t.Attempt != 0 && t.Attempt != len(e.had)+1:
		return suitetest.Broken(of, "%s returned %q as attempt %d; want %d, since it was delivered %s before", what, t.ID, t.Attempt, len(e.had)+1, phrase.Count(len(e.had), "time"))
	}
	return nil
}

// visibility is the timeout of the client.
func (x *act) visibility() time.Duration { return x.options[x.number()-1].Visibility }

// short reports whether a client is promised much less than its timeout.
func (x *act) short(t queueimpl.Task) bool {
	v := x.visibility()
	return v >= time.Second && !t.Until.IsZero() && t.Until.Before(x.now.Add(v*3/4))
}

func ordinal(n int) string {
	for i, end := range []string{"st", "nd", "rd"} {
		if n%10 == i+1 && n/10%10 != 1 {
			return fmt.Sprint(n, end)
		}
	}
	return fmt.Sprint(n, "th")
}

// note notes a delivery.
func (x *act) note(e *entry, t queueimpl.Task) {
	if !queueclient.Lends(x.b.Variant) {
		e.at = taken
		return
	}
	e.at = lent
	x.probe(e, t)
	full := x.now.Add(x.visibility())
	d := delivery{task: t, receipt: t.Receipt, client: x.number(), end: t.Until, last: full}
	if t.Until.IsZero() {
		d.end = full
	} else if t.Until.After(full) {
		d.last = t.Until
	}
	e.had = append(e.had, d)
}

// probe plans an ack by an earlier delivery of the task, if that had the same receipt: it must be refused.
func (x *act) probe(e *entry, t queueimpl.Task) {
	for age := range len(e.had) + len(x.m.former[e.id]) {
		if d, _ := x.m.delivery(e.id, age); d.receipt == t.Receipt && t.Receipt != "" {
			x.scene = append([]step{{call: "ack", client: d.client - 1, queue: x.queue, ids: []string{x.symbol(e.id)}, age: age + 1}}, x.scene...)
			return
		}
	}
}

// ack acknowledges a delivery of a task, perhaps an old one.
func (x *act) ack(ctx context.Context) error {
	id := x.ids[0]
	d, last := x.m.delivery(id, x.age)
	if d == nil || d.task.Receipt == "" {
		return nil
	}
	e := x.m.entries[id]
	what := fmt.Sprintf("ack of %q with the receipt %q", id, d.task.Receipt)
	x.b.Calls("%s", what)
	err := x.c.Queue.(queueimpl.Acker).Ack(ctx, x.c.Name, d.task)
	x.called("%s answered %s", what, queueclient.Say(err))
	refused := errors.Is(err, queueimpl.ErrLost)
	switch {
	case err != nil && !refused:
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q", what, err)
	case !last && !refused:
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: the receipt is of an earlier delivery, and the task was %s since", what, queueimpl.ErrLost, happened(e))
	case !last || e.at == removed:
		return nil
	case e.at == acked && !refused:
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: it was acknowledged before", what, queueimpl.ErrLost)
	case refused && (e.at == lent && !(x.m.spent(e) && !e.held(x.now))):
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q; want success: it is the task's last delivery, and the id was not enqueued since", what, err)
	case !refused:
		e.at = acked
	}
	return nil
}

// happened says what happened to a task after an earlier delivery of it.
func happened(e *entry) string {
	if len(e.had) == 0 {
		return "enqueued again"
	}
	return "delivered again or enqueued again"
}

// extend extends a claim, perhaps one that has ended.
func (x *act) extend(ctx context.Context) error {
	id := x.ids[0]
	d, last := x.m.delivery(id, x.age)
	if d == nil || d.task.Receipt == "" {
		return nil
	}
	e := x.m.entries[id]
	what := fmt.Sprintf("extend of %q with the receipt %q", id, d.task.Receipt)
	x.b.Calls("%s", what)
	t, err := x.c.Queue.(queueimpl.Extender).Extend(ctx, x.c.Name, d.task)
	said := queueclient.Say(err)
	if err == nil {
		said = "success, until " + x.since(t.Until)
	}
	x.called("%s answered %s", what, said)
	refused := errors.Is(err, queueimpl.ErrLost)
	runs := last && e.at == lent
	switch {
	case err != nil && !refused:
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q", what, err)
	case refused && runs && e.held(x.now):
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q; want success: the claim lasts until %s, another %v", what, err, x.since(d.end), d.end.Sub(x.now))
	case refused:
		return nil
	case !runs:
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: the claim was over, since the task was acknowledged, withdrawn, enqueued or delivered again, or is a dead letter", what, queueimpl.ErrLost)
	case e.over(x.now):
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: the claim ended %s, %v before", what, queueimpl.ErrLost, x.since(d.last), x.now.Sub(d.last))
	case x.short(t):
		return suitetest.Broken(queueclient.TheInterface, "%s returned a task until %s; want the start of the call plus the timeout of %v", what, x.since(t.Until), x.visibility())
	case t.ID != id || !e.sameScore(t.Score) || t.Attempt != d.task.Attempt:
		return suitetest.Broken(queueclient.TheInterface, "%s returned %+v; want the task with another Until only: %+v", what, t, d.task)
	}
	d.task, d.end = t, t.Until
	d.last = later(d.last, later(t.Until, x.now.Add(x.visibility()))) // some keep the later end
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dequeue withdraws a task with its score, or a wrong one.
func (x *act) dequeue(ctx context.Context) error {
	e := x.m.entries[x.ids[0]]
	if e == nil || e.score == 0 {
		return nil
	}
	score := e.score
	if x.wrong {
		score -= 10
	}
	shown := false
	if e.at == lent && !e.held(x.now) {
		s, err := x.c.Queue.State(ctx, x.c.Name)
		if shown = err == nil && slices.Contains(queueclient.IDsOf(s.Waiting), e.id); shown {
			x.called("state shows that %q waits", e.id)
		}
	}
	what := fmt.Sprintf("dequeue of %q with the score %f", e.id, score)
	x.b.Calls("%s", what)
	err := x.withdraws(ctx, e.id, score)
	x.called("%s answered %s", what, queueclient.Say(err))
	refused := errors.Is(err, queueimpl.ErrChanged)
	may := !x.wrong && (e.at == waits || e.at == lent && !e.held(x.now))
	switch {
	case x.refuses(err):
		return nil
	case err != nil && !refused:
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q", what, err)
	case !refused && x.wrong:
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: the score is not that of the entry, %f", what, queueimpl.ErrChanged, e.score)
	case !refused && !may:
		return suitetest.Broken(queueclient.TheInterface, "%s answered success; want %q: the task does not wait", what, queueimpl.ErrChanged)
	case refused && !x.wrong && (e.at == waits || shown && !x.m.spent(e)):
		return suitetest.Broken(queueclient.TheInterface, "%s answered %q; want success: the task waits with this score", what, err)
	case !refused:
		e.at = removed
	}
	return nil
}

// withdraws makes the call that withdraws.
func (x *act) withdraws(ctx context.Context, id string, score float64) error {
	if t, ok := x.c.Queue.(queueimpl.Timed); ok && x.within {
		return t.DequeueWithin(ctx, x.c.Name, id, score, patient)
	}
	return x.c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, x.c.Name, id, score)
}
