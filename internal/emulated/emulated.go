// Package emulated runs the code under test on the emulation of Redis, on a clock that the test moves, so that
// no test waits for a day to pass.
package emulated

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/realtime"
	"oversell/internal/suitetest"
	"oversell/server"
	"oversell/variant"
)

// Server is one emulated server, on a clock that only the test moves. It is safe for concurrent use.
type Server struct {
	// Clock stands far ahead of the real clock, so that times of the two can be distinguished.
	Clock  *clock.Virtual
	target *server.Target
	times  *realtime.Seen
	mu     sync.Mutex
	lacks  string // an error that says what the emulation does not have; "" if it has had everything
	conns  []redis.UniversalClient
	alive  context.Context
	end    context.CancelFunc
	beside sync.WaitGroup // what clients run with Env.Go
}

// Judge runs a check on a new server, and again on another one if it fails and its commands seem to carry times of the real
// clock. It returns such a time if they do: code that tells the server the time of the real clock cannot be judged there. Nor can
// code that fails and uses a command, or a library in a script, which the emulation does not have: then the error is a
// suitetest.Remark that says so.
func Judge(check func(*Server) error) (at string, err error) {
	lacks := ""
	at, err = realtime.Confirmed(func(times *realtime.Seen) error {
		s, err := start(times)
		if err != nil {
			return err
		}
		defer s.Close()
		if err = check(s); err != nil {
			lacks = s.Lacks()
		}
		if lacks != "" {
			return nil
		}
		return err
	})
	if lacks != "" {
		return "", &suitetest.Remark{Text: fmt.Sprintf("not judged on a clock that is moved, since the emulation of Redis lacks something: %s", lacks)}
	}
	return at, err
}

// Start returns a new server. Close ends it.
func Start() (*Server, error) { return start(&realtime.Seen{}) }

func start(times *realtime.Seen) (*Server, error) {
	clk := clock.NewVirtual(time.Now().Add(realtime.Ahead).Truncate(time.Second))
	target, err := server.OpenEmbedded(clk, 1)
	if err != nil {
		return nil, err
	}
	s := &Server{Clock: clk, target: target, times: times}
	s.alive, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Env returns the environment of a new client, which waits for a millisecond at most.
func (s *Server) Env() variant.Env {
	c := s.target.Client(0, server.ConnOptions{PoolSize: 4})
	c.AddHook(realtime.Hook{Seen: s.times})
	c.AddHook(noting{s})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, c)
	return variant.Env{Redis: []redis.UniversalClient{c}, Clock: s.Clock, Token: rand.Text, Addr: s.target.Addrs,
		Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
			return clock.Real{}.Sleep(ctx, min(atMost, time.Millisecond))
		},
		Go: func(f func(context.Context)) func(context.Context) error {
			return variant.StartIn(s.alive, &s.beside, f)
		}}
}

// Ticks has the clock go like the real one, too, until ctx or the returned function ends that.
func (s *Server) Ticks(ctx context.Context) (stop func()) {
	ticks, stop := context.WithCancel(ctx)
	go func() {
		for last := time.Now(); (clock.Real{}).Sleep(ticks, 2*time.Millisecond) == nil; {
			now := time.Now()
			s.Clock.Advance(now.Sub(last))
			last = now
		}
	}()
	return stop
}

// Real reports whether a client seems to have sent a time of the real clock. Only Judge is sure of it.
func (s *Server) Real() bool { return s.times.Any() }

// Close ends what clients run with Env.Go, closes the connections of all clients and ends the server.
func (s *Server) Close() {
	s.end()
	s.beside.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		c.Close()
	}
	s.target.Close()
}

// Lacks returns the error of a command that says what the emulation does not have, or "" if there was none.
func (s *Server) Lacks() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lacks
}

// unknown are in the errors of the emulation about what it does not have, and Redis may have.
var unknown = []string{"unknown command", "Unknown Redis command", "unknown subcommand", "nonexistent global variable"}

// noting notes such errors.
type noting struct{ s *Server }

func (n noting) note(err error) {
	if err == nil {
		return
	}
	if text := err.Error(); slices.ContainsFunc(unknown, func(part string) bool { return strings.Contains(text, part) }) {
		text, _, _ = strings.Cut(text, " stack traceback") // of the emulation's own code
		n.s.mu.Lock()
		n.s.lacks = text
		n.s.mu.Unlock()
	}
}

// DialHook implements redis.Hook. It changes nothing.
func (noting) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (n noting) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		n.note(err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (n noting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			n.note(cmd.Err())
		}
		return err
	}
}
