package redismodel

import (
	"cmp"
	"slices"
	"strconv"
)

// str is the value of a string key.
type str string

func (str) kind() string                          { return "string" }
func (v str) later(int64) value                   { return v }
func (v str) renamed(f func(string) string) value { return str(f(string(v))) }
func (v str) appendKey(b []byte) []byte           { return appendString(append(b, 's'), string(v)) }
func (v str) appendText(b []byte) []byte          { return appendQuoted(b, string(v)) }

// hash is sorted by field.
type hash []pair

type pair struct{ field, value string }

func (hash) kind() string        { return "hash" }
func (v hash) later(int64) value { return v }

func (v hash) renamed(f func(string) string) value {
	out := make(hash, len(v))
	for i, p := range v {
		out[i] = pair{f(p.field), f(p.value)}
	}
	slices.SortFunc(out, func(a, b pair) int { return cmp.Compare(a.field, b.field) })
	return out
}

func (v hash) appendKey(b []byte) []byte {
	b = appendCount(append(b, 'h'), len(v))
	for _, p := range v {
		b = appendString(appendString(b, p.field), p.value)
	}
	return b
}

func (v hash) appendText(b []byte) []byte {
	return appendList(b, '{', '}', len(v), func(b []byte, i int) []byte {
		return appendQuoted(append(appendQuoted(b, v[i].field), ':'), v[i].value)
	})
}

func (v hash) find(field string) (int, bool) {
	return slices.BinarySearchFunc(v, field, func(p pair, f string) int { return cmp.Compare(p.field, f) })
}

func (v hash) get(field string) (string, bool) {
	i, ok := v.find(field)
	if !ok {
		return "", false
	}
	return v[i].value, true
}

func (v hash) with(field, text string) hash {
	i, ok := v.find(field)
	out := make(hash, 0, len(v)+1)
	out = append(append(out, v[:i]...), pair{field, text})
	if ok {
		i++
	}
	return append(out, v[i:]...)
}

func (v hash) without(field string) hash {
	if i, there := v.find(field); there {
		return cut(v, i)
	}
	return v
}

// cut returns a slice without one element. The original does not change.
func cut[S ~[]E, E any](s S, i int) S { return cutRange(s, i, i+1) }

func cutRange[S ~[]E, E any](s S, i, j int) S {
	out := make(S, 0, len(s)-(j-i))
	return append(append(out, s[:i]...), s[j:]...)
}

// insert returns a slice with one more element.
func insert[S ~[]E, E any](s S, i int, e E) S {
	out := make(S, 0, len(s)+1)
	return append(append(append(out, s[:i]...), e), s[i:]...)
}

// zset is sorted by score, then by name.
type zset []member

type member struct {
	name  string
	score float64
}

func compareMembers(a, b member) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.name, b.name))
}

func (zset) kind() string        { return "zset" }
func (v zset) later(int64) value { return v }

func (v zset) renamed(f func(string) string) value {
	out := make(zset, len(v))
	for i, m := range v {
		out[i] = member{f(m.name), m.score}
	}
	slices.SortFunc(out, compareMembers)
	return out
}

func (v zset) appendKey(b []byte) []byte {
	b = appendCount(append(b, 'z'), len(v))
	for _, m := range v {
		b = appendString(appendFloat(b, m.score), m.name)
	}
	return b
}

func (v zset) appendText(b []byte) []byte {
	return appendList(b, '{', '}', len(v), func(b []byte, i int) []byte {
		return strconv.AppendFloat(append(appendQuoted(b, v[i].name), ':'), v[i].score, 'f', -1, 64)
	})
}

func (v zset) find(name string) int {
	return slices.IndexFunc(v, func(m member) bool { return m.name == name })
}

// with adds a member, which must not be there.
func (v zset) with(m member) zset {
	i, _ := slices.BinarySearchFunc(v, m, compareMembers)
	return insert(v, i, m)
}

func (v zset) without(name string) zset {
	if i := v.find(name); i >= 0 {
		return cut(v, i)
	}
	return v
}

// list is the value of a list.
type list []string

func (list) kind() string                          { return "list" }
func (v list) later(int64) value                   { return v }
func (v list) renamed(f func(string) string) value { return list(renamedTexts(v, f)) }
func (v list) appendKey(b []byte) []byte           { return appendStrings(append(b, 'l'), v) }

func (v list) appendText(b []byte) []byte {
	return appendList(b, '[', ']', len(v), func(b []byte, i int) []byte { return appendQuoted(b, v[i]) })
}

// set is sorted.
type set []string

func (set) kind() string                { return "set" }
func (v set) later(int64) value         { return v }
func (v set) appendKey(b []byte) []byte { return appendStrings(append(b, 'm'), v) }

func (v set) renamed(f func(string) string) value {
	out := renamedTexts(v, f)
	slices.Sort(out)
	return set(out)
}

func (v set) appendText(b []byte) []byte {
	return appendList(b, '{', '}', len(v), func(b []byte, i int) []byte { return appendQuoted(b, v[i]) })
}

func (v set) without(name string) set {
	if i, there := slices.BinarySearch(v, name); there {
		return cut(v, i)
	}
	return v
}
