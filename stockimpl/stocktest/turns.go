package stocktest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// inTurns tries stockrules.Turns with two clients, on one product after the other.
func inTurns(ctx context.Context, b bench) error {
	const products, atMost = 60, 2 * time.Second
	most := 1
	for _, n := range []int{12, 5, 2} {
		if !b.single && !b.refusesOrders(ctx, n) {
			most = n
			break
		}
	}
	envs := []variant.Env{b.Env(), b.Env()}
	for n, start := uint64(0), time.Now(); n < products && time.Since(start) < atMost; n++ {
		own := b
		own.Product = fmt.Sprintf("%s-turns-%d", b.Product, n)
		if err := own.takeTurns(ctx, envs, rand.New(rand.NewPCG(seed()+n, 3)), most); err != nil {
			return err
		}
	}
	return nil
}

func (b bench) takeTurns(ctx context.Context, envs []variant.Env, r *rand.Rand, most int) error {
	stocks := []int64{1, 2, 3, int64(4 + r.IntN(8)), 12}
	t := stockrules.Turns{Rand: r, Stock: stocks[r.IntN(len(stocks))], Most: most, Copies: b.promises(variant.OncePerOrder) && !b.hasFlaw(variant.Resend), Refunds: b.noRefunds == nil}
	f := &fences{}
	for _, env := range envs {
		y := &buyer{b: b, sale: b.newSale(env, b.Product), fences: f}
		t.Clients = append(t.Clients, y.caller(ctx))
		if len(t.Clients) == 1 {
			if err := y.sale.Open(ctx, t.Stock); err != nil {
				return fmt.Errorf("open %q with %d pieces: %w", b.Product, t.Stock, err)
			}
		}
	}
	return t.Make(60)
}

// caller returns the calls of a client, which compare the answers.
func (y *buyer) caller(ctx context.Context) stockrules.Caller {
	return stockrules.Caller{
		Buy: func(of variant.Property, id int64, pieces int, want error, left int64) error {
			return y.buy(ctx, of, id, pieces, want, left)
		},
		Refund: func(of variant.Property, id int64, pieces int, want error, left int64) error {
			return y.refund(ctx, of, id, pieces, want, left)
		},
		MustNotBuy: func(id int64, pieces int) error {
			if left, err := y.sale.Buy(ctx, order(id, pieces), y.lock()); err == nil {
				return broken(variant.OncePerOrder, "order %d was sent again after its refund, and bought again (%d left)", id, left)
			}
			return nil
		},
		MustNotRefund: func(id int64, pieces int) error {
			if left, err := y.sale.Refund(ctx, order(id, pieces), y.lock()); err == nil {
				return broken(variant.OncePerOrder, "order %d, which had no pieces, was refunded (%d left)", id, left)
			}
			return nil
		},
		State:     func(of variant.Property, left, sold int64) error { return y.state(ctx, of, left, sold) },
		Untouched: func(stock int64) error { return y.untouched(ctx, stock) },
	}
}
