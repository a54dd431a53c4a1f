package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"time"
)

// injection is an action that is to be carried out on a command.
type injection struct {
	command Command
	action  Action
	fired   bool // kept by the replies' side, for a reply that comes in parts
}

// newInjection keeps a command, whose arguments lie in a buffer.
func newInjection(cmd Command, action Action) *injection {
	args := make([][]byte, len(cmd.Args))
	for i, a := range cmd.Args {
		args[i] = slices.Clone(a)
	}
	cmd.Args = args
	return &injection{command: cmd, action: action}
}

// inject carries an action out on the request under way. Like judge, it returns false
// if nothing more is to be sent.
func (r *requests) inject(s *injection, e expectation, owed, done bool) bool {
	answered := owed && e.kind != opaque
	switch verb := s.action.Verb; {
	case verb == Delay:
		return r.delay(s, e, owed)
	case verb == HalfOpen:
		return r.halfOpen(s, e, owed)
	case verb == DropRequest || verb == Reset:
		return r.drop(s, e, owed)
	case verb == Late && e.kind != opaque:
		return r.late(s, e, owed, done)
	case verb == Trickle && s.action.Direction == Requests:
		return r.trickle(s, e, owed)
	case verb == Trickle && answered:
		e.injection = s
	case (verb == DropReply || verb == ResetAfter) && answered:
		return r.swallow(s, e, done)
	}
	return r.pass(e, owed)
}

// delay holds the request back. The replies' side goes on meanwhile.
func (r *requests) delay(s *injection, e expectation, owed bool) bool {
	if !r.forward(r.at) || !sleep(r.c.gone, s.action.After) {
		return false
	}
	r.c.fire(s)
	return r.pass(e, owed)
}

// halfOpen stops a direction, or both. While requests are stopped, the proxy does
// not read from the client, so it does not notice when the client disconnects, as
// on a network that has died.
func (r *requests) halfOpen(s *injection, e expectation, owed bool) bool {
	only := s.action.Direction
	if only == Replies && r.c.halted.isShut() {
		return r.pass(e, owed) // it is so already
	}
	switch r.settle(stay) {
	case lost:
		return r.leave()
	case unmatched:
		return r.pass(e, owed)
	}
	if only != Requests {
		r.c.halted.close()
	}
	r.c.fire(s)
	if only == Replies {
		r.c.wg.Go(func() { r.c.resume(s.action.After) })
		return r.pass(e, owed)
	}
	return r.c.resume(s.action.After) && r.pass(e, owed)
}

// resume lets replies go on after a time; 0 means never. It reports false if the
// connection ends first.
func (c *conn) resume(after time.Duration) bool {
	if after == 0 {
		<-c.gone
		return false
	}
	if !sleep(c.gone, after) {
		return false
	}
	c.halted.open()
	return true
}

// drop ends the connection without the request.
func (r *requests) drop(s *injection, e expectation, owed bool) bool {
	switch r.settle(part) {
	case lost:
		return r.leave()
	case unmatched:
		return r.pass(e, owed)
	}
	return r.conclude(s)
}

// swallow sends the request and waits for the reply, which the replies' side does
// not forward to the client. Then it ends the connection.
func (r *requests) swallow(s *injection, e expectation, done bool) bool {
	if !r.forward(r.at) {
		return false
	}
	e.injection, e.outcome = s, make(chan outcome, 1)
	became := r.expect(e)
	if became == notYet {
		if !r.complete(done) {
			return false
		}
		became = r.await(e.outcome, true)
	}
	switch became {
	case lost:
		return r.leave()
	case unmatched:
		r.raw = true
		return true
	}
	return r.conclude(s)
}

// conclude ends the connection of a client that was hit.
func (r *requests) conclude(s *injection) bool {
	r.c.fire(s)
	switch s.action.Verb {
	case Reset, ResetAfter:
		r.c.resetClient()
	default:
		r.c.closeClient()
	}
	r.c.closeServer()
	return false
}

// leave ends the connection after the server has left.
func (r *requests) leave() bool {
	r.c.closeClient()
	return false
}

