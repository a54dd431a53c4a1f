package page

import (
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// labels returns the texts of the bars of a timeline.
func labels(tl *timeline) (all []string) {
	for _, b := range tl.Bars {
		all = append(all, b.Label)
	}
	return all
}

// TestStaysEndUnderNewNumbers checks that a stay ends when its client ends it under a new number, which a client gets
// when it had no answer.
func TestStaysEndUnderNewNumbers(t *testing.T) {
	session := func(n int64) func(*history.Op) {
		return func(op *history.Op) { op.Arg, op.Until = history.Int(n), 10*time.Second }
	}
	in := recording(promising("mutex", exclusion),
		at(1, history.Acquire, 1*ms, 2*ms, session(1)), at(8, history.Release, 4*ms, 5*ms, session(1)),
		at(2, history.Acquire, 1*ms, 6*ms, session(2)), at(2, history.Release, 8*ms, 9*ms, func(op *history.Op) { session(2)(op); op.Outcome = history.Unknown }),
	).judged(reports.Pass, kept(variant.Lock, variant.MutualExclusion))
	got := labels(drawn(in))
	for _, want := range []string{"; client 8 released it at 4.000 ms", "; it tried to release it at 8.000 ms and had no answer"} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, want) }) {
			t.Errorf("no bar ends with %q: %q", want, got)
		}
	}

	hold := func(n int64) func(*history.Op) {
		return func(op *history.Op) { op.Result, op.Session, op.Until = history.Int(5), history.Int(n), time.Second }
	}
	in = recording(promising("dispatch", history.Promise{Of: variant.Dispatch, Property: variant.OneHolderPerTask}),
		at(1, history.Take, 1*ms, 2*ms, hold(7)),
		at(9, history.Submit, 4*ms, 5*ms, func(op *history.Op) { op.Arg, op.Session = history.Int(5), history.Int(7) })).judged(reports.Pass)
	if got := labels(drawn(in)); len(got) != 1 || !strings.HasSuffix(got[0], "client 9 released it at 4.000 ms") {
		t.Errorf("the bars of a dispatch: %q", got)
	}

	pop := func(op *history.Op) { op.Result = history.Int(3) }
	arg := func(op *history.Op) { op.Arg = history.Int(3) }
	q := promising("queue", history.Promise{Of: variant.Queue, Property: variant.NoDuplicateDelivery})
	in = recording(q, at(1, history.Pop, 1*ms, 2*ms, pop), at(9, history.Effect, 4*ms, 5*ms, arg)).judged(reports.Pass)
	if got := labels(drawn(in)); len(got) != 1 || !strings.HasSuffix(got[0], "client 9 was done with it at 5.000 ms") {
		t.Errorf("the bars of a queue: %q", got)
	}
	in = recording(q, at(1, history.Pop, 1*ms, 2*ms, pop), at(2, history.Pop, 1*ms, 3*ms, pop), at(9, history.Effect, 4*ms, 5*ms, arg)).judged(reports.Pass)
	if got := labels(drawn(in)); len(got) != 0 { // nobody knows whose task the effect ended
		t.Errorf("the bars of a queue in which two had the task: %q", got)
	}
}

// TestSessionUsedTwice checks that the first use of a session ends when the second begins, as in the monitors.
func TestSessionUsedTwice(t *testing.T) {
	session := func(op *history.Op) { op.Arg = history.Int(1) }
	in := recording(promising("mutex", exclusion), at(1, history.Acquire, 1*ms, 2*ms, session), at(2, history.Acquire, 4*ms, 5*ms, session), at(2, history.Release, 6*ms, 7*ms, session)).judged(reports.Pass)
	got := staysIn(in.History, window{to: time.Second})
	if len(got) != 2 || got[0].to != 4*ms || got[1].to != 6*ms {
		t.Errorf("stays %+v", got)
	}
}

// TestStoryFollowsNewNumbers checks that the story includes what a client did in the same session under another
// number.
func TestStoryFollowsNewNumbers(t *testing.T) {
	session := func(n int64) func(*history.Op) { return func(op *history.Op) { op.Arg = history.Int(n) } }
	a, b := at(1, history.Acquire, 1*ms, 2*ms, session(1)), at(2, history.Acquire, 2*ms, 3*ms, session(2))
	buy := at(9, history.Buy, 4*ms, 5*ms, func(op *history.Op) { op.Key, op.Session = history.Text("phone"), history.Int(1) })
	back := at(9, history.Release, 6*ms, 7*ms, session(1))
	elsewhere := at(3, history.Acquire, 2*ms, 3*ms, func(op *history.Op) { op.Key, op.Arg = history.Text("other"), history.Int(1) })
	in := recording(promising("mutex", exclusion), a, b, buy, back, elsewhere).judged(reports.Violated, broken(variant.Lock, variant.MutualExclusion, "two", a, b))
	if s := storyOf(in.History, &in.Run); !slices.Equal(s.ops, []history.Op{a, b, buy, back}) {
		t.Errorf("the story is\n%v", s.ops)
	}
}

