package stocktest

import (
	"context"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// A suite that nothing fails proves nothing: each saboteur is a good sale with
// one thing wrong, and must be told which promise it broke.

type saboteur struct {
	stockimpl.Sale
	buy    func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error)
	refund func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error)
	state  func(stockimpl.State) stockimpl.State
}

func (s saboteur) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if s.buy == nil {
		return s.Sale.Buy(ctx, o, l)
	}
	return s.buy(ctx, s.Sale, o, l)
}

func (s saboteur) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if s.refund == nil {
		return s.Sale.Refund(ctx, o, l)
	}
	return s.refund(ctx, s.Sale, o, l)
}

func (s saboteur) State(ctx context.Context) (stockimpl.State, error) {
	got, err := s.Sale.State(ctx)
	if s.state == nil || err != nil {
		return got, err
	}
	return s.state(got), nil
}

func TestSaboteursAreCaught(t *testing.T) {
	tests := []struct {
		wrong  string
		base   string
		with   saboteur
		rename func(string) string // the product, as the sale sees it
		rule   string
		says   string
	}{
		{
			wrong: "success for everybody", base: "lua", rule: "sells exactly the stock", says: "no-oversell is broken",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				s.Buy(ctx, o, l)
				return stockimpl.Unsaid, nil
			}},
		},
		{
			wrong: "refuses everybody", base: "lua", rule: "sells exactly the stock", says: "no-undersell is broken",
			with: saboteur{buy: func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
				return stockimpl.Unsaid, stockimpl.ErrSoldOut
			}},
		},
		{
			wrong: "one piece, whatever is ordered", base: "lua", rule: "refuses more than is left", says: "no-oversell is broken",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				o.Quantity = 1
				return s.Buy(ctx, o, l)
			}},
		},
		{
			wrong: "refunds vanish", base: "lua", rule: "a refund returns to the stock", says: "no-undersell is broken",
			with: saboteur{refund: func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
				return stockimpl.Unsaid, nil
			}},
		},
		{
			wrong: "one sold piece is not counted", base: "lua", rule: "the books add up", says: "no-undersell is broken",
			with: saboteur{state: func(s stockimpl.State) stockimpl.State { s.Sold--; return s }},
		},
		{wrong: "no order ids", base: "watch", rule: "a resent order has one effect", says: "once-per-order is broken"},
		{wrong: "no order ids", base: "watch", rule: "a refunded order stays used up", says: "once-per-order is broken"},
		{wrong: "no order ids", base: "watch", rule: "only what was bought is refunded", says: "once-per-order is broken"},
		{wrong: "no order ids", base: "watch", rule: "copies of one order at once have one effect", says: "once-per-order is broken"},
		{wrong: "no fencing", base: "lua", rule: "an older fencing token is refused", says: "fencing is broken"},
		{
			wrong: "always the same number left", base: "lua", rule: "concurrent buyers get the stock and no more", says: "linearizable is broken",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				_, err := s.Buy(ctx, o, l)
				return 3, err
			}},
		},
		{
			wrong: "one record for all products", base: "lua", rule: "two products do not mix", says: "is broken",
			rename: func(p string) string { return strings.TrimSuffix(p, "2") },
		},
		{
			wrong: "one record for all", base: "lua", rule: "products with unlike names do not mix", says: "is broken",
			rename: func(string) string { return "the-stock" },
		},
		{
			wrong: "no quantity is one", base: "lua", rule: "a quantity below one is an error", says: "contract",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				o.Quantity = max(o.Quantity, 1)
				return s.Buy(ctx, o, l)
			}},
		},
		{
			wrong: "sells what is not there", base: "lua", rule: "a product that was never opened sells nothing", says: "no-oversell is broken",
			with: saboteur{buy: func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error) { return 0, nil }},
		},
		{
			wrong: "an error is a refusal", base: "lua", rule: "a context that is over is no refusal", says: "contract",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				left, err := s.Buy(ctx, o, l)
				if err != nil {
					err = stockimpl.ErrSoldOut
				}
				return left, err
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.rule+"/"+tt.wrong, func(t *testing.T) {
			good, ok := stockimpl.Find(tt.base)
			if !ok {
				t.Fatalf("no sale %q", tt.base)
			}
			bad := good
			bad.New = func(env variant.Env, product string) stockimpl.Sale {
				if tt.rename != nil {
					product = tt.rename(product)
				}
				s := tt.with
				s.Sale = good.New(env, product)
				return s
			}
			err := find(t, tt.rule).check(t.Context(), bench{newBench(t), bad})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the rule says %v; want that it says %q", err, tt.says)
			}
		})
	}
}

// TestUnheardAnswers: an order whose answer was lost, and that was sent again by its driver, may be
// told that it was counted before; one whose answers all arrived may not.
func TestUnheardAnswers(t *testing.T) {
	for _, unheard := range []bool{false, true} {
		c := call{order: order(1, 2), begun: 1, ended: 2, left: stockimpl.Unsaid, err: stockimpl.ErrRepeated, unheard: unheard}
		m := &model{stock: 3, ids: true}
		err := m.verdict([]call{c}, stockimpl.State{Left: 1, Sold: 2})
		if (err == nil) != unheard {
			t.Errorf("with an answer that was lost: %t; the verdict is %v", unheard, err)
		}
		if err := m.verdict([]call{c}, stockimpl.State{Left: 3}); err == nil {
			t.Errorf("with an answer that was lost: %t; an order that had no effect was told that it was counted, and nobody is accused", unheard)
		}
	}
}

func find(t *testing.T, name string) rule {
	t.Helper()
	for _, r := range rules {
		if r.name == name {
			return r
		}
	}
	t.Fatalf("no rule %q", name)
	return rule{}
}

func newBench(t *testing.T) Bench {
	addr := miniredis.RunT(t).Addr()
	return Bench{
		Product: "{ov}phone",
		Env: func() variant.Env {
			c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 1, MaxRetries: -1})
			t.Cleanup(func() { c.Close() })
			return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clock.Real{}}
		},
	}
}
