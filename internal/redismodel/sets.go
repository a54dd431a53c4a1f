package redismodel

import "slices"

var setCommands = []command{
	{name: "sadd", run: on(sadd)},
	{name: "srem", run: remove(set.without)},
	{name: "sismember", run: on(sismember)},
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

func smembers(x *exec, s set, _ []string) {
	x.unordered(len(s), 1)
	x.bulks(s)
}
