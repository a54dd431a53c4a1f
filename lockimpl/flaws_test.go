package lockimpl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/stepped"
	"oversell/lockimpl"
	"oversell/lockimpl/locktest"
	"oversell/server"
	"oversell/variant"
)

// Each test in this file is a schedule on a real Redis that shows one flaw, and the same schedule with locks that do not
// have the flaw.

// stage is one name of a lock, for the clients of one schedule.
type stage struct {
	*testing.T
	target *server.Target
	lock   lockimpl.Variant
	name   string
}

// client is one client of the lock. at is nil unless it is stepped.
type client struct {
	*stage
	locker lockimpl.Locker
	redis  *redis.Client
	env    variant.Env
	lock   lockimpl.Lock
	at     *stepped.Client
}

var stages int

// on calls play with a new stage for each of the locks.
func on(t *testing.T, play func(*stage), locks ...string) {
	t.Helper()
	target := locktest.Process("single")(t)
	for _, name := range locks {
		t.Run(name, func(t *testing.T) {
			v, ok := lockimpl.Find(name)
			if !ok {
				t.Fatalf("no lock %q", name)
			}
			stages++
			s := &stage{t, target, v, fmt.Sprintf("{flaw-%d}order", stages)}
			s.loadScripts()
			play(s)
		})
	}
}

