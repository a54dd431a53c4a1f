package explore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"oversell/internal/names"
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

// ownToken is a token of a client's own, as it says it.
func ownToken(n int) string { return names.Scheme{}.Token(n) }
