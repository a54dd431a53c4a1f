package dispatch

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// holderCommits judges that a task is submitted once, and only by the user who holds it.
//
// A commit that landed is a violation for certain when
//
//   - the task had been given to another in between: that one's Take was called after the
//     committer's own had returned, and returned before the Submit was called. It does not
//     matter whether the other one still held it. But the committer may have been given the task again after that, perhaps
//     by a Take without an answer; then a Submit under the earlier hold counts, too. If an earlier Submit of the same hold,
//     before the other was given the task, has no answer, it may have landed in time, and nothing is blamed;
//   - or the committer cannot have held the task at all: no Take granted it under the hold
//     that the Submit names, its client was never given it under another, and neither the
//     hold nor the client has a Take without an answer, which may have granted it.
//
// Two commits of one task that landed, in different holds, are a violation in any order, even if they are of one user or the
// task was handed out again: a task is submitted once, and after that no user holds it. A Submit answered as a repetition
// changed nothing, if a Submit of a user who can have held the task can have landed before it; otherwise it is judged as
// that commit. In any case the task was submitted by then, and a commit in another hold that began later is the second. The
// smallest bad histories:
//
//	client 1  take    [1, 2]    task 7  until 10
//	client 2  take    [12, 13]  task 7  until 22
//	client 1  submit  [14, 15]  task 7  ok
//
//	client 1  take    [1, 2]    task 7
//	client 2  submit  [3, 4]    task 7  ok
//
//	client 1  submit  [5, 6]  task 7  ok
//	client 2  submit  [5, 7]  task 7  ok
//
//	client 1  take    [1, 2]  task 7
//	client 1  submit  [3, 4]  task 7  ok
//	client 2  take    [5, 6]  task 7
//	client 2  submit  [7, 8]  task 7  ok
//
//	client 1  take    [1, 2]  task 7
//	client 1  submit  [3, 4]  task 7  ok (repeated)
//	client 2  take    [5, 6]  task 7
//	client 2  submit  [7, 8]  task 7  ok
func holderCommits(*monitor.Shared) monitor.Monitor {
	b := &monitor.Book[commits]{All: monitor.NewKeyed(func(history.Value) *commits {
		return &commits{holds: make(map[history.Value]*commitHold), tasks: make(map[history.Value]*commitRecord),
			given: make(map[recipient]*commitHold), asked: make(map[int32]time.Duration),
			owned: make(map[ownership]*commitHold), wanted: make(map[history.Value]time.Duration)}
	}), Settle: (*commits).settle}
	b.Enter = func(op *history.Op) {
		switch {
		case op.Kind == history.Take && op.Outcome == history.OK:
			b.All.At(op.Key).granted(op)
		case op.Kind == history.Take && op.Outcome == history.Unknown:
			b.All.At(op.Key).unanswered(op)
		case op.Kind == history.Take && op.Outcome == history.Refused && op.Reason == history.Empty:
			b.All.At(op.Key).met.Add(op.Client, op.Return)
		case op.Kind == history.Submit && op.Reason != history.Stopped:
			b.All.At(op.Key).submit(op)
		}
	}
	return aspect(b, variant.HolderCommits, func(c *commits) monitor.Verdict { return c.verdict(b.Ended) })
}

type commits struct {
	holds   map[history.Value]*commitHold
	tasks   map[history.Value]*commitRecord
	given   map[recipient]*commitHold       // the last hold of each client and task
	asked   map[int32]time.Duration         // by client: the earliest take without an answer
	owned   map[ownership]*commitHold       // the last hold of each user who is named, and task
	wanted  map[history.Value]time.Duration // by user: the earliest take without an answer
	landed  int64
	refused int64
	met     monitor.Contention // takes that were answered
	atRisk  int64              // submits, answered
	doubts  []*doubt
	repeats []*doubt // those answered as repetitions
	tries   []*doubt // those without an answer that came too late, as far as is known, or without a hold
}

// recipient is a client that was given a task.
type recipient struct {
	task   history.Value
	client int32
}

