package wire

import (
	"errors"
	"io"
	"os"

	"oversell/internal/rediscmd"
)

// requests pumps from the client to the server.
type requests struct {
	c *conn
	window
	scan    requestScanner
	session session
	args    [][]byte // of the request under way, reused

	// owed counts plain replies that are due for what was not forwarded yet.
	owed int
	// judged says that the request under way was judged and may pass, although
	// its end has not come.
	judged bool
	// slow is the injection that makes the request under way trickle.
	slow *injection
	// raw says that requests are not looked at any more.
	raw bool
	// broken says that the server does not accept the bytes that are sent to it.
	broken bool
	// woken says that reading was interrupted because there is an outcome.
	woken bool
}

func newRequests(c *conn) *requests {
	return &requests{c: c, raw: c.proxy.options.Decide == nil}
}

// run pumps to the end, and reports whether it ended because the server did not
// accept the bytes sent to it.
func (r *requests) run() (broken bool) {
	for r.read() && r.take() {
	}
	return r.broken
}

// read waits for more from the client. At the end of the stream it passes on the
// remaining bytes, and then the end.
func (r *requests) read() bool {
	err := r.more()
	if !r.c.passes(Requests) {
		return false
	}
	if err != nil {
		r.stopped(err)
		return false
	}
	return true
}

// more reads on from the client.
func (r *requests) more() error {
	n, err := r.fill(r.c.client)
	r.c.stats.requestBytes.Add(int64(n))
	return err
}

// stopped is called when nothing more can be read.
func (r *requests) stopped(err error) {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		r.woken = true
		return
	}
	if !r.forward(r.end) {
		return
	}
	if errors.Is(err, io.EOF) {
		r.c.server.CloseWrite()
		return
	}
	reset(r.c.server)
}

// take looks at the bytes that were read: it has each request in them judged, and
// forwards those that may pass, several at once if they arrived together.
func (r *requests) take() bool {
	r.raw = r.raw || r.c.opaque.Load()
	for !r.raw && r.pos < r.end {
		done, ok := r.step()
		if !ok {
			r.giveUp()
			break
		}
		if !r.judged && (done || r.pos-r.at >= maxHeld) && !r.judge(done) {
			return false
		}
		if done && !r.next() {
			return false
		}
	}
	if r.raw || r.judged {
		return r.forward(r.end)
	}
	return r.forward(r.at)
}

// step looks further at the request under way, at most to its end.
func (r *requests) step() (done, ok bool) {
	n, done, ok := r.scan.scan(r.buf[r.pos:r.end])
	r.pos += n
	return done, ok
}

// next turns to the request behind the one that ended.
func (r *requests) next() bool {
	if r.slow != nil && !r.forward(r.pos) {
		return false
	}
	r.at, r.judged, r.slow = r.pos, false, nil
	r.scan.restart()
	return true
}

// giveUp stops looking at requests, as from here on they make no sense.
func (r *requests) giveUp() {
	r.expect(unfollowed)
	r.raw, r.slow = true, nil
}

// expect announces what the server will answer.
func (r *requests) expect(e expectation) outcome {
	r.announce()
	return r.c.pending.add(e)
}

// announce announces the plain replies that were counted.
func (r *requests) announce() {
	if r.owed > 0 {
		r.c.pending.replies(r.owed)
		r.owed = 0
	}
}

// forward sends the held bytes, up to here.
func (r *requests) forward(upTo int) bool {
	if upTo == r.from {
		return true
	}
	r.announce()
	if !r.c.passes(Requests) {
		return false
	}
	if !r.send(r.buf[r.from:upTo]) {
		return false
	}
	r.gone(upTo)
	return true
}

func (r *requests) send(b []byte) bool {
	var err error
	if r.slow != nil {
		err = r.c.trickle(r.c.server, Requests, b, r.slow.action.After)
	} else {
		_, err = r.c.server.Write(b)
	}
	r.broken = err != nil
	return err == nil
}

// judge calls Options.Judge with the request under way, which has arrived in whole or in
// part, and carries out the action. It returns false if nothing more is to be sent.
func (r *requests) judge(done bool) bool {
	args, ok := r.arguments(done)
	if !ok {
		r.giveUp()
		return true
	}
	r.judged = true
	if len(args) == 0 {
		r.session.empty()
		return true
	}
	known, _ := rediscmd.Find(args[0])
	cmd := Command{Conn: r.c.number, Client: r.c.name, Name: known.Name, Args: args}
	if at := known.Key(len(args), func(i int) string { return string(args[i]) }); at > 0 && r.whole(at, done) {
		cmd.Key = string(args[at])
	}
	r.c.stats.commands.Add(1)
	action := r.c.proxy.options.Decide(cmd)
	e, owed := r.session.expect(known, args, r.argc())
	if action.Verb != Pass {
		return r.inject(newInjection(cmd, action), e, owed, done)
	}
	return r.pass(e, owed)
}

// argc is the number of arguments of the request under way, whether or not they
// have arrived.
func (r *requests) argc() int64 {
	if r.scan.line {
		return int64(len(r.args))
	}
	return r.scan.announced
}

// pass lets the request under way go on, together with what comes behind it.
func (r *requests) pass(e expectation, owed bool) bool {
	switch {
	case e.kind == opaque:
		r.giveUp()
	case owed && e.isPlain():
		r.owed++
	case owed:
		r.expect(e)
	}
	return true
}

// arguments returns the arguments of the request under way that have arrived.
func (r *requests) arguments(done bool) ([][]byte, bool) {
	text := r.buf[r.at:r.pos]
	if r.scan.line {
		if !done {
			return nil, false
		}
		var ok bool
		r.args, ok = splitLine(text)
		return r.args, ok
	}
	r.args = r.args[:0]
	for _, a := range r.scan.args {
		to := min(a.to, len(text))
		r.args = append(r.args, text[min(a.from, to):to:to])
	}
	return r.args, true
}

// whole reports whether all of an argument has arrived.
func (r *requests) whole(arg int, done bool) bool {
	return done || r.scan.args[arg].to <= r.pos-r.at
}
