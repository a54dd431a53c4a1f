package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/reports"
	"oversell/reports/page/chart"
	"oversell/reports/reportstest"
	"oversell/variant"
)

const ms = time.Millisecond

// recorded is a history under construction.
type recorded struct {
	history.History
	lat *reports.Latencies
}

func recording(h history.Header, ops ...history.Op) *recorded {
	slices.SortStableFunc(ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	r := &recorded{History: history.History{Header: h, Ops: ops, Trailer: &history.Trailer{Elapsed: time.Second}}, lat: reports.NewLatencies()}
	for _, op := range ops {
		r.lat.Add(&op)
	}
	return r
}

// judged returns the input of a page with this verdict and these properties.
func (r *recorded) judged(verdict string, properties ...reports.Property) RunInput {
	h := r.Header
	run := reports.Run{Scenario: h.Scenario, Lock: h.Lock, Sale: h.Sale, Queue: h.Queue, IDs: h.IDs, Dispatch: h.Dispatch, Target: "process", Topology: "single", ServerVersion: "7.0.15",
		Clients: h.Clients, Operations: len(r.Ops), ElapsedMS: 1000, Throughput: float64(len(r.Ops)), Latency: r.lat.Summary(), Verdict: verdict, Expected: verdict, Properties: properties, Fairness: 0.5}
	if h.Sale != "" {
		sold, unknown := int64(0), int64(0)
		for _, op := range r.Ops {
			if op.Kind == history.Buy && op.Outcome == history.OK {
				sold++
			}
		}
		run.Stock, run.Sold, run.Unknown = &h.Stock, &sold, &unknown
	}
	for _, name := range h.Faults {
		run.Faults = append(run.Faults, reports.Fault{Name: name, Level: "client", Fired: 1, Holders: new(int64(1))})
	}
	return RunInput{History: &r.History, Run: run, Latencies: r.lat, Command: "oversell run --seed 1", Check: "oversell check run"}
}

func broken(of variant.Object, p variant.Property, why string, witness ...history.Op) reports.Property {
	return reports.Property{Of: of, Name: p, Result: reports.Broken, Measured: reports.Broken, Count: 3, Why: why, Witness: witness}
}

// at returns an operation that was answered.
func at(client int, kind history.Kind, call, ret time.Duration, change func(*history.Op)) history.Op {
	op := history.Op{Client: int32(client), Kind: kind, Key: history.Text("{ov-1}order"), Outcome: history.OK, Due: call, Call: call, Return: ret}
	if change != nil {
		change(&op)
	}
	return op
}

// promising returns a header that makes these promises.
func promising(scenario string, ps ...history.Promise) history.Header {
	return history.Header{Schema: history.Schema, Scenario: scenario, Clients: 8, Promises: ps}
}

var exclusion = history.Promise{Of: variant.Lock, Property: variant.MutualExclusion}

// takenOver returns a sale in which client 13 takes the lock that client 4 holds, and both sell the same piece. Many
// other clients oversell later on.
func takenOver() RunInput {
	session := func(n int64, via string) func(*history.Op) {
		return func(op *history.Op) {
			op.Arg, op.Until = history.Int(n), 10*time.Second
			if via != "" {
				op.Result = history.Text(via)
			}
		}
	}
	buy := func(n, left int64) func(*history.Op) {
		return func(op *history.Op) {
			op.Key, op.Arg, op.Session, op.Result = history.Text("{ov-1}phone"), history.Int(n), history.Int(n), history.Int(left)
		}
	}
	ops := []history.Op{
		at(4, history.Acquire, 1*ms, 10*ms, session(1, "SETNX")),
		at(13, history.Acquire, 2*ms, 11*ms, session(2, "SET after TTL -1 (takeover)")),
		at(4, history.Buy, 10*ms+1, 13*ms, buy(1, 4)),
		at(13, history.Buy, 11*ms+1, 14*ms, buy(2, 4)),
		at(4, history.Release, 13*ms+1, 15*ms, session(1, "")),
		at(13, history.Release, 14*ms+1, 16*ms, func(op *history.Op) {
			session(2, "")(op)
			op.Outcome, op.Reason = history.Refused, history.Lost
		}),
	}
	for i := range 40 {
		start := time.Duration(20+i) * ms
		n := int64(10 + i)
		client := i % 20
		if client == 4 || client == 13 {
			client += 20
		}
		ops = append(ops, at(client, history.Acquire, ms, start, session(n, "SETNX")), at(client, history.Buy, start+1, start+ms/2, buy(n, max(0, 3-n/12))), at(client, history.Release, start+ms/2+1, start+ms*3/4, session(n, "")))
	}
	h := promising("seckill", exclusion, history.Promise{Of: variant.Sale, Property: variant.NoOversell})
	h.Lock, h.Sale, h.Stock, h.Clients = "php-lock-printed", "plain", 5, 40
	in := recording(h, ops...).judged(reports.Violated,
		reports.Property{Of: variant.Sale, Name: variant.OncePerOrder, Result: reports.NotClaimed, Measured: reports.Broken, Why: "nobody promised it", Witness: ops[:1]},
		broken(variant.Sale, variant.NoOversell, "sold 42 of 5: client 4 and client 13 both sold down to 4 left", ops[2], ops[3]),
		broken(variant.Lock, variant.MutualExclusion, `client 13 was granted "order" at 11.000 ms by SET after TTL -1 (takeover), while client 4 held it since 10.000 ms`, ops[0], ops[1], ops[4], ops[5]),
		broken(variant.Lock, variant.Linearizable, "no order fits", ops[0]))
	in.Picture = "violation.html"
	return in
}

// frozen returns a mutex whose first holder is held up by a fault and outlives its lease.
func frozen() RunInput {
	h := promising("mutex", exclusion)
	h.Lock, h.Faults = "fenced", []string{"freeze holder 400ms"}
	ops := []history.Op{
		at(3, history.Acquire, 1*ms, 2*ms, func(op *history.Op) {
			op.Arg, op.Until, op.Result = history.Int(1), 100*ms, history.Text("script")
		}),
		at(3, history.Release, 402*ms, 403*ms, func(op *history.Op) {
			op.Arg, op.Until, op.Outcome, op.Reason = history.Int(1), 100*ms, history.Refused, history.Lost
		}),
		{Client: 3, Kind: history.Fault, Key: history.Text("freeze holder 400ms"), Arg: history.Text("freeze"), Result: history.Text("client 4"), Outcome: history.OK, Call: 2 * ms, Return: 402 * ms},
		{Client: -1, Kind: history.Fault, Key: history.Text("kill at 300ms"), Arg: history.Text("kill"), Result: history.Text("node 1"), Outcome: history.OK, Call: 300 * ms, Return: 350 * ms, Until: 500 * ms},
		{Client: -1, Kind: history.Fault, Key: history.Text("kill at 310ms"), Arg: history.Text("kill"), Result: history.Text("node 2"), Outcome: history.OK, Call: 310 * ms, Return: 350 * ms, Until: 500 * ms},
		{Client: 5, Kind: history.Acquire, Key: history.Text("{ov-1}order"), Arg: history.Int(9), Call: 290 * ms, Return: 310 * ms},
	}
	for i := range 30 {
		start := time.Duration(101+9*i) * ms
		ops = append(ops, at(i%7+10, history.Acquire, start-50*ms, start, func(op *history.Op) { op.Arg, op.Until = history.Int(int64(20+i)), start+100*ms }),
			at(i%7+10, history.Release, start+5*ms, start+6*ms, func(op *history.Op) { op.Arg, op.Until = history.Int(int64(20+i)), start+100*ms }))
	}
	in := recording(h, ops...).judged(reports.Pass, reports.Property{Of: variant.Lock, Name: variant.MutualExclusion, Result: reports.Holds, Measured: reports.Holds, Why: "31 grants, no two at once"})
	in.Run.Overruns, in.Run.FirstOverrun = 1, `client 3 released "order" late`
	in.Run.Phases = []reports.Phase{{Name: "during", FromMS: 2, ToMS: 402, Operations: 60, Throughput: 150, Latency: in.Run.Latency}}
	return in
}

// handedTwice returns a queue that hands one task to two clients.
func handedTwice() RunInput {
	h := promising("queue", history.Promise{Of: variant.Queue, Property: variant.NoDuplicateDelivery})
	h.Queue = "range-run-remove"
	id := func(n int64) func(*history.Op) {
		return func(op *history.Op) { op.Key, op.Arg = history.Text("orders"), history.Int(n) }
	}
	pop := func(n int64) func(*history.Op) {
		return func(op *history.Op) { op.Key, op.Result, op.Amount = history.Text("orders"), history.Int(n), 1 }
	}
	ops := []history.Op{
		at(0, history.Enqueue, 1*ms, 2*ms, id(1)), at(1, history.Pop, 3*ms, 4*ms, pop(1)), at(3, history.Pop, 3*ms, 5*ms, pop(1)),
		at(1, history.Effect, 4*ms+1, 7*ms, id(1)), at(3, history.Effect, 5*ms+1, 8*ms, id(1)), at(1, history.Ack, 7*ms+1, 8*ms, id(1)),
	}
	for i := range 20 {
		start := time.Duration(10+i) * ms
		ops = append(ops, at(2, history.Enqueue, start, start+ms/2, id(int64(i+2))), at(5, history.Pop, start+ms/2, start+ms*3/4, pop(int64(i+2))), at(5, history.Effect, start+ms*3/4+1, start+ms-1, id(int64(i+2))))
	}
	return recording(h, ops...).judged(reports.Violated, broken(variant.Queue, variant.NoDuplicateDelivery, "task 1 was handed to client 1 and to client 3", ops[1], ops[2], ops[0]))
}

// givenTwice returns a counter that gives numbers twice.
func givenTwice() RunInput {
	h := promising("ids", history.Promise{Of: variant.IDs, Property: variant.UniqueIDs})
	h.IDs, h.Lock = "get-set", "none"
	var ops []history.Op
	for i := range 60 {
		ops = append(ops, at(i%6, history.NextID, time.Duration(i)*ms+ms/2, time.Duration(i+1)*ms, func(op *history.Op) { op.Key, op.Result = history.Text("thread"), history.Int(int64(i/2)) }))
	}
	return recording(h, ops...).judged(reports.Violated, broken(variant.IDs, variant.UniqueIDs, `0 of "thread" was given to client 0 and to client 1`, ops[0], ops[1]))
}

// aComparison returns a comparison with everything that can occur in one.
func aComparison() reports.Comparison {
	latency := func(p50 float64) *reports.Latency {
		p := reports.Percentiles{P50: p50, P90: 2 * p50, P99: 5 * p50, P999: 9 * p50, Max: 20 * p50}
		return &reports.Latency{Count: 1000, Call: p}
	}
	spread := func(v float64) *reports.Spread { return &reports.Spread{Median: v, Low: v * 0.8, High: v * 1.2} }
	c := reports.Comparison{Schema: reports.ComparisonSchema, Scenario: "seckill", Waiting: "poll", Seed: 7, Rounds: 3, Work: "purchases", Conditions: []string{"--stock=500"}, ElapsedMS: 41000, Command: "oversell compare --seed 7"}
	names := []string{"lua-release", "php-lock-printed", "fenced", "redlock"}
	for _, name := range names {
		c.Contenders = append(c.Contenders, reports.Contender{Lock: name, Sale: "plain"})
	}
	estimate := func(v float64) *reports.RatioEstimate {
		low, high := v*0.8, v*1.2
		return &reports.RatioEstimate{Ratio: v, Low: &low, High: &high, Rounds: 3}
	}
	for j, faults := range [][]string{nil, {"freeze holder 400ms 2%"}, nil} {
		clients := "--clients=" + []string{"10", "10", "1000"}[j]
		c.Configurations = append(c.Configurations, reports.Configuration{Target: "process", ServerVersion: "7.0.15", Swept: []string{clients}, Faults: faults, Fastest: 0, Control: reports.Control{Contender: reports.Contender{Lock: "none", Sale: "plain"}, Of: variant.Sale, Property: variant.NoOversell, Runs: 3, Caught: 3, Why: "sold 700 of 500"}})
		for i := range names {
			if i == 3 && j == 1 {
				continue // this contender cannot run there
			}
			x := reports.ComparisonCell{Contender: i, Configuration: j, Outcome: reports.NoViolation, Expected: reports.Pass, AsDeclared: true, Runs: 3, Throughput: *spread(float64(4000 / (i + 1))), Ratio: spread(1 / float64(i+1)), Estimate: estimate(1 / float64(i+1)),
				Request: latency(float64(i + 1)), RequestAlone: latency(0.1), Fairness: 0.6, LongestWaitMS: 120, CommandsPerAcquisition: 5.5, Stock: 500, Sold: spread(500), Dirs: []string{"r1/01 a#b?", "r2"}}
			if i == 1 {
				x.Outcome, x.Expected = reports.Broke, reports.Violated
				x.Broken = []reports.BrokenPromise{{Of: variant.Sale, Property: variant.NoOversell, Runs: 3, Count: 900, SoonestMS: 4.2, MedianMS: 6, Why: "sold 900 of 500"}}
				x.Rounds = []reports.ComparedRun{{Round: 1, Verdict: reports.Violated, Dir: "r2"}}
			}
			if i == 0 || i == 3 {
				x.Rank, x.Tied = 1+i/2, i == 3
			}
			if i == 2 && j == 1 {
				x.Outcome, x.Why, x.Ratio, x.Estimate, x.AsDeclared = reports.Undecided, "the fault never fired", nil, nil, false
			}
			c.Cells = append(c.Cells, x)
		}
	}
	c.Recommended = c.Recommend()
	return c
}

func pagesForTest(*testing.T) map[string]func(io.Writer) error {
	pages := map[string]func(io.Writer) error{}
	for name, in := range map[string]RunInput{"seckill": takenOver(), "fault": frozen(), "queue": handedTwice(), "ids": givenTwice(), "servers": served(), "dispatch": dispatched()} {
		pages[name] = func(w io.Writer) error { return Run(w, in) }
	}
	pages["comparison"] = func(w io.Writer) error { return Comparison(w, aComparison()) }
	pages["overview"] = func(w io.Writer) error {
		in := OverviewInput{}
		for _, run := range []RunInput{takenOver(), frozen(), givenTwice()} {
			in.Runs = append(in.Runs, OverviewRun{Run: run.Run, Name: "runs/" + run.Run.Scenario, Page: "01/report.html"})
		}
		in.Runs[1].Run.Lock = strings.Repeat("L", 300)
		for _, e := range reportstest.Explorations() {
			in.Explorations = append(in.Explorations, e)
		}
		return Overview(w, in)
	}
	pages["difference"] = func(w io.Writer) error { return Difference(w, differing()) }
	return pages
}

func written(t *testing.T, in RunInput) string {
	t.Helper()
	var b bytes.Buffer
	if err := Run(&b, in); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStory checks that the story tells the cause before the effect, what both clients did under the lock, and which
// command let it happen.
func TestStory(t *testing.T) {
	in := takenOver()
	s := storyOf(in.History, &in.Run)
	if s.cause == nil || s.cause.Name != variant.MutualExclusion || s.effect.Name != variant.NoOversell {
		t.Fatalf("cause %+v, effect %+v", s.cause, s.effect)
	}
	var told []string
	for _, step := range s.steps(func(int32) string { return "" }) {
		told = append(told, step.At+" "+step.Text)
	}
	want := []string{
		`10.000 ms client 4 was granted "order" at 10.000 ms by SETNX, having asked at 1.000 ms; its lease ends at 10.000 s`,
		`10.000 ms client 4 bought 1 piece (order 1) between 10.000 ms and 13.000 ms and was told that 4 are left`,
		`11.000 ms client 13 was granted "order" at 11.000 ms by SET after TTL -1 (takeover), having asked at 2.000 ms; its lease ends at 10.000 s`,
		`11.000 ms client 13 bought 1 piece (order 2) between 11.000 ms and 14.000 ms and was told that 4 are left`,
		`13.000 ms client 4 released "order" between 13.000 ms and 15.000 ms`,
		`14.000 ms client 13 tried to release "order" between 14.000 ms and 16.000 ms, and was told that it was no longer the holder`,
	}
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
	if got := headline(&in.Run, s); got != "Oversold: 42 of 5 pieces sold" {
		t.Errorf("headline %q", got)
	}
}

// TestStoryNamesTheMeddler checks that a release by another client between the two grants belongs to the story, as
// does the fault that hit the first holder, and that releases before or after do not.
func TestStoryNamesTheMeddler(t *testing.T) {
	session := func(n int64) func(*history.Op) { return func(op *history.Op) { op.Arg = history.Int(n) } }
	a, b := at(1, history.Acquire, 1*ms, 10*ms, session(1)), at(2, history.Acquire, 2*ms, 20*ms, session(2))
	early, meddles, late := at(3, history.Release, 8*ms, 9*ms, session(3)), at(4, history.Release, 14*ms, 15*ms, session(4)), at(5, history.Release, 21*ms, 22*ms, session(5))
	other := at(6, history.Release, 14*ms, 15*ms, func(op *history.Op) { op.Key, op.Arg = history.Text("other"), history.Int(6) })
	fired := history.Op{Client: 1, Kind: history.Fault, Key: history.Text("freeze"), Outcome: history.OK, Call: 11 * ms, Return: 12 * ms}
	elsewhere := fired
	elsewhere.Client = 9
	in := recording(promising("mutex", exclusion), a, b, early, meddles, late, other, fired, elsewhere).judged(reports.Violated, broken(variant.Lock, variant.MutualExclusion, "two", a, b))
	s := storyOf(in.History, &in.Run)
	if want := []history.Op{a, fired, meddles, b}; !slices.Equal(s.ops, want) {
		t.Errorf("the story is\n%v\nwant\n%v", s.ops, want)
	}
}

// TestSentences checks that every kind of operation has a sentence, whatever its outcome.
func TestSentences(t *testing.T) {
	for kind := history.Acquire; kind <= history.Submit; kind++ {
		if _, told := deeds[kind]; !told && kind != history.Fault {
			t.Errorf("%s has no words", kind)
		}
		for outcome := history.Unknown; outcome <= history.Refused; outcome++ {
			for _, reason := range []history.Reason{history.NoReason, history.Held, history.Repeated} {
				op := history.Op{Client: 7, Kind: kind, Outcome: outcome, Reason: reason, Key: history.Text("{ov-1}thing"), Arg: history.Int(3), Result: history.Int(5), Call: ms, Return: 2 * ms}
				s := sentence(op)
				if !strings.Contains(s, "client 7") || !strings.Contains(s, " ms") || strings.Contains(s, "ov-1") || strings.Contains(s, "  ") {
					t.Errorf("%s %s %s: %q", kind, outcome, reason, s)
				}
				if unknown := strings.Contains(s, "never got an answer"); unknown != (outcome == history.Unknown && kind != history.Fault) {
					t.Errorf("%s %s: %q", kind, outcome, s)
				}
			}
		}
	}
}

// TestClashes checks that the timeline marks when two clients have the same thing at once, and nothing else.
func TestClashes(t *testing.T) {
	draw := func(in RunInput) *timeline {
		s := storyOf(in.History, &in.Run)
		return drawScene(sceneOf(in.History, s, windowOf(in.History, s)), s, &in.History.Header, &in.Run)
	}
	shared := func(tl *timeline) (n int) {
		for _, b := range tl.Bands {
			if b.Class == "shared" {
				n++
			}
		}
		return n
	}
	tl := draw(takenOver())
	if shared(tl) != 1 || tl.Bands[0].Text != `2 hold "order" at once` {
		t.Errorf("bands %+v, want one in which two hold the lock", tl.Bands)
	}
	if len(tl.Lanes) == 0 || tl.Lanes[0].Name != "4" || tl.Lanes[1].Name != "13" || len(tl.Badges) != 6 {
		t.Errorf("lanes %+v, %d badges; want those of the story first, and 6", tl.Lanes, len(tl.Badges))
	}
	unpromised := takenOver()
	unpromised.History.Header.Promises = []history.Promise{{Of: variant.Lock, Property: variant.Progress}}
	if n := shared(draw(unpromised)); n != 0 {
		t.Errorf("%d alarms where nobody promised exclusion", n)
	}
	// After the end of a lease another client may hold the lock.
	late := draw(frozen())
	if n := shared(late); n != 0 {
		t.Errorf("%d alarms though the lease was over", n)
	}
	if !late.Has["over"] || !late.Has["lease"] || !late.Has["fault"] {
		t.Errorf("the picture of a late holder lacks something: %v", late.Has)
	}
	if tl := draw(handedTwice()); shared(tl) != 1 || tl.Bands[0].Text != "2 have task 1 at once" {
		t.Errorf("bands %+v, want one in which two have the task", tl.Bands)
	}
}

// TestTimelineIsBounded checks that a window with more than can be shown says what it leaves out.
func TestTimelineIsBounded(t *testing.T) {
	var ops []history.Op
	for i := range 20_000 {
		start := time.Duration(i) * 10 * time.Microsecond
		ops = append(ops, at(i%40, history.NextID, start, start+9*time.Microsecond, nil))
	}
	fault := history.Op{Client: -1, Kind: history.Fault, Key: history.Text("kill"), Outcome: history.OK, Call: 0, Return: 100 * ms, Until: 190 * ms}
	in := recording(promising("ids"), append(ops, fault)...).judged(reports.Pass)
	w := windowOf(in.History, story{})
	sc := sceneOf(in.History, story{}, w)
	if len(sc.clients) != mostLanes || len(sc.ops)+len(sc.stays) > mostMarks || sc.others != 28 || sc.left == 0 {
		t.Errorf("%d lanes, %d operations, %d others, %d left out", len(sc.clients), len(sc.ops), sc.others, sc.left)
	}
	if s := sc.leftOut(); !strings.HasPrefix(s, "28 more clients at work in this time are left out, and ") {
		t.Errorf("it says %q", s)
	}
}

// TestSeries checks that the stock counts as oversold from the first piece too many on.
func TestSeries(t *testing.T) {
	in := takenOver()
	s := seriesOf(in.History, &in.Run)
	if want := 23*ms + ms/2; s.oversold != want { // two pieces first, then the fourth of the others: the sixth of 5
		t.Errorf("oversold from %v, want %v", s.oversold, want)
	}
	if last := s.sold[len(s.sold)-1].Y; last != 42 {
		t.Errorf("%v sold in the end, want 42", last)
	}
	in.Run.Stock, in.History.Header.Stock = new(int64), 42
	if s := seriesOf(in.History, &in.Run); s.oversold != 0 {
		t.Errorf("oversold from %v, of a stock that was enough", s.oversold)
	}
}

// TestBusiest checks that, without violations and faults, the picture shows the time in which the lock changes hands
// most often.
func TestBusiest(t *testing.T) {
	var ops []history.Op
	grant := func(client int, end time.Duration) {
		ops = append(ops, at(client, history.Acquire, end-ms/10, end, func(op *history.Op) { op.Arg = history.Int(int64(len(ops))) }))
	}
	for i := range 100 {
		grant(1, time.Duration(i+1)*ms)
	}
	for i := range 50 {
		grant(i%10, 200*ms+time.Duration(i)*ms)
	}
	in := recording(promising("mutex", exclusion), ops...).judged(reports.Pass)
	if w := windowOf(in.History, story{}); w.from < 190*ms || w.to > 260*ms {
		t.Errorf("the window is %v to %v; ten clients took turns from 200 to 250 ms", w.from, w.to)
	}
}

// TestRunPageStandsByItself checks that nothing that clients and servers say becomes markup, and that the only script
// is the one that the page's policy names.
func TestRunPageStandsByItself(t *testing.T) {
	in := takenOver()
	evil := `</svg><script>alert(1)</script> " onload="x`
	for i := range in.History.Ops {
		in.History.Ops[i].Key = history.Text(evil)
	}
	in.History.Header.Lock, in.Run.Lock, in.Run.Notes, in.Command = evil, evil, []string{evil}, evil
	in.Run.Faults = []reports.Fault{{Name: evil}}
	page := written(t, in)
	// The page has no other script than the one at its end.
	body, script, ok := strings.Cut(page, "<script>")
	if !ok || strings.Contains(script[:len(script)-30], "<script") || strings.Count(script, "</script>") != 1 {
		t.Error("the page has another script than its own")
	}
	for _, bad := range []string{"<script", "http:", "https:", "src=", "ZgotmplZ", "@import", `" onload="x`, "url(h"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	hash := base64.StdEncoding.EncodeToString(sum[:])
	if !strings.Contains(body, "script-src 'sha256-"+hash+"'") {
		t.Errorf("the policy does not name the script: sha256-%s", hash)
	}
	for _, want := range []string{Mark, "default-src", "Oversold: 42 of 5 pieces sold", "oversell check run", `href="violation.html"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if first, second := written(t, takenOver()), written(t, takenOver()); first != second {
		t.Error("the same run gives two different pages")
	}
}

// TestRunPageOfNothing checks that a history that was cut off at once still has a page.
func TestRunPageOfNothing(t *testing.T) {
	in := recording(promising("seckill")).judged(reports.Inconclusive)
	in.Run.Why, in.Latencies = "the history has no end: the run was killed", nil
	if page := written(t, in); !strings.Contains(page, "Inconclusive: the history has no end") {
		t.Error("the page lacks its verdict")
	}
	if err := Run(io.Discard, RunInput{}); err == nil {
		t.Error("a page without a history")
	}
}

// TestRunPageStaysSmall checks that the size of a page depends on what it shows, not on the length of the history.
func TestRunPageStaysSmall(t *testing.T) {
	n := 200_000
	ops := make([]history.Op, 0, n)
	for i := range n / 2 {
		start := time.Duration(i) * 20 * time.Microsecond
		ops = append(ops, at(i%64, history.Acquire, start, start+5*time.Microsecond, func(op *history.Op) { op.Arg, op.Until = history.Int(int64(i+1)), start+ms }),
			at(i%64, history.Release, start+10*time.Microsecond, start+15*time.Microsecond, func(op *history.Op) { op.Arg = history.Int(int64(i + 1)) }))
	}
	in := recording(promising("mutex", exclusion), ops...).judged(reports.Pass)
	if size := len(written(t, in)); size > 1<<20 {
		t.Errorf("the page of %d operations has %d bytes", n, size)
	}
}

// TestComparisonPage checks outcomes, links to the runs, and deviations from what is declared.
func TestComparisonPage(t *testing.T) {
	var b bytes.Buffer
	c := aComparison()
	if err := Comparison(&b, c); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`href="r1/01%20a%23b%3F/report.html"`, "Inconclusive: 1 outcome of 11 undecided", "sold 900 of 500", "cannot run here", "oversell compare --seed 7", "one client alone", `id="c0-1"`, "By the number of clients: process 7.0.15, no fault", "0.50× (0.40–0.60)", "2= ", "No violation seen in any configuration, fastest first: lua-release"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, x := range []struct {
		change func(c *reports.Comparison)
		class  string
		says   string
	}{
		{func(c *reports.Comparison) {
			c.Cells[0].AsDeclared, c.Cells[0].Outcome = false, reports.Broke
		}, reports.Violated, "1 of 11 outcomes is not as declared"},
		{func(c *reports.Comparison) { c.Configurations[0].Control.Caught = 0 }, reports.Inconclusive, "Inconclusive: the control was not caught in 1 configuration"},
		{func(c *reports.Comparison) {
			c.Cells = slices.DeleteFunc(c.Cells, func(x reports.ComparisonCell) bool { return x.Outcome == reports.Undecided })
		}, reports.Pass, "All 10 outcomes are as promises and flaws declare"},
		{func(c *reports.Comparison) { c.Interrupted = true }, reports.Inconclusive, "Inconclusive: the comparison was stopped before its end"},
	} {
		c := aComparison()
		x.change(&c)
		if class, says := (comparison{c}).verdict(); class != x.class || says != x.says {
			t.Errorf("%s: %q, want %s: %q", class, says, x.class, x.says)
		}
	}
}

// TestCurve checks that a distribution rises and ends at the largest value.
func TestCurve(t *testing.T) {
	l := reports.NewLatencies()
	for i := range 10_000 {
		l.Add(&history.Op{Kind: history.Buy, Outcome: history.OK, Return: time.Duration(i+1) * 10 * time.Microsecond})
	}
	points := l.Curve(history.Buy)
	last := points[len(points)-1]
	if len(points) < 30 || len(points) > 60 || last.Percent != 100 || last.MS < 99.9 || last.MS > 100.1 {
		t.Errorf("%d points, the last %+v", len(points), last)
	}
	if !slices.IsSortedFunc(points, func(a, b reports.Quantile) int { return int(1e6*(a.Percent-b.Percent)) + int(1e6*(a.MS-b.MS)) }) {
		t.Errorf("it does not rise: %v", points)
	}
	if l.Curve(history.Pop) != nil {
		t.Error("a curve of nothing")
	}
}

// TestScales checks that the labels of the axes are round, few, and in order.
func TestScales(t *testing.T) {
	for _, x := range []struct {
		from, to time.Duration
		want     string
	}{
		{0, time.Second, "0.0 s 0.2 s 0.4 s 0.6 s 0.8 s 1.0 s"},
		{9900 * time.Microsecond, 11620 * time.Microsecond, "10.0 ms 10.2 ms 10.4 ms 10.6 ms 10.8 ms 11.0 ms 11.2 ms 11.4 ms 11.6 ms"},
		{0, 90 * time.Second, "0 s 10 s 20 s 30 s 40 s 50 s 60 s 70 s 80 s 90 s"},
	} {
		var got []string
		for _, tick := range chart.TimeTicks(x.from, x.to) {
			got = append(got, tick.Text)
		}
		if s := strings.Join(got, " "); s != x.want {
			t.Errorf("%v to %v: %s; want %s", x.from, x.to, s, x.want)
		}
	}
	if s := chart.LogScale([]float64{0.07, 42}); s.Low != 0.01 || s.High != 100 {
		t.Errorf("the scale of 0.07 to 42 is %+v", s)
	}
	seen := map[string]bool{}
	for i := range 36 {
		seen[seriesClass(i)] = true
	}
	if len(seen) != 36 {
		t.Errorf("36 curves have %d looks", len(seen))
	}
	for percent, want := range map[float64]string{0: "0 %", 90: "90 %", 99: "99 %", 99.9: "99.9 %", 99.99: "99.99 %"} {
		if got := quantileName(rarity(percent)); got != want {
			t.Errorf("%v is written %q", percent, got)
		}
	}
}

// TestLanesAreOfThoseWhoMatter checks the order of the lanes: first the clients of the story, then those that held
// something, in the order in which they got it. Clients that only wait are counted.
func TestLanesAreOfThoseWhoMatter(t *testing.T) {
	in := takenOver()
	s := storyOf(in.History, &in.Run)
	sc := sceneOf(in.History, s, window{from: 0, to: 23 * ms, first: -1, about: 11 * ms})
	if want := []int32{4, 13, 0, 1, 2, 3}; !slices.Equal(sc.clients, want) { // four more clients are served at 20, 21, 22 and 23 ms
		t.Errorf("lanes of %v; want %v", sc.clients, want)
	}
	if sc.others != 0 || sc.waiting != 16 { // of the other 20 clients, four are served
		t.Errorf("%d others and %d who wait; want 0 and 16", sc.others, sc.waiting)
	}
	if got, want := sc.leftOut(), "16 more clients that only waited are not shown"; got != want {
		t.Errorf("it says %q; want %q", got, want)
	}
}

// TestMomentaryFaultIsSeenAmongHandOvers checks that the window around a fault without duration shows some hand-overs
// before and after it.
func TestMomentaryFaultIsSeenAmongHandOvers(t *testing.T) {
	in := givenTwice()
	in.History.Ops = append(in.History.Ops, history.Op{Client: 2, Kind: history.Fault, Arg: history.Text("crash"), Outcome: history.OK, Call: 30 * ms, Return: 30 * ms})
	if w := windowOf(in.History, story{}); w.from > 19*ms || w.to < 42*ms || w.first != 2 {
		t.Errorf("from %v to %v of client %d; want 12 numbers before and 12 after, of client 2", w.from, w.to, w.first)
	}
}

// TestShadeIsWhereTheFaultActed checks that a fault of a server shades the charts, that a fault at one client is a
// mark, and that a fault after the load is not drawn.
func TestShadeIsWhereTheFaultActed(t *testing.T) {
	in := frozen()
	in.History.Ops = append(in.History.Ops, history.Op{Client: -1, Kind: history.Fault, Key: history.Text("kill"), Outcome: history.OK, Call: time.Second, Return: 2 * time.Second})
	s := seriesOf(in.History, &in.Run)
	if want := [][2]time.Duration{{300 * ms, s.end}}; !slices.Equal(s.faults, want) {
		t.Errorf("shades %v; want %v", s.faults, want)
	}
	if want := [][2]time.Duration{{2 * ms, 402 * ms}}; !slices.Equal(s.hits, want) {
		t.Errorf("marks %v; want %v", s.hits, want)
	}
	for _, b := range s.charts(&in.Run)[0].Bands {
		if b.Class == "hit" && b.H == chart.Height {
			t.Errorf("a fault at one client shades all: %+v", b)
		}
	}
}

// TestSoldOutIsExplained checks that the page explains a jump of the median when the stock is gone, and says nothing
// where there is no jump.
func TestSoldOutIsExplained(t *testing.T) {
	sale := func(waited time.Duration) RunInput {
		h := promising("seckill", exclusion, history.Promise{Of: variant.Sale, Property: variant.NoOversell})
		h.Sale, h.Stock = "plain", 20
		var ops []history.Op
		for i := range 30 {
			client, start, asked, buys := 1, time.Duration(i+1)*ms, time.Duration(i+1)*ms-20*time.Microsecond, func(op *history.Op) { op.Arg = history.Int(int64(i)) }
			if i >= 20 {
				client, asked = i, max(0, start-waited)
				buys = func(op *history.Op) {
					op.Arg, op.Outcome, op.Reason = history.Int(int64(i)), history.Refused, history.SoldOut
				}
			}
			ops = append(ops, at(client, history.Acquire, asked, start, nil), at(client, history.Buy, start, start+ms/2, buys))
		}
		return recording(h, ops...).judged(reports.Pass, reports.Property{Of: variant.Lock, Name: variant.MutualExclusion, Result: reports.Holds})
	}
	note := func(in RunInput) (note string, marks int) {
		s := seriesOf(in.History, &in.Run)
		for _, c := range s.charts(&in.Run) {
			marks += len(c.Marks)
			note += c.Note
		}
		return note, marks
	}
	got, marks := note(sale(20 * ms))
	for _, want := range []string{"gone at 20.500 ms", "is 0.02 ms", "after it 20 ms (20 and 10 of them)", "95 % of them came from the buyer who had just bought"} {
		if !strings.Contains(got, want) {
			t.Errorf("the note %q lacks %q", got, want)
		}
	}
	if marks != 3 {
		t.Errorf("%d marks; want one in each chart", marks)
	}
	if got, _ := note(sale(20 * time.Microsecond)); got != "" {
		t.Errorf("no jump is explained: %q", got)
	}
	on := sale(20 * ms) // the sale goes on, and buyers who were refused come again
	for i := range 10 {
		start := time.Duration(40+i) * ms
		on.History.Ops = append(on.History.Ops, at(20+i, history.Acquire, start-20*ms, start, nil))
	}
	if got, _ := note(on); !strings.Contains(got, "10 of the 20 are of buyers who had been told before") || strings.Contains(got, "does not return") || strings.Contains(got, "last tries") {
		t.Errorf("the note is untrue when buyers come again: %q", got)
	}
	before := sale(20 * ms) // a buyer is told before the last piece is sold, and asks again after that
	refused := func(op *history.Op) {
		op.Arg, op.Outcome, op.Reason = history.Int(99), history.Refused, history.SoldOut
	}
	before.History.Ops = append([]history.Op{at(25, history.Buy, ms/4, ms/2, refused)}, before.History.Ops...)
	if got, _ := note(before); !strings.Contains(got, "1 of the 10 are of buyers who had been told before") {
		t.Errorf("a refusal before the stock was gone is not counted: %q", got)
	}
	open := takenOver()
	if s := seriesOf(open.History, &open.Run); s.gone != nil {
		t.Errorf("nobody was told that nothing was left, and it is gone at %v", s.gone.at)
	}
}
