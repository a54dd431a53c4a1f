package names

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// TestOther checks that, for any two names, one of two other spellings reverses their order and one keeps it, even if only
// their beginnings are compared.
func TestOther(t *testing.T) {
	var all []string
	for _, prefix := range []string{RandomPrefix, TokenPrefix} {
		for _, client := range "0123789" {
			for n := range 12 {
				all = append(all, prefix+string(client)+"."+strconv.Itoa(n))
			}
		}
	}
	for _, wide := range []bool{false, true} {
		for i, x := range all {
			for _, y := range all[:i] {
				if wide {
					x, y = x+strings.Repeat("~", Width-len(x)), y+strings.Repeat("~", Width-len(y))
				}
				falls, rises := Other(1, x)[:4] > Other(1, y)[:4], Other(2, x)[:4] > Other(2, y)[:4]
				if falls == rises {
					t.Errorf("%s and %s have one order only", x, y)
				}
				if wide && len(Other(1, x)) != len(x) {
					t.Errorf("%q has another length than %q", Other(1, x), x)
				}
			}
		}
	}
	if Other(1, "a token0.1") == Other(3, "a token0.1") || Other(1, "nothing") != "nothing" {
		t.Error("the seed makes no difference, or a text without names is spelled otherwise")
	}
}

// TestConcreteNamings checks that all names of a naming differ and look like real ones, and that any two names occur in
// both orders.
func TestConcreteNamings(t *testing.T) {
	type name struct{ client, n int }
	orders := map[[2]name]int{}
	var all []name
	for client := range 6 {
		for n := range 4 {
			all = append(all, name{client, n})
		}
	}
	for naming := Concrete; naming < Namings; naming++ {
		seen := map[string]bool{}
		token := func(n name) string { return Scheme{Naming: naming, Client: n.client}.Token(n.n) }
		for _, n := range all {
			text := token(n)
			if seen[text] || len(text) != Width || strings.Trim(text, "0123456789abcdef") != "" {
				t.Errorf("naming %d: %q", naming, text)
			}
			seen[text] = true
			if v := (Scheme{Naming: naming, Client: n.client}).random(n.n, 22); len(v.Name) != 22 || seen[v.Name] {
				t.Errorf("naming %d: %q", naming, v.Name)
			}
			for _, m := range all {
				if token(m) < text {
					orders[[2]name{m, n}]++
				}
			}
		}
	}
	if want := len(all) * (len(all) - 1); len(orders) != want {
		t.Errorf("%d of %d orders of two names", len(orders), want)
	}
}

// TestLowBits checks that the low bits of two clients' names agree in one naming and differ in another.
func TestLowBits(t *testing.T) {
	for n := range 4 {
		for naming, want := range map[Naming]byte{Concrete + 4: 0, Concrete + 5: allLow} {
			a, b := Scheme{Naming: naming}, Scheme{Naming: naming, Client: 1}
			if got := lowBits(a.Token(n)) ^ lowBits(b.Token(n)); got != want {
				t.Errorf("naming %d: %07b", naming, got)
			}
		}
	}
}

func TestReplies(t *testing.T) {
	b := Scheme{}.Dictionary(1)
	long := b.Actual("token3.1")
	reply := "*2\r\n$10\r\n<token3.1>\r\n$-1\r\n:5\r\n+OK\r\n-ERR token3.1\r\n$0\r\n\r\n"
	want := fmt.Sprintf("*2\r\n$%d\r\n<%s>\r\n$-1\r\n:5\r\n+OK\r\n-ERR %s\r\n$0\r\n\r\n", len(long)+2, long, long)
	if got := b.Reply(reply); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if got := b.Canonical("x" + long + "y"); got != "xtoken3.1y" {
		t.Errorf("%q", got)
	}
	for whole := reply; whole != ""; whole = whole[:len(whole)-1] {
		_ = b.Reply(whole) // must not panic on a reply that was cut off
	}
}

// program prints texts that depend on its token and on the values it draws.
type program func(token string) []string

func (p program) stand(seed uint64) *Stand {
	b := Scheme{}.Dictionary(seed)
	return &Stand{Book: b, Texts: p(b.Token(0))}
}

