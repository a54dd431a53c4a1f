package instance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Exempt opens a connection whose commands a server executes also while it holds back
// those of its clients: that of a client that has sent MONITOR. It must be opened
// before the pause; and as such a connection is told of every command of all others,
// it is for the pause only.
func Exempt(ctx context.Context, s *Server) (net.Conn, error) {
	conn, err := Dial(ctx, s.Endpoint())
	if err != nil {
		return nil, err
	}
	if err := s.LoginAnd(ctx, conn, "MONITOR"); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("monitor %s, to be able to end the pause: %w", s.Addr, err)
	}
	return conn, nil // nothing is said on it during the pause
}

// Resume ends a pause on a connection that is exempt from it. Servers before 6.2 cannot
// be told to.
func Resume(ctx context.Context, exempt net.Conn, s *Server) error {
	err := Answered(ctx, exempt, Request("CLIENT", "UNPAUSE"), 1)
	if err != nil {
		if s.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() }) == nil {
			return nil // it ended by itself
		}
	}
	return err
}

// LoginAnd sends a command on a new connection that is answered by +OK, after logging in.
func (s *Server) LoginAnd(ctx context.Context, conn net.Conn, command ...string) error {
	text, replies := Request(command...), 1
	if l := s.Login; l != nil && l.Password != "" {
		args := []string{"AUTH", l.Username, l.Password}
		if l.Username == "" {
			args = []string{"AUTH", l.Password}
		}
		text, replies = Request(args...)+text, 2
	}
	return Answered(ctx, conn, text, replies)
}

// Request returns a command as it goes over the wire.
func Request(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// Answered sends requests that are answered by +OK, n times. What a monitor is told in
// between is passed over.
func Answered(ctx context.Context, conn net.Conn, requests string, n int) error {
	end, limited := ctx.Deadline()
	if most := time.Now().Add(TalkTimeout); !limited || end.After(most) {
		end = most
	}
	_ = conn.SetDeadline(end)
	defer conn.SetDeadline(time.Time{})
	if _, err := conn.Write([]byte(requests)); err != nil {
		return err
	}
	for lines := bufio.NewReader(conn); n > 0; {
		line, err := lines.ReadString('\n')
		switch {
		case err != nil:
			return err
		case line == "+OK\r\n":
			n--
		case strings.HasPrefix(line, "-"):
			return errors.New(strings.TrimSpace(line[1:]))
		}
	}
	return nil
}