// late ends the client's connection, and sends the request after Action.After. Until
// then it keeps the whole request in memory, however long that is.
func (r *requests) late(s *injection, e expectation, owed, done bool) bool {
	if !r.forward(r.at) {
		return false
	}
	request, ok := r.collect(done)
	if !ok {
		return false
	}
	switch r.settle(hangOn) {
	case lost:
		return r.leave()
	case unmatched:
		return r.send(request)
	}
	r.c.closeClient()
	if !sleep(r.c.gone, s.action.After) || !r.c.passes(Requests) {
		return false
	}
	if r.apply(request, e, owed) {
		r.c.fire(s)
	}
	r.c.closeServer()
	return false
}

// apply sends a request without a client and waits until it was executed.
func (r *requests) apply(request []byte, e expectation, owed bool) bool {
	if !owed {
		return r.send(request)
	}
	e.injection, e.outcome = &injection{action: Action{Verb: Late}}, make(chan outcome, 1)
	if r.expect(e) != notYet || !r.send(request) {
		return false
	}
	select {
	case became := <-e.outcome:
		return became == reached
	case <-r.c.gone:
		return false
	}
}

// trickle sends the request byte by byte.
func (r *requests) trickle(s *injection, e expectation, owed bool) bool {
	if !r.forward(r.at) {
		return false
	}
	r.pass(e, owed)
	r.c.fire(s)
	r.slow = s
	ok := r.forward(r.pos)
	if r.raw {
		r.slow = nil
	}
	return ok
}

// trickle writes bytes one by one.
func (c *conn) trickle(to *net.TCPConn, d Direction, b []byte, pause time.Duration) error {
	for i := range b {
		if !c.passes(d) {
			return context.Cause(c.ctx)
		}
		if _, err := to.Write(b[i : i+1]); err != nil {
			return err
		}
		if !sleep(c.gone, pause) {
			return context.Cause(c.ctx)
		}
	}
	return nil
}

// complete forwards the request under way, and reads its rest if necessary. Reading is
// interrupted if the server answers before the request has ended.
func (r *requests) complete(done bool) bool {
	for {
		if !r.forward(r.pos) {
			return false
		}
		if done || r.raw {
			return true
		}
		if !r.read() {
			return r.woken
		}
		var ok bool
		if done, ok = r.step(); !ok {
			r.raw = true
		}
	}
}

// collect takes the request under way out of the stream, to its end.
func (r *requests) collect(done bool) ([]byte, bool) {
	var request []byte
	for {
		request = append(request, r.buf[r.at:r.pos]...)
		r.gone(r.pos)
		if done {
			return request, true
		}
		if !r.read() {
			return nil, false
		}
		var ok bool
		if done, ok = r.step(); !ok {
			return nil, false
		}
	}
}

// then is what happens to the connection after the client has received the replies that are still owed.
type then uint8

const (
	stay   then = iota // the client keeps its connection
	hangOn             // the client is dismissed, and the connection to the server is kept
	part               // both connections end
)

// settle waits until the client has got the replies to all that was sent.
func (r *requests) settle(next then) outcome {
	if !r.forward(r.at) {
		return lost
	}
	told := make(chan outcome, 1)
	became := r.expect(expectation{kind: mark, outcome: told, last: next != stay})
	if became == notYet {
		became = r.await(told, next == part)
	}
	r.raw = r.raw || became == unmatched
	return became
}

// await returns the outcome that told receives, and holds what the client sends until
// then. With passEnd, it passes the end of the client's stream on to the server, so that
// the server does not go on waiting in a blocking command.
func (r *requests) await(told chan outcome, passEnd bool) outcome {
	for !r.full() && !r.woken {
		err := r.more()
		if err == nil {
			continue
		}
		if passEnd && !errors.Is(err, os.ErrDeadlineExceeded) && r.c.passes(Requests) {
			r.c.server.CloseWrite()
		}
		break
	}
	select {
	case became := <-told:
		r.woken = false
		r.c.client.SetReadDeadline(time.Time{})
		return became
	case <-r.c.gone:
		return lost
	}
}
