// Package realtime reports whether commands carry times of the real clock. Code under test on a virtual clock must not
// send them: they would be compared with virtual times.
package realtime

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ahead is how far ahead of the real clock a virtual one should be, so that their times can be distinguished.
const Ahead = 1000 * 24 * time.Hour

// near is the largest distance from the real time at which a number counts as a time.
const near = Ahead / 2

// tick is after which time a clock that is read in seconds shows another one.
const tick = 1100 * time.Millisecond

// units are the units of a time since 1970, by the number of digits.
var units = map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond}

// In reports whether a text holds a number of seconds, or of a smaller unit, since 1970 that is
// near the real time.
func In(text string) bool { return Found(text) != "" }

// Found returns the first such number in a text, or "". A number between two letters is part of a random text or of a digest.
func Found(text string) string {
	now := time.Now().UnixNano()
	for i := 0; i < len(text); i++ {
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		if unit, is := units[end-i]; is && !(i > 0 && isLetter(text[i-1]) && end < len(text) && isLetter(text[end])) {
			n, err := strconv.ParseInt(text[i:end], 10, 64)
			if at := time.Duration(n) * unit; err == nil && (at-time.Duration(now)).Abs() < near {
				return text[i:end]
			}
		}
		i = max(i, end)
	}
	return ""
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// Of reports whether a time is one of the real clock, and not one of a clock that is ahead of it.
func Of(t time.Time) bool { return time.Until(t) < near }

// Seen collects what looks like times of the real clock in the arguments of commands. The zero value is empty, and it is
// safe for concurrent use.
type Seen struct {
	mu   sync.Mutex
	text map[string]bool
}

// Look adds the time in an argument, if there is one.
func (s *Seen) Look(arg string) {
	at := Found(arg)
	if at == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil {
		s.text = map[string]bool{}
	}
	s.text[at] = true
}

// Any reports whether there is one.
func (s *Seen) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.text) > 0
}

// beside returns one that other has not; "" if there is none.
func (s *Seen) beside(other *Seen) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := range s.text {
		if !other.text[at] {
			return at
		}
	}
	return ""
}

// Confirmed calls try, and calls it again if it fails and what it sent looks like times of the real clock. A random text, or a
// part of a name, may look like one by chance; a clock has moved on by the second call. Confirmed returns the error of the
// last call and, if that sent such a time, the time: then the error says nothing about the code.
func Confirmed(try func(*Seen) error) (at string, err error) {
	var first, second Seen
	start := time.Now()
	if err := try(&first); err == nil || !first.Any() {
		return "", err
	}
	time.Sleep(time.Until(start.Add(tick)))
	if err = try(&second); err == nil {
		return "", nil
	}
	return second.beside(&first), err
}

// Hook notes the times of the real clock that commands carry.
type Hook struct{ Seen *Seen }

// DialHook implements redis.Hook. It changes nothing.
func (h Hook) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (h Hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.look(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h Hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.look(cmd)
		}
		return next(ctx, cmds)
	}
}

func (h Hook) look(cmd redis.Cmder) {
	for _, arg := range cmd.Args() {
		text := fmt.Sprint(arg)
		if f, is := arg.(float64); is {
			text = strconv.FormatFloat(f, 'f', -1, 64) // as it is sent
		}
		h.Seen.Look(text)
	}
}
