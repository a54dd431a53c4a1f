package faults

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/server"
)

// hitBy is a client of the emulation that faults may hit, and the injections so far.
type hitBy struct {
	*Client
	redis      redis.UniversalClient
	admin      redis.UniversalClient
	in         *Injector
	mu         sync.Mutex
	injections []Injection
}

func underFaults(t *testing.T, sentences ...string) *hitBy {
	t.Helper()
	tg, err := server.OpenEmbedded(clock.Real{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &hitBy{}
	o := Options{Seed: 1, Target: tg, Record: func(k Injection) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.injections = append(s.injections, k)
	}}
	for _, sentence := range sentences {
		f, err := Parse(sentence)
		if err != nil {
			t.Fatal(err)
		}
		o.Faults = append(o.Faults, f)
	}
	if s.in, err = New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s.Client = s.in.Client(0)
	s.redis, s.admin = tg.Client(0, server.ConnOptions{}), tg.Client(0, server.ConnOptions{})
	s.redis.AddHook(s.Client)
	s.in.Start()
	t.Cleanup(func() {
		if err := s.in.Close(); err != nil {
			t.Error(err)
		}
		s.redis.Close()
		s.admin.Close()
		tg.Close()
	})
	return s
}

func (s *hitBy) value(t *testing.T, key string) string {
	t.Helper()
	v, err := s.admin.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return v
}

// TestCrashEndsAllThatAClientDoes checks that a command sent before the crash is executed, and that nothing that the dead
// client does afterwards reaches a server.
func TestCrashEndsAllThatAClientDoes(t *testing.T) {
	s := underFaults(t, "crash after SET key a")
	if err := s.redis.Set(t.Context(), "a", 1, 0).Err(); !errors.Is(err, ErrCrashed) {
		t.Errorf("the command after which it crashes: %v, want %v", err, ErrCrashed)
	}
	if got := s.value(t, "a"); got != "1" {
		t.Errorf("a is %q, but the server had executed the command", got)
	}
	if err := s.redis.Del(t.Context(), "a").Err(); !errors.Is(err, ErrCrashed) || s.value(t, "a") != "1" {
		t.Errorf("clean-up after the crash: %v, and a is %q", err, s.value(t, "a"))
	}
	_, err := s.redis.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Del(t.Context(), "a"); return nil })
	if !errors.Is(err, ErrCrashed) || s.value(t, "a") != "1" {
		t.Errorf("a pipeline after the crash: %v, and a is %q", err, s.value(t, "a"))
	}
	if !s.Dead() {
		t.Error("it is not known as dead")
	}
	if c := s.in.Counts()[0]; c.Fired != 1 {
		t.Errorf("fired %d times", c.Fired)
	}
}

func TestCrashBeforeACommandKeepsItBack(t *testing.T) {
	s := underFaults(t, "crash before SET")
	if err := s.redis.Set(t.Context(), "a", 1, 0).Err(); !errors.Is(err, ErrCrashed) || s.value(t, "a") != "" {
		t.Errorf("%v, and a is %q", err, s.value(t, "a"))
	}
}

// TestCancelEndsOneOperation checks that all later commands of a cancelled operation fail, too, and that the next
// operation is not affected.
func TestCancelEndsOneOperation(t *testing.T) {
	s := underFaults(t, "cancel after SET")
	s.Enter("buy")
	if err := s.redis.Set(t.Context(), "a", 1, 0).Err(); !errors.Is(err, context.Canceled) || s.value(t, "a") != "1" {
		t.Errorf("%v, and a is %q", err, s.value(t, "a"))
	}
	if err := s.redis.Set(t.Context(), "a", 2, 0).Err(); !errors.Is(err, context.Canceled) || s.value(t, "a") != "1" {
		t.Errorf("the rest of the operation: %v, and a is %q", err, s.value(t, "a"))
	}
	s.Leave()
	s.Enter("buy")
	if err := s.redis.Set(t.Context(), "a", 3, 0).Err(); err != nil || s.Dead() {
		t.Errorf("the next operation: %v, dead: %v", err, s.Dead())
	}
}

func TestResendShowsTheSecondAnswer(t *testing.T) {
	s := underFaults(t, "resend DECR")
	if n, err := s.redis.Decr(t.Context(), "a").Result(); err != nil || n != -2 {
		t.Errorf("told %d (%v), want -2", n, err)
	}
}

