package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// sqlVersion is optimistic locking as in [variant.TextDispatch]: read the stock and its version, and write only if the version is
// unchanged; the same statement increments it. Otherwise begin again. Each failure means that another buyer succeeded,
// so some buyer always makes progress. It tries until the order is decided or ctx is done, unless RefuseStale was
// called, as in the document.
type sqlVersion struct {
	sqlRecord
	optimist
}

func newSQLVersion(env variant.Env, product string) Sale {
	s := &sqlVersion{sqlRecord: newSQLRecord(env, product)}
	return optimisticTwoWay{twoWay{s}, s}
}

func (s *sqlVersion) change(ctx context.Context, by int64, _ lockimpl.Lock) (int64, error) {
	for {
		left, version, err := s.read(ctx)
		if err != nil {
			return Unsaid, err
		}
		if left, err = changed(left, by); err != nil {
			return Unsaid, err
		}
		current, err := s.update(ctx, "SET pieces = ?, version = version + 1 WHERE id = 1 AND version = ?", left, version)
		if err != nil || current {
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
