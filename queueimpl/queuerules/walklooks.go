package queuerules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/variant"
)

// popAs calls PopAs with a new request id.
func (x *act) popAs(ctx context.Context) error {
	name := x.real(x.request)
	tasks, err := x.popBy(fmt.Sprintf("PopAs under the request %q", name), func() ([]queueimpl.Task, error) {
		return x.c.Queue.(queueimpl.Journaler).PopAs(ctx, x.c.Name, name, x.count)
	})
	if err == nil && len(tasks) > 0 {
		x.requests[x.key(name)] = &request{client: x.client, count: x.count, name: name, tasks: slices.Clone(tasks)}
	}
	return err
}

// key returns the key of a request in walk.requests.
func (x *act) key(name string) string { return fmt.Sprint(x.queue%len(x.queues), " ", name) }

// popAgain sends an earlier PopAs again, which must return the same tasks.
func (x *act) popAgain(ctx context.Context) error {
	r := x.requests[x.key(x.real(x.request))]
	if r == nil {
		return nil
	}
	x.client = r.client
	own := *x.clients[r.client%len(x.clients)]
	own.Name, x.c = x.m.name, &own
	what := fmt.Sprintf("PopAs of %d under the request %q, sent again,", r.count, r.name)
	x.b.Calls("%s", what)
	got, err := x.c.Queue.(queueimpl.Journaler).PopAs(ctx, x.c.Name, r.name, r.count)
	x.called("%s returned %s", what, x.told(got, err))
	if err != nil || !slices.EqualFunc(got, r.tasks, queueclient.Same) {
		return suitetest.Broken(queueclient.TheInterface, "%s returned %s; want what it took: %s", what, x.told(got, err), x.told(r.tasks, nil))
	}
	for i, t := range got {
		if err := x.promises(what, t, r.tasks[i]); err != nil {
			return err
		}
	}
	return nil
}

// promises judges the Until of a task that a repeated PopAs returns. The queue may prolong the claim or not, but the claim must last until
// then.
func (x *act) promises(what string, t, first queueimpl.Task) error {
	if !queueclient.Lends(x.b.Variant) || !t.Until.After(x.now) {
		return nil
	}
	e := x.m.entries[t.ID]
	mine := e != nil && e.at == lent && e.newest().receipt == first.Receipt
	if !mine {
		return suitetest.Broken(queueclient.TheInterface, "%s returned %q until %s; want no time that is to come: the request has no claim on the task any more, since it was acknowledged, withdrawn, enqueued or delivered again, or is a dead letter", what, t.ID, x.since(t.Until))
	}
	d := e.newest()
	d.end = later(d.end, t.Until)
	d.last = later(d.last, later(t.Until, x.now.Add(x.visibility())))
	return nil
}

// popped calls Popped.
func (x *act) popped(ctx context.Context) error {
	name := x.real(x.request)
	var want []queueimpl.Task
	if r := x.requests[x.key(name)]; r != nil {
		want = r.tasks
	}
	x.b.Calls("popped of %q", name)
	got, err := x.c.Queue.(queueimpl.Journaler).Popped(ctx, x.c.Name, name)
	x.called("Popped of the request %q returned %s", name, x.told(got, err))
	if err != nil || !slices.EqualFunc(got, want, queueclient.Same) {
		return suitetest.Broken(queueclient.TheInterface, "Popped of the request %q returned %s; want what the request took: %s", name, x.told(got, err), x.told(want, nil))
	}
	return nil
}

