package watch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/campaign"
	"oversell/checker"
	"oversell/database"
	"oversell/history"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

var aLock = history.Header{Scenario: "mutex", TTL: time.Hour, Promises: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}}}

// section returns the operations of a client that holds the lock from the return of its grant to the call of its
// release.
func section(client int32, session int64, from, to time.Duration) []history.Op {
	key := history.Text("order")
	return []history.Op{
		{Client: client, Kind: history.Acquire, Outcome: history.OK, Key: key, Arg: history.Int(session), Due: from - 1, Call: from - 1, Return: from, Until: time.Hour},
		{Client: client, Kind: history.Release, Outcome: history.OK, Key: key, Arg: history.Int(session), Due: to, Call: to, Return: to + 1, Until: time.Hour},
	}
}

// settle judges all operations that were taken, and returns the violations.
func settle(j *judge) (vs []Violation) {
	j.ask = time.Time{}
	j.advance(history.Watermark{Ops: j.taken, Returned: time.Hour, Called: j.judged})
	return j.broken()
}

func TestJudgeTellsWhatIsBroken(t *testing.T) {
	j := newJudge(aLock)
	j.take(slices.Concat(section(1, 1, 10, 20), section(2, 2, 15, 30)))
	if j.advance(history.Watermark{Ops: j.taken + 1, Returned: time.Hour}) {
		t.Error("it judged though it had not taken all that the water speaks of")
	}
	if j.advance(history.Watermark{Ops: j.taken, Returned: 15}); len(j.found) > 0 {
		t.Error("it judged what may not be complete")
	}
	j.ask = time.Time{}
	j.advance(history.Watermark{Ops: j.taken, Returned: 32})
	vs := j.broken()
	if len(vs) != 1 || vs[0].Property != variant.MutualExclusion || vs[0].Within < 15 || vs[0].Within > 31 || j.quit != "" {
		t.Errorf("%+v, %q", vs, j.quit)
	}
	j.take(section(3, 3, 25, 60)[1:])
	if vs := settle(j); len(vs) > 0 || j.quit != "" {
		t.Errorf("told twice: %+v, %q", vs, j.quit)
	}
}

// TestJudgeWaitsForSweeps sweeps the release of one client after the grant of the next. That is no violation; the
// release comes too late only if the low water was wrong.
func TestJudgeWaitsForSweeps(t *testing.T) {
	first, second := section(1, 1, 10, 20), section(2, 2, 21, 30)
	j := newJudge(aLock)
	j.take(append(first[:1:1], second...))
	j.advance(history.Watermark{Ops: 3, Returned: 21})
	j.take(first[1:])
	if vs := settle(j); len(vs) > 0 || j.quit != "" {
		t.Errorf("in time: %+v, %q", vs, j.quit)
	}
	j = newJudge(aLock)
	j.take(append(first[:1:1], second...))
	settle(j)
	j.take(first[1:])
	if vs := settle(j); len(vs) > 0 || !strings.Contains(j.quit, "too late") {
		t.Errorf("too late: %+v, %q", vs, j.quit)
	}
}

// TestJudgeTakesPlacesInALineLate checks that a place in a wait line may come late, since it is recorded only when
// the client is served.
func TestJudgeTakesPlacesInALineLate(t *testing.T) {
	j := newJudge(aLock)
	j.take(section(1, 1, 10, 20))
	settle(j)
	joined := section(2, 2, 25, 30)[0]
	joined.Kind, joined.Call, joined.Return = history.Join, 1, 2
	j.take([]history.Op{joined})
	if vs := settle(j); len(vs) > 0 || j.quit != "" {
		t.Errorf("%+v, %q", vs, j.quit)
	}
}

// TestJudgeForgets checks that neither the operations that the judge holds back nor the memory of the lock monitors
// grows with the run.
func TestJudgeForgets(t *testing.T) {
	j := newJudge(aLock)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var before int64
	now := time.Duration(1)
	for i := range int64(200_000) {
		if i == 20_000 {
			before = heap()
		}
		j.take(section(int32(i%8), i+1, now, now+5))
		if now += 10; i%100 == 0 {
			j.advance(history.Watermark{Ops: j.taken, Returned: now, Called: now})
		}
	}
	if grown := heap() - before; grown > 4<<20 || len(j.held) > 1000 || j.quit != "" {
		t.Errorf("%d bytes more after 10 times the operations, %d held back, %q", grown, len(j.held), j.quit)
	}
}

// silent is a campaign.Watcher that ignores everything.
type silent struct{}

func (silent) Target(*server.Target)                             {}
func (silent) Database(*database.DB)                             {}
func (silent) Start(int, int, scenarios.Config, *scenarios.Live) {}
func (silent) Done(int, int, reports.Run)                        {}

