package explore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"oversell/internal/names"
	"oversell/variant"
)

func TestNames(t *testing.T) {
	number := func(client int, n int64) string { return fmt.Sprint(names.Number(client, n)) }
	for _, own := range []string{
		"", "lock", "token", "token9", "token9.", "tokenx.1", "900719", "90071909",
		ownToken(0), ownToken(12), "a" + ownToken(3) + "b" + ownToken(4), ownToken(1) + ownToken(2),
		fmt.Sprint(names.OwnNumber(1)), "x" + fmt.Sprint(names.OwnNumber(999_999)) + ":" + ownToken(7),
		"$16\r\n" + fmt.Sprint(names.OwnNumber(5)) + "\r\n", ":" + fmt.Sprint(names.OwnNumber(5)) + "\r\n",
	} {
		for client := range maxSlots {
			g := global(own, client)
			if len(g) != len(own) {
				t.Errorf("%q is %q for all: the length in a bulk string is wrong", own, g)
			}
			if back := local(g, client); back != own {
				t.Errorf("%q is %q for all and %q again", own, g, back)
			}
			if foreign(own) {
				t.Errorf("%q is foreign", own)
			}
			other := (client + 1) % maxSlots
			if named := g != own; foreign(local(g, other)) != named {
				t.Errorf("%q of client %d: foreign for %d is %t", own, client, other, !named)
			}
		}
	}
	if got, want := global(ownToken(3)+" "+fmt.Sprint(names.OwnNumber(4)), 2), "token2.3 "+number(2, 4); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got, want := readable("a"+number(3, 12)+"b"+number(0, 1)+" token1.2"), "a#3.12b#0.1 token1.2"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	// What only looks like a name is left alone.
	for _, text := range []string{"token", "token1", "tokens1.2", "90071900000000", "9007190x0000001"} {
		if got := rename(text, func(byte) byte { return '5' }); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, c := range []struct {
		n      int64
		client int
		number int64
		ok     bool
	}{
		{names.OwnNumber(7), 9, 7, true}, {names.Number(2, 3), 2, 3, true}, {names.Number(0, 0), 0, 0, true},
		{names.Number(0, -1), 0, 0, false}, {names.Number(10, 0), 0, 0, false}, {1, 0, 0, false}, {-5, 0, 0, false},
	} {
		if client, n, ok := names.NumberOwner(c.n); ok != c.ok || ok && (client != c.client || n != c.number) {
			t.Errorf("owner(%d) = %d, %d, %t", c.n, client, n, ok)
		}
	}
	if n := names.OwnNumber(999_999); n != int64(float64(n)) || n >= 1<<53 {
		t.Errorf("%d is not exact in a Lua number", n)
	}
}

func TestReplaceToken(t *testing.T) {
	for _, c := range []struct{ text, old, new, want string }{
		{"a=token0.1 b=token0.12", "token0.1", "token7.1", "a=token7.1 b=token0.12"},
		{"token0.1token0.1", "token0.1", "token7.1", "token7.1token7.1"},
		{"token1.1", "token0.1", "token7.1", "token1.1"},
		{"", "token0.1", "token7.1", ""},
	} {
		if got := replaceName(c.text, c.old, c.new); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
	}
}

// chain is a structure that can hold itself.
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

func TestVisited(t *testing.T) {
	var v visited
	f := func(n uint64) fingerprint {
		m := newMixer()
		m.add(n)
		return m.sum()
	}
	first, fresh := v.add(f(1), way{from: noState, cost: 5})
	if !fresh {
		t.Error("the first is not new")
	}
	if id, fresh := v.add(f(1), way{from: 3, cost: 4}); fresh || id != first || v.way(first).from != 3 {
		t.Errorf("a cheaper way in the same layer: %d, %t, %+v", id, fresh, v.way(first))
	}
	v.add(f(1), way{from: 4, cost: 4})
	v.add(f(1), way{from: 5, cost: 6})
	if v.way(first).from != 3 {
		t.Error("a way that is no cheaper replaced the first")
	}
	v.next()
	if v.add(f(1), way{from: 6, cost: 1}); v.way(first).from != 3 {
		t.Error("a cheaper way in a later layer is a longer one")
	}
	ids := map[stateID]uint64{first: 1}
	r := rand.New(rand.NewPCG(1, 2))
	const many = 1_000_000
	seen := make(map[uint64]bool, many)
	for len(seen) < many {
		n := r.Uint64() >> 20 // close to each other, as numbers of situations are
		if n <= 1 || seen[n] {
			continue
		}
		seen[n] = true
		id, fresh := v.add(f(n), way{from: stateID(n)})
		if !fresh {
			t.Fatalf("%d is taken for another", n)
		}
		if n%64 == 0 {
			ids[id] = n
		}
	}
	if v.len() != many+1 {
		t.Errorf("%d states", v.len())
	}
	for id, n := range ids {
		if id != first && v.way(id).from != stateID(n) {
			t.Fatalf("the way to %d is %+v", n, v.way(id))
		}
		if again, fresh := v.add(f(n), way{from: noState, cost: 1}); fresh || again != id {
			t.Fatalf("%d is new again", n)
		}
	}
}

// TestFingerprints: states that differ in one place differ.
func TestFingerprints(t *testing.T) {
	seen := map[fingerprint]state{}
	for i := range uint32(20_000) {
		for _, s := range []state{{servers: i + 1}, {facts: i + 1}, {inFlight: i + 1}, {now: i + 1}, {nodes: [maxSlots]uint32{0: i + 1}}, {nodes: [maxSlots]uint32{1: i + 1}}, {nodes: [maxSlots]uint32{maxSlots - 1: i + 1}}} {
			f := s.fingerprint()
			if old, known := seen[f]; known {
				t.Fatalf("%+v and %+v are one", old, s)
			}
			seen[f] = s
		}
	}
	for _, s := range []state{{}, {lost: 1}, {late: 1}, {moved: 1}, {stalled: 1}} {
		if old, known := seen[s.fingerprint()]; known {
			t.Errorf("%+v and %+v are one", old, s)
		}
		seen[s.fingerprint()] = s
	}
}

func TestPermsAreAGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	some := func() perm {
		p := same
		r.Shuffle(maxSlots, func(i, j int) { p[i], p[j] = p[j], p[i] })
		return p
	}
	for range 1000 {
		p, q, s := some(), some(), some()
		switch {
		case p.after(same) != p || same.after(p) != p:
			t.Fatalf("%v: no identity", p)
		case p.after(p.inverse()) != same || p.inverse().after(p) != same:
			t.Fatalf("%v: no inverse", p)
		case p.after(q).after(s) != p.after(q.after(s)):
			t.Fatalf("%v %v %v: not associative", p, q, s)
		}
		for i := range maxSlots {
			if p.after(q).of(i) != p.of(q.of(i)) {
				t.Fatalf("%v after %v", p, q)
			}
		}
		text := "token0.1 token3.2 9007190" + "05000001 token8.0 token9.9"
		if p.after(q).rename(text) != p.rename(q.rename(text)) || p.inverse().rename(p.rename(text)) != text {
			t.Fatalf("%v and %v on names", p, q)
		}
	}
	if p := some(); p.of(-1) != -1 || p.of(nobody) != nobody {
		t.Error("who is no client is renamed")
	}
}

