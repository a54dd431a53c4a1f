package redismodel

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"oversell/internal/redismodel/lua"
)

var streamCommands = []command{
	{name: "xadd", run: xadd},
	{name: "xtrim", run: xtrim},
	{name: "xlen", run: onStream(xlen)},
	{name: "xrange", run: xrange(false)},
	{name: "xrevrange", run: xrange(true)},
	{name: "xdel", run: onStream(xdel)},
	{name: "xgroup"},
	{name: "xgroup|create", run: xgroupCreate},
	{name: "xread", run: xread},
	{name: "xreadgroup", run: xreadgroup},
	{name: "xack", run: onStream(xack)},
	{name: "xpending", run: xpending},
	{name: "xautoclaim", run: xautoclaim},
}

func xadd(x *exec, a []string) {
	i, create, limit := 2, true, maxLen{n: unlimited}
options:
	for ; i < len(a); i++ {
		switch option := strings.ToLower(a[i]); option {
		case "nomkstream":
			create = false
		case "maxlen":
			n, ok := x.maxLen(a, &i, limit)
			if !ok {
				return
			}
			limit = n
		case "minid", "limit":
			x.Unknown("the option " + a[i] + " of XADD")
			return
		default:
			break options
		}
	}
	if i == len(a) {
		x.wrongArity("xadd")
		return
	}
	want, auto, ok := x.newID(a[i])
	if !ok {
		return
	}
	texts := a[i+1:]
	if len(texts) < 2 || len(texts)%2 == 1 {
		x.wrongArity("xadd")
		return
	}
	if auto == autoNothing && want == (streamID{}) {
		x.Err("ERR The ID specified in XADD must be greater than 0-0")
		return
	}
	s, ok := x.stream(a[1])
	if !ok {
		return
	}
	if s == nil {
		if !create {
			x.Null()
			return
		}
		s = &stream{}
	}
	if s.last == maxID {
		x.Err("ERR The stream has exhausted the last possible ID, unable to add more items")
		return
	}
	id, ok := x.nextID(s.last, want, auto)
	if !ok {
		x.Err("ERR The ID specified in XADD is equal or smaller than the target stream top item")
		return
	}
	next := *s
	next.entries = insert(s.entries, len(s.entries), streamEntry{id, slices.Clone(texts)})
	next.last = id
	next.used += bytesOf(texts)
	next.trim(x, limit)
	x.put(a[1], &next)
	x.Bulk(id.String())
}

// unlimited is the length of a stream that is not trimmed.
const unlimited = math.MaxInt64

// maxLen is the option MAXLEN.
type maxLen struct {
	n       int64
	roughly bool // ~: the server removes only whole nodes
}

// nodeBytes is how many bytes fit into one node of a stream by default. A node holds up to 100 entries, which need
// more by bytesOf.
const nodeBytes = 4096

// bytesOf returns an upper bound on the bytes that an entry with these fields and values takes in a
// node.
func bytesOf(texts []string) int {
	n := 48
	for _, t := range texts {
		n += 12 + len(t)
	}
	return n
}

// trim removes the oldest entries until to.n are left, and returns how many it removed. MAXLEN ~
// removes none while the stream has one node, unless to.n is 0.
func (s *stream) trim(x *exec, to maxLen) int {
	n := len(s.entries) - int(min(to.n, int64(len(s.entries))))
	if to.roughly && to.n > 0 && n > 0 {
		if s.used > nodeBytes {
			x.Unknown("MAXLEN ~ of a stream that may have several nodes")
		}
		return 0 // there is one node
	}
	s.keep(s.entries[n:len(s.entries):len(s.entries)])
	return n
}

// keep replaces the entries by some of them.
func (s *stream) keep(entries []streamEntry) {
	if s.entries = entries; len(entries) == 0 {
		s.used = 0
	}
}

// maxLen parses the option MAXLEN at a[*i], and leaves *i at its last argument. before is the
// MAXLEN parsed so far.
func (x *exec) maxLen(a []string, i *int, before maxLen) (to maxLen, ok bool) {
	at := *i + 1
	if at < len(a) && (a[at] == "=" || a[at] == "~") {
		to.roughly = a[at] == "~"
		at++
	}
	if at >= len(a) || before.n != unlimited || at+1 < len(a) && strings.EqualFold(a[at+1], "limit") {
		x.Unknown("the option " + a[*i] + " with other words than one number")
		return to, false
	}
	*i = at
	to.n, ok = parseInt(a[at])
	switch {
	case !ok:
		x.notInteger()
		return to, false
	case to.n < 0:
		x.Err("ERR The MAXLEN argument must be >= 0.")
		return to, false
	}
	return to, true
}

