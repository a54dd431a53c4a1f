package redismodel

import (
	"math"
	"slices"
	"strings"

	"oversell/internal/rediscmd"
)

// weighted is a source of a zsetOperation with its weight. A set counts as a sorted set whose
// scores are 1.
type weighted struct {
	zset
	weight float64
}

// zsetOperation makes one sorted set of several.
type zsetOperation struct {
	name string // union, inter or diff
	// counts: the command only counts the members, up to a limit.
	counts bool
	// numkeys is the index of the argument numkeys.
	numkeys int

	aggregate  string
	withScores bool
	limit      int64
}

// zcombine returns the implementation of a command that replies the union, intersection or
// difference of sorted sets, writes it to its first key, or replies its size.
func zcombine(name string, counts bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		command, _ := rediscmd.Find(a[0])
		o := zsetOperation{name: name, counts: counts, numkeys: 1, aggregate: "sum"}
		stores := command.Does(rediscmd.Writes)
		if stores {
			o.numkeys = 2
		}
		sources, ok := o.parse(x, a, stores, command.Lower)
		if !ok {
			return
		}
		z := o.of(x, sources)
		switch {
		case stores:
			x.storeMembers(a[1], z)
		case counts && o.limit > 0:
			x.Int(min(int64(len(z)), o.limit))
		case counts:
			x.Int(int64(len(z)))
		default:
			x.members(z, o.withScores)
		}
	}
}

// storeMembers writes members that a command has found, without an expiry, and replies their number.
func (x *exec) storeMembers(key string, z zset) {
	if len(z) == 0 {
		x.delete(key)
		x.Int(0)
		return
	}
	kept := make(zset, len(z))
	for i, m := range z {
		kept[i] = stored(m.name, m.score)
	}
	slices.SortFunc(kept, compareMembers)
	x.replace(key, kept, noExpiry)
	x.Int(int64(len(kept)))
}

// parse reads the keys and the options, or replies an error.
func (o *zsetOperation) parse(x *exec, a []string, stores bool, command string) (sources []weighted, ok bool) {
	n, ok := x.int64Arg(a[o.numkeys])
	rest := a[o.numkeys+1:]
	switch {
	case !ok:
		return nil, false
	case n < 1:
		x.Err("ERR at least 1 input key is needed for '" + command + "' command")
		return nil, false
	case n > int64(len(rest)):
		x.syntax()
		return nil, false
	}
	for _, key := range rest[:n] {
		z, ok := x.scored(key)
		if !ok {
			return nil, false
		}
		sources = append(sources, weighted{z, 1})
	}
	for rest = rest[n:]; len(rest) > 0; {
		option := strings.ToLower(rest[0])
		combines := o.name != "diff" && !o.counts
		switch {
		case option == "weights" && combines && int64(len(rest)) > n:
			for i := range sources {
				if sources[i].weight, ok = parseFloat(rest[1+i]); !ok {
					x.Err("ERR weight value is not a float")
					return nil, false
				}
			}
			rest = rest[1+n:]
			continue
		case option == "aggregate" && combines && len(rest) > 1:
			o.aggregate = strings.ToLower(rest[1])
			if o.aggregate != "sum" && o.aggregate != "min" && o.aggregate != "max" {
				x.syntax()
				return nil, false
			}
			rest = rest[2:]
		case option == "withscores" && !stores && !o.counts:
			o.withScores = true
			rest = rest[1:]
		case option == "limit" && o.counts && len(rest) > 1:
			if o.limit, ok = parseInt(rest[1]); !ok || o.limit < 0 {
				x.Err("ERR LIMIT can't be negative")
				return nil, false
			}
			rest = rest[2:]
		default:
			x.syntax()
			return nil, false
		}
	}
	return sources, true
}

// scored returns a sorted set, or a set whose members all have the score 1. It replies an error if the value is neither.
func (x *exec) scored(key string) (z zset, ok bool) {
	if s, isSet := x.get(key).(set); isSet {
		for _, name := range s {
			z = append(z, member{name, 1})
		}
		return z, true
	}
	return typed[zset](x, key)
}

// of returns the result of the operation, in its order.
func (o *zsetOperation) of(x *exec, sources []weighted) zset {
	if o.name == "diff" {
		return slices.DeleteFunc(slices.Clone(sources[0].zset), func(m member) bool {
			return slices.ContainsFunc(sources[1:], func(w weighted) bool { return w.find(m.name) >= 0 })
		})
	}
	// Redis adds scores set by set, the smallest set first. The order of sets of equal size depends
	// on the qsort of the C library, and rounding depends on the order. So the sums are known only
	// if every such order gives the same.
	slices.SortStableFunc(sources, func(a, b weighted) int { return len(a.zset) - len(b.zset) })
	z := o.aggregated(sources)
	tried := 0
	exchangeAlike(sources, 0, func() bool {
		tried++
		if tried > mostOrders || !slices.EqualFunc(z, o.aggregated(sources), sameMember) {
			x.Unknown("the order in which the server adds scores")
			return false
		}
		return true
	})
	return z
}

