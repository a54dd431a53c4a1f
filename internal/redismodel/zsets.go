package redismodel

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"oversell/internal/redismodel/lua"
)

var zsetCommands = []command{
	{name: "zadd", run: func(x *exec, a []string) { zadd(x, a, zaddOptions{}) }},
	{name: "zincrby", run: func(x *exec, a []string) { zadd(x, a, zaddOptions{incr: true}) }},
	{name: "zrem", run: remove(zset.without)},
	{name: "zscore", run: on(zscore)},
	{name: "zmscore", run: on(zmscore)},
	{name: "zcard", run: on(size[zset])},
	{name: "zcount", run: zcount},
	{name: "zrank", run: zrank(false)},
	{name: "zrevrank", run: zrank(true)},
	{name: "zlexcount", run: zlexcount},
	{name: "zrange", run: zrange(rangeOptions{free: true})},
	{name: "zrangestore", run: zrange(rangeOptions{free: true, store: true})},
	{name: "zrevrange", run: zrange(rangeOptions{rev: true})},
	{name: "zrangebyscore", run: zrange(rangeOptions{by: byScore})},
	{name: "zrevrangebyscore", run: zrange(rangeOptions{by: byScore, rev: true})},
	{name: "zrangebylex", run: zrange(rangeOptions{by: byName})},
	{name: "zrevrangebylex", run: zrange(rangeOptions{by: byName, rev: true})},
	{name: "zremrangebyscore", run: zremrange(byScore)},
	{name: "zremrangebyrank", run: zremrange(byRank)},
	{name: "zremrangebylex", run: zremrange(byName)},
	{name: "zpopmin", run: zpop(false)},
	{name: "zpopmax", run: zpop(true)},
	{name: "zmpop", run: zmpop},
	{name: "zunion", run: zcombine("union", false)},
	{name: "zinter", run: zcombine("inter", false)},
	{name: "zdiff", run: zcombine("diff", false)},
	{name: "zunionstore", run: zcombine("union", false)},
	{name: "zinterstore", run: zcombine("inter", false)},
	{name: "zdiffstore", run: zcombine("diff", false)},
	{name: "zintercard", run: zcombine("inter", true)},
}

type zaddOptions struct {
	conditions
	ch, incr bool
}

// parse reads options and returns what follows them.
func (o *zaddOptions) parse(a []string) []string {
	for i := range a {
		switch option := strings.ToLower(a[i]); {
		case o.add(option):
		case option == "ch":
			o.ch = true
		case option == "incr":
			o.incr = true
		default:
			return a[i:]
		}
	}
	return nil
}

func zadd(x *exec, a []string, o zaddOptions) {
	pairs := o.parse(a[2:])
	switch {
	case len(pairs) == 0 || len(pairs)%2 == 1:
		x.syntax()
		return
	case o.nx && o.xx:
		x.Err("ERR XX and NX options at the same time are not compatible")
		return
	case o.gt && o.nx || o.lt && o.nx || o.gt && o.lt:
		x.Err("ERR GT, LT, and/or NX options at the same time are not compatible")
		return
	case o.incr && len(pairs) > 2:
		x.Err("ERR INCR option supports a single increment-element pair")
		return
	}
	scores := make([]float64, len(pairs)/2)
	for i := range scores {
		var ok bool
		if scores[i], ok = parseFloat(pairs[2*i]); !ok {
			x.notFloat()
			return
		}
	}
	z, ok := typed[zset](x, a[1])
	if !ok {
		return
	}
	var n zaddCounts
	var score float64
	for i, by := range scores {
		if z, score, ok = o.enter(z, pairs[2*i+1], by, &n); !ok {
			x.Err("ERR resulting score is not a number (NaN)")
			return
		}
	}
	if n.added+n.updated > 0 {
		x.put(a[1], z)
	}
	switch {
	case o.incr && n.done == 0:
		x.Null()
	case o.incr:
		x.double(score)
	case o.ch:
		x.Int(n.added + n.updated)
	default:
		x.Int(n.added)
	}
}

// zaddCounts counts the results of the pairs of a ZADD.
type zaddCounts struct{ added, updated, done int64 }

// enter adds one member or updates its score, as the options allow. It returns the sorted set, the
// score and false if the score would be NaN.
func (o zaddOptions) enter(z zset, name string, score float64, n *zaddCounts) (zset, float64, bool) {
	i := z.find(name)
	if i < 0 {
		if o.xx {
			return z, 0, true
		}
		n.added++
		n.done++
		return z.with(stored(name, score)), score, true
	}
	if o.nx {
		return z, 0, true
	}
	old := z[i].score
	if o.incr {
		if score += old; math.IsNaN(score) {
			return z, 0, false
		}
	}
	if o.lt && score >= old || o.gt && score <= old {
		return z, 0, true
	}
	n.done++
	if score == old {
		return z, score, true
	}
	n.updated++
	return cut(z, i).with(stored(name, score)), score, true
}

// stored returns a member as Redis keeps it: a small sorted set has no -0.
func stored(name string, score float64) member { return member{name, score + 0} }

