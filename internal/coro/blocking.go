package coro

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A command that blocks until there is an element or an entry is replaced by its non-blocking form,
// which is sent up to three times: at once, after a Pause, in which others may act, and when the
// timeout is over. The schedule decides how long the Pause is, so the command can get an element at
// any moment before its timeout.

// blockingCommand is a command that blocks, such as BLPOP.
type blockingCommand struct {
	args  []any         // its non-blocking form, such as LPOP
	limit time.Duration // its timeout
	// answer turns the reply to the non-blocking command, which is not nil, into the reply to the blocking one; ok is false if there
	// was no element.
	answer func(reply any) (text string, ok bool)
}

// nonBlocking returns the non-blocking form of a command. It returns nil for a command that does not
// block, and for one that blocks on several lists or sorted sets, on entries added after the call
// ("$"), or without a timeout: the model does not know those.
func nonBlocking(cmd redis.Cmder) *blockingCommand {
	name := cmd.Name()
	if !slices.Contains([]string{"blpop", "brpop", "blmove", "brpoplpush", "bzpopmin", "bzpopmax", "xread", "xreadgroup"}, name) {
		return nil
	}
	given, ok := wire(cmd.Args())
	if !ok {
		return nil
	}
	same := func(reply any) (string, bool) { return encoded(reply), true }
	last := len(given) - 1
	var w blockingCommand
	switch {
	case (name == "blpop" || name == "brpop") && last == 2:
		w = blockingCommand{args: []any{name[1:], given[1]}, answer: func(element any) (string, bool) { return encoded([]any{given[1], element}), true }}
	case name == "blmove" && last == 5:
		w = blockingCommand{args: []any{"lmove", given[1], given[2], given[3], given[4]}, answer: same}
	case name == "brpoplpush" && last == 3:
		w = blockingCommand{args: []any{"rpoplpush", given[1], given[2]}, answer: same}
	case (name == "bzpopmin" || name == "bzpopmax") && last == 2:
		w = blockingCommand{args: []any{name[1:], given[1]}, answer: func(reply any) (string, bool) {
			member, _ := reply.([]any)
			return encoded(append([]any{given[1]}, member...)), len(member) > 0
		}}
	case name == "xread" || name == "xreadgroup":
		return nonBlockingRead(given, same)
	default:
		return nil
	}
	seconds, err := strconv.ParseFloat(given[last], 64)
	if err != nil || seconds <= 0 || seconds > 1e9 {
		return nil
	}
	w.limit = time.Duration(seconds * float64(time.Second))
	return &w
}

// nonBlockingRead is nonBlocking for XREAD and XREADGROUP: it takes BLOCK out.
func nonBlockingRead(given []string, same func(any) (string, bool)) *blockingCommand {
	w := &blockingCommand{answer: same}
	for i := 0; i < len(given); i++ {
		switch word := strings.ToLower(given[i]); {
		case word == "streams":
			if slices.Contains(given[i:], "$") || w.limit <= 0 {
				return nil
			}
			for _, rest := range given[i:] {
				w.args = append(w.args, rest)
			}
			return w
		case word == "block" && i+1 < len(given):
			ms, err := strconv.ParseInt(given[i+1], 10, 64)
			if err != nil || ms <= 0 || ms > 1e12 {
				return nil
			}
			w.limit = time.Duration(ms) * time.Millisecond
			i++
		case word == "group" && i+2 < len(given): // two names follow
			w.args = append(w.args, given[i], given[i+1], given[i+2])
			i += 2
		default:
			w.args = append(w.args, given[i])
		}
	}
	return nil
}

// encoded encodes a reply in RESP2.
func encoded(reply any) string {
	switch v := reply.(type) {
	case nil:
		return "$-1\r\n"
	case string:
		return fmt.Sprintf("$%d\r\n%s\r\n", len(v), v)
	case []any:
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(v))
		for _, e := range v {
			b.WriteString(encoded(e))
		}
		return b.String()
	}
	return fmt.Sprintf(":%v\r\n", reply)
}

// wait carries out a blocking command by its non-blocking form.
func (h hook) wait(ctx context.Context, cmd redis.Cmder, w *blockingCommand, next redis.ProcessHook) error {
	take := func() (text string, ok bool, err error) {
		at := redis.NewCmd(ctx, w.args...)
		switch err := h.process(ctx, []redis.Cmder{at}, false, func(ctx context.Context) error { return next(ctx, at) }); {
		case errors.Is(err, redis.Nil):
			return "", false, nil
		case err != nil:
			return "", false, err
		}
		text, ok = w.answer(at.Val())
		return text, ok, nil
	}
	text, ok, err := take()
	for _, pass := range []func(c *Client){
		func(c *Client) { c.park(ctx, Request{Kind: Pause, Label: "wait"}, true) },
		func(c *Client) { _ = ticker{c}.Sleep(ctx, w.limit) }, // it ends early only with ctx
	} {
		c := h.owner.Load()
		if ok || err != nil || c == nil || !c.own() {
			break
		}
		if pass(c); ctx.Err() != nil {
			return FailAll([]redis.Cmder{cmd}, context.Cause(ctx))
		}
		text, ok, err = take()
	}
	switch {
	case err != nil:
		cmd.SetErr(err)
		return err
	case !ok:
		text = "*-1\r\n"
	}
	return h.say(text, func() error { return next(ctx, cmd) })
}
