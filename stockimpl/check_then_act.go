package stockimpl

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// checkThenAct reads the order id, then takes the pieces as decr does, then writes the id. Two copies of one order that
// both read before either has written both take effect; and a buyer that dies before the write and orders again is
// charged twice.
type checkThenAct struct {
	record
	orders string
}

func newCheckThenAct(env variant.Env, product string) Sale {
	s := &checkThenAct{record: newRecord(env, product)}
	s.orders = s.key("Orders")
	return s
}

func (s *checkThenAct) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) {
		id := strconv.FormatInt(o.ID, 10)
		known, err := s.rdb.HExists(ctx, s.orders, id).Result()
		if err != nil {
			return Unsaid, err
		}
		if known {
			return Unsaid, ErrRepeated
		}
		left, err := s.take(ctx, pieces)
		if err != nil {
			return Unsaid, err
		}
		return left, s.rdb.HSet(ctx, s.orders, id, "sold").Err()
	})
}

// Refund works in the same way: it reads the order, adds the pieces, and writes the refund. A second refund is
// ErrRepeated, the refund of an unknown order is an error, and an id stays used up after its refund.
func (s *checkThenAct) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) {
		id := strconv.FormatInt(o.ID, 10)
		state, err := s.rdb.HGet(ctx, s.orders, id).Result()
		switch {
		case errors.Is(err, redis.Nil):
			return Unsaid, errNeverBought
		case err != nil:
			return Unsaid, err
		case state == "refunded":
			return Unsaid, ErrRepeated
		}
		left, err := s.rdb.IncrBy(ctx, s.stock, pieces).Result()
		if err != nil {
			return Unsaid, err
		}
		return left, s.rdb.HSet(ctx, s.orders, id, "refunded").Err()
	})
}
