package locksearch

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"oversell/explore"
	"oversell/internal/servertest"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/server"
	"oversell/server/opentest"
)

// found returns an exploration of a shipped lock with a counterexample, as explore --out writes it.
func found(t *testing.T, lock string, b reports.Bounds) reports.Exploration {
	t.Helper()
	v, known := lockimpl.Find(lock)
	if !known {
		t.Fatalf("there is no lock %s", lock)
	}
	r, err := explore.Run(t.Context(), mutex(v, b))
	if err != nil || r.Counterexample == nil {
		t.Fatalf("%s: %s (%s), %v; want a counterexample", lock, r.Verdict, r.Why, err)
	}
	return r
}

func written(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReplayFailsWhileTheBugIsThere(t *testing.T) {
	servertest.NeedServer(t)
	r := found(t, "php-lock-printed", reports.Bounds{Tries: 1})
	pass := reports.Exploration{Schema: reports.ExplorationSchema, Verdict: reports.Pass}
	for name, trace := range map[string]any{
		"one":     r,
		"several": reports.Explorations{Schema: reports.ExplorationsSchema, Explorations: []reports.Exploration{pass, r}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := counterexampleIn(written(t, trace))
			if err != nil {
				t.Fatal(err)
			}
			_, err = replay(t.Context(), e, single(t))
			wants(t, err, errBroken, "setnx Lock:order", "| client 1", r.Counterexample.Sentence)
		})
	}
}

// TestReplayPassesWhenTheBugIsGone replays the counterexample of a flawed lock on a sound lock.
func TestReplayPassesWhenTheBugIsGone(t *testing.T) {
	servertest.NeedServer(t)
	r := found(t, "php-lock-printed", reports.Bounds{Tries: 1})
	r.Lock = "php-lock-atomic"
	trace := written(t, r)
	said, err := replay(t.Context(), r, single(t))
	if err != nil || !strings.Contains(said, "step 1") || !strings.Contains(said, "search again") {
		t.Errorf("%q, %v; want that the code does not follow the schedule from its first step", said, err)
	}
	if _, err := Replay(t.Context(), trace, func(string) *server.Target { return single(t) }); err != nil {
		t.Error(err)
	}
}

// TestReplayPassesWhenNothingBreaks replays only the first step of a counterexample, after which nothing is broken yet.
func TestReplayPassesWhenNothingBreaks(t *testing.T) {
	servertest.NeedServer(t)
	r := found(t, "set-nx-ex", reports.Bounds{Tries: 1})
	r.Counterexample.Steps = r.Counterexample.Steps[:1]
	said, err := replay(t.Context(), r, single(t))
	if err != nil || !strings.Contains(said, "nothing is broken now") {
		t.Errorf("%q, %v; want that nothing was broken", said, err)
	}
}

func TestReplayRefusesOtherFiles(t *testing.T) {
	for trace, want := range map[string]string{
		`hello`: "not a trace of oversell explore",
		`{"schema":"oversell-explorations/1","explorations":[]}`:  "no search in the trace",
		`{"schema":"oversell/1"}`:                                 "the schema of the exploration is",
		`{"schema":"oversell-exploration/1","verdict":"pass"}`:    "it has no schedule",
		`{"schema":"oversell-exploration/1","counterexample":{}}`: "there is no scenario",
	} {
		e, err := counterexampleIn([]byte(trace))
		if err == nil {
			_, err = replay(t.Context(), e, nil)
		}
		if err == nil || errors.Is(err, errBroken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error that says %q", trace, err, want)
		}
	}
}

// single starts an empty redis-server for the test.
func single(t *testing.T) *server.Target {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: "process", Topology: "single"})
}
