package mutants

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// answerMutants give wrong answers to calls that come too late or get no answer themselves, or do not keep to the options of an acquire.
func answerMutants() []Lock {
	owner, stuck := entry.Breaks(variant.OwnerOnlyRelease), entry.Breaks(variant.Progress)
	return []Lock{
		{Entry: entry.New("late-release-refused", "a release of a lock that is lost is answered with ErrHeld", owner, ""), Variant: of(steps{release: lostAs(lockimpl.ErrHeld)})},
		{Entry: entry.New("late-release-own-error", "a release of a lock that is lost is answered with an error of its own", owner, ""), Variant: of(steps{release: lostAs(errNotOwner)})},
		{Entry: entry.New("late-extend-refused", "an extend of a lock that is lost is answered with ErrHeld", owner, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
				if err == nil && !ok {
					err = lockimpl.ErrHeld
				}
				return ok, err
			}})},
		{Entry: entry.New("release-count-ignored", "a release reads the token, and then deletes by a script that compares, whose answer it ignores", owner, ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				token, err := c.redis().Get(ctx, c.key(l.Key)).Result()
				if errors.Is(err, redis.Nil) || err == nil && token != l.Token {
					return false, nil
				}
				if err == nil {
					_, err = releaseBy(compareDelete)(ctx, c, l)
				}
				return true, err
			}})},
		{Entry: entry.New("closed-connection-is-refusal", "an attempt whose connection the server closed is taken for a refusal", stuck, ""), Variant: of(steps{failed: closedIsNo})},
		{Entry: entry.New("closed-connection-is-release", "a release whose connection the server closed is taken for done", stuck, ""),
			Variant: of(steps{release: func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
				ok, err := releaseBy(compareDelete)(ctx, c, l)
				if errors.Is(err, io.EOF) {
					return true, nil
				}
				return ok, err
			}})},
		{Entry: entry.New("last-attempt-unheard", "a client that is told to stop waiting makes a last attempt, and does not read its answer", stuck, ""),
			Variant: of(steps{wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
				err := c.env.Wait(ctx, name, min(left, o.RetryEvery))
				if err != nil {
					_, _ = setNX(context.WithoutCancel(ctx), c, &lockimpl.Lock{Key: name, Token: c.env.Token()}, o)
				}
				return err
			}})},
		{Entry: entry.New("stop-is-own-error", "a client that is told to stop waiting answers with that error alone", stuck, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return stopper{newClient(steps{}, env)} })},
		{Entry: entry.New("extend-changes-token", "an extend puts a new token in the place of the one before, which its holder still has if the answer is lost", stuck, ""), Variant: of(steps{extend: changesToken(changesTokenOnly)})},
		{Entry: entry.New("extend-not-in-last-moment", "an extend in the last 60 ms of a lease, by the client's clock, is answered with ErrLost", entry.Breaks(variant.OwnerOnlyRelease), ""),
			Variant: whole(func(env variant.Env) lockimpl.Locker { return cautious{newClient(steps{}, env)} })},
		{Entry: entry.New("extend-forgets-token", "an extend returns the lock without its token", stuck, ""),
			Variant: of(steps{extend: func(ctx context.Context, c *client, l *lockimpl.Lock, ttl time.Duration) (bool, error) {
				ok, err := extendBy(compareExpire)(ctx, c, l, ttl)
				l.Token = ""
				return ok, err
			}})},
		{Entry: entry.New("loss-told-by-name", "the channel of Lost is that of the latest grant of the name", stuck, ""),
			Variant: watchdogThat(func(w telling) lockimpl.Locker { return lossByName{byName{w, map[string]lockimpl.Lock{}}} })},
		{Entry: entry.New("renewal-told-by-name", "Renewed returns the end of the lease of the latest grant of the name", stuck, ""),
			Variant: watchdogThat(func(w telling) lockimpl.Locker { return renewalByName{byName{w, map[string]lockimpl.Lock{}}} })},
		{Entry: entry.New("one-attempt-too-many", "MaxTries is the number of further attempts after the first", stuck, ""), Variant: changingOptions(func(o *lockimpl.Options) {
			if o.MaxTries > 0 {
				o.MaxTries++
			}
		})},
		{Entry: entry.New("pause-longer-than-wait", "a pause between two attempts does not end with the wait", stuck, ""),
			Variant: of(steps{wait: func(ctx context.Context, c *client, name string, _ time.Duration, o lockimpl.Options) error {
				return c.env.Wait(ctx, name, o.RetryEvery)
			}})},
		{Entry: entry.New("wait-of-a-minute", "a client waits for a minute at most", stuck, ""), Variant: changingOptions(func(o *lockimpl.Options) { o.Wait = min(o.Wait, time.Minute) })},
		{Entry: entry.New("single-attempt-waits", "an acquire without a wait waits for 20 ms", stuck, ""), Variant: changingOptions(func(o *lockimpl.Options) { o.Wait = max(o.Wait, 20*time.Millisecond) })},
		{Entry: entry.New("sound-connection-repaired", "an attempt whose connection the server closed is undone, and made once more", nil, ""), Variant: of(steps{failed: undoneAndRepeated})},
		{Entry: entry.New("sound-last-attempt", "a client that is told to stop waiting makes a last attempt, and keeps the lock if that is granted", nil, ""), Variant: whole(func(env variant.Env) lockimpl.Locker { return lastChance{newClient(steps{}, env)} })},
	}
}

