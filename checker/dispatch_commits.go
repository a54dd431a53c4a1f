package checker

import (
	"fmt"
	"time"

	"oversell/history"
	"oversell/variant"
)

// holderCommits judges that a task is submitted only by the user who holds it.
//
// A commit that landed is a violation for certain when the task had been given to
// another in between: that one's Take was called after the committer's own had
// returned, and returned before the Submit was called. It does not matter
// whether the other one still held it. A Submit that was tried before without
// an answer may have landed in time, and is not blamed. Two commits of one task that
// landed, in different holds, are a violation whatever their order, because after
// the first one nobody holds the task. The smallest bad histories:
//
//	client 1  take    [1, 2]    task 7  until 10
//	client 2  take    [12, 13]  task 7  until 22
//	client 1  submit  [14, 15]  task 7  ok
//
//	client 1  submit  [5, 6]  task 7  ok
//	client 2  submit  [5, 7]  task 7  ok
type holderCommits struct {
	pools keyed[commits]
}

type commits struct {
	key     history.Value
	holds   map[int64]*promise
	tasks   map[history.Value]*deed
	landed  int64
	refused int64
	late    int64 // after another was given the task
	double  int64
	why     string
	witness []history.Op
}

// promise is a hold that was not submitted for certain so far.
type promise struct {
	take  history.Op
	tried bool // without an answer
}

// deed is what is known of a task.
type deed struct {
	takes rising // by their calls
	first history.Op
}

func newHolderCommits() *holderCommits {
	return &holderCommits{pools: newKeyed(func(key history.Value) *commits {
		return &commits{key: key, holds: make(map[int64]*promise), tasks: make(map[history.Value]*deed)}
	})}
}

// Observe implements [Monitor].
func (m *holderCommits) Observe(op *history.Op) {
	switch {
	case op.Kind == history.Take && op.Outcome == history.OK:
		c := m.pools.at(op.Key)
		c.holds[op.Session] = &promise{take: *op}
		c.deed(op.Result).takes.add(int64(op.Call), op)
	case op.Kind == history.Submit:
		m.pools.at(op.Key).submit(op)
	}
}

func (c *commits) deed(task history.Value) *deed {
	d := c.tasks[task]
	if d == nil {
		d = new(deed)
		c.tasks[task] = d
	}
	return d
}

func (c *commits) submit(op *history.Op) {
	h := c.holds[op.Session]
	switch op.Outcome {
	case history.Unknown:
		if h != nil {
			h.tried = true
		}
		return
	case history.Refused:
		c.refused++
	case history.OK:
		if op.Reason != history.Repeated {
			c.commit(h, op)
		}
	}
	delete(c.holds, op.Session)
}

func (c *commits) commit(h *promise, op *history.Op) {
	c.landed++
	d := c.deed(op.Arg)
	before := d.first
	if before.Kind == history.NoKind {
		d.first = *op
	}
	if h != nil && !h.tried {
		if other := d.takes.before(op.Call); other != nil && time.Duration(other.value) > h.take.Return {
			c.late++
			limit := ""
			if h.take.Until > 0 && h.take.Until < op.Call {
				limit = " until " + at(h.take.Until)
			}
			c.note(fmt.Sprintf("late commit: %s was given task %s%s, %s was given it at %s, and yet the commit of %s between %s and %s landed",
				client(&h.take), op.Arg, limit, client(&other.op), at(other.op.Return), client(op), at(op.Call), at(op.Return)), h.take, other.op, *op)
			return
		}
	}
	if before.Kind != history.NoKind && before.Session != op.Session {
		c.double++
		c.note(fmt.Sprintf("two commits of task %s landed: of %s between %s and %s, and of %s between %s and %s", op.Arg,
			client(&before), at(before.Call), at(before.Return), client(op), at(op.Call), at(op.Return)), before, *op)
	}
}

func (c *commits) note(why string, ops ...history.Op) {
	if c.late+c.double == 1 {
		c.why, c.witness = why, inOrder(ops...)
	}
}

// Advance implements [Monitor].
func (m *holderCommits) Advance(lowWater time.Duration) {
	for _, c := range m.pools.all {
		for _, d := range c.tasks {
			d.takes.forget(lowWater)
		}
	}
}

// Verdict implements [Monitor].
func (m *holderCommits) Verdict() Verdict {
	return m.pools.verdict(variant.Dispatch, variant.HolderCommits, nothingTaken, func(c *commits) Verdict {
		switch {
		case c.late+c.double > 0:
			why := c.why
			if c.late+c.double > 1 {
				why += fmt.Sprintf("; %s late and %s second ones in all", count(c.late), count(c.double))
			}
			return Verdict{Result: Violated, Count: int(c.late + c.double), Why: why, Witness: c.witness}
		case c.landed+c.refused == 0:
			return Verdict{Why: "nobody submitted a task"}
		}
		return Verdict{Result: Holds, Why: fmt.Sprintf("%s landed, none after another user was given the task; %s refused", many(c.landed, "commit"), many(c.refused, "submit"))}
	})
}
