package queueclient

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// TestFewer checks that a rule that was tried with fewer tasks has a remark of it.
func TestFewer(t *testing.T) {
	v, ok := queueimpl.Find("reliable")
	if !ok {
		t.Fatal("there is no queue reliable")
	}
	s := opentest.Open(t, server.Spec{Target: "embedded"})
	b := Bench{Queue: rand.Text(), Variant: v, Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}.Noting("")
	if n := b.Fits(t.Context(), 2, 1, time.Hour); n != 2 || b.Fewer() != nil {
		t.Errorf("%d tasks and the remark %v; want 2, and none", n, b.Fewer())
	}
	remark := new(suitetest.Remark)
	if n := b.Fits(t.Context(), 500, 12, 1); n != 12 || !errors.As(b.Fewer(), &remark) || !strings.Contains(remark.Text, "12 instead of 500 tasks") {
		t.Errorf("%d tasks and the remark %v; want 12, and that", n, b.Fewer())
	}
}