// recorded runs a campaign and returns its histories.
func recorded(t *testing.T, args ...string) (hs []*history.History) {
	t.Helper()
	o, err := campaign.Parse(append(args, "--target", "embedded"))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := campaign.NewPlan(t.Context(), *o)
	if err != nil {
		t.Fatal(err)
	}
	plan.Dir = filepath.Join(t.TempDir(), "runs")
	if _, err := campaign.Run(t.Context(), plan, silent{}); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(plan.Dir, "*", "history.bin"))
	for _, f := range files {
		h, err := history.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		hs = append(hs, h)
	}
	return hs
}

// sweeps cuts a history into batches as sweeps return them: each sweep visits the clients one after the other, and
// takes what each has recorded by the time of its visit.
func sweeps(r *rand.Rand, ops []history.Op) (batches [][]history.Op) {
	byClient := map[int32][]history.Op{}
	var clients []int32
	for _, op := range ops {
		if byClient[op.Client] == nil {
			clients = append(clients, op.Client)
		}
		byClient[op.Client] = append(byClient[op.Client], op)
	}
	left := len(ops)
	for now := time.Duration(0); left > 0; now += time.Duration(r.Int64N(int64(4 * time.Millisecond))) {
		var batch []history.Op
		r.Shuffle(len(clients), func(i, j int) { clients[i], clients[j] = clients[j], clients[i] })
		for _, c := range clients {
			now += time.Duration(r.Int64N(int64(100 * time.Microsecond)))
			for len(byClient[c]) > 0 && byClient[c][0].Return <= now {
				batch, byClient[c] = append(batch, byClient[c][0]), byClient[c][1:]
			}
		}
		left -= len(batch)
		batches = append(batches, batch)
	}
	return batches
}

// waterOf returns the low waters of a log that has handed over taken operations and will hand over these batches.
func waterOf(taken int64, batches [][]history.Op) history.Watermark {
	w := history.Watermark{Ops: taken, Returned: history.Forever, Called: history.Forever}
	for _, op := range slices.Concat(batches...) {
		if op.Kind != history.Join && op.Kind != history.Fault {
			w.Returned, w.Called = min(w.Returned, op.Return), min(w.Called, op.Call)
		}
	}
	return w
}

// TestLiveIsConfirmed judges real runs of broken variants as if they were in progress, in random sweeps. Whatever is
// called broken must be so in the judgement of the whole history.
func TestLiveIsConfirmed(t *testing.T) {
	told := map[string]int{}
	for seed := range uint64(10) {
		hs := recorded(t, "--seed", fmt.Sprint(seed), "--clients", "8", "--stock", "20", "--lock", "none,php-lock-printed,php-lock")
		hs = append(hs, recorded(t, "--seed", fmt.Sprint(seed), "--clients", "8", "--scenario", "mutex", "--ops", "150", "--hold", "1ms", "--duration", "100ms",
			"--lock", "php-lock-printed,incr-max")...)
		for _, h := range hs {
			if h.Trailer == nil {
				t.Fatal(h.Cut)
			}
			final := map[history.Promise]checker.Verdict{}
			for _, v := range checker.Judge(h).Verdicts {
				final[history.Promise{Of: v.Of, Property: v.Property}] = v
			}
			r := rand.New(rand.NewPCG(seed, 5))
			for range 2 {
				j := newJudge(h.Header)
				var vs []Violation
				batches := sweeps(r, h.Ops)
				for i, batch := range batches {
					j.take(batch)
					j.ask = time.Time{}
					j.advance(waterOf(j.taken, batches[i+1:]))
					vs = append(vs, j.broken()...)
				}
				if j.quit != "" {
					t.Errorf("%s %s: %s", h.Header.Lock, h.Header.Sale, j.quit)
				}
				for _, v := range vs {
					told[string(v.Property)]++
					if f := final[history.Promise{Of: v.Of, Property: v.Property}]; f.Result != checker.Violated {
						t.Errorf("seed %d, %s: %s is called broken: %s\nin the end it is %v: %s", seed, h.Header.Lock, v.Property, v.Why, f.Result, f.Why)
					}
				}
			}
		}
	}
	if told[string(variant.NoOversell)] == 0 || told[string(variant.MutualExclusion)] == 0 {
		t.Errorf("too little was called broken for this test to show anything: %v", told)
	}
	t.Log(told)
}

