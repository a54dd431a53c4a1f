package locktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"oversell/internal/mark"
	"oversell/lockimpl"
	"oversell/variant"
)

// fewRenewed renews the leases of its first locks, and not of those that it holds in addition.
type fewRenewed struct {
	renewing, plain lockimpl.Locker
	held            map[string]lockimpl.Locker // by token
}

const renewedAtOnce = 16

func (f *fewRenewed) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	by := f.renewing
	if len(f.held) >= renewedAtOnce {
		by = f.plain
	}
	l, err := by.Acquire(ctx, key, o)
	if err == nil {
		f.held[l.Token] = by
	}
	return l, err
}

func (f *fewRenewed) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	if by := f.held[l.Token]; by != nil {
		return by.Extend(ctx, l, ttl)
	}
	return f.plain.Extend(ctx, l, ttl)
}

func (f *fewRenewed) Release(ctx context.Context, l lockimpl.Lock) error {
	by := f.held[l.Token]
	if by == nil {
		return f.plain.Release(ctx, l)
	}
	delete(f.held, l.Token)
	return by.Release(ctx, l)
}

// TestManyRenewals checks that a lock is caught whose client renews the leases of few locks only, unless the machine is so
// busy that a sound client could not renew them either.
func TestManyRenewals(t *testing.T) {
	watchdog, _ := lockimpl.Find("watchdog")
	plain, _ := lockimpl.Find("lua-release")
	v := watchdog
	v.New = func(env variant.Env) lockimpl.Locker {
		return &fewRenewed{watchdog.New(env), plain.New(env), map[string]lockimpl.Locker{}}
	}
	r, end, err := trial(t, v)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for _, u := range rules {
		if u.name != "a lock that renews keeps others out while its holder lives" {
			continue
		}
		var b *breach
		if err := r.try(t.Context(), u, mark.New()+"many"); !errors.As(err, &b) || b.Property != variant.MutualExclusion || !strings.Contains(err.Error(), "40 other locks") {
			t.Errorf("the rule says %v; want that %s is broken beside 40 other locks", err, variant.MutualExclusion)
		}
		// Without beat, no time is known in which the machine answered.
		busy := &run{lock: v, server: r.server, seed: 1, able: r.able, began: time.Now(), enough: func() {}, logf: t.Logf}
		busy.repeats.Store(true)
		if err := busy.try(t.Context(), u, mark.New()+"busy"); !isUnjudged(err) || !strings.Contains(err.Error(), "perhaps because the machine is busy") {
			t.Errorf("on a busy machine, the rule says %v; want that it could not be judged", err)
		}
	}
}
