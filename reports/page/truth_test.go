package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
	"oversell/variant"
)

// drawn returns the timeline of a run's page.
func drawn(in RunInput) *timeline {
	s := storyOf(in.History, &in.Run)
	return drawScene(sceneOf(in.History, s, windowOf(in.History, s)), s, &in.History.Header, &in.Run)
}

// sharedBy returns the texts of the bands in which several clients had the same thing.
func sharedBy(tl *timeline) (words []string) {
	for _, b := range tl.Bands {
		if b.Class == "shared" {
			words = append(words, b.Text)
		}
	}
	return words
}

func kept(of variant.Object, p variant.Property) reports.Property {
	return reports.Property{Of: of, Name: p, Result: reports.Holds, Measured: reports.Holds}
}

// TestRefundsCountFromTheirCall checks that a piece may be sold again from the call of its refund on, and that the
// page says "oversold" only if the checker found it.
func TestRefundsCountFromTheirCall(t *testing.T) {
	h := promising("seckill", history.Promise{Of: variant.Sale, Property: variant.NoOversell})
	h.Sale, h.Stock, h.Refund = "lua", 1, 0.5
	in := recording(h, at(0, history.Buy, 1*ms, 2*ms, nil), at(0, history.Refund, 3*ms, 10*ms, nil), at(1, history.Buy, 4*ms, 5*ms, nil)).judged(reports.Pass, kept(variant.Sale, variant.NoOversell))
	if page := written(t, in); strings.Contains(page, "oversold from") || strings.Contains(page, "more than the stock") {
		t.Error("a page of a run that passed says that it oversold")
	}
	in.Run.Properties = []reports.Property{broken(variant.Sale, variant.NoOversell, "two", in.History.Ops[0])}
	if s := seriesOf(in.History, &in.Run); s.oversold != 0 {
		t.Errorf("oversold from %v, though the piece was on its way back", s.oversold)
	}
	in.History.Ops[2].Call = 6 * ms // the refund; operations are in order of completion
	if s := seriesOf(in.History, &in.Run); s.oversold != 5*ms {
		t.Errorf("oversold from %v, want 5ms", s.oversold)
	}
	in.Run.Properties = []reports.Property{kept(variant.Sale, variant.NoOversell)}
	if s := seriesOf(in.History, &in.Run); s.oversold != 0 {
		t.Error("oversold, against the verdict")
	}
}

// TestSeveralProducts checks that the sum of several products' sales is not compared with the stock of one.
func TestSeveralProducts(t *testing.T) {
	h := promising("seckill")
	h.Sale, h.Stock = "lua", 1
	other := func(op *history.Op) { op.Key = history.Text("other") }
	in := recording(h, at(0, history.Buy, 1*ms, 2*ms, nil), at(1, history.Buy, 4*ms, 5*ms, other)).judged(reports.Violated, broken(variant.Sale, variant.NoOversell, "two", history.Op{}))
	s := seriesOf(in.History, &in.Run)
	if c := s.charts(&in.Run)[0]; len(c.Marks) > 0 || len(c.Curves) != 1 {
		t.Errorf("marks %v, %d curves", c.Marks, len(c.Curves))
	}
}

// TestLastSaleIsDrawnWhereItWas checks that the last sale is drawn at its time, not at the end of the run.
func TestLastSaleIsDrawnWhereItWas(t *testing.T) {
	h := promising("seckill")
	h.Sale, h.Stock = "lua", 5
	var ops []history.Op
	for i := range 3 {
		ops = append(ops, at(0, history.Buy, time.Duration(10+i)*ms, time.Duration(10+i)*ms+ms/2, nil))
	}
	refused := at(0, history.Buy, 999*ms, 1000*ms, func(op *history.Op) { op.Outcome, op.Reason = history.Refused, history.SoldOut })
	in := recording(h, append(ops, refused)...).judged(reports.Pass)
	s := seriesOf(in.History, &in.Run)
	i := slices.IndexFunc(s.sold, func(p chart.Point) bool { return p.Y == 3 })
	if i < 0 || time.Duration(s.sold[i].X) > 20*ms {
		t.Errorf("3 are sold at the %dth point of %v", i, s.sold)
	}
}

