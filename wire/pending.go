package wire

import (
	"strings"
	"sync"
	"sync/atomic"
)

// expectation describes the replies that the server still owes to one command, or to several
// plain ones in a row.
type expectation struct {
	kind expected
	n    int // replies or confirmations
	// word is the command that these replies confirm, in lower case. all says that
	// the command names no channels: then there is one confirmation for each
	// subscription.
	word string
	all  bool
	// injection is what happens to the reply; nil: nothing.
	injection *injection
	// outcome receives the outcome of a mark, or of a reply to be dropped.
	outcome chan outcome
	// last says that no byte after these replies may reach the client.
	last bool
}

type expected uint8

const (
	aReply        expected = iota
	confirmations          // of a subscription, one for each channel
	aHello                 // its type tells the protocol
	aReset                 // subscriptions and protocol are gone
	// mark is no reply: its outcome is sent when everything before it was delivered.
	mark
	// opaque is no reply: from here on nothing can be matched.
	opaque
)

var unfollowed = expectation{kind: opaque}

// confirmationsOf returns the confirmations of a command that subscribes to a
// number of channels or unsubscribes from them.
func confirmationsOf(command string, channels int64) expectation {
	word := strings.ToLower(command)
	return expectation{
		kind: confirmations,
		n:    int(max(1, channels)),
		word: word,
		all:  channels == 0 && strings.Contains(word, "unsubscribe"),
	}
}

// outcome is the result of a mark, or of a reply to be dropped, for which the
// requests' side waits.
type outcome uint8

const (
	notYet    outcome = iota
	reached           // it came
	lost              // the server closed the connection, or reset it
	unmatched         // replies of this connection can no longer be matched
)

// pending are the replies that a server still owes to a connection, in order.
// The requests' side adds to it before it sends, so a reply is never earlier than
// its expectation.
type pending struct {
	// special counts the expectations that are not plain replies.
	special atomic.Int32
	// wake gets the requests' side to look for an outcome; it is called before
	// the outcome is there.
	wake func()
	// closeToClient stops all output to the client.
	closeToClient func()

	mu    sync.Mutex
	queue []expectation
	first int
	// undelivered says that a reply was taken off the queue, but its bytes have
	// not been written to the client yet.
	undelivered bool
	// over is set when no more replies will be matched.
	over outcome
}

// replies adds plain replies.
func (p *pending) replies(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over != notYet {
		return
	}
	if last := len(p.queue) - 1; last >= p.first && p.queue[last].isPlain() {
		p.queue[last].n += n
		return
	}
	p.append(expectation{kind: aReply, n: n})
}

// add adds anything else. An outcome that is known at once is returned and not
// sent to its channel.
func (p *pending) add(e expectation) outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over != notYet:
		return p.over
	case e.kind == mark && p.first == len(p.queue) && !p.undelivered:
		return reached
	}
	p.append(e)
	return notYet
}

func (p *pending) append(e expectation) {
	if p.first == len(p.queue) {
		p.queue, p.first = p.queue[:0], 0
	} else if p.first > 64 && p.first > len(p.queue)/2 {
		n := copy(p.queue, p.queue[p.first:])
		clear(p.queue[n:])
		p.queue, p.first = p.queue[:n], 0
	}
	if !e.isPlain() {
		p.special.Add(1)
	}
	p.queue = append(p.queue, e)
}

func (e *expectation) isPlain() bool { return e.kind == aReply && e.injection == nil }

// next is what the next reply belongs to; ok is false if nothing is owed.
func (p *pending) next() (e expectation, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.first == len(p.queue) {
		return expectation{}, false
	}
	return p.queue[p.first], true
}

// arrived takes one reply off the next expectation, and reports whether it was the
// last one of it.
func (p *pending) arrived() (finished bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undelivered = true
	e := &p.queue[p.first]
	if e.n--; e.n > 0 {
		return false
	}
	p.drop()
	return true
}

// needs sets how many confirmations the next expectation has, once that is
// known.
func (p *pending) needs(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue[p.first].n, p.queue[p.first].all = n, false
}

// drop takes the first expectation off.
func (p *pending) drop() {
	if !p.queue[p.first].isPlain() {
		p.special.Add(-1)
	}
	p.queue[p.first] = expectation{}
	p.first++
}

// delivered removes n plain replies: these and all that were removed before have been
// written to the client. It sends their outcome to the marks before the next reply.
func (p *pending) delivered(n int) {
	p.mu.Lock()
	p.undelivered = false
	for n > 0 && p.first < len(p.queue) && p.queue[p.first].isPlain() {
		e := &p.queue[p.first]
		taken := min(n, e.n)
		n -= taken
		if e.n -= taken; e.n == 0 {
			p.drop()
		}
	}
	var told []chan outcome
	for p.first < len(p.queue) && p.queue[p.first].kind == mark {
		if p.queue[p.first].last {
			p.closeToClient()
		}
		told = append(told, p.queue[p.first].outcome)
		p.drop()
	}
	p.mu.Unlock()
	p.tell(told, reached)
}

// end says that no more replies will be matched.
func (p *pending) end(why outcome) {
	p.mu.Lock()
	var told []chan outcome
	for ; p.first < len(p.queue); p.drop() {
		if c := p.queue[p.first].outcome; c != nil {
			told = append(told, c)
		}
	}
	if p.over == notYet || why == lost {
		p.over = why
	}
	p.mu.Unlock()
	p.tell(told, why)
}

func (p *pending) tell(whom []chan outcome, what outcome) {
	if len(whom) == 0 {
		return
	}
	p.wake()
	for _, c := range whom {
		c <- what
	}
}
