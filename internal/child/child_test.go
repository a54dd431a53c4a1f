//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asParent is the environment variable that makes the test binary start a program that would run for a minute, write a
// line to descriptor 3, which that program inherits, and wait to be killed.
const asParent = "OVERSELL_CHILD_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		pipe := os.NewFile(3, "pipe")
		cmd := exec.Command("sleep", "60")
		cmd.ExtraFiles = []*os.File{pipe}
		if _, err := Start(cmd); err != nil {
			fmt.Fprintln(pipe, err)
			os.Exit(1)
		}
		fmt.Fprintln(pipe, "started")
		select {}
	}
	os.Exit(m.Run())
}

// start starts a program, and kills it when the test ends.
func start(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// piped starts a program with a descriptor 3, and returns a reader of what the program and its children write there. The
// reader ends when they all have ended.
func piped(t *testing.T, cmd *exec.Cmd) (*Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	p := start(t, cmd)
	w.Close()
	return p, bufio.NewReader(r)
}

func TestHowAProgramEndsAndWhatItPrints(t *testing.T) {
	p := start(t, exec.Command("sh", "-c", "echo one; echo two >&2; exit 3"))
	if err := p.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("Err = %v", err)
	}
	if !p.Gone() {
		t.Error("it has exited and is not gone")
	}
	if got := p.Output.String(); got != "one\ntwo\n" {
		t.Errorf("it printed %q", got)
	}
}

func TestAProgramThatDoesNotExist(t *testing.T) {
	if p, err := Start(exec.Command("/none/such")); err == nil {
		t.Errorf("started %v", p)
	}
}

// TestStopEndsAProgramThatWillNot checks that Stop ends a program that ignores the signal that asks it to end.
func TestStopEndsAProgramThatWillNot(t *testing.T) {
	p, says := piped(t, exec.Command("sh", "-c", "trap '' TERM; echo ready >&3; while :; do sleep 0.05; done"))
	if line, err := says.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q (%v)", line, err)
	}
	p.Stop(20 * time.Millisecond)
	if !p.Gone() {
		t.Error("it is still there")
	}
	p.Stop(time.Minute) // and again
}

func TestOnlyTheEndOfTheOutputIsKept(t *testing.T) {
	var tail Tail
	for range 3 * tailSize {
		fmt.Fprint(&tail, "a")
	}
	fmt.Fprint(&tail, "end")
	if got := tail.String(); len(got) != tailSize || !strings.HasSuffix(got, "aaaend") {
		t.Errorf("kept %d bytes, ending in %q", len(got), got[len(got)-6:])
	}
}

// TestRunEndsAllWithItsContext checks that Run also ends the processes that the program has started, which hold its output
// open.
func TestRunEndsAllWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 60 & sleep 60; wait")
	var out Tail
	cmd.Stdout = &out
	begin := time.Now()
	err := Run(cmd, 100*time.Millisecond)
	if took := time.Since(begin); err == nil || took > 30*time.Second {
		t.Errorf("Run = %v after %v", err, took)
	}
}

// TestRunLeavesNothing checks that programs that a command has started do not outlive Run, though the command succeeded.
func TestRunLeavesNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 60 & echo done >&3")
	cmd.ExtraFiles = []*os.File{w}
	if err := Run(cmd, time.Second); err != nil {
		t.Error(err)
	}
	w.Close()
	if said, err := io.ReadAll(r); string(said) != "done\n" || err != nil {
		t.Errorf("it says %q (%v), and something is left", said, err)
	}
}

// TestAllEnd checks that the processes that a program has started end with it, whether it is stopped, killed, or has ended
// before.
func TestAllEnd(t *testing.T) {
	for script, end := range map[string]func(*Process){
		"sleep 60 & echo ready >&3; wait":                      func(p *Process) { p.StopAll(time.Minute) },
		"sleep 60 & echo ready >&3; wait ":                     (*Process).KillAll,
		"trap '' TERM; sleep 60 & echo ready >&3; sleep 60":    func(p *Process) { p.StopAll(20 * time.Millisecond) },
		"sleep 60 </dev/null >/dev/null 2>&1 & echo ready >&3": func(p *Process) { <-p.Exited(); p.StopAll(time.Minute) },
	} {
		p, says := piped(t, exec.Command("sh", "-c", script))
		if line, err := says.ReadString('\n'); line != "ready\n" {
			t.Fatalf("it says %q (%v)", line, err)
		}
		end(p)
		if _, err := says.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: something is left: %v", script, err)
		}
	}
}