// TestLegalSharingIsNoAlarm checks that no alarm is drawn where two clients may have the same thing: a task in a run
// that kept its promise, or a lock whose lease lapsed before its first holder extended it again.
func TestLegalSharingIsNoAlarm(t *testing.T) {
	in := handedTwice()
	in.Run.Verdict, in.Run.Properties = reports.Pass, []reports.Property{kept(variant.Queue, variant.NoDuplicateDelivery)}
	if got := sharedBy(drawn(in)); len(got) > 0 {
		t.Errorf("alarms in a run that kept its promise: %v", got)
	}
	hold := func(n int64, until time.Duration) func(*history.Op) {
		return func(op *history.Op) { op.Arg, op.Until = history.Int(n), until }
	}
	lost := func(op *history.Op) {
		hold(1, 0)(op)
		op.Outcome, op.Reason = history.Refused, history.Lost
	}
	a, b := at(0, history.Acquire, 1*ms, 2*ms, hold(1, 10*ms)), at(1, history.Acquire, 11*ms, 12*ms, hold(2, 30*ms))
	for name, rest := range map[string][]history.Op{
		"lapsed":  {at(0, history.Extend, 16*ms, 17*ms, hold(1, 40*ms)), at(0, history.Release, 20*ms, 21*ms, hold(1, 40*ms))},
		"refused": {at(0, history.Extend, 16*ms, 17*ms, lost), at(0, history.Release, 50*ms, 51*ms, hold(1, 60*ms))},
	} {
		ops := append([]history.Op{a, b, at(1, history.Release, 14*ms, 15*ms, hold(2, 30*ms))}, rest...)
		in := recording(promising("mutex", exclusion), ops...).judged(reports.Violated, broken(variant.Lock, variant.MutualExclusion, "elsewhere", a, b))
		if got := sharedBy(drawn(in)); len(got) > 0 {
			t.Errorf("%s: alarms %v", name, got)
		}
	}
}

// TestEnqueuedAgain checks that two clients may have a task that was enqueued again, even in a run that broke its
// promise, and that those without an enqueue of their own are marked.
func TestEnqueuedAgain(t *testing.T) {
	h := promising("queue", history.Promise{Of: variant.Queue, Property: variant.NoDuplicateDelivery})
	h.Queue = "range-run-remove"
	task := func(kind history.Kind, client int, n int64, call, ret time.Duration) history.Op {
		return at(client, kind, call, ret, func(op *history.Op) {
			op.Key, op.Arg = history.Text("orders"), history.Int(n)
			if kind == history.Pop {
				op.Arg, op.Result, op.Amount = history.Value{}, history.Int(n), 1
			}
		})
	}
	var ops []history.Op
	have := func(n int64, takes ...time.Duration) {
		for client, from := range takes {
			ops = append(ops, task(history.Pop, client, n, from, from+ms/4), task(history.Effect, client, n, from+ms/2, 30*ms))
		}
	}
	ops = append(ops, task(history.Enqueue, 7, 1, 1*ms, 2*ms), task(history.Enqueue, 7, 1, 5*ms, 6*ms)) // enqueued again between the two pops
	have(1, 3*ms, 8*ms)
	ops = append(ops, task(history.Enqueue, 7, 2, 1*ms, 2*ms), task(history.Enqueue, 7, 2, 2*ms, 3*ms)) // enqueued twice before both pops
	have(2, 4*ms, 8*ms)
	ops = append(ops, task(history.Enqueue, 7, 3, 1*ms, 2*ms), task(history.Enqueue, 7, 3, 5*ms, 6*ms)) // enqueued again, then popped by two more
	have(3, 3*ms, 8*ms, 9*ms)
	ops = append(ops, task(history.Enqueue, 7, 4, 1*ms, 2*ms)) // enqueued once
	have(4, 4*ms, 8*ms)
	in := recording(h, ops...).judged(reports.Violated, broken(variant.Queue, variant.NoDuplicateDelivery, "task 4 was handed out twice", task(history.Pop, 0, 4, 4*ms, 4*ms+ms/4), task(history.Pop, 1, 4, 8*ms, 8*ms+ms/4)))
	got := sharedBy(drawn(in))
	slices.Sort(got)
	if want := []string{"2 have task 3 at once", "2 have task 4 at once"}; !slices.Equal(got, want) {
		t.Errorf("alarms %q, want %q", got, want)
	}
}

