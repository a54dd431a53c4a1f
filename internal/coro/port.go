package coro

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"oversell/internal/rediscmd"
)

// port is a go-redis client. A thread parks when the library reads from one of its connections, and
// the connection then returns the driver's answer. So the library itself chooses and closes
// connections, and parses replies of every type.
type port struct {
	rdb   *redis.Client
	owner atomic.Pointer[Client]
	node  int

	mu     sync.Mutex // guards all below
	answer string     // answers that connections have yet to return
	// written holds the bytes sent if keep is set, for tests.
	keep    bool
	written []byte
}

// connections is the size of the connection pool: the most threads that can have a transaction or a
// connection of their own at a time.
const connections = 64

// take returns a port for server node of this client: an idle one or a new one.
func (s *Scripts) take(c *Client, node int) *port {
	p, _ := s.spare.Get().(*port)
	if p == nil {
		p = newPort()
	}
	p.node = node
	p.owner.Store(c)
	return p
}

func newPort() *port {
	p := &port{}
	p.rdb = redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", // a name would be looked up
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return &conn{port: p}, nil
		},
		Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		PoolSize: connections, PipelinePoolSize: -1, ConnMaxIdleTime: -1,
		ReadTimeout: -2, WriteTimeout: -2,
		ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	p.rdb.AddHook(hook{p})
	return p
}

// release gives the port back for the next execution, if it has no state left.
func (p *port) release(s *Scripts, good bool) {
	p.owner.Store(nil)
	// A transaction that crashed still holds its connection.
	if stats := p.rdb.PoolStats(); good && stats.TotalConns == stats.IdleConns {
		s.spare.Put(p)
		return
	}
	_ = p.rdb.Close() // there is nothing behind it
}

// hook parks commands.
type hook struct{ *port }

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hello" { // the library's own, on a new connection
			return h.say(hello, func() error { return next(ctx, cmd) })
		}
		if w := nonBlocking(cmd); w != nil {
			return h.wait(ctx, cmd, w, next)
		}
		return h.process(ctx, []redis.Cmder{cmd}, false, func(ctx context.Context) error { return next(ctx, cmd) })
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		tx := len(cmds) > 2 && cmds[0].Name() == "multi" && cmds[len(cmds)-1].Name() == "exec"
		return h.process(ctx, cmds, tx, func(ctx context.Context) error { return next(ctx, cmds) })
	}
}

const (
	hello    = "*2\r\n$5\r\nproto\r\n:2\r\n"
	noScript = "-" + rediscmd.ScriptMissing + "\r\n"
)

// say calls send, during which connections return this answer.
func (p *port) say(answer string, send func() error) error {
	p.mu.Lock()
	before := p.answer
	p.answer = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.answer = before
		p.mu.Unlock()
	}()
	return send()
}

// process parks commands, and lets the library read the observation.
func (p *port) process(ctx context.Context, cmds []redis.Cmder, tx bool, next func(context.Context) error) error {
	c := p.owner.Load()
	if c == nil {
		return FailAll(cmds, net.ErrClosed) // a goroutine that outlived its client
	}
	if !c.own() {
		return FailAll(cmds, ErrAlone)
	}
	c.alive()
	if ctx.Err() != nil {
		return FailAll(cmds, context.Cause(ctx))
	}
	// As with a real connection, a command under way is not abandoned when its context ends.
	send := func() error { return next(context.WithoutCancel(ctx)) }
	inner := cmds
	if tx {
		inner = cmds[1 : len(cmds)-1]
	}
	r := Request{Kind: Command, Node: p.node, Commands: make([][]string, len(inner)), Tx: tx}
	for i, cmd := range inner {
		var ok bool
		if r.Commands[i], ok = wire(cmd.Args()); !ok {
			return p.say("", send) // the library says why it cannot be sent
		}
		c.options.Scripts.normalize(r.Commands[i])
	}
	if len(cmds) == 1 {
		if c.options.Scripts.missing(r.Commands[0]) {
			return p.say(noScript, send)
		}
		if exist := c.options.Scripts.exist(r.Commands[0]); exist != "" {
			return p.say(exist, send)
		}
		if loaded := c.options.Scripts.loads(r.Commands[0]); loaded != "" {
			return p.say(loaded, send)
		}
	}
	s := &sending{ctx: ctx, request: r, replies: len(cmds)}
	c.current.sends = s
	err := send()
	c.alive()
	c.current.sends = nil // the library may not have sent it: its connection was closed before
	switch s.observation.Failure {
	case NoAnswer:
		return FailAll(cmds, noAnswer{})
	case TimedOut:
		return FailAll(cmds, context.DeadlineExceeded)
	}
	return err
}

