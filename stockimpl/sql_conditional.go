package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// sqlConditional leaves the arithmetic and the condition to the database: one UPDATE subtracts if there is enough, and
// the number of rows it found is the answer. It does not say how many pieces are left.
type sqlConditional struct{ sqlRecord }

func newSQLConditional(env variant.Env, product string) Sale {
	return &sqlConditional{newSQLRecord(env, product)}
}

func (s *sqlConditional) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) {
		enough, err := s.update(ctx, "SET pieces = pieces - ?, version = version + 1 WHERE id = 1 AND pieces >= ?", pieces, pieces)
		if err == nil && !enough {
			err = ErrSoldOut
		}
		return Unsaid, err
	})
}

// Refund adds the pieces. It knows no orders, so it adds any quantity.
func (s *sqlConditional) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) {
		found, err := s.update(ctx, "SET pieces = pieces + ?, version = version + 1 WHERE id = 1", pieces)
		if err == nil && !found {
			err = errNotOnSale
		}
		return Unsaid, err
	})
}