// ownership is a task that a user was given.
type ownership struct{ task, user history.Value }

// commitHold is a hold, with what is known of the commits under it.
type commitHold struct {
	take  history.Op    // OK, or without an answer
	sent  time.Duration // the earliest submit that may have landed
	tried time.Duration // the earliest of them that landed, or that may have landed in time
	met   bool          // the take was contended
}

// doubt is a commit that landed, or may have, with the evidence against it. A take that returns later, or has no answer, may
// explain it.
type doubt struct {
	op     history.Op
	hold   *commitHold // nil: none that granted the task
	other  history.Op  // the take of another in between
	before history.Op  // an earlier commit, in another hold
	given  bool        // the user can have been given the task by then
	told   history.Op  // an earlier repetition, in another hold
	own    *commitHold // if told: the hold of op, a submit of which it may tell
}

// commitRecord is the record of the commits of a task.
type commitRecord struct {
	takes   monitor.RunningMax                    // by their calls
	users   map[history.Value]*monitor.RunningMax // the same for each user; those that are not named are one
	first   history.Op
	client  int32 // that was given it first
	several bool  // others were given it, too
	taken   bool
	tried   time.Duration // the earliest submit that landed, or that may have landed in time
	open    []*doubt      // those that a take may still explain, by their returns
	told    [2]history.Op // the earliest repetition, and the earliest in another hold
}

// granted enters a Take that was answered with a task.
func (c *commits) granted(op *history.Op) {
	h := &commitHold{take: *op, sent: history.Forever, tried: history.Forever, met: c.met.Meets(op.Client, op.Call, op.Return)}
	c.holds[op.Session] = h
	d := c.deed(op.Result)
	for _, bad := range slices.Backward(d.open) {
		if bad.op.Return <= op.Call {
			break // those before it returned earlier
		}
		bad.given = bad.given || bad.of(op)
	}
	d.takes.Add(int64(op.Call), op)
	of := d.users[op.Arg]
	if of == nil {
		of = new(monitor.RunningMax)
		d.users[op.Arg] = of
	}
	of.Add(int64(op.Call), op)
	if op.Arg != (history.Value{}) {
		c.owned[ownership{op.Result, op.Arg}] = h
	}
	if !d.taken {
		d.taken, d.client = true, op.Client
	}
	d.several = d.several || op.Client != d.client
	c.given[recipient{op.Result, op.Client}] = h
}

// unanswered enters a Take without an answer.
func (c *commits) unanswered(op *history.Op) {
	if first, ok := c.asked[op.Client]; !ok || op.Call < first {
		c.asked[op.Client] = op.Call
	}
	if first, ok := c.wanted[op.Arg]; op.Arg != (history.Value{}) && (!ok || op.Call < first) {
		c.wanted[op.Arg] = op.Call
	}
	if op.Session != (history.Value{}) {
		c.holds[op.Session] = &commitHold{take: *op, sent: history.Forever, tried: history.Forever}
	}
}

func (c *commits) deed(task history.Value) *commitRecord {
	d := c.tasks[task]
	if d == nil {
		d = &commitRecord{tried: history.Forever, users: make(map[history.Value]*monitor.RunningMax)}
		c.tasks[task] = d
	}
	return d
}

func (c *commits) submit(op *history.Op) {
	h, d := c.holds[op.Session], c.deed(op.Arg)
	if op.Outcome != history.Unknown && (d.several || h != nil && h.met) {
		c.atRisk++
	}
	if op.Outcome == history.Refused {
		c.refused++
		return
	}
	bad := c.doubt(op, d)
	inTime := op.Outcome == history.OK || !c.certain(bad)
	switch {
	case op.Outcome == history.OK && op.Reason == history.Repeated:
		c.repeats = append(c.repeats, bad)
		d.tells(op)
	case op.Outcome == history.OK:
		c.commit(bad, d, h)
		d.tried = min(d.tried, op.Call)
	case inTime:
		d.tried = min(d.tried, op.Call)
	default:
		c.tries = append(c.tries, bad)
	}
	if c.certain(bad) {
		d.open = append(d.open, bad)
	}
	if h != nil {
		h.sent = min(h.sent, op.Call)
		if inTime {
			h.tried = min(h.tried, op.Call)
		}
	}
}