// TestOrders: all orders within groups, each once, and none else.
func TestOrders(t *testing.T) {
	seen := map[perm]bool{}
	for _, p := range ordersOf(0b01101, 5) {
		if seen[p] || p[0] > 1 || p[1] > 1 || p[5] != 5 {
			t.Errorf("%v", p)
		}
		seen[p] = true
	}
	if len(seen) != 2*6 {
		t.Errorf("%d orders", len(seen))
	}
}

func TestRepliesForPeople(t *testing.T) {
	for _, c := range []struct {
		reply, want string
		tx          bool
	}{
		{"+OK\r\n", "OK", false},
		{":-1\r\n", "-1", false},
		{"$-1\r\n", "(nil)", false},
		{"*-1\r\n", "(nil)", false},
		{"$0\r\n\r\n", `""`, false},
		{"$5\r\nab\r\nc\r\n", `"ab\r\nc"`, false},
		{"-ERR no\r\n", "error: ERR no", false},
		{"*0\r\n", "[]", false},
		{"*3\r\n$1\r\na\r\n*2\r\n:1\r\n$-1\r\n+x\r\n", "[a [1 (nil)] x]", false},
		{":1\r\n+OK\r\n", "1; OK", false},
		{"+OK\r\n+QUEUED\r\n*1\r\n:4\r\n", "[4]", true},
		{"+OK\r\n+QUEUED\r\n*-1\r\n", "(nil)", true},
		{"", "", false},
		{"$16\r\n9007190003000012\r\n", "#3.12", false},
	} {
		if got := replies(call{tx: c.tx}, c.reply); got != c.want {
			t.Errorf("%q is %q; want %q", c.reply, got, c.want)
		}
	}
	if _, rest := value("*2\r\n:1\r\n:2\r\n:3\r\n"); rest != ":3\r\n" {
		t.Errorf("left: %q", rest)
	}
	// What was cut off does no harm.
	for whole := "*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n"; whole != ""; whole = whole[:len(whole)-1] {
		_ = replies(call{}, whole)
	}
	if strings.Contains(quoted("a b"), "a b") && quoted("a b") != `"a b"` {
		t.Error(quoted("a b"))
	}
}

// ownToken is a token of a client's own, as it says it.
func ownToken(n int) string { return names.Scheme{}.Token(n) }

// TestMemoGrows: a memo says what its function says, also while it grows and others ask.
func TestMemoGrows(t *testing.T) {
	m := newMemo(func(k serversID) uint32 { return uint32(k) * 3 })
	var all sync.WaitGroup
	for seed := range uint64(3) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, seed))
			for range 20_000 {
				k := serversID(r.IntN(5_000))
				if got := *m.get(k, k.hash()); got != uint32(k)*3 || m.of(k) != got {
					t.Errorf("%d: %d", k, got)
				}
			}
		})
	}
	all.Wait()
}

// TestInternerNumbersInOrder: equal keys have one number, and what stands under it does not move.
func TestInternerNumbersInOrder(t *testing.T) {
	in := newInterner[string]()
	for i := range uint32(5_000) {
		key := strconv.Itoa(int(i))
		for range 2 {
			if id := in.id(key, func() string { return key }); id != i {
				t.Fatalf("%s has the number %d", key, id)
			}
		}
	}
	for i := range uint32(5_000) {
		if got := in.get(i); got != strconv.Itoa(int(i)) {
			t.Fatalf("%d is %s", i, got)
		}
	}
}
