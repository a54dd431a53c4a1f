package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// sqlPlain is plain on SQL: SELECT the stock, subtract in the client, UPDATE it to the difference. The database's
// transactions do not help: each statement is one of its own.
type sqlPlain struct{ sqlRecord }

func newSQLPlain(env variant.Env, product string) Sale {
	return &sqlPlain{newSQLRecord(env, product)}
}

func (s *sqlPlain) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) { return s.change(ctx, -pieces) })
}

// Refund is the same SELECT and UPDATE with the other sign. It knows no orders, so it adds any quantity.
func (s *sqlPlain) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) { return s.change(ctx, pieces) })
}

func (s *sqlPlain) change(ctx context.Context, by int64) (int64, error) {
	left, _, err := s.read(ctx)
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	found, err := s.update(ctx, "SET pieces = ? WHERE id = 1", left)
	if err == nil && !found {
		err = errNotOnSale
	}
	return left, err
}
