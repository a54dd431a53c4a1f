package lockrules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// mistaken is a sound lock with one flaw: a wrong answer to a call that fails, or to the call after it.
type mistaken struct {
	lockimpl.Locker
	env  variant.Env
	flaw string
	held map[string]bool // by token: what "forgets first" may release
}

func (m mistaken) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := m.Locker.Acquire(ctx, key, o)
	switch {
	case err == nil && m.flaw == "the context's end is a refusal" && ctx.Err() != nil,
		m.flaw == "the context's error is a refusal" && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return l, lockimpl.ErrHeld
	case err == nil:
		m.held[l.Token] = true
	}
	return l, err
}

func (m mistaken) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	x, err := m.Locker.Extend(ctx, l, ttl)
	if err != nil && m.flaw == "an error of an extend is a loss" {
		err = lockimpl.ErrLost
	}
	return x, err
}

var byHash = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

func (m mistaken) Release(ctx context.Context, l lockimpl.Lock) error {
	switch m.flaw {
	case "repeats a release until it succeeds":
		err := m.Locker.Release(ctx, l)
		for err != nil && !errors.Is(err, lockimpl.ErrLost) && m.env.Wait(ctx, l.Key, lockclient.Pace) == nil {
			err = m.Locker.Release(ctx, l)
		}
		return err
	case "forgets first":
		if !m.held[l.Token] {
			return lockimpl.ErrLost
		}
		delete(m.held, l.Token)
	case "a script that is missing is a loss":
		if !m.held["loaded"] {
			m.held["loaded"] = byHash.Load(ctx, m.env.Redis[0]).Err() == nil
		}
		n, err := byHash.EvalSha(ctx, m.env.Redis[0], []string{lockimpl.Key(l.Key)}, l.Token).Int()
		if err == nil && n == 0 || redis.HasErrorPrefix(err, "NOSCRIPT") {
			err = lockimpl.ErrLost
		}
		return err
	}
	return m.Locker.Release(ctx, l)
}

// TestFailed checks that a lock is caught whose answer to a call that fails is untrue, or to the call after it, and that a sound one
// is not.
func TestFailed(t *testing.T) {
	sound, _ := lockimpl.Find("lua-release")
	s := opentest.Open(t, server.Spec{Target: "process"})
	all := slices.Concat(ServerFails, ScriptsForgotten, ConnectionFails, EndsInside, CancelledWait)
	within := func(of []Case, parts ...string) func(Case) bool {
		return func(c Case) bool {
			return slices.ContainsFunc(of, func(o Case) bool { return o.Name == c.Name }) && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(c.Name, p) })
		}
	}
	for flaw, caught := range map[string]func(Case) bool{
		"":                                    func(Case) bool { return false },
		"repeats a release until it succeeds": func(Case) bool { return false },
		"the context's end is a refusal":      func(c Case) bool { return within(EndsInside, "after", "first")(c) || within(EndsInside, "held up")(c) },
		"the context's error is a refusal":    within(EndsInside, "first", "under way"),
		"an error of an extend is a loss":     within(ServerFails, "extend"),
		"forgets first": func(c Case) bool {
			return within(ServerFails, "release")(c) || within(ConnectionFails, "not arrive")(c)
		},
		"a script that is missing is a loss": func(c Case) bool { return c.Name == "release" },
	} {
		for i, c := range all {
			t.Run(fmt.Sprintf("%s/%s", flaw, c.Name), func(t *testing.T) {
				t.Parallel()
				b := bench(t, s, fmt.Sprintf("failed-%s-%d", flaw, i), func(e variant.Env) lockimpl.Locker {
					return mistaken{sound.New(e), e, flaw, map[string]bool{}}
				})
				b.FalseLoss = variant.OwnerOnlyRelease
				if err := c.Try(b); (err != nil) != caught(c) {
					t.Errorf("the case says %v; want that it catches the lock: %t", err, caught(c))
				}
			})
		}
	}
}

// transactional acquires and releases under WATCH, by transactions.
type transactional struct{ careless }

func (l transactional) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	granted := lockimpl.Lock{Key: key, Token: l.env.Token(), Until: l.env.Clock.Now().Add(o.TTL)}
	var set *redis.StatusCmd
	_, err := l.env.Redis[0].TxPipelined(ctx, func(p redis.Pipeliner) error {
		set = p.SetArgs(ctx, key, granted.Token, redis.SetArgs{Mode: "NX", TTL: o.TTL})
		return nil
	})
	if errors.Is(err, redis.Nil) || err == nil && set.Val() != "OK" {
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	return granted, err
}

// TestTroubleInTransactions checks that connections that are reset are tried on a lock that is taken by a transaction.
func TestTroubleInTransactions(t *testing.T) {
	t.Parallel()
	s := opentest.Open(t, server.Spec{Target: "process"})
	tried := 0
	for i, c := range Recovers {
		if !strings.HasPrefix(c.Name, "acquire") || !strings.Contains(c.Name, "whose connection is reset") {
			continue
		}
		tried++
		b := bench(t, s, fmt.Sprint("transaction-", i), func(e variant.Env) lockimpl.Locker { return transactional{careless{e}} })
		b.Log = func(format string, args ...any) { t.Errorf("%s: it says %q", c.Name, fmt.Sprintf(format, args...)) }
		if err := c.Try(b); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if tried == 0 {
		t.Error("there is no such case")
	}
}
