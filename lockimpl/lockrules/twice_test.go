package lockrules

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// counting is a re-entrant lock that counts grants on the server. Its scripts may have flaws.
type counting struct {
	careless
	extend, release *redis.Script
	mine            map[string]string
}

var (
	countAcquire = redis.NewScript(`
		local owner = redis.call('HGET', KEYS[1], 'owner')
		if owner and owner ~= ARGV[3] then return 0 end
		if not owner then redis.call('HSET', KEYS[1], 'owner', ARGV[1]) end
		redis.call('HINCRBY', KEYS[1], 'count', 1)
		if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
		return owner and 2 or 1`)
	countExtend = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
		if redis.call('HGET', KEYS[1], 'count') == '1' or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
		return 1`)
	countRelease = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
		if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) end
		return 1`)
	// extendBoth gives all grants the new end, and extendOne extends a single grant only.
	extendBoth = redis.NewScript(`if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	extendOne  = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'count') ~= '1' then return 0 end
		return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	// releaseTwo frees the lock with the second release.
	releaseTwo = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
		if redis.call('HINCRBY', KEYS[1], 'released', 1) >= 2 or redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) end
		return 1`)
	// releaseRenews begins a lease of 30 s for what is left, and releaseCuts leaves a quarter of the lease.
	releaseRenews = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
		if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], 30000) end
		return 1`)
	releaseCuts = redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
		if redis.call('HINCRBY', KEYS[1], 'count', -1) <= 0 then redis.call('DEL', KEYS[1]) else redis.call('PEXPIRE', KEYS[1], math.floor(redis.call('PTTL', KEYS[1]) / 4)) end
		return 1`)
)

func (c counting) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: c.env.Token(), Until: c.env.Clock.Now().Add(o.TTL)}
	n, err := countAcquire.Run(ctx, c.env.Redis[0], []string{key}, l.Token, o.TTL.Milliseconds(), c.mine[key]).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrHeld
	}
	if n == 2 {
		l.Token = c.mine[key]
	}
	if err == nil {
		c.mine[key] = l.Token
	}
	return l, err
}

func (c counting) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l.Until = c.env.Clock.Now().Add(ttl)
	return l, c.run(ctx, c.extend, lockimpl.ErrLost, l.Key, l.Token, ttl.Milliseconds())
}

func (c counting) Release(ctx context.Context, l lockimpl.Lock) error {
	return c.run(ctx, c.release, lockimpl.ErrLost, l.Key, l.Token)
}

// numbering gives each grant a token of its own: the holder's and a random part. If released is nil, a second release of the same
// grant counts as the release of another one.
type numbering struct {
	counting
	released map[string]bool // by token
}

func (n numbering) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := n.counting.Acquire(ctx, key, o)
	l.Token += "#" + n.env.Token()
	return l, err
}

func (n numbering) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	m := l
	m.Token, _, _ = strings.Cut(l.Token, "#")
	m, err := n.counting.Extend(ctx, m, ttl)
	l.Until = m.Until
	return l, err
}

func (n numbering) Release(ctx context.Context, l lockimpl.Lock) error {
	if n.released[l.Token] {
		return lockimpl.ErrLost
	}
	if n.released != nil {
		n.released[l.Token] = true
	}
	l.Token, _, _ = strings.Cut(l.Token, "#")
	return n.counting.Release(ctx, l)
}

// TestTwice checks that a lock is caught that mixes up two grants of one holder.
func TestTwice(t *testing.T) {
	t.Parallel()
	counts := func(extend, release *redis.Script) func(variant.Env) lockimpl.Locker {
		return func(e variant.Env) lockimpl.Locker {
			return counting{careless{e}, extend, release, map[string]string{}}
		}
	}
	numbers := func(released map[string]bool) func(variant.Env) lockimpl.Locker {
		return func(e variant.Env) lockimpl.Locker {
			return numbering{counts(countExtend, countRelease)(e).(counting), maps.Clone(released)}
		}
	}
	catches(t, Twice, []trial{
		{name: "remembers its releases", lock: numbers(map[string]bool{})},
		{name: "counts each release", lock: numbers(nil), caught: []int{14, 15}},
		{name: "counts", lock: counts(countExtend, countRelease)},
		{name: "extends both grants", lock: counts(extendBoth, countRelease), caught: []int{0, 5}},
		{name: "counts to two", lock: counts(countExtend, releaseTwo), caught: []int{10, 11}},
		{name: "extends single grants", lock: counts(extendOne, countRelease), caught: []int{0, 1, 3, 5, 6, 8}},
		{name: "a release renews", lock: counts(countExtend, releaseRenews), caught: []int{2, 3, 7, 8, 10, 11, 12, 13}},
		{name: "a release cuts", lock: counts(countExtend, releaseCuts), caught: []int{2, 3, 7, 8, 10, 11, 12, 13}},
	})
}
