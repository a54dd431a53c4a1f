package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"oversell/clock"
	"oversell/internal/mark"
	"oversell/lockimpl"
	"oversell/variant"
)

// hourly cuts leases to an hour, and promises all of them.
type hourly struct {
	lockimpl.Locker
	clock interface{ Now() time.Time }
}

func (h hourly) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	until := h.clock.Now().Add(o.TTL)
	o.TTL = min(o.TTL, time.Hour)
	l, err := h.Locker.Acquire(ctx, key, o)
	l.Until = until
	return l, err
}

// TestTokensLikeTimes checks that a finding on the moved clock counts though tokens look like times of the real clock: all
// of them in part, or one by chance.
func TestTokensLikeTimes(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	now := fmt.Sprint(time.Now().Unix())
	inAll := func(env *variant.Env) {
		token := env.Token
		env.Token = func() string { return token() + "-a" + now + "f" }
	}
	var had atomic.Bool
	byChance := func(env *variant.Env) {
		token := env.Token
		env.Token = func() string {
			if env.Clock.Now().After(time.Now().Add(time.Hour)) && !had.Swap(true) {
				return now + "-" + token()
			}
			return token()
		}
	}
	for _, tt := range []struct {
		name   string
		tokens func(*variant.Env)
		cut    bool
	}{
		{"all in part", inAll, true},
		{"all in part, of a sound lock", inAll, false},
		{"one by chance", byChance, true},
		{"one by chance, of a sound lock", byChance, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			had.Store(false)
			v := sound
			v.New = func(env variant.Env) lockimpl.Locker {
				tt.tokens(&env)
				if !tt.cut {
					return sound.New(env)
				}
				return hourly{sound.New(env), env.Clock}
			}
			r, end, err := trial(t, v)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			want := variant.Property("")
			if tt.cut {
				want = variant.MutualExclusion
			}
			row{"long leases", v.Name, want}.try(t, r)
		})
	}
}

// byServer tells the end of a lease by the server's clock.
type byServer struct {
	lockimpl.Locker
	env variant.Env
}

func (s byServer) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.Locker.Acquire(ctx, key, o)
	if err == nil {
		var now time.Time
		now, err = s.env.Redis[0].Time(ctx).Result()
		l.Until = now.Add(o.TTL - 20*time.Millisecond)
	}
	return l, err
}

// TestOwnClock checks that a lock is caught that tells the end of a lease by the server's clock, and not one that reads the real clock.
func TestOwnClock(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	for _, tt := range []struct {
		name string
		lock func(variant.Env) lockimpl.Locker
		want variant.Property
	}{
		{"its own clock", sound.New, ""},
		{"the server's clock", func(env variant.Env) lockimpl.Locker { return byServer{sound.New(env), env} }, variant.MutualExclusion},
		{"the real clock", func(env variant.Env) lockimpl.Locker {
			env.Clock = clock.Real{}
			return sound.New(env)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := sound
			v.New = tt.lock
			r, end, err := trial(t, v)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			row{"clients' clocks may differ", v.Name, tt.want}.try(t, r)
		})
	}
}

// byTime is a lock whose fencing tokens are the time of its server, in a unit.
type byTime struct {
	lockimpl.Locker
	env  variant.Env
	unit time.Duration
}

func (b byTime) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := b.Locker.Acquire(ctx, key, o)
	if err == nil {
		var now time.Time
		now, err = b.env.Redis[0].Time(ctx).Result()
		l.Fence = now.UnixNano() / int64(b.unit)
	}
	return l, err
}

// TestCloseFences checks that tokens of a server's time are caught if grants within microseconds have the same.
func TestCloseFences(t *testing.T) {
	const rule = "tokens of grants within microseconds"
	for _, tt := range []struct {
		unit time.Duration
		want variant.Property
	}{
		{time.Microsecond, ""},
		{100 * time.Microsecond, variant.Fencing},
		{time.Millisecond, variant.Fencing},
	} {
		t.Run(tt.unit.String(), func(t *testing.T) {
			t.Parallel()
			v, _ := lockimpl.Find("lua-release")
			lock := v.New
			v.Promises, v.Fences = append(slices.Clone(v.Promises), variant.Fencing), true
			v.New = func(env variant.Env) lockimpl.Locker { return byTime{lock(env), env, tt.unit} }
			r, end, err := trial(t, v)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			row{rule, v.Name, tt.want}.try(t, r)
		})
	}
}

