package lockclient

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/rediscmd"
	"oversell/wire"
)

// Link is a client's way to one master.
type Link struct {
	proxy *wire.Proxy

	mu sync.Mutex
	n  int // commands since the last plan; a transaction is one, its EXEC
	// at is when the last command was sent; zero if none was.
	at time.Time
	// open are the connections on which a transaction has begun.
	open map[int64]bool
	act  func(nth int, cmd wire.Command) wire.Action
	// after, unless nil, is called when something was done to a command, before the client can see it.
	after func()
	cut   bool
}

// Plan sets the actions on the commands of this link from now on.
func (l *Link) Plan(act func(nth int, cmd wire.Command) wire.Action, after func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.act, l.after = 0, act, after
}

func (l *Link) happened(wire.Command, wire.Action) {
	l.mu.Lock()
	after := l.after
	l.mu.Unlock()
	if after != nil {
		after()
	}
}

func (l *Link) mark(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// judge decides on a command. Commands that open a connection pass.
func (l *Link) judge(cmd wire.Command) wire.Action {
	if rediscmd.Is(cmd.Name, rediscmd.Opens) {
		return wire.Action{}
	}
	l.mu.Lock()
	l.at = time.Now()
	n, act := 0, l.act
	if !l.opens(cmd) {
		l.n++
		n = l.n
	}
	l.mu.Unlock()
	if act == nil {
		return wire.Action{}
	}
	return act(n, cmd)
}

// opens reports whether a command is part of a transaction and not its end: nothing of it is executed before EXEC.
func (l *Link) opens(cmd wire.Command) bool {
	switch cmd.Name {
	case "MULTI":
		if l.open == nil {
			l.open = map[int64]bool{}
		}
		l.open[cmd.Conn] = true
	case "EXEC", "DISCARD":
		delete(l.open, cmd.Conn)
	}
	return l.open[cmd.Conn]
}

// Plan sets the action on each of the client's commands from now on, counted from 1 on each of its links; nil: none. Of a
// transaction, EXEC is counted; the commands before it are command 0.
func (c *Client) Plan(act func(nth int, cmd wire.Command) wire.Action) {
	for _, l := range c.Links {
		l.Plan(act, nil)
	}
}

// Arm plans what happens to the n-th command from now on.
func (c *Client) Arm(n int, verb wire.Verb) { c.ArmAction(n, wire.Action{Verb: verb}) }

// ArmAction is Arm for an action with parameters.
func (c *Client) ArmAction(n int, a wire.Action) {
	c.Plan(func(nth int, _ wire.Command) wire.Action {
		if nth == n {
			return a
		}
		return wire.Action{}
	})
}

// CutOffExcept cuts the client off from all masters but some: commands to the others fail at once.
func (c *Client) CutOffExcept(master func(int) bool) {
	for i, l := range c.Links {
		if !master(i) {
			l.Plan(func(int, wire.Command) wire.Action { return wire.Action{Verb: wire.DropRequest} }, nil)
		}
	}
}

// Sent returns how many commands have passed a link since the last plan, at the most. A transaction counts as one.
func (c *Client) Sent() (n int) {
	for _, l := range c.Links {
		l.mu.Lock()
		n = max(n, l.n)
		l.mu.Unlock()
	}
	return n
}

// quiet returns for how long the client has sent no command, since a time at the earliest. It is 0 if that is not known.
func (c *Client) quiet(since time.Time) time.Duration {
	if c.direct {
		return 0
	}
	last := since
	for _, l := range c.Links {
		l.mu.Lock()
		if l.at.After(last) {
			last = l.at
		}
		l.mu.Unlock()
	}
	return time.Since(last)
}

// counted counts commands, and notes scripts by their hashes.
type counted struct {
	n      *atomic.Int64
	hashed *atomic.Bool
}

func (h counted) note(cmds ...redis.Cmder) {
	h.n.Add(int64(len(cmds)))
	for _, cmd := range cmds {
		if strings.HasPrefix(strings.ToLower(cmd.Name()), "evalsha") {
			h.hashed.Store(true)
		}
	}
}

func (counted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.note(cmd)
		return next(ctx, cmd)
	}
}

func (h counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.note(cmds...)
		return next(ctx, cmds)
	}
}
