package stocktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// TestForgottenWhenSoldOut checks that the suite looks for orders later when nothing is left, and when an order has come back
// since.
func TestForgottenWhenSoldOut(t *testing.T) {
	// forgetful makes the orders expire a day after the purchase of the last piece, unless an order is refunded.
	forgetful := func(kept bool) stockimpl.Variant {
		good := saleNamed(t, "sound-lua")
		v := good
		v.New = func(env variant.Env, product string) stockimpl.Sale {
			orders := "Orders:" + product
			return saboteur{Sale: good.New(env, product),
				buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.Buy(ctx, o, l)
					if err == nil && left == 0 {
						err = env.Redis[0].Expire(ctx, orders, day).Err()
					}
					return left, err
				},
				refund: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
					left, err := s.Refund(ctx, o, l)
					if err == nil && kept {
						err = env.Redis[0].Persist(ctx, orders).Err()
					}
					return left, err
				},
			}
		}
		return v
	}
	for name, v := range map[string]stockimpl.Variant{"kept by a refund": forgetful(true), "not kept": forgetful(false)} {
		for _, rule := range []string{"a year later", "minutes, hours and days of the server's clock later"} {
			if err := find(t, rule).check(t.Context(), newBenchOf(newBench(t), v)); err == nil || !strings.Contains(err.Error(), "after a purchase that left nothing: once-per-order is broken") {
				t.Errorf("%s: the rule %q says %v; want that an order was forgotten", name, rule, err)
			}
		}
	}
	// With a refund after it, too.
	b := newBenchOf(newBench(t), forgetful(false))
	for back, want := range map[bool]string{false: "that left nothing: once-per-order is broken", true: "that left nothing, and a refund of another order: once-per-order is broken"} {
		s, err := b.clearOut(t.Context(), back)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.age(t.Context(), 2*day); err != nil {
			t.Fatal(err)
		}
		if err := s.afterwards(t.Context(), s.y, "two days after a purchase"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with a refund after the last purchase: %t; the suite says %v; want %q", back, err, want)
		}
	}
	for _, rule := range []string{"a year later", "minutes, hours and days of the server's clock later"} {
		if err := find(t, rule).check(t.Context(), newBenchOf(newBench(t), saleNamed(t, "sound-lua"))); err != nil {
			t.Errorf("a sound sale: the rule %q accuses it: %v", rule, err)
		}
	}
}

const day = 24 * time.Hour
