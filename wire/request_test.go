package wire

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"oversell/internal/rediscmd"
)

func TestRequestsAreTakenApart(t *testing.T) {
	type request struct {
		text string
		args []string
	}
	long := strings.Repeat("x", 3000)
	requests := []request{
		{string(command("SET", "k", "v")), []string{"SET", "k", "v"}},
		{string(command("GET", "")), []string{"GET", ""}},
		{string(command("SET", "k\r\n", "*1\r\n$4\r\nPING\r\n\x00\xff")), []string{"SET", "k\r\n", "*1\r\n$4\r\nPING\r\n\x00\xff"}},
		{"PING\r\n", []string{"PING"}},
		{"*0\r\n", nil},
		{"*-1\r\n", nil},
		{"\r\n", nil},
		{"\n", nil},
		{"  set  a\tb \n", []string{"set", "a", "b"}},
		{"set k \"a b\\x41\\n\\r\\t\\a\\b\\q\\\"\" 'it\\'s \\n'\r\n", []string{"set", "k", "a bA\n\r\t\a\bq\"", `it's \n`}},
		{"foo\"bar\"\r\n", []string{"foobar"}},
		{"set grüße \"\"\r\n", []string{"set", "grüße", ""}},
		{string(command("SET", "big", long)), []string{"SET", "big", long}},
	}
	var stream []byte
	for _, r := range requests {
		stream = append(stream, r.text...)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, pieces := range [][][]byte{{stream}, slices.Collect(slices.Chunk(stream, 1)), cut(stream, rng), cut(stream, rng)} {
		got, bad := requestsIn(pieces...)
		if bad >= 0 || len(got) != len(requests) {
			t.Fatalf("%d requests, trouble at %d; want %d requests", len(got), bad, len(requests))
		}
		for i, r := range requests {
			if !slices.Equal(got[i], r.args) {
				t.Errorf("request %q has the arguments %q, want %q", r.text, got[i], r.args)
			}
		}
	}
}

// requestsIn returns the arguments of the requests in a stream. bad is where the scanner gives up, or -1.
func requestsIn(pieces ...[]byte) (all [][]string, bad int) {
	r := &requests{}
	at := 0
	for _, p := range pieces {
		r.buf = append(r.buf, p...)
		r.end = len(r.buf)
		for r.pos < r.end {
			done, ok := r.step()
			if !ok {
				return all, at + r.pos
			}
			if !done {
				continue
			}
			args, ok := r.arguments(true)
			if !ok {
				return all, at + r.pos
			}
			var texts []string
			for _, a := range args {
				texts = append(texts, string(a))
			}
			all = append(all, texts)
			r.next()
		}
		at, r.buf = at+r.at, bytes.Clone(r.buf[r.at:])
		r.pos, r.at = r.pos-r.at, 0
	}
	return all, -1
}

func TestWhatIsNoRequestIsSeen(t *testing.T) {
	for _, s := range []string{
		"\x16\x03\x01\x02\x00\x01\x00", "\x00", "*x\r\n", "*01\r\n", "*?\r\n", "*-2\r\n", "*99999999999\r\n", "*1\rx", "*1\r\n+OK\r\n", "*1\r\n$-1\r\n", "*1\r\n$?\r\n", "*1\r\n$536870913\r\n", "*2\r\n$3\r\nGET\r\n$99999999999\r\n",
		"*1\r\n$4\r\nPINGxx", "*1\r\n$4\r\nPING\rx", "set 'a\r\n", "set \"a\r\n", "set \"a\"b\r\n", "set \"a\\\r\n",
	} {
		if _, bad := requestsIn([]byte("PING\r\n" + s)); bad < 0 {
			t.Errorf("%q passes for a request", s)
		}
	}
}

// FuzzRequests checks that the scanner finds the same requests in a stream, however the stream is cut into pieces.
func FuzzRequests(f *testing.F) {
	f.Add([]byte("CLIENT REPLY OFF\nEVAL x 1 k\nXREAD STREAMS a 0\nMIGRATE h 1 '' 0 1 KEYS k\nSUBSCRIBE\nUNSUBSCRIBE\nSCRIPT DEBUG YES\nHELLO\nRESET\n"), uint64(2))
	f.Add([]byte("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING \"a b\"\r\n*0\r\n*1\r\n$4\r\nPI"), uint64(1))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		want, bad := requestsIn(stream)
		var s session
		for _, texts := range want {
			var args [][]byte
			for _, text := range texts {
				args = append(args, []byte(text))
			}
			if len(args) > 0 {
				c, _ := rediscmd.Find(args[0])
				c.Key(len(args), func(i int) string { return string(args[i]) })
				s.expect(c, args, int64(len(args)))
			}
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 4 {
			got, gotBad := requestsIn(cut(stream, rng)...)
			if !slices.EqualFunc(got, want, slices.Equal) || (gotBad < 0) != (bad < 0) {
				t.Fatalf("cut: %q, trouble at %d; whole: %q, trouble at %d", got, gotBad, want, bad)
			}
		}
	})
}
