package claims

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// drawn counts the tokens of some acquisitions.
type drawn struct{ tokens, repeated int }

// share returns the share of tokens that had been drawn before.
func (d drawn) share() float64 { return float64(d.repeated) / float64(max(d.tokens, 1)) }

// uniqueness is the result of C21.
type uniqueness struct {
	fast, slow, random drawn // of one client, one request after the other
	threads            drawn // of pairs drawn concurrently by two threads of one client
	robbed             bool  // with equal tokens, the first holder's release deletes the second's lock
}

// stamp returns the published token: the time in milliseconds and the client's id.
func stamp() string { return fmt.Sprintf("%d:client-1", time.Now().UnixMilli()) }

// timeStamps measures C21.
func timeStamps(ctx context.Context, b *bench) (a answer, err error) {
	var u uniqueness
	n := b.times(4000, 1500)
	for _, x := range []struct {
		into  *drawn
		token func() string
		n     int
		pause time.Duration
	}{{&u.fast, stamp, n, 0}, {&u.slow, stamp, n / 10, 2 * time.Millisecond}, {&u.random, rand.Text, n, 0}} {
		if *x.into, err = b.draw(ctx, x.token, x.n, x.pause); err != nil {
			return a, err
		}
	}
	u.threads = drawAtOnce(1000)
	if u.robbed, err = b.robbedByTwin(ctx); err != nil {
		return a, err
	}
	a.is = uniqueEnough(u)
	a.says = fmt.Sprintf("A client that took a lock %s times in a row, as fast as it could, drew a token again in %s of them; two of its threads concurrently in %s; 128 random bits never. With the same token twice, a late release deleted the other holder's lock.",
		reports.Thousands(int64(u.fast.tokens)), percent(u.fast.share()), percent(u.threads.share()))
	a.on = "whether a client makes at most one request a millisecond (at one in two milliseconds, none repeated), has one thread and a unique id, and its clock never goes back. Random bits depend on none of that."
	a.numbers = []reports.Quantity{
		number("acquisitions of one client, as fast as it could", u.fast.tokens, ""),
		number("of them with a repeated token", u.fast.repeated, ""),
		number("of acquisitions two milliseconds apart", u.slow.repeated, fmt.Sprintf("of %d", u.slow.tokens)),
		number("of pairs drawn concurrently by two threads", u.threads.repeated, fmt.Sprintf("of %d", u.threads.tokens)),
		number("of 128 random bits", u.random.repeated, fmt.Sprintf("of %d", u.random.tokens)),
		yes("a late release deletes the lock of the holder with the same token", u.robbed),
	}
	return a, nil
}

// luaRelease is the lock that the measurements of this file take, and a client's world.
func (b *bench) luaRelease(ctx context.Context) (v lockimpl.Variant, env variant.Env, err error) {
	v, ok := lockimpl.Find("lua-release")
	if !ok {
		return v, env, errors.New("no lock lua-release")
	}
	env, err = b.env(ctx)
	return v, env, err
}

// draw takes and releases a lock so often, with at least a pause between.
func (b *bench) draw(ctx context.Context, token func() string, n int, pause time.Duration) (d drawn, err error) {
	v, env, err := b.luaRelease(ctx)
	if err != nil {
		return d, err
	}
	env.Token = token
	lock := v.New(env)
	seen := map[string]bool{}
	for range n {
		l, err := lock.Acquire(ctx, b.key("order"), lockimpl.Options{TTL: 10 * time.Second})
		if err != nil {
			return d, err
		}
		if err := lock.Release(ctx, l); err != nil {
			return d, err
		}
		d.tokens++
		if seen[l.Token] {
			d.repeated++
		}
		seen[l.Token] = true
		if pause > 0 {
			(clock.Real{}).Sleep(ctx, pause)
		}
	}
	return d, nil
}

// drawAtOnce makes two threads of a client draw a token at the same moment, n times.
func drawAtOnce(n int) drawn {
	d := drawn{tokens: n}
	for range n {
		var pair [2]string
		start := make(chan struct{})
		var g errgroup.Group
		for i := range pair {
			g.Go(func() error {
				<-start
				pair[i] = stamp()
				return nil
			})
		}
		close(start)
		_ = g.Wait() // no error is possible
		if pair[0] == pair[1] {
			d.repeated++
		}
	}
	return d
}

// robbedByTwin gives two successive holders of a lock the same token; the first outlives its lease and then
// releases with the compare-and-delete script.
func (b *bench) robbedByTwin(ctx context.Context) (bool, error) {
	v, env, err := b.luaRelease(ctx)
	if err != nil {
		return false, err
	}
	same := stamp()
	env.Token = func() string { return same }
	first, second := v.New(env), v.New(env)
	key := b.key("twins")
	l, err := first.Acquire(ctx, key, lockimpl.Options{TTL: 20 * time.Millisecond})
	if err != nil {
		return false, err
	}
	if _, err := second.Acquire(ctx, key, lockimpl.Options{TTL: 10 * time.Second, Wait: 5 * time.Second, RetryEvery: shortWait}); err != nil {
		return false, err
	}
	err = first.Release(ctx, l)
	if errors.Is(err, lockimpl.ErrLost) {
		return false, nil
	}
	return err == nil, err
}

// uniqueEnough decides C21.
func uniqueEnough(u uniqueness) string {
	switch {
	case u.random.repeated > 0 || u.fast.tokens == 0:
		return reports.Inconclusive // what repeats is not the token
	case u.slow.repeated > 0:
		return reports.Refuted
	case (u.fast.repeated > 0 || u.threads.repeated > 0) && u.robbed:
		return reports.Depends
	}
	return reports.Confirmed
}
