package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// plain reads the stock, subtracts in the client, and writes the difference.
// It is correct only if no other client does the same in between; the documents' locks exist for that.
type plain struct{ record }

func newPlain(env variant.Env, product string) Sale {
	return twoWay{&plain{newRecord(env, product)}}
}

func (s *plain) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	left, err := read(ctx, s.rdb, s.stock)
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	return left, s.rdb.Set(ctx, s.stock, left, 0).Err()
}
