package ids

import (
	"fmt"
	"slices"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// nothingNumbered is the reason for having no verdict.
const nothingNumbered = "nobody obtained a number"

// counters is the book of id generators.
//
// A number is contended if another client was given one while its own client wanted it. A client wants a number from
// its call on or, if the number was taken under a lock, from the call by which it obtained the lock: a working lock
// separates the requests themselves, but waiting for the lock still tests it. A single client does not contend, and
// neither do two clients on counters of their own.
type counters struct {
	monitor.Book[counter]
	wishes monitor.Wishes
}

// counterJudge makes a monitor of one property of id generators.
func counterJudge(p variant.Property, judge func(*counter) monitor.Verdict) func(*monitor.Shared) monitor.Monitor {
	return func(s *monitor.Shared) monitor.Monitor {
		return &monitor.Aspect[counter]{Book: &monitor.StateOf(s, variant.IDs, newCounters).Book, Of: variant.IDs, Property: p, Nothing: nothingNumbered, Judge: judge}
	}
}

func newCounters(*monitor.Shared) *counters {
	cs := &counters{}
	cs.All = monitor.NewKeyed(func(key history.Value) *counter {
		c := &counter{counters: cs, key: key, firstTry: history.Forever}
		c.ladder = linearization{c: c, next: 1, now: monitor.Always}
		return c
	})
	cs.Enter, cs.Settle = cs.observe, (*counter).pass
	return cs
}

func (cs *counters) observe(op *history.Op) {
	switch op.Kind {
	case history.Acquire:
		if op.Outcome == history.OK {
			cs.wishes.Grant(op)
		}
	case history.NextID:
		switch {
		case op.Outcome == history.OK:
			cs.All.At(op.Key).give(op)
		case op.Outcome == history.Unknown:
			cs.All.At(op.Key).lose(op)
		}
	case history.ReadState:
		if n, ok := op.Result.Num(); ok && op.Outcome == history.OK && op.Arg == monitor.TheLast {
			cs.All.At(op.Key).read(op, n)
		}
	}
}

// counter is the book of one id generator.
type counter struct {
	*counters
	key     history.Value
	numbers monitor.Table[slot]
	top     rung  // the largest number so far
	n, odd  int64 // answers, and those that are not numbers from 1 on
	texts   int64 // answers that are not numbers
	// distinct counts the numbers from 1 on.
	distinct int64
	last     int64 // the largest number that the server called its last; 0: not known

	unknown   int64 // requests without an answer
	witnesses []history.Op
	tries     map[history.Value]time.Duration // the first of them, by request
	firstTry  time.Duration                   // of all that name a request
	awaited   []request
	again     []history.Op                 // answers not marked as repetitions, to other clients of answered requests
	told      map[history.Value]history.Op // by number: marked as a repetition, and given to no client

	met       monitor.Contention
	contended int64
	followed  int64 // numbers asked for when another client had received one

	twice  twice
	order  ascent
	ladder linearization
}

// slot records which client got a number, for which request, and when.
type slot struct {
	call, ret time.Duration // from the first try on
	request   history.Value
	client    int32
	taken     bool
}

// rung is a number that was given out or, for readings, one that was read.
type rung struct {
	slot
	number int64
}

// request is a request that was answered.
//
// A request without an answer may be sent again, and a generator that knows requests answers with the number of the
// first time: so a number can be as old as the first try. The client may give up on the first try after another try was
// answered, so the history may list the first try later; until then a conclusion from the time of the call is not
// certain.
//
// A request is named by Arg; an operation without one is a request of its own, which only
// the client that was answered can repeat. A client that got an answer may repeat the
// request. Another client takes a request over only when a try of it had no answer. So if
// two clients obtained the same number for one request, of which no try was without an answer
// by then, and neither answer was marked as a repetition, the number was given out twice. If
// the second answer was marked as a repetition, it was not.
type request struct {
	name, number history.Value
	ret          time.Duration
}

// since returns the earliest time at which a number can have been given out, from the tries
// known so far.
func (c *counter) since(op *history.Op) time.Duration {
	if len(c.tries) > 0 && op.Arg != (history.Value{}) {
		if first, ok := c.tries[op.Arg]; ok {
			return min(first, op.Call)
		}
	}
	return op.Call
}

// same reports whether, by the names of the requests, an operation repeats one for which a
// client got an answer.
func same(op *history.Op, request history.Value, client int32) bool {
	if op.Arg == (history.Value{}) {
		return request == op.Arg && client == op.Client && op.Reason == history.Repeated
	}
	return request == op.Arg
}

// tried reports whether a try of the operation's request that had no answer can have come
// before its answer.
func (c *counter) tried(op *history.Op) bool {
	first, ok := c.tries[op.Arg]
	return ok && op.Arg != (history.Value{}) && first <= op.Return
}

// repeat enters an answer whose number must not be counted again. It reports whether the answer was one.
func (c *counter) repeat(s *slot, op *history.Op) bool {
	if s.taken {
		switch {
		case same(op, s.request, s.client):
		case op.Reason == history.Repeated: // it is not given out now
			c.double(s, op)
			return true
		default:
			return false
		}
		if op.Reason != history.Repeated && op.Client != s.client && !c.tried(op) {
			c.again = append(c.again, *op)
		}
		return true
	}
	before, told := c.told[op.Result]
	switch {
	case told && !same(op, before.Arg, before.Client) && !same(&before, op.Arg, op.Client):
		s := slot{before.Call, before.Return, before.Arg, before.Client, true}
		c.double(&s, op)
		return op.Reason == history.Repeated
	case op.Reason != history.Repeated, c.tried(op):
		delete(c.told, op.Result) // this explains it
		return false
	case !told:
		if c.told == nil {
			c.told = make(map[history.Value]history.Op)
		}
		c.told[op.Result] = *op
	}
	return true
}

// double notes that a number was given out again.
func (c *counter) double(first *slot, op *history.Op) {
	c.twice.add(c, first, op)
	c.ladder.again(first, op)
}

// give enters a number that was given out. It does not count a number that the same request had received before.
func (c *counter) give(op *history.Op) {
	s := c.numbers.At(op.Result)
	if c.repeat(s, op) {
		return
	}
	c.n++
	c.last = 0 // an earlier reading is not final
	if c.met.Follows(op.Client, op.Call) {
		c.followed++
	}
	if c.met.Meets(op.Client, c.wishes.Since(op), op.Return) {
		c.contended++
	}
	g := slot{c.since(op), op.Return, op.Arg, op.Client, true}
	v, ok := op.Result.Num()
	if ok {
		c.order.give(rung{g, v}, op)
	} else {
		c.texts++
	}
	c.ladder.give(op, s)
	switch {
	case !ok || v < 1:
		c.odd++
	case !s.taken:
		c.distinct++
	}
	if s.taken {
		c.double(s, op)
		return
	}
	*s = g
	if ok && v > c.top.number {
		c.top = rung{g, v}
	}
	if g.request != (history.Value{}) {
		c.awaited = append(c.awaited, request{g.request, op.Result, g.ret})
	}
}

// lose enters a request without an answer.
func (c *counter) lose(op *history.Op) {
	c.last = 0
	if c.unknown++; len(c.witnesses) < 4 {
		c.witnesses = append(c.witnesses, *op)
	}
	c.ladder.lose(op)
	if op.Arg == (history.Value{}) {
		return
	}
	if c.tries == nil {
		c.tries = make(map[history.Value]time.Duration)
	}
	if first, ok := c.tries[op.Arg]; ok && first <= op.Call {
		return
	}
	c.tries[op.Arg] = op.Call
	c.firstTry = min(c.firstTry, op.Call)
	c.again = slices.DeleteFunc(c.again, func(a history.Op) bool { return a.Arg == op.Arg && op.Call <= a.Return })
	for i := len(c.awaited) - 1; i >= 0 && c.awaited[i].ret > op.Call; i-- {
		if c.awaited[i].name == op.Arg {
			s := c.numbers.At(c.awaited[i].number)
			s.call = min(s.call, op.Call)
		}
	}
	c.order.lose(op)
}

// read enters a reading of the server's last number.
func (c *counter) read(op *history.Op, n int64) {
	c.last = max(c.last, n)
	c.ladder.reads = append(c.ladder.reads, rung{slot{op.Call, op.Return, history.Value{}, op.Client, true}, n})
}

// pass settles everything that no later operation can change. Requests without an answer so far may be answered as of
// their first try.
func (c *counter) pass(lowWater time.Duration) {
	known := 0
	for known < len(c.awaited) && c.awaited[known].ret < lowWater {
		known++
	}
	c.awaited = c.awaited[known:]
	known = 0
	for known < len(c.again) && c.again[known].Return < lowWater {
		c.double(c.numbers.At(c.again[known].Result), &c.again[known])
		known++
	}
	c.again = c.again[known:]
	c.order.pass(lowWater, c.firstTry)
	if lowWater < history.Forever {
		lowWater = min(lowWater, c.firstTry)
	}
	c.ladder.pass(lowWater)
}

// op rebuilds from the record the operation by which a number was given out.
func (c *counter) op(s *slot, number history.Value) history.Op {
	return history.Op{Client: s.client, Kind: history.NextID, Outcome: history.OK, Key: c.key, Arg: s.request, Result: number, Due: s.call, Call: s.call, Return: s.ret}
}

// unclear returns why repetitions leave the verdict open; it is empty if there are none.
func (c *counter) unclear() string {
	if len(c.told) == 0 {
		return ""
	}
	var first history.Op
	for _, op := range c.told {
		if first.Kind == history.NoKind || op.Return < first.Return || op.Return == first.Return && op.Client < first.Client {
			first = op
		}
	}
	why := fmt.Sprintf("%s was told at %s to have been given %s before, and no earlier answer or try of its request is known", say.Client(&first), say.At(first.Return), first.Result)
	if len(c.told) > 1 {
		why += fmt.Sprintf("; %s numbers in all", say.Thousands(len(c.told)))
	}
	return why
}

// inContention describes how many of the numbers were contended.
func (c *counter) inContention() string { return say.Count(c.contended, "contended request") }
