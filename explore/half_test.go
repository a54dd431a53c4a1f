package explore

import (
	"context"
	"errors"
	"testing"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/stockimpl"
	"oversell/variant"
)

// pieceByPiece is a sale that counts the pieces of an order down one at a time.
type pieceByPiece struct {
	env   variant.Env
	whole bool // at once
}

func (p pieceByPiece) Open(ctx context.Context, n int64) error {
	return p.env.Redis[0].Set(ctx, "left", n, 0).Err()
}

func (p pieceByPiece) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
	if p.whole {
		return p.env.Redis[0].DecrBy(ctx, "left", int64(o.Quantity)).Result()
	}
	for range o.Quantity {
		if left, err = p.env.Redis[0].Decr(ctx, "left").Result(); err != nil {
			break
		}
	}
	return left, err
}

func (p pieceByPiece) Refund(context.Context, stockimpl.Order, lockimpl.Lock) (int64, error) {
	return 0, errors.ErrUnsupported
}

func (p pieceByPiece) State(ctx context.Context) (stockimpl.State, error) {
	left, err := p.env.Redis[0].Get(ctx, "left").Int64()
	return stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, err
}

// TestHalfAnOrder checks that pieces have vanished if a buyer dies who has taken a part of its order: an order is sold as a whole.
func TestHalfAnOrder(t *testing.T) {
	seckill, _ := scenarios.Find("seckill")
	none, _ := lockimpl.Find("none")
	for _, whole := range []bool{false, true} {
		s := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Sale, Property: variant.NoUndersell}}}
		s.Run = scenarios.Config{Scenario: seckill, Lock: none, Stock: 4, Quantity: 2, Sale: stockimpl.Variant{
			Name: "piece by piece", Promises: []variant.Property{variant.NoUndersell}, New: func(env variant.Env, _ string) stockimpl.Sale { return pieceByPiece{env, whole} },
		}}
		want := reports.Violated
		if whole {
			want = reports.Pass
		}
		if r, err := Run(t.Context(), s); err != nil || r.Verdict != want {
			t.Errorf("pieces taken at once: %t: the search ended in %s (%s), %v; want %s", whole, r.Verdict, r.Why, err, want)
		}
	}
}
