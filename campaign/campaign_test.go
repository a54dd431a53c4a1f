package campaign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/checker"
	"oversell/database"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/variant"
)

// silent is a watcher that ignores everything.
type silent struct{}

func (silent) Target(*server.Target)                             {}
func (silent) Database(*database.DB)                             {}
func (silent) Start(int, int, scenarios.Config, *scenarios.Live) {}
func (silent) Done(int, int, reports.Run)                        {}

func options(locks ...string) Options {
	return Options{
		Scenario: "seckill", Locks: locks, Target: server.Spec{Target: "embedded"},
		Clients: 8, Stock: 30, Quantity: 1, TTL: 10 * time.Second, Wait: 10 * time.Second, Seed: 1,
	}
}

// ran carries out a plan in a temporary directory.
func ran(t *testing.T, o Options) (Plan, reports.Document) {
	t.Helper()
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	p.Dir = t.TempDir()
	d, err := Run(t.Context(), p, silent{})
	if err != nil {
		t.Fatal(err)
	}
	return p, d
}

// ranInContention is like ran, but repeats the run while clients hardly met.
func ranInContention(t *testing.T, o Options) (p Plan, d reports.Document) {
	t.Helper()
	for range luckless {
		if p, d = ran(t, o); !slices.ContainsFunc(d.Runs, uncontended) {
			break
		}
		o.Seed++
	}
	return p, d
}

func TestSweepLeavesOutWhatCannotRun(t *testing.T) {
	o := options()
	o.TTL = 200 * time.Millisecond
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Runs)+len(p.Skipped) != len(lockimpl.Variants) || len(p.Skipped) == 0 {
		t.Errorf("%d runs, left out: %q; of %d locks", len(p.Runs), p.Skipped, len(lockimpl.Variants))
	}
	for _, why := range p.Skipped {
		if !strings.Contains(why, "whole seconds") {
			t.Errorf("left out for another reason: %s", why)
		}
	}
	// A lock that was asked for by name must not be left out silently.
	o.Locks = []string{"php-lock"}
	if _, err := NewPlan(t.Context(), o); !errors.As(err, new(scenarios.Unmet)) {
		t.Errorf("a lock by name that cannot run: %v", err)
	}
}

func TestRedlockGetsItsMasters(t *testing.T) {
	_, d := ranInContention(t, options("redlock"))
	if got := d.Runs[0].Topology; got != "masters:5" {
		t.Errorf("redlock ran on %s", got)
	}
	if got := d.Runs[0].Verdict; got != reports.Pass {
		t.Errorf("redlock: %s", got)
	}
}