// TestFreezeStopsAllThreadsAndPauseOne checks that a frozen client sends nothing and sees no answer on any of its threads,
// and that a paused client is held up on one thread only.
func TestFreezeStopsAllThreadsAndPauseOne(t *testing.T) {
	const long = 150 * time.Millisecond
	for _, c := range []struct {
		sentence string
		other    bool // whether another thread goes on
	}{{"freeze 150ms before SET", false}, {"pause 150ms before SET", true}} {
		t.Run(c.sentence, func(t *testing.T) {
			s := underFaults(t, c.sentence)
			began := time.Now()
			var both sync.WaitGroup
			both.Go(func() { s.redis.Set(t.Context(), "a", 1, 0) })
			for len(s.in.Counts()) == 0 || s.frozen.Load() == 0 && !c.other {
				if time.Since(began) > 5*time.Second {
					t.Fatal("it was never frozen")
				}
				time.Sleep(time.Millisecond)
			}
			if c.other {
				if err := s.redis.Get(t.Context(), "b").Err(); !errors.Is(err, redis.Nil) {
					t.Error(err)
				}
				if d := time.Since(began); d >= long {
					t.Errorf("another thread of a paused client was held up for %v", d)
				}
			} else {
				s.redis.Get(t.Context(), "b")
				if d := time.Since(began); d < long {
					t.Errorf("another thread of a frozen client went on after %v", d)
				}
			}
			both.Wait()
			if d := time.Since(began); d < long {
				t.Errorf("it was held up for %v only", d)
			}
		})
	}
}

func TestHoldersAndWaitersAreTold(t *testing.T) {
	s := underFaults(t, "pause 1ms holder always", "pause 1ms waiter always", "pause 1ms always in buy")
	get := func() { s.redis.Get(t.Context(), "a") }
	get()
	s.Tries()
	get()
	s.Granted(nil)
	get()
	s.Enter("buy")
	get()
	s.Leave()
	s.Releases()
	get()
	s.GivenUp()
	get()
	for i, want := range []Count{{Fired: 3, Holders: 3}, {Fired: 1, Waiters: 1}, {Fired: 1, Holders: 1}} {
		if got := s.in.Counts()[i]; got.Fired != want.Fired || got.Holders != want.Holders || got.Waiters != want.Waiters {
			t.Errorf("%q: %+v, want %+v", got.Fault.Text, got, want)
		}
	}
}

func TestClockIsAheadForThoseWhoArePicked(t *testing.T) {
	s := underFaults(t, "clock +60s on client 1")
	for end := time.Now().Add(5 * time.Second); s.Ahead() == 0 && time.Now().Before(end); {
		s.Enter("buy")
		s.Leave()
		time.Sleep(time.Millisecond)
	}
	if d := time.Until(s.Clock(clock.Real{}).Now()); d < 59*time.Second || d > 61*time.Second {
		t.Errorf("the clock is ahead by %v", d)
	}
	if other := s.in.Client(1); other.Ahead() != 0 {
		t.Errorf("the other's is ahead by %v", other.Ahead())
	}
}

// TestStopWakesThePaused checks that Stop wakes clients that are held up, and that nothing fires afterwards.
func TestStopWakesThePaused(t *testing.T) {
	s := underFaults(t, "pause 1m after SET always")
	var paused sync.WaitGroup
	paused.Go(func() { s.redis.Set(t.Context(), "a", 1, 0) })
	for end := time.Now().Add(5 * time.Second); s.value(t, "a") == "" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.in.Stop()
	paused.Wait()
	if err := s.redis.Set(t.Context(), "a", 2, 0).Err(); err != nil {
		t.Error(err)
	}
}

// TestAnUnknownScriptIsResentInVain checks that resending a script that the server does not know counts as without effect.
func TestAnUnknownScriptIsResentInVain(t *testing.T) {
	s := underFaults(t, "resend EVAL")
	if err := s.redis.EvalSha(t.Context(), "0123456789012345678901234567890123456789", nil).Err(); !redis.HasErrorPrefix(err, "NOSCRIPT") {
		t.Fatal(err)
	}
	if c := s.in.Counts()[0]; c.Fired != 0 || c.Vain != 1 {
		t.Errorf("it fired %d times, and in vain %d times: %s", c.Fired, c.Vain, c.VainWhy)
	}
}
