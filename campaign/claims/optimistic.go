package claims

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/stockimpl"
	"oversell/variant"
)

// rates are the sales a second of the same flash sale in two ways, by round.
type rates struct{ locked, watched []float64 }

// advantage is what optimistic locking sells by what pessimistic locking sells.
func (r rates) advantage() float64 { return median(ratios(r.watched, r.locked)) }

// pessimistic is C17.
func pessimistic(ctx context.Context, b *bench) (a answer, err error) {
	few, err := b.oneBuyer(ctx)
	if err != nil {
		return a, err
	}
	many, err := b.manyBuyers(ctx, b.times(5, 3))
	if err != nil {
		return a, err
	}
	a.is = lockingPays(few.ratio(), many.advantage())
	a.says = fmt.Sprintf("Without conflicts (one buyer) optimistic locking sold %s as much as the lock; with 64 buyers at once the lock sold %s as much as optimistic locking.",
		times(few.ratio()), times(1/many.advantage()))
	a.numbers = []reports.Quantity{
		number("one buyer, lock: the fastest round", purchases/(slices.Min(few.a)/1e9), "sales/s"),
		number("one buyer, WATCH: the fastest round", purchases/(slices.Min(few.b)/1e9), "sales/s"),
		few.quantity("one buyer: WATCH by lock"),
		repeated("64 buyers, lock", many.locked, "sales/s"),
		repeated("64 buyers, WATCH", many.watched, "sales/s"),
		repeated("64 buyers: WATCH by lock", ratios(many.watched, many.locked), ""),
	}
	return a, nil
}

// purchases are those of one round of one buyer.
const purchases = 10

// oneBuyer takes the time of purchases under a lock, and with WATCH, in turns.
func (b *bench) oneBuyer(ctx context.Context) (c contest, err error) {
	env, err := b.world(ctx)
	if err != nil {
		return c, err
	}
	lock, err := b.locker(ctx, "lua-release")
	if err != nil {
		return c, err
	}
	rounds := b.times(250, 150)
	buys := func(sale string, buy func(stockimpl.Sale, stockimpl.Order) error) (func(context.Context) (time.Duration, error), error) {
		v, ok := stockimpl.Find(sale)
		if !ok {
			return nil, fmt.Errorf("no sale %q", sale)
		}
		s := v.New(env, b.key(sale))
		order := stockimpl.Order{Quantity: 1}
		return func(context.Context) (time.Duration, error) {
			return timed(func() error {
				for range purchases {
					order.ID++
					if err := buy(s, order); err != nil {
						return err
					}
				}
				return nil
			})
		}, s.Open(ctx, int64(rounds)*purchases)
	}
	locked, err := buys("plain", func(s stockimpl.Sale, o stockimpl.Order) error {
		l, err := lock.Acquire(ctx, b.key("order"), lockimpl.Options{TTL: 10 * time.Second})
		if err != nil {
			return err
		}
		if _, err := s.Buy(ctx, o, l); err != nil {
			return err
		}
		return lock.Release(ctx, l)
	})
	if err != nil {
		return c, err
	}
	watched, err := buys("watch", func(s stockimpl.Sale, o stockimpl.Order) error {
		_, err := s.Buy(ctx, o, lockimpl.Lock{})
		return err
	})
	if err != nil {
		return c, err
	}
	taken, err := inTurns(ctx, rounds, locked, watched)
	if err != nil {
		return c, err
	}
	return contest{taken[0], taken[1]}, nil
}

// manyBuyers sells a stock to 64 buyers under a lock, and with WATCH, in turns.
func (b *bench) manyBuyers(ctx context.Context, rounds int) (r rates, err error) {
	const stock = 300
	flags := func(lock, sale string) []string {
		return []string{"--lock", lock, "--sale", sale, "--clients", "64", "--stock", fmt.Sprint(stock), "--hold", "1us"}
	}
	pair := [][]string{flags("lua-release", "plain"), flags("none", "watch")}
	var cells [][]string
	for range rounds {
		cells = append(cells, pair...)
		slices.Reverse(pair)
	}
	rs, err := b.runs(ctx, cells...)
	if err != nil {
		return r, err
	}
	for _, x := range rs {
		if x.broke(variant.Sale, variant.NoOversell) > 0 || *x.Sold != stock {
			return r, fmt.Errorf("a sale of %d pieces sold %d", stock, *x.Sold)
		}
		rate := float64(*x.Sold) / x.ElapsedMS * 1e3
		if x.Sale == "watch" {
			r.watched = append(r.watched, rate)
		} else {
			r.locked = append(r.locked, rate)
		}
	}
	return r, nil
}

// clearly is the ratio from which one is called faster than the other.
const clearly = 1.05

// lockingPays decides C17 by the advantage of optimistic locking under few conflicts and
// under many; 0: not measured.
func lockingPays(few, many float64) string {
	switch {
	case few == 0 || many == 0:
		return reports.Inconclusive
	case few >= clearly && many <= 1/clearly:
		return reports.Confirmed
	case few >= clearly || many <= 1/clearly:
		return reports.Depends // one half of it is so
	case few <= 1/clearly || many >= clearly:
		return reports.Refuted
	}
	return reports.Inconclusive
}