// generous grants a held lock on a clock that is far ahead.
type generous struct {
	lockimpl.Locker
	env variant.Env
}

func (g generous) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := g.Locker.Acquire(ctx, key, o)
	if now := g.env.Clock.Now(); errors.Is(err, lockimpl.ErrHeld) && now.After(time.Now().Add(time.Hour)) {
		return lockimpl.Lock{Key: key, Token: g.env.Token(), Until: now.Add(o.TTL)}, nil
	}
	return l, err
}

// TestLateCallsAreNotTheCause checks that late calls are not blamed for a lock that is granted twice without them.
func TestLateCallsAreNotTheCause(t *testing.T) {
	t.Parallel()
	v, _ := lockimpl.Find("lua-release")
	lock := v.New
	v.New = func(env variant.Env) lockimpl.Locker { return generous{lock(env), env} }
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	row{"a late release or extend after a quiet time", v.Name, variant.MutualExclusion}.try(t, r)
}

// TestLossAfterRelease checks that a lock is caught which tells of a loss because a renewal met the release.
func TestLossAfterRelease(t *testing.T) {
	t.Parallel()
	v := entry(t, "loss-told-after-release")
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	row{"a holder is told when its lock is lost", v.Name, variant.Progress}.try(t, r)
}

// TestRemembered checks that rules catch locks that go by what they remember of a holder, a lease, a loss or a place in the line, and pass
// sound ones.
func TestRemembered(t *testing.T) {
	t.Parallel()
	const (
		old, stale = "tokens of a lock that is old", "calls after a release leave the next holder alone"
		told       = "a holder is told when its lock is lost"
		inside     = "a lock is released inside a later lease than its first"
		unheard    = "an acquire after a release whose answer was lost"
		comesBack  = "a client that comes back has arrived later"
	)
	for _, tt := range []row{
		{old, "fence-of-32-bits", variant.Fencing},
		{stale, "extend-checked-once", variant.MutualExclusion},
		{told, "loss-told-for-all", variant.Progress},
		{told, "loss-told-once", variant.Progress},
		{told, "loss-told-by-value", variant.MutualExclusion},
		{told, "sound-loss-told", ""},
		{inside, "released-by-first-lease", variant.Progress},
		{inside, "sound-loss-told", ""},
		{unheard, "unheard-release-undone", variant.MutualExclusion},
		{comesBack, "line-place-kept", variant.FIFO},
		{comesBack, "sound-line-in-list", ""},
	} {
		t.Run(tt.rule+"/"+tt.lock, func(t *testing.T) {
			t.Parallel()
			r, end, err := trial(t, entry(t, tt.lock))
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			tt.try(t, r)
		})
	}
}

// TestEndsIsFoundOutAnew checks that it is found out again, some time later, whether the lease of a dead holder ends: the first answer
// does not stand for the whole run.
func TestEndsIsFoundOutAnew(t *testing.T) {
	t.Parallel()
	sound, _ := lockimpl.Find("lua-release")
	v := sound
	var stuck atomic.Bool
	v.New = func(env variant.Env) lockimpl.Locker { return sticking{sound.New(env), &stuck} }
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	b := &bench{ctx: t.Context(), run: r, name: mark.New(), ttl: r.able.lease, property: variant.OwnerOnlyRelease}
	defer b.close()
	if ends, known := r.ends(b); !ends || !known {
		t.Fatalf("the lease of a sound lock ends: %t, known: %t", ends, known)
	}
	stuck.Store(true)
	r.endsAt = r.endsAt.Add(-time.Hour)
	later := b.with(b.name + "-later")
	defer later.close()
	if ends, known := r.ends(later); ends || !known {
		t.Errorf("a while later, when it refuses everybody, its lease ends: %t, known: %t; want false, true", ends, known)
	}
}

// sticking is a lock whose leases last far longer than they promise, while it is stuck.
type sticking struct {
	lockimpl.Locker
	stuck *atomic.Bool
}

func (s sticking) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	if !s.stuck.Load() {
		return s.Locker.Acquire(ctx, key, o)
	}
	until := time.Now().Add(o.TTL)
	o.TTL = 1000 * time.Hour
	l, err := s.Locker.Acquire(ctx, key, o)
	l.Until = until
	return l, err
}
