package explore

import (
	"context"
	"testing"
	"time"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestTokensAndDays checks locks that do more with a token or a date than others: one that spells its token, which is longer
// than a name of the search, as a UUID, one whose key has the day in it, one that compares one letter of a hash in a script, and one
// that promises fencing and grants no tokens.
func TestTokensAndDays(t *testing.T) {
	t.Parallel()
	mutex, _ := scenarios.Find("mutex")
	for _, tt := range []struct {
		name    string
		tries   int
		look    variant.Property
		token   func(string) string
		key     func(now time.Time) string
		release string
		want    string
	}{
		{"like a UUID", 2, variant.OwnerOnlyRelease, func(s string) string { return s[:8] + "-" + s[8:12] + "-" + s[12:] }, nil, "", reports.Pass},
		{"a letter beyond the end", 1, variant.OwnerOnlyRelease, func(s string) string { return s[:len(s)+1] }, nil, "", reports.Inconclusive},
		{"a key for each day", 1, variant.MutualExclusion, nil, func(now time.Time) string { return now.UTC().Format("20060102") }, "", reports.Violated},
		{"a letter of a hash", 2, variant.OwnerOnlyRelease, nil, nil, `
			local v = redis.call('GET', KEYS[1])
			if v and redis.sha1hex(v):sub(1, 1) == redis.sha1hex(ARGV[1]):sub(1, 1) then return redis.call('DEL', KEYS[1]) end
			return 0`, reports.Violated},
		{"no fencing tokens", 2, variant.Fencing, nil, nil, "", reports.Violated},
	} {
		c := Config{
			Bounds: reports.Bounds{Clients: 2, Tries: tt.tries, Advances: 2, Stalls: 1, TimeMS: 30_000},
			Look:   []history.Promise{{Of: variant.Lock, Property: tt.look}},
			Run: scenarios.Config{Scenario: mutex, Hold: time.Millisecond, Lock: lockimpl.Variant{
				Name: "unseen", Fences: true, New: func(env variant.Env) lockimpl.Locker {
					return &unseen{env, tt.token, tt.key, tt.release}
				},
			}},
		}
		if r, err := Run(t.Context(), c); (err != nil) != (tt.want == reports.Inconclusive) || err == nil && r.Verdict != tt.want {
			t.Errorf("%s: %s, %s, %v; want %s", tt.name, r.Verdict, r.Why, err, tt.want)
		}
	}
}

// unseen is SET NX PX and a script that compares, with changes.
type unseen struct {
	env     variant.Env
	token   func(string) string
	key     func(now time.Time) string
	release string
}

func (u *unseen) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	now := u.env.Clock.Now()
	if u.key != nil {
		key += u.key(now)
	}
	l := lockimpl.Lock{Key: key, Token: u.env.Token(), Until: now.Add(o.TTL)}
	if u.token != nil {
		l.Token = u.token(l.Token)
	}
	return l, put(ctx, u.env, key, l.Token, o.TTL)
}

func (u *unseen) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, lockimpl.ErrLost
}

func (u *unseen) Release(ctx context.Context, l lockimpl.Lock) error {
	text := u.release
	if text == "" {
		text = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	}
	n, err := u.env.Redis[0].Eval(ctx, text, []string{l.Key}, l.Token).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrLost
	}
	return err
}
