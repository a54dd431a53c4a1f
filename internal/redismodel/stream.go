package redismodel

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/internal/redismodel/lua"
)

// stream is a stream with its groups. An empty one is still a key.
type stream struct {
	entries []streamEntry // by id
	used    int           // upper bound of the bytes used since the stream was last empty
	last    streamID
	groups  []group // by name
}

type streamEntry struct {
	id    streamID
	texts []string // fields and values
}

type streamID struct{ ms, seq uint64 }

// group is a consumer group. A consumer without pending entries is not kept.
type group struct {
	name    string
	last    streamID
	pending []pending // by id
}

// pending is an entry delivered to a consumer.
type pending struct {
	id       streamID
	consumer string
	idle     int64 // microseconds since the last delivery
	count    int64 // deliveries
}

var maxID = streamID{math.MaxUint64, math.MaxUint64}

func (a streamID) compare(b streamID) int {
	return cmp.Or(cmp.Compare(a.ms, b.ms), cmp.Compare(a.seq, b.seq))
}

func (a streamID) String() string {
	return strconv.FormatUint(a.ms, 10) + "-" + strconv.FormatUint(a.seq, 10)
}

// next returns the smallest id above a.
func (a streamID) next() (streamID, bool) {
	if a.seq < math.MaxUint64 {
		return streamID{a.ms, a.seq + 1}, true
	}
	return streamID{a.ms + 1, 0}, a.ms < math.MaxUint64
}

// before returns the largest id below a.
func (a streamID) before() (streamID, bool) {
	if a.seq > 0 {
		return streamID{a.ms, a.seq - 1}, true
	}
	return streamID{a.ms - 1, math.MaxUint64}, a.ms > 0
}

func appendID(b []byte, id streamID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, id.ms), id.seq)
}

func (*stream) kind() string { return "stream" }

func (v *stream) later(us int64) value {
	return v.mapGroups(func(g group) group {
		g.pending = slices.Clone(g.pending)
		for i := range g.pending {
			g.pending[i].idle += us
		}
		return g
	})
}

// mapGroups returns a copy of the stream with f applied to each of its groups.
func (v *stream) mapGroups(f func(g group) group) *stream {
	next := *v
	next.groups = make([]group, len(v.groups))
	for i, g := range v.groups {
		next.groups[i] = f(g)
	}
	return &next
}