// TestNumbersAreExplained checks that the page explains client numbers that are higher than the run had clients.
func TestNumbersAreExplained(t *testing.T) {
	draw := func(highest int, resend float64, engine string) string {
		h := promising("seckill", exclusion)
		h.Sale, h.Clients, h.Resend, h.Engine = "lua", 8, resend, engine
		in := recording(h, at(1, history.Buy, 1*ms, 2*ms, nil), at(highest, history.Buy, 1*ms, 2*ms, nil)).judged(reports.Pass)
		return drawn(in).Numbers
	}
	again, renamed := "Clients 8 to 15 send orders of clients 0 to 7 a second time.", "A client that dies or gets no answer continues under a new number, above "
	for _, test := range []struct {
		highest int
		resend  float64
		engine  string
		want    string
	}{
		{7, 0.1, "goroutine", ""}, {8, 0, "goroutine", renamed + "7."}, {9, 0.1, "goroutine", again}, {16, 0.1, "goroutine", renamed + "15."}, {4000, 0, "", ""},
	} {
		if got := draw(test.highest, test.resend, test.engine); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

// TestFaultWithinTheFirstStep checks that a fault that fired during the first operation of the story belongs to it,
// and that one that fired during the wait for the lock does not.
func TestFaultWithinTheFirstStep(t *testing.T) {
	crash := func(from time.Duration) history.Op {
		return history.Op{Client: 1, Kind: history.Fault, Key: history.Text("crash before EXPIRE"), Outcome: history.OK, Call: from, Return: from}
	}
	died := at(1, history.Acquire, 1*ms, 5*ms, func(op *history.Op) { op.Arg, op.Outcome = history.Int(1), history.Unknown })
	starved := at(2, history.Acquire, 1*ms, 900*ms, func(op *history.Op) { op.Arg, op.Outcome, op.Reason = history.Int(2), history.Refused, history.Held })
	h := promising("mutex", history.Promise{Of: variant.Lock, Property: variant.Progress})
	in := recording(h, died, starved, crash(3*ms)).judged(reports.Violated, broken(variant.Lock, variant.Progress, "nobody", died, starved))
	if s := storyOf(in.History, &in.Run); len(s.ops) != 3 || !slices.Contains(s.ops, crash(3*ms)) {
		t.Errorf("the story is\n%v", s.ops)
	}
	h = promising("mutex", exclusion)
	h.TTL = 100 * ms
	granted := func(n int64, until time.Duration) func(*history.Op) {
		return func(op *history.Op) { op.Arg, op.Until = history.Int(n), until }
	}
	a, b := at(1, history.Acquire, 1*ms, 50*ms, granted(1, 140*ms)), at(2, history.Acquire, 1*ms, 60*ms, granted(2, 159*ms))
	in = recording(h, a, b, crash(20*ms), crash(45*ms)).judged(reports.Violated, broken(variant.Lock, variant.MutualExclusion, "two", a, b))
	if s := storyOf(in.History, &in.Run); !slices.Contains(s.ops, crash(45*ms)) || slices.Contains(s.ops, crash(20*ms)) {
		t.Errorf("the story is\n%v", s.ops)
	}
}

// TestShortFaultsAreSeen checks that a fault without duration is drawn wide enough to be seen, and is in the legend.
func TestShortFaultsAreSeen(t *testing.T) {
	in := frozen()
	for i := range in.History.Ops {
		if op := &in.History.Ops[i]; op.Kind == history.Fault && op.Client >= 0 {
			op.Return = op.Call
		}
	}
	tl := drawn(in)
	if len(tl.Faults) != 1 || tl.Faults[0].Class != "fault short" || !tl.Has["short"] {
		t.Errorf("faults %+v, has %v", tl.Faults, tl.Has)
	}
	if tl := drawn(frozen()); len(tl.Faults) != 1 || tl.Faults[0].Class != "fault" || tl.Has["short"] {
		t.Errorf("faults %+v, has %v", tl.Faults, tl.Has)
	}
}