func TestSettle(t *testing.T) {
	uuid := func() string {
		b := make([]byte, 16)
		_, _ = rand.Read(b)
		return fmt.Sprintf("%x-%x-4%.3x-8%.3x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	count := 1 << 40
	letter := func() string { count++; return string(rune('a' + count%26)) }
	for name, c := range map[string]struct {
		says program
		want string
		err  error
	}{
		"the token": {func(token string) []string { return []string{"set", "k", token} }, "set k token9.0", nil},
		"a value":   {func(string) []string { v := rand.Text(); return []string{"set", v, "k:" + v} }, "set random9.0~ k:random9.0~", nil},
		"a UUID":    {func(string) []string { return []string{"lock:" + uuid() + ":1"} }, "lock:random9.0~:1", nil},
		"UUIDs of one moment": {func(string) []string {
			v := fmt.Sprintf("d0c3c000e6a411f0a%03x02fc00000001", mathrand.IntN(1<<12))
			return []string{"lock:" + v, v}
		}, "lock:random9.0~ random9.0~", nil},
		"two in a text":  {func(string) []string { v, w := rand.Text(), rand.Text(); return []string{v + ":" + w, w} }, "random9.0~:random9.1~ random9.1~", nil},
		"beside a token": {func(token string) []string { return []string{token + "/" + rand.Text()} }, "token9.0/random9.0~", nil},
		"bytes, quoted": {func(string) []string {
			b := make([]byte, 16)
			_, _ = rand.Read(b)
			return []string{`{"k":` + strconv.Quote(string(b)) + `,"n":"` + strconv.Quote(string(b[:1])[:0]) + `"}`}
		}, `{"k":"random9.0~","n":""""}`, nil},
		"another length":  {func(token string) []string { return []string{strconv.Itoa(len(token))} }, "", ErrNotOpaque},
		"a part":          {func(token string) []string { return []string{token[:6]} }, "", ErrNotOpaque},
		"in upper case":   {func(token string) []string { return []string{strings.ToUpper(token)} }, "", ErrNotOpaque},
		"a counter":       {func(string) []string { count++; return []string{strconv.Itoa(count)} }, "", ErrChance},
		"a letter":        {func(string) []string { return []string{letter()} }, "", ErrChance},
		"a different end": {func(string) []string { return []string{"x", rand.Text()[:3]} }, "", ErrChance},
	} {
		t.Run(name, func(t *testing.T) {
			texts, drawn, err := Settle([]*Stand{c.says.stand(0), c.says.stand(1), c.says.stand(2)}, 0, func() (*Stand, error) { return c.says.stand(0), nil })
			got := strings.Join(texts, " ")
			for strings.Contains(got, "~~") {
				got = strings.ReplaceAll(got, "~~", "~")
			}
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Fatalf("%q, %v; want %q, %v", got, err, c.want, c.err)
			}
			for seed := range uint64(3) { // every run takes the same course
				if err != nil {
					break
				}
				want := &Stand{Book: Scheme{}.Dictionary(0), Texts: texts}
				if err := Follow(c.says.stand(seed), want, drawn); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestTwoVersions checks that the error about a value of chance shows two different versions of it.
func TestTwoVersions(t *testing.T) {
	said := "aba" // the third is the second with the first spelling
	says := program(func(string) []string {
		v := said[:1]
		said = said[1:] + "b"
		return []string{v}
	})
	_, _, err := Settle([]*Stand{says.stand(0), says.stand(1)}, 0, func() (*Stand, error) { return says.stand(0), nil })
	if want := `once it said "a", and then "b": too short`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %q", err, want)
	}
}

// TestEndsAlike checks that values which by chance have the same last character in twelve runs are still recognized when it
// is another one: the last character of 16 bytes in base64 is one of four.
func TestEndsAlike(t *testing.T) {
	runs := 0
	says := program(func(string) []string {
		last := "w"
		if runs++; runs > 12 {
			last = []string{"A", "Q", "g"}[runs%3]
		}
		return []string{rand.Text()[:21] + last + "=="}
	})
	texts, drawn, err := Settle([]*Stand{says.stand(0), says.stand(0)}, 0, func() (*Stand, error) { return says.stand(0), nil })
	if err != nil {
		t.Fatal(err)
	}
	runs = max(runs, 12)
	if err := Follow(says.stand(0), &Stand{Book: Scheme{}.Dictionary(0), Texts: texts}, drawn); err != nil {
		t.Error(err)
	}
}

// TestFewValues checks that values that look random but are drawn from only a thousand are noticed, and that values of 32
// bits are treated as names.
func TestFewValues(t *testing.T) {
	for bits, want := range map[int]error{10: ErrChance, 32: nil} {
		seen := &Seen{}
		says := program(func(string) []string {
			return []string{fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, mathrand.Uint64N(1<<bits))))}
		})
		stand := func() *Stand {
			return &Stand{Book: Scheme{Seen: seen}.Dictionary(0), Texts: says("")}
		}
		var err error
		for range 200 {
			if err == nil {
				_, _, err = Settle([]*Stand{stand(), stand()}, 0, func() (*Stand, error) { return stand(), nil })
			}
		}
		if !errors.Is(err, want) {
			t.Errorf("%d bits: %v; want %v", bits, err, want)
		}
	}
}

// TestComputedValues checks a program that computes a value from a value that another client has drawn: it does not count
// as drawing from too few values, but as depending on how names are spelled.
func TestComputedValues(t *testing.T) {
	seen := &Seen{}
	hash := func(v string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(v))) }
	stand := func() *Stand {
		v := fmt.Sprintf("%016x%016x", mathrand.Uint64(), mathrand.Uint64())
		return &Stand{Book: Scheme{Seen: seen}.Dictionary(0), Texts: []string{"h:" + hash(v), v}}
	}
	var err error
	for range 20 {
		width := len(hash(""))
		if _, _, err := Settle([]*Stand{stand(), stand(), stand(), stand()}, 0, func() (*Stand, error) { return stand(), nil }); err != nil && !errors.Is(err, ErrNotOpaque) {
			t.Fatal(err)
		}
		other := Scheme{Seen: seen}.Dictionary(0)
		_ = other.Actual(padded(RandomPrefix, 0, 32)[:6] + "3" + padded(RandomPrefix, 0, 32)[7:])
		if len(other.shown) == 0 {
			continue
		}
		is := &Stand{Book: Scheme{Seen: seen}.Dictionary(0), Texts: []string{padded(RandomPrefix, 0, width)}}
		err = errors.Join(err, Follow(&Stand{Book: other, Texts: []string{hash(other.shown[0])}}, is, []Value{{is.Texts[0], width}}))
	}
	if !errors.Is(err, ErrNotOpaque) || errors.Is(err, ErrChance) {
		t.Errorf("%v", err)
	}
}

