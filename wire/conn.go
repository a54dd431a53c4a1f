package wire

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one client's connection and the one to the server that belongs to it.
//
// Two goroutines pump, one for each direction. The requests' side parses the
// requests, calls Judge and executes the actions. It stores an action on a reply
// with the expectation of that reply, from which the replies' side takes it.
type conn struct {
	proxy  *Proxy
	number int64
	name   string
	client *net.TCPConn
	// ctx ends, and gone is closed, when the connection is to end at once.
	ctx  context.Context
	end  context.CancelFunc
	gone <-chan struct{}

	stats   counters
	pending pending
	// halted holds this connection's replies.
	halted gate
	// closedToClient says that nothing may be written to the client any more, because it was
	// sent away or is not there.
	closedToClient atomic.Bool
	// opaque says that the replies cannot be told apart any more.
	opaque atomic.Bool
	// sent says that nothing more will be sent to the server.
	sent atomic.Bool
	wg   sync.WaitGroup

	mu     sync.Mutex
	server *net.TCPConn
}

func newConn(p *Proxy, number int64, client *net.TCPConn) *conn {
	c := &conn{proxy: p, number: number, name: client.RemoteAddr().String(), client: client}
	c.ctx, c.end = context.WithCancel(p.ctx)
	c.gone = c.ctx.Done()
	c.pending.wake, c.pending.closeToClient = c.wake, c.closeToClient
	return c
}

// run serves the connection to its end.
func (c *conn) run() {
	defer c.kill()
	if !c.dial() {
		return
	}
	c.wg.Go(func() { newReplies(c).run() })
	broken := newRequests(c).run()
	c.sent.Store(true)
	c.wg.Wait()
	if broken && !c.closedToClient.Load() {
		reset(c.client)
	}
}

// dial connects to the server. If the server cannot be reached, the client is
// reset: that is the closest that a proxy can come to a refused connection.
func (c *conn) dial() bool {
	if !c.passes(Requests) {
		return false
	}
	server, err := new(net.Dialer).DialContext(c.ctx, "tcp", c.proxy.options.To)
	if err != nil {
		reset(c.client)
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server.(*net.TCPConn)
	return c.ctx.Err() == nil // otherwise c was ended before c.server was set
}

// kill ends the connection at once.
func (c *conn) kill() { c.cease(false) }

// sever ends the connection with resets on both sides.
func (c *conn) sever() { c.cease(true) }

func (c *conn) cease(hard bool) {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, side := range []*net.TCPConn{c.client, c.server} {
		if side == nil {
			continue
		}
		if hard {
			side.SetLinger(0)
		}
		side.Close()
	}
}

// passes waits until the gates of a direction are open; it returns false if the connection ends first.
func (c *conn) passes(d Direction) bool {
	return c.proxy.gate(d).pass(c.gone) && (d == Requests || c.halted.pass(c.gone))
}

// wake interrupts the requests' side if it reads from the client.
func (c *conn) wake() { c.client.SetReadDeadline(time.Unix(1, 0)) }

// closeToClient drops all bytes that would be written to the client from now on.
func (c *conn) closeToClient() { c.closedToClient.Store(true) }

// fire reports that an action took effect.
func (c *conn) fire(s *injection) {
	c.stats.fired.Add(1)
	if f := c.proxy.options.Fired; f != nil {
		f(s.command, s.action)
	}
}

// lingering is how long the proxy waits, after it has closed its side of a connection, for the peer to close the other side;
// and how long it waits before a reset, so that the bytes already written arrive.
const lingering = time.Second

// closeClient closes the client's connection such that the client sees the end of
// the stream. If the proxy closed the connection while it has unread bytes, the
// system would send a reset, and the client might lose replies that it has not read.
func (c *conn) closeClient() {
	c.closeToClient()
	if !c.passes(Replies) {
		return
	}
	c.client.CloseWrite()
	c.client.SetReadDeadline(time.Now().Add(lingering))
	c.wg.Go(func() {
		io.Copy(io.Discard, c.client)
		c.client.Close()
	})
}

// resetClient resets the client's connection.
func (c *conn) resetClient() {
	c.closeToClient()
	if c.passes(Replies) {
		reset(c.client)
	}
}

// closeServer ends the connection to the server, which executes what it has got.
func (c *conn) closeServer() {
	c.server.CloseWrite()
	c.server.SetReadDeadline(time.Now().Add(lingering))
}

// reset closes a connection with a TCP reset, after what was written to it has
// arrived: a reset overtakes what is still under way.
func reset(conn *net.TCPConn) {
	for range 100 {
		if unsent(conn) == 0 {
			break
		}
		time.Sleep(lingering / 100)
	}
	conn.SetLinger(0)
	conn.Close()
}