// tells enters a repetition, which says that the task was submitted by then.
func (d *commitRecord) tells(op *history.Op) {
	switch {
	case d.told[0].Kind == history.NoKind:
		d.told[0] = *op
	case d.told[1].Kind == history.NoKind && d.told[0].Session != op.Session:
		d.told[1] = *op
	}
}

// commit enters a commit that landed, in the hold h.
func (c *commits) commit(bad *doubt, d *commitRecord, h *commitHold) {
	op := &bad.op
	c.landed++
	for _, told := range d.told {
		if told.Kind != history.NoKind && told.Session != op.Session && told.Return < op.Call && h != nil {
			bad.told, bad.own = told, h
			break
		}
	}
	if d.first.Kind == history.NoKind {
		d.first = *op
	} else if d.first.Session != op.Session {
		bad.before = d.first
	}
	if bad.second() || c.certain(bad) {
		c.doubts = append(c.doubts, bad)
	}
}

// second reports whether the task of a commit was surely submitted before, in another hold.
func (bad *doubt) second() bool {
	return bad.before.Kind != history.NoKind || bad.told.Kind != history.NoKind && bad.own.sent > bad.told.Return
}

// of reports whether a take is by the user of the commit.
func (bad *doubt) of(take *history.Op) bool {
	if bad.hold == nil {
		return take.Session == bad.op.Session || take.Client == bad.op.Client
	}
	return sameUser(take, &bad.hold.take) || take.Client == bad.op.Client
}

// doubt returns the evidence known so far against a commit.
func (c *commits) doubt(op *history.Op, d *commitRecord) *doubt {
	h := c.holds[op.Session]
	if h == nil || h.take.Outcome == history.OK && h.take.Result != op.Arg {
		h = c.given[recipient{op.Arg, op.Client}] // the user may name another hold than the task's
	}
	bad := &doubt{op: *op, hold: h}
	if h == nil || h.take.Outcome == history.Unknown {
		return bad
	}
	if last := c.owned[ownership{op.Arg, h.take.Arg}]; last != nil && last.take.Return > h.take.Return { // the user was given the task again
		h = last
	}
	if other := d.after(h, op.Call); other != nil {
		bad.other = other.Op
	}
	return bad
}

// after returns the last take by which another user was given the task after the hold h, and before a time; nil if there is
// none.
func (d *commitRecord) after(h *commitHold, call time.Duration) *monitor.Step {
	late := func(s *monitor.Step) bool { return s != nil && time.Duration(s.Value) > h.take.Return }
	last := d.takes.Before(call)
	if !late(last) || !sameUser(&last.Op, &h.take) {
		if late(last) {
			return last
		}
		return nil
	}
	last = nil
	for _, of := range d.users {
		if s := of.Before(call); late(s) && !sameUser(&s.Op, &h.take) && (last == nil || s.Value > last.Value) {
			last = s
		}
	}
	return last
}

// certain reports whether no known operation explains a commit.
func (c *commits) certain(bad *doubt) bool {
	op := &bad.op
	if bad.given {
		return false
	}
	if h := bad.hold; h != nil {
		if bad.other.Kind == history.NoKind || h.tried < op.Call {
			return false
		}
		if wanted, ok := c.wanted[h.take.Arg]; ok && wanted <= op.Return {
			return false // the user may have been given it again
		}
		if h.take.Session == op.Session {
			return true
		}
	}
	if h := c.holds[op.Session]; h != nil && h.take.Outcome == history.Unknown {
		return false
	}
	asked, ok := c.asked[op.Client]
	return !ok || asked > op.Return
}

