package container

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// thisMachine distinguishes process ids of one machine, or container, from those of another. Containers can share a
// name, but not their process ids' namespace.
func thisMachine() string {
	name, _ := os.Hostname()
	space, _ := os.Readlink("/proc/self/ns/pid")
	return name + " " + space
}

// processStart returns when a process was started, in ticks since the boot. If there
// is none, the error is fs.ErrNotExist.
func processStart(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		// A process of another user may be hidden. A signal to it succeeds, or is not permitted.
		if syscall.Kill(pid, 0) != syscall.ESRCH {
			return "", fmt.Errorf("process %d is hidden", pid)
		}
		return "", fs.ErrNotExist
	}
	// The second field is a name in brackets, which may contain anything.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const state, start = 0, 19
	if len(fields) <= start {
		return "", fmt.Errorf("process %d has a strange stat", pid)
	}
	if fields[state] == "Z" || fields[state] == "X" {
		return "", fs.ErrNotExist // dead, but not yet waited for
	}
	return fields[start], nil
}
