// Package stepped runs ordinary client code on a real connection and stops it before each of its commands until it is
// told to go on. So a test can write a schedule of several clients line by line, and every run follows it.
package stepped

import (
	"context"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Client is client code under way. Its methods belong to one goroutine, that of
// the schedule.
type Client struct {
	parked chan string // the command at which it is stopped; closed at the end
	pass   chan struct{}
	next   string
	err    error
	crash  context.CancelFunc
}

// Start runs do, whose commands go through c, up to its first command. c must
// be do's own and be connected already.
func Start(c *redis.Client, do func(context.Context) error) *Client {
	ctx, crash := context.WithCancel(context.Background())
	s := &Client{parked: make(chan string), pass: make(chan struct{}), crash: crash}
	c.AddHook(Hook(s.park))
	go func() {
		defer close(s.parked)
		s.err = do(ctx)
	}()
	s.next = <-s.parked
	return s
}

// Next returns the command before which the client is stopped, like "setnx", or "multi set exec" for a pipeline. It
// returns "" when the client has ended.
func (s *Client) Next() string { return s.next }

// Step lets the next command take effect and brings the client to the one after.
func (s *Client) Step() {
	s.pass <- struct{}{}
	s.next = <-s.parked
}

// Err returns the error of the code; it is valid once Next returns "".
func (s *Client) Err() error { return s.err }

// Crash ends the client where it is stopped: its next command, and all later ones, fail without being sent. It waits
// for the code to end.
func (s *Client) Crash() {
	s.crash()
	for s.next != "" {
		s.next = <-s.parked
	}
}

// park holds a command back. A crashed client is not held: its commands fail.
func (s *Client) park(ctx context.Context, command string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case s.parked <- command:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.pass:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Hook returns a hook that calls park before each command, with its name, and before each
// pipeline, with the names of its commands. If park fails, so do the commands, which are not sent.
func Hook(park func(ctx context.Context, command string) error) redis.Hook { return hook{park} }

type hook struct {
	park func(ctx context.Context, command string) error
}

func (hook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := h.park(ctx, cmd.Name()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		names := make([]string, len(cmds))
		for i, cmd := range cmds {
			names[i] = cmd.Name()
		}
		if err := h.park(ctx, strings.Join(names, " ")); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}