// reclaim calls Reclaim, and State before it if step.wrong is set.
func (x *act) reclaim(ctx context.Context) error {
	const of = queueclient.TheInterface
	ended := x.m.those(func(e *entry) bool { return e.over(x.now) })
	may := x.m.those(func(e *entry) bool { return e.at == lent && !e.held(x.now) })
	shown := 0
	if x.wrong {
		if s, err := x.c.Queue.State(ctx, x.c.Name); err == nil {
			shown = len(ended) - len(x.lacking(ended, s.Claimed))
			x.called("state: %d claims that have run out are claimed", shown)
		}
	}
	x.b.Calls("reclaim")
	n, err := x.c.Queue.(queueimpl.Reclaimer).Reclaim(ctx, x.c.Name)
	x.called("reclaim answered %d and %s", n, queueclient.Say(err))
	switch {
	case err != nil:
		return suitetest.Broken(of, "reclaim answered %q", err)
	case n > len(may):
		return suitetest.Broken(of, "reclaim said that it ended %d claims; want at most %d, since no more have run out", n, len(may))
	case n < shown:
		return suitetest.Broken(of, "reclaim said that it ended %d claims; want %d at least: as many had run out, and were claimed by the state right before", n, shown)
	}
	return x.audit(ctx, seen{reclaimed: true})
}

// lacking returns the entries that are not among the tasks.
func (x *act) lacking(entries []*entry, tasks []queueimpl.Task) (none []*entry) {
	ids := queueclient.IDsOf(tasks)
	for _, e := range entries {
		if !slices.Contains(ids, e.id) {
			none = append(none, e)
		}
	}
	return none
}

// peek calls Peek. It may return fewer tasks than are due, and none only for a short time.
func (x *act) peek(ctx context.Context) error {
	const of = queueclient.TheInterface
	what := fmt.Sprintf("peek of %d", x.count)
	for n := 0; ; n++ {
		x.b.Calls("%s", what)
		got, err := x.c.Queue.(queueimpl.Peeker).Peek(ctx, x.c.Name, x.count)
		if n == 0 || len(got) > 0 {
			x.called("%s showed %s", what, x.told(got, err))
		}
		switch {
		case x.refuses(err):
			return nil
		case err != nil:
			return suitetest.Broken(of, "%s answered %q", what, err)
		case len(got) > x.count:
			return suitetest.Broken(of, "%s showed %d tasks", what, len(got))
		case len(got) > 0:
			return x.shows(what, got)
		}
		due := x.m.those(func(e *entry) bool { return e.at == waits && x.m.available(e, x.now) })
		if len(due) == 0 {
			return nil
		}
		if n == 36 {
			return suitetest.Broken(of, "%s showed nothing for %v, though %q was due %s", what, queueclient.Lateness, due[0].id, x.since(due[0].early.Add(fine)))
		}
		x.b.Pass(queueclient.Lateness / 35)
		x.now = x.walk.now()
	}
}

// shows judges the answer of a peek.
func (x *act) shows(what string, got []queueimpl.Task) error {
	const of = queueclient.TheInterface
	for i, t := range got {
		e := x.m.entries[t.ID]
		switch {
		case slices.ContainsFunc(got[:i], func(o queueimpl.Task) bool { return o.ID == t.ID }):
			return suitetest.Broken(of, "%s showed %q twice", what, t.ID)
		case !e.here():
			return suitetest.Broken(of, "%s showed %q, which is not in the queue", what, t.ID)
		case e.at == letter:
			return suitetest.Broken(of, "%s showed %q, which is a dead letter; want tasks that are due", what, t.ID)
		case e.held(x.now):
			return suitetest.Broken(of, "%s showed %q, which client %d has until %s; want tasks that are due", what, t.ID, e.newest().client, x.since(e.newest().end))
		case e.at == waits && x.now.Before(e.early):
			return suitetest.Broken(of, "%s showed %q %v before it is due", what, t.ID, e.early.Add(fine).Sub(x.now))
		case !e.sameScore(t.Score):
			return suitetest.Broken(of, "%s showed %q with the score %f; it was enqueued with %f", what, t.ID, t.Score, e.score)
		}
	}
	return nil
}

// seen says which call came right before State.
type seen struct {
	reclaimed bool // Reclaim: no claim that has run out may be left
	emptied   bool // a pop that found nothing: all tasks without an attempt left must be dead letters
}

