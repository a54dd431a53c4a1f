package bubbletest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/explore/servers"
	"oversell/internal/coro"
	"oversell/internal/rediscmd"
)

// conn is a client's connection. The bytes written to it become a command when the answer is read; then the goroutine
// waits for the schedule.
type conn struct {
	bubble   *bubble
	node     int
	sent     []byte
	answer   string
	deadline time.Time
}

func (b *bubble) dialer(node int) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return &conn{bubble: b, node: node}, nil }
}

func (n *conn) Write(p []byte) (int, error) {
	n.sent = append(n.sent, p...)
	return len(p), nil
}

func (n *conn) Read(p []byte) (int, error) {
	if n.answer == "" {
		if err := n.ask(); err != nil {
			return 0, err
		}
	}
	size := copy(p, n.answer)
	n.answer = n.answer[size:]
	return size, nil
}

// Replies that need no server.
const (
	hello    = "*2\r\n$5\r\nproto\r\n:2\r\n"
	noScript = "-" + rediscmd.ScriptMissing + "\r\n"
)

// ask sends what was written. A script called by its hash is sent as text, so that it does not matter whether the
// server has seen it.
func (n *conn) ask() error {
	commands, err := parse(n.sent)
	n.sent = nil
	if err == nil && len(commands) == 0 {
		err = errors.New("the client uses a connection in a way that cannot be stepped, like a subscription")
	}
	if err != nil {
		n.bubble.fail(err)
		return net.ErrClosed
	}
	if commands[0][0] == "hello" {
		n.answer = hello
		return nil
	}
	if len(commands) == 1 {
		if n.answer = coro.LoadedReply(commands[0], n.bubble.code.scripts.learn); n.answer != "" {
			return nil
		}
	}
	for _, cmd := range commands {
		if !n.bubble.code.scripts.spell(cmd) && len(commands) == 1 {
			n.answer = noScript
			return nil
		}
	}
	r := coro.Request{Kind: coro.Command, Node: n.node, Commands: commands}
	if last := len(commands) - 1; last > 1 && commands[0][0] == "multi" && commands[last][0] == "exec" {
		r.Commands, r.Tx = commands[1:last], true
	}
	r.Conn = n.bubble.number(n, &r)
	if !n.deadline.IsZero() {
		r.Deadline = n.deadline.Sub(servers.Epoch)
	}
	a := n.bubble.stand(r)
	if r.Conn > 0 && (a.failed != coro.Answered || r.Tx || rediscmd.Is(commands[0][0], rediscmd.Unwatches)) {
		n.bubble.change(func() { n.bubble.watching[r.Conn-1] = nil })
	}
	switch {
	case a.closed:
		return net.ErrClosed
	case a.failed != coro.Answered:
		return timedOut{}
	default:
		n.answer = a.reply
		return nil
	}
}

// number returns the number of a connection on which keys are watched, or will be: see [coro.Request].
func (b *bubble) number(n *conn, r *coro.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.watching.Number(n, r)
}

// timedOut is a timeout of the network.
type timedOut struct{}

func (timedOut) Error() string   { return "i/o timeout: no answer" }
func (timedOut) Timeout() bool   { return true }
func (timedOut) Temporary() bool { return true }
func (timedOut) Unwrap() error   { return os.ErrDeadlineExceeded }

func (n *conn) SetDeadline(t time.Time) error      { return n.SetReadDeadline(t) }
func (n *conn) SetReadDeadline(t time.Time) error  { n.deadline = t; return nil }
func (n *conn) SetWriteDeadline(t time.Time) error { return nil }
func (n *conn) Close() error                       { return nil }
func (n *conn) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (n *conn) RemoteAddr() net.Addr               { return &net.TCPAddr{} }

// parse reads commands in RESP, as a client writes them, and puts their names in lower case.
func parse(b []byte) (commands [][]string, err error) {
	for len(b) > 0 {
		var n, size int
		if n, b, err = header(b, '*'); err != nil {
			return nil, err
		}
		var words []string
		for range n {
			if size, b, err = header(b, '$'); err != nil {
				return nil, err
			}
			if len(b) < size+2 {
				return nil, fmt.Errorf("the client wrote an unfinished command: %q", b)
			}
			words = append(words, string(b[:size]))
			b = b[size+2:]
		}
		if len(words) == 0 {
			return nil, errors.New("the client wrote a command without a name")
		}
		words[0] = strings.ToLower(words[0])
		commands = append(commands, words)
	}
	return commands, nil
}

// header reads a length.
func header(b []byte, kind byte) (n int, rest []byte, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if ok && len(line) > 1 && line[0] == kind {
		n, err = strconv.Atoi(string(line[1:]))
		if err == nil && n >= 0 {
			return n, rest, nil
		}
	}
	return 0, nil, fmt.Errorf("the client wrote what is no command: %q", line)
}

// scripts are the texts of scripts that clients sent, by hash.
type scripts struct{ texts sync.Map }

// spell replaces a script's hash by its text. It returns false for a hash whose text no client has sent.
func (s *scripts) spell(command []string) bool {
	if len(command) < 2 {
		return true
	}
	switch c, _ := rediscmd.Find(command[0]); {
	case c.Does(rediscmd.RunsText):
		s.learn(command[1])
	case c.Does(rediscmd.RunsHash):
		text, known := s.texts.Load(strings.ToLower(command[1]))
		if !known {
			return false
		}
		command[0], command[1] = c.OtherScript.Lower, text.(string)
	}
	return true
}

func (s *scripts) learn(text string) (sha string) {
	sha = rediscmd.SHA1(text)
	s.texts.Store(sha, text)
	return sha
}
