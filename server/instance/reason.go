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

// LastWords says in one line how a server that is gone came to its end.
func lastWords(c *child.Process) string {
	how := "it exited by itself"
	if exit := (*exec.ExitError)(nil); errors.As(c.Err(), &exit) {
		how = exit.ProcessState.String() // "signal: killed", "exit status 1"
	}
	return fmt.Sprintf("%s (process %d; its last line: %s)", how, c.PID(), Reason(c.Output.String()))
}

// logHead is what Redis puts before each message: "17:M 20 Nov 2026 11:08:58.051 # ".
var logHead = regexp.MustCompile(`^\d+:[A-Z] \d+ \w+ \d+ [\d:.]+ [-.*#] `)

// Reason returns the server's own explanation in what it printed: its last warning, or else its last
// line. For an error in its configuration, which it prints without the usual
// head, it is the setting and what is wrong with it.
func Reason(printed string) string {
	last, warning, setting := "", "", ""
	for line := range strings.Lines(printed) {
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
