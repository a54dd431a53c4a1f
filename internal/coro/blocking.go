package coro

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// A command that waits at the server for an element of one list is parked as the command that does not wait, up to three
// times: at once, after a Pause in which others may act, and when its timeout is over. So it gets an element at any moment
// at which there is one, or none when its timeout is over.

// unwaiting returns the command that does the same and does not wait, its timeout, and the answer to the command if the
// other one took an element. It returns nil if the command does not wait, waits for several keys, or for ever.
func unwaiting(cmd redis.Cmder) (args []any, limit time.Duration, answer func(element string) string) {
	name := cmd.Name()
	if !slices.Contains([]string{"blpop", "brpop", "blmove", "brpoplpush"}, name) {
		return nil, 0, nil
	}
	given, ok := wire(cmd.Args())
	if !ok {
		return nil, 0, nil
	}
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	last := len(given) - 1
	switch {
	case (name == "blpop" || name == "brpop") && last == 2:
		args = []any{name[1:], given[1]}
		answer = func(element string) string { return "*2\r\n" + bulk(given[1]) + bulk(element) }
	case name == "blmove" && last == 5:
		args, answer = []any{"lmove", given[1], given[2], given[3], given[4]}, bulk
	case name == "brpoplpush" && last == 3:
		args, answer = []any{"rpoplpush", given[1], given[2]}, bulk
	default:
		return nil, 0, nil
	}
	seconds, err := strconv.ParseFloat(given[last], 64)
	if err != nil || seconds <= 0 || seconds > 1e9 {
		return nil, 0, nil
	}
	return args, time.Duration(seconds * float64(time.Second)), answer
}

// wait carries out a command that waits, by one that does not.
func (h hook) wait(ctx context.Context, cmd redis.Cmder, args []any, limit time.Duration, answer func(string) string, next redis.ProcessHook) error {
	take := func() (string, error) {
		at := redis.NewStringCmd(ctx, args...)
		err := h.process(ctx, []redis.Cmder{at}, false, func(ctx context.Context) error { return next(ctx, at) })
		return at.Val(), err
	}
	element, err := take()
	for _, pass := range []func(c *Client){
		func(c *Client) { c.park(ctx, Request{Kind: Pause, Label: "wait"}, true) },
		func(c *Client) { _ = ticker{c}.Sleep(ctx, limit) }, // it ends early only with ctx
	} {
		c := h.owner.Load()
		if !errors.Is(err, redis.Nil) || c == nil || !c.own() {
			break
		}
		if pass(c); ctx.Err() != nil {
			return FailAll([]redis.Cmder{cmd}, context.Cause(ctx))
		}
		element, err = take()
	}
	switch {
	case err == nil:
		return h.say(answer(element), func() error { return next(ctx, cmd) })
	case errors.Is(err, redis.Nil):
		return h.say("*-1\r\n", func() error { return next(ctx, cmd) })
	}
	cmd.SetErr(err)
	return err
}
