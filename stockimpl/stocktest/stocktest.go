// Package stocktest tries a sale against what it promises: ours pass through
// it, and so can yours.
//
//	func TestMySale(t *testing.T) {
//		mine := stockimpl.Variant{Name: "mine", New: newMine, Promises: ...}
//		stocktest.Run(t, mine, func(t *testing.T) stocktest.Bench {
//			return stocktest.Bench{
//				Product: "{" + rand.Text() + "}phone",
//				Env:     func() variant.Env { return variant.Env{Redis: ...} },
//			}
//		})
//	}
//
// Each rule is one subtest on a bench of its own. Some rules belong to a
// promise and are tried only on sales that make it; the others belong to the
// interface, and every sale must keep them. A failure names the promise, and
// shows what was asked and answered. A sale that needs a lock says so in
// Needs.Fence or by a flaw under [variant.Unserialized]; its buyers then come
// one at a time, each with a newer fencing token.
//
// This is a test of function under moderate concurrency, not a proof: that no
// interleaving and no fault breaks a sale is for a search and for a run under
// load to find out.
package stocktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Bench is where one rule is tried.
type Bench struct {
	// Env makes the world of one more client, with connections of its own. All
	// lead to the same server, which nobody else writes to while a rule is tried.
	Env func() variant.Env
	// Product names a product that nobody has opened yet. Rules may append to it.
	Product string
}

// Run tries every rule that applies to the sale. It calls open once for each,
// in that rule's subtest.
func Run(t *testing.T, sale stockimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	for _, r := range rules {
		if !r.appliesTo(sale) {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := r.check(ctx, bench{open(t), sale}); err != nil {
				t.Errorf("sale %s: %v", sale.Name, err)
			}
		})
	}
}

// patience ends a rule whose sale never answers.
const patience = time.Minute

// rule is one thing that a sale must do. A rule with a promise is tried only
// on sales that make it.
type rule struct {
	name    string
	promise variant.Property
	check   func(context.Context, bench) error
}

func (r rule) appliesTo(sale stockimpl.Variant) bool {
	return r.promise == "" || slices.Contains(sale.Promises, r.promise)
}

// bench is a Bench with the sale under test on it.
type bench struct {
	Bench
	sale stockimpl.Variant
}

var rules = []rule{
	{"sells exactly the stock", "", sellsExactly},
	{"an empty stock is sold out", "", emptyIsSoldOut},
	{"refuses more than is left", "", refusesMore},
	{"a refund returns to the stock", "", refundReturns},
	{"the books add up", "", booksAddUp},
	{"a resent order has one effect", variant.OncePerOrder, resentOrder},
	{"a refunded order stays used up", variant.OncePerOrder, refundedOrder},
	{"only what was bought is refunded", variant.OncePerOrder, unknownRefund},
	{"copies of one order at once have one effect", variant.OncePerOrder, copiesAtOnce},
	{"an older fencing token is refused", variant.Fencing, olderToken},
	{"concurrent buyers get the stock and no more", "", concurrentBuyers},
	{"two products do not mix", "", twoProducts},
	{"every key carries the product's name", "", keysCarryName},
	{"a quantity below one is an error", "", noQuantity},
	{"a product that was never opened sells nothing", "", neverOpened},
	{"a cancelled context is no refusal", "", cancelled},
}

// broken reports that a promise, or a rule of the interface, was not kept.
func broken(promise variant.Property, format string, args ...any) error {
	return fmt.Errorf("%s is broken: %w", promise, fmt.Errorf(format, args...))
}

// theInterface stands for what stockimpl.Sale itself demands.
const theInterface variant.Property = "the contract of stockimpl.Sale"

// buyer is one client of one product, who shows a newer lock at each call.
type buyer struct {
	b     bench
	sale  stockimpl.Sale
	fence int64
}

// opened puts product on sale and returns its first client.
func opened(ctx context.Context, b bench, product string, stock int64) (*buyer, error) {
	s := b.sale.New(b.Env(), product)
	if err := s.Open(ctx, stock); err != nil {
		return nil, fmt.Errorf("open %q with %d pieces: %w", product, stock, err)
	}
	return &buyer{b: b, sale: s}, nil
}

func (y *buyer) lock() lockimpl.Lock {
	y.fence++
	return withFence(y.fence)
}

func withFence(n int64) lockimpl.Lock {
	return lockimpl.Lock{Key: "order", Token: fmt.Sprint("token-", n), Fence: n}
}

func order(id int64, pieces int) stockimpl.Order { return stockimpl.Order{ID: id, Quantity: pieces} }

// buy expects an answer, nil for success, and what is left when it is told.
func (y *buyer) buy(ctx context.Context, of variant.Property, id int64, pieces int, want error, left int64) error {
	got, err := y.sale.Buy(ctx, order(id, pieces), y.lock())
	return expect(of, fmt.Sprintf("buy of %d by order %d", pieces, id), got, err, left, want)
}

func (y *buyer) refund(ctx context.Context, of variant.Property, id int64, pieces int, want error, left int64) error {
	got, err := y.sale.Refund(ctx, order(id, pieces), y.lock())
	return expect(of, fmt.Sprintf("refund of %d by order %d", pieces, id), got, err, left, want)
}

func expect(of variant.Property, what string, got int64, err error, left int64, want error) error {
	switch {
	case !errors.Is(err, want):
		return broken(of, "%s answered %s; want %s", what, say(err), say(want))
	case err == nil && got != left && got != stockimpl.Unsaid:
		return broken(variant.Linearizable, "%s said that %d are left; want %d", what, got, left)
	}
	return nil
}

func say(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q", err)
}

// state expects the server to hold this many pieces, and sold to fit if told.
func (y *buyer) state(ctx context.Context, of variant.Property, left, sold int64) error {
	s, err := y.sale.State(ctx)
	switch {
	case err != nil:
		return broken(of, "state: %w", err)
	case s.Left != left, s.Reserved != 0, s.Sold != sold && s.Sold != stockimpl.Unsaid:
		return broken(of, "the server holds %+v; want %d left, %d sold, none reserved", s, left, sold)
	}
	return nil
}

// firstOf runs steps until one fails.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// undeclared expects an error that is none of the declared answers, since
// those would claim to know the outcome.
func undeclared(what string, err error) error {
	switch {
	case err == nil:
		return broken(theInterface, "%s answered success; want an error", what)
	case errors.Is(err, stockimpl.ErrSoldOut), errors.Is(err, stockimpl.ErrStale), errors.Is(err, stockimpl.ErrRepeated):
		return broken(theInterface, "%s answered %s, a declared answer; want another error", what, say(err))
	}
	return nil
}
