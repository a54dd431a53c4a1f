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

// fenced shows the fencing token on the read as well. Whoever has read has
// thereby shut out every older holder, so that between the read and the write
// of one holder nobody else's write can fall: an older one is refused, and a
// newer one makes this holder's own write stale.
//
// Two purchases under one token are told apart by nothing: a holder makes them
// one after the other, and takes a new lock after one whose outcome it does
// not know.
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
