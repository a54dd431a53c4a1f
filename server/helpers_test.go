package server

import (
	"strings"
	"testing"

	"oversell/internal/servertest"
)

func mustOpen(t *testing.T, s Spec) *Target {
	t.Helper()
	if s.Target == "process" || strings.Contains(s.Target, "redis") {
		servertest.NeedServer(t)
	}
	tg, err := Open(t.Context(), s)
	if err != nil {
		t.Fatalf("open %v: %v", s, err)
	}
	closeLater(t, tg)
	return tg
}

func closeLater(t *testing.T, tg *Target) {
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}
