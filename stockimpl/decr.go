package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// decr subtracts first and checks afterwards: a negative result means that there was not enough, and decr gives the
// pieces back. It never oversells. But between the two commands the record is too low, and buyers that come then are
// refused wrongly; and a buyer that dies between them never gives back.
//
// A missing record reads as 0 to DECRBY, so a product that was never put on
// sale is sold out.
type decr struct{ record }

func newDecr(env variant.Env, product string) Sale { return &decr{newRecord(env, product)} }

func (s *decr) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) { return s.take(ctx, pieces) })
}

// Refund is one INCRBY. It knows no orders, so it adds any quantity.
func (s *decr) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) {
		return s.rdb.IncrBy(ctx, s.stock, pieces).Result()
	})
}