// TestClashesCountEverybody checks that a clash counts the clients without a lane too.
func TestClashesCountEverybody(t *testing.T) {
	var ops []history.Op
	for i := range 31 {
		ops = append(ops, at(i, history.Acquire, ms, 2*ms+time.Duration(i), func(op *history.Op) { op.Arg, op.Until = history.Int(int64(i+1)), 100*ms }),
			at(i, history.Release, 5*ms, 6*ms, func(op *history.Op) { op.Arg = history.Int(int64(i + 1)) }))
	}
	in := recording(promising("mutex", exclusion), ops...).judged(reports.Violated, broken(variant.Lock, variant.MutualExclusion, "all", ops[0], ops[2]))
	tl := drawn(in)
	if got := sharedBy(tl); !slices.Equal(got, []string{`up to 31 hold "order" at once`}) || len(tl.Lanes) != mostLanes {
		t.Errorf("%d lanes, and %v", len(tl.Lanes), got)
	}
	many := make([]clash, mostClashes+7)
	d := &sketch{}
	if got := d.nearest(many); len(got) != mostClashes || !strings.Contains(d.leftOut(), "7 more times in which several had the same are not marked") {
		t.Errorf("%d clashes are marked; %q", len(got), d.leftOut())
	}
}

// TestStoryTakesItsOwnFaults checks that a fault that hit a client at another time is not part of the story, and that
// a lasting fault does not widen the picture.
func TestStoryTakesItsOwnFaults(t *testing.T) {
	buy := func(client int, from time.Duration) history.Op { return at(client, history.Buy, from, from+ms, nil) }
	fault := func(client int32, from, to time.Duration) history.Op {
		return history.Op{Client: client, Kind: history.Fault, Key: history.Text("freeze"), Outcome: history.OK, Call: from, Return: to}
	}
	a, b := buy(1, 10*ms), buy(2, 50*ms)
	early, own, other := fault(1, 30*ms, 31*ms), fault(2, 50*ms+ms/2, 900*ms), fault(2, 20*ms, 21*ms)
	in := recording(promising("seckill"), a, b, early, own, other).judged(reports.Violated, broken(variant.Sale, variant.NoOversell, "two", a, b))
	s := storyOf(in.History, &in.Run)
	if want := []history.Op{a, b, own}; !slices.Equal(s.ops, want) {
		t.Errorf("the story is\n%v\nwant\n%v", s.ops, want)
	}
	if w := windowOf(in.History, s); w.to > 100*ms {
		t.Errorf("the window goes to %v", w.to)
	}
}

// TestBadgesDoNotCoverEachOther checks that badges at nearly the same time are shifted apart by their width in
// pixels, so that they do not cover each other on a small screen either.
func TestBadgesDoNotCoverEachOther(t *testing.T) {
	d := &sketch{lane: map[int32]int{1: 0}}
	d.scene.to = 100 * ms
	for i := range 5 {
		d.story.ops = append(d.story.ops, at(1, history.Buy, 50*ms+time.Duration(i), 60*ms, nil))
	}
	d.badges()
	for i, b := range d.Badges {
		if b.Shift != i*badgeWidth {
			t.Errorf("badge %s is shifted by %d", b.Text, b.Shift)
		}
	}
}

