package coro

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// ptr returns a pointer to v, and nilOf a nil pointer.
func ptr[T any](v T) *T { return &v }
func nilOf[T any]() *T  { return nil }

// TestRequestsAreWhatGoesOnTheWire checks that requests show the bytes that go-redis writes.
func TestRequestsAreWhatGoesOnTheWire(t *testing.T) {
	moment := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	address, err := url.Parse("http://a/b?c")
	if err != nil {
		t.Fatal(err)
	}
	values := []any{
		nil, "a\r\nb", "", []byte("bytes"), 1, -2, int8(-3), int16(4), int32(5), int64(-6), uint(7), uint8(8), uint16(9),
		uint32(10), uint64(1<<64 - 1), float32(0.1), 0.1, 1e21, -1e-9, true, false,
		moment, 1500 * time.Millisecond, net.IPv4(1, 2, 3, 4), address,
		ptr("a"), ptr(1), ptr(int8(2)), ptr(int16(3)), ptr(int32(4)), ptr(int64(5)), ptr(uint(6)), ptr(uint8(7)),
		ptr(uint16(8)), ptr(uint32(9)), ptr(uint64(10)), ptr(float32(1.5)), ptr(2.5), ptr(true),
		ptr(false), ptr(moment), ptr(time.Second),
		nilOf[string](), nilOf[int](), nilOf[int64](), nilOf[float64](), nilOf[bool](), nilOf[time.Time](), nilOf[time.Duration](),
	}
	args := append([]any{"COMMAND"}, values...)
	c := Start(func(ctx context.Context, w *Runtime) { w.Env().Redis[0].Do(ctx, args...) }, Options{})
	defer c.Close()
	c.ports[0].keep = true
	c.Resume(0, Observation{})
	got := c.Pending()[0].Commands[0]
	c.Resume(0, Observation{Reply: "+OK\r\n"})
	sure(t, c)
	written := string(c.ports[0].written)
	written = written[strings.LastIndex(written, fmt.Sprintf("*%d\r\n", len(args))):] // without the handshake
	if want := bulk(got...); written != want {
		t.Errorf("the library wrote\n%q\nthe request says\n%q", written, want)
	}
}

func TestWhatIsAReply(t *testing.T) {
	for text, n := range map[string]int{
		"":                                 0,
		"+OK\r\n":                          1,
		"-ERR a\r\n:-5\r\n":                2,
		"$-1\r\n*-1\r\n":                   2,
		"$4\r\na\r\nb\r\n":                 1,
		"*2\r\n*1\r\n:1\r\n$1\r\na\r\n":    1,
		"*0\r\n$0\r\n\r\n":                 2,
		"+OK\r\n*2\r\n:1\r\n$-1\r\n:1\r\n": 3,
	} {
		if !isReplies(text, n) {
			t.Errorf("%q is %d replies", text, n)
		}
		if isReplies(text, n+1) || (n > 0 && isReplies(text, n-1)) {
			t.Errorf("%q is %d replies, not one more or less", text, n)
		}
	}
	for _, text := range []string{"OK\r\n", "+OK", ":a\r\n", "$a\r\n", "$-2\r\n", "$2\r\na\r\n", "$1\r\nabc", "*1\r\n", "\r\n", "%1\r\n+a\r\n+b\r\n"} {
		if isReplies(text, 1) {
			t.Errorf("%q is no reply", text)
		}
	}
}

func TestHooksSeeTheWholeTransaction(t *testing.T) {
	c := follow(t, func(ctx context.Context, w *Runtime) {
		_, _ = w.Env().Redis[0].Pipelined(ctx, func(p redis.Pipeliner) error {
			p.Do(ctx, "multi")
			p.Get(ctx, "k")
			return nil
		})
	}, Options{}, reply("multi", "+OK\r\n"), reply("get k", "+QUEUED\r\n"))
	sure(t, c)
	if slices.Contains(showAll(c.Pending()), "multi") {
		t.Error("half a transaction")
	}
}