func (x *exec) score(z zset, name string) {
	if i := z.find(name); i >= 0 {
		x.double(z[i].score)
		return
	}
	x.Null()
}

func zscore(x *exec, z zset, a []string) {
	x.score(z, a[2])
}

func zmscore(x *exec, z zset, a []string) {
	x.Array(len(a) - 2)
	for _, name := range a[2:] {
		x.score(z, name)
	}
}

func zrank(rev bool) func(x *exec, a []string) {
	return on(func(x *exec, z zset, a []string) {
		i := z.find(a[2])
		switch {
		case i < 0:
			x.Null()
		case rev:
			x.Int(int64(len(z) - 1 - i))
		default:
			x.Int(int64(i))
		}
	})
}

// bound is one end of a range of scores.
type bound struct {
	score float64
	open  bool
}

func parseBound(s string) (b bound, ok bool) {
	if strings.HasPrefix(s, "(") {
		b.open, s = true, s[1:]
	}
	s = lua.CString(s)
	f, rest, ok := lua.Strtod(s)
	// strtod reads a text that is not a number as 0; that is an error only if
	// characters are left.
	if !ok {
		rest = s
	}
	b.score = f
	return b, rest == "" && !math.IsNaN(f)
}

// lexBound is one end of a range of names.
type lexBound struct {
	name string
	open bool
	// end is -1 for the bound -, before all names, 1 for +, after all names, and otherwise 0.
	end int
}

func parseNameBound(s string) (b lexBound, ok bool) {
	switch {
	case s == "":
		return b, false
	case s[0] == '-' || s[0] == '+':
		b.open, b.end = true, 1
		if s[0] == '-' {
			b.end = -1
		}
		return b, lua.CString(s[1:]) == ""
	}
	return lexBound{name: s[1:], open: s[0] == '('}, s[0] == '(' || s[0] == '['
}

// compare compares a bound with another, or with a name, as the server does (sdscmplex).
func (b lexBound) compare(other lexBound) int {
	return cmp.Or(cmp.Compare(b.end, other.end), cmp.Compare(b.name, other.name))
}

// The kinds of ranges.
const (
	byRank = iota
	byScore
	byName
)

// span is a range of a sorted set, by rank, score or name, or a range of a list.
type span struct {
	by          int
	min, max    bound
	start, end  int64
	first, last lexBound
}

// span reads a range, or replies an error.
func (x *exec) span(from, to string, by int) (s span, ok bool) {
	s.by = by
	var ok2 bool
	switch by {
	case byName:
		s.first, ok = parseNameBound(from)
		if s.last, ok2 = parseNameBound(to); !ok || !ok2 {
			x.Err("ERR min or max not valid string range item")
			return s, false
		}
		return s, true
	case byScore:
		s.min, ok = parseBound(from)
		if s.max, ok2 = parseBound(to); !ok || !ok2 {
			x.Err("ERR min or max is not a float")
			return s, false
		}
		return s, true
	}
	if s.start, ok = x.int64Arg(from); ok {
		s.end, ok = x.int64Arg(to)
	}
	return s, ok
}

// in returns the beginning and the end of the range among these members, which for a range of names must have one score.
func (s span) in(z zset) (i, j int) {
	switch s.by {
	case byRank:
		return ranks(s.start, s.end, len(z))
	case byName:
		c := s.first.compare(s.last)
		if c > 0 || c == 0 && (s.first.open || s.last.open) {
			return 0, 0
		}
		for i < len(z) && !s.first.admitsAsMin(z[i].name) {
			i++
		}
		for j = i; j < len(z) && s.last.admitsAsMax(z[j].name); {
			j++
		}
		return i, j
	}
	for i < len(z) && (z[i].score < s.min.score || s.min.open && z[i].score == s.min.score) {
		i++
	}
	for j = i; j < len(z) && (z[j].score < s.max.score || !s.max.open && z[j].score == s.max.score); {
		j++
	}
	return i, j
}

// admitsAsMin reports whether name is in the range that starts at b and has no end.
func (b lexBound) admitsAsMin(name string) bool {
	c := b.compare(lexBound{name: name})
	return c < 0 || c == 0 && !b.open
}

// admitsAsMax reports whether name is in the range that ends at b and has no start.
func (b lexBound) admitsAsMax(name string) bool {
	c := b.compare(lexBound{name: name})
	return c > 0 || c == 0 && !b.open
}

// known reports whether the range is defined. By name, it is only if all scores are equal.
func (s span) known(x *exec, z zset) bool {
	if s.by == byName && len(z) > 1 && z[0].score != z[len(z)-1].score {
		x.Unknown("a range by name of members with different scores")
		return false
	}
	return true
}

// ranks turns the two indexes of a range into those of a slice.
func ranks(start, end int64, n int) (i, j int) {
	length := int64(n)
	if start < 0 {
		start = max(start+length, 0)
	}
	if end < 0 {
		end += length
	}
	if start > end || start >= length {
		return 0, 0
	}
	return int(start), int(min(end, length-1)) + 1
}

func zcount(x *exec, a []string) { x.countIn(a, byScore) }

