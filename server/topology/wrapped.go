package topology

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"

	"oversell/internal/rediscmd"
)

// calledBy returns a connection that reports as its remote address the one that the driver knows, if it leads
// elsewhere: through a proxy, or because the address is a name. The driver's client for sentinels closes connections to
// every address except the new primary's.
func calledBy(addr string, conn net.Conn) net.Conn {
	if conn.RemoteAddr().String() == addr {
		return conn
	}
	return rewrap(conn, &aliased{conn, addr})
}

// aliased is a connection with the remote address that the driver knows.
type aliased struct {
	net.Conn
	addr string
}

func (a *aliased) RemoteAddr() net.Addr { return alias(a.addr) }

type alias string

func (a alias) Network() string { return "tcp" }
func (a alias) String() string  { return string(a) }

// rewrap gives the driver access to the socket below a wrapped connection, by which it notices that the server closed
// it, if it had access before.
func rewrap(inner, wrapped net.Conn) net.Conn {
	if raw, ok := inner.(syscall.Conn); ok {
		return &withSocket{wrapped, raw}
	}
	return wrapped
}

type withSocket struct {
	net.Conn
	raw syscall.Conn
}

func (w *withSocket) SyscallConn() (syscall.RawConn, error) { return w.raw.SyscallConn() }

// noRetryConn is a connection that returns errors in a form that does not make the driver send a command again. The driver's
// client for clusters repeats commands after an end of file and after most other errors on the wire, even if they may
// have been executed, and that cannot be disabled without losing the redirections.
type noRetryConn struct {
	net.Conn
	// listening: the connection subscribes to channels. Nothing is repeated there, and a timeout must remain one: it
	// only means that there is no message.
	listening atomic.Bool
}

func (f *noRetryConn) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if f.listening.Load() {
		return n, err
	}
	return n, finally(err)
}

func (f *noRetryConn) Write(p []byte) (int, error) {
	if subscribes(p) {
		f.listening.Store(true)
	}
	n, err := f.Conn.Write(p)
	return n, finally(err)
}

// subscribes reports whether a request begins with a command like SUBSCRIBE:
//
//	*2\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n
func subscribes(request []byte) bool {
	parts := bytes.SplitN(request, []byte("\r\n"), 4)
	return len(parts) == 4 && rediscmd.Is(parts[2], rediscmd.Subscribes)
}

// finally hides the kind of an error from the driver.
func finally(err error) error {
	if err == nil {
		return nil
	}
	return &finalError{err}
}

// finalError is an error with the full text whose kind is hidden from the driver: whether it is an end of file or a
// timeout.
type finalError struct{ err error }

func (e *finalError) Error() string {
	if errors.Is(e.err, io.EOF) {
		return "the server closed the connection"
	}
	return e.err.Error()
}

// Is matches all wrapped errors, except those after which the driver repeats commands.
func (e *finalError) Is(target error) bool {
	return target != io.EOF && target != io.ErrUnexpectedEOF && errors.Is(e.err, target)
}
