package bubbletest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/explore"
	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// plain is a lock as a user would write it.
type plain struct {
	env    variant.Env
	beside bool // commands are sent by goroutines
}

const deleteText = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`

var deleteOwn = redis.NewScript(deleteText)

func (p plain) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: p.env.Token()}
	began := p.env.Clock.Now()
	for tries := 1; ; tries++ {
		l.Until = p.env.Clock.Now().Add(o.TTL)
		if ok, err := p.set(ctx, l, o.TTL); ok || err != nil {
			return l, err
		}
		if tries == o.MaxTries || p.env.Clock.Now().Sub(began) >= o.Wait {
			return l, lockimpl.ErrHeld
		}
		if err := p.env.Clock.Sleep(ctx, o.RetryEvery); err != nil {
			return l, err
		}
	}
}

func (p plain) set(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (ok bool, err error) {
	over := make(chan struct{})
	set := func() {
		ok, err = p.env.Redis[0].SetNX(ctx, lockimpl.Key(l.Key), l.Token, ttl).Result()
		close(over)
	}
	if p.beside {
		go set()
	} else {
		set()
	}
	<-over
	return ok, err
}

func (p plain) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, errors.New("not made for that")
}

func (p plain) Release(ctx context.Context, l lockimpl.Lock) error {
	n, err := deleteOwn.Run(ctx, p.env.Redis[0], []string{lockimpl.Key(l.Key)}, l.Token).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrLost
	}
	return err
}

func variantOf(lock func(variant.Env) lockimpl.Locker) lockimpl.Variant {
	return lockimpl.Variant{Name: "plain", Promises: []variant.Property{variant.MutualExclusion}, New: lock}
}

// searched returns the configuration of a search of a lock with a lease of a second.
func searched(t *testing.T, v lockimpl.Variant, tries, attempts int) explore.Config {
	t.Helper()
	mutex, _ := scenarios.Find("mutex")
	c := explore.Config{
		Run:    scenarios.Config{Scenario: mutex, Lock: v, TTL: time.Second, MaxTries: attempts},
		Bounds: reports.Bounds{Clients: 2, Tries: tries},
	}
	if err := c.Complete(); err != nil {
		t.Fatal(err)
	}
	return c
}

func inBubbles(t *testing.T, v lockimpl.Variant, tries, attempts int) clients.Execution {
	t.Helper()
	c := searched(t, v, tries, attempts)
	return New(t, c.Run, c.Bounds.Tries, c.Masters).Start(clients.ClientSpec{})
}

// play drives a client in a bubble step by step: each line is the request that the client must make, and the answer.
func play(t *testing.T, x clients.Execution, lines [][2]string) {
	t.Helper()
	now := time.Duration(0)
	for i, line := range lines {
		if x.Err() != nil {
			t.Fatal(x.Err())
		}
		got := ""
		for _, r := range x.Pending() {
			got += says(r) + "; "
		}
		if got != line[0] {
			t.Fatalf("step %d: it stands before %q; want %q", i, got, line[0])
		}
		o := coro.Observation{Reply: line[1]}
		if d, err := time.ParseDuration(line[1]); err == nil {
			now, o = d, coro.Observation{}
		}
		if line[1] == "late" {
			o = coro.Observation{Failure: coro.TimedOut}
		}
		o.Now = now
		x.Resume(0, o)
	}
}

func says(r coro.Request) string {
	text := r.Label
	switch r.Kind {
	case coro.Clock:
		text = "clock"
	case coro.Sleep:
		text = fmt.Sprint("sleep until ", r.Until)
	case coro.Command:
		text = fmt.Sprint(r.Node, r.Commands)
	}
	if r.Deadline > 0 {
		text += fmt.Sprint(" before ", r.Deadline)
	}
	return text
}

const (
	ok   = "+OK\r\n"
	no   = "$-1\r\n"
	one  = ":1\r\n"
	zero = ":0\r\n"
)

func TestTimeInBubbles(t *testing.T) {
	x := inBubbles(t, variantOf(func(env variant.Env) lockimpl.Locker { return plain{env: env, beside: true} }), 1, 3)
	set := "0 [[set Lock:order token9.0 ex 1 nx]]; "
	play(t, x, [][2]string{
		{"start; ", ""}, {"clock; ", "40ms"},
		{set, no}, {"clock; ", "50ms"},
		{"sleep until 150ms; ", ""}, // counted from the time at which the client went on
		{set, no}, {"clock; ", "300ms"},
		{"sleep until 400ms; ", ""},
		{set, ok}, {"clock; ", "400ms"},
		{"section; ", ""}, {"clock; ", "500ms"},
		{"0 [[eval " + deleteText + " 1 Lock:order token9.0]]; ", one}, {"clock; ", "500ms"},
		{"", ""},
	})
	events := x.Events()
	end := events[1].(rules.Event)
	if want := 1400 * time.Millisecond; !end.End || end.Op.Until != want {
		t.Errorf("the lease is promised until %v; want %v", end.Op.Until, want)
	}
}

// limited gives each command 50 ms and renews the lease beside the section.
type limited struct{ plain }

func (l limited) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	got, err := l.plain.Acquire(ctx, key, o)
	if err == nil {
		go func() {
			for { // nothing ends this loop
				time.Sleep(o.TTL / 2)
				l.env.Redis[0].PExpire(context.Background(), lockimpl.Key(key), o.TTL)
			}
		}()
	}
	return got, err
}

func TestRenewalAndDeadlineInBubbles(t *testing.T) {
	v := variantOf(func(env variant.Env) lockimpl.Locker { return limited{plain{env: env}} })
	set := func(token int, before string) string {
		return fmt.Sprintf("0 [[set Lock:order token9.%d ex 1 nx]] before %s; ", token, before)
	}
	x := inBubbles(t, v, 2, 1)
	play(t, x, [][2]string{
		{"start; ", ""}, {"clock; ", "0s"},
		{set(0, "50ms"), "late"}, {"clock; ", "60ms"},
		{set(1, "110ms"), ok}, {"clock; ", "100ms"},
		{"section; sleep until 600ms; ", ""}, {"clock; ", "700ms"},
		// The renewal has been under way since its due time, 600 ms.
		{"0 [[eval " + deleteText + " 1 Lock:order token9.1]]; 0 [[pexpire Lock:order 1000]]; ", one}, {"clock; ", "700ms"},
		{"0 [[pexpire Lock:order 1000]]; ", zero},
	})
}

// stuck waits for an event that never comes.
type stuck struct {
	plain
	on func()
}

func (s stuck) Acquire(context.Context, string, lockimpl.Options) (lockimpl.Lock, error) {
	s.on()
	return lockimpl.Lock{}, lockimpl.ErrHeld
}

func TestBubblesNoticeWaitsForNothing(t *testing.T) {
	release := make(chan struct{}) // made outside of all bubbles
	for _, c := range []struct {
		on   func()
		says string
	}{
		{func() { <-make(chan struct{}) }, "neither a command nor time"},
		{func() { <-release }, "still runs"},
	} {
		var calls atomic.Int64
		v := variantOf(func(variant.Env) lockimpl.Locker { return stuck{on: func() { calls.Add(1); c.on() }} })
		code := &bubbles{t: t, config: searched(t, v, 1, 1).Run, tries: 1, masters: 1, patience: time.Second}
		x := &execution{code: code, at: code.start()}
		x.Resume(0, coro.Observation{})
		x.Resume(0, coro.Observation{})
		if err := x.Err(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("the client ended in %v; want an error that says %q", err, c.says)
		}
		if before := calls.Load(); code.stuck != nil {
			if p := code.visit(code.root, step{at: time.Minute}); p.err == nil || calls.Load() != before {
				t.Errorf("after a run that took too long there was another one, which ended in %v", p.err)
			}
		}
	}
	close(release)
}

// TestBackgroundReleaseInBubbles checks that a search finds what a release does in a goroutine of its own, or when a timer fires,
// though the client has ended by then.
func TestBackgroundReleaseInBubbles(t *testing.T) {
	for name, begin := range map[string]func(func()){
		"goroutine": func(f func()) { go f() },
		"timer":     func(f func()) { time.AfterFunc(time.Millisecond, f) },
	} {
		for _, careful := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, careful: %t", name, careful), func(t *testing.T) {
				c := searched(t, variantOf(func(env variant.Env) lockimpl.Locker { return beside{plain{env: env}, begin, careful} }), 1, 1)
				c.Bounds.Advances, c.Look = 1, []history.Promise{{Of: variant.Lock, Property: variant.OwnerOnlyRelease}}
				all := New(t, c.Run, c.Bounds.Tries, c.Masters)
				c.Start = all.Start
				want := reports.Violated
				if careful {
					want = reports.Pass
				}
				if r, err := explore.Run(t.Context(), c); err != nil || r.Verdict != want {
					t.Errorf("the search ended in %s (%s), %v; want %s", r.Verdict, r.Why, err, want)
				}
			})
		}
	}
}

// beside is a lock whose release goes on after the call has returned.
type beside struct {
	plain
	begin   func(func())
	careful bool // it compares tokens
}

func (b beside) Release(_ context.Context, l lockimpl.Lock) error {
	b.begin(func() {
		if b.careful {
			_ = b.plain.Release(context.Background(), l)
		} else {
			_ = b.env.Redis[0].Del(context.Background(), lockimpl.Key(l.Key)).Err()
		}
	})
	return nil
}

// TestEndlessGoroutine checks that the search of a client that never stops a goroutine has an end.
func TestEndlessGoroutine(t *testing.T) {
	c := searched(t, variantOf(func(env variant.Env) lockimpl.Locker { return endless{plain{env: env}} }), 1, 1)
	c.Bounds.TimeMS = 60_000 // it takes a second
	c.Bounds.Advances, c.Look = 1, []history.Promise{{Of: variant.Lock, Property: variant.OwnerOnlyRelease}}
	c.Start = New(t, c.Run, c.Bounds.Tries, c.Masters).Start
	r, err := explore.Run(t.Context(), c)
	if err != nil || r.Verdict != reports.Pass {
		t.Errorf("the search ended in %s (%s), %v; want %s", r.Verdict, r.Why, err, reports.Pass)
	}
	if !strings.Contains(strings.Join(r.NotChecked, "\n"), "slept twice") {
		t.Errorf("not checked: %q", r.NotChecked)
	}
}

// endless is a lock whose holder looks at a key for ever.
type endless struct{ plain }

func (e endless) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := e.plain.Acquire(ctx, key, o)
	if err == nil {
		go func() {
			for {
				_ = e.env.Clock.Sleep(context.Background(), o.TTL/3) // the clock of the bubble
				_ = e.env.Redis[0].Get(context.Background(), "config").Err()
			}
		}()
	}
	return l, err
}

// TestAcquireAfterReleaseInBubbles checks that an acquire is not taken for a part of the release before it: those who ask for this lock
// move its expiry, which is no release.
func TestAcquireAfterReleaseInBubbles(t *testing.T) {
	c := searched(t, variantOf(func(env variant.Env) lockimpl.Locker { return pushing{plain{env: env}} }), 2, 1)
	c.Bounds.Advances, c.Look = 1, []history.Promise{{Of: variant.Lock, Property: variant.OwnerOnlyRelease}}
	c.Start = New(t, c.Run, c.Bounds.Tries, c.Masters).Start
	if r, err := explore.Run(t.Context(), c); err != nil || r.Verdict != reports.Pass {
		t.Errorf("the search ended in %s (%s), %v; want %s", r.Verdict, r.Why, err, reports.Pass)
	}
}

// pushing is a lock whose refused clients start its lease again.
type pushing struct{ plain }

func (p pushing) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := p.plain.Acquire(ctx, key, o)
	if errors.Is(err, lockimpl.ErrHeld) {
		_ = p.env.Redis[0].PExpire(ctx, lockimpl.Key(key), o.TTL).Err()
	}
	return l, err
}
