package instance

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"oversell/internal/child"
	"oversell/internal/servertest"
)

func TestAFailedStartGivesTheServersReason(t *testing.T) {
	servertest.NeedServer(t)
	c, err := child.Start(exec.Command(ServerName, "--port", "0", "--no-such-setting", "yes"))
	if err != nil {
		t.Fatal(err)
	}
	<-c.Exited()
	if got, want := Reason(c.Output.String()), `'no-such-setting "yes"': Bad directive or wrong number of arguments`; got != want {
		t.Errorf("reason %q; want %q", got, want)
	}
}

// TestAStrangersAnswerIsNotTakenForTheChilds checks that awaitReady does not accept the answer of another process on the
// port for that of its child.
func TestAStrangersAnswerIsNotTakenForTheChilds(t *testing.T) {
	addr, _ := servertest.Start(t)
	c, err := child.Start(exec.Command("sleep", "60"))
	if err != nil {
		servertest.Unable(t, err)
	}
	defer c.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = awaitReady(ctx, c, addr)
	if err == nil || !strings.Contains(err.Error(), "answers there, but ours is") {
		t.Errorf("awaitReady = %v", err)
	}
}