// TestNestedMarks checks that a mark within another is drawn on top of it.
func TestNestedMarks(t *testing.T) {
	short, long := at(1, history.Effect, 4*ms, 5*ms, nil), at(1, history.Effect, 3*ms, 8*ms, nil)
	in := recording(promising("queue"), short, long).judged(reports.Violated, broken(variant.Queue, variant.NoDuplicateDelivery, "two", short, long))
	tl := drawn(in)
	if len(tl.Marks) != 2 || tl.Marks[0].Label != sentence(long) {
		t.Errorf("marks %+v", tl.Marks)
	}
}

// TestLockThatPromisesNothing checks that acquisitions of a lock that promises nothing are neither measured nor
// marked.
func TestLockThatPromisesNothing(t *testing.T) {
	h := promising("seckill", history.Promise{Of: variant.Sale, Property: variant.NoOversell})
	h.Lock, h.Sale, h.Stock = "none", "lua", 5
	in := recording(h, at(1, history.Acquire, 1*ms, 4*ms-1, nil), at(1, history.Buy, 4*ms-1, 4*ms, nil), at(1, history.Release, 4*ms+1, 6*ms, nil)).judged(reports.Pass, kept(variant.Sale, variant.NoOversell))
	if page := written(t, in); !strings.Contains(page, "Latency of buy") || strings.Contains(page, "Latency of acquire") {
		t.Error("the page tells of the latency of a lock that is none")
	}
	if tl := drawn(in); len(tl.Marks) != 1 {
		t.Errorf("%d marks, want the purchase only", len(tl.Marks))
	}
	if c, ok := in.percentiles(); !ok || len(c.Curves) != 1 || c.Curves[0].Name != "buy" {
		t.Errorf("percentiles of %d curves", len(c.Curves))
	}
	alone := promising("mutex") // there is nothing else to show than the lock
	in = recording(alone, at(1, history.Acquire, 1*ms, 2*ms, nil)).judged(reports.Pass)
	if c, ok := in.percentiles(); !ok || len(c.Curves) != 1 {
		t.Errorf("percentiles of %d curves, want that of the lock", len(c.Curves))
	}
}

// TestRunFacts checks that the facts of a run say what is known, and no more.
func TestRunFacts(t *testing.T) {
	h := promising("mutex")
	h.Faults = []string{"freeze holder 400ms"}
	r := reports.Run{Scenario: "mutex", Verdict: reports.Pass, Expected: reports.Violated, Operations: 1, ElapsedMS: 10, Properties: []reports.Property{{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.Holds, Measured: reports.Holds, Declared: true}}}
	text := fmt.Sprint(factsOf(&r, &h, story{}))
	for _, want := range []string{"Expected violated; declared, not seen: mutual-exclusion", "freeze holder 400ms", ": 1 operation in"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
	for _, bad := range []string{"Redis", "client"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s has %q", text, bad)
		}
	}
	r.Verdict, r.Why = reports.Inconclusive, "too few opportunities"
	if text := fmt.Sprint(factsOf(&r, &h, story{})); !strings.Contains(text, "Expected violated; declared, not seen: mutual-exclusion") {
		t.Errorf("of a run that decided nothing: %s", text)
	}
	one := at(1, history.Buy, ms, 2*ms, func(op *history.Op) { op.Result = history.Int(1) })
	if s := sentence(one); !strings.Contains(s, "that 1 is left") {
		t.Error(s)
	}
}

