package databasetest

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// child is a server that we started. Its life ends with ours (see attributes).
type child struct {
	cmd    *exec.Cmd
	output tail
	exited chan struct{} // closed when it is gone
}

func startChild(as account, dir, binary string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(binary, args...), exited: make(chan struct{})}
	c.cmd.Dir = dir
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = attributes(as)
	c.cmd.WaitDelay = time.Second
	started := make(chan error)
	go func() {
		// On Linux the signal that a parent's death sends is bound to the thread
		// that started the child. This goroutine keeps its thread until the end.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // how it ended is in its output
			close(c.exited)
		}
	}()
	return c, <-started
}

// stop ends the child as fast as it ends in good order, and waits for that.
func (c *child) stop() {
	// PostgreSQL: disconnect everybody and stop. MariaDB ignores it.
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	t := time.NewTimer(5 * time.Second)
	defer t.Stop()
	select {
	case <-c.exited:
		return
	case <-t.C:
	}
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// await asks until there is an answer.
func (c *child) await(ctx context.Context, ask func() (string, error)) (string, error) {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		select {
		case <-c.exited:
			return "", fmt.Errorf("it ended: %s", lastLines(c.output.String()))
		case <-ctx.Done():
			return "", fmt.Errorf("no answer within %v (%w): %s", startTimeout, last, lastLines(c.output.String()))
		case <-poll.C:
		}
		answer, err := ask()
		if err == nil {
			return answer, nil
		}
		last = err
	}
}

// tail keeps the end of what was written. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept); n > tailSize {
		t.kept = append(t.kept[:0], t.kept[n-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
