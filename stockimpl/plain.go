package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// plain reads the stock, subtracts in the client, and writes the difference.
// It is correct only if no other client does the same in between; the documents' locks exist for that.
type plain struct{ record }

func newPlain(env variant.Env, product string) Sale { return &plain{newRecord(env, product)} }

func (s *plain) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) { return s.change(ctx, -pieces) })
}

// Refund is the same read and write with the other sign. It knows no orders, so it adds any quantity.
func (s *plain) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) { return s.change(ctx, pieces) })
}

func (s *plain) change(ctx context.Context, by int64) (int64, error) {
	left, err := read(ctx, s.rdb, s.stock)
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	return left, s.rdb.Set(ctx, s.stock, left, 0).Err()
}
