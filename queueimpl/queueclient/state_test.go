package queueclient

import (
	"crypto/rand"
	"errors"
	"testing"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// TestWrongState checks which promise a wrong state breaks: a task is lost only if the queue has it nowhere.
func TestWrongState(t *testing.T) {
	v, ok := queueimpl.Find("reliable")
	if !ok {
		t.Fatal("there is no queue reliable")
	}
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	b := Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting("")
	c := b.Client()
	if _, err := c.Enter(t.Context(), TheInterface, "a", "b"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what             string
		of               variant.Property
		waiting, claimed []string
		want             variant.Property
	}{
		{"as it is", variant.NoLostTask, []string{"a", "b"}, nil, ""},
		{"claimed instead of waiting", variant.NoLostTask, []string{"a"}, []string{"b"}, TheInterface},
		{"one too many", variant.NoLostTask, []string{"a"}, nil, TheInterface},
		{"one missing", variant.NoLostTask, []string{"a", "b", "c"}, nil, variant.NoLostTask},
		{"one missing, of another promise", variant.InOrder, []string{"a", "b", "c"}, nil, variant.InOrder},
	} {
		w := new(suitetest.Breach)
		err := c.ExpectState(t.Context(), tt.of, tt.waiting, tt.claimed)
		if broken := errors.As(err, &w); broken != (tt.want != "") || w.Promise != tt.want {
			t.Errorf("%s: %v; want that %q is broken", tt.what, err, tt.want)
		}
	}
}
