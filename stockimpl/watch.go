package stockimpl

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// watch is optimistic locking with Redis' own commands: WATCH the record, GET it, and SET it in a transaction that
// fails if another client wrote it in between; then begin again. Each failure means that another buyer succeeded, so
// some buyer always makes progress. It tries until the order is decided or ctx is done, unless RefuseStale was called.
type watch struct {
	record
	optimist
}

func newWatch(env variant.Env, product string) Sale {
	s := &watch{record: newRecord(env, product)}
	return optimisticTwoWay{twoWay{s}, s}
}

func (s *watch) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	for {
		left, err := s.try(ctx, by)
		if !errors.Is(err, redis.TxFailedErr) {
			return left, err
		}
		if s.refuses {
			return Unsaid, ErrStale
		}
		if ctx.Err() != nil {
			return Unsaid, context.Cause(ctx)
		}
	}
}

func (s *watch) try(ctx context.Context, by int64) (left int64, err error) {
	err = s.rdb.Watch(ctx, func(tx *redis.Tx) error {
		if left, err = read(ctx, tx, s.stock); err != nil {
			return err
		}
		if left, err = changed(left, by); err != nil {
			return err
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			return p.Set(ctx, s.stock, left, 0).Err()
		})
		return err
	}, s.stock)
	return left, err
}
