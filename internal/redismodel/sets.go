package redismodel

import "slices"

var setCommands = []command{
	{name: "sadd", run: sadd},
	{name: "srem", run: srem},
	{name: "sismember", run: sismember},
	{name: "smembers", run: smembers},
	{name: "scard", run: scard},
}

func sadd(x *exec, a []string) {
	s, ok := typed[set](x, a[1])
	if !ok {
		return
	}
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

func srem(x *exec, a []string) {
	s, ok := typed[set](x, a[1])
	if !ok {
		return
	}
	before := len(s)
	for _, name := range a[2:] {
		if i, there := slices.BinarySearch(s, name); there {
			s = cut(s, i)
		}
	}
	if len(s) < before {
		putOrDelete(x, a[1], s)
	}
	x.Int(int64(before - len(s)))
}

func sismember(x *exec, a []string) {
	if s, ok := typed[set](x, a[1]); ok {
		_, there := slices.BinarySearch(s, a[2])
		x.bool(there)
	}
}

func smembers(x *exec, a []string) {
	if s, ok := typed[set](x, a[1]); ok {
		x.unordered(len(s), 1)
		x.bulks(s)
	}
}

func scard(x *exec, a []string) {
	if s, ok := typed[set](x, a[1]); ok {
		x.Int(int64(len(s)))
	}
}
