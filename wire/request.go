package wire

import "bytes"

// requestScanner finds the arguments and the end of each request in a stream,
// however the stream is cut. A request is an array of bulk strings, or a line.
type requestScanner struct {
	// args are the arguments found so far, counted from the first byte of the
	// request. Those of a line are not among them: see splitLine.
	args []span
	// announced is how many arguments the request says it has.
	announced int64
	// line says that the request is a line, and size how long it is so far.
	line bool
	size int

	left   int64 // arguments still to come
	state  requestState
	length number
	body   int64
}

// span is where an argument lies; its end may be still to come.
type span struct{ from, to int }

type requestState uint8

const (
	atStart     requestState = iota
	inAnnounced              // in the number of arguments
	afterNumber              // behind \r
	atDollar                 // before an argument
	inArgLength
	afterArgLength
	inArg
	atArgReturn
	atArgFeed
	inText // in a request that is a line
)

const (
	// maxArgs bounds what a request may announce. Redis accepts no more.
	maxArgs = 1<<31 - 1
	// maxArg bounds the length of an argument. Redis accepts no more, unless it is
	// configured to (proto-max-bulk-len): it answers "-ERR Protocol error: invalid
	// bulk length" before it sees the argument, and closes the connection.
	maxArg = 512 << 20
)

// restart forgets the request that ended.
func (s *requestScanner) restart() {
	*s = requestScanner{args: s.args[:0]}
}

// scan looks at the next bytes of the request under way, up to its end, and
// returns how many those were. ok is false when they are not a request that the
// server would understand. After the end, restart must be called.
func (s *requestScanner) scan(b []byte) (n int, done, ok bool) {
	before := s.size
	for n < len(b) && !done {
		step := 1
		switch s.state {
		case atStart:
			ok = s.begin(b[n])
			if s.line {
				step = 0
			}
		case inText:
			step, done, ok = text(b[n:])
		case inArg:
			step, ok = int(min(s.body, int64(len(b)-n))), true
			if s.body -= int64(step); s.body == 0 {
				s.state = atArgReturn
			}
		default:
			s.size = before + n + 1
			done, ok = s.step(b[n])
		}
		n += step
		s.size = before + n
		if !ok {
			return n, false, false
		}
	}
	return n, done, true
}

func (s *requestScanner) begin(c byte) bool {
	if c == '*' {
		s.state = inAnnounced
		return true
	}
	s.state, s.line = inText, true
	return true
}

// step takes one of the bytes around the arguments.
func (s *requestScanner) step(c byte) (done, ok bool) {
	switch s.state {
	case inAnnounced, inArgLength:
		if c == '\r' {
			s.state++
			return false, s.length.complete()
		}
		return false, s.length.add(c)
	case afterNumber:
		return s.announce(c)
	case atDollar:
		s.state, s.length = inArgLength, number{}
		return false, c == '$'
	case afterArgLength:
		return false, s.beginArg(c)
	case atArgReturn:
		s.state = atArgFeed
		return false, c == '\r'
	case atArgFeed:
		s.left--
		s.state = atDollar
		return s.left == 0, c == '\n'
	}
	return false, false
}

// announce ends the line with the number of arguments. Redis ignores a request
// of none.
func (s *requestScanner) announce(c byte) (done, ok bool) {
	if c != '\n' || s.length.unknown || s.length.value > maxArgs {
		return false, false
	}
	if s.length.negative || s.length.value == 0 {
		return true, true
	}
	s.announced, s.left = s.length.value, s.length.value
	s.state = atDollar
	return false, true
}

// beginArg ends the line with an argument's length.
func (s *requestScanner) beginArg(c byte) bool {
	if c != '\n' || s.length.negative || s.length.unknown || s.length.value > maxArg {
		return false
	}
	s.body, s.state = s.length.value, inArg
	if s.body == 0 {
		s.state = atArgReturn
	}
	if s.size < maxHeld {
		s.args = append(s.args, span{s.size, s.size + int(s.body)})
	}
	return true
}

// text passes over a line, which must be printable. A byte that is not means
// another protocol, whose first bytes may contain no end of a line.
func text(b []byte) (n int, done, ok bool) {
	n = bytes.IndexByte(b, '\n') + 1
	done = n > 0
	if !done {
		n = len(b)
	}
	for _, c := range b[:n] {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			return n, false, false
		}
	}
	return n, done, true
}