// mostOrders limits how many orders of sets of the same size are tried. With more, the result counts as unknown.
const mostOrders = 120

// sameMember reports whether two members have the same name and score, where 0 and -0 differ.
func sameMember(a, b member) bool {
	return a.name == b.name && math.Float64bits(a.score) == math.Float64bits(b.score)
}

// exchangeAlike permutes the sets of equal size in all ways, and calls f for each order until f
// returns false, which it reports. The sets must be sorted by size.
func exchangeAlike(sources []weighted, from int, f func() bool) bool {
	if from == len(sources) {
		return f()
	}
	for i := from; i < len(sources) && len(sources[i].zset) == len(sources[from].zset); i++ {
		sources[from], sources[i] = sources[i], sources[from]
		more := len(sources[from].zset) == 0 && i > from || exchangeAlike(sources, from+1, f)
		sources[from], sources[i] = sources[i], sources[from]
		if !more {
			return false
		}
	}
	return true
}

// aggregated returns the union or the intersection of the sets in this order.
func (o *zsetOperation) aggregated(sources []weighted) (all zset) {
	for i, w := range sources {
		if i > 0 && o.name == "inter" {
			break
		}
	members:
		for _, m := range w.zset {
			if slices.ContainsFunc(sources[:i], func(w weighted) bool { return w.find(m.name) >= 0 }) {
				continue // it was there before
			}
			score := number(w.weight * m.score)
			for _, other := range sources[i+1:] {
				at := other.find(m.name)
				switch {
				case at >= 0 && o.name == "inter":
					score = o.add(score, other.zset[at].score*other.weight)
				case at >= 0:
					score = o.add(score, number(other.zset[at].score*other.weight))
				case o.name == "inter":
					continue members
				}
			}
			all = append(all, member{m.name, score})
		}
	}
	slices.SortFunc(all, compareMembers)
	return all
}

// add adds a score as AGGREGATE says.
func (o *zsetOperation) add(score, by float64) float64 {
	switch {
	case o.aggregate == "sum":
		return number(score + by)
	case o.aggregate == "min" && by < score, o.aggregate == "max" && by > score:
		return by
	}
	return score
}

// number returns a score, 0 in place of one that is not a number, such as the sum of infinities.
func number(score float64) float64 {
	if math.IsNaN(score) {
		return 0
	}
	return score
}

// zmpop pops members from the first of several sorted sets that is not empty.
func zmpop(x *exec, a []string) {
	highest := false
	keys, count, ok := x.popOf(a, "min", "max", &highest)
	if !ok {
		return
	}
	for _, key := range keys {
		z, ok := typed[zset](x, key)
		if !ok {
			return
		}
		if z == nil {
			continue
		}
		taken, rest := z.popped(count, highest)
		putOrDelete(x, key, rest)
		x.Array(2)
		x.Bulk(key)
		x.Array(len(taken))
		for _, m := range taken {
			x.Array(2)
			x.Bulk(m.name)
			x.double(m.score)
		}
		return
	}
	x.nullArray()
}

// popOf parses the arguments of ZMPOP and LMPOP, or replies an error. It sets *last if they name
// the end second, not first.
func (x *exec) popOf(a []string, first, second string, last *bool) (keys []string, count int64, ok bool) {
	n, ok := parseInt(a[1])
	switch {
	case !ok || n < 1:
		x.Err("ERR numkeys should be greater than 0")
		return nil, 0, false
	case n > math.MaxInt64-2: // the server's sum overflows
		x.Unknown("so many keys of " + strings.ToUpper(a[0]))
		return nil, 0, false
	case n > int64(len(a)-3):
		x.syntax()
		return nil, 0, false
	}
	end := a[2+n]
	if *last = strings.EqualFold(end, second); !*last && !strings.EqualFold(end, first) {
		x.syntax()
		return nil, 0, false
	}
	count = 1
	switch options := a[3+n:]; {
	case len(options) == 0:
	case strings.EqualFold(options[0], "count") && len(options) > 1:
		if count, ok = parseInt(options[1]); !ok || count < 1 {
			x.Err("ERR count should be greater than 0")
			return nil, 0, false
		}
		if len(options) == 2 {
			break
		}
		fallthrough
	default:
		x.syntax()
		return nil, 0, false
	}
	return a[2 : 2+n], count, true
}