// TestCutAnywhere checks that a history that is cut at any byte is judged up to the cut or refused with a reason, and
// never passes.
func TestCutAnywhere(t *testing.T) {
	p, d := ranInContention(t, options("lua-release"))
	if d.Runs[0].Verdict != reports.Pass {
		t.Fatalf("the whole history: %+v", d.Runs[0])
	}
	whole, err := os.ReadFile(filepath.Join(p.Dir, runName(0, p.Runs[0]), HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.bin")
	judged, refused := 0, 0
	for at := 0; at < len(whole); at += 1 + at/97 {
		if err := os.WriteFile(path, whole[:at], 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Check(t.Context(), path)
		if err != nil {
			refused++
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("cut at %d: the reason is not one line: %q", at, err)
			}
			continue
		}
		judged++
		if r := d.Runs[0]; r.Verdict == reports.Pass || (r.Verdict == reports.Inconclusive && r.Why == "") {
			t.Errorf("cut at byte %d of %d: %s (%s)", at, len(whole), r.Verdict, r.Why)
		}
	}
	if judged < 10 || refused < 10 {
		t.Errorf("%d cuts were judged and %d refused: not many of both", judged, refused)
	}
}

// TestViolationSurvivesTheCut checks that a violation before the cut is reported.
func TestViolationSurvivesTheCut(t *testing.T) {
	o := options("none")
	p, d := ran(t, o)
	for range luckless { // a busy machine may execute all purchases one after the other
		if d.Runs[0].Verdict == reports.Violated {
			break
		}
		o.Seed++
		p, d = ran(t, o)
	}
	if d.Runs[0].Verdict != reports.Violated {
		t.Fatalf("the control was not caught: %+v", d.Runs[0])
	}
	whole, err := os.ReadFile(filepath.Join(p.Dir, runName(0, p.Runs[0]), HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.bin")
	if err := os.WriteFile(path, whole[:len(whole)-3], 0o644); err != nil {
		t.Fatal(err)
	}
	d, err = Check(t.Context(), path)
	if err != nil || d.Runs[0].Verdict != reports.Violated || d.Runs[0].Cut == "" {
		t.Errorf("cut in its last bytes: %+v, %v", d, err)
	}
}

func TestVerdictNeverPassesByDefault(t *testing.T) {
	busy := []history.Op{
		{Client: 1, Kind: history.Acquire, Call: 1, Return: 5},
		{Client: 2, Kind: history.Acquire, Call: 2, Return: 6},
	}
	whole := &history.Trailer{}
	for _, c := range []struct {
		name     string
		h        history.History
		promised []checker.Result
		want     string
	}{
		{"kept", history.History{Ops: busy, Trailer: whole}, []checker.Result{checker.Holds}, reports.Pass},
		{"broken", history.History{Ops: busy, Trailer: whole}, []checker.Result{checker.Holds, checker.Violated, checker.Unknown}, reports.Violated},
		{"open", history.History{Ops: busy, Trailer: whole}, []checker.Result{checker.Holds, checker.Unknown}, reports.Inconclusive},
		{"nothing promised", history.History{Ops: busy, Trailer: whole}, nil, reports.Inconclusive},
		{"cut", history.History{Ops: busy, Trailer: whole, Cut: "here"}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"no end", history.History{Ops: busy}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"interrupted", history.History{Ops: busy, Trailer: &history.Trailer{Interrupted: true}}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"a fault that nobody tells of", history.History{Header: history.Header{Faults: []string{"crash after buy"}}, Ops: busy, Trailer: whole}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"the server died", history.History{Ops: busy, Trailer: &history.Trailer{Aborted: "the server died"}}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"one after the other", history.History{Ops: []history.Op{{Client: 1, Call: 1, Return: 2}, {Client: 2, Call: 3, Return: 4}}, Trailer: whole}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"nothing happened", history.History{Trailer: whole}, []checker.Result{checker.Holds}, reports.Inconclusive},
		{"broken, then cut", history.History{Ops: busy, Cut: "here"}, []checker.Result{checker.Violated}, reports.Violated},
	} {
		var promised []checker.Verdict
		for _, r := range c.promised {
			promised = append(promised, checker.Verdict{Of: variant.Lock, Property: variant.MutualExclusion, Result: r, Opportunities: 3})
		}
		counted := judging.NewCounting(&c.h)
		counted.Read(c.h.Ops)
		got, why := judging.Verdict(&c.h, promised, counted.Contended)
		if got != c.want || (got == reports.Inconclusive) != (why != "") {
			t.Errorf("%s: %s (%s); want %s", c.name, got, why, c.want)
		}
	}
	few := []checker.Verdict{{Of: variant.Lock, Property: variant.MutualExclusion, Result: checker.Holds, Opportunities: 2}}
	if got, why := judging.Verdict(&history.History{Ops: busy, Trailer: whole}, few, true); got != reports.Inconclusive || !judging.Uncontended(why) || !strings.Contains(why, "mutual-exclusion of the lock had 2 opportunities, and a pass needs 3 for each promise") {
		t.Errorf("two opportunities: %s (%s); the bound 3/n says nothing then", got, why)
	}
	unsold := []checker.Verdict{{Of: variant.Sale, Property: variant.NoOversell, Result: checker.Holds}}
	if _, why := judging.Verdict(&history.History{Ops: busy, Trailer: whole}, unsold, true); !strings.Contains(why, "more orders, or a smaller stock") {
		t.Errorf("a stock that was not sold: %s", why)
	}
}

// TestDocumentedThresholds checks that docs/verdicts.md has the numbers of the code.
func TestDocumentedThresholds(t *testing.T) {
	text, err := os.ReadFile("../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("a promise had fewer than %d opportunities", judging.Needed), fmt.Sprintf("less than %d ms", judging.Shortest.Milliseconds())} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/verdicts.md does not say %q", want)
		}
	}
}

func TestInterruptedCampaignLeavesOutTheRest(t *testing.T) {
	p, err := NewPlan(t.Context(), options("lua-release", "fenced"))
	if err != nil {
		t.Fatal(err)
	}
	p.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	d, err := Run(ctx, p, stopAfterFirst{cancel: cancel})
	if err != nil || len(d.Runs) != 1 {
		t.Errorf("%d runs, %v; want 1", len(d.Runs), err)
	}
}

type stopAfterFirst struct {
	silent
	cancel context.CancelFunc
}

func (s stopAfterFirst) Done(int, int, reports.Run) { s.cancel() }

// TestJudgingIsDeterministic checks that judging the same files gives the same bytes each time.
func TestJudgingIsDeterministic(t *testing.T) {
	p, _ := ran(t, options("none", "php-lock-printed"))
	var first []byte
	for range 3 {
		d, err := Check(t.Context(), p.Dir)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := reports.WriteJSON(&b, d); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Fatal("two judgements of the same histories differ")
		}
	}
}

func TestCatalogueNamesWhatPlansTake(t *testing.T) {
	c := Catalogue()
	for _, l := range c.Locks {
		if _, err := NewPlan(t.Context(), options(l.Name)); err != nil {
			t.Errorf("%s is listed and cannot be planned: %v", l.Name, err)
		}
	}
}

// TestTheEmulationGetsALoadThatSuitsIt checks that the emulation gets its own number of clients when the user set
// none, and keeps the stock that the user set.
func TestTheEmulationGetsALoadThatSuitsIt(t *testing.T) {
	o := options("lua-release")
	o.Clients, o.Stock = 64, 500
	o.Set = func(flag string) bool { return flag == "stock" }
	p, err := NewPlan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if c := p.Runs[0]; c.Clients != emulatedClients || c.Stock != 500 {
		t.Errorf("%d clients and %d pieces; want %d, which nobody chose, and 500, which somebody did", c.Clients, c.Stock, emulatedClients)
	}
}