func (v *stream) renamed(f func(string) string) value {
	next := v.mapGroups(func(g group) group {
		g.name = f(g.name)
		g.pending = slices.Clone(g.pending)
		for i := range g.pending {
			g.pending[i].consumer = f(g.pending[i].consumer)
		}
		return g
	})
	slices.SortFunc(next.groups, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	next.entries = slices.Clone(v.entries)
	for i := range next.entries {
		next.entries[i].texts = renamedTexts(next.entries[i].texts, f)
	}
	return next
}

func (v *stream) appendKey(b []byte) []byte {
	b = appendID(appendCount(appendCount(append(b, 'x'), len(v.entries)), v.used), v.last)
	for _, e := range v.entries {
		b = appendStrings(appendID(b, e.id), e.texts)
	}
	b = appendCount(b, len(v.groups))
	for _, g := range v.groups {
		b = appendCount(appendID(appendString(b, g.name), g.last), len(g.pending))
		for _, p := range g.pending {
			b = appendString(appendID(b, p.id), p.consumer)
			b = binary.AppendVarint(binary.AppendVarint(b, p.idle), p.count)
		}
	}
	return b
}

func (v *stream) appendText(b []byte) []byte {
	b = appendList(b, '[', ']', len(v.entries), func(b []byte, i int) []byte {
		e := v.entries[i]
		b = append(append(b, e.id.String()...), ':')
		return appendList(b, '{', '}', len(e.texts)/2, func(b []byte, i int) []byte {
			return appendQuoted(append(appendQuoted(b, e.texts[2*i]), ':'), e.texts[2*i+1])
		})
	})
	for _, g := range v.groups {
		b = append(appendQuoted(append(b, ' '), g.name), ':')
		b = appendList(b, '{', '}', len(g.pending), func(b []byte, i int) []byte {
			p := g.pending[i]
			b = appendQuoted(append(append(b, p.id.String()...), "->"...), p.consumer)
			b = append(strconv.AppendInt(append(b, '/'), p.count, 10), " since "...)
			return appendTime(b, p.idle)
		})
	}
	return b
}

func (v *stream) find(id streamID) (int, bool) {
	return slices.BinarySearchFunc(v.entries, id, func(e streamEntry, id streamID) int { return e.id.compare(id) })
}

// between returns the entries from one id to another, both included.
func (v *stream) between(from, to streamID) []streamEntry {
	i, _ := v.find(from)
	j, there := v.find(to)
	if there {
		j++
	}
	if i >= j {
		return nil
	}
	return v.entries[i:j]
}

func (v *stream) group(name string) (int, bool) {
	return slices.BinarySearchFunc(v.groups, name, func(g group, name string) int { return cmp.Compare(g.name, name) })
}

// withGroup returns a copy of the stream in which group i is replaced by g.
func (v *stream) withGroup(i int, g group) *stream {
	next := *v
	next.groups = slices.Clone(v.groups)
	next.groups[i] = g
	return &next
}

func (g group) find(id streamID) (int, bool) {
	return slices.BinarySearchFunc(g.pending, id, func(p pending, id streamID) int { return p.id.compare(id) })
}

// parseID parses a stream id, or replies an error. seq is the sequence number if the id has none.
// An id that only C's strtoull would accept is unknown.
func (x *exec) parseID(s string, seq uint64) (streamID, bool) {
	ms, rest, hasSeq := strings.Cut(s, "-")
	id := streamID{seq: seq}
	var err error
	if id.ms, err = strconv.ParseUint(ms, 10, 64); err == nil && hasSeq {
		id.seq, err = strconv.ParseUint(rest, 10, 64)
	}
	if err == nil {
		return id, true
	}
	if strings.ContainsAny(s, "+ \t\r\n\v\f") && strings.ContainsAny(s, "0123456789") {
		x.Unknown("the stream id " + s)
	}
	x.Err("ERR Invalid stream ID specified as stream command argument")
	return id, false
}

// parseIDBound reads one end of a range of ids.
func (x *exec) parseIDBound(s string, seq uint64) (id streamID, open, ok bool) {
	switch s {
	case "-":
		return streamID{}, false, true
	case "+":
		return maxID, false, true
	}
	s, open = strings.CutPrefix(s, "(")
	id, ok = x.parseID(s, seq)
	return id, open, ok
}

// from reads the beginning of a range of ids.
func (x *exec) from(s string) (streamID, bool) {
	id, open, ok := x.parseIDBound(s, 0)
	if ok && open {
		if id, ok = id.next(); !ok {
			x.Err("ERR invalid start ID for the interval")
		}
	}
	return id, ok
}

// to reads the end of a range of ids.
func (x *exec) to(s string) (streamID, bool) {
	id, open, ok := x.parseIDBound(s, math.MaxUint64)
	if ok && open {
		if id, ok = id.before(); !ok {
			x.Err("ERR invalid end ID for the interval")
		}
	}
	return id, ok
}

// stream returns the stream under a key, nil if there is none.
func (x *exec) stream(key string) (*stream, bool) { return typed[*stream](x, key) }

// group returns a group of a stream, or replies an error; context ends the message.
func (x *exec) group(key, name, context string) (s *stream, i int, ok bool) {
	if s, ok = x.stream(key); !ok {
		return nil, 0, false
	}
	if s != nil {
		if i, ok = s.group(name); ok {
			return s, i, true
		}
	}
	x.Err("NOGROUP No such key '" + lua.CString(key) + "' or consumer group '" + lua.CString(name) + "'" + context)
	return nil, 0, false
}
