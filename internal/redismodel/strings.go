package redismodel

import (
	"math"
	"strconv"
	"strings"
)

var stringCommands = []command{
	{name: "get", run: get},
	{name: "set", run: setString},
	{name: "setnx", run: setnx},
	{name: "setex", run: setex(seconds)},
	{name: "psetex", run: setex(milliseconds)},
	{name: "getset", run: getset},
	{name: "getdel", run: getdel},
	{name: "getex", run: getex},
	{name: "append", run: on(appendTo)},
	{name: "setrange", run: setrange},
	{name: "strlen", run: on(strlen)},
	{name: "setbit", run: setbit},
	{name: "getbit", run: getbit},
	{name: "bitcount", run: on(bitcount)},
	{name: "bitpos", run: bitpos},
	{name: "bitop", run: bitop},
	{name: "getrange", run: getrange},
	{name: "substr", run: getrange},
	{name: "mget", run: mget},
	{name: "mset", run: mset},
	{name: "msetnx", run: msetnx},
	{name: "incr", run: func(x *exec, a []string) { x.count(a[1], 1) }},
	{name: "decr", run: func(x *exec, a []string) { x.count(a[1], -1) }},
	{name: "incrby", run: incrby},
	{name: "decrby", run: decrby},
	{name: "incrbyfloat", run: incrbyfloat},
	{name: "bitfield", run: bitfield},
	{name: "bitfield_ro", run: bitfield},
}

func get(x *exec, a []string) { x.getOrReply(a[1]) }

// getOrReply replies the string under a key, or nil. If the value has another type, it replies
// WRONGTYPE and returns false.
func (x *exec) getOrReply(key string) bool {
	v, ok := typed[str](x, key)
	if ok {
		x.bulkOrNull(string(v), x.get(key) != nil)
	}
	return ok
}

// getrange replies the bytes from one index to another, both counted from the end if negative.
func getrange(x *exec, a []string) {
	from, ok1 := parseInt(a[2])
	to, ok2 := parseInt(a[3])
	if !ok1 || !ok2 {
		x.notInteger()
		return
	}
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	n := int64(len(v))
	if from < 0 && to < 0 && from > to {
		x.Bulk("")
		return
	}
	if from < 0 {
		from = max(from+n, 0)
	}
	if to < 0 {
		to = max(to+n, 0)
	}
	to = min(to, n-1)
	if n == 0 || from > to {
		x.Bulk("")
		return
	}
	x.Bulk(string(v[from : to+1]))
}

// stringOptions are the options of SET and GETEX.
type stringOptions struct {
	nx, xx, get, keepTTL, persist bool
	// expires is the form of the expiry: ex, px, exat, pxat, or none.
	expires, expiry string
}

// parse reads the options that follow the value of SET (isSet) or the key of GETEX.
func (o *stringOptions) parse(a []string, isSet bool) bool {
	for i := 0; i < len(a); i++ {
		option := strings.ToLower(a[i])
		switch {
		case option == "nx" && isSet && !o.xx:
			o.nx = true
		case option == "xx" && isSet && !o.nx:
			o.xx = true
		case option == "get" && isSet:
			o.get = true
		case option == "keepttl" && isSet && !o.persist && o.expires == "":
			o.keepTTL = true
		case option == "persist" && !isSet && !o.keepTTL && o.expires == "":
			o.persist = true
		case isExpiry(option) && i+1 < len(a) && !o.keepTTL && !o.persist && (o.expires == "" || o.expires == option):
			i++
			o.expires, o.expiry = option, a[i]
		default:
			return false
		}
	}
	return true
}

func isExpiry(option string) bool {
	return option == "ex" || option == "px" || option == "exat" || option == "pxat"
}

// left returns the time left that the options set, in microseconds, noExpiry if they set none, or
// replies an error.
func (o *stringOptions) left(x *exec, command string) (left int64, ok bool) {
	if o.expires == "" {
		return noExpiry, true
	}
	unit := int64(seconds)
	if o.expires[0] == 'p' {
		unit = milliseconds
	}
	return x.positiveExpiry(o.expiry, unit, strings.HasSuffix(o.expires, "at"), command)
}

// positiveExpiry reads an expiry that must be positive.
func (x *exec) positiveExpiry(text string, unit int64, absolute bool, command string) (left int64, ok bool) {
	n, ok := x.int64Arg(text)
	if !ok {
		return 0, false
	}
	if n > 0 {
		if left, ok = x.leftFor(n, unit, absolute); ok {
			return left, true
		}
	}
	x.invalidExpire(command)
	return 0, false
}

func setString(x *exec, a []string) {
	var o stringOptions
	if len(a) > 3 && !o.parse(a[3:], true) {
		x.syntax()
		return
	}
	left, ok := o.left(x, a[0])
	if !ok || o.get && !x.getOrReply(a[1]) {
		return
	}
	i, found := find(x.entries, a[1])
	if o.nx && found || o.xx && !found {
		if !o.get {
			x.Null()
		}
		return
	}
	if o.keepTTL && found {
		left = x.entries[i].left
	}
	x.replace(a[1], str(a[2]), left)
	if !o.get {
		x.ok()
	}
}

