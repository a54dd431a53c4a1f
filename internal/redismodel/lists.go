package redismodel

import (
	"math"
	"slices"
	"strings"
)

var listCommands = []command{
	{name: "lpush", run: push(true, false)},
	{name: "rpush", run: push(false, false)},
	{name: "lpushx", run: push(true, true)},
	{name: "rpushx", run: push(false, true)},
	{name: "lpop", run: pop("lpop", true)},
	{name: "rpop", run: pop("rpop", false)},
	{name: "llen", run: on(size[list])},
	{name: "lrange", run: lrange},
	{name: "lindex", run: on(lindex)},
	{name: "lpos", run: lpos},
	{name: "lrem", run: lrem},
	{name: "ltrim", run: ltrim},
	{name: "lset", run: lset},
	{name: "linsert", run: linsert},
	{name: "lmove", run: lmove},
	{name: "lmpop", run: lmpop},
	{name: "rpoplpush", run: func(x *exec, a []string) { x.move(a[1], a[2], false, true) }},
}

// pushed returns a list with one more element.
func (v list) pushed(text string, left bool) list {
	if left {
		return insert(v, 0, text)
	}
	return insert(v, len(v), text)
}

// popped returns the element at the head (left) or the tail of a list that is not empty, and the
// rest.
func (v list) popped(left bool) (string, list) {
	if left {
		return v[0], v[1:]
	}
	return v[len(v)-1], v[:len(v)-1]
}

func push(left, onlyIfThere bool) func(x *exec, a []string) {
	return on(func(x *exec, l list, a []string) {
		if onlyIfThere && l == nil {
			x.Int(0)
			return
		}
		for _, text := range a[2:] {
			l = l.pushed(text, left)
		}
		x.put(a[1], l)
		x.Int(int64(len(l)))
	})
}

func pop(name string, left bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		if len(a) > 3 {
			x.wrongArity(name)
			return
		}
		many := len(a) == 3
		l, count, ok := counted[list](x, a)
		if !ok {
			return
		}
		var taken []string
		for rest := l; int64(len(taken)) < count && len(rest) > 0; l = rest {
			var text string
			text, rest = rest.popped(left)
			taken = append(taken, text)
		}
		switch {
		case x.get(a[1]) == nil && many:
			x.nullArray()
		case x.get(a[1]) == nil:
			x.Null()
		case many:
			x.bulks(taken)
		default:
			x.Bulk(taken[0])
		}
		if len(taken) > 0 {
			putOrDelete(x, a[1], l)
		}
	}
}

func lrange(x *exec, a []string) {
	s, ok := x.span(a[2], a[3], byRank)
	if !ok {
		return
	}
	if l, ok := typed[list](x, a[1]); ok {
		i, j := ranks(s.start, s.end, len(l))
		x.bulks(l[i:j])
	}
}

func lindex(x *exec, l list, a []string) {
	if l == nil {
		x.Null()
		return
	}
	switch i, ok := x.index(a[2], len(l)); {
	case !ok:
	case i < 0:
		x.Null()
	default:
		x.Bulk(l[i])
	}
}

// index parses the index of an element of a list; a negative one counts from the end. It is -1 outside of the list.
func (x *exec) index(text string, length int) (int, bool) {
	n, ok := x.int64Arg(text)
	if n < 0 {
		n += int64(length)
	}
	if n < 0 || n >= int64(length) {
		n = -1
	}
	return int(n), ok
}

// lposOptions are the options of LPOS.
type lposOptions struct {
	rank, count, longest int64
	counted              bool // COUNT was given
}

