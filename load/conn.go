package load

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// calmConn is a connection that makes go-redis cheaper. For each command, go-redis sets three deadlines, and checks before
// it that the connection is still open.
//
// Setting a deadline locks and moves a timer of the runtime. A calmConn does not move the timer if the new deadline is
// later. It moves the timer when that fires before the deadline, which happens every few seconds.
//
// The check takes a system call. A trusted calmConn, which no fault of the run cuts, skips the check within stillAlive
// after it has received something. If the connection is closed in that time, the next command fails, just as it does if
// a connection is closed right after the check.
type calmConn struct {
	net.Conn
	raw         syscall.RawConn
	read, write deadline

	trusted  bool
	made     time.Time
	received atomic.Int64 // when it last received something, in ns since made; 0: never
}

// stillAlive is how long a trusted connection counts as open after it has received something.
const stillAlive = time.Millisecond

// calm returns a calmConn for c, or c itself if it is not a socket: go-redis does not check connections with TLS.
func calm(c net.Conn, trusted bool) net.Conn {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return c
	}
	return &calmConn{Conn: c, raw: raw, trusted: trusted, made: time.Now(), read: deadline{set: c.SetReadDeadline}, write: deadline{set: c.SetWriteDeadline}}
}

// deadline is one deadline of a calmConn.
type deadline struct {
	set    func(time.Time) error // on the connection
	mu     sync.Mutex
	wanted time.Time // zero: none
	armed  time.Time // on the connection: not after wanted; zero: none
}

// want sets the deadline.
func (d *deadline) want(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wanted = t; !d.early() && !t.Equal(d.armed) {
		return d.arm()
	}
	return nil
}

// early reports whether the connection would time out before the deadline.
func (d *deadline) early() bool {
	return !d.armed.IsZero() && (d.wanted.IsZero() || d.armed.Before(d.wanted))
}

func (d *deadline) arm() error {
	d.armed = d.wanted
	return d.set(d.wanted)
}

// again reports whether err is a timeout before the deadline. Then it has moved the timer, and the operation goes on.
func (d *deadline) again(err error) bool {
	if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.early() && d.arm() == nil
}

func (c *calmConn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.want(t), c.write.want(t))
}

func (c *calmConn) SetReadDeadline(t time.Time) error  { return c.read.want(t) }
func (c *calmConn) SetWriteDeadline(t time.Time) error { return c.write.want(t) }

func (c *calmConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n > 0 && c.trusted {
			c.received.Store(int64(time.Since(c.made)))
		}
		if n > 0 || !c.read.again(err) {
			return n, err
		}
	}
}

func (c *calmConn) Write(b []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(b[written:])
		if written += n; !c.write.again(err) {
			return written, err
		}
	}
}

// SyscallConn implements [syscall.Conn], by which go-redis checks that the connection is open.
func (c *calmConn) SyscallConn() (syscall.RawConn, error) { return rawCalm{c.raw, c}, nil }

// rawCalm is the [syscall.RawConn] of a calmConn.
type rawCalm struct {
	syscall.RawConn
	conn *calmConn
}

func (r rawCalm) Read(f func(fd uintptr) bool) error {
	if at := r.conn.received.Load(); at > 0 && time.Since(r.conn.made)-time.Duration(at) < stillAlive {
		return nil
	}
	for {
		if err := r.RawConn.Read(f); !r.conn.read.again(err) {
			return err
		}
	}
}

func (r rawCalm) Write(f func(fd uintptr) bool) error {
	for {
		if err := r.RawConn.Write(f); !r.conn.write.again(err) {
			return err
		}
	}
}