func setnx(x *exec, a []string) {
	if x.get(a[1]) != nil {
		x.Int(0)
		return
	}
	x.put(a[1], str(a[2]))
	x.Int(1)
}

func setex(unit int64) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		if left, ok := x.positiveExpiry(a[2], unit, false, a[0]); ok {
			x.replace(a[1], str(a[3]), left)
			x.ok()
		}
	}
}

func getset(x *exec, a []string) {
	if x.getOrReply(a[1]) {
		x.replace(a[1], str(a[2]), noExpiry)
	}
}

func getdel(x *exec, a []string) {
	if x.getOrReply(a[1]) {
		x.delete(a[1])
	}
}

func getex(x *exec, a []string) {
	var o stringOptions
	if !o.parse(a[2:], false) {
		x.syntax()
		return
	}
	v, ok := typed[str](x, a[1])
	i, found := find(x.entries, a[1])
	if !ok {
		return
	}
	if !found {
		x.Null()
		return
	}
	left, ok := o.left(x, a[0])
	if !ok {
		return
	}
	x.Bulk(string(v))
	if o.expires != "" || o.persist && x.entries[i].left != noExpiry {
		x.setLeft(a[1], left)
	}
}

func appendTo(x *exec, v str, a []string) {
	x.put(a[1], v+str(a[2]))
	x.Int(int64(len(v) + len(a[2])))
}

func setrange(x *exec, a []string) {
	at, ok := x.int64Arg(a[2])
	if !ok {
		return
	}
	if at < 0 {
		x.Err("ERR offset is out of range")
		return
	}
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	switch {
	case a[3] == "":
	case at > longestFilled:
		x.Unknown("SETRANGE with this offset")
		return
	default:
		next := make([]byte, max(len(v), int(at)+len(a[3])))
		copy(next, v)
		copy(next[at:], a[3])
		v = str(next)
		x.put(a[1], v)
	}
	x.Int(int64(len(v)))
}

func strlen(x *exec, v str, _ []string) { x.Int(int64(len(v))) }

// bitOffset parses the offset of a bit in a string, which is of at most 512 MB.
func (x *exec) bitOffset(s string) (at int64, ok bool) { return x.offsetOf(s, 1) }

// offsetOf is bitOffset for an offset that is counted in units of so many bits.
func (x *exec) offsetOf(s string, bits int64) (at int64, ok bool) {
	at, ok = parseInt(s)
	at *= bits
	if !ok || at < 0 || at>>3 >= 512<<20 {
		x.Err("ERR bit offset is not an integer or out of range")
		return 0, false
	}
	return at, true
}

// bit returns a bit of a string, 0 beyond its end.
func (v str) bit(at int64) int64 {
	if at>>3 >= int64(len(v)) {
		return 0
	}
	return int64(v[at>>3] >> (7 - at&7) & 1)
}

// longestFilled is the largest string, in bytes, that SETBIT and BITFIELD handle, and the largest
// offset of SETRANGE. Beyond it these commands are unknown, so that the model need not fill long
// strings with zeros.
const longestFilled = 4096

func setbit(x *exec, a []string) {
	at, ok := x.bitOffset(a[2])
	if !ok {
		return
	}
	bit, ok := parseInt(a[3])
	if !ok || bit&^1 != 0 {
		x.Err("ERR bit is not an integer or out of range")
		return
	}
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	old := v.bit(at)
	size := max(int64(len(v)), at>>3+1)
	switch {
	case size > longestFilled:
		x.Unknown("a string of bits this long")
		return
	case old != bit || size > int64(len(v)):
		next := make([]byte, size)
		copy(next, v)
		next[at>>3] = next[at>>3]&^(1<<(7-at&7)) | byte(bit)<<(7-at&7)
		x.put(a[1], str(next))
	}
	x.Int(old)
}

func getbit(x *exec, a []string) {
	at, ok := x.bitOffset(a[2])
	if !ok {
		return
	}
	if v, ok := typed[str](x, a[1]); ok {
		x.Int(v.bit(at))
	}
}

// bitUnit reads whether a range is one of bits or of bytes, or replies an error.
func (x *exec) bitUnit(a []string) (bits, ok bool) {
	if len(a) == 0 {
		return false, true
	}
	bits = strings.EqualFold(a[0], "bit")
	if !bits && !strings.EqualFold(a[0], "byte") {
		x.syntax()
		return false, false
	}
	return bits, true
}

// bitRange turns the two indexes of a range, which count from the end if negative, into those of the first bit and of
// the one behind the last.
func (v str) bitRange(start, end int64, bits bool) (from, to int64) {
	unit := int64(8)
	if bits {
		unit = 1
	}
	n := int64(len(v)) * 8 / unit
	if start < 0 {
		start = max(start+n, 0)
	}
	if end < 0 {
		end = max(end+n, 0)
	}
	if end = min(end, n-1); start > end {
		return 0, 0
	}
	return start * unit, (end + 1) * unit
}

