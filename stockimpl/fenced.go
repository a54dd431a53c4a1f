package stockimpl

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed fenced_read.lua
var fencedReadText string

var fencedReadScript = redis.NewScript(fencedReadText)

// fenced checks the fencing token on the read as well. A holder's read shuts out every older holder, so no other write
// can come between its read and its write: an older write is refused, and a newer one makes this holder's own write
// stale.
//
// Two purchases under one token cannot be distinguished: a holder makes them one after the other, and takes a new lock
// after a purchase with an unknown outcome.
type fenced struct {
	record
	keys []string
}

func newFenced(env variant.Env, product string) Sale {
	r := newRecord(env, product)
	return &fenced{record: r, keys: []string{r.stock, r.key("Fence:Stock")}}
}

func (s *fenced) Buy(ctx context.Context, o Order, l lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) { return s.change(ctx, -pieces, l.Fence) })
}

// Refund is the same fenced read and write with the other sign. It knows no orders, so it adds any quantity.
func (s *fenced) Refund(ctx context.Context, o Order, l lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) { return s.change(ctx, pieces, l.Fence) })
}

func (s *fenced) change(ctx context.Context, by, token int64) (int64, error) {
	if token <= 0 {
		return Unsaid, errNoToken
	}
	left, err := answer(fencedReadScript.Run(ctx, s.rdb, s.keys, token))
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	return answer(fencedWriteScript.Run(ctx, s.rdb, s.keys, token, left))
}
