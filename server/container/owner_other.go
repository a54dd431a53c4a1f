//go:build !linux

package container

import (
	"errors"
	"io/fs"
	"os"
	"strconv"

	processes "github.com/shirou/gopsutil/v4/process"
)

// thisMachine distinguishes process ids of one machine from those of another.
func thisMachine() string {
	name, _ := os.Hostname()
	return name
}

// processStart returns when a process was started, in the system's format. If there is
// none, the error is fs.ErrNotExist.
func processStart(pid int) (string, error) {
	p, err := processes.NewProcess(int32(pid))
	if errors.Is(err, processes.ErrorProcessNotRunning) {
		return "", fs.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	created, err := p.CreateTime()
	return strconv.FormatInt(created, 10), err
}
