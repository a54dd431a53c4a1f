package history

import "encoding/binary"

// Presence bits of an encoded operation.
const (
	hasClient  = 1 << iota // another client than before
	hasAmount              // not 0
	hasKey                 // another key than before
	hasArg                 // not the number 0
	hasResult              // not the number 0
	hasFence               // not 0
	hasSession             // not 0
	hasUntil               // not 0
)

// minOpBytes is the length of the shortest operation: kind, outcome, presence
// and three times.
const minOpBytes = 6

// bigNumber, in place of a value, announces a number of 8 bytes; symbols
// are stored plus one to make room for it.
const bigNumber = 1

// deltaState is the state that encoder and decoder both keep of the earlier operations in the same frame, to store
// differences.
type deltaState struct {
	client      int32
	key         Value
	arg, result [256]int64 // last number, by kind of operation
	session     int64      // last number
	fence       int64
	ret, until  int64
}

// zigzag maps numbers near 0 to small numbers; unzigzag is its inverse.
func zigzag(n int64) uint64   { return uint64(n)<<1 ^ uint64(n>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func appendInt(b []byte, n int64) []byte { return binary.AppendUvarint(b, zigzag(n)) }

// appendOp encodes an operation as
//
//	kind     1 byte
//	outcome  1 byte: outcome | reason<<2
//	presence 1 byte: which of the fields in brackets follow
//	[client] difference to the client before
//	[amount]
//	[key] [arg] [result] [session]   values
//	[fence]  difference to the last one present
//	call     difference to the return of the operation before
//	due      call - due
//	return   difference to the call
//	[until]  difference to the last one present
//
// with all numbers as zigzag varints and "before" within the same frame, where everything begins at
// zero. A value is a varint: for symbol s, (s+1)<<1 | 1; for a number, the zigzag difference to the
// last number in that field of an operation of the same kind, <<1 (for a key: to zero; for a
// session: of any kind); or, when that has more than 63 bits, a 1 and then the number in 8 bytes,
// little endian.
func (s *symbols) appendOp(b []byte, c *deltaState, op *Op) []byte {
	at := len(b) + 2
	b = append(b, byte(op.Kind), byte(op.Outcome)|byte(op.Reason)<<2, 0)
	has := byte(0)
	if op.Client != c.client {
		has |= hasClient
		b = appendInt(b, int64(op.Client)-int64(c.client))
		c.client = op.Client
	}
	if op.Amount != 0 {
		has |= hasAmount
		b = appendInt(b, int64(op.Amount))
	}
	b, values := s.appendValues(b, c, op)
	b, numbers := appendNumbers(b, c, op)
	b[at] = has | values | numbers
	return b
}

func (s *symbols) appendValues(b []byte, c *deltaState, op *Op) (_ []byte, has byte) {
	if op.Key != c.key {
		has |= hasKey
		b = s.appendValue(b, op.Key, 0)
		c.key = op.Key
	}
	if op.Arg != (Value{}) {
		has |= hasArg
		b = s.appendValue(b, op.Arg, c.arg[op.Kind])
		c.arg[op.Kind] = op.Arg.num
	}
	if op.Result != (Value{}) {
		has |= hasResult
		b = s.appendValue(b, op.Result, c.result[op.Kind])
		c.result[op.Kind] = op.Result.num
	}
	if op.Session != (Value{}) {
		has |= hasSession
		b = s.appendValue(b, op.Session, c.session)
		c.session = op.Session.num
	}
	return b, has
}

func (s *symbols) appendValue(b []byte, v Value, last int64) []byte {
	if v.text != noText {
		return binary.AppendUvarint(b, (uint64(s.index(v))+1)<<1|1)
	}
	d := zigzag(v.num - last)
	if d>>63 == 0 {
		return binary.AppendUvarint(b, d<<1)
	}
	return binary.LittleEndian.AppendUint64(append(b, bigNumber), uint64(v.num))
}

func appendNumbers(b []byte, c *deltaState, op *Op) (_ []byte, has byte) {
	if op.Fence != 0 {
		has |= hasFence
		b = appendInt(b, op.Fence-c.fence)
		c.fence = op.Fence
	}
	b = appendInt(b, int64(op.Call)-c.ret)
	b = appendInt(b, int64(op.Call-op.Due))
	b = appendInt(b, int64(op.Return-op.Call))
	c.ret = int64(op.Return)
	if op.Until != 0 {
		has |= hasUntil
		b = appendInt(b, int64(op.Until)-c.until)
		c.until = int64(op.Until)
	}
	return b, has
}

// symbols numbers the texts of a file in order of appearance. It keeps them all: texts are meant to be few.
type symbols struct {
	indexes map[Value]uint32
	fresh   []Value // not in the file yet
	recent  [8]struct {
		text  Value
		index uint32
	}
	oldest uint8 // place in recent
}

// index returns the number of a text. Most lookups are for one of a few texts.
func (s *symbols) index(text Value) uint32 {
	for i := range s.recent {
		if s.recent[i].text == text {
			return s.recent[i].index
		}
	}
	i, known := s.indexes[text]
	if !known {
		i = uint32(len(s.indexes))
		s.indexes[text] = i
		s.fresh = append(s.fresh, text)
	}
	r := &s.recent[s.oldest%uint8(len(s.recent))]
	r.text, r.index = text, i
	s.oldest++
	return i
}
