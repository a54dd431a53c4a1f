package mutants

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// majority is a lock on several masters, as a mutant changes it.
type majority struct {
	quorum   func(nodes int) int
	extendBy func(nodes int) int // how many must extend
	// counts reports whether an answer counts as a yes.
	counts func(ok bool, err error) bool
	// undo releases the nodes that a failed attempt may have taken.
	undo func(ctx context.Context, m *masters, l lockimpl.Lock)
	// until returns the end of the lease of an attempt with this beginning and end.
	until func(began, ended time.Time, ttl time.Duration) time.Time
	// free chooses the nodes to which a release is sent, and extendTo those of an extend.
	free, extendTo func(nodes []redis.UniversalClient) []redis.UniversalClient
	// retries says that all attempts of an acquire have one token, and that a node that holds it counts.
	retries bool
	// token makes the token for a node.
	token func(token string, node int) string
}

func half(nodes int) int { return nodes/2 + 1 }

func all(nodes []redis.UniversalClient) []redis.UniversalClient { return nodes }

// soundMajority returns the lock without a flaw.
func soundMajority() majority {
	return majority{
		quorum: half, extendBy: half,
		counts: func(ok bool, err error) bool { return ok && err == nil },
		undo: func(ctx context.Context, m *masters, l lockimpl.Lock) {
			m.each(ctx, m.env.Redis, time.Second, func(ctx context.Context, r redis.UniversalClient, _ int) (bool, error) {
				return yes(deleteScript.Run(ctx, r, []string{lockimpl.Key(l.Key)}, l.Token).Int64())
			})
		},
		until: func(began, _ time.Time, ttl time.Duration) time.Time {
			return began.Add(ttl - ttl/100 - 2*time.Millisecond)
		},
		free: all, extendTo: all,
		token: func(token string, _ int) string { return token },
	}
}

var (
	deleteScript = redis.NewScript(compareDelete)
	expireScript = redis.NewScript(compareExpire)
)

// masters is one client of such a lock. It asks one node after the other.
type masters struct {
	majority
	env  variant.Env
	took []bool // which nodes said yes in the last attempt; nil: it is not noted
}

// each asks the nodes one after the other, each for at most a tenth of the lease or 50 ms, and
// counts the answers.
func (m *masters) each(ctx context.Context, nodes []redis.UniversalClient, ttl time.Duration, ask func(context.Context, redis.UniversalClient, int) (bool, error)) (counted, refused int) {
	for i, r := range nodes {
		ctx, cancel := m.env.Clock.WithTimeout(ctx, max(ttl/10, 50*time.Millisecond))
		ok, err := ask(ctx, r, i)
		cancel()
		if m.counts(ok, err) {
			counted++
		} else if err == nil {
			refused++
		}
	}
	return counted, refused
}

func (m *masters) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	first, token := m.env.Clock.Now(), m.env.Token()
	for try := 1; ; try++ {
		began := m.env.Clock.Now()
		l := lockimpl.Lock{Key: name, Token: token}
		n, no := m.each(ctx, m.env.Redis, o.TTL, func(ctx context.Context, r redis.UniversalClient, i int) (bool, error) {
			ok, err := did(r.SetArgs(ctx, lockimpl.Key(name), m.token(l.Token, i), redis.SetArgs{Mode: "NX", TTL: o.TTL}).Err())
			if m.took != nil {
				m.took[i] = ok
			}
			if !ok && err == nil && m.retries {
				value, _ := r.Get(ctx, lockimpl.Key(name)).Result()
				return value == l.Token, nil
			}
			return ok, err
		})
		now := m.env.Clock.Now()
		l.Until = m.until(began, now, o.TTL)
		if n >= m.quorum(len(m.env.Redis)) && now.Before(l.Until) {
			return l, nil
		}
		if !m.retries {
			token = m.env.Token()
		}
		if m.undo != nil {
			m.undo(context.WithoutCancel(ctx), m, l)
		}
		if ctx.Err() != nil {
			return lockimpl.Lock{}, context.Cause(ctx)
		}
		left := o.Wait - now.Sub(first)
		if left <= 0 || (o.MaxTries > 0 && try >= o.MaxTries) {
			if no == 0 || n+no < half(len(m.env.Redis)) {
				return lockimpl.Lock{}, fmt.Errorf("acquire %q: %d nodes answered", name, n+no)
			}
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
		if err := m.env.Wait(ctx, name, min(left, o.RetryEvery)); err != nil {
			return lockimpl.Lock{}, fmt.Errorf("%w: %w", lockimpl.ErrHeld, err)
		}
	}
}

