// Package stocktest is the conformance suite for sales: it tests the sales of this repository,
// and any other that implements stockimpl.Sale.
//
//	func TestMySale(t *testing.T) {
//		mine := stockimpl.Variant{Name: "mine", New: newMine, Promises: ...}
//		stocktest.Run(t, mine, stocktest.Auto(t))
//	}
//
// The example of [Run] has a whole sale. A test with servers of its own makes each [Bench] itself.
//
// Each rule is one subtest on a bench of its own. Some rules belong to a
// promise and are tried only on sales that make it; the others belong to the
// interface, and every sale must keep them. A failure names the promise, and
// shows what was asked and answered. A sale that needs a lock says so in
// Needs.Fence or by a flaw under [variant.Unserialized]; its buyers then come
// one at a time, each with a newer fencing token.
//
// The suite does not look at keys to tell two products apart: a sale may hash a product's name, or store it as a field
// of a hash. It looks at them for names of products that would use a key of another product; it tries those that consist of
// letters, digits, spaces and the signs - _ . / only, and logs the others. The suite does not remove what its rules write; give it a server of its own, or put a number that differs
// from run to run into [Bench.Product]. If no key contains the product's name, the suite cannot expire the product's
// keys, and skips the rules about what a sale forgets after an hour or longer.
//
// Some rules hold a client up, or lose one of its commands or answers. They act on commands that are sent through Env.Redis.
// If a sale sends none there, but by a client of its own at Env.Addr, these rules are skipped.
//
// For the rule about commands that may not write, the suite creates a user on the server (ACL SETUSER), and deletes it
// afterwards.
//
// There are limits. The suite sends up to 20,000 orders and 6,000 refunds to one product, fewer to a slow server: a
// sale that forgets orders only after more of them passes. With a stock of more than 2^53 pieces, which numbers in Lua
// do not hold exactly, the suite compares only what the server holds. It then judges neither the number that an answer
// says is left, nor an order for one piece more than there is.
//
// A sale need not refund, take large orders or order numbers of more than six digits, or put a product without pieces on
// sale: a call that it answers with an error that wraps
// errors.ErrUnsupported, or with an error of its own before it sends a command, is one that it does not
// support. Rules that need it are skipped.
//
// A sale with the promise once-per-order may refuse a call with an error of its own, such as one that says that calls come
// too often, or that a copy of the order is under way, if that passes within a second. Such an error leaves the outcome
// open. A rule that judges what becomes of the call makes it again after 5 ms, 50 ms, 250 ms and 1.1 s, or up to a
// quarter more, until it has another answer. An error that lasts longer is judged as an answer: a buyer that died, or is
// held up, may keep others from sending its order again for a second, but no longer. If ErrRepeated follows such an error,
// the first call may have had the effect. The suite does not call again if any error is right, as for a
// refund of what was never bought, or if the error wraps errors.ErrUnsupported. Without the promise once-per-order an error is
// judged at once: an order that is sent again may count twice.
//
// A rule ends after 12 s. A rule that did not finish because calls are slow is skipped as too slow to judge; the
// suite's own timeout is never reported as a failure.
//
// This is a functional test under moderate concurrency, not a proof. To look for an interleaving or a fault that breaks
// a sale, search it (oversell explore) and run it under load (oversell run).
package stocktest

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/inpieces"
	"oversell/internal/stats"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/server/opentest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// Bench is where one rule is tried.
type Bench struct {
	// Env returns the environment of another client, with connections of its own, all to the same server. Nothing but
	// the suite may write to that server. The suite uses Env.Redis, or Env.SQL if the sale needs a database; the sale
	// may also use Clock, Token, Wait, Go and Addr, if they are set.
	Env func() variant.Env
	// Product names a product that has not been opened yet. Rules may append to it.
	Product string
	// Reserves is the longest time for which pieces are set aside for an order that is not
	// confirmed; 0: not known. The suite finds it out on an emulation, whose clock it moves. A sale that does not run
	// on the emulation, or has its own clock, must set it: otherwise a rule that needs it fails.
	Reserves time.Duration
}

