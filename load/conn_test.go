package load

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// calmPair returns a calm connection and its other end. Their buffers are small, so that a write of megabytes blocks.
func calmPair(t *testing.T, trusted bool) (c *calmConn, other net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if other, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialed.Close(); other.Close() })
	if err := errors.Join(dialed.(*net.TCPConn).SetWriteBuffer(1<<16), other.(*net.TCPConn).SetReadBuffer(1<<16)); err != nil {
		t.Fatal(err)
	}
	return calm(dialed, trusted).(*calmConn), other
}

// TestDeadlines checks that the deadline set last applies, whether it is earlier or later than the one before, or none.
func TestDeadlines(t *testing.T) {
	const soon, never = 20 * time.Millisecond, time.Hour
	after := func(d time.Duration) time.Time {
		if d == 0 {
			return time.Time{}
		}
		return time.Now().Add(d)
	}
	for _, test := range []struct {
		name   string
		sets   []time.Duration
		expire bool
	}{
		{"soon", []time.Duration{soon}, true},
		{"sooner", []time.Duration{never, soon}, true},
		{"later", []time.Duration{soon, never}, false},
		{"none", []time.Duration{soon, 0}, false},
		{"again", []time.Duration{soon, 0, never, soon}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c, other := calmPair(t, false)
			for _, d := range test.sets {
				if err := c.SetDeadline(after(d)); err != nil {
					t.Fatal(err)
				}
			}
			if !test.expire {
				time.AfterFunc(5*soon, func() { other.Write([]byte("x")) }) //nolint:errcheck // the read below fails then
			}
			_, err := c.Read(make([]byte, 1))
			if expired := errors.Is(err, os.ErrDeadlineExceeded); expired != test.expire || !expired && err != nil {
				t.Errorf("read: %v", err)
			}

			much := make([]byte, 8<<20) // more than the buffers hold
			if !test.expire {
				time.AfterFunc(5*soon, func() { io.Copy(io.Discard, other) }) //nolint:errcheck // the write below fails then
			}
			n, err := c.Write(much)
			if expired := errors.Is(err, os.ErrDeadlineExceeded); expired != test.expire || !expired && n != len(much) {
				t.Errorf("wrote %d bytes: %v", n, err)
			}
		})
	}
}

// TestEveryByteIsWrittenOnce checks that a write that goes on after an early timeout repeats and drops nothing.
func TestEveryByteIsWrittenOnce(t *testing.T) {
	c, other := calmPair(t, false)
	much := make([]byte, 8<<20)
	for i := range much {
		much[i] = byte(i % 251)
	}
	for _, d := range []time.Duration{20 * time.Millisecond, time.Hour} {
		if err := c.SetWriteDeadline(time.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, len(much))
	read := make(chan error)
	time.AfterFunc(100*time.Millisecond, func() { _, err := io.ReadFull(other, got); read <- err })
	if n, err := c.Write(much); n != len(much) || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	if err := <-read; err != nil || !bytes.Equal(got, much) {
		t.Errorf("other bytes arrived: %v", err)
	}
}

// TestOnlyRunsWithoutFaultsTrust checks that the connections of a run with faults are checked before each command.
func TestOnlyRunsWithoutFaultsTrust(t *testing.T) {
	for _, inject := range []func(int32, *variant.Env) redis.Hook{nil, func(int32, *variant.Env) redis.Hook { return nil }} {
		dialed, _ := calmPair(t, false)
		dial := attending{&Engine{config: Config{Inject: inject}}}.DialHook(func(context.Context, string, string) (net.Conn, error) { return dialed.Conn, nil })
		conn, err := dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		if trusted := conn.(*calmConn).trusted; trusted != (inject == nil) {
			t.Errorf("with faults %t: the connection is trusted: %t", inject != nil, trusted)
		}
	}
}
