//go:build unix

package gate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/campaign"
	"oversell/reports"
)

// TestHistoryThatIsAPipe checks that a pipe in place of a history ends neither the gate's patience nor its report.
func TestHistoryThatIsAPipe(t *testing.T) {
	needShell(t)
	for _, before := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "h.jsonl")
		if before {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		p := mustLoad(t, fmt.Sprintf("safety:\n  - {name: x, expect: pass, repeat: 1, command: [/bin/sh, -c, 'test -p %[1]s || mkfifo %[1]s; touch %[1]s'], history: %[1]s, control: {command: ['false'], history: no.jsonl}}\n", path))
		done := make(chan reports.Gate, 1)
		go func() {
			g, err := p.Run(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "runs")}, silent{})
			if err != nil {
				t.Error(err)
			}
			done <- g
		}()
		select {
		case g := <-done:
			if said := story(g); g.Verdict != reports.Inconclusive || !strings.Contains(said, "h.jsonl, which is not a regular file") {
				t.Errorf("there before: %v: %s:\n%s", before, g.Verdict, said)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("there before: %v: the gate still reads the pipe", before)
		}
	}
}

// TestJudgingIsStopped checks that the gate does not judge a history when it was stopped.
func TestJudgingIsStopped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.jsonl")
	if err := os.WriteFile(path, []byte(handedOver(20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := &made{dir: t.TempDir()}
	m.judgeHistory(ctx, path, written{}, time.Now(), 0)
	if m.run.Verdict != reports.Inconclusive || !strings.HasSuffix(m.run.Why, campaign.ErrStopped.Error()) {
		t.Errorf("%+v", m.run)
	}
}