// audit compares the state and the dead letters with the model.
func (x *act) audit(ctx context.Context, after seen) error {
	const of = queueclient.TheInterface
	x.b.Calls("state")
	s, err := x.c.Queue.State(ctx, x.c.Name)
	if err != nil {
		x.called("state answered %q", err)
		return suitetest.Broken(of, "state answered %q", err)
	}
	var dead []queueimpl.Task
	said := fmt.Sprintf("state: %s wait, %s are claimed", list(queueclient.IDsOf(s.Waiting)), list(queueclient.IDsOf(s.Claimed)))
	letters, has := x.c.Queue.(queueimpl.DeadLetters)
	if has {
		if dead, err = letters.Dead(ctx, x.c.Name); err != nil {
			return suitetest.Broken(of, "dead letters: %q", err)
		}
		said += fmt.Sprintf(", %s are dead letters", list(queueclient.IDsOf(dead)))
	}
	x.called("%s", said)
	return x.placed(s, dead, after)
}

// placed judges the tasks in the state and among the dead letters.
func (x *act) placed(s queueimpl.State, dead []queueimpl.Task, after seen) error {
	where := map[string]string{}
	for _, list := range []struct {
		name  string
		tasks []queueimpl.Task
	}{{"waits", s.Waiting}, {"is claimed", s.Claimed}, {"is a dead letter", dead}} {
		for _, t := range list.tasks {
			if before := where[t.ID]; before == list.name {
				return suitetest.Broken(variant.OneEntryPerID, "by the state, %q %s twice", t.ID, before)
			} else if before != "" {
				return suitetest.Broken(queueclient.TheInterface, "by the state, %q %s, and it %s, too", t.ID, before, list.name)
			}
			where[t.ID] = list.name
			if err := x.listed(t, list.name, after); err != nil {
				return err
			}
		}
	}
	return x.complete(where)
}

// listed judges one task in the state or among the dead letters.
func (x *act) listed(t queueimpl.Task, where string, after seen) error {
	const of = queueclient.TheInterface
	e := x.m.entries[t.ID]
	lends := queueclient.Lends(x.b.Variant)
	spent := e.here() && x.m.spent(e)
	switch {
	case e != nil && e.at == taken && where == "is claimed":
		return nil // until it is acknowledged
	case !e.here():
		return suitetest.Broken(of, "by the state, %q %s, and it is not in the queue any more: it was acknowledged, withdrawn or taken, and not enqueued since", t.ID, where)
	case e.at == waits && where != "waits":
		return suitetest.Broken(of, "by the state, %q %s; want that it waits: it was enqueued, and not delivered since", t.ID, where)
	case e.held(x.now) && where != "is claimed":
		return suitetest.Broken(of, "by the state, %q %s; want that it is claimed: the claim of client %d lasts until %s", t.ID, where, e.newest().client, x.since(e.newest().end))
	case e.at == letter && where != "is a dead letter":
		return suitetest.Broken(of, "by the state, %q %s, and it was a dead letter before", t.ID, where)
	case where == "is a dead letter" && !spent:
		return suitetest.Broken(of, "%q is a dead letter after %d of %d attempts", t.ID, len(e.had), x.m.most)
	case lends && after.reclaimed && e.over(x.now) && where == "is claimed":
		return suitetest.Broken(of, "after a reclaim the state has %q as claimed; want none whose claim has run out: its claim ended %s", t.ID, x.since(e.newest().last))
	case after.emptied && spent && e.over(x.now) && where != "is a dead letter":
		return suitetest.Broken(of, "by the state, %q %s; want a dead letter: it has had its %d attempts, its claim ended %s, and pops found nothing", t.ID, where, x.m.most, x.since(e.newest().last))
	case !e.sameScore(t.Score):
		return suitetest.Broken(of, "by the state, %q %s with the score %f; it was enqueued with %f", t.ID, where, t.Score, e.score)
	case t.Attempt != 0 && where != "waits" && t.Attempt != len(e.had):
		return suitetest.Broken(of, "by the state, %q %s with attempt %d; want %d, the number of its deliveries", t.ID, where, t.Attempt, len(e.had))
	case where == "is a dead letter":
		e.at = letter
	}
	return nil
}

