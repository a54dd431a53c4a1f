package lockimpl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// Key returns the documents' key for a lock's name: the key under which every shipped lock keeps the lock, on each of
// its masters.
func Key(name string) string { return "Lock:" + name }

// granted returns the lock that an attempt started at start has won.
func granted(name, token, via string, start time.Time, ttl time.Duration) Lock {
	return Lock{Key: name, Token: token, Via: via, Until: start.Add(ttl)}
}

// acquire repeats attempt while it reports ErrHeld or errNoMajority, until the waiting time or the attempts are used up
// or env.Wait fails. attempt gets the time at which it starts.
func acquire(ctx context.Context, env variant.Env, name string, o Options, attempt func(start time.Time) (Lock, error)) (Lock, error) {
	start := env.Clock.Now()
	deadline := start.Add(o.Wait)
	for try := 1; ; try++ {
		l, err := attempt(start)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, ErrHeld) {
			err = fmt.Errorf("acquire %q: %w", name, err)
		}
		left := deadline.Sub(env.Clock.Now())
		again := errors.Is(err, ErrHeld) || errors.Is(err, errNoMajority)
		if !again || left <= 0 || (o.MaxTries > 0 && try >= o.MaxTries) {
			return Lock{}, err
		}
		if err := env.Wait(ctx, name, min(left, o.RetryEvery)); err != nil {
			return Lock{}, fmt.Errorf("%w: %w", ErrHeld, err)
		}
		start = env.Clock.Now()
	}
}

// errNoMajority ends an attempt on several nodes of which too few answered. It is not a refusal, and the client tries
// again.
var errNoMajority = errors.New("no majority of the nodes answered")

// changed turns the count reported by a release or an extend into its answer.
func changed(what, name string, n int64, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s %q: %w", what, name, err)
	case n == 0:
		return ErrLost
	}
	return nil
}

// extended returns l with its lease moved to ttl after start, if the server changed it.
func extended(l Lock, start time.Time, ttl time.Duration, n int64, err error) (Lock, error) {
	if err := changed("extend", l.Key, n, err); err != nil {
		return l, err
	}
	l.Until = start.Add(ttl)
	return l, nil
}

// setNXWithExpiry sends SET key value NX EX ttl, as the documents write it; a lease that is not a whole number of seconds is sent
// as PX.
func setNXWithExpiry(ctx context.Context, c redis.UniversalClient, key, value string, ttl time.Duration) (bool, error) {
	return did(c.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", TTL: ttl}).Err())
}

// sendSETNX sends SETNX itself. The driver's method of that name sends SET NX, which does the same but is not the
// command in the documents.
func sendSETNX(ctx context.Context, c redis.UniversalClient, key string, value any) (bool, error) {
	cmd := redis.NewBoolCmd(ctx, "setnx", key, value)
	_ = c.Process(ctx, cmd) // the command holds its error
	return cmd.Result()
}

// did reads the reply of a conditional SET: nil means that it did not happen.
func did(err error) (bool, error) {
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// count returns a boolean reply as a count of changed keys.
func count(ok bool, err error) (int64, error) {
	if ok {
		return 1, err
	}
	return 0, err
}

// blind is the extending and releasing half of the locks that do not check the owner of the key.
type blind struct{ env variant.Env }

// Extend sends PEXPIRE.
func (b blind) Extend(ctx context.Context, l Lock, ttl time.Duration) (Lock, error) {
	start := b.env.Clock.Now()
	n, err := count(b.env.Redis[0].PExpire(ctx, Key(l.Key), ttl).Result())
	return extended(l, start, ttl, n, err)
}

// Release sends DEL.
func (b blind) Release(ctx context.Context, l Lock) error {
	n, err := b.env.Redis[0].Del(ctx, Key(l.Key)).Result()
	return changed("release", l.Key, n, err)
}
