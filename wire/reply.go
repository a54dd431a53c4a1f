package wire

import "bytes"

// replyScanner finds where the values in a stream of replies end, however the
// stream is cut. It looks at the heads of values only and skips over the rest.
//
// It is written for the bytes of RESP3, of which those of RESP2 are a part. An
// attribute belongs to the value that it precedes.
type replyScanner struct {
	// lead is the type of the value under way, behind its attributes; 0 until it
	// is known.
	lead byte

	// open holds, for each aggregate under way, the number of elements still to come,
	// the outermost first.
	open []int64
	// attributes are the aggregates at the bottom of open that are attributes of
	// the value under way.
	attributes int
	state      replyState
	typ        byte // of the line being read
	length     number
	body       int64 // bytes of a string that are still to come
}

type replyState uint8

const (
	atType   replyState = iota
	inLine              // in a line that is a value
	inLength            // in a line that gives a length
	inBody              // in the bytes of a string
	atReturn            // behind them, before \r
	atFeed              // before the \n that ends a line or a string
)

const (
	// In open, untilDot stands for an aggregate and untilEmpty for a string that
	// is sent in an unknown number of parts.
	untilDot   = -1
	untilEmpty = -2
	// maxDepth bounds how deep values nest; Redis stays far below.
	maxDepth = 4096
	// maxCount bounds an aggregate's announced elements, so that doubling does not
	// overflow.
	maxCount = 1 << 40
)

// between says that no value is under way.
func (s *replyScanner) between() bool { return s.state == atType && len(s.open) == 0 }

// scan looks at the next bytes of the stream, up to the end of a value, and
// returns how many those were. ok is false when they are not RESP.
func (s *replyScanner) scan(b []byte) (n int, done, ok bool) {
	if s.between() {
		s.lead, s.attributes = 0, 0
	}
	for n < len(b) {
		switch s.state {
		case atType:
			ok = s.begin(b[n])
			n++
		case inLine:
			i := bytes.IndexByte(b[n:], '\r')
			if i < 0 {
				return len(b), false, true
			}
			n += i + 1
			s.state, ok = atFeed, true
		case inLength:
			if b[n] == '\r' {
				s.state, ok = atFeed, s.length.complete()
			} else {
				ok = s.length.add(b[n])
			}
			n++
		case inBody:
			step := min(s.body, int64(len(b)-n))
			s.body -= step
			n += int(step)
			if s.body == 0 {
				s.state = atReturn
			}
			ok = true
		case atReturn:
			ok = b[n] == '\r'
			s.state = atFeed
			n++
		case atFeed:
			if b[n] != '\n' && isLine(s.typ) {
				s.state, ok = inLine, true // a lone \r is part of the line
				continue
			}
			ok = b[n] == '\n'
			s.state = atType
			n++
			if ok {
				done, ok = s.lineEnded()
			}
		}
		if !ok || done {
			return n, done, ok
		}
	}
	return n, false, true
}

// begin reads a type.
func (s *replyScanner) begin(typ byte) bool {
	s.typ = typ
	wanted := s.wanted()
	switch typ {
	case ';':
		s.state, s.length = inLength, number{}
		return wanted == untilEmpty
	case '.':
		s.state = atReturn
		return wanted == untilDot
	}
	if wanted == untilEmpty {
		return false
	}
	s.noteLead(typ)
	switch {
	case isLine(typ):
		s.state = inLine
	case isLong(typ):
		s.state, s.length = inLength, number{}
	default:
		return false
	}
	return true
}

// isLine says that a value of this type is one line.
func isLine(typ byte) bool {
	switch typ {
	case '+', '-', ':', '_', '#', ',', '(':
		return true
	}
	return false
}

// isLong says that a value of this type begins with a length.
func isLong(typ byte) bool {
	switch typ {
	case '$', '!', '=', '*', '~', '>', '%', '|':
		return true
	}
	return false
}

// wanted is how many values the innermost aggregate still wants.
func (s *replyScanner) wanted() int64 {
	if len(s.open) == 0 {
		return 0
	}
	return s.open[len(s.open)-1]
}

// noteLead remembers the type of the value under way. An attribute counts itself
// among the values it wants, so the value it precedes is its last one.
func (s *replyScanner) noteLead(typ byte) {
	if len(s.open) != s.attributes || s.attributes > 0 && s.wanted() != 1 {
		return
	}
	if typ == '|' {
		s.attributes++
	} else if s.lead == 0 {
		s.lead = typ
	}
}

// lineEnded is called behind each \r\n.
func (s *replyScanner) lineEnded() (done, ok bool) {
	typ := s.typ
	s.typ = 0
	switch typ {
	case '$', '!', '=', ';':
		return s.stringBegun(typ)
	case '*', '~', '>', '%', '|':
		return s.aggregateBegun(typ)
	case '.':
		s.open = s.open[:len(s.open)-1]
	case 0: // behind the bytes of a string
		if s.wanted() == untilEmpty {
			return false, true
		}
	}
	return s.valueEnded(), true
}

// stringBegun reads the length of a string, or of a part of one.
func (s *replyScanner) stringBegun(typ byte) (done, ok bool) {
	switch {
	case typ == ';' && s.length.value == 0:
		s.open = s.open[:len(s.open)-1]
		return s.valueEnded(), !s.length.negative && !s.length.unknown
	case s.length.negative:
		return s.valueEnded(), typ == '$'
	case s.length.unknown:
		return false, typ == '$' && s.nest(untilEmpty)
	}
	s.body, s.state = s.length.value, inBody
	if s.body == 0 {
		s.state = atReturn
	}
	return false, true
}

// aggregateBegun reads the number of an aggregate's elements.
func (s *replyScanner) aggregateBegun(typ byte) (done, ok bool) {
	n := s.length.value
	switch {
	case s.length.negative:
		return s.valueEnded(), typ == '*'
	case s.length.unknown:
		return false, typ != '|' && typ != '>' && s.nest(untilDot)
	case n > maxCount:
		return false, false
	case typ == '%':
		n *= 2
	case typ == '|':
		n = 2*n + 1
	}
	if n == 0 {
		return s.valueEnded(), true
	}
	return false, s.nest(n)
}

func (s *replyScanner) nest(wanted int64) bool {
	s.open = append(s.open, wanted)
	return len(s.open) <= maxDepth
}

// valueEnded closes the aggregates that wanted nothing but this value, and is
// true when that was all.
func (s *replyScanner) valueEnded() bool {
	for len(s.open) > 0 {
		last := &s.open[len(s.open)-1]
		if *last > 0 {
			*last--
		}
		if *last != 0 {
			return false
		}
		s.open = s.open[:len(s.open)-1]
	}
	return true
}

// number is a length as it is read digit by digit: 0 or more without leading
// zeros, -1 for a null, or "?" if it is not known yet.
type number struct {
	value    int64
	digits   int
	negative bool
	unknown  bool
}

// add takes the next byte. It reports false if the byte is no part of a number.
func (n *number) add(c byte) bool {
	switch {
	case n.unknown:
		return false
	case c >= '0' && c <= '9' && n.digits < 15 && (n.digits == 0 || n.value > 0):
		n.value = n.value*10 + int64(c-'0')
		n.digits++
		return !n.negative || n.value == 1
	case c == '-' && n.digits == 0 && !n.negative:
		n.negative = true
		return true
	case c == '?' && n.digits == 0 && !n.negative:
		n.unknown = true
		return true
	}
	return false
}

// complete says that this is a number.
func (n *number) complete() bool { return n.digits > 0 || n.unknown }
