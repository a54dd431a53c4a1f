package redismodel

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// Key returns an encoding of the keys and watches: two states of a family have equal keys if and
// only if these are equal. Expiries are encoded as the time left, so equal states at different
// times have equal keys. Loaded scripts are not encoded.
func (s *State) Key() string {
	b := make([]byte, 0, 32*len(s.entries)+16*len(s.watches)+4)
	b = appendCount(b, len(s.entries))
	for _, e := range s.entries {
		b = appendString(b, e.key)
		b = binary.AppendVarint(b, e.left)
		b = e.val.appendKey(b)
	}
	for _, w := range s.watches {
		b = appendCount(b, w.conn)
		if w.dirty {
			b = append(b, 'd')
			continue
		}
		b = append(b, 'w')
		b = appendStrings(b, w.keys)
	}
	return string(b)
}

func appendCount(b []byte, n int) []byte { return binary.AppendUvarint(b, uint64(n)) }

func appendString(b []byte, s string) []byte { return append(appendCount(b, len(s)), s...) }

func appendStrings(b []byte, s []string) []byte {
	b = appendCount(b, len(s))
	for _, t := range s {
		b = appendString(b, t)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(b, math.Float64bits(f))
}

// Text describes the stored data in readable form, in one line: "Lock:order=token (1 s)
// Queue:x={a:1.5}". only selects keys; nil means all.
func (s *State) Text(only func(key string) bool) string {
	var b []byte
	for _, e := range s.entries {
		if only != nil && !only(e.key) {
			continue
		}
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = appendQuoted(b, e.key)
		b = append(b, '=')
		b = e.val.appendText(b)
		if e.left >= 0 {
			b = append(b, " ("...)
			b = appendTime(b, e.left)
			b = append(b, ')')
		}
	}
	return string(b)
}

// appendQuoted quotes only what would be hard to read.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '{' || c == '}' || c == ',' {
			return strconv.AppendQuote(b, s)
		}
	}
	if s == "" {
		return append(b, `""`...)
	}
	return append(b, s...)
}

func appendTime(b []byte, us int64) []byte {
	d := time.Duration(us) * time.Microsecond
	if d < time.Second {
		return append(strconv.AppendFloat(b, float64(us)/1e3, 'f', -1, 64), " ms"...)
	}
	return append(strconv.AppendFloat(b, d.Seconds(), 'f', -1, 64), " s"...)
}

// appendList appends n items, separated by spaces, between the bytes open and end.
func appendList(b []byte, open, end byte, n int, item func(b []byte, i int) []byte) []byte {
	b = append(b, open)
	for i := range n {
		if i > 0 {
			b = append(b, ' ')
		}
		b = item(b, i)
	}
	return append(b, end)
}
