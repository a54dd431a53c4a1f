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

// patient is the timeout of the calls of queueimpl.Timed. It is long enough, because no other client holds the queue's lock.
const patient = 5 * time.Second

// do makes one step. A step does nothing if it needs an earlier step that was left out.
func (w *walk) do(ctx context.Context, s step) error {
	c := *w.clients[s.client%len(w.clients)]
	m := w.queues[s.queue%len(w.queues)]
	c.Name = m.name
	ids := make([]string, len(s.ids))
	for i, id := range s.ids {
		ids[i] = w.real(id)
	}
	x := &act{walk: w, step: s, c: &c, m: m, ids: ids, now: w.now()}
	ofTask := s.call == "ack" || s.call == "extend" || s.call == "dequeue"
	if !has(w.b.Variant, s.call) || ofTask && len(ids) == 0 {
		return nil
	}
	return calls[s.call](x, ctx)
}

// calls are the steps by name.
var calls = map[string]func(*act, context.Context) error{
	"pass": (*act).pass, "enqueue": (*act).enqueue, "pop": (*act).pop, "pop as": (*act).popAs, "again": (*act).popAgain, "popped": (*act).popped,
	"reclaim": (*act).reclaim, "peek": (*act).peek, "ack": (*act).ack, "extend": (*act).extend, "dequeue": (*act).dequeue,
	"state": func(x *act, ctx context.Context) error { return x.audit(ctx, seen{}) },
}

// act is a step under way, with its client, its queue and the time of its call.
type act struct {
	*walk
	step
	c   *queueclient.Client
	m   *model
	ids []string
	now time.Time
}

// called adds a call and its answer to the history.
func (x *act) called(format string, args ...any) {
	x.walks.calls++
	queue := ""
	if len(x.queues) > 1 {
		queue = fmt.Sprintf(", queue %d", x.queue%len(x.queues)+1)
	}
	x.log = append(x.log, fmt.Sprintf("%s client %d%s: %s", x.since(x.now), x.number(), queue, fmt.Sprintf(format, args...)))
}

func (x *act) number() int { return x.client%len(x.clients) + 1 }

// since formats a time as the time since the start of the walk.
func (w *walk) since(t time.Time) string { return "+" + t.Sub(w.start).String() }

// told formats the tasks and the error of an answer. Of many tasks it shows the first ones.
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

// refuses reports whether the queue refused the call, as it may.
func (x *act) refuses(err error) bool {
	return errors.Is(err, queueimpl.ErrBadCall) || errors.Is(err, errors.ErrUnsupported) || x.b.Variant.Locked && errors.Is(err, queueimpl.ErrLocked)
}

// pass advances the clock.
func (x *act) pass(context.Context) error {
	d := x.after
	if x.until != "" {
		e := x.m.entries[x.ids[0]]
		switch {
		case e == nil:
			return nil
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
			return nil
		}
	}
	if d > 0 {
		x.b.Pass(d)
	}
	return nil
}

// mayEnter returns the ids of the step that may be enqueued. A queue that keeps several entries with one id must not be given an id that it
// already has, because the model knows one entry for each id.
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

// enqueue enqueues the ids that mayEnter returns.
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

// list quotes ids. Of many it shows the first ones.
func list(ids []string) string {
	const few = 5
	if len(ids) <= few+1 {
		return fmt.Sprintf("%q", ids)
	}
	return fmt.Sprintf("%q and %d more", ids[:few], len(ids)-few)
}

// mayBeLetter reports whether a task may have become a dead letter since the last look.
func (x *act) mayBeLetter(id string) bool {
	e := x.m.entries[id]
	return e.here() && e.at == lent && x.m.spent(e) && !e.held(x.now)
}

// enters calls Enqueue, EnqueueAfter or EnqueueWithin.
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

// entered judges the answer of an enqueue.
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

// pop calls Pop or PopWithin.
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

// popBy makes a call that pops, and judges its answer. If it returns nothing although a task is due, popBy repeats it for
// queueclient.Lateness, because some queues look for due tasks only now and then.
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

// missing returns the tasks that a pop must find.
func (x *act) missing() []*entry {
	return x.m.those(func(e *entry) bool { return x.m.available(e, x.now) })
}

// lost returns the breach of a queue whose pop does not find a task that is due.
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

// delivered judges the tasks that a pop returned, and enters them in the model.
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

// mayDeliver judges one task that a pop returned.
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

// visibility returns the visibility timeout of the client.
func (x *act) visibility() time.Duration { return x.options[x.number()-1].Visibility }

// short reports whether the promised end of a claim is much earlier than the client's timeout.
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

// note enters a delivery in the model.
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

// probe plans an ack with an earlier delivery of the task, if both deliveries have the same receipt. The queue must refuse it.
func (x *act) probe(e *entry, t queueimpl.Task) {
	for age := range len(e.had) + len(x.m.former[e.id]) {
		if d, _ := x.m.delivery(e.id, age); d.receipt == t.Receipt && t.Receipt != "" {
			x.scene = append([]step{{call: "ack", client: d.client - 1, queue: x.queue, ids: []string{x.symbol(e.id)}, age: age + 1}}, x.scene...)
			return
		}
	}
}

// ack calls Ack with the last delivery of a task, or with an earlier one, which must be refused.
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

// happened says why an earlier delivery of a task is no longer valid.
func happened(e *entry) string {
	if len(e.had) == 0 {
		return "enqueued again"
	}
	return "delivered again or enqueued again"
}

// extend calls Extend for a claim that runs, or for one that has ended.
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

// dequeue calls Dequeue with the score of a task, or with a wrong one.
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

// withdraws calls Dequeue or DequeueWithin.
func (x *act) withdraws(ctx context.Context, id string, score float64) error {
	if t, ok := x.c.Queue.(queueimpl.Timed); ok && x.within {
		return t.DequeueWithin(ctx, x.c.Name, id, score, patient)
	}
	return x.c.Queue.(queueimpl.Dequeuer).Dequeue(ctx, x.c.Name, id, score)
}