func xtrim(x *exec, a []string) {
	i := 2
	if !strings.EqualFold(a[i], "maxlen") {
		x.Unknown("the option " + a[i] + " of XTRIM")
		return
	}
	to, ok := x.maxLen(a, &i, maxLen{n: unlimited})
	if !ok {
		return
	}
	if i != len(a)-1 {
		x.Unknown("the option " + a[i+1] + " of XTRIM")
		return
	}
	s, ok := x.stream(a[1])
	if !ok || s == nil {
		if ok {
			x.Int(0)
		}
		return
	}
	next := *s
	n := next.trim(x, to)
	if n > 0 {
		x.put(a[1], &next)
	}
	x.Int(int64(n))
}

// The part of an id that the server must generate.
const (
	autoNothing = iota
	autoSeq
	autoID
)

func (x *exec) newID(s string) (id streamID, auto int, ok bool) {
	if s == "*" {
		return streamID{}, autoID, true
	}
	if ms, isAuto := strings.CutSuffix(s, "-*"); isAuto && !strings.Contains(ms, "-") {
		id, ok = x.parseID(ms, 0)
		return id, autoSeq, ok
	}
	id, ok = x.parseID(s, 0)
	return id, autoNothing, ok
}

// nextID returns the id of an entry that comes after last.
func (x *exec) nextID(last, want streamID, auto int) (streamID, bool) {
	switch {
	case auto == autoID:
		want = streamID{ms: uint64(x.mstime())}
		if want.compare(last) <= 0 {
			return last.next()
		}
	case auto == autoSeq && want.ms == last.ms:
		if last.seq == math.MaxUint64 { // the reply of Redis depends on earlier failures
			x.Unknown("the end of a millisecond's stream ids")
		}
		return streamID{last.ms, last.seq + 1}, last.seq < math.MaxUint64
	}
	return want, want.compare(last) > 0
}

// onStream returns the implementation of a command on a stream that replies 0 if the key does not
// exist.
func onStream(run func(x *exec, s *stream, a []string)) func(x *exec, a []string) {
	return on(func(x *exec, s *stream, a []string) {
		if s == nil {
			x.Int(0)
			return
		}
		run(x, s, a)
	})
}

func xlen(x *exec, s *stream, _ []string) { x.Int(int64(len(s.entries))) }

func (x *exec) streamEntries(entries []streamEntry) {
	x.Array(len(entries))
	for _, e := range entries {
		x.Array(2)
		x.Bulk(e.id.String())
		x.bulks(e.texts)
	}
}

func xrange(rev bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		first, last := a[2], a[3]
		if rev {
			first, last = last, first
		}
		from, ok := x.from(first)
		if !ok {
			return
		}
		to, ok := x.to(last)
		if !ok {
			return
		}
		count := int64(math.MaxInt64)
		for i := 4; i < len(a); i += 2 {
			if !strings.EqualFold(a[i], "count") || i+1 == len(a) {
				x.syntax()
				return
			}
			if count, ok = x.int64Arg(a[i+1]); !ok {
				return
			}
		}
		s, ok := x.stream(a[1])
		switch {
		case !ok:
			return
		case s == nil:
			x.Array(0)
			return
		case count <= 0:
			x.nullArray()
			return
		}
		entries := s.between(from, to)
		if rev {
			entries = slices.Clone(entries)
			slices.Reverse(entries)
		}
		x.streamEntries(entries[:min(count, int64(len(entries)))])
	}
}

// ids reads a list of ids.
func (x *exec) ids(texts []string) ([]streamID, bool) {
	ids := make([]streamID, len(texts))
	for i, t := range texts {
		var ok bool
		if ids[i], ok = x.parseID(t, 0); !ok {
			return nil, false
		}
	}
	return ids, true
}

