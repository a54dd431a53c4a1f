package stockimpl

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed fenced_write.lua
var fencedWriteText string

var fencedWriteScript = redis.NewScript(fencedWriteText)

// fencedWrite checks the fencing token only on the write. That keeps an old holder from writing after a new one, but
// not from writing after a new one has read:
//
//	token 1 reads 10, pauses, its lease runs out; token 2 reads 10;
//	token 1 writes 9 (no newer write was seen: accepted); token 2 writes 9.
//
// Two pieces sold, one subtracted. fenced corrects this.
type fencedWrite struct {
	record
	fence string
}

func newFencedWrite(env variant.Env, product string) Sale {
	s := &fencedWrite{record: newRecord(env, product)}
	s.fence = s.key("Fence:Stock")
	return twoWay{s}
}

func (s *fencedWrite) change(ctx context.Context, by int64, l lockimpl.Lock) (int64, error) {
	if l.Fence <= 0 {
		return Unsaid, errNoToken
	}
	left, err := read(ctx, s.rdb, s.stock)
	if err != nil {
		return Unsaid, err
	}
	if left, err = changed(left, by); err != nil {
		return Unsaid, err
	}
	return answer(fencedWriteScript.Run(ctx, s.rdb, []string{s.stock, s.fence}, l.Fence, left))
}
