package stockrules

import (
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// TestTouched checks that the keys of commands, pipelines and scripts are noted, also those that are gone afterwards, and no other
// arguments.
func TestTouched(t *testing.T) {
	server := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { rdb.Close() })
	env, touched := Touched(variant.Env{Redis: []redis.UniversalClient{rdb}}, "phone")
	c, ctx := env.Redis[0], t.Context()
	c.SetNX(ctx, "lock:phone", "phone-holder", 0)
	c.Eval(ctx, "return 1", []string{"phone", "Stock:phone", "Orders:phone"}, "phone-argument")
	_, _ = c.TxPipelined(ctx, func(p redis.Pipeliner) error { p.HSet(ctx, "phone/orders", "phone-field", 1); return nil })
	c.MGet(ctx, "Sold:phone", "other", "Newest:phone")
	c.Del(ctx, "lock:phone")
	c.Ping(ctx)
	want := []string{"Newest:phone", "Orders:phone", "Sold:phone", "Stock:phone", "lock:phone", "phone/orders"}
	if got := slices.Sorted(slices.Values(touched())); !slices.Equal(got, want) {
		t.Errorf("the keys are %q; want %q", got, want)
	}
	rdb.Get(ctx, "later:phone") // by another client of the same pool
	if got := len(touched()); got != len(want) {
		t.Errorf("%d keys after a command of another client; want %d", got, len(want))
	}
}
