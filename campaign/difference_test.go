package campaign

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// steady returns a history of n numbers, one every so often, each of which took about so long.
func steady(n int, every, took time.Duration, seed uint64) *history.History {
	random := rand.New(rand.NewPCG(seed, 0))
	h := &history.History{Header: history.Header{Schema: history.Schema, Scenario: "ids", IDs: "incr", Clients: 4, Target: "process", Topology: "single", Engine: "goroutine", Seed: seed}}
	for i := range n {
		end := time.Duration(i+1) * every
		d := time.Duration(float64(took) * (0.5 + random.Float64()))
		h.Ops = append(h.Ops, history.Op{Client: int32(i % 4), Kind: history.NextID, Key: history.Text("thread"), Result: history.Int(int64(i)), Outcome: history.OK, Due: max(0, end-d), Call: max(0, end-d), Return: end})
	}
	h.Trailer = &history.Trailer{Elapsed: time.Duration(n) * every}
	return h
}

func differ(t *testing.T, a, b *history.History) reports.Difference {
	t.Helper()
	d, err := differenceOf(a, b, judging.Judge(a), judging.Judge(b))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDifferMeasures checks the intervals of ratios: those of equal runs contain 1, those of a run that is twice as
// fast contain 2, and a quantile with too few operations beyond it has none.
func TestDifferMeasures(t *testing.T) {
	a := steady(4000, time.Millisecond, 300*time.Microsecond, 1)
	d := differ(t, a, steady(4000, time.Millisecond, 300*time.Microsecond, 2))
	if !d.Alike() || len(d.Moved()) != 0 || len(d.Measures) != 5 {
		t.Errorf("of two runs that are alike %v, %d measures, unlike in %v", d.Moved(), len(d.Measures), d.Unlike)
	}
	d = differ(t, a, steady(4000, time.Millisecond/2, 600*time.Microsecond, 2))
	for i, want := range []float64{2, 2, 2, 2} {
		m := d.Measures[i]
		if m.Ratio == nil || m.Ratio.Low > want || m.Ratio.High < want || !m.Moved() {
			t.Errorf("%s: %+v; want an interval round %v", m.Name, m.Ratio, want)
		}
	}
	if m := d.Measures[4]; m.Sure || m.Ratio != nil || m.A.Value == 0 {
		t.Errorf("%s: %+v; four operations are slower, too few for an interval", m.Name, m)
	}
	if again := differ(t, a, steady(4000, time.Millisecond/2, 600*time.Microsecond, 2)); !reflect.DeepEqual(again, d) {
		t.Error("the second time it says something else")
	}
}

// TestDifferSettings checks that another variant counts as what is compared, that another number of clients makes two
// runs incomparable, and that another seed does not matter.
// TestDifferFromTheStartOfTheLoad checks that the rates are those of the load, whenever it began: those of a run whose
// times are a minute later are the same, and so are their intervals.
func TestDifferFromTheStartOfTheLoad(t *testing.T) {
	a, b := steady(4000, time.Millisecond, 300*time.Microsecond, 1), steady(4000, time.Millisecond, 300*time.Microsecond, 1)
	for i := range b.Ops {
		op := &b.Ops[i]
		op.Due, op.Call, op.Return = op.Due+time.Minute, op.Call+time.Minute, op.Return+time.Minute
	}
	for _, m := range differ(t, a, b).Measures {
		if m.A != m.B {
			t.Errorf("%s: %+v, and a minute later %+v", m.Name, m.A, m.B)
		}
	}
	rate := differ(t, a, b).Measures[0].A
	if rate.Value < 999 || rate.Value > 1001 || rate.Low > 1000 || rate.High < 1000 {
		t.Errorf("the rate is %+v; want 1000 a second", rate)
	}
}

func TestDifferSettings(t *testing.T) {
	a, b := steady(100, time.Millisecond, time.Microsecond, 1), steady(100, time.Millisecond, time.Microsecond, 2)
	b.Header.IDs = "get-set"
	b.Header.Promises = []history.Promise{{Of: variant.IDs, Property: variant.UniqueIDs}}
	if d := differ(t, a, b); !d.Alike() || !reflect.DeepEqual(d.Chosen, []reports.Setting{{Name: "ids", A: "incr", B: "get-set"}}) {
		t.Errorf("tried %v, unlike in %v", d.Chosen, d.Unlike)
	}
	b.Header.Clients, b.Header.Hold, b.Header.Faults = 8, 2*time.Millisecond, []string{"kill at 1s"}
	want := []reports.Setting{{Name: "clients", A: "4", B: "8"}, {Name: "faults", A: "none", B: "kill at 1s"}, {Name: "hold", A: "none", B: "2ms"}}
	if d := differ(t, a, b); !reflect.DeepEqual(d.Unlike, want) || d.Measures[0].Ratio != nil {
		t.Errorf("unlike in %v, want %v, and no ratio: %v", d.Unlike, want, d.Measures[0].Ratio)
	}
	b.Header.Scenario = "floors"
	if d := differ(t, a, b); len(d.Measures) != 0 {
		t.Errorf("of different scenarios: %v", d.Measures)
	}
}

// TestDurationThatNobodySet checks that a duration counts as a setting only if it was asked for: a run with faults
// lasts longer by itself.
func TestDurationThatNobodySet(t *testing.T) {
	a, b := steady(100, time.Millisecond, time.Microsecond, 1), steady(100, time.Millisecond, time.Microsecond, 2)
	for _, h := range []*history.History{a, b} {
		h.Header.Scenario, h.Header.IDs, h.Header.Lock, h.Header.TTL = "mutex", "", "lua-release", time.Second
		h.Header.Duration = completed(h.Header, h.Header.TTL).Duration
	}
	b.Header.Faults = []string{"kill at 5s for 1s"}
	b.Header.Duration = completed(b.Header, b.Header.TTL).Duration
	if a.Header.Duration == b.Header.Duration {
		t.Fatalf("both last %v", a.Header.Duration)
	}
	names := func() (all []string) {
		for _, s := range differ(t, a, b).Unlike {
			all = append(all, s.Name)
		}
		return all
	}
	if got := names(); !slices.Equal(got, []string{"faults"}) {
		t.Errorf("unlike in %v, want the faults only", got)
	}
	a.Header.Duration++
	if got := names(); !slices.Equal(got, []string{"duration", "faults"}) {
		t.Errorf("unlike in %v, want the duration, too", got)
	}
}

// TestSettingsOfOtherPrograms checks that settings missing from the history of another program are unknown, not 0.
func TestSettingsOfOtherPrograms(t *testing.T) {
	a, b := steady(100, time.Millisecond, time.Microsecond, 1), steady(100, time.Millisecond, time.Microsecond, 2)
	b.Header = history.Header{Schema: history.Schema, Scenario: "ids"}
	for _, s := range differ(t, a, b).Unlike {
		if s.B != "not known" {
			t.Errorf("%s is %q", s.Name, s.B)
		}
	}
}

// TestReportOfTheSameRun checks that naming one run twice is an error.
func TestReportOfTheSameRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.jsonl")
	text := `{"schema":"oversell-history/1","stock":1}
{"client":1,"kind":"buy","arg":"1","outcome":"ok","call_ns":0,"return_ns":900}
{"trailer":{"operations":1}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if written, err := Report([]string{path, path}, ""); err == nil || !strings.Contains(err.Error(), "are the same: ") {
		t.Errorf("wrote %q, %v", written, err)
	}
}

// TestReportOfTwoRuns checks that two paths to a run each make a page of their differences, which lies beside the
// page of the first run and does not replace it.
func TestReportOfTwoRuns(t *testing.T) {
	o := options("none", "lua-release")
	p, _ := ran(t, o)
	a, b := filepath.Join(p.Dir, runName(0, p.Runs[0])), filepath.Join(p.Dir, runName(1, p.Runs[1]))
	before := contents(t, filepath.Join(a, pageFile))
	written, err := Report([]string{a, b}, "")
	if err != nil || len(written) != 1 || written[0] != filepath.Join(a, differenceFile) {
		t.Fatalf("wrote %q, %v", written, err)
	}
	text := contents(t, written[0])
	for _, want := range []string{"Settings that differ", `href="report.html"`, `href="../` + filepath.Base(b) + `/report.html"`, "block bootstrap"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if contents(t, filepath.Join(a, pageFile)) != before {
		t.Error("the page of the first run was overwritten")
	}
}
