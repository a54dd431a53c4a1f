package mutants

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/variant"
)

// toldMutants notify wrongly: waiters when to look again, and holders that their lock is lost.
func toldMutants() []Lock {
	doubles := steps{wait: func(ctx context.Context, c *client, name string, left time.Duration, o lockimpl.Options) error {
		return c.env.Wait(ctx, name, min(left, max(o.RetryEvery, o.Wait-left)))
	}}
	return []Lock{
		{Entry: entry.New("backoff-without-end", "each pause between two attempts is as long as all of the wait before", entry.Breaks(variant.Progress), ""), Variant: of(doubles)},
		{Entry: entry.New("lease-dropped-after-wait", "an attempt that follows a refusal sets the key without an expiry", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{
				attempt: func(ctx context.Context, c *client, l *lockimpl.Lock, o lockimpl.Options) (bool, error) {
					ttl := o.TTL
					if c.tokens[l.Key] == refusedBefore {
						ttl = 0
					}
					return c.redis().SetNX(ctx, c.key(l.Key), l.Token, ttl).Result()
				},
				refused: func(_ context.Context, c *client, l *lockimpl.Lock) error {
					c.tokens[l.Key] = refusedBefore
					return nil
				},
			})},
		{Entry: entry.New("loss-not-told", "the channel of Lost is never closed", entry.Breaks(variant.MutualExclusion), ""), Variant: watchdogThat(func(w telling) lockimpl.Locker { return silent{w} })},
		{Entry: entry.New("loss-told-at-release", "the release closes the channel of Lost, as if the lock had been taken away", entry.Breaks(variant.Progress), ""),
			Variant: watchdogThat(func(w telling) lockimpl.Locker { return &alarmed{telling: w, alarms: map[string]chan struct{}{}} })},
		{Entry: entry.New("sound-loss-told", "renewals tell when the lock is lost", nil, ""), Variant: watchdogThat(func(w telling) lockimpl.Locker { return w })},
		{Entry: entry.New("sound-loss-by-timer", "the channel of Lost is closed at the end of the lease", nil, ""), Variant: timed()},
		{Entry: entry.New("names-by-short-checksum", "the key is a checksum of 16 bits of the name", entry.Breaks(variant.Progress), ""),
			Variant: of(steps{key: func(name string) string {
				return lockimpl.Key(fmt.Sprintf("%04x", crc32.ChecksumIEEE([]byte(name))&0xffff))
			}})},
	}
}

// refusedBefore notes that the lock of a name was refused to the client.
const refusedBefore = "refused before"

// telling is the interface of the shipped lock that renews.
type telling interface {
	lockimpl.Locker
	lockimpl.Renewer
	lockimpl.LossNotifier
}

// watchdogThat returns the shipped lock that renews, in a wrapper.
func watchdogThat(wrap func(telling) lockimpl.Locker) lockimpl.Variant {
	v := of(steps{})
	v.Renews = true
	shipped, _ := lockimpl.Find("watchdog")
	v.New = func(env variant.Env) lockimpl.Locker { return wrap(shipped.New(env).(telling)) }
	return v
}

type silent struct{ telling }

func (s silent) Lost(lockimpl.Lock) <-chan struct{} { return make(chan struct{}) }

type alarmed struct {
	telling
	alarms map[string]chan struct{}
}

func (a *alarmed) Lost(l lockimpl.Lock) <-chan struct{} {
	alarm := make(chan struct{})
	a.alarms[l.Token] = alarm
	return alarm
}

func (a *alarmed) Release(ctx context.Context, l lockimpl.Lock) error {
	err := a.telling.Release(ctx, l)
	if alarm := a.alarms[l.Token]; alarm != nil {
		close(alarm)
		delete(a.alarms, l.Token)
	}
	return err
}

// timed returns a lock that reports the end of a lease, by the client's clock.
func timed() lockimpl.Variant {
	v := of(steps{})
	v.New = func(env variant.Env) lockimpl.Locker {
		return &timer{client: newClient(steps{}, env), leases: map[string]lease{}}
	}
	return v
}

type timer struct {
	*client
	leases map[string]lease // by token
}

type lease struct {
	over chan struct{}
	stop context.CancelFunc
}

// begin reports the end of l's lease, and no longer that of an earlier one.
func (t *timer) begin(l lockimpl.Lock) {
	t.end(l)
	ctx, stop := context.WithCancel(context.Background())
	one := lease{make(chan struct{}), stop}
	t.leases[l.Token] = one
	t.env.Go(func(life context.Context) {
		defer context.AfterFunc(life, stop)()
		if t.env.Clock.Sleep(ctx, l.Until.Sub(t.env.Clock.Now())) == nil {
			close(one.over)
		}
	})
}

func (t *timer) end(l lockimpl.Lock) {
	if one, begun := t.leases[l.Token]; begun {
		one.stop()
		delete(t.leases, l.Token)
	}
}

func (t *timer) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := t.client.Acquire(ctx, name, o)
	if err == nil {
		t.begin(l)
	}
	return l, err
}

func (t *timer) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	l, err := t.client.Extend(ctx, l, ttl)
	if err == nil {
		t.begin(l)
	}
	return l, err
}

func (t *timer) Release(ctx context.Context, l lockimpl.Lock) error {
	t.end(l)
	return t.client.Release(ctx, l)
}

func (t *timer) Lost(l lockimpl.Lock) <-chan struct{} {
	if one, begun := t.leases[l.Token]; begun {
		return one.over
	}
	return nil
}