func (o *lposOptions) parse(x *exec, a []string) (ok bool) {
	o.rank = 1
	for ; len(a) > 0; a = a[2:] {
		option := strings.ToLower(a[0])
		if len(a) < 2 || option != "rank" && option != "count" && option != "maxlen" {
			x.syntax()
			return false
		}
		n, ok := parseInt(a[1])
		switch option {
		case "rank":
			switch {
			case !ok:
				x.notInteger()
				return false
			case n == 0:
				x.Err("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
				return false
			}
			o.rank = n
		default:
			if !ok || n < 0 {
				x.Err("ERR " + strings.ToUpper(option) + " can't be negative")
				return false
			}
			if option == "maxlen" {
				o.longest = n
			} else {
				o.count, o.counted = n, true
			}
		}
	}
	if o.rank == math.MinInt64 { // its negation overflows
		x.Unknown("LPOS with this RANK")
		return false
	}
	return true
}

func lpos(x *exec, a []string) {
	var o lposOptions
	if !o.parse(x, a[3:]) {
		return
	}
	l, ok := typed[list](x, a[1])
	if !ok {
		return
	}
	var found []int
	matches := int64(0)
	for i := range l {
		if o.longest > 0 && int64(i) >= o.longest {
			break
		}
		at := i
		if o.rank < 0 {
			at = len(l) - 1 - i
		}
		if l[at] != a[2] {
			continue
		}
		if matches++; matches >= max(o.rank, -o.rank) {
			found = append(found, at)
			if !o.counted || int64(len(found)) == o.count {
				break
			}
		}
	}
	switch {
	case o.counted:
		x.Array(len(found))
		for _, at := range found {
			x.Int(int64(at))
		}
	case len(found) == 0:
		x.Null()
	default:
		x.Int(int64(found[0]))
	}
}

// lmpop pops elements from the first of several lists that is not empty.
func lmpop(x *exec, a []string) {
	right := false
	keys, count, ok := x.popOf(a, "left", "right", &right)
	if !ok {
		return
	}
	for _, key := range keys {
		l, ok := typed[list](x, key)
		if !ok {
			return
		}
		if l == nil {
			continue
		}
		var taken []string
		for int64(len(taken)) < count && len(l) > 0 {
			var text string
			text, l = l.popped(!right)
			taken = append(taken, text)
		}
		putOrDelete(x, key, l)
		x.Array(2)
		x.Bulk(key)
		x.bulks(taken)
		return
	}
	x.nullArray()
}

func lrem(x *exec, a []string) {
	count, ok := x.int64Arg(a[2])
	if !ok {
		return
	}
	l, ok := typed[list](x, a[1])
	if !ok {
		return
	}
	count = max(count, -math.MaxInt64) // so that -count does not overflow
	rest := slices.Clone(l)
	if count < 0 {
		slices.Reverse(rest)
	}
	removed := int64(0)
	rest = slices.DeleteFunc(rest, func(text string) bool {
		if text != a[3] || count != 0 && removed >= max(count, -count) {
			return false
		}
		removed++
		return true
	})
	if count < 0 {
		slices.Reverse(rest)
	}
	if removed > 0 {
		putOrDelete(x, a[1], rest)
	}
	x.Int(removed)
}

func ltrim(x *exec, a []string) {
	s, ok := x.span(a[2], a[3], byRank)
	if !ok {
		return
	}
	l, ok := typed[list](x, a[1])
	if !ok {
		return
	}
	if l != nil {
		i, j := ranks(s.start, s.end, len(l))
		putOrDelete(x, a[1], l[i:j:j])
	}
	x.ok()
}

func lset(x *exec, a []string) {
	l, ok := typed[list](x, a[1])
	if !ok {
		return
	}
	if l == nil {
		x.Err("ERR no such key")
		return
	}
	switch i, ok := x.index(a[2], len(l)); {
	case !ok:
	case i < 0:
		x.Err("ERR index out of range")
	default:
		l = slices.Clone(l)
		l[i] = a[3]
		x.put(a[1], l)
		x.ok()
	}
}

func linsert(x *exec, a []string) {
	after := strings.EqualFold(a[2], "after")
	if !after && !strings.EqualFold(a[2], "before") {
		x.syntax()
		return
	}
	l, ok := typed[list](x, a[1])
	if !ok {
		return
	}
	i := slices.Index(l, a[3])
	switch {
	case l == nil:
		x.Int(0)
		return
	case i < 0:
		x.Int(-1)
		return
	case after:
		i++
	}
	l = insert(l, i, a[4])
	x.put(a[1], l)
	x.Int(int64(len(l)))
}

func lmove(x *exec, a []string) {
	from, ok := side(a[3])
	to, ok2 := side(a[4])
	if !ok || !ok2 {
		x.syntax()
		return
	}
	x.move(a[1], a[2], from, to)
}

func side(s string) (left, ok bool) {
	left = strings.EqualFold(s, "left")
	return left, left || strings.EqualFold(s, "right")
}

// move moves an element from one list to another, which may be the same.
func (x *exec) move(from, to string, fromLeft, toLeft bool) {
	l, ok := typed[list](x, from)
	if !ok {
		return
	}
	if l == nil {
		x.Null()
		return
	}
	if _, ok := typed[list](x, to); !ok {
		return
	}
	text, rest := l.popped(fromLeft)
	if from == to {
		x.put(to, rest.pushed(text, toLeft))
	} else {
		target, _ := typed[list](x, to)
		x.put(to, target.pushed(text, toLeft))
		putOrDelete(x, from, rest)
	}
	x.Bulk(text)
}
