package load

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// TestEveryCommandCounts checks that a single command and each command of a pipeline is counted, but not one that was
// not sent.
func TestEveryCommandCounts(t *testing.T) {
	e := &Engine{}
	a := attending{e}
	one := a.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	many := a.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return nil })
	none := a.ProcessHook(func(context.Context, redis.Cmder) error { return variant.ErrStopped })
	if err := one(t.Context(), nil); err != nil || e.Commands() != 1 {
		t.Errorf("%d commands after one (%v)", e.Commands(), err)
	}
	if err := many(t.Context(), make([]redis.Cmder, 3)); err != nil || e.Commands() != 4 {
		t.Errorf("%d commands after one and a pipeline of three (%v)", e.Commands(), err)
	}
	greeting := []redis.Cmder{redis.NewCmd(t.Context(), "hello", 3), redis.NewCmd(t.Context(), "select", 5), redis.NewCmd(t.Context(), "get", "k")}
	if err := many(t.Context(), greeting); err != nil || e.Commands() != 5 {
		t.Errorf("%d commands after a greeting and one command more (%v)", e.Commands(), err)
	}
	if err := one(t.Context(), greeting[0]); err != nil || e.Commands() != 5 {
		t.Errorf("%d commands after a greeting more (%v)", e.Commands(), err)
	}
	if none(t.Context(), nil); e.Commands() != 5 {
		t.Errorf("%d commands, with one that was not sent", e.Commands())
	}
}