// dispatched returns a run in which a user takes a task under a lock and submits it under a new number. A fault
// without duration fires in between.
func dispatched() RunInput {
	h := promising("dispatch", exclusion, history.Promise{Of: variant.Dispatch, Property: variant.OneHolderPerTask})
	h.Lock, h.Dispatch, h.Engine, h.Faults = "lua-release", "dispatch-locked", "goroutine", []string{"drop-reply 2%"}
	session := func(op *history.Op) { op.Arg = history.Int(1) }
	return recording(h, at(1, history.Acquire, 1*ms, 2*ms, session),
		at(1, history.Take, 2*ms, 3*ms, func(op *history.Op) { op.Result, op.Session = history.Int(5), history.Int(1) }),
		history.Op{Client: 1, Kind: history.Fault, Key: history.Text("drop-reply 2%"), Arg: history.Text("drop-reply"), Outcome: history.OK, Call: 4 * ms, Return: 4 * ms},
		at(8, history.Submit, 5*ms, 6*ms, func(op *history.Op) { op.Arg, op.Session = history.Int(5), history.Int(1) }),
		at(8, history.Release, 7*ms, 8*ms, session)).judged(reports.Pass)
}

// TestLocksAndTasksHaveRows checks that a lock and a task under it are drawn in two rows, so that the end of each is
// visible.
func TestLocksAndTasksHaveRows(t *testing.T) {
	in := dispatched()
	tl := drawn(in)
	if len(tl.Bars) != 2 || tl.Bars[0].Y+tl.Bars[0].H > tl.Bars[1].Y || tl.Bars[0].Class == tl.Bars[1].Class {
		t.Errorf("bars %+v", tl.Bars)
	}
	for _, m := range tl.Marks {
		if m.Y < tl.Bars[1].Y+tl.Bars[1].H {
			t.Errorf("%s is drawn at %d, upon the task", m.Label, m.Y)
		}
	}
}

// TestWhatIsNotKnownIsLeftOut checks the page of a history of another program, which need not tell the number of
// clients, the seed, or how much stock is left.
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	h := history.Header{Schema: history.Schema, Stock: 1, Sale: "shop", Promises: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}}
	untold := func(op *history.Op) { op.Result = history.Int(-1) }
	in := recording(h, at(1, history.Buy, 0, ms, untold), at(2, history.Buy, ms/2, 2*ms, untold)).judged(reports.Violated)
	for _, n := range numbersOf(&in.Run) {
		if n.Name == "clients" || n.Name == "seed" {
			t.Errorf("%s: %s, of a history that does not tell", n.Name, n.Value)
		}
	}
	s := seriesOf(in.History, &in.Run)
	if c := s.charts(&in.Run)[0]; len(c.Curves) != 2 || c.Curves[1].Name != "stock" || len(c.Rows[0]) != 3 {
		t.Errorf("curves %+v, rows %v; want what is sold and the stock", c.Curves, c.Rows[:1])
	}
	in.Run.Clients, in.Run.Engine = 2, "goroutine"
	known := 0
	for _, n := range numbersOf(&in.Run) {
		if n.Name == "clients" || n.Name == "seed" {
			known++
		}
	}
	if known != 2 {
		t.Errorf("%d of clients and seed are told", known)
	}
}

