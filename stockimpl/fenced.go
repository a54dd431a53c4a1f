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
	return twoWay{&fenced{record: r, keys: []string{r.stock, r.key("Fence:Stock")}}}
}

func (s *fenced) change(ctx context.Context, by int64, l lockimpl.Lock) (int64, error) {
	if l.Fence <= 0 {
		return Unsaid, errNoToken
	}
	left, err := answer(fencedReadScript.Run(ctx, s.rdb, s.keys, l.Fence))
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	return answer(fencedWriteScript.Run(ctx, s.rdb, s.keys, l.Fence, left))
}
