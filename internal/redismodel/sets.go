package redismodel

import (
	"slices"
	"strings"

	"oversell/internal/rediscmd"
)

var setCommands = []command{
	{name: "sadd", run: on(sadd)},
	{name: "srem", run: remove(set.without)},
	{name: "sismember", run: on(sismember)},
	{name: "smismember", run: on(smismember)},
	{name: "smove", run: smove},
	{name: "smembers", run: on(smembers)},
	{name: "scard", run: on(size[set])},
	{name: "spop", run: spop},
	{name: "srandmember", run: srandmember},
	{name: "sinter", run: combine(set.and)},
	{name: "sunion", run: combine(set.or)},
	{name: "sdiff", run: combine(set.not)},
	{name: "sinterstore", run: combine(set.and)},
	{name: "sunionstore", run: combine(set.or)},
	{name: "sdiffstore", run: combine(set.not)},
	{name: "sintercard", run: sintercard},
}

func sadd(x *exec, s set, a []string) {
	before := len(s)
	for _, name := range a[2:] {
		if i, there := slices.BinarySearch(s, name); !there {
			s = insert(s, i, name)
		}
	}
	if len(s) > before {
		x.put(a[1], s)
	}
	x.Int(int64(len(s) - before))
}

func sismember(x *exec, s set, a []string) {
	_, there := slices.BinarySearch(s, a[2])
	x.bool(there)
}

func smismember(x *exec, s set, a []string) {
	x.Array(len(a) - 2)
	for _, name := range a[2:] {
		_, there := slices.BinarySearch(s, name)
		x.bool(there)
	}
}

func smove(x *exec, a []string) {
	if x.get(a[1]) == nil {
		x.Int(0)
		return
	}
	from, ok := typed[set](x, a[1])
	if !ok {
		return
	}
	to, ok := typed[set](x, a[2])
	if !ok {
		return
	}
	_, there := slices.BinarySearch(from, a[3])
	if there && a[1] != a[2] {
		putOrDelete(x, a[1], from.without(a[3]))
		if i, has := slices.BinarySearch(to, a[3]); !has {
			x.put(a[2], insert(to, i, a[3]))
		}
	}
	x.bool(there)
}

func smembers(x *exec, s set, _ []string) {
	x.unordered(len(s), 1)
	x.bulks(s)
}

// spop takes the member of a set that has only one. Which one of several a server takes is random.
func spop(x *exec, a []string) {
	if x.onlyMember(a) {
		x.delete(a[1])
	}
}

func srandmember(x *exec, a []string) { x.onlyMember(a) }

// onlyMember replies the member of a set that has exactly one, and returns true. For an empty set
// it replies nil; several members, or a count, are unknown.
func (x *exec) onlyMember(a []string) bool {
	command := strings.ToUpper(a[0])
	if len(a) > 2 {
		x.Unknown(command + " with a count")
		return false
	}
	s, ok := typed[set](x, a[1])
	switch {
	case !ok:
	case len(s) > 1:
		x.Unknown(command + " of several members, of which the server takes any")
	case len(s) == 0:
		x.Null()
	default:
		x.Bulk(s[0])
		return true
	}
	return false
}

func (s set) and(other set) set {
	return slices.DeleteFunc(slices.Clone(s), func(name string) bool { return !other.has(name) })
}

func (s set) not(other set) set {
	return slices.DeleteFunc(slices.Clone(s), other.has)
}

func (s set) or(other set) set {
	all := slices.Concat(s, other)
	slices.Sort(all)
	return slices.Compact(all)
}

func (s set) has(name string) bool {
	_, there := slices.BinarySearch(s, name)
	return there
}

// sets combines the values of all these keys.
func (x *exec) sets(keys []string, with func(s, other set) set) (all set, ok bool) {
	for i, key := range keys {
		s, ok := typed[set](x, key)
		switch {
		case !ok:
			return nil, false
		case i == 0:
			all = s
		default:
			all = with(all, s)
		}
	}
	return all, true
}

// combine returns the implementation of SINTER, SUNION or SDIFF, and of SINTERSTORE, SUNIONSTORE or
// SDIFFSTORE, which write the result to their first key.
func combine(with func(s, other set) set) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		command, _ := rediscmd.Find(a[0])
		stores := command.Does(rediscmd.Writes)
		keys := a[1:]
		if stores {
			keys = a[2:]
		}
		s, ok := x.sets(keys, with)
		switch {
		case !ok:
		case !stores:
			x.unordered(len(s), 1)
			x.bulks(s)
		case len(s) == 0:
			x.delete(a[1])
			x.Int(0)
		default:
			x.replace(a[1], s, noExpiry)
			x.Int(int64(len(s)))
		}
	}
}

func sintercard(x *exec, a []string) {
	n, ok := parseInt(a[1])
	switch {
	case !ok || n < 1:
		x.Err("ERR numkeys should be greater than 0")
		return
	case n > int64(len(a)-2):
		x.Err("ERR Number of keys can't be greater than number of args")
		return
	}
	limit := int64(0)
	for rest := a[2+n:]; len(rest) > 0; rest = rest[2:] {
		if !strings.EqualFold(rest[0], "limit") || len(rest) < 2 {
			x.syntax()
			return
		}
		if limit, ok = parseInt(rest[1]); !ok || limit < 0 {
			x.Err("ERR LIMIT can't be negative")
			return
		}
	}
	if s, ok := x.sets(a[2:2+n], set.and); ok {
		count := int64(len(s))
		if limit > 0 {
			count = min(count, limit)
		}
		x.Int(count)
	}
}
