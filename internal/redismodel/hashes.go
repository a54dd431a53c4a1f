package redismodel

import "strconv"

var hashCommands = []command{
	{name: "hset", run: func(x *exec, a []string) { hset(x, a, "hset") }},
	{name: "hmset", run: func(x *exec, a []string) { hset(x, a, "hmset") }},
	{name: "hsetnx", run: on(hsetnx)},
	{name: "hget", run: on(hget)},
	{name: "hmget", run: on(hmget)},
	{name: "hgetall", run: hashList(true, true)},
	{name: "hkeys", run: hashList(true, false)},
	{name: "hvals", run: hashList(false, true)},
	{name: "hdel", run: remove(hash.without)},
	{name: "hexists", run: on(hexists)},
	{name: "hlen", run: on(size[hash])},
	{name: "hstrlen", run: on(hstrlen)},
	{name: "hincrby", run: hincrby},
	{name: "hincrbyfloat", run: hincrbyfloat},
}

func hset(x *exec, a []string, name string) {
	if len(a)%2 == 1 {
		x.wrongArity(name)
		return
	}
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	before := len(h)
	for i := 2; i < len(a); i += 2 {
		h = h.with(a[i], a[i+1])
	}
	x.put(a[1], h)
	if name == "hmset" {
		x.ok()
		return
	}
	x.Int(int64(len(h) - before))
}

func hsetnx(x *exec, h hash, a []string) {
	_, there := h.get(a[2])
	if !there {
		x.put(a[1], h.with(a[2], a[3]))
	}
	x.bool(!there)
}

func hget(x *exec, h hash, a []string) {
	x.bulkOrNull(h.get(a[2]))
}

func hmget(x *exec, h hash, a []string) {
	x.Array(len(a) - 2)
	for _, field := range a[2:] {
		x.bulkOrNull(h.get(field))
	}
}

func hashList(fields, values bool) func(x *exec, a []string) {
	return on(func(x *exec, h hash, _ []string) {
		var texts []string
		for _, p := range h {
			if fields {
				texts = append(texts, p.field)
			}
			if values {
				texts = append(texts, p.value)
			}
		}
		unit := 1
		if fields && values {
			unit = 2
		}
		x.unordered(len(h), unit)
		x.bulks(texts)
	})
}

// unordered records that the next array in the reply has no defined order. It has n items of unit bulk strings each. In a
// script the reply is unknown, since the script may depend on the order.
func (x *exec) unordered(n, unit int) {
	switch {
	case n < 2:
	case x.inScript:
		x.Unknown("the order of a hash or a set in a script")
	default:
		x.info.Unordered = append(x.info.Unordered, Unordered{At: len(x.out), N: n, Unit: unit})
	}
}

func hexists(x *exec, h hash, a []string) {
	_, there := h.get(a[2])
	x.bool(there)
}

func hstrlen(x *exec, h hash, a []string) {
	text, _ := h.get(a[2])
	x.Int(int64(len(text)))
}

func hincrby(x *exec, a []string) {
	by, ok := x.int64Arg(a[3])
	if !ok {
		return
	}
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	n := int64(0)
	if text, there := h.get(a[2]); there {
		if n, ok = parseInt(text); !ok {
			x.Err("ERR hash value is not an integer")
			return
		}
	}
	sum, ok := x.sum(n, by)
	if !ok {
		return
	}
	x.put(a[1], h.with(a[2], strconv.FormatInt(sum, 10)))
	x.Int(sum)
}
