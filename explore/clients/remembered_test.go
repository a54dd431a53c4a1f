package clients

import (
	"fmt"
	"testing"

	"oversell/variant"
)

// chain is a structure that can point to itself.
type chain struct {
	name string
	next *chain
}

func TestRemembered(t *testing.T) {
	type pocket struct {
		env    variant.Env
		count  int
		names  map[string]int
		any    any
		ch     chan int
		nested []*chain
	}
	ring := func(names ...string) *chain {
		first := &chain{name: names[0]}
		last := first
		for _, n := range names[1:] {
			last.next = &chain{name: n}
			last = last.next
		}
		last.next = first
		return first
	}
	shared := &chain{name: "a"}
	for _, c := range []struct {
		name  string
		a, b  any
		alike bool
	}{
		{"equal", pocket{count: 1}, pocket{count: 1}, true},
		{"a number", pocket{count: 1}, pocket{count: 2}, false},
		{"the world", pocket{env: variant.Env{Token: func() string { return "" }}}, pocket{}, true},
		{"maps in any order", pocket{names: map[string]int{"a": 1, "b": 2, "c": 3}}, pocket{names: map[string]int{"c": 3, "b": 2, "a": 1}}, true},
		{"a map's value", pocket{names: map[string]int{"a": 1}}, pocket{names: map[string]int{"a": 2}}, false},
		{"a map's key", pocket{names: map[string]int{"a": 1}}, pocket{names: map[string]int{"b": 1}}, false},
		{"a type", pocket{any: int32(1)}, pocket{any: int64(1)}, false},
		{"nothing", pocket{any: nil}, pocket{any: 0}, false},
		{"text that looks like more", []string{"a", "b"}, []string{`a","b`}, false},
		{"equal rings", ring("a", "b"), ring("a", "b"), true},
		{"other rings", ring("a", "b"), ring("a", "c"), false},
		{"a longer ring", ring("a", "a"), ring("a", "a", "a"), false},
		{"one thing twice", []*chain{shared, shared}, []*chain{{name: "a"}, {name: "a"}}, false},
		{"nil and empty", pocket{nested: []*chain{nil}}, pocket{nested: []*chain{{}}}, false},
	} {
		a, b := remembered([]any{c.a}), remembered([]any{c.b})
		if !a.ok || !b.ok || (a.text == b.text) != c.alike {
			t.Errorf("%s: %+v and %+v", c.name, a, b)
		}
	}
	if remembered([]any{pocket{ch: make(chan int)}}).ok {
		t.Error("a channel was looked into")
	}
	if remembered([]any{map[string]any{"x": []any{make(chan int)}}}).ok {
		t.Error("a channel deep in a map was looked into")
	}
	if remembered([]any{1, 2}).text == remembered([]any{12}).text {
		t.Error("two objects are as one")
	}
	large := map[string]int{}
	for i := range 100 {
		large[fmt.Sprint(i)] = i
	}
	want := remembered([]any{large}).text
	for range 20 {
		if got := remembered([]any{large}).text; got != want {
			t.Fatal("the order of a map shows")
		}
	}
}
