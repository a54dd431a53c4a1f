package load

import (
	"io"
	"syscall"
	"testing"
	"time"

	"oversell/internal/servertest"
)

// peek checks as go-redis does whether a connection is open. It returns io.EOF if it is closed.
func peek(t *testing.T, c syscall.Conn) (answer error) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if n == 0 && err == nil {
			answer = io.EOF
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestClosedConnectionsAreNoticed checks that go-redis notices a closed connection, also after a deadline has expired and
// was removed. On a trusted connection it does not while the last answer is new.
func TestClosedConnectionsAreNoticed(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		c, other := calmPair(t, trusted)
		if err := peek(t, c); err != nil {
			t.Errorf("trusted %v: %v at first", trusted, err)
		}
		if err := c.SetDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if remembered := c.received.Load() > 0; remembered != trusted {
			t.Errorf("trusted %t: it remembers when it last received something: %t", trusted, remembered)
		}
		other.Close()
		c.received.Store(0)
		servertest.Await(t, "the end of the connection", func() bool { return peek(t, c) == io.EOF })
		c.received.Store(int64(time.Since(c.made) + time.Hour))
		if err := peek(t, c); err != nil {
			t.Errorf("just after an answer, the connection is checked: %v", err)
		}
	}
}
