//go:build unix

package child

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a process may take to stop; it usually takes microseconds.
const stopWithin = time.Second

// Freeze stops the process as SIGSTOP does and waits until it has stopped, if the system reports that: the signal may
// be pending when kill returns.
func (p *Process) Freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < stopWithin; time.Sleep(100 * time.Microsecond) {
		if state := processState(p.PID()); state == "" || state == "T" {
			return nil
		}
	}
	return fmt.Errorf("process %d still runs %v after SIGSTOP", p.PID(), stopWithin)
}

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// processState is the letter of a process's state as Linux shows it: R, S, T for
// stopped, Z for gone and not waited for; empty where it cannot be told.
func processState(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, state, _ := strings.Cut(string(stat), ") ") // the name before it may contain anything
	state, _, _ = strings.Cut(state, " ")
	return state
}

// interruptGroup and endGroup ask a process and all programs that it started to end; killGroup kills them.
func interruptGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGINT) }

func endGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
