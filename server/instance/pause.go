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

// Exempt opens a connection that a server still serves while it holds back the commands of its clients: that of a
// client that has sent MONITOR. It must be opened before the pause, and used only for it, since such a connection
// receives every command of all others.
func Exempt(ctx context.Context, s *Server) (net.Conn, error) {
	conn, err := Dial(ctx, s.Endpoint())
	if err != nil {
		return nil, err
	}
	if err := s.LoginAnd(ctx, conn, "MONITOR"); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("monitor %s, to be able to end the pause: %w", s.Addr, err)
	}
	return conn, nil // nothing is sent on it during the pause
}

// Resume ends a pause on a connection that is exempt from it. Servers before 6.2 have no command for that.
func Resume(ctx context.Context, exempt net.Conn, s *Server) error {
	err := Answered(ctx, exempt, Request("CLIENT", "UNPAUSE"), 1)
	if err != nil {
		if s.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() }) == nil {
			return nil // it ended by itself
		}
	}
	return err
}

// LoginAnd logs in on a new connection and sends a command whose reply must be +OK.
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

// Request returns a command in wire format.
func Request(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

// Answered sends requests and reads n replies of +OK. It skips the lines of a monitor in between.
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
