package stockrules

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

var errNumber = errors.New("no such number")

// numbered returns the calls of a sale in memory that knows an order by a part of its number.
func numbered(stock int64, part func(id int64) int64, takes func(int64) bool) Shop {
	state := map[int64]string{}
	at := stockimpl.State{Left: stock}
	buy := func(id int64, pieces int) error {
		switch {
		case !takes(id):
			return errNumber
		case state[part(id)] != "":
			return stockimpl.ErrRepeated
		case at.Left < int64(pieces):
			return stockimpl.ErrSoldOut
		}
		state[part(id)] = "sold"
		at.Left, at.Sold = at.Left-int64(pieces), at.Sold+int64(pieces)
		return nil
	}
	return Shop{
		Buy: buy, Once: buy,
		Refund: func(id int64) error {
			if state[part(id)] != "sold" {
				return stockimpl.ErrRepeated
			}
			state[part(id)] = "refunded"
			at.Left, at.Sold = at.Left+1, at.Sold-1
			return nil
		},
		State: func() (stockimpl.State, error) { return at, nil },
	}
}

// TestNumbers checks that the two numbers that a sale confuses are named, and that it need not take every number.
func TestNumbers(t *testing.T) {
	all := func(int64) bool { return true }
	for _, tt := range []struct {
		name  string
		part  func(int64) int64
		takes func(int64) bool
		want  string
		skips bool // the numbers that the sale does not take
	}{
		{"the whole number", func(id int64) int64 { return id }, all, "", false},
		{"the last three digits", func(id int64) int64 { return id % 1000 }, all, "order 92005 was answered \"order was already counted\" after order 41005 had bought", false},
		{"without the last of five digits", func(id int64) int64 {
			if id < 10_000 {
				return id
			}
			return id / 10
		}, all, "order 92006 was answered \"order was already counted\" after order 92005 had bought", false},
		{"no number below 1", func(id int64) int64 { return id }, func(id int64) bool { return id > 0 }, "", false},
		{"no large number", func(id int64) int64 { return id }, func(id int64) bool { return id < 50_000 }, "takes no order with the number 92005", true},
	} {
		n := Numbers{
			IDs: []int64{7, -7, 0, 41005, 17, 92005, 92006, 3}, Once: true, Refunds: true, Takes: tt.takes,
			Open: func(stock int64) (Shop, error) { return numbered(stock, tt.part, tt.takes), nil },
		}
		err := n.Apart()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || errors.As(err, new(*suitetest.NotJudged)) != tt.skips {
			t.Errorf("%s: %v; want %q", tt.name, err, tt.want)
		}
	}
}

// TestNumbersRefused checks that a number that the sale takes elsewhere must not be answered with an error of its own.
func TestNumbersRefused(t *testing.T) {
	s := Numbers{IDs: []int64{1, 2, 3}, Takes: func(int64) bool { return true }, Open: func(stock int64) (Shop, error) {
		return numbered(stock, func(id int64) int64 { return id }, func(id int64) bool { return id != 3 }), nil
	}}
	if err := s.Apart(); err == nil || !strings.Contains(err.Error(), "order 3 was answered") {
		t.Errorf("the error is %v; want one about order 3", err)
	}
}

// TestConfusedAlone checks that no other order is named if the order is refused on a new product.
func TestConfusedAlone(t *testing.T) {
	n := Numbers{Open: func(stock int64) (Shop, error) {
		return Shop{Buy: func(id int64, _ int) error {
			if id == 3 {
				return stockimpl.ErrRepeated
			}
			return nil
		}}, nil
	}}
	err := n.Confused([]int64{1, 2}, 3, stockimpl.ErrRepeated)
	broken := new(suitetest.Breach)
	if !errors.As(err, &broken) || broken.Promise != variant.NoUndersell || !strings.Contains(err.Error(), "after 2 orders with other numbers") {
		t.Errorf("the error is %v; want a breach that names no other order", err)
	}
}

// TestScattered checks that the numbers are positive and different, and that code which keeps a hash of few bits confuses some.
func TestScattered(t *testing.T) {
	const count = 8000
	seen, hashes := map[int64]bool{}, map[uint64]bool{}
	for n := int64(1); n <= count; n++ {
		id := Scattered(n)
		if id < 1 || seen[id] {
			t.Fatalf("the %d-th number is %d", n, id)
		}
		seen[id] = true
		hashes[uint64(id)*0x9e3779b97f4a7c15>>40] = true // the golden ratio, which spreads small numbers evenly
	}
	if len(hashes) == count {
		t.Error("no two have the same hash of 24 bits")
	}
}

// TestExact checks that State may round a large stock, and that the orders must take their pieces.
func TestExact(t *testing.T) {
	for takes, want := range map[int64]string{0: "no-oversell is broken", 1: "", 2: "no-undersell is broken"} {
		left := int64(BeyondDoubles)
		err := Exact(Shop{
			Buy:    func(int64, int) error { left -= takes; return nil },
			Refund: func(int64) error { left += takes; return nil },
			State: func() (stockimpl.State, error) {
				return stockimpl.State{Left: left / 2 * 2, Sold: stockimpl.Unsaid}, nil
			},
		}, true)
		if fmt.Sprint(err) == "<nil>" != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a sale of which orders take %d pieces: %v; want %q", takes, err, want)
		}
	}
}