func xdel(x *exec, s *stream, a []string) {
	ids, ok := x.ids(a[2:])
	if !ok {
		return
	}
	next := *s
	for _, id := range ids {
		if i, there := next.find(id); there {
			next.keep(cut(next.entries, i))
		}
	}
	n := len(s.entries) - len(next.entries)
	if n > 0 {
		x.put(a[1], &next)
	}
	x.Int(int64(n))
}

func xgroupCreate(x *exec, a []string) {
	makeStream := false
	for _, option := range a[5:] {
		if !strings.EqualFold(option, "mkstream") {
			x.Unknown("the option " + option + " of XGROUP CREATE")
			return
		}
		makeStream = true
	}
	s, ok := x.stream(a[2])
	if !ok {
		return
	}
	if s == nil && !makeStream {
		x.Err("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.")
		return
	}
	isNew := s == nil
	if isNew {
		s = &stream{}
	}
	last := s.last
	if a[4] != "$" {
		if last, ok = x.parseID(a[4], 0); !ok {
			return
		}
	}
	i, there := s.group(a[3])
	if there {
		x.Err("BUSYGROUP Consumer Group name already exists")
		return
	}
	next := *s
	next.groups = insert(s.groups, i, group{name: a[3], last: last})
	x.putSilently(a[2], &next, isNew)
	x.ok()
}

// putSilently writes a stream whose groups have changed. That does not touch watches, unless the
// key is new.
func (x *exec) putSilently(key string, v *stream, isNew bool) {
	if isNew {
		x.put(key, v)
		return
	}
	x.own()
	i, _ := find(x.entries, key)
	x.entries[i].val = v
}

// streamReading holds the arguments of XREAD and XREADGROUP.
type streamReading struct {
	group, consumer string
	grouped, noAck  bool
	count           int64
	keys, ids       []string
}

