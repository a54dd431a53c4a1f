package redismodel

import "slices"

var setCommands = []command{
	{name: "sadd", run: on(sadd)},
	{name: "srem", run: remove(set.without)},
	{name: "sismember", run: on(sismember)},
	{name: "smismember", run: on(smismember)},
	{name: "smove", run: smove},
	{name: "smembers", run: on(smembers)},
	{name: "scard", run: on(size[set])},
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