var errNotOwner = errors.New("the caller does not own the lock")

// lostAs answers the release of a lock that is lost with an error.
func lostAs(lost error) func(context.Context, *client, lockimpl.Lock) (bool, error) {
	return func(ctx context.Context, c *client, l lockimpl.Lock) (bool, error) {
		ok, err := releaseBy(compareDelete)(ctx, c, l)
		if err == nil && !ok {
			err = lost
		}
		return ok, err
	}
}

// closedIsNo takes an attempt without an answer for a refusal, if its connection was closed.
func closedIsNo(_ context.Context, _ *client, _ *lockimpl.Lock, err error) (bool, error) {
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return false, err
}

// undoneAndRepeated releases what an attempt without an answer may have taken, and makes another attempt.
func undoneAndRepeated(ctx context.Context, c *client, l *lockimpl.Lock, err error) (bool, error) {
	if !errors.Is(err, io.EOF) {
		return false, err
	}
	if _, err := releaseBy(compareDelete)(ctx, c, *l); err != nil {
		return false, err
	}
	left := l.Until.Sub(c.env.Clock.Now())
	if left < time.Millisecond {
		return false, err
	}
	return setNX(ctx, c, l, lockimpl.Options{TTL: left})
}

type stopper struct{ *client }

func (s stopper) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.client.Acquire(ctx, name, o)
	if errors.Is(err, variant.ErrStopped) {
		err = variant.ErrStopped
	}
	return l, err
}

// lastChance is a client that makes an attempt after a wait that was stopped.
type lastChance struct{ *client }

func (s lastChance) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := s.client.Acquire(ctx, name, o)
	if !errors.Is(err, lockimpl.ErrHeld) || ctx.Err() == nil && !errors.Is(err, variant.ErrStopped) {
		return l, err
	}
	o.Wait, o.MaxTries = 0, 0
	m, again := s.client.Acquire(context.WithoutCancel(ctx), name, o)
	if errors.Is(again, lockimpl.ErrHeld) {
		return l, err
	}
	return m, again
}

type cautious struct{ *client }

func (c cautious) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	if l.Until.Sub(c.env.Clock.Now()) < 60*time.Millisecond {
		return l, lockimpl.ErrLost
	}
	return c.client.Extend(ctx, l, ttl)
}

// byName keeps the latest grant of each name.
type byName struct {
	telling
	latest map[string]lockimpl.Lock
}

func (b byName) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := b.telling.Acquire(ctx, name, o)
	if err == nil {
		b.latest[name] = l
	}
	return l, err
}

type lossByName struct{ byName }

func (b lossByName) Lost(l lockimpl.Lock) <-chan struct{} { return b.telling.Lost(b.latest[l.Key]) }

type renewalByName struct{ byName }

func (b renewalByName) Renewed(l lockimpl.Lock) lockimpl.Lock {
	return b.telling.Renewed(b.latest[l.Key])
}

// changingOptions makes a lock that changes the options of an acquire.
func changingOptions(change func(*lockimpl.Options)) lockimpl.Variant {
	return whole(func(env variant.Env) lockimpl.Locker { return changed{newClient(steps{}, env), change} })
}

type changed struct {
	*client
	change func(*lockimpl.Options)
}

func (c changed) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	c.change(&o)
	return c.client.Acquire(ctx, name, o)
}
