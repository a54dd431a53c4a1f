package redismodel

import (
	"math"
	"strconv"
	"strings"

	"oversell/internal/redismodel/lua"
)

var keyCommands = []command{
	{name: "del", run: del},
	{name: "unlink", run: del},
	{name: "exists", run: exists},
	{name: "touch", run: exists},
	{name: "type", run: typeOf},
	{name: "expire", run: expire(seconds, false)},
	{name: "pexpire", run: expire(milliseconds, false)},
	{name: "expireat", run: expire(seconds, true)},
	{name: "pexpireat", run: expire(milliseconds, true)},
	{name: "ttl", run: ttl(seconds, false)},
	{name: "pttl", run: ttl(milliseconds, false)},
	{name: "expiretime", run: ttl(seconds, true)},
	{name: "pexpiretime", run: ttl(milliseconds, true)},
	{name: "persist", run: persist},
	{name: "rename", run: rename(false)},
	{name: "renamenx", run: rename(true)},
	{name: "copy", run: copyKey},
	{name: "time", run: timeOf},
	{name: "ping", run: ping},
	{name: "echo", run: func(x *exec, a []string) { x.Bulk(a[1]) }},
	{name: "publish", run: func(x *exec, _ []string) { x.Int(0) }}, // no subscriber
	{name: "watch", run: func(x *exec, a []string) { x.watch(a[1:]); x.ok() }},
	{name: "unwatch", run: func(x *exec, _ []string) { x.unwatch(); x.ok() }},
}

// The units of expiries, in milliseconds.
const (
	milliseconds = 1
	seconds      = 1000
)

// farFuture, in ms, is the longest expiry that the model handles.
const farFuture = 1e15

func del(x *exec, a []string) {
	n := 0
	for _, key := range a[1:] {
		if x.delete(key) {
			n++
		}
	}
	x.Int(int64(n))
}

func exists(x *exec, a []string) {
	n := 0
	for _, key := range a[1:] {
		if x.get(key) != nil {
			n++
		}
	}
	x.Int(int64(n))
}

func typeOf(x *exec, a []string) {
	if v := x.get(a[1]); v != nil {
		x.Simple(v.kind())
		return
	}
	x.Simple("none")
}

// mstime is Redis' time: whole milliseconds.
func (x *exec) mstime() int64 { return x.clock() / 1000 }

// leftFor turns an expiry into the time left, which is 0 for the past; ok is false if the sum with the clock would
// overflow, as in Redis.
func (x *exec) leftFor(n, unit int64, absolute bool) (left int64, ok bool) {
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	n *= unit
	now := x.now.Milliseconds()
	switch {
	case absolute:
		n = max(n, math.MinInt64+now) - x.mstime()
	case n > math.MaxInt64-now:
		return 0, false
	}
	if n > farFuture {
		x.Unknown("an expiry of " + strconv.FormatInt(n, 10) + " ms")
		n = farFuture
	}
	return max(n, 0) * 1000, true
}

func (x *exec) invalidExpire(name string) {
	x.Err("ERR invalid expire time in '" + strings.ToLower(name) + "' command")
}

func expire(unit int64, absolute bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		o, ok := expireOptions(x, a[3:])
		if !ok {
			return
		}
		n, ok := x.int64Arg(a[2])
		if !ok {
			return
		}
		left, ok := x.leftFor(n, unit, absolute)
		if !ok {
			x.invalidExpire(a[0])
			return
		}
		i, found := find(x.entries, a[1])
		if !found || !o.allow(x.entries[i].left, left) {
			x.Int(0)
			return
		}
		x.setLeft(a[1], left)
		x.Int(1)
	}
}

// conditions are the options NX, XX, GT and LT of EXPIRE and ZADD, under which a value is set.
type conditions struct{ nx, xx, gt, lt bool }

// add takes an option, in lower case; false if it is none of these.
func (o *conditions) add(option string) bool {
	switch option {
	case "nx":
		o.nx = true
	case "xx":
		o.xx = true
	case "gt":
		o.gt = true
	case "lt":
		o.lt = true
	default:
		return false
	}
	return true
}

func expireOptions(x *exec, a []string) (o conditions, ok bool) {
	for _, option := range a {
		if !o.add(strings.ToLower(option)) {
			x.Err("ERR Unsupported option " + lua.CString(option))
			return o, false
		}
	}
	switch {
	case o.nx && (o.xx || o.gt || o.lt):
		x.Err("ERR NX and XX, GT or LT options at the same time are not compatible")
	case o.gt && o.lt:
		x.Err("ERR GT and LT options at the same time are not compatible")
	default:
		return o, true
	}
	return o, false
}

// allow tells whether an expiry may take the place of another.
func (o conditions) allow(old, left int64) bool {
	switch {
	case o.nx && old != noExpiry, o.xx && old == noExpiry:
		return false
	case o.gt && (old == noExpiry || left <= old):
		return false
	case o.lt && old != noExpiry && left >= old:
		return false
	}
	return true
}

func ttl(unit int64, absolute bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		i, found := find(x.entries, a[1])
		switch {
		case !found:
			x.Int(-2)
		case x.entries[i].left == noExpiry:
			x.Int(-1)
		default:
			ms := (x.entries[i].left + 999) / 1000
			if absolute {
				ms += x.mstime()
			}
			x.Int((ms + unit/2) / unit)
		}
	}
}

func persist(x *exec, a []string) {
	i, found := find(x.entries, a[1])
	if !found || x.entries[i].left == noExpiry {
		x.Int(0)
		return
	}
	x.setLeft(a[1], noExpiry)
	x.Int(1)
}

// timeOf executes TIME. A second TIME in a transaction or a script is unknown: a real server
// returns a later time.
func timeOf(x *exec, _ []string) {
	if x.asked {
		x.Unknown("TIME twice in one transaction or script, between which time passes")
	}
	x.asked = true
	us := x.clock()
	x.Array(2)
	x.Bulk(strconv.FormatInt(us/1e6, 10))
	x.Bulk(strconv.FormatInt(us%1e6, 10))
}

func ping(x *exec, a []string) {
	switch len(a) {
	case 1:
		x.Simple("PONG")
	case 2:
		x.Bulk(a[1])
	default:
		x.wrongArity("ping")
	}
}

// rename returns the implementation of RENAME, or of RENAMENX if onlyNew is set.
func rename(onlyNew bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		from, to := a[1], a[2]
		i, found := find(x.entries, from)
		if !found {
			x.Err("ERR no such key")
			return
		}
		e := x.entries[i]
		moves := from != to && (!onlyNew || x.get(to) == nil)
		if moves {
			x.delete(from)
			x.replace(to, e.val, e.left)
		}
		if onlyNew {
			x.bool(moves)
			return
		}
		x.ok()
	}
}

// copyKey supports the option REPLACE, and the option DB for database 0, which is the only one.
func copyKey(x *exec, a []string) {
	replace := false
	for i := 3; i < len(a); i++ {
		switch option := a[i]; {
		case strings.EqualFold(option, "replace"):
			replace = true
		case strings.EqualFold(option, "db") && i+1 < len(a):
			if i++; a[i] != "0" {
				x.Unknown("COPY to another database")
				return
			}
		default:
			x.syntax()
			return
		}
	}
	from, to := a[1], a[2]
	if from == to {
		x.Err("ERR source and destination objects are the same")
		return
	}
	i, found := find(x.entries, from)
	if !found || !replace && x.get(to) != nil {
		x.Int(0)
		return
	}
	e := x.entries[i]
	x.delete(to)
	x.replace(to, e.val, e.left)
	x.Int(1)
}