func zlexcount(x *exec, a []string) { x.countIn(a, byName) }

// countIn replies how many members are in a range.
func (x *exec) countIn(a []string, by int) {
	s, ok := x.span(a[2], a[3], by)
	if !ok {
		return
	}
	if z, ok := typed[zset](x, a[1]); ok && s.known(x, z) {
		i, j := s.in(z)
		x.Int(int64(j - i))
	}
}

func zremrange(by int) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		s, ok := x.span(a[2], a[3], by)
		if !ok {
			return
		}
		z, ok := typed[zset](x, a[1])
		if !ok || !s.known(x, z) {
			return
		}
		i, j := s.in(z)
		if i < j {
			putOrDelete(x, a[1], cutRange(z, i, j))
		}
		x.Int(int64(j - i))
	}
}

// rangeOptions are the options of ZRANGE and its older forms.
type rangeOptions struct {
	by                       int
	rev, withScores, limited bool
	offset, count            int64
	// free: the command is ZRANGE or ZRANGESTORE, which take BYSCORE, BYLEX and REV. store: it is
	// ZRANGESTORE.
	free, store bool
}

// parse reads the options that follow the range, or replies an error.
func (o *rangeOptions) parse(x *exec, a []string) (ok bool) {
	o.count = -1
	chosen := o.by != byRank
	for i := 0; i < len(a); i++ {
		switch option := strings.ToLower(a[i]); {
		case option == "withscores" && !o.store:
			o.withScores = true
		case option == "limit" && i+2 < len(a):
			if o.offset, ok = x.int64Arg(a[i+1]); !ok {
				return false
			}
			if o.count, ok = x.int64Arg(a[i+2]); !ok {
				return false
			}
			o.limited = true
			i += 2
		case option == "rev" && o.free && !o.rev:
			o.rev = true
		case option == "byscore" && o.free && !chosen:
			o.by, chosen = byScore, true
		case option == "bylex" && o.free && !chosen:
			o.by, chosen = byName, true
		default:
			x.syntax()
			return false
		}
	}
	// Redis accepts LIMIT without BYSCORE or BYLEX if its count is -1.
	if o.by == byRank && o.limited && o.count != -1 {
		x.Err("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
		return false
	}
	if o.by == byName && o.withScores {
		x.Err("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
		return false
	}
	return true
}

func zrange(o rangeOptions) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		o, to := o, a[1]
		if o.store {
			a = a[1:]
		}
		if !o.parse(x, a[4:]) {
			return
		}
		first, last := a[2], a[3]
		if o.by != byRank && o.rev {
			first, last = last, first
		}
		s, ok := x.span(first, last, o.by)
		if !ok {
			return
		}
		z, ok := typed[zset](x, a[1])
		if !ok || !s.known(x, z) {
			return
		}
		if o.rev {
			z = slices.Clone(z)
			slices.Reverse(z)
		}
		if z = o.pick(z, s); o.store {
			x.storeMembers(to, z)
			return
		}
		x.members(z, o.withScores)
	}
}

// pick returns the requested part of z, which is in the order of the reply.
func (o rangeOptions) pick(z zset, s span) zset {
	if o.by == byRank {
		i, j := s.in(z)
		return z[i:j]
	}
	if o.rev {
		slices.Reverse(z)
	}
	i, j := s.in(z)
	z = z[i:j]
	if o.rev {
		slices.Reverse(z)
	}
	if !o.limited {
		return z
	}
	if o.offset < 0 || o.offset > int64(len(z)) {
		return nil
	}
	z = z[o.offset:]
	if o.count >= 0 && o.count < int64(len(z)) {
		z = z[:o.count]
	}
	return z
}

func (x *exec) members(z zset, withScores bool) {
	n := len(z)
	if withScores {
		n *= 2
	}
	x.Array(n)
	for _, m := range z {
		x.Bulk(m.name)
		if withScores {
			x.double(m.score)
		}
	}
}

func zpop(highest bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		if len(a) > 3 {
			x.syntax()
			return
		}
		z, count, ok := counted[zset](x, a)
		if !ok {
			return
		}
		taken, rest := z.popped(count, highest)
		if len(taken) > 0 {
			putOrDelete(x, a[1], rest)
		}
		x.members(taken, true)
	}
}

// popped returns the members that are taken from one end, in the order in which they are taken, and the others.
func (v zset) popped(count int64, highest bool) (taken, rest zset) {
	n := int(min(count, int64(len(v))))
	if !highest {
		return v[:n], v[n:]
	}
	taken = slices.Clone(v[len(v)-n:])
	slices.Reverse(taken)
	return taken, v[:len(v)-n]
}

// counted is typed for a command with an optional count, which is 1 by default.
func counted[T value](x *exec, a []string) (v T, count int64, ok bool) {
	count = 1
	if len(a) > 2 {
		if count, ok = parseInt(a[2]); !ok || count < 0 {
			x.Err("ERR value is out of range, must be positive")
			return v, 0, false
		}
	}
	v, ok = typed[T](x, a[1])
	return v, count, ok
}
