package load

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestEveryCommandCounts: one, and each of a pipeline.
func TestEveryCommandCounts(t *testing.T) {
	var n atomic.Int64
	a := attending{&n}
	one := a.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	many := a.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	if err := one(t.Context(), nil); err != nil || n.Load() != 1 {
		t.Errorf("%d commands after one (%v)", n.Load(), err)
	}
	if err := many(t.Context(), make([]redis.Cmder, 3)); err != nil || n.Load() != 4 {
		t.Errorf("%d commands after one and a pipeline of three (%v)", n.Load(), err)
	}
}
