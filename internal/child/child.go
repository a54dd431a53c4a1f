// Package child starts programs that do not outlive this one.
//
// On Linux the kernel kills a child when this program ends, even by SIGKILL. Other systems cannot do that. On all
// systems a child leads a process group of its own: the terminal's signals do not reach it, because this program
// handles Ctrl-C, and the child must still be there meanwhile.
//
// [Start] is for servers, which run until they are stopped, and [Run] for programs that end by themselves.
package child

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"oversell/internal/closed"
)

// outputDelay is how long the output of a dead child may take to end: programs that the child started may hold it open.
const outputDelay = time.Second

// Process is a program started by Start. Its methods are safe for concurrent
// use.
type Process struct {
	// Output holds the end of the program's output, unless the command had an output of its own.
	Output Tail

	cmd     *exec.Cmd
	exited  chan struct{}
	waitErr error

	mu      sync.Mutex
	cleared bool // its group is empty, so its number may be another's by now
}

// Start starts a command. It sets the attributes that keep it from outliving this program, and captures its output
// unless that goes elsewhere.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	if cmd.Stdout == nil && cmd.Stderr == nil {
		cmd.Stdout, cmd.Stderr = &p.Output, &p.Output
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = outputDelay
	}
	tie(cmd)
	started := make(chan error)
	go onThread(func() {
		err := cmd.Start()
		started <- err
		if err == nil {
			p.waitErr = cmd.Wait()
			close(p.exited)
		}
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Run runs a command to its end, and then kills the programs that it started and left in its process group. The command
// must be from exec.CommandContext: when its context ends, Run interrupts the program and all programs that it started,
// and kills the rest after patience.
func Run(cmd *exec.Cmd, patience time.Duration) error {
	cmd.Cancel = func() error { return interruptGroup(cmd.Process) }
	cmd.WaitDelay = patience
	tie(cmd)
	ended := make(chan error)
	go onThread(func() { ended <- cmd.Run() })
	err := <-ended
	if cmd.Process != nil { // it was started
		killGroup(cmd.Process)
	}
	return err
}

// onThread calls f on a thread that ends no earlier than f. On Linux PDEATHSIG is sent when the thread that started the
// child ends, not when the process ends.
func onThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed when the process is gone and has been waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Gone reports whether the process has exited.
func (p *Process) Gone() bool { return closed.Is(p.exited) }

// Err returns the error of exec.Cmd.Wait. It waits for the process to exit.
func (p *Process) Err() error {
	<-p.exited
	return p.waitErr
}

// Kill ends the process as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails only if it is gone already
	<-p.exited
}

// Stop asks the process to end, by the signals in turn or by SIGTERM if none are given, kills it if it is still there
// after grace, and waits until it is gone.
func (p *Process) Stop(grace time.Duration, signals ...os.Signal) {
	if len(signals) == 0 {
		signals = []os.Signal{syscall.SIGTERM}
	}
	asked := false
	for _, s := range signals {
		asked = p.cmd.Process.Signal(s) == nil || asked
	}
	if asked {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-p.exited:
			return
		case <-t.C:
		}
	}
	p.Kill()
}

// KillAll is Kill for the process and all programs that it started and that are still in its group, even if the process
// itself is gone.
func (p *Process) KillAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cleared {
		return
	}
	killGroup(p.cmd.Process)
	p.Kill()
	p.cleared = true
}

// StopAll is Stop for the process and all programs that it started. When it is gone, it kills the rest of those.
func (p *Process) StopAll(grace time.Duration) {
	if p.endAll() == nil {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-p.exited:
		case <-t.C:
		}
	}
	p.KillAll()
}

// endAll asks the process and all programs that it started to end.
func (p *Process) endAll() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cleared {
		return os.ErrProcessDone
	}
	return endGroup(p.cmd.Process)
}

// Tail is a writer that keeps the end of the text written to it. It is safe for concurrent use.
type Tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 4 << 10

// Write implements io.Writer. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept); n > tailSize {
		t.kept = append(t.kept[:0], t.kept[n-tailSize:]...)
	}
	return len(p), nil
}

// String returns the last 4 KiB written.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
