// Package realtime reports whether commands carry times of the real clock. Code under test on a virtual clock must not
// send them: they would be compared with virtual times.
package realtime

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Ahead is how far ahead of the real clock a virtual one should be, so that their times can be distinguished.
const Ahead = 1000 * 24 * time.Hour

// near is the largest distance from the real time at which a number counts as a time.
const near = Ahead / 2

// units are the units of a time since 1970, by the number of digits.
var units = map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond}

// In reports whether a text holds a number of seconds, or of a smaller unit, since 1970 that is
// near the real time.
func In(text string) bool { return Found(text) != "" }

// Found returns the first such number in a text, or "".
func Found(text string) string {
	now := time.Now().UnixNano()
	for i := 0; i < len(text); i++ {
		end := i
		for end < len(text) && '0' <= text[end] && text[end] <= '9' {
			end++
		}
		if unit, is := units[end-i]; is {
			n, err := strconv.ParseInt(text[i:end], 10, 64)
			if at := time.Duration(n) * unit; err == nil && (at-time.Duration(now)).Abs() < near {
				return text[i:end]
			}
		}
		i = max(i, end)
	}
	return ""
}

// Of reports whether a time is one of the real clock, and not one of a clock that is ahead of it.
func Of(t time.Time) bool { return time.Until(t) < near }

// Hook sets a flag when a command carries a time of the real clock.
type Hook struct{ Seen *atomic.Bool }

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
		if In(text) {
			h.Seen.Store(true)
		}
	}
}
