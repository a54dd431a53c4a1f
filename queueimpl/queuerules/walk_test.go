package queuerules

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/clock"
	"oversell/internal/mutants/queues"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// walked makes random walks on a queue, which may be one on the emulation only.
func walked(t *testing.T, v queueimpl.Variant, walks int, within time.Duration) error {
	t.Helper()
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	b := queueclient.Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting("")
	err := walksOf(t.Context(), b, firstSeed(), walks, within)
	if errors.As(err, new(*suitetest.Remark)) {
		t.Logf("%s: %v", v.Name, err)
		return nil
	}
	return err
}

// TestWalksOnSound checks that the sound queues that are shipped are not accused.
func TestWalksOnSound(t *testing.T) {
	for _, v := range queueimpl.Variants {
		if !v.Control {
			t.Run(v.Name, func(t *testing.T) {
				t.Parallel()
				if err := walked(t, v, 60, 10*time.Second); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestWalksFind checks that walks find what is wrong only after several calls, and say what was called and what would be right.
func TestWalksFind(t *testing.T) {
	all := map[string]queueimpl.Variant{}
	for _, q := range queues.All() {
		all[q.Name] = q.Variant
	}
	for name, words := range map[string][]string{
		"third-claim-is-half":             {"broken", "another", "attempt 3"},
		"claim-under-request-is-half":     {"PopAs", "want the start of the call plus the timeout"},
		"repeated-request-promises":       {"sent again"},
		"attempt-of-the-first":            {"as attempt", "since it was delivered"},
		"late-ack-by-due-time":            {"no-lost-task", "ack of"},
		"overwrite-by-due-time":           {"Options.Overwrite is set", "enqueue of"},
		"overwrite-gives-receipt-back":    {"answered success; want \"claim is lost\"", "of an earlier delivery"},
		"overwrite-of-returned-keeps-due": {"Options.Overwrite is set", "enqueue of"},
		"letter-due-at-once":              {"with a delay of", "dead letters"},
		"letter-waits-too":                {"waits, and it is a dead letter, too"},
		"reclaim-3-ms-early":              {"reclaim said that it ended 1 claims; want at most 0"},
		"extend-by-timeout-of-pop":        {"extend of", "success, until"},
		"timeout-for-delay":               {"EnqueueWithin"},
		"reclaim-ends-ten":                {"reclaim", "and 6 more"},
		"extend-resets-attempts":          {"as attempt"},
		"ack-leaves-waiting":              {"acknowledged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, ok := all[name]
			if !ok {
				t.Fatalf("the catalogue has no queue %s", name)
			}
			err := walked(t, v, mostWalks, time.Minute)
			if !errors.As(err, new(*suitetest.Breach)) {
				t.Fatalf("found %v; want a breach", err)
			}
			for _, word := range append(words, "client", "OVERSELL_SEED=", "\n  +0s ") {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("the finding does not say %q: %v", word, err)
				}
			}
			if lines := strings.Count(err.Error(), "\n"); lines > mostReported {
				t.Errorf("the finding has %d lines: %v", lines, err)
			}
		})
	}
}

// TestWalksOnTheCatalogue checks that the sound queues of the catalogue are not accused.
func TestWalksOnTheCatalogue(t *testing.T) {
	for _, q := range queues.All() {
		if q.Sound() && Walkable(q.Variant) {
			t.Run(q.Name, func(t *testing.T) {
				t.Parallel()
				if err := walked(t, q.Variant, 20, 3*time.Second); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
