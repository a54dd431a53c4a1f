package stockimpl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"oversell/lockimpl"
	"oversell/stockimpl"
)

func TestErrorsSayWhatWasAttempted(t *testing.T) {
	addr := startMini(t).Addr()
	for _, v := range stockimpl.Variants {
		if v.Needs.SQL { // see sql_variants_test.go
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			product := newProduct()
			s := v.New(world(t, addr), product)
			if err := s.Open(t.Context(), -1); err == nil {
				t.Error("a stock of -1 was opened")
			}
			dead, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Buy(dead, stockimpl.Order{ID: 42, Quantity: 1}, lockimpl.Lock{Fence: 1})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("buy under a cancelled context = %v; it does not wrap the cause", err)
			}
			for _, part := range []string{"buy", "42", product} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not mention %q", err, part)
				}
			}
		})
	}
}

func TestMissingRecordIsNotOnSale(t *testing.T) {
	addr := startMini(t).Addr()
	for _, v := range stockimpl.Variants {
		if v.Needs.SQL { // see sql_variants_test.go
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			s := v.New(world(t, addr), newProduct())
			_, err := s.Buy(t.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{Fence: 1})
			if v.Name == "decr" || v.Name == "check-then-act" {
				if !errors.Is(err, stockimpl.ErrSoldOut) { // DECRBY cannot tell a missing key from an empty stock
					t.Errorf("buy = %v; want sold out", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "not on sale") {
				t.Errorf("buy = %v; want that the product is not on sale", err)
			}
			if _, err := s.State(t.Context()); err == nil || !strings.Contains(err.Error(), "not on sale") {
				t.Errorf("state = %v; want that the product is not on sale", err)
			}
		})
	}
}

func TestFencedSalesNeedAToken(t *testing.T) {
	addr := startMini(t).Addr()
	for _, v := range stockimpl.Variants {
		if !v.Needs.Fence {
			continue
		}
		s := v.New(world(t, addr), newProduct())
		if err := s.Open(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		_, err := s.Buy(t.Context(), stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
		if err == nil || errors.Is(err, stockimpl.ErrStale) {
			t.Errorf("%s: buy without a token = %v; want an error that says so", v.Name, err)
		}
	}
}

func TestStateIsPrinted(t *testing.T) {
	for want, s := range map[string]stockimpl.State{
		"3 left, 7 sold":             {Left: 3, Sold: 7},
		"3 left, 1 reserved, 6 sold": {Left: 3, Reserved: 1, Sold: 6},
		"0 left":                     {Sold: stockimpl.Unsaid},
	} {
		if got := fmt.Sprintf("%v", s); got != want {
			t.Errorf("a state is printed as %q; want %q", got, want)
		}
	}
}
