package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// mustListen opens a proxy that ends with the test.
func mustListen(t testing.TB, o Options) *Proxy {
	t.Helper()
	p, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

// rawClient is a connection on which a test sends and reads the bytes of the protocol itself.
type rawClient struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

func mustDial(t testing.TB, addr string) *rawClient {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return mustWrap(t, c.(*net.TCPConn))
}

// mustWrap returns a rawClient on one end of a connection, the client's or the server's.
func mustWrap(t testing.TB, c *net.TCPConn) *rawClient {
	t.Cleanup(func() { c.Close() })
	return &rawClient{t: t, TCPConn: c, in: bufio.NewReader(c)}
}

// send writes commands, each given as a line of words, in one piece.
func (c *rawClient) send(lines ...string) {
	c.t.Helper()
	var b []byte
	for _, l := range lines {
		b = append(b, command(strings.Fields(l)...)...)
	}
	if _, err := c.Write(b); err != nil {
		c.t.Fatalf("send %q: %v", lines, err)
	}
}

// expect checks that the next bytes are these replies.
func (c *rawClient) expect(replies ...string) {
	c.t.Helper()
	want := strings.Join(replies, "")
	got := make([]byte, len(want))
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := io.ReadFull(c.in, got)
	if err != nil || string(got) != want {
		c.t.Fatalf("read %q, %v; want %q", got[:n], err, want)
	}
}

// expectEnd checks that the connection ends in this way, reset or closed, without a further byte, and closes this side,
// too.
func (c *rawClient) expectEnd(reset bool) {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	rest, err := io.ReadAll(c.in)
	if len(rest) > 0 {
		c.t.Fatalf("read %q before the end; want nothing", rest)
	}
	if got := isReset(err); got != reset || err != nil && !got {
		c.t.Fatalf("the connection ended with %v; want a reset: %v", err, reset)
	}
	c.Close()
}

// expectSilence checks that nothing arrives while the function runs, not even the end of the connection.
func (c *rawClient) expectSilence(while func()) {
	c.t.Helper()
	heard := make(chan string, 1)
	c.SetReadDeadline(time.Time{})
	go func() {
		_, err := c.in.Peek(1)
		heard <- fmt.Sprint(err)
	}()
	while()
	select {
	case err := <-heard:
		c.t.Fatalf("heard something (%s) where silence was expected", err)
	default:
	}
	c.SetReadDeadline(time.Unix(1, 0))
	<-heard
	c.in.Reset(c.TCPConn)
}

// command returns a request in the form in which clients send it.
func command(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// fakeServer accepts connections and hands them to a test.
func fakeServer(t testing.TB) (addr string, accepted <-chan *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan *net.TCPConn, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c.(*net.TCPConn)
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String(), conns
}

// injector is a judge that gives one action to the commands of one name, at most times times. It remembers what it was
// asked to judge and which actions fired.
type injector struct {
	name   string
	action Action
	times  int // 0: without limit

	mu     sync.Mutex
	chosen int
	judged []string // name and key
	fired  []string // verb, name and key
}

func (s *injector) judge(c Command) Action {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judged = append(s.judged, strings.TrimSpace(c.Name+" "+c.Key))
	if c.Name != s.name || s.times > 0 && s.chosen >= s.times {
		return Action{}
	}
	s.chosen++
	return s.action
}

func (s *injector) heard(c Command, a Action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fired = append(s.fired, strings.TrimSpace(string(a.Verb)+" "+c.Name+" "+c.Key))
}

func (s *injector) firings() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.fired, ", ")
}

func (s *injector) judgements() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.judged, ", ")
}

// through opens a proxy that this injector judges.
func (s *injector) through(t testing.TB, to string) *Proxy {
	t.Helper()
	return mustListen(t, Options{To: to, Decide: s.judge, Fired: s.heard})
}

// diff says where two byte strings begin to differ, or returns "" if they are equal.
func diff(got, want []byte) string {
	if bytes.Equal(got, want) {
		return ""
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	around := func(b []byte) string { return strconv.Quote(string(b[max(0, min(len(b), i-40)):min(len(b), i+40)])) }
	return fmt.Sprintf("%d bytes instead of %d, they part at %d: %s instead of %s", len(got), len(want), i, around(got), around(want))
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