// Auto returns what Run needs to open a Bench for each rule: all on one redis-server child if there is one on PATH, and
// otherwise on one emulation. Then the test's log says so, or the test fails if OVERSELL_REQUIRE_SERVER=1.
func Auto(t *testing.T) func(*testing.T) Bench {
	t.Helper()
	s := opentest.Auto(t, "single")
	return func(*testing.T) Bench {
		return Bench{Product: "{" + rand.Text() + "}phone", Env: func() variant.Env { return opentest.Env(t, s, clock.Real{}) }}
	}
}

// Run tries every rule that applies to the sale. It calls open once for each, and once before. Most rules
// are tried side by side, since some wait for time to pass. A rule that fails while the server or the machine stands
// still for a second is tried once more, and is skipped as too slow if that happens again.
func Run(t *testing.T, sale stockimpl.Variant, open func(t *testing.T) Bench) {
	t.Helper()
	if err := newBenchOf(open(t), sale).works(t.Context()); err != nil {
		t.Fatalf("sale %s: %v; no rule was tried", sale.Name, err)
	}
	noRefunds := newBenchOf(open(t), sale).withoutRefunds(t.Context())
	if noRefunds != nil {
		t.Logf("sale %s: %v: rules about refunds are skipped", sale.Name, noRefunds)
	}
	hidden := newBenchOf(open(t), sale).hidden(t.Context())
	single := newBenchOf(open(t), sale).refusesOrders(t.Context(), 2)
	if single {
		t.Logf("sale %s: it takes one piece per order: rules that need larger orders are skipped, or have several orders for one", sale.Name)
	}
	var tried []suitetest.Rule
	for _, r := range rules {
		if !r.appliesTo(sale) {
			continue
		}
		tried = append(tried, suitetest.Rule{Name: r.name, Open: func(t *testing.T) suitetest.Trial {
			b := newBenchOf(open(t), sale)
			b.noRefunds, b.unseen = noRefunds, hidden
			b.single, b.split = single, single && slices.Contains(oneAfterTheOther, r.name)
			return suitetest.Trial{
				Try:     func(ctx context.Context) error { return r.try(ctx, b) },
				Servers: func() []redis.UniversalClient { return b.Env().Redis },
			}
		}})
	}
	atOnce := sideBySide
	if sale.Needs.SQL {
		atOnce = 1
	}
	suitetest.Run(t, "sale "+sale.Name, atOnce, tried)
}

// sideBySide is how many rules are tried at once.
const sideBySide = 8

// try ends in a sentence when the sale does not answer.
func (r rule) try(ctx context.Context, b bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b.limits.moved.Store(time.Now().UnixNano())
	result := make(chan error, 1)
	go func() { result <- suitetest.Caught("the sale", func() error { return r.check(ctx, b) }) }()
	select {
	case err := <-result:
		if err == nil && b.unseen && b.limits.interrupts.Load() {
			return &suitetest.NotJudged{Why: unseen}
		}
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if why := b.beyond(after, err); why != "" {
			return &suitetest.NotJudged{Why: why}
		}
		if end, ok := ctx.Deadline(); ok && err != nil && time.Now().After(end.Add(-nearly)) {
			return b.outOfTime(r, end, err)
		}
		return err
	case <-time.After(patience + answer):
		return b.hung()
	}
}

// hung judges a rule that goes on although its context has ended: a call hangs if none began or returned since then, though a
// look at the sale is quick.
func (b bench) hung() error {
	still := b.limits.still()
	if d := b.roundTrip(); d > answer/50 || still < answer-nearly {
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v, nor within %v after its context had ended: no call began or returned for %v, and a look at the sale takes %v", patience, answer, still.Round(time.Millisecond), d.Round(time.Microsecond))}
	}
	return broken(theInterface, "a call has not returned %v after its context ended, which was after %v", answer, patience)
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
	// on, unless nil, tells the sales that the rule is for.
	on    func(stockimpl.Variant) bool
	check func(context.Context, bench) error
}

