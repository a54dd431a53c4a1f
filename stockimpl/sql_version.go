package stockimpl

import (
	"context"

	"oversell/lockimpl"
	"oversell/variant"
)

// sqlVersion is optimistic locking as document 4 has it: read the stock and its
// version, and write only if the version is still the one that was read, which
// the same statement raises. Otherwise begin again. Each failure means that
// somebody else succeeded, so buyers together always get on. It tries until the
// order is decided or ctx is done, unless it is to refuse what is stale, which is what
// the document has it do.
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
