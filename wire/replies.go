package wire

import (
	"errors"
	"io"

	"oversell/internal/rediscmd"
)

// replies pumps from the server to the client. As long as nothing is to happen
// to any reply, it only counts them.
type replies struct {
	c *conn
	window
	scan  replyScanner
	subs  subscriptions
	resp3 bool
	// raw says that replies are not looked at any more.
	raw bool
	// clientGone says that writes to the client fail.
	clientGone bool
	// ended counts plain replies that ended in what was not forwarded yet.
	ended int

	// About the value under way: fate is what happens to it. matched says that it
	// belongs to the reply of the expectation to.
	fate    fate
	matched bool
	to      expectation
}

type fate uint8

const (
	counted   fate = iota // a plain reply or a push; it passes
	undecided             // it is held until more of it is known
	passed                // it passes, but its end means something
	swallowed
	trickled
)

func newReplies(c *conn) *replies {
	return &replies{c: c, raw: c.proxy.options.Decide == nil}
}

func (r *replies) run() {
	for r.read() && r.take() {
	}
}

// read waits for more from the server. At the end of the stream it passes on the
// remaining bytes, and then the end.
func (r *replies) read() bool {
	n, err := r.fill(r.c.server)
	r.c.stats.replyBytes.Add(int64(n))
	if err == nil {
		return true
	}
	r.forward(r.end)
	if !r.c.closedToClient.Load() && r.c.passes(Replies) {
		if errors.Is(err, io.EOF) {
			r.c.client.CloseWrite()
		} else {
			reset(r.c.client)
		}
	}
	r.c.pending.end(lost)
	return false
}

// take looks at what was read and forwards it.
func (r *replies) take() bool {
	ok := true
	switch {
	case r.raw:
	case r.fate == counted && !r.subs.any() && r.c.pending.special.Load() == 0:
		r.count()
	default:
		ok = r.sort()
	}
	if r.fate == undecided && !r.raw {
		return ok && r.forward(r.at)
	}
	return ok && r.forward(r.end)
}

// count scans replies to which nothing happens: as long as no special expectation is
// pending, all replies are plain.
func (r *replies) count() {
	for r.pos < r.end {
		done, ok := r.step()
		if !ok {
			r.blur()
			return
		}
		if done && r.scan.lead != '>' {
			r.ended++
		}
	}
}

// sort looks at replies one by one.
func (r *replies) sort() bool {
	for !r.raw && r.pos < r.end {
		if r.scan.between() {
			r.at, r.fate, r.matched = r.pos, undecided, false
		}
		done, ok := r.step()
		if !ok {
			r.blur()
			return true
		}
		if r.fate == undecided && !r.decide(done) {
			return false
		}
		if !r.dispose() {
			return false
		}
		if done && !r.finish() {
			return false
		}
	}
	return true
}

// step looks further at the value under way, at most to its end.
func (r *replies) step() (done, ok bool) {
	n, done, ok := r.scan.scan(r.buf[r.pos:r.end])
	r.pos += n
	return done, ok
}

// blur gives up telling replies apart.
func (r *replies) blur() {
	r.raw = true
	r.c.opaque.Store(true)
	r.c.pending.end(unmatched)
}

// decide determines what the value under way is and what to do with it, as soon
// as enough of it has arrived.
func (r *replies) decide(done bool) bool {
	next, owed, ok := r.next()
	if !ok || r.raw {
		return ok
	}
	enough := done || r.pos-r.at >= maxHeld
	if r.scan.lead == 0 && !enough {
		return true
	}
	push := r.scan.lead == '>'
	if (push || r.scan.lead == '*' && !r.resp3) && (next.kind == confirmations || r.subs.any()) {
		if !enough {
			return true
		}
		word, channel, whole := announced(r.buf[r.at:r.pos])
		switch {
		case rediscmd.Is(word, rediscmd.Subscribes): // confirmed by its name
			r.confirmed(word, channel, whole, next)
			return true
		case isMessage(word):
			push = true
		}
	}
	if push {
		r.fate = passed
		return true
	}
	if owed && next.kind == confirmations { // an error instead
		r.c.pending.needs(1)
	}
	r.belongs(next, owed)
	return true
}

// next is what the next reply belongs to, if owed. ok is false if the connection
// has ended.
func (r *replies) next() (e expectation, owed, ok bool) {
	e, owed = r.c.pending.next()
	if owed && e.kind == mark { // told when what came before is delivered
		if !r.forward(r.at) {
			return e, false, false
		}
		e, owed = r.c.pending.next()
	}
	if owed && e.kind == opaque {
		r.raw = true
	}
	return e, owed, true
}

// confirmed takes note of a confirmation. It is a reply if it was asked for.
func (r *replies) confirmed(word string, channel []byte, whole bool, next expectation) {
	if !whole {
		r.blur()
		return
	}
	asked := next.kind == confirmations && next.word == word
	if asked && next.all {
		r.c.pending.needs(max(1, len(*r.subs.of(word))))
	}
	r.subs.confirm(word, channel)
	r.belongs(next, asked)
}

// belongs sets the fate of the value under way: it belongs to next if matched.
func (r *replies) belongs(next expectation, matched bool) {
	r.fate, r.matched, r.to = passed, matched, next
	if !matched || next.injection == nil {
		return
	}
	if next.injection.action.Verb != Trickle {
		r.fate = swallowed
		return
	}
	r.fate = trickled
	if !next.injection.fired {
		next.injection.fired = true
		r.c.fire(next.injection)
	}
}

// dispose drops or delays the bytes at hand of the value under way, if its fate
// is not simply to pass.
func (r *replies) dispose() bool {
	if r.fate != swallowed && r.fate != trickled {
		return true
	}
	if !r.forward(r.at) {
		return false
	}
	if r.fate == trickled && !r.c.closedToClient.Load() {
		err := r.c.trickle(r.c.client, Replies, r.buf[r.at:r.pos], r.to.injection.action.After)
		r.heard(err)
	}
	r.gone(r.pos)
	return true
}

// finish takes note of the end of the value under way.
func (r *replies) finish() bool {
	if r.fate == counted { // begun when there was nothing to decide
		if r.scan.lead != '>' {
			r.ended++
		}
		return r.forward(r.pos)
	}
	r.fate = counted
	if !r.matched {
		return true
	}
	switch lead := r.scan.lead; {
	case r.to.kind == aHello && (lead == '%' || lead == '*'):
		r.resp3 = lead == '%'
	case r.to.kind == aReset && lead == '+':
		r.subs, r.resp3 = subscriptions{}, false
	}
	if r.c.pending.arrived() && r.to.outcome != nil {
		r.c.closeToClient() // before the pump finds anything else
		r.c.pending.tell([]chan outcome{r.to.outcome}, reached)
	}
	return true
}

// forward sends the held bytes up to this position. It reports false if the
// connection is to end at once.
func (r *replies) forward(upTo int) bool {
	if upTo > r.from && !r.c.closedToClient.Load() {
		if !r.c.passes(Replies) {
			return false
		}
		if !r.c.closedToClient.Load() {
			_, err := r.c.client.Write(r.buf[r.from:upTo])
			r.heard(err)
		}
	}
	r.gone(upTo)
	r.c.pending.delivered(r.ended)
	r.ended = 0
	if r.clientGone && r.c.sent.Load() {
		reset(r.c.server)
		return false
	}
	return true
}

// heard notes whether the client accepts the bytes that are sent to it. If not,
// the requests that it sent before are still passed on.
func (r *replies) heard(err error) {
	if err != nil {
		r.clientGone = true
		r.c.closeToClient()
	}
}