// TestRunFollows watches a file while it is written.
func TestRunFollows(t *testing.T) {
	live := &scenarios.Live{History: filepath.Join(t.TempDir(), "history.bin")}
	taken := 0
	found := make(chan Violation, 1)
	r := Start(live, Options{Took: func(ops []history.Op) { taken += len(ops) }, Found: func(v Violation) { found <- v }})
	w, err := history.Create(live.History, aLock)
	if err != nil {
		t.Fatal(err)
	}
	log := history.NewLog(time.Now())
	live.Follow(log)
	for _, op := range slices.Concat(section(1, 1, 10, 20), section(2, 2, 15, 30)) {
		log.Recorder(op.Client).Record(&op)
	}
	if err := log.Drain(w.Append); err != nil {
		t.Fatal(err)
	}
	live.Ops.Add(4)
	if v := <-found; v.Property != variant.MutualExclusion {
		t.Errorf("%+v", v)
	}
	if f := r.Figures(); !f.Begun || f.Ops != 4 || len(f.Broken) != 1 || f.Main != history.Acquire || f.P99 == 0 || f.Unjudged != "" {
		t.Errorf("%+v", f)
	}
	if err := w.Append(section(3, 3, 40, 50)); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(history.Trailer{}); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	r.Stop()
	if taken != 6 {
		t.Errorf("%d operations were taken; want 6", taken)
	}
}

// TestRunWithoutHistory checks that a run that fails before it writes a history can be stopped.
func TestRunWithoutHistory(t *testing.T) {
	r := Start(&scenarios.Live{History: filepath.Join(t.TempDir(), "none")}, Options{})
	if f := r.Figures(); f.Begun {
		t.Errorf("%+v", f)
	}
	r.Stop()

	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("hello, this is no history"), 0o644); err != nil {
		t.Fatal(err)
	}
	r = Start(&scenarios.Live{History: path}, Options{})
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.Figures().Unjudged == "" {
		<-tick.C
	}
	r.Stop()
}

func TestRate(t *testing.T) {
	var r rate
	start := time.Now()
	for i := range int64(40) { // 100 operations a second, then 200
		r.sample(start.Add(time.Duration(i)*100*time.Millisecond), 10*i+10*max(0, i-20))
	}
	if got := r.now(); got < 195 || got > 205 {
		t.Errorf("now %v; want 200", got)
	}
	cells := r.cells()
	if len(cells) != 7 || cells[0] != 100 || cells[6] != 200 {
		t.Errorf("cells %v", cells)
	}
}

func TestMainOperation(t *testing.T) {
	m := newMain(&history.Header{Promises: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}}})
	now := time.Now()
	m.at(now)
	m.observe(&history.Op{Kind: history.Buy, Return: time.Second})
	m.observe(&history.Op{Kind: history.Release, Return: time.Hour})
	if p50, _ := m.quantiles(); m.kind() != history.Buy || p50 < 990*time.Millisecond || p50 > 1010*time.Millisecond {
		t.Errorf("%v %v", m.kind(), p50)
	}
	m.observe(&history.Op{Kind: history.Acquire, Due: time.Second, Call: time.Second, Return: time.Second + time.Millisecond})
	m.observe(&history.Op{Kind: history.Acquire, Return: time.Hour, Reason: history.Stopped})
	if _, p99 := m.quantiles(); m.kind() != history.Acquire || p99 < 990*time.Microsecond || p99 > 1010*time.Microsecond {
		t.Errorf("%v %v", m.kind(), p99)
	}
	m.at(now.Add(time.Minute))
	if p50, _ := m.quantiles(); p50 != 0 {
		t.Errorf("a minute later it is still %v", p50)
	}
	m = newMain(&history.Header{}) // a lock that promises nothing
	for _, kind := range []history.Kind{history.Acquire, history.Buy, history.Acquire} {
		m.observe(&history.Op{Kind: kind, Return: time.Second})
	}
	if m.kind() != history.Buy {
		t.Errorf("without a lock that counts the main operation is %v", m.kind())
	}
}

// TestWhenItBroke checks that the time of a violation is that of the last operation of its witness. If that one was
// judged long ago, it only explains the violation, whose time is then that of the last operation judged.
func TestWhenItBroke(t *testing.T) {
	j := newJudge(aLock)
	j.unheard, j.last = 100, 200
	for _, c := range []struct {
		witness []time.Duration
		want    time.Duration
	}{{[]time.Duration{120, 150, 90}, 150}, {[]time.Duration{50, 60}, 200}, {nil, 200}} {
		var v checker.Verdict
		for _, ret := range c.witness {
			v.Witness = append(v.Witness, history.Op{Return: ret})
		}
		if got := j.when(v); got != c.want {
			t.Errorf("witness %v: %d; want %d", c.witness, got, c.want)
		}
	}
}
