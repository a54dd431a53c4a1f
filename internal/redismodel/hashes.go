package redismodel

import "strconv"

var hashCommands = []command{
	{name: "hset", run: func(x *exec, a []string) { hset(x, a, "hset") }},
	{name: "hmset", run: func(x *exec, a []string) { hset(x, a, "hmset") }},
	{name: "hsetnx", run: hsetnx},
	{name: "hget", run: hget},
	{name: "hmget", run: hmget},
	{name: "hgetall", run: hashList(true, true)},
	{name: "hkeys", run: hashList(true, false)},
	{name: "hvals", run: hashList(false, true)},
	{name: "hdel", run: hdel},
	{name: "hexists", run: hexists},
	{name: "hlen", run: hlen},
	{name: "hstrlen", run: hstrlen},
	{name: "hincrby", run: hincrby},
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

func hsetnx(x *exec, a []string) {
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	_, there := h.get(a[2])
	if !there {
		x.put(a[1], h.with(a[2], a[3]))
	}
	x.bool(!there)
}

func hget(x *exec, a []string) {
	if h, ok := typed[hash](x, a[1]); ok {
		x.bulkOrNull(h.get(a[2]))
	}
}

func hmget(x *exec, a []string) {
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	x.Array(len(a) - 2)
	for _, field := range a[2:] {
		x.bulkOrNull(h.get(field))
	}
}

func hashList(fields, values bool) func(x *exec, a []string) {
	return func(x *exec, a []string) {
		h, ok := typed[hash](x, a[1])
		if !ok {
			return
		}
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
	}
}

// unordered is called before a reply of n items, of so many texts each, in an order that the model does not know. A
// script could depend on it in any way.
func (x *exec) unordered(n, unit int) {
	switch {
	case n < 2:
	case x.inScript:
		x.Unknown("the order of a hash or a set in a script")
	default:
		x.info.Loose = append(x.info.Loose, Loose{At: len(x.out), N: n, Unit: unit})
	}
}

func hdel(x *exec, a []string) {
	h, ok := typed[hash](x, a[1])
	if !ok {
		return
	}
	before := len(h)
	for _, field := range a[2:] {
		h, _ = h.without(field)
	}
	if len(h) < before {
		putOrDelete(x, a[1], h)
	}
	x.Int(int64(before - len(h)))
}

func hexists(x *exec, a []string) {
	if h, ok := typed[hash](x, a[1]); ok {
		_, there := h.get(a[2])
		x.bool(there)
	}
}

func hlen(x *exec, a []string) {
	if h, ok := typed[hash](x, a[1]); ok {
		x.Int(int64(len(h)))
	}
}

func hstrlen(x *exec, a []string) {
	if h, ok := typed[hash](x, a[1]); ok {
		text, _ := h.get(a[2])
		x.Int(int64(len(text)))
	}
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
