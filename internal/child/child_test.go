//go:build unix

package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asParent has the test binary start a program that would run for a minute, tell its
// process id, and wait to be killed.
const asParent = "OVERSELL_CHILD_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		p, err := Start(exec.Command("sleep", "60"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

// start starts a shell script, or skips the test where there is no shell.
func start(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(exec.Command("sh", "-c", script))
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestHowAProgramEndsAndWhatItPrints(t *testing.T) {
	p := start(t, "echo one; echo two >&2; exit 3")
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

// A program may ignore the signal that asks it to end.
func TestStopEndsAProgramThatWillNot(t *testing.T) {
	p := start(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	for p.Output.String() == "" && !p.Gone() {
		time.Sleep(time.Millisecond)
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

// Run ends what the program has started, too: it holds the output open.
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

func TestAChildDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux can do that")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asParent+"=1")
	parent, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Kill()
	var pid int
	for pid == 0 && !parent.Gone() {
		fmt.Sscan(parent.Output.String(), &pid)
		time.Sleep(time.Millisecond)
	}
	if state := processState(pid); pid == 0 || state == "" || state == "Z" {
		t.Fatalf("the parent says %q; its child's state is %q", parent.Output.String(), state)
	}
	parent.Kill()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if state := processState(pid); state == "" || state == "Z" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d outlives its parent", pid)
		}
	}
}
