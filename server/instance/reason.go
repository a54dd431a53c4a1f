package instance

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"oversell/internal/child"
)

// stopGrace is how long a server may take to end by itself.
const stopGrace = time.Second

// lastWords returns, in one line, how a server ended.
func lastWords(c *child.Process) string {
	how := "it exited by itself"
	if exit := (*exec.ExitError)(nil); errors.As(c.Err(), &exit) {
		how = exit.ProcessState.String() // "signal: killed", "exit status 1"
	}
	return fmt.Sprintf("%s (process %d; its last line: %s)", how, c.PID(), Reason(c.Output.String()))
}

// logHead matches the prefix of Redis log lines: "17:M 20 Nov 2026 11:08:58.051 # ".
var logHead = regexp.MustCompile(`^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ [-.*#] `)

// Reason returns the server's own explanation in its output: its last warning, or else its last line. For an error in
// its configuration, which it prints without the usual prefix, that is the setting and the error.
func Reason(printed string) string {
	last, warning, setting := "", "", ""
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		text := logHead.ReplaceAllString(line, "")
		switch {
		case text == "" || strings.Contains(text, "vm.overcommit_memory"):
			continue // the latter is printed at every start
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
