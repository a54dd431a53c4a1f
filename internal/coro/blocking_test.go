package coro

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestUnwaiting checks which commands that wait are replaced, by what, and how they are answered.
func TestUnwaiting(t *testing.T) {
	for _, tt := range []struct {
		cmd    []any
		args   string
		limit  time.Duration
		answer string // for the element "x"
	}{
		{[]any{"blpop", "list", 2}, "[lpop list]", 2 * time.Second, "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"},
		{[]any{"BRPOP", "list", "0.25"}, "[rpop list]", 250 * time.Millisecond, "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n"},
		{[]any{"blmove", "a", "b", "left", "right", 1}, "[lmove a b left right]", time.Second, "$1\r\nx\r\n"},
		{[]any{"brpoplpush", "a", "b", 1}, "[rpoplpush a b]", time.Second, "$1\r\nx\r\n"},
		{[]any{"blpop", "list", 0}, "", 0, ""},
		{[]any{"blpop", "list", "soon"}, "", 0, ""},
		{[]any{"blpop", "a", "b", 1}, "", 0, ""},
		{[]any{"lpop", "list"}, "", 0, ""},
	} {
		args, limit, answer := unwaiting(redis.NewCmd(t.Context(), tt.cmd...))
		switch {
		case args == nil && tt.args == "":
		case args == nil || fmt.Sprint(args) != tt.args || limit != tt.limit || answer("x") != tt.answer:
			t.Errorf("%v is replaced by %v, for %v; want %s, for %v", tt.cmd, args, limit, tt.args, tt.limit)
		}
	}
}
