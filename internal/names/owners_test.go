package names

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func TestNames(t *testing.T) {
	number := func(client int, n int64) string { return fmt.Sprint(Number(client, n)) }
	for _, own := range []string{
		"", "lock", "token", "token9", "token9.", "tokenx.1", "900719", "90071909",
		ownToken(0), ownToken(12), "a" + ownToken(3) + "b" + ownToken(4), ownToken(1) + ownToken(2),
		fmt.Sprint(OwnNumber(1)), "x" + fmt.Sprint(OwnNumber(999_999)) + ":" + ownToken(7),
		"$16\r\n" + fmt.Sprint(OwnNumber(5)) + "\r\n", ":" + fmt.Sprint(OwnNumber(5)) + "\r\n",
	} {
		for client := range MaxSlots {
			g := Global(own, client)
			if len(g) != len(own) {
				t.Errorf("%q is %q for all: the length in a bulk string is wrong", own, g)
			}
			if back := Local(g, client); back != own {
				t.Errorf("%q is %q for all and %q again", own, g, back)
			}
			if Foreign(own) {
				t.Errorf("%q is foreign", own)
			}
			other := (client + 1) % MaxSlots
			if named := g != own; Foreign(Local(g, other)) != named {
				t.Errorf("%q of client %d: foreign for %d is %t", own, client, other, !named)
			}
		}
	}
	if got, want := Global(ownToken(3)+" "+fmt.Sprint(OwnNumber(4)), 2), "token2.3 "+number(2, 4); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got, want := Readable("a"+number(3, 12)+"b"+number(0, 1)+" token1.2"), "a#3.12b#0.1 token1.2"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	// A text that only looks like a name is not changed.
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
		{OwnNumber(7), 9, 7, true}, {Number(2, 3), 2, 3, true}, {Number(0, 0), 0, 0, true},
		{Number(0, -1), 0, 0, false}, {Number(10, 0), 0, 0, false}, {1, 0, 0, false}, {-5, 0, 0, false},
	} {
		if client, n, ok := NumberOwner(c.n); ok != c.ok || ok && (client != c.client || n != c.number) {
			t.Errorf("owner(%d) = %d, %d, %t", c.n, client, n, ok)
		}
	}
	if n := OwnNumber(999_999); n != int64(float64(n)) || n >= 1<<53 {
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
		if got := Replace(c.text, c.old, c.new); got != c.want {
			t.Errorf("%q; want %q", got, c.want)
		}
	}
}

func TestPermsAreAGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	some := func() Perm {
		p := Same
		r.Shuffle(MaxSlots, func(i, j int) { p[i], p[j] = p[j], p[i] })
		return p
	}
	for range 1000 {
		p, q, s := some(), some(), some()
		switch {
		case p.After(Same) != p || Same.After(p) != p:
			t.Fatalf("%v: no identity", p)
		case p.After(p.Inverse()) != Same || p.Inverse().After(p) != Same:
			t.Fatalf("%v: no inverse", p)
		case p.After(q).After(s) != p.After(q.After(s)):
			t.Fatalf("%v %v %v: not associative", p, q, s)
		}
		for i := range MaxSlots {
			if p.After(q).Of(i) != p.Of(q.Of(i)) {
				t.Fatalf("%v after %v", p, q)
			}
		}
		text := "token0.1 token3.2 9007190" + "05000001 token8.0 token9.9"
		if p.After(q).Rename(text) != p.Rename(q.Rename(text)) || p.Inverse().Rename(p.Rename(text)) != text {
			t.Fatalf("%v and %v on names", p, q)
		}
	}
	if p := some(); p.Of(-1) != -1 || p.Of(Nobody) != Nobody {
		t.Error("who is no client is renamed")
	}
}

// ownToken returns a client's n-th token, as that client itself spells it.
func ownToken(n int) string { return Scheme{}.Token(n) }
