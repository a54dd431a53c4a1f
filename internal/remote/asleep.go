package remote

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// settling is the longest time that settle waits, by the machine's clock.
const settling = time.Second

// settle waits until all threads of the process are blocked.
func (p *Process) settle() {
	for end := time.Now().Add(settling); !asleep(p.control.pid) && time.Now().Before(end); {
		time.Sleep(50 * time.Microsecond)
	}
}

// asleep reports whether no thread of a process runs.
func asleep(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, t := range threads {
		line, err := os.ReadFile(t)
		if err != nil {
			continue // it has ended
		}
		// The name of the program, in parentheses, may hold anything.
		if i := bytes.LastIndexByte(line, ')'); i < 0 || i+2 >= len(line) || line[i+2] != 'S' {
			return false
		}
	}
	return true
}