// loadScripts has the server load the lock's scripts, so that running a script is a single command.
func (s *stage) loadScripts() {
	s.Helper()
	c := s.client()
	l, err := c.locker.Acquire(s.Context(), s.name+"-other", lockimpl.Options{TTL: time.Minute})
	if err == nil {
		_, err = c.locker.Extend(s.Context(), l, time.Minute)
	}
	if err == nil {
		err = c.locker.Release(s.Context(), l)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// client returns a new client whose tokens all differ.
func (s *stage) client() *client {
	s.Helper()
	c := s.target.Client(0, server.ConnOptions{PoolSize: 1}).(*redis.Client)
	s.Cleanup(func() { c.Close() })
	if err := c.Ping(s.Context()).Err(); err != nil {
		s.Fatal(err)
	}
	n := 0
	env := variant.Env{
		Redis: []redis.UniversalClient{c},
		Clock: clock.Real{},
		Token: func() string { n++; return fmt.Sprintf("%p-%d", c, n) },
		Wait:  func(context.Context, string, time.Duration) error { return variant.ErrStopped },
		Go: func(f func(context.Context)) func(context.Context) error {
			return func(context.Context) error { return nil }
		},
	}
	return &client{stage: s, locker: s.lock.New(env), redis: c, env: env}
}

// lease is longer than any test: only expire ends it.
const lease = time.Minute

// acquiring returns a new client that has begun an acquire and has stopped before its first command.
func (s *stage) acquiring() *client {
	s.Helper()
	c := s.client()
	c.begin(func(ctx context.Context) (err error) {
		c.lock, err = c.locker.Acquire(ctx, s.name, lockimpl.Options{TTL: lease})
		return err
	})
	return c
}

func (c *client) begin(do func(context.Context) error) {
	c.at = stepped.Start(c.redis, do)
	c.Cleanup(c.at.Crash)
}

// releasing begins to release the lock that the client holds, and stops before the first command.
func (c *client) releasing() {
	c.Helper()
	c.begin(func(ctx context.Context) error { return c.locker.Release(ctx, c.lock) })
}

// step executes the client's next commands, which must be these.
func (c *client) step(commands ...string) {
	c.Helper()
	for _, command := range commands {
		if got := c.at.Next(); got != command {
			c.Fatalf("the client stands before %q; the schedule says %q", got, command)
		}
		c.at.Step()
	}
}

// ends checks that the client has finished, with this error.
func (c *client) ends(want error) {
	c.Helper()
	if next := c.at.Next(); next != "" {
		c.Fatalf("the client stands before %q; the schedule says that it is done", next)
	}
	if err := c.at.Err(); !errors.Is(err, want) {
		c.Fatalf("the client was answered %v; want %v", err, want)
	}
}

// holder returns a client that holds the lock, acquired without stepping.
func (s *stage) holder() *client {
	s.Helper()
	c := s.client()
	var err error
	if c.lock, err = c.locker.Acquire(s.Context(), s.name, lockimpl.Options{TTL: lease}); err != nil {
		s.Fatalf("acquire: %v", err)
	}
	return c
}

// expire ends the lease, by deleting the lock's key.
func (s *stage) expire() {
	s.Helper()
	if err := s.admin().Del(s.Context(), "Lock:"+s.name).Err(); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) admin() *redis.Client {
	c := s.target.Client(0, server.ConnOptions{}).(*redis.Client)
	s.Cleanup(func() { c.Close() })
	return c
}

// entry returns nil if one more client is granted the lock now.
func (s *stage) entry() error {
	s.Helper()
	c := s.client()
	_, err := c.locker.Acquire(s.Context(), s.name, lockimpl.Options{TTL: lease})
	return err
}

func (s *stage) wantEntry(want error, why string) {
	s.Helper()
	if err := s.entry(); !errors.Is(err, want) {
		s.Errorf("%s: one more client was answered %v; want %v", why, err, want)
	}
}

func TestLiveOwnerRobbedBetweenSetnxAndExpire(t *testing.T) {
	on(t, func(s *stage) {
		a := s.acquiring()
		a.step("setnx") // A owns the lock, and it has no expiry yet
		b := s.acquiring()
		b.step("setnx", "ttl") // TTL -1: B believes that the owner is dead
		a.step("expire")
		a.ends(nil)
		b.step("set")
		b.ends(nil)
		if b.lock.Via != "SET after TTL -1 (takeover)" {
			t.Errorf("B was granted the lock by %q", b.lock.Via)
		}
	}, "php-lock-printed", "php-lock")
}

func TestReleaseBetweenSetnxAndTTLRobsAThird(t *testing.T) {
	on(t, func(s *stage) {
		a := s.holder()
		b := s.acquiring()
		b.step("setnx") // refused
		if err := a.locker.Release(t.Context(), a.lock); err != nil {
			t.Fatal(err)
		}
		b.step("ttl") // -2: the key is gone
		c := s.holder()
		b.step("set") // overwrites C's lock
		b.ends(nil)
		if b.lock.Via != "SET after TTL -2 (takeover)" {
			t.Errorf("B was granted the lock by %q", b.lock.Via)
		}
		_ = c // C holds the lock, too
	}, "php-lock-printed", "php-lock")
}

func TestPrintedLeaseIsDecades(t *testing.T) {
	on(t, func(s *stage) {
		s.holder()
		left, err := s.admin().TTL(t.Context(), "Lock:"+s.name).Result()
		if err != nil {
			t.Fatal(err)
		}
		if years := left.Hours() / 24 / 365; years < 50 {
			t.Errorf("the lease is %v; the printed EXPIRE gives it the age of the epoch", left)
		}
	}, "php-lock-printed")
}

func TestPrintedTakeoverLosesTheExpiry(t *testing.T) {
	on(t, func(s *stage) {
		a := s.acquiring()
		a.step("setnx")
		b := s.acquiring()
		b.step("setnx", "ttl")
		a.step("expire")
		b.step("set") // removes the expiry that the owner has set, and sets none
		b.ends(nil)
		s.wantEntry(nil, "no expiry is left, so every client takes the lock over")
		s.wantEntry(nil, "and the next one, too")
	}, "php-lock-printed")
}

func TestPrintedUnlockDeletesAnybodysLock(t *testing.T) {
	on(t, func(s *stage) {
		a := s.holder()
		s.expire()
		s.holder() // B
		if err := a.locker.Release(t.Context(), a.lock); err != nil {
			t.Errorf("A's late unlock was answered %v; the printed one deletes B's lock", err)
		}
		s.wantEntry(nil, "B's lock is gone")
	}, "php-lock-printed")
}

func TestTwoClientsOfOneSecondHaveOneToken(t *testing.T) {
	on(t, func(s *stage) {
		// Both clients must acquire in the same second; try again until they do.
		for {
			a := s.holder()
			s.expire()
			b := s.holder()
			if a.lock.Token != b.lock.Token {
				s.expire()
				continue
			}
			if err := a.locker.Release(t.Context(), a.lock); err != nil {
				t.Errorf("A's late unlock was answered %v; its token is B's, so it deletes B's lock", err)
			}
			s.wantEntry(nil, "B's lock is gone")
			return
		}
	}, "php-lock")
}

func TestCrashBeforeTheExpiryBlocksForEver(t *testing.T) {
	on(t, func(s *stage) {
		a := s.acquiring()
		a.step(a.at.Next()) // SETNX or INCR
		a.at.Crash()
		left, err := s.admin().PTTL(t.Context(), "Lock:"+s.name).Result()
		if err != nil || left != -1 {
			t.Errorf("PTTL = %v, %v; a key that never expires has -1", left, err)
		}
		s.wantEntry(lockimpl.ErrHeld, "nobody gets in again")
	}, "setnx-expire", "incr")
	on(t, func(s *stage) {
		a := s.acquiring()
		a.step(a.at.Next())
		a.at.Crash()
		left, err := s.admin().PTTL(t.Context(), "Lock:"+s.name).Result()
		if err != nil || left <= 0 || left > lease {
			t.Errorf("PTTL = %v, %v; the first command must have set the lease", left, err)
		}
	}, "set-nx-ex", "token-del", "lua-release", "php-lock-atomic", "setnx-expire-atomic", "incr-atomic", "fenced", "fair", "watchdog")
}

func TestCrowdForcesALiveOwnerOut(t *testing.T) {
	crowd := func(s *stage) error {
		a := s.acquiring()
		a.step(a.at.Next()) // counts 1, no expiry yet
		for range 10 {
			if err := s.entry(); err == nil {
				return nil // somebody got in beside A
			}
		}
		return lockimpl.ErrHeld
	}
	on(t, func(s *stage) {
		if err := crowd(s); err != nil {
			t.Error("ten clients did not force the lock open")
		}
	}, "incr-max")
	on(t, func(s *stage) {
		if err := crowd(s); err == nil {
			t.Error("a crowd got in beside a live owner")
		}
	}, "incr", "incr-atomic", "lua-release")
}

// TestLateReleaseByDEL plays this schedule: A outlives its lease, B acquires, A releases, C tries to acquire.
func TestLateReleaseByDEL(t *testing.T) {
	late := func(s *stage) error {
		a := s.holder()
		s.expire()
		s.holder() // B
		return a.locker.Release(t.Context(), a.lock)
	}
	on(t, func(s *stage) {
		if err := late(s); err != nil {
			t.Errorf("A's late DEL was answered %v; it hits B's lock", err)
		}
		s.wantEntry(nil, "B's lock is gone")
	}, "setnx-expire", "incr", "incr-max", "set-nx-ex", "token-del")
	on(t, func(s *stage) {
		if err := late(s); !errors.Is(err, lockimpl.ErrLost) {
			t.Errorf("A's late release was answered %v; want ErrLost", err)
		}
		s.wantEntry(lockimpl.ErrHeld, "B holds the lock")
	}, "token-get-del", "lua-release", "php-lock-atomic", "setnx-expire-atomic", "incr-atomic", "fenced", "fair", "watchdog")
}

func TestLeaseEndsBetweenGetAndDel(t *testing.T) {
	on(t, func(s *stage) {
		a := s.holder()
		a.releasing()
		a.step("get") // still A's
		s.expire()
		s.holder() // B
		a.step("del")
		a.ends(nil)
		s.wantEntry(nil, "B's lock is gone")
	}, "token-get-del", "php-lock")
	on(t, func(s *stage) {
		a := s.holder()
		a.releasing()
		s.expire()
		s.holder() // B
		a.step("evalsha")
		a.ends(lockimpl.ErrLost)
		s.wantEntry(lockimpl.ErrHeld, "B holds the lock")
	}, "lua-release")
}

func TestLateReleaseHitsOnesOwnNextLock(t *testing.T) {
	play := func(s *stage) error {
		a := s.holder()
		first := a.lock
		s.expire()
		next, err := a.locker.Acquire(t.Context(), s.name, lockimpl.Options{TTL: lease})
		if err != nil {
			t.Fatal(err)
		}
		_ = next
		return a.locker.Release(t.Context(), first) // arrives late
	}
	on(t, func(s *stage) {
		if err := play(s); err != nil {
			t.Errorf("the late release was answered %v; it fits the next lock", err)
		}
		s.wantEntry(nil, "the client's next lock is gone")
	}, "token-per-client")
	on(t, func(s *stage) {
		if err := play(s); !errors.Is(err, lockimpl.ErrLost) {
			t.Errorf("the late release was answered %v; want ErrLost", err)
		}
		s.wantEntry(lockimpl.ErrHeld, "the client holds its next lock")
	}, "lua-release")
}

func TestBlindExtendChangesAnothersLease(t *testing.T) {
	play := func(s *stage) error {
		a := s.holder()
		s.expire()
		s.holder() // B
		_, err := a.locker.Extend(t.Context(), a.lock, 2*lease)
		return err
	}
	on(t, func(s *stage) {
		if err := play(s); err != nil {
			t.Errorf("A's late extend was answered %v; it is blind", err)
		}
	}, "setnx-expire", "incr", "set-nx-ex", "token-del", "watchdog-naive")
	on(t, func(s *stage) {
		if err := play(s); !errors.Is(err, lockimpl.ErrLost) {
			t.Errorf("A's late extend was answered %v; want ErrLost", err)
		}
	}, "token-get-del", "lua-release", "php-lock-atomic", "setnx-expire-atomic", "incr-atomic", "fenced", "fair", "watchdog")
}

// TestAskingOnceJoinsNoLine checks that a client that asks only once is served if the wait line is empty, and never joins
// the line, where others would wait for it.
func TestAskingOnceJoinsNoLine(t *testing.T) {
	on(t, func(s *stage) {
		ctx := s.Context()
		holder, once, waiter, other := s.client(), s.client(), s.client(), s.client()
		waiter.env.Wait = func(ctx context.Context, _ string, _ time.Duration) error { return ctx.Err() }
		waiter.locker = s.lock.New(waiter.env)
		ask := func(c *client, wait time.Duration) (lockimpl.Lock, error) {
			return c.locker.Acquire(ctx, s.name, lockimpl.Options{TTL: time.Minute, Wait: wait, RetryEvery: time.Millisecond})
		}
		line := func() int64 {
			n, err := holder.redis.ZCard(ctx, "Line:Lock:"+s.name).Result()
			if err != nil {
				s.Fatal(err)
			}
			return n
		}
		joins := func() int { // the number of ZADD commands so far, by all clients
			stats, err := holder.redis.Info(ctx, "commandstats").Result()
			if err != nil {
				s.Fatal(err)
			}
			_, after, _ := strings.Cut(stats, "cmdstat_zadd:calls=")
			n := 0
			fmt.Sscan(strings.SplitN(after, ",", 2)[0], &n)
			return n
		}
		held, err := ask(holder, 0)
		if err != nil {
			s.Fatal(err)
		}
		before := joins()
		if _, err := ask(once, 0); !errors.Is(err, lockimpl.ErrHeld) || joins() != before {
			s.Fatalf("asking once for a lock that is held: %v, and %d joined the line; want ErrHeld and nobody", err, joins()-before)
		}
		served := make(chan error, 1)
		go func() {
			_, err := ask(waiter, time.Minute)
			served <- err
		}()
		for line() == 0 { // until the waiter is in line
			if ctx.Err() != nil {
				s.Fatal("the waiter did not join the line")
			}
		}
		if err := holder.locker.Release(ctx, held); err != nil {
			s.Fatal(err)
		}
		if err := <-served; err != nil {
			s.Fatalf("the waiter: %v", err)
		}
		if _, err := ask(other, 0); !errors.Is(err, lockimpl.ErrHeld) {
			s.Fatalf("asking once while the waiter holds it: %v", err)
		}
	}, "fair", "fair-no-reap")
}

// TestLineOutlivesItsHastyWaiters checks that a waiter that asks often, and so has little patience, does not make the
// wait line expire before a waiter that asks rarely asks again.
func TestLineOutlivesItsHastyWaiters(t *testing.T) {
	on(t, func(s *stage) {
		ctx, stop := context.WithCancel(s.Context())
		defer stop()
		s.holder()
		waits := func(retry time.Duration) (left <-chan struct{}) {
			c, looked, done := s.client(), make(chan struct{}), make(chan struct{})
			c.env.Wait = func(ctx context.Context, _ string, _ time.Duration) error {
				close(looked)
				<-ctx.Done()
				return ctx.Err()
			}
			go func() {
				defer close(done)
				_, _ = s.lock.New(c.env).Acquire(ctx, s.name, lockimpl.Options{TTL: lease, Wait: time.Hour, RetryEvery: retry})
			}()
			select {
			case <-looked:
			case <-done:
				s.Fatal("the waiter did not wait")
			}
			return done
		}
		rare := waits(time.Minute)
		often := waits(time.Millisecond)
		for _, key := range []string{"Line:Lock:", "Seen:Lock:"} {
			if left, err := s.admin().PTTL(s.Context(), key+s.name).Result(); err != nil || left <= time.Minute {
				s.Errorf("%s ends in %v (%v); one waiter looks every minute", key, left, err)
			}
		}
		stop()
		<-rare
		<-often
	}, "fair")
}
