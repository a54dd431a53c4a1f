package queuerules

import (
	"crypto/rand"
	"errors"
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
