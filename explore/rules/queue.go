package rules

import (
	"math/bits"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// task is the record of a task id.
type task struct {
	what    label
	flags   int64
	puts    int64 // enqueues called, except those that changed nothing
	takes   int64 // deliveries
	effects int64
	// supply is how many of the enqueues a pop called from now on may still deliver. It is kept if ids are enqueued
	// again.
	supply  int64
	unknown int64         // enqueues without an answer
	due     time.Duration // 0: not known, or over
	// taken is when it was handed out while its only enqueue was under way, plus 1.
	taken time.Duration
	pops  int64 // the clients whose pop was under way when it was last enqueued
	hands int64 // the clients that were handed it and have not finished it
}

// Known facts about a task.
const (
	taskOwed      = 1 << iota // an enqueue was answered
	taskEntered               // with a fresh entry
	taskDone                  // an answer said that its effect happened
	taskDoneSince             // and that since it was last enqueued
	taskPerhaps               // it may have been done, or withdrawn
	taskDeclined              // it was declined for lack of stock, which is an effect, too
	taskTangled               // two enqueues of it at a time
	taskTried                 // an effect of it ended, with any answer
)

// task returns the entry of a task, made if necessary.
func (p *past) task(what label) *task {
	for i := range p.tasks {
		if t := &p.tasks[i]; t.what == what {
			return t
		}
	}
	p.tasks = append(p.tasks, task{what: what})
	return &p.tasks[len(p.tasks)-1]
}

// queues reports whether a judged promise of a queue needs its past.
func (r *Rules) queues() bool {
	return r.task.lost || r.task.delivered || r.task.effect || r.task.early || r.task.order
}

// enqueues notes the call of an enqueue.
func (r *Rules) enqueues(p *past, client int, op *history.Op, d *doing) {
	if !r.queues() {
		return
	}
	d.what = labelOf(op.Arg, client)
	t := p.task(d.what)
	if p.underway(history.Enqueue, &d.what) != 0 {
		t.flags |= taskTangled
	} else {
		t.flags &^= taskDoneSince
	}
	if r.repeats && (r.task.early || r.task.order) && (r.replace || t.takes >= t.puts) {
		d.floor = 1
	}
	t.puts++
	t.supply++
	t.pops |= p.underway(history.Pop, nil)
}

// enqueued notes the end of an enqueue, and judges the deliveries meanwhile.
func (r *Rules) enqueued(p *past, client int, op *history.Op, d *doing) (b *Breach) {
	if !r.queues() {
		return nil
	}
	t := p.task(labelOf(op.Arg, client))
	taken := t.taken
	t.taken = 0
	switch {
	case op.Outcome == history.Unknown:
		t.unknown++
		t.due = 0
		return nil
	case op.Outcome == history.Refused || op.Reason == history.Repeated:
		t.puts, t.supply = t.puts-1, max(0, t.supply-1)
		if op.Outcome == history.OK {
			t.flags |= taskOwed
		}
		return r.effectOnce(t)
	}
	t.pops |= p.underway(history.Pop, nil)
	due := max(0, op.Until)
	switch {
	case t.flags&taskTangled != 0 || t.unknown > 0:
		due = 0
	case t.puts > 1 && d.floor == 0:
		due = min(due, t.due)
	}
	t.due = due
	if r.task.early && t.puts == 1 && taken > 0 && taken-1 < due {
		b = broken(variant.Queue, variant.NotEarly, "task %v was handed out at %s, but was due only at %s", t.what, ms(taken-1), ms(due))
	}
	if t.flags&taskEntered != 0 && t.flags&taskDoneSince == 0 {
		t.flags &^= taskDone
	}
	t.flags |= taskOwed | taskEntered
	return b
}

// Ordered reports whether a task was handed out while another one waited that was due, but later. Otherwise in-order was not put to
// the test.
func (r *Rules) Ordered() bool { return r.ordered.Load() }

// dequeues notes that a task may be withdrawn.
func (r *Rules) dequeues(p *past, client int, op *history.Op) {
	if r.queues() {
		p.task(labelOf(op.Arg, client)).flags |= taskPerhaps
	}
}

// popped judges the delivery of a task: it must have been enqueued since the last one, be due, and come after those
// surely due earlier. Where operations overlap so that several orders fit, it judges nothing.
func (r *Rules) popped(p *past, client int, op *history.Op, now time.Duration) (b *Breach) {
	bit := int64(1) << client
	defer func() {
		for i := range p.tasks {
			p.tasks[i].pops &^= bit
		}
	}()
	switch {
	case !r.queues() || op.Outcome == history.Refused:
		return nil
	case op.Outcome == history.Unknown:
		if r.task.order {
			p.lostPops = 1
		}
		return nil
	}
	t := p.task(labelOf(op.Result, client))
	overlaps := t.pops&bit != 0
	entering := int64(bits.OnesCount64(uint64(p.underway(history.Enqueue, &t.what))))
	t.takes++
	if r.task.delivered && t.takes > 1 && (t.takes > t.puts || r.repeats && !overlaps && t.supply == 0) {
		b = broken(variant.Queue, variant.NoDuplicateDelivery, "task %v was handed to client %d, though it had been handed out before and was not enqueued again", t.what, client)
	}
	if !overlaps {
		t.supply = entering + t.unknown
	}
	if op.Amount <= 1 {
		switch {
		case !r.task.early:
		case t.puts == 1 && entering == 1:
			if t.taken == 0 {
				t.taken = now + 1
			}
		case b == nil && now < t.due && entering == 0 && (t.puts == 1 || !overlaps):
			b = broken(variant.Queue, variant.NotEarly, "task %v was handed to client %d at %s, but was due only at %s", t.what, client, ms(now), ms(t.due))
		}
		if r.task.order && b == nil {
			b = r.inOrder(p, t, client, now)
		}
	}
	if r.task.lost {
		t.hands |= bit
	}
	return b
}

// inOrder judges that no task that was due before this one was surely there all the time.
func (r *Rules) inOrder(p *past, t *task, client int, now time.Duration) *Breach {
	bit := int64(1) << client
	if now < t.due || p.lostPops > 0 || p.underway(history.Pop, nil) != 0 || t.due == 0 || t.puts != 1 {
		return nil
	}
	for i := range p.tasks {
		e := &p.tasks[i]
		if e.puts != 1 || e.takes > 0 || e.due <= 0 || e.pops&bit != 0 || e.flags&taskPerhaps != 0 {
			continue
		}
		if t.due < e.due && e.due <= now {
			r.ordered.Store(true)
		}
		if e.due < t.due {
			return broken(variant.Queue, variant.InOrder, "task %v, due at %s, was handed to client %d before task %v, which was due at %s",
				t.what, ms(t.due), client, e.what, ms(e.due))
		}
	}
	return nil
}

// affected judges the effects of a task: as many as its enqueues. The first time, being declined for lack of stock is
// an effect, too; with a stale token nothing happened yet.
func (r *Rules) affected(p *past, client int, op *history.Op) *Breach {
	if !r.queues() {
		return nil
	}
	t := p.task(labelOf(op.Arg, client))
	first := r.firstEffect(p, t, client)
	t.flags |= taskTried
	if op.Outcome == history.Refused && op.Reason != history.SoldOut {
		return nil
	}
	t.hands &^= 1 << client
	switch {
	case op.Outcome == history.Unknown:
		t.flags |= taskPerhaps
		return nil
	case op.Outcome == history.OK && (op.Reason != history.Repeated || first): // by then
		t.effects++
	case op.Outcome == history.Refused && t.flags&taskDeclined == 0:
		t.effects++
		t.flags |= taskDeclined
	}
	t.flags |= taskDone | taskDoneSince
	return r.effectOnce(t)
}

// firstEffect reports whether a client's effect of a task is the first one that any client began.
func (r *Rules) firstEffect(p *past, t *task, client int) bool {
	if !r.task.effect || t.flags&taskTried != 0 {
		return false
	}
	for i := range p.people {
		if i != client && slices.ContainsFunc(p.people[i].doing, func(d doing) bool { return d.kind == history.Effect && d.what == t.what }) {
			return false
		}
	}
	return true
}

func (r *Rules) effectOnce(t *task) *Breach {
	if !r.task.effect || t.effects <= max(1, t.puts) {
		return nil
	}
	return broken(variant.Queue, variant.EffectOnce, "task %v took effect %d times", t.what, t.effects)
}

// forgetTasks drops facts about tasks that are no longer needed.
func (r *Rules) forgetTasks(p *past, now time.Duration) {
	p.tasks = slices.DeleteFunc(p.tasks, func(t task) bool {
		if r.task.delivered || r.task.effect || r.repeats || t.flags&taskDone == 0 || t.hands != 0 {
			return false
		}
		if (r.task.early || r.task.order) && t.takes == 0 {
			return false
		}
		return p.underway(history.Enqueue, &t.what) == 0
	})
	for i := range p.tasks {
		t := &p.tasks[i]
		if !r.task.order || t.takes > 0 {
			if t.due <= now || !r.task.early {
				t.due = 0
			}
		}
		keep := int64(0)
		if r.task.lost {
			keep = taskOwed | taskEntered | taskDone | taskDoneSince | taskPerhaps
			if !r.repeats {
				keep &^= taskDoneSince | taskEntered
			}
		}
		if r.task.effect {
			keep |= taskDeclined | taskTried
		} else {
			t.effects = 0
		}
		if r.task.early || r.task.order {
			keep |= taskTangled
		}
		if r.task.order {
			keep |= taskPerhaps
		}
		if !r.repeats { // facts that only a second enqueue needs
			t.supply, t.unknown = 0, 0
			if keep &^= taskTangled; !r.task.order || t.takes > 0 {
				t.pops = 0
			}
		}
		t.flags &= keep
		if !r.task.delivered {
			t.supply = 0
			if !r.task.early && !r.task.order {
				t.takes, t.pops = 0, 0
			}
		}
		if !r.task.delivered && !r.task.early && !r.task.order {
			t.unknown = 0
			if !r.task.effect {
				t.puts = 0
			}
		}
	}
	p.tasks = slices.DeleteFunc(p.tasks, func(t task) bool { return t == task{what: t.what} })
}

// working reports whether the effect of a task may have happened although its client has no answer. An effect that is a
// single command cannot.
func (r *Rules) working(p *past, what label) bool {
	for i := range p.people {
		doing := p.people[i].doing
		for j, d := range doing {
			if d.kind == history.Effect && d.what == what && (!r.single || j < len(doing)-1) {
				return true
			}
		}
	}
	return false
}

// queuedInTheEnd judges that every accepted task is done or still there, and that none is there twice. An effect that
// had begun may have happened.
func (r *Rules) queuedInTheEnd(p *past, audit []history.Op, dead uint16) *Breach {
	if !r.task.lost && !r.task.one {
		return nil
	}
	audited := false
	there, waiting := map[label]bool{}, map[label]int{}
	for i := range audit {
		op := &audit[i]
		if op.Kind != history.ReadState || op.Outcome != history.OK {
			continue
		}
		switch what := labelOf(op.Result, noClient); op.Arg.String() {
		case "audit":
			audited = true
		case "waiting":
			if waiting[what]++; r.task.one && waiting[what] == 2 {
				return broken(variant.Queue, variant.OneEntryPerID, "in the end task %v stands twice in the queue", what)
			}
			there[what] = true
		case "claimed", "dead":
			there[what] = true
		}
	}
	if !audited || !r.task.lost {
		return nil
	}
	for i := range p.tasks {
		t := &p.tasks[i]
		if t.flags&taskOwed == 0 || t.flags&(taskDone|taskPerhaps) != 0 || there[t.what] || r.working(p, t.what) {
			continue
		}
		fate := ""
		for rest := uint16(t.hands) & dead; rest != 0 && fate == ""; rest &= rest - 1 {
			fate = ": client " + label{noClient, int64(bits.TrailingZeros16(rest))}.String() + " died with it in its hands"
		}
		return broken(variant.Queue, variant.NoLostTask, "task %v was enqueued, and is neither done nor there in the end%s", t.what, fate)
	}
	return nil
}
