package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"oversell/internal/freeport"
)

// Options say where a proxy listens, which server it leads to, and which function
// judges the commands.
type Options struct {
	// Listen is the address to listen on; empty: a free port on 127.0.0.1.
	Listen string
	// To is the server's address, host:port.
	To string
	// Decide decides about each command, when the whole command or its first 64 KiB
	// have arrived. It is called in order for the commands of a connection, and
	// concurrently for different connections; while it runs, no further request of
	// its connection is forwarded. nil passes everything on, without reading it.
	Decide func(Command) Action
	// Fired is called for each action that took effect: a request that was held
	// back and goes on now, a reply that arrived and was swallowed, a late
	// command that was executed. It comes before the client can see the effect,
	// except for Late, and may be called from several goroutines at once. The
	// command's Args stay valid. nil: not called.
	Fired func(Command, Action)
}

// Proxy stands between clients and one server. Its methods are safe for
// concurrent use.
type Proxy struct {
	options  Options
	listener net.Listener
	// ctx ends when the proxy closes, and ends all actions under way.
	ctx context.Context
	end context.CancelFunc
	wg  sync.WaitGroup

	requests, replies gate

	mu    sync.Mutex
	conns map[*conn]struct{}
	past  Stats // of the connections that have ended; Connections counts all
}

// Stats is what a proxy has seen so far.
type Stats struct {
	// Connections were accepted, of which Open are still there.
	Connections, Open int64
	// Commands is how many commands were judged, and Fired how many actions took
	// effect.
	Commands, Fired int64
	// RequestBytes and ReplyBytes count the bytes that have arrived, whether or
	// not they were passed on.
	RequestBytes, ReplyBytes int64
}

// counters belong to one connection: shared ones would be contended.
type counters struct {
	commands, fired, requestBytes, replyBytes atomic.Int64
}

// addTo adds up what was counted.
func (c *counters) addTo(s *Stats) {
	s.Commands += c.commands.Load()
	s.Fired += c.fired.Load()
	s.RequestBytes += c.requestBytes.Load()
	s.ReplyBytes += c.replyBytes.Load()
}

// Listen opens a proxy. ctx bounds the opening only; the proxy lives until Close.
// The server need not be there yet: a client that comes while it is not is reset.
func Listen(ctx context.Context, o Options) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(o.To); err != nil {
		return nil, fmt.Errorf("open a proxy to %q: %w", o.To, err)
	}
	l, err := o.listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("open a proxy to %s: %w", o.To, err)
	}
	p := &Proxy{options: o, listener: l, conns: map[*conn]struct{}{}}
	p.ctx, p.end = context.WithCancel(context.WithoutCancel(ctx))
	p.wg.Go(p.accept)
	return p, nil
}

func (o Options) listen(ctx context.Context) (net.Listener, error) {
	if o.Listen == "" {
		return freeport.ListenTCP(ctx)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", o.Listen)
}

// Addr is the address on which the proxy listens, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends all connections, cancels what was to happen later, and waits until
// nothing of the proxy runs any more. Further calls do nothing.
func (p *Proxy) Close() error {
	p.end()
	err := p.listener.Close()
	p.each((*conn).kill)
	p.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("close the proxy on %s: %w", p.Addr(), err)
	}
	return nil
}

// Cut stops a direction on all connections, present and future, as a partition
// of the network does: what travels that way is held, ends of streams included,
// and nothing is lost. While requests are cut, a new connection is accepted by
// the operating system and sees nothing. Commands that arrive during a cut are
// judged after it.
func (p *Proxy) Cut(d Direction) {
	if d != Replies {
		p.requests.close()
	}
	if d != Requests {
		p.replies.close()
	}
}

// Restore heals what Cut has cut, in both directions; what was held goes on its
// way.
func (p *Proxy) Restore() {
	p.requests.open()
	p.replies.open()
}

// Sever resets every connection there is now, on the client's side and on the
// server's. New ones are not affected.
func (p *Proxy) Sever() { p.each((*conn).sever) }

// Stats is what the proxy has seen so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.past
	s.Open = int64(len(p.conns))
	for c := range p.conns {
		c.stats.addTo(&s)
	}
	return s
}

// gate is where bytes of a direction are held.
func (p *Proxy) gate(d Direction) *gate {
	if d == Requests {
		return &p.requests
	}
	return &p.replies
}

// each does something to all connections.
func (p *Proxy) each(do func(*conn)) {
	p.mu.Lock()
	all := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		do(c)
	}
}

// accept serves clients until the proxy closes. It retries after a temporary
// error, such as too many open files.
func (p *Proxy) accept() {
	const pause = 5 * time.Millisecond
	for {
		client, err := p.listener.Accept()
		switch {
		case err == nil:
			p.serve(client.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return
		case !sleep(p.ctx.Done(), pause):
			return
		}
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil { // Close has looked at the connections already
		client.Close()
		return
	}
	p.past.Connections++
	c := newConn(p, p.past.Connections, client)
	p.conns[c] = struct{}{}
	p.wg.Go(func() {
		c.run()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, c)
		c.stats.addTo(&p.past)
	})
}

// sleep waits for d. It reports false if gone is closed first.
func sleep(gone <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
		return false
	}
}
