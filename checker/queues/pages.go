package queues

import (
	"oversell/checker/monitor"
	"oversell/history"
)

// packRecord writes or reads the differences of a record from the one before it.
func packRecord(c *monitor.Packer, number int32, r, before *record) {
	isDue, isLast, isUsual := r.due != 0, r.next < 0, r.isUsual()
	monitor.Number(c, &r.kind)
	c.Bits(&isDue, &isLast, &isUsual)
	monitor.Since(c, &r.ret, before.ret)
	monitor.Since(c, &r.call, r.ret)
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
	if isUsual {
		r.outcome, r.attempt = history.OK, r.usualAttempt()
	} else {
		monitor.Number(c, &r.outcome)
		monitor.Number(c, &r.reason)
		monitor.Number(c, &r.since)
		monitor.Number(c, &r.attempt)
	}
	*before = *r
}

// isUsual reports whether a record has the outcome, reason and attempt of most records of its kind.
func (r *record) isUsual() bool {
	return r.outcome == history.OK && r.reason == history.NoReason && r.since == 0 && r.attempt == r.usualAttempt()
}

// usualAttempt returns the attempt of most records of its kind.
func (r *record) usualAttempt() int32 {
	if r.kind == history.Pop {
		return 1
	}
	return 0
}

// packTask does the same for a task. Most tasks are enqueued, delivered and done once.
func packTask(c *monitor.Packer, _ int32, t, before *task) {
	isUsual := t.usual()
	c.Bits(&isUsual, &t.stopped, &t.delayed, &t.waited, &t.several, &t.met, &t.raced)
	c.Value(&t.id, before.id)
	monitor.Since(c, &t.first, before.first)
	monitor.Since(c, &t.last, t.first)
	monitor.Number(c, &t.client)
	if isUsual {
		t.puts, t.pops, t.takes, t.effects, t.done = 1, 1, 1, 1, 1
	} else {
		c.Bits(&t.early, &t.doubted)
		for _, n := range []*int32{&t.puts, &t.maybePuts, &t.repeats, &t.pops, &t.takes, &t.drops, &t.maybeDrops,
			&t.effects, &t.repeated, &t.maybeEffects, &t.done, &t.maybeDone, &t.waiting, &t.claimed, &t.dead} {
			monitor.Number(c, n)
		}
	}
	*before = *t
}

// usual reports whether a task was enqueued, delivered and done once, and all its other counts are zero.
func (t *task) usual() bool {
	return t.puts == 1 && t.pops == 1 && t.takes == 1 && t.effects == 1 && t.done == 1 && !t.early && !t.doubted &&
		t.maybePuts|t.repeats|t.drops|t.maybeDrops|t.repeated|t.maybeEffects|t.maybeDone|t.waiting|t.claimed|t.dead == 0
}

// packState does the same for the state of a task. Of a task that is not there and has no operation in flight, only the
// version matters.
func packState(c *monitor.Packer, _ int32, s, _ *state) {
	idle := s.phase == absent && s.credit == 0 && s.flying == 0 && !s.taking && !s.core && !s.seen && !s.tangled && !s.tainted
	c.Bits(&idle, &s.taking, &s.core, &s.seen, &s.tangled, &s.tainted, &s.perhaps, &s.replaced)
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
