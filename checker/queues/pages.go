package queues

import (
	"oversell/checker/monitor"
	"oversell/history"
)

// packRecord writes or reads the differences of a record from the one before it.
func packRecord(c *monitor.Packer, number int32, r, before *record) {
	what := int64(r.kind) | int64(r.outcome)<<8 | int64(r.reason)<<16
	monitor.Number(c, &what)
	r.kind, r.outcome, r.reason = history.Kind(what), history.Outcome(what>>8), history.Reason(what>>16)
	monitor.Since(c, &r.ret, before.ret)
	monitor.Since(c, &r.call, r.ret)
	isDue, isLast := r.due != 0, r.next < 0
	c.Bits(&isDue, &isLast)
	if isDue {
		monitor.Since(c, &r.due, r.call)
	}
	if isLast {
		r.next = -1
	} else {
		monitor.Since(c, &r.next, number)
	}
	c.Value(&r.session, before.session)
	monitor.Number(c, &r.client)
	monitor.Since(c, &r.task, before.task)
	monitor.Number(c, &r.since)
	monitor.Number(c, &r.attempt)
	*before = *r
}

// packTask does the same for a task. Most tasks are enqueued, delivered and done once.
func packTask(c *monitor.Packer, _ int32, t, before *task) {
	usual := task{puts: 1, pops: 1, takes: 1, effects: 1, done: 1}
	usual.id, usual.first, usual.last, usual.client = t.id, t.first, t.last, t.client
	usual.stopped, usual.delayed, usual.several, usual.met, usual.raced = t.stopped, t.delayed, t.several, t.met, t.raced
	isUsual := *t == usual
	c.Bits(&isUsual, &t.stopped, &t.delayed, &t.several, &t.met, &t.raced)
	c.Value(&t.id, before.id)
	monitor.Since(c, &t.first, before.first)
	monitor.Since(c, &t.last, t.first)
	monitor.Number(c, &t.client)
	if isUsual {
		t.puts, t.pops, t.takes, t.effects, t.done = 1, 1, 1, 1, 1
	} else {
		for _, n := range []*int32{&t.puts, &t.maybePuts, &t.repeats, &t.pops, &t.takes, &t.drops, &t.maybeDrops,
			&t.effects, &t.repeated, &t.maybeEffects, &t.done, &t.maybeDone, &t.waiting, &t.claimed, &t.dead} {
			monitor.Number(c, n)
		}
	}
	*before = *t
}

// packState does the same for the state of a task. Of a task that is not there and has no operation in flight, only the
// version matters.
func packState(c *monitor.Packer, _ int32, s, _ *state) {
	idle := s.phase == absent && s.credit == 0 && s.flying == 0 && !s.taking && !s.core && !s.seen && !s.tangled && !s.haunted
	c.Bits(&idle, &s.taking, &s.core, &s.seen, &s.tangled, &s.haunted)
	monitor.Number(c, &s.version)
	if idle {
		*s = state{version: s.version}
		return
	}
	monitor.Number(c, &s.lo)
	monitor.Number(c, &s.hi)
	monitor.Number(c, &s.sight)
	for _, n := range []*int32{&s.put, &s.asked, &s.since, &s.credit, &s.flying} {
		monitor.Number(c, n)
	}
	monitor.Number(c, &s.phase)
}
