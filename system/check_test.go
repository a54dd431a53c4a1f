package system

import (
	"context"
	"fmt"
	"testing"
	"time"

	"oversell/lockimpl"
)

// brief is a lock whose lease ends if ends is set. Its clients wait by polling if waits is set.
type brief struct {
	until *time.Time
	waits bool
	ends  bool
}

func (b brief) Acquire(_ context.Context, _ string, o lockimpl.Options) (lockimpl.Lock, error) {
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		switch now := time.Now(); {
		case b.until.IsZero() || b.ends && now.After(*b.until):
			*b.until = now.Add(o.TTL)
			return lockimpl.Lock{}, nil
		case !b.waits || now.After(began.Add(o.Wait)):
			return lockimpl.Lock{}, lockimpl.ErrHeld
		}
	}
}

func (b brief) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, nil
}

func (b brief) Release(context.Context, lockimpl.Lock) error { return nil }

// TestChecksOfWaiting checks that a lock that does not wait is reported as lacking something optional, and that a lock
// whose lease does not end is reported as wrong, whether it waits or not.
func TestChecksOfWaiting(t *testing.T) {
	for _, c := range []struct {
		waits, ends bool
		want        string // for each finding: OK and Optional
	}{
		{true, true, "[true false] [true false] "},
		{false, true, "[false true] [true false] [true false] "},
		{true, false, "[false false] "},
		{false, false, "[false true] [false false] "},
	} {
		lock := brief{new(time.Time), c.waits, c.ends}
		check := &checking{ctx: t.Context(), env: world(t)}
		check.waits(lock, lock, "k", 100*time.Millisecond)
		got := ""
		for _, f := range check.findings {
			got += fmt.Sprint([]bool{f.OK, f.Optional}) + " "
		}
		if got != c.want {
			t.Errorf("waits: %v, ends: %v: %s; want %s\n%+v", c.waits, c.ends, got, c.want, check.findings)
		}
	}
}
