//go:build unix

package target

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a child may take to stand still; it is a matter of
// microseconds.
const stopWithin = time.Second

// freeze stops the child and waits until it stands still, as far as the system
// tells: a signal is only on its way when kill returns.
func (c *child) freeze() error {
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < stopWithin; time.Sleep(100 * time.Microsecond) {
		if state := processState(c.pid()); state == "" || state == "T" {
			return nil
		}
	}
	return fmt.Errorf("process %d still runs %v after SIGSTOP", c.pid(), stopWithin)
}

func (c *child) thaw() error { return c.cmd.Process.Signal(syscall.SIGCONT) }

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
