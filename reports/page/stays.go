package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/variant"
)

// stay is a time in which a client holds something: a lock, a task.
type stay struct {
	client int32
	key    history.Value
	// by is the operation that began it.
	by       history.Op
	from, to time.Duration
	// until is the end of the lease; 0: there is none.
	until time.Duration
	// end is the operation that ended it; of kind NoKind if none did.
	end history.Op
	// enqueued is how often a task may have been enqueued before it was taken, and so how often it may be
	// delivered.
	enqueued int
}

// core returns the part of a stay in which exclusion was promised.
func (s *stay) core() (from, to time.Duration) {
	if s.until > 0 {
		return s.from, min(s.to, s.until)
	}
	return s.from, s.to
}

// inHand identifies something that a client holds, like the checkers do: a lock or a hold by its session, whichever
// client ends it. (After a missing answer a client continues under a new number, and then releases what it was
// granted under the old one.) A queue's task is identified by client and task, because the effect of a task names
// no request.
type inHand struct {
	of      variant.Object
	key     history.Value
	session history.Value
	client  int32
}

// lockInHand returns what a lock operation refers to.
func lockInHand(op *history.Op) inHand {
	return inHand{of: variant.Lock, key: op.Key, session: op.Arg}
}

// holdInHand returns what a dispatch operation refers to; task is its task.
func holdInHand(op *history.Op, task history.Value) inHand {
	if op.Session == (history.Value{}) {
		return inHand{of: variant.Dispatch, key: task, client: op.Client}
	}
	return inHand{of: variant.Dispatch, session: op.Session}
}

func taskInHand(client int32, task history.Value) inHand {
	return inHand{of: variant.Queue, key: task, client: client}
}

// mostOpen bounds the number of open stays that are tracked.
const mostOpen = 1 << 16

// hands tracks what each client holds.
type hands struct {
	window
	locks bool // whether the lock has promises
	open  map[inHand]stay
	// poppers are the clients that hold a task of a queue.
	poppers map[history.Value][]int32
	stays   []stay
}

// staysIn returns the stays that overlap the window.
func staysIn(h *history.History, w window) []stay {
	in := &hands{window: w, locks: h.Header.PromisedOf(variant.Lock), open: map[inHand]stay{}, poppers: map[history.Value][]int32{}}
	for op := range h.Each() {
		switch op.Kind {
		case history.Acquire, history.Extend, history.Release:
			if in.locks {
				in.lock(op)
			}
		case history.Take, history.Submit:
			in.dispatch(op)
		case history.Pop, history.Effect, history.Ack:
			if op.Outcome == history.OK {
				in.queue(op)
			}
		}
	}
	for _, st := range in.open {
		in.never(st, cmp.Or(st.until, w.to))
	}
	slices.SortFunc(in.stays, func(a, b stay) int {
		if n := cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.client, b.client)); n != 0 {
			return n
		}
		return strings.Compare(a.key.String(), b.key.String())
	})
	return in.stays
}

// never ends a stay that no operation ended, at time to.
func (in *hands) never(st stay, to time.Duration) {
	st.to = to
	if st.by.Kind == history.Pop {
		st.to = st.from // its end is unknown
	}
	in.keep(st)
}

func (in *hands) keep(st stay) {
	if st.from <= in.to && st.to >= in.from {
		in.stays = append(in.stays, st)
	}
}

// begin opens a stay. A stay with the same name ends.
func (in *hands) begin(k inHand, st stay) {
	if first, ok := in.open[k]; ok {
		delete(in.open, k)
		in.never(first, min(st.by.Call, cmp.Or(first.until, history.Forever)))
	}
	if st.from <= in.to && (len(in.open) < mostOpen || st.from >= in.from) {
		in.open[k] = st
	}
}

func (in *hands) end(k inHand, op *history.Op, at time.Duration) {
	st, ok := in.open[k]
	if !ok {
		return
	}
	st.to, st.end = at, *op
	if op.Kind != history.Extend {
		st.until = max(st.until, op.Until)
	}
	delete(in.open, k)
	in.keep(st)
}

func (in *hands) lock(op *history.Op) {
	k := lockInHand(op)
	st, ok := in.open[k]
	switch {
	case op.Kind == history.Acquire:
		if op.Outcome == history.OK {
			in.begin(k, stay{client: op.Client, key: op.Key, by: *op, from: op.Return, until: op.Until})
		}
	case op.Kind == history.Release:
		in.end(k, op, op.Call)
	case !ok:
	case op.Outcome == history.OK && (st.until == 0 || op.Return <= st.until):
		st.until = max(st.until, op.Until)
		in.open[k] = st
	case op.Outcome == history.OK: // the lease had ended meanwhile
		in.end(k, op, max(st.until, op.Call))
		in.begin(k, stay{client: st.client, key: op.Key, by: st.by, from: op.Return, until: op.Until})
	case op.Outcome == history.Refused && op.Reason == history.Lost:
		in.end(k, op, op.Call)
	}
}

func (in *hands) dispatch(op *history.Op) {
	switch {
	case op.Kind == history.Submit:
		in.end(holdInHand(op, op.Arg), op, op.Call)
	case op.Outcome == history.OK:
		in.begin(holdInHand(op, op.Result), stay{client: op.Client, key: op.Result, by: *op, from: op.Return, until: op.Until})
	}
}

func (in *hands) queue(op *history.Op) {
	if op.Kind == history.Pop {
		k := taskInHand(op.Client, op.Result)
		if _, again := in.open[k]; !again {
			in.poppers[op.Result] = append(in.poppers[op.Result], op.Client)
		}
		in.begin(k, stay{client: op.Client, key: op.Result, by: *op, from: op.Return})
		return
	}
	has, who := in.poppers[op.Arg], op.Client
	if !slices.Contains(has, who) {
		if len(has) != 1 {
			return // its holder is unknown
		}
		who = has[0]
	}
	in.end(taskInHand(who, op.Arg), op, op.Return)
	if has = slices.DeleteFunc(has, func(c int32) bool { return c == who }); len(has) == 0 {
		delete(in.poppers, op.Arg)
	} else {
		in.poppers[op.Arg] = has
	}
}
