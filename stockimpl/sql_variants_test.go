package stockimpl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"oversell/database"
	"oversell/lockimpl"
	"oversell/stockimpl"
)

func TestSQLSalesAreRecognisable(t *testing.T) {
	for _, v := range stockimpl.Variants {
		if strings.HasPrefix(v.Name, "sql-") != v.Needs.SQL {
			t.Errorf("%s: the name and Needs.SQL = %v do not agree", v.Name, v.Needs.SQL)
		}
	}
	if n := len(sqlSales()); n != 4 {
		t.Errorf("%d sales need SQL; want 4", n)
	}
}

var oneOrder = stockimpl.Order{ID: 42, Quantity: 1}

func TestSQLErrorsSayWhatWasAttempted(t *testing.T) {
	onSQL(t, func(t *testing.T, db *database.DB) {
		for _, v := range sqlSales() {
			product := newProduct()
			s := v.New(sqlWorld(db), product)
			if err := s.Open(t.Context(), -1); err == nil {
				t.Errorf("%s: a stock of -1 was opened", v.Name)
			}
			dead, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := s.Buy(dead, oneOrder, lockimpl.Lock{})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: buy under a cancelled context = %v; it does not wrap the cause", v.Name, err)
			}
			for _, part := range []string{"buy", "42", product} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: error %q does not mention %q", v.Name, err, part)
				}
			}
		}
	})
}

func TestSQLMissingRecordIsNotOnSale(t *testing.T) {
	onSQL(t, func(t *testing.T, db *database.DB) {
		for _, v := range sqlSales() {
			s := v.New(sqlWorld(db), newProduct())
			_, buy := s.Buy(t.Context(), oneOrder, lockimpl.Lock{})
			_, refund := s.Refund(t.Context(), oneOrder, lockimpl.Lock{})
			_, state := s.State(t.Context())
			for what, err := range map[string]error{"buy": buy, "refund": refund, "state": state} {
				if err == nil || !strings.Contains(err.Error(), "not on sale") {
					t.Errorf("%s: %s = %v; want that the product is not on sale", v.Name, what, err)
				}
			}
		}
	})
}

func TestSQLSalesWithoutADatabase(t *testing.T) {
	for _, v := range sqlSales() {
		s := v.New(world(t, startMini(t).Addr()), newProduct())
		wantUndeclared(t, v, s, "there is no SQL database")
	}
}

func TestSQLProductThatCannotBeATable(t *testing.T) {
	onSQL(t, func(t *testing.T, db *database.DB) {
		for _, v := range sqlSales() {
			wantUndeclared(t, v, v.New(sqlWorld(db), strings.Repeat("long", 20)), "bytes long")
			wantUndeclared(t, v, v.New(sqlWorld(db), `phone" (x); --`), "contains a quote")
		}
	})
}

// wantUndeclared checks that every use of the sale fails, and that the error contains says.
func wantUndeclared(t *testing.T, v stockimpl.Variant, s stockimpl.Sale, says string) {
	t.Helper()
	open := s.Open(t.Context(), 1)
	_, buy := s.Buy(t.Context(), oneOrder, lockimpl.Lock{})
	_, refund := s.Refund(t.Context(), oneOrder, lockimpl.Lock{})
	_, state := s.State(t.Context())
	for what, err := range map[string]error{"open": open, "buy": buy, "refund": refund, "state": state} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %s = %v; want an error with %q", v.Name, what, err, says)
		}
	}
}
