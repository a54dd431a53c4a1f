// Package testlog provides a test log that may be used after the test has ended.
package testlog

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// T is a test: a [testing.T].
type T interface {
	Logf(format string, args ...any)
	Name() string
}

// Log is the log of a test, until Stop is called. A goroutine that a test has given up on may still use it. It is safe for
// concurrent use.
type Log struct {
	t    T
	mu   sync.Mutex
	over bool
	said map[string]bool
}

// New returns the log of a test.
func New(t T) *Log { return &Log{t: t, said: map[string]bool{}} }

// Logf is like [testing.T.Logf], except that it logs the same text only once, and nothing after Stop.
func (l *Log) Logf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !l.over && !l.said[text] {
		l.said[text] = true
		l.t.Logf("%s", text)
	}
}

// Stop ends the log.
func (l *Log) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// Seed returns the command that repeats a test with a seed.
func Seed(t T, seed uint64) string {
	var levels []string
	for _, name := range strings.Split(t.Name(), "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(name)+"$")
	}
	return fmt.Sprintf("to repeat it: OVERSELL_SEED=%d go test -run '%s'", seed, strings.ReplaceAll(strings.Join(levels, "/"), "'", `'\''`))
}
