package wire

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// boundaries returns the ends and the types of the values that a scanner finds in a stream that it is given in pieces.
// bad is where the scanner gives up, or -1.
func boundaries(pieces ...[]byte) (ends []int, leads string, bad int) {
	var s replyScanner
	at := 0
	for _, p := range pieces {
		for len(p) > 0 {
			n, done, ok := s.scan(p)
			at += n
			if !ok {
				return ends, leads, at
			}
			if done {
				ends = append(ends, at)
				leads += string(s.lead)
			}
			p = p[n:]
		}
	}
	return ends, leads, -1
}

var replyExamples = []struct {
	name   string
	values []string // consecutive values of a stream
	leads  string
}{
	{"RESP2", []string{
		"+OK\r\n", "-ERR no\r\n", ":-12\r\n", "$5\r\nhello\r\n", "$0\r\n\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n",
		"*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "+\r\n",
	}, "+-:$$$***+"},
	{"RESP3", []string{
		"_\r\n", "#t\r\n", ",1.5e3\r\n", "(123456789012345678901234567890\r\n", "!5\r\nERR x\r\n", "=7\r\ntxt:abc\r\n",
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", "~2\r\n+a\r\n+b\r\n", ">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n", "%0\r\n", "~0\r\n",
	}, "_#,(!=%~>%~"},
	{"line ends in strings", []string{"$4\r\n\r\n\r\n\r\n", "$7\r\n*1\r\n:1\r\r\n", "+a\rb\r\r\n"}, "$$+"},
	{"attributes", []string{
		"|1\r\n+ttl\r\n:3\r\n$1\r\na\r\n",
		"|1\r\n+k\r\n|1\r\n+inner\r\n:1\r\n:2\r\n*2\r\n+a\r\n+b\r\n",
		"|0\r\n+OK\r\n",
		"|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n%1\r\n+e\r\n+f\r\n",
		"*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n",
	}, "$*+%*"},
	{"streamed", []string{
		"$?\r\n;4\r\nHell\r\n;1\r\no\r\n;0\r\n",
		"*?\r\n:1\r\n$?\r\n;1\r\na\r\n;0\r\n*?\r\n.\r\n.\r\n",
		"%?\r\n+a\r\n:1\r\n.\r\n",
		"~?\r\n.\r\n",
		"*2\r\n$?\r\n;0\r\n*?\r\n:1\r\n.\r\n",
	}, "$*%~*"},
	{"deep", []string{strings.Repeat("*1\r\n", 60) + ":1\r\n", "+OK\r\n"}, "*+"},
}

func TestRepliesEndWhereTheyEnd(t *testing.T) {
	for _, e := range replyExamples {
		t.Run(e.name, func(t *testing.T) {
			var want []int
			at := 0
			for _, v := range e.values {
				at += len(v)
				want = append(want, at)
			}
			stream := []byte(strings.Join(e.values, ""))
			checkBoundaries(t, "in one piece", want, e.leads, stream)
			checkBoundaries(t, "byte by byte", want, e.leads, slices.Collect(slices.Chunk(stream, 1))...)
			for cut := range stream {
				checkBoundaries(t, "in two pieces", want, e.leads, stream[:cut], stream[cut:])
			}
		})
	}
}

func checkBoundaries(t *testing.T, how string, want []int, leads string, pieces ...[]byte) {
	t.Helper()
	ends, gotLeads, bad := boundaries(pieces...)
	if bad >= 0 || !slices.Equal(ends, want) || gotLeads != leads {
		t.Fatalf("%s: values of types %q end at %v, trouble at %d; want types %q, ends %v", how, gotLeads, ends, bad, leads, want)
	}
}

func TestWhatIsNoReplyIsSeen(t *testing.T) {
	for _, s := range []string{
		"hello", "\x16\x03\x01", "\r\n", "$5\rx", "$5x", "$\r\n", "$-2\r\n", "$--1\r\n", "$-\r\n", "$05\r\n", "$1?\r\n", "$?5", "$9999999999999999\r\n",
		"$3\r\nabcd", "$3\r\nabc\rx", "*1\r\n.\r\n", "*1\r\n;0\r\n", ".\r\n", ";1\r\n", "$?\r\n+OK\r\n", "$?\r\n;-1\r\n", "$?\r\n;?\r\n",
		"*?\r\n.x", "%-1\r\n", "!-1\r\n", "!?\r\n", ">?\r\n", "|?\r\n", "*999999999999999\r\n", "*1\r\n\x00",
		strings.Repeat("*1\r\n", maxDepth+1),
	} {
		if _, _, bad := boundaries([]byte("+OK\r\n" + s)); bad < 0 {
			t.Errorf("%.40q passes for a reply", s)
		}
	}
}

// FuzzReplies checks that the values of a stream end at the same places, however the stream is cut into pieces.
func FuzzReplies(f *testing.F) {
	for _, e := range replyExamples {
		f.Add([]byte(strings.Join(e.values, "")), uint64(1))
	}
	f.Add([]byte("*2\r\n$?\r\n;3\r\nabc\r\n;0\r\n|1\r\n+a"), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		want, leads, bad := boundaries(stream)
		for i, e := range want {
			if i > 0 && e <= want[i-1] || e > len(stream) {
				t.Fatalf("values end at %v in %d bytes", want, len(stream))
			}
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			ends, gotLeads, gotBad := boundaries(cut(stream, rng)...)
			if !slices.Equal(ends, want) || gotBad != bad || gotLeads != leads {
				t.Fatalf("cut: values of types %q end at %v, trouble at %d; whole: %q, %v, %d", gotLeads, ends, gotBad, leads, want, bad)
			}
		}
	})
}

// cut splits bytes at random places.
func cut(b []byte, rng *rand.Rand) [][]byte {
	var pieces [][]byte
	for len(b) > 0 {
		n := 1 + rng.IntN(len(b))
		if rng.IntN(3) > 0 {
			n = min(n, 1+rng.IntN(4))
		}
		pieces = append(pieces, b[:n])
		b = b[n:]
	}
	return pieces
}
