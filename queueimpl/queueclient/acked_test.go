package queueclient

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// deaf is a queue whose acks do nothing.
type deaf struct{ queueimpl.Queue }

func (deaf) Ack(context.Context, string, queueimpl.Task) error { return nil }

// TestAckedComesBack checks that a task that comes back after its ack breaks the contract, whatever the rule is about, and that a task
// which was enqueued again does not.
func TestAckedComesBack(t *testing.T) {
	v, _ := queueimpl.Find("reliable")
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return deaf{n(env, o)} }
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	b := Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting("")
	c := b.Client(SetVisibility)
	for _, again := range []bool{false, true} {
		if again {
			c.Name += "-again"
		}
		mine, err := c.Given(t.Context(), TheInterface)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Done(t.Context(), mine...); err != nil {
			t.Fatal(err)
		}
		if again {
			_, _ = b.Client().Enqueue(t.Context(), c.Name, "a")
		}
		if err := b.Until(t.Context(), "a task after its claim", func() (bool, error) {
			_, err = c.ExpectTake(t.Context(), variant.NotEarly, 1)
			return err != nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		w := new(suitetest.Breach)
		if !errors.As(err, &w) || (w.Promise == TheInterface && strings.Contains(err.Error(), "acknowledged")) == again {
			t.Errorf("enqueued again: %t: %v", again, err)
		}
	}
}
