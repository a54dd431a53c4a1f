package mutants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// steps are the steps of a lock on one server. A nil step is the sound one, so a mutant names only its wrong steps.
type steps struct {
	// key returns the key of the lock of a name.
	key func(name string) string
	// token makes the token of one attempt.
	token func(*client) string
	// attempt tries once to take l, with the key, the token and the end of the lease filled in.
	attempt func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error)
	// failed is called after an attempt that ended in an error, and may change the answer.
	failed func(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error)
	// refused is called after an attempt that was refused.
	refused func(ctx context.Context, c *client, l *lockimpl.Lock) error
	// wait waits for the next attempt.
	wait func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error
	// extend extends l, in which the new end of the lease is filled in.
	extend func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error)
	// release releases l.
	release func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error)
}

// client is one client of a lock made of steps.
type client struct {
	steps
	env    variant.Env
	tokens map[string]string // a memory, by name, for the mutants that use one
	count  int               // another
}

// with makes a lock's New from steps.
func with(s steps) func(variant.Env) lockimpl.Locker {
	return func(env variant.Env) lockimpl.Locker { return newClient(s, env) }
}

func newClient(s steps, env variant.Env) *client {
	if s.key == nil {
		s.key = lockimpl.Key
	}
	if s.token == nil {
		s.token = func(c *client) string { return c.env.Token() }
	}
	if s.attempt == nil {
		s.attempt = setNX
	}
	if s.wait == nil {
		s.wait = func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
			return c.env.Wait(ctx, name, min(left, o.RetryEvery))
		}
	}
	if s.extend == nil {
		s.extend = extendBy(compareExpire)
	}
	if s.release == nil {
		s.release = releaseBy(compareDelete)
	}
	return &client{steps: s, env: env, tokens: map[string]string{}}
}

func (c *client) redis() redis.UniversalClient { return c.env.Redis[0] }

func (c *client) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	began := c.env.Clock.Now()
	for try := 1; ; try++ {
		l := lockimpl.Lock{Key: name, Token: c.token(c), Until: c.env.Clock.Now().Add(o.TTL)}
		ok, err := c.attempt(ctx, c, &l, o)
		if err != nil && c.failed != nil {
			ok, err = c.failed(ctx, c, &l, err)
		}
		if err != nil {
			return lockimpl.Lock{}, fmt.Errorf("acquire %q: %w", name, err)
		}
		if ok {
			return l, nil
		}
		if c.refused != nil {
			if err := c.refused(ctx, c, &l); err != nil {
				return lockimpl.Lock{}, fmt.Errorf("acquire %q: %w", name, err)
			}
		}
		left := o.Wait - c.env.Clock.Now().Sub(began)
		if left <= 0 || (o.MaxTries > 0 && try >= o.MaxTries) {
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
		if err := c.wait(ctx, c, name, left, o); err != nil {
			return lockimpl.Lock{}, fmt.Errorf("%w: %w", lockimpl.ErrHeld, err)
		}
	}
}

func (c *client) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	extended := l
	extended.Until = c.env.Clock.Now().Add(ttl)
	ok, err := c.extend(ctx, c, &extended, ttl)
	switch {
	case err != nil:
		return l, fmt.Errorf("extend %q: %w", l.Key, err)
	case !ok:
		return l, lockimpl.ErrLost
	}
	return extended, nil
}

func (c *client) Release(ctx context.Context, l lockimpl.Lock) error {
	ok, err := c.release(ctx, c, l)
	switch {
	case err != nil:
		return fmt.Errorf("release %q: %w", l.Key, err)
	case !ok:
		return lockimpl.ErrLost
	}
	return nil
}

// setNX makes the sound attempt: SET key token NX PX.
func setNX(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
	return set(ctx, c, l, "NX", o.TTL)
}

// set sends SET token PX ttl, with a condition.
func set(ctx context.Context, c *client, l *lockimpl.Lock, mode string, ttl time.Duration) (bool, error) {
	return did(c.redis().SetArgs(ctx, c.key(l.Key), l.Token, redis.SetArgs{Mode: mode, TTL: ttl}).Err())
}

// did reads the answer of a conditional SET.
func did(err error) (bool, error) {
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// yes reads the answer of a command that replies a number.
func yes(n int64, err error) (bool, error) { return n > 0, err }

// The sound scripts. KEYS[1] is the lock, ARGV[1] the token, ARGV[2] the lease in ms.
const (
	compareDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`
	compareExpire = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`
)

// takeBy makes an attempt from a script.
func takeBy(text string) func(context.Context, *client, *lockimpl.Lock, lockimpl.Options) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
		return yes(s.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, o.TTL.Milliseconds()).Int64())
	}
}

// extendBy makes an extend from a script.
func extendBy(text string) func(context.Context, *client, *lockimpl.Lock, time.Duration) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
		return yes(s.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token, ttl.Milliseconds()).Int64())
	}
}

// releaseBy makes a release from a script.
func releaseBy(text string) func(context.Context, *client, lockimpl.Lock) (bool, error) {
	s := redis.NewScript(text)
	return func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
		return yes(s.Run(ctx, c.redis(), []string{c.key(l.Key)}, l.Token).Int64())
	}
}

// del sends DEL without a check.
func del(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
	return yes(c.redis().Del(ctx, c.key(l.Key)).Result())
}

// usual lists the promises of every lock here.
var usual = []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}

// of makes a variant from steps.
func of(s steps) lockimpl.Variant { return lockimpl.Variant{Promises: usual, New: with(s)} }

// whole makes a variant from a New.
func whole(n func(variant.Env) lockimpl.Locker) lockimpl.Variant {
	return lockimpl.Variant{Promises: usual, New: n}
}