// sending is a request that was given to the library, which chooses the connection.
type sending struct {
	ctx         context.Context
	request     Request
	replies     int // how many replies it takes
	observation Observation
}

// Watching are the connections on which keys are watched: number n, from 1, is at index n-1. See
// [Request].
type Watching []any

// Number returns the number of a connection on which keys are watched, or on which r will watch
// keys; otherwise 0.
func (w *Watching) Number(conn any, r *Request) int {
	if i := slices.Index(*w, conn); i >= 0 {
		return i + 1
	}
	if len(r.Commands) != 1 || !rediscmd.Is(r.Commands[0][0], rediscmd.Watches) {
		return 0
	}
	i := slices.Index(*w, nil)
	if i < 0 {
		i = len(*w)
		*w = append(*w, nil)
	}
	(*w)[i] = conn
	return i + 1
}

// forgets reports whether no keys are watched after this request.
func forgets(r *Request) bool {
	return r.Tx || len(r.Commands) == 1 && rediscmd.Is(r.Commands[0][0], rediscmd.Unwatches)
}

// FailAll makes err the result of every command, and returns it.
func FailAll(cmds []redis.Cmder, err error) error {
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
	return err
}

// noAnswer is a network timeout.
type noAnswer struct{}

func (noAnswer) Error() string   { return "i/o timeout: no answer" }
func (noAnswer) Timeout() bool   { return true }
func (noAnswer) Temporary() bool { return true }
func (noAnswer) Unwrap() error   { return os.ErrDeadlineExceeded }

// conn is a connection to a port.
type conn struct{ *port }

// errUnasked is the error of reads without a command.
var errUnasked = errors.New("the program uses a connection in a way that cannot be parked, like a subscription")

func (n *conn) Read(b []byte) (int, error) {
	n.mu.Lock()
	asked := n.answer == ""
	n.mu.Unlock()
	if asked {
		if err := n.ask(); err != nil {
			return 0, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	size := copy(b, n.answer)
	n.answer = n.answer[size:]
	return size, nil
}

// ask parks the reading thread until the sent commands are answered.
func (n *conn) ask() error {
	c := n.owner.Load()
	if c == nil {
		return net.ErrClosed
	}
	t := c.current
	if t == nil || t.sends == nil {
		c.fail(errUnasked)
		return io.ErrUnexpectedEOF
	}
	s := t.sends
	t.sends = nil
	r := s.request
	o := n.exchange(c, s)
	s.observation = o
	switch {
	case c.dead.Load() && s.replies == 1: // so the connection can be used again
		o.Reply = "-ERR the client has crashed\r\n"
	case c.dead.Load():
		return net.ErrClosed
	case o.Failure != Answered:
		return noAnswer{}
	case !isReplies(o.Reply, s.replies):
		c.fail(fmt.Errorf("%q are not %d replies to %q", o.Reply, s.replies, r.Commands))
		return net.ErrClosed
	}
	n.mu.Lock()
	n.answer = o.Reply
	n.mu.Unlock()
	return nil
}

// exchange parks the thread until a request is answered. It makes a request of each command of a pipeline, one after the other, because other
// clients may come between them.
func (n *conn) exchange(c *Client, s *sending) (o Observation) {
	if s.request.Tx || len(s.request.Commands) == 1 {
		return n.parked(c, s.ctx, s.request)
	}
	replies := ""
	for _, cmd := range s.request.Commands {
		r := s.request
		r.Commands = [][]string{cmd}
		if o = n.parked(c, s.ctx, r); o.Failure != Answered || c.dead.Load() {
			return o
		}
		replies += o.Reply
	}
	o.Reply = replies
	return o
}

func (n *conn) parked(c *Client, ctx context.Context, r Request) Observation {
	r.Conn = c.watching.Number(n, &r)
	o := c.stand(ctx, r, false)
	if r.Conn > 0 && (o.Failure != Answered || forgets(&r)) {
		c.watching[r.Conn-1] = nil
	}
	return o
}

func (n *conn) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keep {
		n.written = append(n.written, b...)
	}
	return len(b), nil
}

func (*conn) Close() error                     { return nil }
func (*conn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*conn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*conn) SetDeadline(time.Time) error      { return nil }
func (*conn) SetReadDeadline(time.Time) error  { return nil }
func (*conn) SetWriteDeadline(time.Time) error { return nil }