// complete expects each task of the model in the state or among the dead letters.
func (x *act) complete(where map[string]string) error {
	for _, id := range x.m.ids() {
		e := x.m.entries[id]
		if !e.here() || where[id] != "" {
			continue
		}
		if x.m.spent(e) && !queueclient.Can[queueimpl.DeadLetters](x.b.Variant) {
			continue
		}
		want := map[place]string{waits: "it was enqueued, and not delivered", lent: "it was delivered, and not acknowledged", letter: "it was a dead letter, and not acknowledged"}[e.at]
		return suitetest.Broken(variant.NoLostTask, "%q does not wait, is not claimed, and is no dead letter: %s", id, want)
	}
	return nil
}

// drain waits until all claims and delays have ended, and pops and acknowledges all tasks. Each task must be delivered.
func (w *walk) drain(ctx context.Context) error {
	for queue, m := range w.queues {
		if err := w.edges(ctx, queue); err != nil || w.unclear {
			return err
		}
		end := w.now()
		for _, e := range m.those((*entry).here) {
			if e.at == waits {
				end = later(end, e.late)
			} else if e.at == lent {
				end = later(end, e.newest().last)
			}
		}
		if d := end.Sub(w.now()); d > 0 {
			w.b.Pass(d + queueclient.Lateness + time.Millisecond)
		}
		if err := w.takeAll(ctx, queue); err != nil || w.unclear {
			return err
		}
	}
	return nil
}

// edges pops shortly before a claim ends or a task is due, which must not be delivered then.
func (w *walk) edges(ctx context.Context, queue int) error {
	const most = 3
	for range most {
		e := w.queues[queue].next(w.now())
		if e == nil {
			break
		}
		before := step{call: "pass", queue: queue, ids: []string{w.symbol(e.id)}, until: "due", after: -fine}
		if e.at == lent {
			before.until, before.after = "end", -queueclient.Grain-fine
		}
		after := before
		after.after = slack + time.Millisecond
		for _, s := range []step{before, {call: "pop", queue: queue, count: 1, client: 1}, after} {
			if err := w.do(ctx, s); err != nil || w.unclear {
				return err
			}
		}
	}
	return nil
}

// takeAll pops and acknowledges tasks until the model has none left.
func (w *walk) takeAll(ctx context.Context, queue int) error {
	m := w.queues[queue]
	for range 100 {
		before := len(m.those((*entry).here))
		if err := w.takeSome(ctx, queue); err != nil {
			return err
		}
		if after := len(m.those((*entry).here)); after == before {
			break
		}
	}
	return w.aside(ctx, queue)
}

// takeSome pops, and acknowledges all claimed tasks.
func (w *walk) takeSome(ctx context.Context, queue int) error {
	if err := w.do(ctx, step{call: "pop", queue: queue, count: 20}); err != nil {
		return err
	}
	for _, e := range w.queues[queue].those(func(e *entry) bool { return e.held(w.now()) }) {
		if err := w.do(ctx, step{call: "ack", queue: queue, ids: []string{w.symbol(e.id)}}); err != nil {
			return err
		}
	}
	return nil
}

// aside pops until the tasks without an attempt left are dead letters, and compares the state.
func (w *walk) aside(ctx context.Context, queue int) error {
	c := *w.clients[0]
	c.Name = w.queues[queue].name
	for n := 0; ; n++ {
		x := &act{walk: w, step: step{queue: queue, count: 1}, c: &c, m: w.queues[queue], now: w.now()}
		err := x.audit(ctx, seen{emptied: true})
		if err == nil || n == 3 {
			return err
		}
		w.b.Pass(queueclient.Lateness / 3)
		if err := w.takeSome(ctx, queue); err != nil {
			return err
		}
	}
}