func (m *masters) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	began := m.env.Clock.Now()
	n, no := m.each(ctx, m.extendTo(m.env.Redis), ttl, func(ctx context.Context, r redis.UniversalClient, i int) (bool, error) {
		return yes(expireScript.Run(ctx, r, []string{lockimpl.Key(l.Key)}, m.token(l.Token, i), ttl.Milliseconds()).Int64())
	})
	now := m.env.Clock.Now()
	switch until := m.until(began, now, ttl); {
	case n >= m.extendBy(len(m.env.Redis)) && now.Before(until):
		l.Until = until
		return l, nil
	case no >= half(len(m.env.Redis)):
		return l, lockimpl.ErrLost
	}
	return l, fmt.Errorf("extend %q: %d nodes extended", l.Key, n)
}

func (m *masters) Release(ctx context.Context, l lockimpl.Lock) error {
	n, no := 0, 0
	for i, r := range m.free(m.env.Redis) {
		ctx, cancel := m.env.Clock.WithTimeout(ctx, time.Second)
		ok, err := yes(deleteScript.Run(ctx, r, []string{lockimpl.Key(l.Key)}, m.token(l.Token, i)).Int64())
		cancel()
		if err == nil && ok {
			n++
		} else if err == nil {
			no++
		}
	}
	switch nodes := len(m.free(m.env.Redis)); {
	case n >= half(nodes):
		return nil
	case no >= half(nodes):
		return lockimpl.ErrLost
	}
	return fmt.Errorf("release %q: %d nodes answered", l.Key, n+no)
}

func onMasters(change func(*majority)) lockimpl.Variant {
	v := whole(func(env variant.Env) lockimpl.Locker {
		m := soundMajority()
		if change != nil {
			change(&m)
		}
		return &masters{majority: m, env: env}
	})
	v.Needs.Masters = 3
	return v
}

// masterMutants count their nodes wrongly.
func masterMutants() []Lock {
	exclusion, progress := entry.Breaks(variant.MutualExclusion), entry.Breaks(variant.Progress)
	return []Lock{
		{Entry: entry.New("masters-half", "half of the masters, rounded down, are a majority", exclusion, ""),
			Variant: onMasters(func(m *majority) { m.quorum = func(nodes int) int { return nodes / 2 } })},
		{Entry: entry.New("masters-no-undo", "an attempt without a majority leaves what it took until its lease is over", progress, ""),
			Variant: onMasters(func(m *majority) { m.undo = nil })},
		{Entry: entry.New("masters-undo-by-del", "an attempt without a majority deletes the key on all masters, whoever holds it", entry.Breaks(variant.OwnerOnlyRelease, variant.MutualExclusion), ""),
			Variant: onMasters(func(m *majority) {
				m.undo = func(ctx context.Context, m *masters, l lockimpl.Lock) {
					m.each(ctx, m.env.Redis, time.Second, func(ctx context.Context, r redis.UniversalClient, _ int) (bool, error) {
						return yes(r.Del(ctx, lockimpl.Key(l.Key)).Result())
					})
				}
			})},
		{Entry: entry.New("masters-errors-count", "a master that does not answer counts as one that granted", exclusion, ""),
			Variant: onMasters(func(m *majority) { m.counts = func(ok bool, err error) bool { return ok || err != nil } })},
		{Entry: entry.New("masters-extend-one", "an extend on one master is enough", exclusion, ""),
			Variant: onMasters(func(m *majority) { m.extendBy = func(int) int { return 1 } })},
		{Entry: entry.New("masters-extend-none", "an extend is answered with success, and sends nothing", exclusion, ""),
			Variant: onMasters(func(m *majority) {
				m.extendTo = func([]redis.UniversalClient) []redis.UniversalClient { return nil }
				m.extendBy = func(int) int { return 0 }
			})},
		{Entry: entry.New("masters-all-needed", "all masters must grant, so one that is dead stops everybody", progress, ""),
			Variant: onMasters(func(m *majority) { m.quorum = func(nodes int) int { return nodes } })},
		{Entry: entry.New("masters-lease-from-answers", "the lease is promised from the last answer, so one that is over is handed out", exclusion, ""),
			Variant: onMasters(func(m *majority) {
				m.until = func(_, ended time.Time, ttl time.Duration) time.Time { return ended.Add(ttl) }
			})},
		{Entry: entry.New("masters-release-first", "a release reaches the first master only", progress, ""),
			Variant: onMasters(func(m *majority) {
				m.free = func(nodes []redis.UniversalClient) []redis.UniversalClient { return nodes[:1] }
			})},
		{Entry: entry.New("masters-retry-keeps-token", "the attempts of an acquire have one token, and what an earlier one took counts in a later one, though its lease ends sooner", exclusion, "https://github.com/mike-marcacci/node-redlock/pull/369"),
			Variant: onMasters(func(m *majority) { m.retries, m.undo = true, nil })},
		{Entry: entry.New("masters-token-per-node", "each master gets its own token, and an attempt without a majority takes back by the first one's", progress, ""),
			Variant: onMasters(func(m *majority) {
				m.token = func(token string, node int) string { return fmt.Sprintf("%s-%d", token, node) }
			})},
	}
}
