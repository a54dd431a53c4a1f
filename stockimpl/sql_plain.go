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
	return twoWay{&sqlPlain{newSQLRecord(env, product)}}
}

func (s *sqlPlain) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
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
