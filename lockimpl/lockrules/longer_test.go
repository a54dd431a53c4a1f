package lockrules

import (
	"context"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/variant"
)

// noting is a lock whose client notes the end of its lease, and takes the lock for lost when that is over.
type noting struct {
	careless
	extends, releases bool // which calls look at the note
	updates           bool // an extend notes the new end
	ends              map[string]time.Time
}

func (n noting) lost(l lockimpl.Lock) bool { return time.Now().After(n.ends[l.Token]) }

func (n noting) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := n.careless.Acquire(ctx, key, o)
	if err == nil {
		n.ends[l.Token] = l.Until
	}
	return l, err
}

func (n noting) Extend(ctx context.Context, l lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	if n.extends && n.lost(l) {
		return l, lockimpl.ErrLost
	}
	m, err := n.careless.Extend(ctx, l, ttl)
	if err == nil && n.updates {
		n.ends[l.Token] = m.Until
	}
	return m, err
}

func (n noting) Release(ctx context.Context, l lockimpl.Lock) error {
	if n.releases && n.lost(l) {
		return lockimpl.ErrLost
	}
	return n.careless.Release(ctx, l)
}

// TestLonger checks that a lock is caught whose client goes by the end of its first lease.
func TestLonger(t *testing.T) {
	t.Parallel()
	notes := func(extends, releases, updates bool) func(variant.Env) lockimpl.Locker {
		return func(e variant.Env) lockimpl.Locker {
			return noting{careless{e}, extends, releases, updates, map[string]time.Time{}}
		}
	}
	catches(t, Longer, []trial{
		{name: "notes", lock: notes(true, true, true)},
		{name: "releases by the first lease", lock: notes(false, true, false), caught: []int{0, 1, 2, 3}},
		{name: "extends by the first lease", lock: notes(true, false, false), caught: []int{2, 3}},
		{name: "renews", lock: func(e variant.Env) lockimpl.Locker { return &dog{careless{e}, "", map[string]*renewal{}} }, renews: true},
	})
}