func (r rule) appliesTo(sale stockimpl.Variant) bool {
	if r.on != nil && !r.on(sale) || r.beside && leansOnLock(sale) || len(r.faults) > 0 && sale.Needs.SQL {
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
	sale      stockimpl.Variant
	limits    *limits
	noRefunds error // unless nil, why the sale does not refund
	unseen    bool  // the suite does not see the sale's commands
	// single says that the sale takes one piece per order. Then split says that the rule has several orders for one.
	single, split bool
	accepted      *inpieces.Accepted
}

func newBenchOf(b Bench, sale stockimpl.Variant) bench {
	return bench{Bench: b, sale: sale, limits: &limits{}, accepted: &inpieces.Accepted{}}
}

// The faults of rules.
var (
	lost  = []variant.Fault{variant.DropReply, variant.Crash}
	dead  = []variant.Fault{variant.Crash, variant.DropReply}
	died  = []variant.Fault{variant.Crash}
	held  = []variant.Fault{variant.Overrun}
	again = []variant.Fault{variant.Resend}
)

var rules = []rule{
	{"sells exactly the stock", "", nil, false, nil, sellsExactly},
	{"an empty stock is sold out", "", nil, false, nil, emptyIsSoldOut},
	{"refuses more than is left", "", nil, false, nil, among(3, stockrules.RefusesMore)},
	{"a refund returns to the stock", "", nil, false, nil, by(2, stockrules.RefundReturns)},
	{"the books add up", "", nil, false, nil, on(20, booksAddUp)},
	{"a resent order has one effect", variant.OncePerOrder, nil, false, nil, by(3, stockrules.ResentOrder)},
	{"a refunded order stays used up", variant.OncePerOrder, nil, false, nil, by(3, stockrules.RefundedOrder)},
	{"only what was bought is refunded", variant.OncePerOrder, nil, false, nil, by(3, stockrules.UnknownRefund)},
	{"copies of one order at once have one effect", variant.OncePerOrder, nil, false, nil, copiesAtOnce},
	{"an older fencing token is refused", variant.Fencing, nil, false, nil, olderToken},
	{"concurrent buyers get the stock and no more", "", nil, false, nil, concurrentBuyers},
	{"two products do not mix", "", nil, false, nil, twoProducts},
	{"a quantity below one is an error", "", nil, false, nil, on(3, noQuantity)},
	{"a product that was never opened sells nothing", "", nil, false, nil, neverOpened},
	{"a context that is over is no refusal", "", nil, false, nil, endedBefore},
	{"an order sent again for another quantity", variant.OncePerOrder, again, false, nil, otherQuantity},
	{"a refund held up while its piece is sold again", variant.OncePerOrder, held, true, onRedis, soldAgain},
	{"copies of one refund at once have one effect", variant.OncePerOrder, nil, true, nil, refundsAtOnce},
	{"a crowd with orders of several pieces, and refunds", "", nil, false, nil, mixedCrowd},
	{"many orders", "", nil, false, nil, manyOrders},
	{"what other clients do counts", "", nil, false, nil, among(3, stockrules.OtherClients)},
	{"very large orders and ids", "", nil, false, nil, extremes},
	{"an hour later", "", nil, false, nil, longAfter},
	{"a year later", "", nil, false, nil, yearAfter},
	{"minutes, hours and days of the server's clock later", "", nil, false, onRedis, serverTimes},
	{"products with similar names do not mix", "", nil, false, nil, similarProducts},
	{"an answer that is lost", variant.NoUndersell, lost, false, nil, lostAnswer},
	{"an order whose answer is lost", variant.OncePerOrder, lost, false, nil, lostOrder},
	{"a buyer that dies between two commands", "", dead, false, nil, deadBuyer},
	{"a buyer that dies in an order that cannot be had", variant.NoUndersell, died, false, onRedis, deadInVain},
	{"an order that cannot be had, held up between two commands", variant.NoUndersell, held, true, noBorrowing, stalledInVain},
	{"a refund that is interrupted when all is sold", variant.NoUndersell, died, false, onRedis, refundOfTheLast},
	{"an older fencing token, held up between two commands", variant.Fencing, nil, false, fencedEvenHeldUp, stalledFence},
	{"orders of every size", "", nil, false, nil, everySize},
	{"products with unlike names do not mix", "", nil, false, nil, unlikeProducts},
	{"a buyer held up between two commands", "", held, true, nil, stalledBuyer},
	{"a refund held up between two commands", variant.OncePerOrder, held, true, nil, stalledRefund},
	{"a client whose calls have failed, or ended early, goes on", variant.NoUndersell, dead, false, nil, recovers},
	{"an error of the server or the connection is no answer", "", lost, false, promisesUndersell, failedCommands},
	{"a purchase or a refund whose commands may not write", "", nil, false, onRedis, writesFail},
	{"a context that ends between two commands", "", lost, false, promisesUndersell, endedContexts},
	{"a slow server", "", held, true, promisesUndersell, slowServer},
	{"another buyer before every command", "", held, true, promisesUndersell, steadyConflict},
	{"a piece that moves while an order looks for it", variant.NoUndersell, held, true, canWalk, movingPiece},
	{"a refund held up while others buy", variant.NoUndersell, held, true, canWalk, stalledRefunds},
	{"a refund by another client, of another quantity", variant.OncePerOrder, again, false, nil, refundsByOthers},
	{"a buyer whose scripts are forgotten, held up between two commands", "", held, true, nil, forgottenScripts},
	{"orders with similar numbers", "", nil, false, nil, manyIDs},
	{"very large fencing tokens", variant.Fencing, nil, false, nil, largeTokens},
	{"very large orders after others", "", nil, false, nil, hugeAfterSales},
	{"a stock beyond the digits of floating-point numbers", "", nil, false, onRedis, beyondDoubles},
	{"orders of every size are kept, and come back", "", nil, false, nil, by(stockrules.KeptStock, stockrules.KeptAndReturned)},
	{"names and numbers of orders do not mix", "", nil, false, onRedis, joinedNames},
	{"long and strange names do not mix", "", nil, false, onRedis, longNames},
	{"orders of many pieces, and large stocks", variant.NoUndersell, nil, false, canWalk, largerOrders},
	{"buyers that die one after the other", variant.NoUndersell, dead, false, onRedis, manyDead},
	{"more than a hundred buyers that die", variant.NoUndersell, dead, false, onRedis, crowdDies},
	{"two clients after the death of a buyer", "", dead, true, canWalk, twoReapers},
	{"reservations end", variant.NoUndersell, dead, true, onRedis, reservationsEnd},
	{"a buyer held up beyond its reservation", variant.NoOversell, held, true, onRedis, heldBeyond},
	{"an order that is refunded while its buyer is held up", variant.OncePerOrder, held, true, onRedis, heldBeside(3, (*stockrules.Held).RefundedBeside)},
	{"a buyer held up while others change the stock 256 times", "", held, true, onRedis, heldBeside(280, (*stockrules.Held).ManyChangesBeside)},
	{"one order for all that was refunded", variant.NoUndersell, nil, false, onRedis, allCameBack},
	{"thousands of orders", variant.OncePerOrder, nil, false, onRedis, thousands},
	{"thousands of refunds", variant.OncePerOrder, nil, false, onRedis, thousandsOfRefunds},
	{"orders that are refused, sent again and refunded, in turns", "", nil, false, nil, inTurns},
	{"reconcile ends what is past its deadline, and counts the orders", "", dead, false, onRedis, reconciles},
	{"what is reserved when a buyer dies is shown by State", "", dead, false, onRedis, shownReserved},
	{"a client that is told to refuse what is stale", "", nil, true, onRedis, refusesStale},
	{"random schedules of commands", "", nil, true, canWalk, randomWalks},
}

// on makes a rule of one about the first client of a product with this stock.
func on(stock int64, check func(context.Context, *buyer) error) func(context.Context, bench) error {
	return func(ctx context.Context, b bench) error {
		y, err := opened(ctx, b, b.Product, stock)
		if err != nil {
			return err
		}
		return check(ctx, y)
	}
}

// broken reports that a promise, or a rule of the interface, was not kept.
func broken(promise variant.Property, format string, args ...any) error {
	return suitetest.Broken(promise, format, args...)
}

// firstBreach returns the first error that accuses the sale, or else the first error.
func firstBreach(errs []error) (first error) {
	for _, err := range errs {
		if err != nil && !errors.As(err, new(*suitetest.NotJudged)) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// A sale is quick if its State takes at most near. A connection's deadline may pass up to nearly before the rule's.
const (
	near   = time.Millisecond
	nearly = 50 * time.Millisecond
)

// outOfTime judges a rule that had not ended at its time limit. A breach that was found before the limit counts. Any
// other error comes from the suite's own context; it counts against the sale only if one call of the sale took long
// although other calls are quick.
func (b bench) outOfTime(r rule, end time.Time, err error) error {
	if w := new(suitetest.Breach); errors.As(err, &w) && w.At.Before(end.Add(-nearly)) || errors.As(err, new(*suitetest.NotJudged)) {
		return err
	}
	d, cut := b.roundTrip(), time.Duration(b.limits.cut.Load()).Round(time.Millisecond)
	if d > near || cut < patience/3 {
		return &suitetest.TooSlow{Why: fmt.Sprintf("the rule did not end within %v: when its time was over, no call had gone on for more than %v, and a look at the sale takes %v", patience, cut, d.Round(time.Microsecond))}
	}
	return broken(cmp.Or(r.promise, theInterface), "a call, or the calls for one order that was answered with ErrStale each time, had not come to an end after %v, though a look at the sale takes %v", cut, d.Round(time.Microsecond))
}

// roundTrip is how long a look at a sale takes, the median of some; a long time if there is no answer.
func (b bench) roundTrip() time.Duration {
	ctx, cancel := context.WithTimeout(context.Background(), answer)
	defer cancel()
	y, err := opened(ctx, b, b.Product+"-unused", 1)
	if err != nil {
		return answer
	}
	var took []time.Duration
	for range 5 {
		start := time.Now()
		if _, err := y.sale.State(ctx); err != nil {
			return answer
		}
		took = append(took, time.Since(start))
	}
	return stats.Median(took)
}

// theInterface stands for what stockimpl.Sale itself demands.
const theInterface = stockmodel.TheInterface

// buyer is one client of one product, who shows a newer lock at each call.
type buyer struct {
	b      bench
	sale   *timedSale
	fences *fences
}

// timedSale knows since when a call of it has been under way, and notes orders that end in an error.
type timedSale struct {
	stockimpl.Sale
	since     atomic.Int64 // in nanoseconds since 1970; 0 while no call is under way
	limits    *limits
	noRefunds error
}

func (s *timedSale) enter(ctx context.Context) (leave func()) {
	start := time.Now()
	s.since.Store(start.UnixNano())
	s.limits.moved.Store(start.UnixNano())
	return func() { s.since.Store(0); s.limits.ended(ctx, start) }
}

// Buy implements stockimpl.Sale.
func (s *timedSale) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	defer s.enter(ctx)()
	left, err := s.Sale.Buy(ctx, o, l)
	if err != nil && !declared(err) && ctx.Err() == nil {
		s.limits.failed(o, err)
	}
	return left, err
}

// Refund implements stockimpl.Sale.
func (s *timedSale) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	if s.noRefunds != nil {
		s.limits.refundAsked.Store(true)
		return stockimpl.Unsaid, s.noRefunds
	}
	defer s.enter(ctx)()
	return s.Sale.Refund(ctx, o, l)
}

// State implements stockimpl.Sale.
func (s *timedSale) State(ctx context.Context) (stockimpl.State, error) {
	defer s.enter(ctx)()
	return s.Sale.State(ctx)
}

// newSale is one client of a product.
func (b bench) newSale(env variant.Env, product string) *timedSale {
	s := b.sale.New(env, product)
	if b.split {
		s = inpieces.Of(s, product, b.accepted)
	}
	return &timedSale{Sale: s, limits: b.limits, noRefunds: b.noRefunds}
}

// client is one more client of a product, with connections of its own.
func (b bench) client(f *fences) *buyer {
	return &buyer{b: b, sale: b.newSale(b.Env(), b.Product), fences: f}
}

// opened puts product on sale and returns its first client.
func opened(ctx context.Context, b bench, product string, stock int64) (*buyer, error) {
	return openedWith(ctx, b, product, stock, &fences{})
}

// openedWith is opened for clients that share their tokens.
func openedWith(ctx context.Context, b bench, product string, stock int64, f *fences) (*buyer, error) {
	s := b.newSale(b.Env(), product)
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
	got, err := y.again(ctx, want, func() (int64, error) { return y.sale.Buy(ctx, order(id, pieces), y.lock()) })
	if first { // nothing but its own answer can be wrong
		switch {
		case want == nil && errors.Is(err, stockimpl.ErrSoldOut) && y.b.promises(variant.NoUndersell):
			of = variant.NoUndersell
		case err == nil && errors.Is(want, stockimpl.ErrSoldOut) && y.b.promises(variant.NoOversell):
			of = variant.NoOversell
		}
	}
	return y.expect(ctx, of, fmt.Sprintf("buy of %d by order %d", pieces, id), answered{got, err}, answered{left, want})
}

func (y *buyer) refund(ctx context.Context, of variant.Property, id int64, pieces int, want error, left int64) error {
	got, err := y.again(ctx, want, func() (int64, error) { return y.sale.Refund(ctx, order(id, pieces), y.lock()) })
	return y.expect(ctx, of, fmt.Sprintf("refund of %d by order %d", pieces, id), answered{got, err}, answered{left, want})
}

// answered is what a call returned.
type answered struct {
	left int64
	err  error
}

// expect compares an answer with what is wanted, while nobody else buys. If another number of pieces
// is left than is wanted, and the server holds it, it is not the answer that is wrong.
func (y *buyer) expect(ctx context.Context, of variant.Property, what string, got, want answered) error {
	err := y.b.expect(of, what, got, want)
	if got.err != nil || want.err != nil || got.left == want.left || got.left == stockimpl.Unsaid {
		return err
	}
	s, look := y.sale.State(ctx)
	if look == nil && s.Reserved == 0 && !y.b.promises(variant.Linearizable) {
		got.left = s.Left // its answer may be an estimate
	}
	switch {
	case look != nil || s.Left != got.left || s.Reserved != 0:
		return err
	case got.left < want.left && y.b.promises(variant.NoUndersell):
		return broken(variant.NoUndersell, "after %s State says %v; want %d left: pieces are gone that no answer accounts for", what, s, want.left)
	case got.left > want.left && y.b.promises(variant.NoOversell):
		return broken(variant.NoOversell, "after %s State says %v; want %d left: pieces that are sold are there to be sold again", what, s, want.left)
	}
	return err
}

// expect compares an answer with what is wanted. The number that is left must be right if the sale promises linearizable.
func (b bench) expect(of variant.Property, what string, got, want answered) error {
	switch {
	case !errors.Is(got.err, want.err):
		return broken(b.made(of), "%s answered %s; want %s", what, say(got.err), say(want.err))
	case got.err == nil && got.left != want.left && got.left != stockimpl.Unsaid && b.promises(variant.Linearizable):
		return broken(variant.Linearizable, "%s said that %d are left; want %d", what, got.left, want.left)
	}
	return nil
}

// made returns a promise, and the interface in place of one about the stock that the sale does not make. Rules about other
// promises are tried only on sales that make them.
func (b bench) made(of variant.Property) variant.Property {
	if (of == variant.NoOversell || of == variant.NoUndersell) && !b.promises(of) {
		return theInterface
	}
	return of
}

// state expects the server to hold this many pieces, free or set aside by an earlier attempt, and sold to fit if told.
func (y *buyer) state(ctx context.Context, of variant.Property, left, sold int64) error {
	s, err := y.sale.State(ctx)
	switch {
	case err != nil:
		return broken(of, "state: %w", err)
	case s.Left+s.Reserved != left, s.Sold != sold && s.Sold != stockimpl.Unsaid:
		switch more := s.Left+s.Reserved > left; {
		case !more && s.Left+s.Reserved < left && of == variant.NoOversell && y.b.promises(variant.NoUndersell):
			of = variant.NoUndersell
		case more && of == variant.NoUndersell && y.b.promises(variant.NoOversell):
			of = variant.NoOversell
		}
		return broken(of, "State says %v; want %d left or reserved, %d sold", s, left, sold)
	}
	return nil
}

var firstOf = suitetest.FirstOf
