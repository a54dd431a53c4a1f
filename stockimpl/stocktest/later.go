package stocktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/clock"
	"oversell/internal/keyname"
	"oversell/stockimpl"
	"oversell/variant"
)

// longAfter: what a sale knows of orders and tokens must outlast the next hour.
func longAfter(ctx context.Context, b bench) error {
	return b.later(ctx, time.Hour, "an hour after a purchase")
}

// yearAfter: a clean-up job may send an unfinished order again, after data that is kept for a
// day, a week or some months is gone.
func yearAfter(ctx context.Context, b bench) error {
	return b.later(ctx, 366*24*time.Hour, "a year after a purchase")
}

// age lets time pass for a product: what expires does, and times in sorted sets are longer ago.
func (b bench) age(ctx context.Context, passed time.Duration) error {
	for _, rdb := range b.Env().Redis {
		if err := keyname.Expire(ctx, rdb, b.Product, passed); err != nil {
			return err
		}
		if err := keyname.Age(ctx, rdb, b.Product, passed); err != nil {
			return err
		}
	}
	return nil
}

// later looks at a sale after a time: by a client that was there before, and by one whose clock
// shows the later time.
func (b bench) later(ctx context.Context, passed time.Duration, when string) error {
	return b.laterBy(ctx, func() error { return b.age(ctx, passed) }, func(env *variant.Env) {
		if env.Clock != nil {
			env.Clock = clock.Shifted{Clock: env.Clock, By: passed}
		}
	}, when)
}

// laterBy is like later: pass lets the time pass, and change, unless nil, alters the environment of a client that is
// made afterwards.
func (b bench) laterBy(ctx context.Context, pass func() error, change func(*variant.Env), when string) error {
	const stock = 6
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	if err := firstOf(
		func() error { return y.buy(ctx, variant.NoUndersell, 1, 2, nil, stock-2) },
		func() error { return y.buy(ctx, variant.NoUndersell, 4, 1, nil, stock-3) },
	); err != nil {
		return err
	}
	if b.noRefunds == nil {
		if err := firstOf(
			func() error { return y.buy(ctx, variant.NoUndersell, 5, 2, nil, stock-5) },
			func() error { return y.refund(ctx, variant.NoUndersell, 5, 2, nil, stock-3) },
		); err != nil {
			return err
		}
	}
	token := f.last.Load() // of the last call that changed something
	if err := firstOf(
		func() error { return y.buy(ctx, variant.NoOversell, 6, stock, stockimpl.ErrSoldOut, 0) },
	); err != nil {
		return err
	}
	cleared, err := b.clearedOut(ctx)
	if err != nil {
		return err
	}
	if err := pass(); err != nil {
		return err
	}
	env := b.Env()
	if change != nil {
		change(&env)
	}
	late := &buyer{b: b, sale: b.newSale(env, b.Product), fences: f}
	for _, z := range []*buyer{y, late} {
		if err := z.afterwards(ctx, token, stock-3, when); err != nil {
			return err
		}
	}
	if err := late.buy(ctx, variant.NoUndersell, 3, 1, nil, stock-4); err != nil {
		return err
	}
	for _, s := range cleared {
		if err := s.afterwards(ctx, &buyer{b: s.y.b, sale: s.y.b.newSale(env, s.y.b.Product), fences: s.y.fences}, when); err != nil {
			return err
		}
	}
	return nil
}

// afterwards looks for what was known before: order 1 bought 2 pieces, and order 5, if the sale refunds, bought 2 and gave
// them back.
func (y *buyer) afterwards(ctx context.Context, token, left int64, when string) error {
	if err := y.state(ctx, variant.NoOversell, left, 3); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	if y.b.promises(variant.Fencing) {
		if _, err := y.b.settled(ctx, func() (int64, error) { return y.sale.Buy(ctx, order(2, 1), withFence(token-1)) }); !errors.Is(err, stockimpl.ErrStale) && token > 1 {
			return broken(variant.Fencing, "%s with token %d, one with token %d answered %s; want %q", when, token, token-1, say(err), stockimpl.ErrStale)
		}
	}
	if !y.b.promises(variant.OncePerOrder) {
		return nil
	}
	const of = variant.OncePerOrder
	if err := y.buy(ctx, of, 1, 2, stockimpl.ErrRepeated, left); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	if y.b.noRefunds != nil {
		return nil
	}
	return firstOf(
		func() error {
			if _, err := y.sale.Buy(ctx, order(5, 2), y.lock()); err == nil {
				return broken(of, "%s: order 5, which was bought and refunded, was sent again and bought again", when)
			}
			return nil
		},
		func() error {
			_, err := y.sale.Refund(ctx, order(5, 2), y.lock())
			if s, look := y.sale.State(ctx); err == nil || look == nil && s.Left != left {
				return broken(of, "%s: the refund of order 5, which was carried out, was sent again and answered %s; State says %v; want %d left", when, say(err), s, left)
			}
			return nil
		},
	)
}
