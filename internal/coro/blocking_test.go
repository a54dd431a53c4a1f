package coro

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestUnwaiting checks which commands that wait are replaced, by what, and how they are answered.
func TestUnwaiting(t *testing.T) {
	entries := []any{[]any{"s", []any{[]any{"1-1", []any{"id", "x"}}}}}
	const entriesText = "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$2\r\nid\r\n$1\r\nx\r\n"
	for _, tt := range []struct {
		cmd    []any
		args   string
		limit  time.Duration
		reply  any // of the command in its place
		answer string
	}{
		{[]any{"blpop", "list", 2}, "[lpop list]", 2 * time.Second, "x", "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"},
		{[]any{"BRPOP", "list", "0.25"}, "[rpop list]", 250 * time.Millisecond, "x", "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"},
		{[]any{"blmove", "a", "b", "left", "right", 1}, "[lmove a b left right]", time.Second, "x", "$1\r\nx\r\n"},
		{[]any{"brpoplpush", "a", "b", 1}, "[rpoplpush a b]", time.Second, "x", "$1\r\nx\r\n"},
		{[]any{"bzpopmin", "z", 1}, "[zpopmin z]", time.Second, []any{"m", "1.5"}, "*3\r\n$1\r\nz\r\n$1\r\nm\r\n$3\r\n1.5\r\n"},
		{[]any{"bzpopmax", "z", 1}, "[zpopmax z]", time.Second, []any{}, ""},
		{[]any{"xreadgroup", "group", "block", "streams", "count", 1, "block", 500, "noack", "streams", "s", ">"}, "[xreadgroup group block streams count 1 noack streams s >]", 500 * time.Millisecond, entries, entriesText},
		{[]any{"xread", "block", 500, "streams", "s", "1-0"}, "[xread streams s 1-0]", 500 * time.Millisecond, entries, entriesText},
		{[]any{"xread", "block", 500, "streams", "s", "$"}, "", 0, nil, ""},
		{[]any{"xread", "streams", "s", "1-0"}, "", 0, nil, ""},
		{[]any{"xreadgroup", "group", "g", "c", "block", 0, "streams", "s", ">"}, "", 0, nil, ""},
		{[]any{"bzpopmin", "a", "b", 1}, "", 0, nil, ""},
		{[]any{"blpop", "list", 0}, "", 0, nil, ""},
		{[]any{"blpop", "list", "soon"}, "", 0, nil, ""},
		{[]any{"blpop", "a", "b", 1}, "", 0, nil, ""},
		{[]any{"lpop", "list"}, "", 0, nil, ""},
	} {
		w := nonBlocking(redis.NewCmd(t.Context(), tt.cmd...))
		if w == nil || tt.args == "" {
			if w != nil || tt.args != "" {
				t.Errorf("%v is replaced by %v; want %q", tt.cmd, w, tt.args)
			}
			continue
		}
		text, ok := w.answer(tt.reply)
		if fmt.Sprint(w.args) != tt.args || w.limit != tt.limit || ok != (tt.answer != "") || ok && text != tt.answer {
			t.Errorf("%v is replaced by %v, for %v, and answered %q, %t; want %s, for %v, %q", tt.cmd, w.args, w.limit, text, ok, tt.args, tt.limit, tt.answer)
		}
	}
}