// TestNumbers checks that the numbers of one client rise in all spellings, and that, for the numbers of two clients, there
// are spellings with either order and with equal and different remainders.
func TestNumbers(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3, 4} {
		number := func(client int, n int64) int64 {
			text := Other(seed, "<"+strconv.FormatInt(Number(client, n), 10)+">")
			other, err := strconv.ParseInt(text[1:len(text)-1], 10, 64)
			if err != nil || len(text) != 18 || other >= 1<<53 {
				t.Fatalf("seed %d: %q", seed, text)
			}
			return other
		}
		for client := range 8 {
			if number(client, 1) >= number(client, 2) || number(client, 2) >= number(client, ClientNumber) {
				t.Errorf("seed %d: the numbers of client %d fall", seed, client)
			}
			if rises := number(client, 5) < number(client+1, 5); rises != (seed%2 == 0) {
				t.Errorf("seed %d: from client %d to the next: rises %t", seed, client, rises)
			}
		}
	}
	b := Scheme{}.Dictionary(3)
	mine := b.Number(1)
	if text := strconv.FormatInt(mine, 10); b.Canonical("o:"+text) != "o:"+strconv.FormatInt(OwnNumber(1), 10) || b.Reply(":"+strconv.FormatInt(OwnNumber(1), 10)+"\r\n") != ":"+text+"\r\n" {
		t.Errorf("%d is not spelled the same everywhere", mine)
	}
	up, down, same, other := false, false, false, false
	for naming := Concrete; naming < Namings; naming++ {
		seen := map[int64]bool{}
		for client := range MaxClients + 1 {
			s, before := Scheme{Naming: naming, Client: client}, int64(0)
			for _, n := range []int64{1, 2, 3, 100, ClientNumber} {
				is := s.Dictionary(0).Number(n)
				if seen[is] || is <= before || is >= 1<<53 {
					t.Errorf("naming %d: number %d of client %d is %d", naming, n, client, is)
				}
				seen[is], before = true, is
				for _, of := range []int{client, (client + 1) % 8} {
					want := Number(client, n)
					if of == client {
						want = OwnNumber(n)
					}
					if got := (Scheme{Naming: naming, Client: of}).CanonicalNumber(is); got != want {
						t.Errorf("naming %d: to client %d, %d is %d; want %d", naming, of, is, got, want)
					}
				}
			}
			if got := s.CanonicalNumber(7); got != 7 {
				t.Errorf("7 is %d", got)
			}
		}
		zero, one := Scheme{Naming: naming, Client: 0}.Dictionary(0).Number(1), Scheme{Naming: naming, Client: 1}.Dictionary(0).Number(1)
		up, down = up || zero < one, down || zero > one
		same, other = same || zero%60 == one%60, other || zero%2 != one%2 && zero%7 != one%7
	}
	if !up || !down || !same || !other {
		t.Errorf("of two clients: rising %t, falling %t, dividing alike %t and otherwise %t", up, down, same, other)
	}
}

// TestSaidBoth checks that two long texts are shown by the part in which they differ.
func TestSaidBoth(t *testing.T) {
	same := strings.Repeat("x", 100)
	for _, c := range []struct{ a, b, want string }{
		{"a", "b", `once it said "a", and then "b"`},
		{same + "1" + same, same + "22" + same, fmt.Sprintf("once it said %q, and then %q", "…"+same[:context]+"1"+same[:context]+"…", "…"+same[:context]+"22"+same[:context]+"…")},
		{same, same + "2", fmt.Sprintf("once it said %q, and then %q", "…"+same[:context], "…"+same[:context]+"2")},
	} {
		if got := saidBoth(c.a, c.b); got != c.want {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
}
