package coro

import (
	"context"
	"fmt"
	"slices"

	"oversell/variant"
)

// stepper is a client's variant.Stepper. It is for the client's threads only.
type stepper struct{ c *Client }

// Send parks as Command.
func (s stepper) Send(sent variant.Sent) (replies string, answered bool) {
	c := s.c
	if !c.own() {
		return "", false
	}
	r := Request{Kind: Command, Node: sent.Node, Commands: make([][]string, len(sent.Commands)), Tx: sent.Tx}
	for i, command := range sent.Commands {
		r.Commands[i] = slices.Clone(command)
		c.options.Scripts.normalize(r.Commands[i])
	}
	r.Conn = c.watching.Number(sent.Conn, &r)
	o := c.park(context.Background(), r, false)
	if r.Conn > 0 && (o.Failure != Answered || forgets(&r)) {
		c.watching[r.Conn-1] = nil
	}
	if o.Failure != Answered {
		return "", false
	}
	count := len(r.Commands)
	if r.Tx {
		count += 2
	}
	if !isReplies(o.Reply, count) {
		s.Fail(fmt.Errorf("%q are not %d replies to %q", o.Reply, count, r.Commands))
	}
	if r.Tx {
		return lastOf(o.Reply), true
	}
	return o.Reply, true
}

// lastOf returns the last of several replies.
func lastOf(replies string) string {
	for {
		rest, _ := skip(replies)
		if rest == "" {
			return replies
		}
		replies = rest
	}
}

// Client returns the client's number.
func (s stepper) Client() int64 { return s.c.options.Number }

// Await calls f, which may take longer than Options.Patience: meanwhile the thread does not count
// as stuck.
func (s stepper) Await(f func()) {
	s.c.outside.Store(true)
	defer s.c.outside.Store(false)
	f()
}

// Fail ends the client with err.
func (s stepper) Fail(err error) {
	s.c.fail(err)
	panic(Crashed{})
}

// AtEnd makes Close call f.
func (s stepper) AtEnd(f func()) { s.c.atEnd = append(s.c.atEnd, f) }
