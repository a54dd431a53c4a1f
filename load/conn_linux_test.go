package load

import (
	"io"
	"syscall"
	"testing"
	"time"
)

// peek asks like the driver whether a connection is alive: io.EOF if it is not.
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

// TestDeadConnectionsAreNoticed checks that the driver learns that a connection was closed: also after a deadline
// passed and was lifted, and on a trusted connection, unless it has just received something.
func TestDeadConnectionsAreNoticed(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		c, other := calmPair(t, trusted)
		if err := peek(t, c); err != nil {
			t.Errorf("trusted %v: %v at first", trusted, err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
		if err := c.SetDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		other.Close()
		time.Sleep(20 * stillAlive)
		if err := peek(t, c); err != io.EOF {
			t.Errorf("trusted %v: %v after it was closed", trusted, err)
		}
	}
}