// TestNumbersFitBesideCharts checks that numbers of any size are short, and that none is shown as zero unless it is.
func TestNumbersFitBesideCharts(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.25: "0.25", 2.5: "2.5", 0.00002: "2e-5", 150_000: "150,000", 1e6: "1M", 1e7: "10M", 2.5e7: "25M", 1.5e9: "1.5G", 9.996e8: "1e9", 1e18: "1e18"} {
		if got := chart.Brief(v, amount(v)); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

// TestSoldOutCoversNoCurve checks that the label "sold out" is placed where no curve is.
func TestSoldOutCoversNoCurve(t *testing.T) {
	flat := func(y float64) chart.Line { return chart.Line{Points: []chart.Point{{X: 0, Y: y}, {X: 100, Y: y}}} }
	axis := chart.Axis{Scale: chart.Linear(0, 100), Format: amount}
	for _, lines := range [][]chart.Line{{flat(95)}, {flat(95), flat(80)}, {flat(95), flat(60), flat(20)}, {{Points: []chart.Point{{X: 0, Y: 0}, {X: 100, Y: 100}}}}} {
		c := chart.New("", "", lines, axis, axis)
		c = (&soldOut{at: 60}).marked(c, 100)
		m := c.Marks[0]
		top := float64(m.Y + m.Pill.Y)
		if left := 60 + 100*float64(m.Pill.X)/smallChart; c.Covers(left, left+100*float64(m.Pill.W)/smallChart, top, top+18) || top < 0 || top+18 > chart.Height {
			t.Errorf("the words at %v to %v cover one of %v", top, top+18, lines)
		}
	}
}

// TestNamesKeepTheirDirection checks that a name written from right to left does not reverse the text after it.
func TestNamesKeepTheirDirection(t *testing.T) {
	in := takenOver()
	in.Run.Lock, in.Run.Sale, in.Run.ServerVersion, in.Run.Target, in.Run.Topology = "שלום", "", "", "", ""
	if page := written(t, in); !strings.Contains(page, "<bdi>seckill, lock שלום</bdi>: 40 clients") {
		t.Error("the name is not isolated")
	}
}

// TestStoryOfAGap checks that the story shows who was given the numbers beside the first missing one, and who had no
// answer then, although the witness is at the end of the run.
func TestStoryOfAGap(t *testing.T) {
	var ops []history.Op
	for i := range int64(100) {
		if n := i + 1; n != 40 && n != 70 {
			ops = append(ops, at(int(i%3), history.NextID, time.Duration(i)*ms, time.Duration(i+1)*ms, func(op *history.Op) { op.Result = history.Int(n) }))
		}
	}
	unknown := func(op *history.Op) { op.Outcome = history.Unknown }
	lost := at(7, history.NextID, 39*ms, 41*ms, unknown)
	late := at(8, history.NextID, 90*ms, 95*ms, unknown)
	other := at(9, history.NextID, 39*ms, 39*ms+ms/2, func(op *history.Op) { op.Key, op.Result = history.Text("other"), history.Int(40) })
	top := ops[len(ops)-1]
	in := recording(promising("ids", history.Promise{Of: variant.IDs, Property: variant.NoGaps}), append(ops, lost, late, other)...).judged(reports.Violated, broken(variant.IDs, variant.NoGaps, "nobody was given 40, 70", top))
	s := storyOf(in.History, &in.Run)
	if len(s.ops) != 3 || s.ops[0].Result != history.Int(39) || s.ops[1] != lost || s.ops[2].Result != history.Int(41) {
		t.Errorf("the story is\n%v", s.ops)
	}
	if w := windowOf(in.History, s); w.from > 39*ms || w.to < 41*ms || w.to > 60*ms || w.about > w.to || !strings.Contains(w.why, "gap") {
		t.Errorf("the window is %+v", w)
	}
}

// TestKnownOnlyAtTheEnd checks that, where only the final readings show a violation, the timeline shows the clients
// at work and not the readings.
func TestKnownOnlyAtTheEnd(t *testing.T) {
	h := promising("seckill", history.Promise{Of: variant.Sale, Property: variant.NoUndersell})
	h.Sale, h.Stock = "plain", 5
	left := at(9, history.ReadState, 900*ms, 901*ms, func(op *history.Op) { op.Arg, op.Result = history.Text("left"), history.Int(1) })
	bought := at(1, history.Buy, 1*ms, 2*ms, nil)
	in := recording(h, bought, at(2, history.Buy, 3*ms, 4*ms, nil), left).judged(reports.Violated, broken(variant.Sale, variant.NoUndersell, "2 pieces vanished", left))
	if tl := drawn(in); len(tl.Marks) != 2 || tl.Lanes[0].Name == "9" || !strings.Contains(tl.Why, "only from the end") {
		t.Errorf("%q, lanes %v, marks %v", tl.Why, tl.Lanes, tl.Marks)
	}
	in.Run.Properties[0].Witness = []history.Op{bought, left}
	if tl := drawn(in); tl.To > int64(10*ms) || strings.Contains(tl.Why, "end") {
		t.Errorf("%q, to %v", tl.Why, time.Duration(tl.To))
	}
}
