package stocktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// inFlight is a sale that marks an order before it decides it, and refuses copies with an error of its own as long as the
// mark is there: until the order is decided, or, if its buyer dies, until the mark runs out.
func inFlight(t *testing.T, mark time.Duration) stockimpl.Variant {
	good := saleNamed(t, "lua")
	v := good
	v.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			key := fmt.Sprint(product, "/in-flight/", o.ID)
			if mine, err := env.Redis[0].SetNX(ctx, key, 1, mark).Result(); err != nil || !mine {
				return stockimpl.Unsaid, errors.Join(err, errors.New("the order is under way"))
			}
			left, err := s.Buy(ctx, o, l)
			if declared(err) {
				env.Redis[0].Del(context.WithoutCancel(ctx), key)
			}
			return left, err
		}}
	}
	return v
}

// TestInFlight checks that a sale may refuse a copy of an order that is under way for less than a second, and not for
// longer.
func TestInFlight(t *testing.T) {
	for _, tt := range []struct {
		mark  time.Duration
		sound bool
	}{{50 * time.Millisecond, true}, {500 * time.Millisecond, true}, {30 * time.Second, false}} {
		t.Run(tt.mark.String(), func(t *testing.T) {
			t.Parallel()
			accused := false
			for name, err := range tryAll(t, rules, inFlight(t, tt.mark), nil, Auto(t)) { // on a server whose keys run out
				if !errors.As(err, new(*suitetest.Breach)) {
					continue
				}
				if accused = true; tt.sound {
					t.Errorf("the rule %q accuses it: %v", name, err)
				}
				if !strings.Contains(err.Error(), "the order is under way\", and so again and again for more than a second; want ") {
					t.Errorf("the rule %q says %v; want that it says how long the error lasted, and what is wanted", name, err)
				}
			}
			if !accused && !tt.sound {
				t.Error("no rule accuses it")
			}
		})
	}
}

// TestOutOfTime checks that a rule that ran out of time accuses a sale only if a call of it went on for long.
func TestOutOfTime(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		took    time.Duration // of the call that went on when the time was over
		accused bool
	}{{10 * time.Millisecond, false}, {patience / 2, true}} {
		b := newBenchOf(newBench(t), saleNamed(t, "lua"))
		b.limits.ended(t.Context(), time.Now().Add(-patience)) // a long call that came to its end
		b.limits.ended(over, time.Now().Add(-tt.took))
		err := b.outOfTime(find(t, "thousands of orders"), time.Now(), over.Err())
		if errors.As(err, new(*suitetest.Breach)) != tt.accused || errors.As(err, new(*suitetest.TooSlow)) == tt.accused {
			t.Errorf("a call went on for %v when the rule's time was over: it says %v; want that it accuses the sale: %t", tt.took, err, tt.accused)
		}
	}
}

// TestSettle checks how often a call is made again, and what becomes of its answer.
func TestSettle(t *testing.T) {
	own := errors.New("too many calls")
	b := newBenchOf(Bench{}, saleNamed(t, "lua"))
	for _, tt := range []struct {
		name    string
		answers []error // the last one goes on
		calls   int
		is      error
		itself  bool
	}{
		{"success", []error{nil}, 1, nil, false},
		{"sold out", []error{stockimpl.ErrSoldOut}, 1, stockimpl.ErrSoldOut, false},
		{"repeated", []error{stockimpl.ErrRepeated}, 1, stockimpl.ErrRepeated, false},
		{"success in the end", []error{own, own, nil}, 3, nil, false},
		{"its own effect", []error{own, stockimpl.ErrRepeated}, 2, stockimpl.ErrRepeated, true},
		{"its own effect, later", []error{own, stockimpl.ErrStale, stockimpl.ErrRepeated}, 3, stockimpl.ErrRepeated, true},
		{"an error that lasts", []error{own}, 1 + len(waits), own, false},
		{"not supported", []error{errors.ErrUnsupported}, 1, errors.ErrUnsupported, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			_, err := b.insist(t.Context(), func() (int64, error) {
				calls++
				return stockimpl.Unsaid, tt.answers[min(calls, len(tt.answers))-1]
			})
			if calls != tt.calls || !errors.Is(err, tt.is) || maybeItself(err) != tt.itself {
				t.Errorf("%d calls, and %v, which may be the client itself: %t; want %d, %v and %t", calls, err, maybeItself(err), tt.calls, tt.is, tt.itself)
			}
		})
	}
}
