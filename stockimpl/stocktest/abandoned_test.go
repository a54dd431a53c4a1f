package stocktest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// TestManyAbandoned checks that a sale which ends a part of the late reservations at each call may answer ErrStale until the
// pieces of all are back, and not ErrSoldOut.
func TestManyAbandoned(t *testing.T) {
	good := saleNamed(t, "reserve")
	hasty := good
	hasty.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Buy(ctx, o, l)
			if errors.Is(err, stockimpl.ErrStale) && o.Quantity > 100 {
				err = stockimpl.ErrSoldOut
			}
			return left, err
		}}
	}
	small := good
	small.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			if o.Quantity > 100 {
				return stockimpl.Unsaid, errors.ErrUnsupported
			}
			return s.Buy(ctx, o, l)
		}}
	}
	r := find(t, "reservations end")
	for what, sound := range map[string]stockimpl.Variant{"any order": good, "small orders": small} {
		if err := r.check(t.Context(), newBenchOf(newBench(t), sound)); err != nil {
			t.Errorf("the rule accuses a sale that takes %s: %v", what, err)
		}
	}
	const says = "550 buyers died, for each of whom 1 piece of 550 was set aside, the time of reservations passed, and then an order for all 550 answered \"sold out\""
	if err := r.check(t.Context(), newBenchOf(newBench(t), hasty)); err == nil || !strings.Contains(err.Error(), "no-undersell is broken: "+says) {
		t.Errorf("the rule says %v; want %q", err, says)
	}
}
