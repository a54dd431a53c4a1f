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
	// lead to the same server. Nobody but the suite writes to it.
	Env func() variant.Env
	// Product names a product that nobody has opened yet. Rules may append to it.
	Product string
}

// Run tries every rule that applies to the sale. It calls open once for each. Most rules
// are tried side by side, since some wait for time to pass.
func Run(t *testing.T, sale stockimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	type check struct {
		rule
		result chan error
	}
	slots := make(chan struct{}, sideBySide)
	var checks []check
	for _, r := range rules {
		if !r.appliesTo(sale) {
			continue
		}
		b := bench{open(t), sale}
		c := check{r, make(chan error, 1)}
		checks = append(checks, c)
		if r.alone || sale.Needs.SQL {
			c.result <- r.try(t.Context(), b)
			continue
		}
		go func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			c.result <- r.try(t.Context(), b)
		}()
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if err := <-c.result; err != nil {
				t.Errorf("sale %s: %v", sale.Name, err)
			}
		})
	}
}

// sideBySide is how many rules are tried at once.
const sideBySide = 8

// try ends in a sentence when the sale does not answer.
func (r rule) try(ctx context.Context, b bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- r.check(ctx, b) }()
	select {
	case err := <-result:
		return err
	case <-time.After(patience + answer):
		return fmt.Errorf("a call has not returned %v after its context ended, which was after %v", answer, patience)
	}
}

// patience ends a rule in which something never happens, and answer is for how long a
// call may go on after its context has ended.
const (
	patience = 12 * time.Second
	answer   = 5 * time.Second
)

// rule is one thing that a sale must do. A rule with a promise is tried only
// on sales that make it.
type rule struct {
	name    string
	promise variant.Property
	// faults are what the rule does to the sale: a flaw of any promise that needs one of them takes the
	// rule back.
	faults []variant.Fault
	// beside says that buyers come at once, whether the sale leans on a lock or not.
	beside bool
	check  func(context.Context, bench) error
	// alone says that nobody else may use the server meanwhile.
	alone bool
}

func (r rule) appliesTo(sale stockimpl.Variant) bool {
	if r.beside && leansOnLock(sale) || len(r.faults) > 0 && sale.Needs.SQL {
		return false
	}
	if slices.ContainsFunc(sale.Flaws, func(f variant.Flaw) bool {
		return slices.Contains(r.faults, f.Fault) && slices.Contains(sale.Promises, f.Property)
	}) {
		return false
	}
	return r.promise == "" || slices.Contains(sale.Promises, r.promise)
}

// bench is a Bench with the sale under test on it.
type bench struct {
	Bench
	sale stockimpl.Variant
}

// The faults of rules.
var (
	lost  = []variant.Fault{variant.DropReply, variant.Crash}
	dead  = []variant.Fault{variant.Crash, variant.DropReply}
	held  = []variant.Fault{variant.Overrun}
	again = []variant.Fault{variant.Resend}
)

var rules = []rule{
	{"every key carries the product's name", "", nil, false, keysCarryName, true},
	{"sells exactly the stock", "", nil, false, sellsExactly, false},
	{"an empty stock is sold out", "", nil, false, emptyIsSoldOut, false},
	{"refuses more than is left", "", nil, false, refusesMore, false},
	{"a refund returns to the stock", "", nil, false, refundReturns, false},
	{"the books add up", "", nil, false, booksAddUp, false},
	{"a resent order has one effect", variant.OncePerOrder, nil, false, resentOrder, false},
	{"a refunded order stays used up", variant.OncePerOrder, nil, false, refundedOrder, false},
	{"only what was bought is refunded", variant.OncePerOrder, nil, false, unknownRefund, false},
	{"copies of one order at once have one effect", variant.OncePerOrder, nil, false, copiesAtOnce, false},
	{"an older fencing token is refused", variant.Fencing, nil, false, olderToken, false},
	{"concurrent buyers get the stock and no more", "", nil, false, concurrentBuyers, false},
	{"two products do not mix", "", nil, false, twoProducts, false},
	{"a quantity below one is an error", "", nil, false, noQuantity, false},
	{"a product that was never opened sells nothing", "", nil, false, neverOpened, false},
	{"a cancelled context is no refusal", "", nil, false, cancelled, false},
	{"an order sent again for another quantity", variant.OncePerOrder, again, false, otherQuantity, false},
	{"copies of one refund at once have one effect", variant.OncePerOrder, nil, true, refundsAtOnce, false},
	{"a crowd with orders of several pieces, and refunds", "", nil, false, mixedCrowd, false},
	{"many orders", "", nil, false, manyOrders, false},
	{"what other clients do counts", "", nil, false, otherClients, false},
	{"very large orders and ids", "", nil, false, extremes, false},
	{"an hour later", "", nil, false, longAfter, false},
	{"a month later", "", nil, false, monthAfter, false},
	{"products with similar names do not mix", "", nil, false, similarProducts, false},
	{"an answer that is lost", variant.NoUndersell, lost, false, lostAnswer, false},
	{"an order whose answer is lost", variant.OncePerOrder, lost, false, lostOrder, false},
	{"a buyer that dies between two commands", "", dead, false, deadBuyer, false},
	{"a buyer held up between two commands", "", held, true, stalledBuyer, false},
	{"a refund held up between two commands", variant.OncePerOrder, held, true, stalledRefund, false},
}

// broken reports that a promise, or a rule of the interface, was not kept.
func broken(promise variant.Property, format string, args ...any) error {
	return fmt.Errorf("%s is broken: %w", promise, fmt.Errorf(format, args...))
}

// theInterface stands for what stockimpl.Sale itself demands.
const theInterface variant.Property = "the contract of stockimpl.Sale"

// buyer is one client of one product, who shows a newer lock at each call.
type buyer struct {
	b      bench
	sale   stockimpl.Sale
	fences *fences
}

// opened puts product on sale and returns its first client.
func opened(ctx context.Context, b bench, product string, stock int64) (*buyer, error) {
	return openedWith(ctx, b, product, stock, &fences{})
}

// openedWith is opened for clients that share their tokens.
func openedWith(ctx context.Context, b bench, product string, stock int64, f *fences) (*buyer, error) {
	s := b.sale.New(b.Env(), product)
	if err := s.Open(ctx, stock); err != nil {
		return nil, fmt.Errorf("open %q with %d pieces: %w", product, stock, err)
	}
	return &buyer{b: b, sale: s, fences: f}, nil
}

func (y *buyer) lock() lockimpl.Lock {
	return withFence(y.fences.last.Add(1))
}

func withFence(n int64) lockimpl.Lock {
	return lockimpl.Lock{Key: "order", Token: fmt.Sprint("token-", n), Fence: n}
}

func order(id int64, pieces int) stockimpl.Order { return stockimpl.Order{ID: id, Quantity: pieces} }

// buy expects an answer, nil for success, and what is left when it is told.
func (y *buyer) buy(ctx context.Context, of variant.Property, id int64, pieces int, want error, left int64) error {
	first := y.fences.last.Load() == 0
	got, err := y.sale.Buy(ctx, order(id, pieces), y.lock())
	if first { // nothing but its own answer can be wrong
		switch {
		case want == nil && errors.Is(err, stockimpl.ErrSoldOut) && y.b.promises(variant.NoUndersell):
			of = variant.NoUndersell
		case err == nil && errors.Is(want, stockimpl.ErrSoldOut) && y.b.promises(variant.NoOversell):
			of = variant.NoOversell
		}
	}
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