func bitcount(x *exec, v str, a []string) {
	from, to := int64(0), int64(len(v))*8
	switch {
	case x.get(a[1]) == nil:
		x.Int(0)
		return
	case len(a) == 2:
	case len(a) > 5 || len(a) == 3:
		x.syntax()
		return
	default:
		start, ok := x.int64Arg(a[2])
		if !ok {
			return
		}
		end, ok := x.int64Arg(a[3])
		if !ok {
			return
		}
		if start < 0 && end < 0 && start > end {
			x.Int(0)
			return
		}
		ofBits, ok := x.bitUnit(a[4:])
		if !ok {
			return
		}
		from, to = v.bitRange(start, end, ofBits)
	}
	n := int64(0)
	for at := from; at < to; at++ {
		n += v.bit(at)
	}
	x.Int(n)
}

// bitpos replies the index of the first bit with a value. If the range has no end, the string
// counts as padded with zeros.
func bitpos(x *exec, a []string) {
	bit, ok := x.int64Arg(a[2])
	if !ok {
		return
	}
	if bit != 0 && bit != 1 {
		x.Err("ERR The bit argument must be 1 or 0.")
		return
	}
	if x.get(a[1]) == nil {
		x.Int(-bit)
		return
	}
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	from, to := int64(0), int64(len(v))*8
	switch {
	case len(a) == 3:
	case len(a) > 6:
		x.syntax()
		return
	default:
		start, ok := x.int64Arg(a[3])
		if !ok {
			return
		}
		ofBits, ok := x.bitUnit(a[min(len(a), 5):])
		if !ok {
			return
		}
		end := int64(math.MaxInt64)
		if len(a) > 4 {
			if end, ok = x.int64Arg(a[4]); !ok {
				return
			}
		}
		from, to = v.bitRange(start, end, ofBits)
	}
	for at := from; at < to; at++ {
		if v.bit(at) == bit {
			x.Int(at)
			return
		}
	}
	if bit == 0 && len(a) < 5 && from < to {
		x.Int(to)
		return
	}
	x.Int(-1)
}

// bitop combines strings bit by bit. Behind the end of a string there are zeros.
func bitop(x *exec, a []string) {
	op, target, keys := strings.ToLower(a[1]), a[2], a[3:]
	switch op {
	case "and", "or", "xor":
	case "not":
		if len(keys) != 1 {
			x.Err("ERR BITOP NOT must be called with a single source key.")
			return
		}
	default:
		x.syntax()
		return
	}
	var all []str
	longest := 0
	for _, key := range keys {
		v, ok := typed[str](x, key)
		if !ok {
			return
		}
		all, longest = append(all, v), max(longest, len(v))
	}
	if longest == 0 {
		x.delete(target)
		x.Int(0)
		return
	}
	result := make([]byte, longest)
	for i := range result {
		for j, v := range all {
			b := byte(0)
			if i < len(v) {
				b = v[i]
			}
			switch {
			case op == "not":
				result[i] = ^b
			case j == 0:
				result[i] = b
			case op == "and":
				result[i] &= b
			case op == "or":
				result[i] |= b
			case op == "xor":
				result[i] ^= b
			}
		}
	}
	x.replace(target, str(result), noExpiry)
	x.Int(int64(longest))
}

func mget(x *exec, a []string) {
	x.Array(len(a) - 1)
	for _, key := range a[1:] {
		v, ok := x.get(key).(str)
		x.bulkOrNull(string(v), ok)
	}
}

func mset(x *exec, a []string) {
	if len(a)%2 == 0 {
		x.wrongArity("mset")
		return
	}
	x.setAll(a[1:])
	x.ok()
}

func (x *exec) setAll(pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		x.replace(pairs[i], str(pairs[i+1]), noExpiry)
	}
}

func msetnx(x *exec, a []string) {
	if len(a)%2 == 0 {
		x.wrongArity("msetnx")
		return
	}
	for i := 1; i < len(a); i += 2 {
		if x.get(a[i]) != nil {
			x.Int(0)
			return
		}
	}
	x.setAll(a[1:])
	x.Int(1)
}

func incrby(x *exec, a []string) {
	if by, ok := x.int64Arg(a[2]); ok {
		x.count(a[1], by)
	}
}

func decrby(x *exec, a []string) {
	by, ok := x.int64Arg(a[2])
	if !ok {
		return
	}
	if by == math.MinInt64 {
		x.Err("ERR decrement would overflow")
		return
	}
	x.count(a[1], -by)
}

// count adds by to the integer under a key, and replies the sum.
func (x *exec) count(key string, by int64) {
	v, ok := typed[str](x, key)
	if !ok {
		return
	}
	n := int64(0)
	if x.get(key) != nil {
		if n, ok = x.int64Arg(string(v)); !ok {
			return
		}
	}
	sum, ok := x.sum(n, by)
	if !ok {
		return
	}
	x.put(key, str(strconv.FormatInt(sum, 10)))
	x.Int(sum)
}

// sum adds, or replies that the sum overflows.
func (x *exec) sum(a, b int64) (int64, bool) {
	if b < 0 && a < math.MinInt64-b || b > 0 && a > math.MaxInt64-b {
		x.Err("ERR increment or decrement would overflow")
		return 0, false
	}
	return a + b, true
}
