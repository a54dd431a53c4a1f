package databasetest

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"oversell/internal/child"
)

func startChild(as account, dir, binary string, args ...string) (*child.Process, error) {
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	runAs(cmd, as)
	return child.Start(cmd)
}

// stopChild stops a server as fast as it can shut down cleanly, and waits for that. On SIGINT PostgreSQL
// disconnects all clients and stops. MariaDB ignores it.
func stopChild(c *child.Process) { c.Stop(5*time.Second, syscall.SIGINT, syscall.SIGTERM) }

// await queries a server until it answers.
func await(ctx context.Context, c *child.Process, ask func() (string, error)) (string, error) {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		select {
		case <-c.Exited():
			return "", fmt.Errorf("it ended: %s", lastLines(c.Output.String()))
		case <-ctx.Done():
			return "", fmt.Errorf("no answer within %v (%w): %s", startTimeout, last, lastLines(c.Output.String()))
		case <-poll.C:
		}
		answer, err := ask()
		if err == nil {
			return answer, nil
		}
		last = err
	}
}

func lastLines(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