// parse reads the options, or replies an error.
func (r *streamReading) parse(x *exec, a []string, groups bool) (ok bool) {
	for i := 1; i < len(a); i++ {
		after := len(a) - i - 1
		switch option := strings.ToLower(a[i]); {
		case option == "block" && after > 0:
			if x.inScript {
				x.Err("ERR " + lua.CString(a[0]) + " command is not allowed with BLOCK option from scripts")
			} else {
				x.Unknown("the option BLOCK of " + strings.ToUpper(a[0]))
			}
			return false
		case option == "count" && after > 0:
			i++
			if r.count, ok = x.int64Arg(a[i]); !ok {
				return false
			}
		case option == "streams" && after > 0:
			n := after / 2
			if after%2 == 1 {
				x.Err("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
				return false
			}
			r.keys, r.ids = a[i+1:i+1+n], a[i+1+n:]
			if groups && !r.grouped {
				x.Err("ERR Missing GROUP option for XREADGROUP")
				return false
			}
			return true
		case option == "group" && after > 1:
			if !groups {
				x.Err("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
				return false
			}
			r.group, r.consumer, r.grouped = a[i+1], a[i+2], true
			i += 2
		case option == "noack":
			if !groups {
				x.Err("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
				return false
			}
			r.noAck = true
		default:
			x.syntax()
			return false
		}
	}
	x.syntax()
	return false
}

func xreadgroup(x *exec, a []string) {
	var r streamReading
	if !r.parse(x, a, true) {
		return
	}
	from := make([]*streamID, len(r.keys)) // nil for entries that are new to the group
	for i, key := range r.keys {
		if _, _, ok := x.group(key, r.group, " in XREADGROUP with GROUP option"); !ok {
			return
		}
		switch lua.CString(r.ids[i]) {
		case "$":
			x.Err("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.")
			return
		case ">":
			continue
		}
		id, ok := x.parseID(r.ids[i], 0)
		if !ok {
			return
		}
		if id != maxID { // Redis treats the largest id like >
			from[i] = &id
		}
	}
	x.streamReplies(len(r.keys), func(i int) bool {
		if from[i] != nil {
			x.readAgain(r, r.keys[i], *from[i])
			return true
		}
		return x.readNew(r, r.keys[i])
	})
}

// xread replies the entries of each stream after a given id.
func xread(x *exec, a []string) {
	var r streamReading
	if !r.parse(x, a, false) {
		return
	}
	last := make([]streamID, len(r.keys))
	for i, key := range r.keys {
		s, ok := x.stream(key)
		if !ok {
			return
		}
		switch lua.CString(r.ids[i]) {
		case "$":
			if s != nil {
				last[i] = s.last
			}
			continue
		case ">":
			x.Err("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
			return
		}
		if last[i], ok = x.parseID(r.ids[i], 0); !ok {
			return
		}
	}
	x.streamReplies(len(r.keys), func(i int) bool {
		s, _ := x.stream(r.keys[i])
		if s == nil {
			return false
		}
		entries := s.behind(last[i], r.count)
		if len(entries) > 0 {
			x.Array(2)
			x.Bulk(r.keys[i])
			x.streamEntries(entries)
		}
		return len(entries) > 0
	})
}

// streamReplies replies an array of the streams for which reply(i), 0 <= i < n, replies something
// and returns true, or nil if there is none.
func (x *exec) streamReplies(n int, reply func(i int) bool) {
	start, streams := len(x.out), 0
	for i := range n {
		if reply(i) {
			streams++
		}
	}
	if streams == 0 {
		x.nullArray()
		return
	}
	body := slices.Clone(x.out[start:])
	x.out = x.out[:start]
	x.Array(streams)
	x.out = append(x.out, body...)
}

// behind returns the entries after an id, at most count of them if count is positive.
func (v *stream) behind(id streamID, count int64) []streamEntry {
	from, ok := id.next()
	if !ok {
		return nil
	}
	entries := v.between(from, maxID)
	if count > 0 && count < int64(len(entries)) {
		entries = entries[:count]
	}
	return entries
}

// readNew replies the entries of a stream not yet delivered to the group, if there are any.
func (x *exec) readNew(r streamReading, key string) bool {
	s, _ := x.stream(key)
	i, _ := s.group(r.group)
	g := s.groups[i]
	entries := s.behind(g.last, r.count)
	if len(entries) == 0 {
		return false
	}
	g.pending = slices.Clone(g.pending)
	for _, e := range entries {
		g.last = e.id
		if r.noAck {
			continue
		}
		at, there := g.find(e.id)
		if there {
			g.pending = cut(g.pending, at)
		}
		g.pending = insert(g.pending, at, pending{id: e.id, consumer: r.consumer, count: 1})
	}
	x.putSilently(key, s.withGroup(i, g), false)
	x.Array(2)
	x.Bulk(key)
	x.streamEntries(entries)
	return true
}

// readAgain replies the consumer's pending entries after an id, and counts one more delivery of
// each. An entry that was deleted is replied without fields, and its delivery is not counted.
func (x *exec) readAgain(r streamReading, key string, after streamID) {
	s, _ := x.stream(key)
	i, _ := s.group(r.group)
	g := s.groups[i]
	g.pending = slices.Clone(g.pending)
	from, _ := after.next()
	var found []streamEntry
	delivered := false
	for j := range g.pending {
		p := &g.pending[j]
		if r.count > 0 && int64(len(found)) >= r.count {
			break
		}
		if p.consumer != r.consumer || p.id.compare(from) < 0 {
			continue
		}
		e := streamEntry{id: p.id}
		if at, there := s.find(p.id); there {
			e = s.entries[at]
			p.idle = 0
			p.count++
			delivered = true
		}
		found = append(found, e)
	}
	if delivered {
		x.putSilently(key, s.withGroup(i, g), false)
	}
	x.Array(2)
	x.Bulk(key)
	x.Array(len(found))
	for _, e := range found {
		x.Array(2)
		x.Bulk(e.id.String())
		if e.texts == nil {
			x.nullArray()
		} else {
			x.bulks(e.texts)
		}
	}
}

func xack(x *exec, s *stream, a []string) {
	i, there := s.group(a[2])
	if !there {
		x.Int(0)
		return
	}
	ids, ok := x.ids(a[3:])
	if !ok {
		return
	}
	g := s.groups[i]
	before := len(g.pending)
	for _, id := range ids {
		if at, there := g.find(id); there {
			g.pending = cut(g.pending, at)
		}
	}
	if len(g.pending) < before {
		x.putSilently(a[1], s.withGroup(i, g), false)
	}
	x.Int(int64(before - len(g.pending)))
}

// pendingRange holds the arguments of the long form of XPENDING.
type pendingRange struct {
	minIdle, count int64
	from, to       streamID
	consumer       string
	ofConsumer     bool
}

func (x *exec) pendingRange(a []string) (r pendingRange, ok bool) {
	if strings.EqualFold(a[0], "idle") {
		if r.minIdle, ok = x.int64Arg(a[1]); !ok {
			return r, false
		}
		if a = a[2:]; len(a) < 3 {
			x.syntax()
			return r, false
		}
	}
	if r.count, ok = x.int64Arg(a[2]); !ok {
		return r, false
	}
	if r.from, ok = x.from(a[0]); !ok {
		return r, false
	}
	if r.to, ok = x.to(a[1]); !ok {
		return r, false
	}
	if len(a) > 3 {
		r.consumer, r.ofConsumer = a[3], true
	}
	return r, true
}

func xpending(x *exec, a []string) {
	var r pendingRange
	if len(a) != 3 {
		if len(a) < 6 || len(a) > 9 {
			x.syntax()
			return
		}
		var ok bool
		if r, ok = x.pendingRange(a[3:]); !ok {
			return
		}
	}
	s, i, ok := x.group(a[1], a[2], "")
	if !ok {
		return
	}
	g := s.groups[i]
	if len(a) == 3 {
		x.pendingSummary(g)
		return
	}
	var found []pending
	for _, p := range g.pending {
		if int64(len(found)) >= r.count || r.ofConsumer && p.consumer != r.consumer ||
			p.id.compare(r.from) < 0 || p.id.compare(r.to) > 0 || r.minIdle > 0 && p.idle/1000 < r.minIdle {
			continue
		}
		found = append(found, p)
	}
	x.Array(len(found))
	for _, p := range found {
		x.Array(4)
		x.Bulk(p.id.String())
		x.Bulk(p.consumer)
		x.Int(p.idle / 1000)
		x.Int(p.count)
	}
}

func (x *exec) pendingSummary(g group) {
	n := len(g.pending)
	x.Array(4)
	x.Int(int64(n))
	if n == 0 {
		x.Null()
		x.Null()
		x.nullArray()
		return
	}
	x.Bulk(g.pending[0].id.String())
	x.Bulk(g.pending[n-1].id.String())
	var names []string
	counts := map[string]int{}
	for _, p := range g.pending {
		if counts[p.consumer]++; counts[p.consumer] == 1 {
			names = append(names, p.consumer)
		}
	}
	slices.Sort(names)
	x.Array(len(names))
	for _, name := range names {
		x.bulks([]string{name, strconv.Itoa(counts[name])})
	}
}

func xautoclaim(x *exec, a []string) {
	minIdle, ok := parseInt(a[4])
	if !ok {
		x.Err("ERR Invalid min-idle-time argument for XAUTOCLAIM")
		return
	}
	from, ok := x.from(a[5])
	if !ok {
		return
	}
	count := int64(100)
	for i := 6; i < len(a); i += 2 {
		if !strings.EqualFold(a[i], "count") || i+1 == len(a) {
			x.Unknown("the option " + a[i] + " of XAUTOCLAIM")
			return
		}
		if count, ok = parseInt(a[i+1]); !ok || count < 1 || count > math.MaxInt64/16 {
			x.Err("ERR COUNT must be > 0")
			return
		}
	}
	if count > 1e6 {
		x.Unknown("XAUTOCLAIM with a COUNT for which the server may lack memory")
		return
	}
	s, i, ok := x.group(a[1], a[2], "")
	if !ok {
		return
	}
	g := s.groups[i]
	g.pending = slices.Clone(g.pending)
	var claimed []streamEntry
	var gone []string
	at, _ := g.find(from)
	for attempts := 10 * count; attempts > 0 && count > 0 && at < len(g.pending); attempts-- {
		p := &g.pending[at]
		entry, there := s.find(p.id)
		switch {
		case !there:
			gone = append(gone, p.id.String())
			g.pending = cut(g.pending, at)
			count--
			continue
		case minIdle <= 0 || p.idle/1000 >= minIdle:
			p.consumer, p.idle = a[3], 0
			p.count++
			claimed = append(claimed, s.entries[entry])
			count--
		}
		at++
	}
	if len(claimed)+len(gone) > 0 {
		x.putSilently(a[1], s.withGroup(i, g), false)
	}
	next := streamID{}
	if at < len(g.pending) {
		next = g.pending[at].id
	}
	x.Array(3)
	x.Bulk(next.String())
	x.streamEntries(claimed)
	x.bulks(gone)
}