// tell returns the sentence, and the witness, about a commit that nothing explains.
func (c *commits) tell(bad *doubt) (string, []history.Op) {
	op := &bad.op
	if !c.certain(bad) {
		before := &bad.before
		if before.Kind == history.NoKind {
			return fmt.Sprintf("second commit: task %s was submitted by %s, as %s was told, and yet the commit of %s, under another hold, between %s and %s landed", op.Arg,
				say.At(bad.told.Return), say.Client(&bad.told), say.Client(op), say.At(op.Call), say.At(op.Return)), monitor.InOrder(bad.told, *op)
		}
		return fmt.Sprintf("two commits of task %s landed: of %s between %s and %s, and of %s between %s and %s", op.Arg,
			say.Client(before), say.At(before.Call), say.At(before.Return), say.Client(op), say.At(op.Call), say.At(op.Return)), monitor.InOrder(*before, *op)
	}
	if bad.hold == nil {
		return fmt.Sprintf("commit without a hold: %s was not given task %s, under hold %s or another, and yet its commit between %s and %s landed",
			say.Client(op), op.Arg, op.Session, say.At(op.Call), say.At(op.Return)), []history.Op{*op}
	}
	take, limit := &bad.hold.take, ""
	if take.Until > 0 && take.Until < op.Call {
		limit = " until " + say.At(take.Until)
	}
	return fmt.Sprintf("late commit: %s was given task %s%s, %s was given it at %s, and yet the commit of %s between %s and %s landed",
		say.Client(take), op.Arg, limit, say.Client(&bad.other), say.At(bad.other.Return), say.Client(op), say.At(op.Call), say.At(op.Return)), monitor.InOrder(*take, bad.other, *op)
}

// bad lists the commits that nothing explains. If several commits of one task are reported as repetitions, and no other
// commit can have landed before them, one of them must be the commit itself.
func (c *commits) bad() (list []*doubt, second int) {
	for _, bad := range c.doubts {
		switch {
		case c.certain(bad):
			list = append(list, bad)
		case bad.second():
			list = append(list, bad)
			second++
		}
	}
	landed := make(map[history.Value]time.Duration) // by task: the earliest that may be the commit of which a repetition tells
	for _, bad := range slices.Concat(c.repeats, c.tries) {
		if !c.certain(bad) {
			if first, ok := landed[bad.op.Arg]; !ok || bad.op.Call < first {
				landed[bad.op.Arg] = bad.op.Call
			}
		}
	}
	for _, bad := range c.repeats {
		if first, ok := landed[bad.op.Arg]; c.certain(bad) && c.deed(bad.op.Arg).tried > bad.op.Return && (!ok || first > bad.op.Return) {
			list = append(list, bad)
			landed[bad.op.Arg] = monitor.Always
		}
	}
	return list, second
}

func (c *commits) settle(lowWater time.Duration) {
	for _, d := range c.tasks {
		d.open = slices.DeleteFunc(d.open, func(bad *doubt) bool { return bad.op.Return < lowWater })
		d.takes.Forget(lowWater)
		for _, of := range d.users {
			of.Forget(lowWater)
		}
	}
}

func (c *commits) verdict(cut bool) monitor.Verdict {
	bad, second := c.bad()
	switch {
	case len(bad) > 0:
		why, witness := c.tell(bad[0])
		if cut && !slices.ContainsFunc(bad, func(d *doubt) bool { return d.before.Kind != history.NoKind }) {
			return monitor.Undecided(why + "; but " + monitor.CutOff)
		}
		if len(bad) > 1 {
			why += fmt.Sprintf("; %s late or without a hold and %s second ones in all", say.Thousands(len(bad)-second), say.Thousands(second))
		}
		return monitor.Verdict{Result: monitor.Violated, Count: len(bad), Opportunities: c.atRisk, Why: why, Witness: witness}
	case c.landed+c.refused+int64(len(c.repeats)) == 0:
		return monitor.Verdict{Why: "nobody submitted a task"}
	}
	return monitor.Verdict{Result: monitor.Holds, Opportunities: c.atRisk, Why: fmt.Sprintf("%s landed, none after another user was given the task; %s refused; %s of tasks that others could have held",
		say.Count(c.landed, "commit"), say.Count(c.refused, "submit"), say.Count(c.atRisk, "submit"))}
}
