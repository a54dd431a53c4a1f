package target

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopGrace is how long a server may take to end by itself.
const stopGrace = time.Second

// child is a server that we started.
type child struct {
	cmd    *exec.Cmd
	output tail
	// exited is closed when the child is gone and has been waited for; waitErr
	// may be read then.
	exited  chan struct{}
	waitErr error
}

// startChild starts a command whose life ends with ours (see childAttributes)
// and captures what it prints. It gets neither the terminal nor its signals:
// Ctrl-C is for us to handle, and the server must still be there meanwhile.
func startChild(name string, args ...string) (*child, error) {
	return startChildWith(nil, name, args...)
}

// startChildWith is startChild with an environment; nil is ours.
func startChildWith(env []string, name string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(name, args...), exited: make(chan struct{})}
	c.cmd.Env = env
	c.cmd.Stdout, c.cmd.Stderr = &c.output, &c.output
	c.cmd.SysProcAttr = childAttributes()
	c.cmd.WaitDelay = stopGrace
	started := make(chan error)
	go func() {
		// On Linux the signal that a parent's death sends is bound to the thread
		// that started the child, not to the process. This goroutine therefore
		// keeps its thread to itself until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.waitErr = c.cmd.Wait()
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// gone reports whether the child has exited.
func (c *child) gone() bool {
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// stop asks the child to end, then ends it, and waits until it is gone.
func (c *child) stop() {
	if c.cmd.Process.Signal(syscall.SIGTERM) == nil {
		t := time.NewTimer(stopGrace)
		defer t.Stop()
		select {
		case <-c.exited:
			return
		case <-t.C:
		}
	}
	_ = c.cmd.Process.Kill()
	<-c.exited
}

// lastWords says in one line how a child that is gone came to its end.
func (c *child) lastWords() string {
	how := "it exited by itself"
	if exit := (*exec.ExitError)(nil); errors.As(c.waitErr, &exit) {
		how = exit.ProcessState.String() // "signal: killed", "exit status 1"
	}
	return fmt.Sprintf("%s (process %d; its last line: %s)", how, c.pid(), c.output.reason())
}

// tail is a writer that keeps the end of what was written. It is safe for
// concurrent use.
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

// logHead is what Redis puts before each message: "17:M 20 Nov 2026 11:08:58.051 # ".
var logHead = regexp.MustCompile(`^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ [-.*#] `)

// reason is the server's own explanation: its last warning, or else its last
// line. For an error in its configuration, which it prints without the usual
// head, it is the setting and what is wrong with it.
func (t *tail) reason() string {
	last, warning, setting := "", "", ""
	for line := range strings.Lines(t.String()) {
		line = strings.TrimSpace(line)
		text := logHead.ReplaceAllString(line, "")
		switch {
		case text == "" || strings.Contains(text, "vm.overcommit_memory"):
			continue // the latter is said at every start
		case strings.HasPrefix(text, ">>> "):
			setting = strings.TrimPrefix(text, ">>> ") + ": "
		case strings.Contains(text, "bind: "):
			warning = text
		}
		last = text
	}
	switch {
	case last == "":
		return "it printed nothing"
	case warning != "":
		return warning
	}
	return setting + last
}
