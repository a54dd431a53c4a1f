package alike

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTokens checks that every token is new, and that there are enough for a client that draws one for each attempt.
func TestTokens(t *testing.T) {
	for _, kind := range Tokens {
		for _, digits := range []string{"7f3a9c0e5b1d4826aa17c4e90f62d38b", strings.Repeat("0", 32), strings.Repeat("f", 32), "0123456789abcdef0123456789abcdee"} {
			token := kind.New(digits)
			seen := map[string]bool{token: true}
			n := 0
			for ; n < 1000; n++ {
				like := kind.Like(token, n)
				if like == "" {
					break
				}
				if seen[like] && digits[0] != digits[1] {
					t.Errorf("tokens that %s: the %d-th like %s is %s, which was there before", kind.What, n, token, like)
				}
				seen[like] = true
			}
			if n < 30 {
				t.Errorf("of tokens that %s there are %d like %s; want 30", kind.What, n, token)
			}
		}
	}
}

// TestNames checks that no name occurs twice: a lock would rightly refuse the second one.
func TestNames(t *testing.T) {
	for _, names := range [][]string{Names("an-order"), Separated("an-order"), Between("an-order"), Spelled("an-order"), Rewritten("an-order"), Numbers("an-order"), SameChecksum("an-order")} {
		seen := map[string]bool{}
		for _, name := range names {
			if seen[name] {
				t.Errorf("%q is there twice", name)
			}
			seen[name] = true
		}
	}
}

// TestNumbers checks that all but one are the same number as another, and that other names have others.
func TestNumbers(t *testing.T) {
	numbers := map[float64]int{}
	for _, name := range Numbers("an-order") {
		f, err := strconv.ParseFloat(name, 64)
		if err != nil {
			t.Error(err)
		}
		numbers[f]++
	}
	if len(numbers) != 3 {
		t.Errorf("Numbers has %v; want two numbers and one below 0", numbers)
	}
	for _, name := range Numbers("another-order") {
		if slices.Contains(Numbers("an-order"), name) {
			t.Errorf("%q belongs to two names", name)
		}
	}
}

// TestColliding checks that the numbers of each pair collide, behind a prefix where that is said.
func TestColliding(t *testing.T) {
	times := func(factor, sum uint32) func([]byte) uint32 {
		return func(text []byte) uint32 {
			sum := sum
			for _, c := range text {
				sum = sum*factor + uint32(c)
			}
			return sum
		}
	}
	hashed := func(h hash.Hash) func([]byte) uint32 {
		return func(text []byte) uint32 { h.Reset(); h.Write(text); return binary.BigEndian.Uint32(h.Sum(nil)) }
	}
	checksums := []func([]byte) uint32{
		crc32.ChecksumIEEE, hashed(crc32.New(crc32.MakeTable(crc32.Castagnoli))), adler32.Checksum, times(31, 0), times(33, 5381),
		hashed(fnv.New32()), hashed(fnv.New32a()), hashed(md5.New()), hashed(sha1.New()), hashed(sha256.New()),
	}
	for i, p := range Colliding {
		for j, prefix := range []string{"", "{an-order}-"} {
			if i >= samePrefix && j > 0 {
				break
			}
			sum := func(n int64) uint32 { return checksums[i]([]byte(prefix + strconv.FormatInt(n, 10))) }
			if p[0] == p[1] || sum(p[0]) != sum(p[1]) {
				t.Errorf("pair %d after %q: %d and %d do not collide", i, prefix, p[0], p[1])
			}
		}
	}
}

// TestLongTokens checks that some tokens differ only behind their first 64 letters, so that code which keeps as many as a
// SHA-256 has is found out.
func TestLongTokens(t *testing.T) {
	const kept = 64
	for _, kind := range Tokens {
		token := kind.New("0123456789abcdef0123456789abcdef")
		if like := kind.Like(token, 0); len(token) > kept && len(like) > kept && token[:kept] == like[:kept] {
			return
		}
	}
	t.Errorf("all tokens differ in their first %d letters", kept)
}

// TestNumbersOfOrders checks that no number occurs twice, that some are the same to code which keeps a part of them, and that
// there are numbers of every length.
func TestNumbersOfOrders(t *testing.T) {
	ids := slices.Concat(IDs(), Digits(), Bits())
	for _, pair := range Colliding {
		ids = append(ids, pair[:]...)
	}
	seen, lengths := map[int64]bool{}, map[int]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("%d is there twice", id)
		}
		seen[id] = true
		lengths[len(strconv.FormatInt(id, 10))] = true
	}
	for length := 5; length <= 19; length++ {
		if !lengths[length] {
			t.Errorf("there is no number of %d digits", length)
		}
	}
	for kept, part := range map[string]func(int64) any{
		"the first ten digits of thirteen": func(n int64) any {
			if s := strconv.FormatInt(n, 10); len(s) == 13 {
				return s[:10]
			}
			return n
		},
		"16 digits of 18": func(n int64) any {
			if s := strconv.FormatInt(n, 10); len(s) == 18 {
				return s[:16]
			}
			return n
		},
		"the last eight digits":  func(n int64) any { return n % 1e8 },
		"a double":               func(n int64) any { return float64(n) },
		"32 bits":                func(n int64) any { return int32(n) },
		"the upper 32 bits":      func(n int64) any { return n >> 32 },
		"32 bits, folded":        func(n int64) any { return int32(n) ^ int32(n>>32) },
		"48 bits":                func(n int64) any { return n << 16 },
		"the digits but the 9th": func(n int64) any { s := strconv.FormatInt(n, 10); return s[:min(8, len(s))] + s[min(9, len(s)):] },
	} {
		parts := map[any]bool{}
		for _, id := range ids {
			parts[part(id)] = true
		}
		if len(parts) == len(ids) {
			t.Errorf("no two are the same to code that keeps %s", kept)
		}
	}
}
