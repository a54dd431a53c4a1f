package stocktest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/mutants/sales"
	"oversell/internal/servertest"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// A suite that never fails proves nothing. Each saboteur is a correct sale with one fault, and the suite must name the
// promise that it breaks.

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
		rename func(string) string // returns the product's name as the sale uses it
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
			wrong: "a buyer without a lock comes in", base: "fenced", rule: "an older fencing token is refused", says: "without a lock",
			with: saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				if l.Fence == 0 {
					l = withFence(10)
				}
				return s.Buy(ctx, o, l)
			}},
		},
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
			wrong: "spaces in names are underscores", base: "lua", rule: "products with similar names do not mix", says: "is broken",
			rename: func(p string) string { return strings.ReplaceAll(p, " ", "_") },
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
			err := find(t, tt.rule).check(t.Context(), newBenchOf(newBench(t), bad))
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the rule says %v; want that it says %q", err, tt.says)
			}
		})
	}
}

// TestProductsAreNamed checks that rules about several products name them only if one product alone sells as it should.
func TestProductsAreNamed(t *testing.T) {
	good, _ := stockimpl.Find("lua")
	wrongCount := good
	wrongCount.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Buy(ctx, o, l)
			return left + 1, err
		}}
	}
	oneRecord := good
	oneRecord.New = func(env variant.Env, product string) stockimpl.Sale {
		return good.New(env, strings.TrimSuffix(strings.ReplaceAll(product, " ", "_"), "2"))
	}
	for rule, names := range map[string]string{
		"two products do not mix": "with two products", "products with unlike names do not mix": "with two products",
		"products with similar names do not mix": "which is confused with product", "names and numbers of orders do not mix": "and then order",
	} {
		err := find(t, rule).check(t.Context(), newBenchOf(newBench(t), wrongCount))
		if err == nil || strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v; want a breach without %q, since it does not take two products", rule, err, names)
		}
		if rule == "products with unlike names do not mix" || rule == "names and numbers of orders do not mix" {
			continue // the names differ in more than oneRecord leaves out
		}
		err = find(t, rule).check(t.Context(), newBenchOf(newBench(t), oneRecord))
		if err == nil || !strings.Contains(err.Error(), names) {
			t.Errorf("%s: %v; want a breach with %q", rule, err, names)
		}
	}
}

// TestHung checks that a rule that does not end accuses the sale only if no call began or returned for long.
func TestHung(t *testing.T) {
	good, _ := stockimpl.Find("lua")
	for _, tt := range []struct {
		ago    time.Duration
		breach bool
	}{{answer / 2, false}, {answer + time.Second, true}} {
		b := newBenchOf(newBench(t), good)
		_ = b.roundTrip() // scripts are loaded
		b.limits.moved.Store(time.Now().Add(-tt.ago).UnixNano())
		if err := b.hung(); errors.As(err, new(*suitetest.Breach)) != tt.breach || !tt.breach && !errors.As(err, new(*suitetest.TooSlow)) {
			t.Errorf("%v after the last call: %v", tt.ago, err)
		}
	}
}

// TestLimitedSales checks that a rule which needs what a sale does not do, or shows, accuses nobody.
func TestLimitedSales(t *testing.T) {
	all := sales.All()
	named := func(name string) stockimpl.Variant {
		return all[slices.IndexFunc(all, func(s sales.Sale) bool { return s.Name == name })].Variant
	}
	hidden := named("sound-lua") // the suite does not see the commands of its own client
	hidden.New = func(env variant.Env, product string) stockimpl.Sale {
		env.Redis = []redis.UniversalClient{redis.NewClient(&redis.Options{Addr: env.Redis[0].(*redis.Client).Options().Addr})}
		return named("sound-lua").New(env, product)
	}
	for _, tt := range []struct {
		rule string
		sale stockimpl.Variant
		why  string // empty: it is judged, and kept
	}{
		{"sells exactly the stock", named("sound-left-rounded"), ""},
		{"many orders", named("sound-left-rounded"), ""},
		{"an empty stock is sold out", named("sound-numbers-of-32-bits"), "without pieces"},
		{"orders with similar numbers", named("sound-numbers-of-32-bits"), "takes no order with the number"},
		{"very large orders and ids", named("sound-numbers-of-32-bits"), "takes no order with the number"},
		{"a buyer that dies between two commands", hidden, "no command through Env.Redis"},
		{"a buyer held up between two commands", hidden, "no command through Env.Redis"},
		{"more than a hundred buyers that die", named("sound-reserved-for-a-week"), ""},
		{"random schedules of commands", hidden, "no command through Env.Redis"},
		{"an error of the server or the connection is no answer", hidden, "no command through Env.Redis"},
		{"another buyer before every command", hidden, "no command through Env.Redis"},
		{"refuses more than is left", hidden, ""},
		{"a buyer that dies between two commands", named("sound-lua"), ""},
	} {
		t.Run(tt.sale.Name+"/"+tt.rule, func(t *testing.T) {
			b := newBenchOf(newBench(t), tt.sale)
			b.unseen = b.hidden(t.Context())
			err := find(t, tt.rule).try(t.Context(), b)
			if not := new(suitetest.NotJudged); tt.why == "" && err != nil || tt.why != "" && (!errors.As(err, &not) || !strings.Contains(not.Why, tt.why)) {
				t.Errorf("the rule says %v; want %q", err, tt.why)
			}
		})
	}
}

// TestFlawedSalesAreCaught checks that each rule finds the flaw of a sale of the catalogue for which it was made.
func TestFlawedSalesAreCaught(t *testing.T) {
	all := sales.All()
	for _, tt := range []struct{ rule, sale, says string }{
		{"a buyer held up between two commands", "flag-set-late", "no-undersell is broken"},
		{"a buyer held up between two commands", "copy-told-sold-out", "once-per-order is broken"},
		{"a client whose calls have failed, or ended early, goes on", "purchase-setup-error-kept", "no-undersell is broken"},
		{"a client whose calls have failed, or ended early, goes on", "breaker-says-sold-out", "no-undersell is broken"},
		{"more than a hundred buyers that die", "under-way-for-ever", "no-undersell is broken"},
		{"orders that are refused, sent again and refunded, in turns", "refused-is-repeated", "is broken"},
		{"orders that are refused, sent again and refunded, in turns", "attempts-add-up", "no-oversell is broken"},
		{"orders that are refused, sent again and refunded, in turns", "closed-after-third-time", "no-undersell is broken"},
		{"orders of many pieces, and large stocks", "huge-orders-in-parts", "no-undersell is broken"},
		{"orders with similar numbers", "orders-by-32-bits-of-sha1", "no-undersell is broken"},
		{"many orders", "stock-in-bytes", "no-oversell is broken"},
		{"reservations end", "reaper-drops-the-rest", "no-undersell is broken"},
		{"a context that is over is no refusal", "deadline-sold-out", "contract"},
		{"a context that is over is no refusal", "ended-refund-repeated", "contract"},
		{"very large orders and ids", "orders-as-floats", "no-undersell is broken"},
		{"an hour later", "orders-forgotten", "once-per-order is broken"},
		{"a year later", "orders-kept-for-a-day", "once-per-order is broken"},
		{"a year later", "refunded-kept-for-two-months", "once-per-order is broken"},
		{"minutes, hours and days of the server's clock later", "orders-by-the-hour", "once-per-order is broken"},
		{"minutes, hours and days of the server's clock later", "fence-kept-for-half-a-second", "fencing is broken"},
		{"an order that is refunded while its buyer is held up", "late-record-frees-refund", "once-per-order is broken"},
		{"a buyer held up while others change the stock 256 times", "version-of-8-bits", "no-oversell is broken"},
		{"reservations end", "own-reservation-only", "no-undersell is broken"},
		{"reservations end", "reserved-again-by-copy", "no-undersell is broken"},
		{"reservations end", "reserved-again-for-fewer", "for fewer pieces"},
		{"reservations end", "reservation-comes-back-twice", "no-oversell is broken"},
		{"an error of the server or the connection is no answer", "error-reply-sold-out", "no-undersell is broken"},
		{"an error of the server or the connection is no answer", "busy-server-sold-out", "no-undersell is broken"},
		{"an error of the server or the connection is no answer", "refused-refund-done", "no-undersell is broken"},
		{"an error of the server or the connection is no answer", "state-of-refusal-empty", "no-undersell is broken"},
		{"a context that ends between two commands", "background-purchase-stale", "no-undersell is broken"},
		{"a context that ends between two commands", "deadline-sold-out", "no-undersell is broken"},
		{"a context that ends between two commands", "ended-refund-repeated", "no-undersell is broken"},
		{"a slow server", "slow-is-sold-out", "no-undersell is broken"},
		{"another buyer before every command", "sold-out-after-conflicts", "no-undersell is broken"},
		{"another buyer before every command", "sold-out-after-many-conflicts", "no-undersell is broken"},
		{"another buyer before every command", "refund-done-after-conflicts", "no-undersell is broken"},
		{"a piece that moves while an order looks for it", "stock-in-quarters-searched", "no-undersell is broken"},
		{"a refund held up while others buy", "reads-then-writes", "no-oversell is broken"},
		{"a refund by another client, of another quantity", "refund-less-uses-up", "once-per-order is broken"},
		{"a refund by another client, of another quantity", "refund-by-request", "once-per-order is broken"},
		{"a buyer whose scripts are forgotten, held up between two commands", "commands-while-script-unknown", "is broken"},
		{"orders with similar numbers", "orders-of-six-digits", "no-undersell is broken"},
		{"orders with similar numbers", "order-zero", "once-per-order is broken"},
		{"very large fencing tokens", "fence-as-double", "fencing is broken"},
		{"very large orders after others", "sum-overflows", "no-oversell is broken"},
		{"very large orders after others", "order-noted-before-sum", "once-per-order is broken"},
		{"a stock beyond the digits of floating-point numbers", "stock-as-double", "no-oversell is broken"},
		{"orders of every size are kept, and come back", "refund-of-two-digits", "no-undersell is broken"},
		{"names and numbers of orders do not mix", "names-joined-with-numbers", "no-undersell is broken"},
		{"long and strange names do not mix", "names-of-128-bytes", "is broken"},
		{"buyers that die one after the other", "order-after-stock", "no-undersell is broken"},
		{"two clients after the death of a buyer", "reaped-in-two-steps", "no-oversell is broken"},
		{"orders of many pieces, and large stocks", "large-orders-in-parts", "no-undersell is broken"},
		{"thousands of orders", "thousandth-not-counted", "do not add up"},
		{"thousands of orders", "refunds-of-the-last-hundreds", "no-undersell is broken"},
		{"thousands of refunds", "refunded-last-hundreds", "once-per-order is broken"},
		{"thousands of refunds", "refunds-last-hundreds", "once-per-order is broken"},
		{"thousands of orders", "orders-by-20-bits", "the two numbers are different orders"},
		{"thousands of orders", "orders-by-24-bits", "the two numbers are different orders"},
		{"orders with similar numbers", "orders-by-the-second", "order 1764514823905 was answered \"order was already counted\" after order 1764514823 had bought"},
		{"orders with similar numbers", "orders-without-two-digits", "after order 1764514823905176 had bought"},
		{"products with similar names do not mix", "product-names-as-paths", "which is confused with product"},
		{"products with similar names do not mix", "product-names-as-html", "which is confused with product"},
		{"products with similar names do not mix", "product-names-without-braces", "which is confused with product"},
		{"products with similar names do not mix", "product-names-trimmed", "which is confused with product"},
		{"a client that is told to refuse what is stale", "refuse-stale-ignored", "a purchase of a client whose RefuseStale was called was answered success"},
		{"a client that is told to refuse what is stale", "refund-never-stale", "a refund of a client whose RefuseStale was called was answered success"},
		{"reconcile ends what is past its deadline, and counts the orders", "reconcile-ends-all", "3 orders lost their reservation; want 0"},
		{"reconcile ends what is past its deadline, and counts the orders", "reconcile-counts-pieces", "6 orders lost their reservation; want 3"},
		{"reconcile ends what is past its deadline, and counts the orders", "reconcile-counts-none", "0 orders lost their reservation; want 3"},
		{"reservations end", "reconcile-ends-ten", "10 orders lost their reservation"},
		{"reservations end", "reconcile-ends-a-hundred", "100 orders lost their reservation; want 550"},
		{"what is reserved when a buyer dies is shown by State", "reserved-not-shown", "so want 2 reserved"},
		{"random schedules of commands", "order-after-stock", "is broken"},
		{"random schedules of commands", "reads-then-writes", "no-oversell is broken"},
	} {
		t.Run(tt.rule+"/"+tt.sale, func(t *testing.T) {
			i := slices.IndexFunc(all, func(s sales.Sale) bool { return s.Name == tt.sale })
			if i < 0 {
				t.Fatalf("no sale %q", tt.sale)
			}
			r := find(t, tt.rule)
			if !r.appliesTo(all[i].Variant) {
				t.Fatalf("the rule is not for the sale %q", tt.sale)
			}
			var err error
			for range 3 { // a busy machine may not make enough calls in the rule's time
				if err = r.check(t.Context(), newBenchOf(newBench(t), all[i].Variant)); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the rule says %v; want that it says %q", err, tt.says)
			}
		})
	}
}

// TestWritesFail checks that the rule finds a sale that answers with success, or with a declared error, although a command in
// its script has failed, as with redis.pcall.
func TestWritesFail(t *testing.T) {
	const rule = "a purchase or a refund whose commands may not write"
	as := func(left int64, err, answer error) (int64, error) {
		if err != nil && strings.Contains(err.Error(), "The user executing the script can't") {
			err = answer
		}
		return left, err
	}
	for name, tt := range map[string]struct {
		with saboteur
		says string
	}{
		"sound": {},
		"sold": {saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Buy(ctx, o, l)
			return as(left, err, nil)
		}}, "no-oversell is broken: a purchase of 2 pieces of 6, during which the client had no right to write (ACL), was answered success"},
		"sold out": {saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Buy(ctx, o, l)
			return as(left, err, stockimpl.ErrSoldOut)
		}}, "no-undersell is broken"},
		"refunded": {saboteur{refund: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Refund(ctx, o, l)
			return as(left, err, nil)
		}}, "no-undersell is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := servertest.Start(t)
			c := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { c.Close() })
			good := saleNamed(t, "lua")
			v := good
			v.New = func(env variant.Env, product string) stockimpl.Sale {
				s := tt.with
				s.Sale = good.New(env, product)
				return s
			}
			b := Bench{Product: "product", Env: func() variant.Env {
				return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clock.Real{}, Token: rand.Text}
			}}
			err := find(t, rule).try(t.Context(), newBenchOf(b, v))
			if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
				t.Errorf("the rule says %v; want %q", err, tt.says)
			}
		})
	}
	if err := find(t, rule).try(t.Context(), newBenchOf(newBench(t), saleNamed(t, "lua"))); !errors.As(err, new(*suitetest.Remark)) {
		t.Errorf("on a server without users the rule says %v; want a remark", err)
	}
}

// TestHeldBeyond checks that a sale is caught which confirms an order whatever has become of its reservation.
func TestHeldBeyond(t *testing.T) {
	good := saleNamed(t, "reserve")
	blind := good
	blind.New = func(env variant.Env, product string) stockimpl.Sale {
		confirmed := &atomic.Bool{}
		in := good.New(env, product)
		return saboteur{Sale: in, buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := s.Buy(ctx, o, l)
			if errors.Is(err, stockimpl.ErrStale) && o.Quantity == orderedPieces && confirmed.CompareAndSwap(false, true) {
				err = nil
			}
			return left, err
		}}
	}
	r := find(t, "a buyer held up beyond its reservation")
	if err := r.check(t.Context(), newBenchOf(newBench(t), good)); err != nil {
		t.Errorf("the rule accuses a sound sale: %v", err)
	}
	if err := r.check(t.Context(), newBenchOf(newBench(t), blind)); err == nil || !strings.Contains(err.Error(), "no-oversell is broken: a buyer of 2 pieces of 6 was held up") {
		t.Errorf("the rule says %v; want that pieces were sold twice", err)
	}
}

// batched is a sale that puts refunds on a list, of which a purchase brings so many back before it decides; 0: all.
type batched struct {
	rdb   redis.UniversalClient
	keys  []string
	batch int
}

var (
	batchedBuy = redis.NewScript(`
		if redis.call('HEXISTS', KEYS[3], ARGV[1]) == 1 then return 2 end
		local n = tonumber(ARGV[3])
		if n == 0 then n = redis.call('LLEN', KEYS[2]) end
		for i = 1, n do
			local back = redis.call('LPOP', KEYS[2])
			if back then redis.call('INCRBY', KEYS[1], back) end
		end
		if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[2]) then return 1 end
		redis.call('DECRBY', KEYS[1], ARGV[2])
		redis.call('HSET', KEYS[3], ARGV[1], ARGV[2])
		return 0`)
	batchedRefund = redis.NewScript(`
		local pieces = redis.call('HGET', KEYS[3], ARGV[1])
		if not pieces then return 3 end
		if pieces == 'back' then return 2 end
		redis.call('RPUSH', KEYS[2], pieces)
		redis.call('HSET', KEYS[3], ARGV[1], 'back')
		return 0`)
)

func (s *batched) Open(ctx context.Context, stock int64) error {
	return s.rdb.Set(ctx, s.keys[0], stock, 0).Err()
}

func (s *batched) run(ctx context.Context, script *redis.Script, o stockimpl.Order) (int64, error) {
	code, err := script.Run(ctx, s.rdb, s.keys, o.ID, o.Quantity, s.batch).Int()
	if err != nil {
		return stockimpl.Unsaid, err
	}
	return stockimpl.Unsaid, []error{nil, stockimpl.ErrSoldOut, stockimpl.ErrRepeated, errors.New("never bought")}[code]
}

func (s *batched) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return s.run(ctx, batchedBuy, o)
}

func (s *batched) Refund(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return s.run(ctx, batchedRefund, o)
}

func (s *batched) State(ctx context.Context) (stockimpl.State, error) {
	left, err := s.rdb.Get(ctx, s.keys[0]).Int64()
	return stockimpl.State{Left: left + s.rdb.LLen(ctx, s.keys[1]).Val(), Sold: stockimpl.Unsaid}, err
}

// TestAllCameBack checks that a sale is caught which brings a hundred refunds back at a time, and calls the rest sold out.
func TestAllCameBack(t *testing.T) {
	r := find(t, "one order for all that was refunded")
	for batch, says := range map[int]string{0: "", 100: "no-undersell is broken"} {
		v := stockimpl.Variant{
			Promises: []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder},
			New: func(env variant.Env, product string) stockimpl.Sale {
				return &batched{env.Redis[0], []string{product + "/left", product + "/back", product + "/orders"}, batch}
			},
		}
		err := r.check(t.Context(), newBenchOf(newBench(t), v))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%d at a time: the rule says %v; want %q", batch, err, says)
		}
	}
}

// TestWorks checks that a sale whose purchases all fail, or are all refused although it promises to undersell nothing, is
// told from one that sells.
func TestWorks(t *testing.T) {
	good := saleNamed(t, "lua")
	careless := good
	careless.Promises = []variant.Property{variant.NoOversell}
	for _, tt := range []struct {
		sale   stockimpl.Variant
		answer error
		fails  string
	}{
		{good, nil, ""},
		{good, errors.New("ERR Error compiling script"), "ERR Error compiling script"},
		{good, stockimpl.ErrSoldOut, `no-undersell is broken: a sale of 3 pieces was opened, and one piece ordered, 3 times, and the last answer was "sold out"`},
		{good, stockimpl.ErrStale, `no-undersell is broken: a sale of 3 pieces was opened, and one piece ordered, 3 times, and the last answer was "stale"`},
		{careless, stockimpl.ErrSoldOut, ""},
		{careless, errors.New("ERR Error compiling script"), "ERR Error compiling script"},
	} {
		answer, v := tt.answer, tt.sale
		v.New = func(env variant.Env, product string) stockimpl.Sale {
			return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				if answer != nil {
					return stockimpl.Unsaid, answer
				}
				return s.Buy(ctx, o, l)
			}}
		}
		if err := newBenchOf(newBench(t), v).works(t.Context()); (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("a sale whose purchases answer %v: works says %v; want %q", answer, err, tt.fails)
		}
	}
}

// TestSoundSalesPass checks that each of these sales passes: it is sound, but a careless version of the rule would accuse
// it.
func TestSoundSalesPass(t *testing.T) {
	all := sales.All()
	for _, tt := range []struct{ rule, sale string }{
		{"random schedules of commands", "sound-sends-again"},
		{"an order that is refunded while its buyer is held up", "sound-lua"},
		{"an order that is refunded while its buyer is held up", "sound-reserved-for-10-s"},
		{"a buyer held up while others change the stock 256 times", "sound-sale-watch"},
		{"a buyer held up while others change the stock 256 times", "sound-reserved-for-10-s"},
		{"reservations end", "sound-reserved-for-10-s"},
		{"reservations end", "sound-reserved-for-a-week"},
		{"very large orders after others", "sound-number-fixes-quantity"},
		{"a client that is told to refuse what is stale", "sound-refuses-stale"},
		{"a client that is told to refuse what is stale", "sound-lua"},
		{"reconcile ends what is past its deadline, and counts the orders", "sound-state-reconciles"},
		{"reconcile ends what is past its deadline, and counts the orders", "sound-reserved-and-reconciled"},
		{"reconcile ends what is past its deadline, and counts the orders", "sound-reserved-for-a-week"},
		{"reservations end", "sound-state-reconciles"},
		{"what is reserved when a buyer dies is shown by State", "sound-reserved-for-a-week"},
		{"what is reserved when a buyer dies is shown by State", "sound-count"},
		{"products with similar names do not mix", "sound-keys-behind-marks"},
		{"orders with similar numbers", "sound-lua"},
		{"thousands of orders", "sound-lua"},
		{"a stock beyond the digits of floating-point numbers", "sound-list-of-pieces"},
		{"a stock beyond the digits of floating-point numbers", "sound-reserved-for-a-week"}, // its State rounds
	} {
		t.Run(tt.rule+"/"+tt.sale, func(t *testing.T) {
			i := slices.IndexFunc(all, func(s sales.Sale) bool { return s.Name == tt.sale })
			if err := find(t, tt.rule).check(t.Context(), newBenchOf(newBench(t), all[i].Variant)); err != nil {
				t.Errorf("the rule accuses it: %v", err)
			}
		})
	}
}

// TestLimits checks that a sale which does not refund, or takes small orders only, is tried without what it does not do:
// it is not accused, and a flaw of what it does is found.
func TestLimits(t *testing.T) {
	always := func(s saboteur) func() saboteur { return func() saboteur { return s } }
	final := func(err error) func() saboteur {
		return always(saboteur{refund: func(context.Context, stockimpl.Sale, stockimpl.Order, lockimpl.Lock) (int64, error) {
			return stockimpl.Unsaid, err
		}})
	}
	// often makes sales that refuse a client's calls beyond so many in a second.
	often := func(most int) func() saboteur {
		return func() saboteur {
			var since time.Time
			n := 0
			return saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				if now := time.Now(); now.Sub(since) > time.Second {
					since, n = now, 0
				}
				if n++; n > most {
					return stockimpl.Unsaid, errors.New("too many calls")
				}
				return s.Buy(ctx, o, l)
			}}
		}
	}
	single := always(saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
		if o.Quantity > 1 {
			return stockimpl.Unsaid, errors.New("one for each customer")
		}
		return s.Buy(ctx, o, l)
	}})
	for _, tt := range []struct {
		what, base string
		with       func() saboteur
		skipped    string // a rule that is not judged
		says       string // what some rule says of a flawed sale; empty: no rule accuses it
		by         string // the rule that says it, or for a sound sale the one to try; empty: all are tried
	}{
		{"no refunds", "lua", final(errors.New("all sales are final")), "a refund returns to the stock", "", ""},
		{"refunds are not supported", "lua", final(fmt.Errorf("refund: %w", errors.ErrUnsupported)), "thousands of refunds", "", "thousands of orders"},
		{"orders of up to 64 pieces", "lua", always(saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			if o.Quantity > 64 {
				return stockimpl.Unsaid, errors.New("at most 64 pieces")
			}
			return s.Buy(ctx, o, l)
		}}), "orders of every size", "", ""},
		{"one piece", "lua", single, "orders of every size", "", ""},
		{"one piece, and forgets orders after a day", "orders-kept-for-a-day", single, "orders of every size", "a year after a purchase: once-per-order is broken", "a year later"},
		{"one piece, and forgets orders after an hour", "orders-by-the-hour", single, "orders of every size", "h0m0s after a purchase: once-per-order is broken", "minutes, hours and days of the server's clock later"},
		{"one piece, and an error is sold out", "lua", always(saboteur{buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			left, err := single().buy(ctx, s, o, l)
			if err != nil && o.Quantity == 1 && ctx.Err() == nil && !declared(err) {
				err = stockimpl.ErrSoldOut
			}
			return left, err
		}}), "orders of every size", "no-undersell is broken: a purchase of 1 pieces of 6", "an error of the server or the connection is no answer"},
		{"300 calls a second", "lua", often(300), "", "", "thousands of orders"},
		{"no refunds, and forgets orders after a day", "orders-kept-for-a-day", final(errors.New("all sales are final")), "a refund returns to the stock", "a year after a purchase: once-per-order is broken", "a year later"},
		{"no refunds, and forgets orders after an hour", "orders-by-the-hour", final(errors.New("all sales are final")), "a refund returns to the stock", "h0m0s after a purchase: once-per-order is broken", "minutes, hours and days of the server's clock later"},
		{"no refunds, and forgets tokens", "fence-kept-for-half-a-second", final(errors.New("all sales are final")), "a refund returns to the stock", "fencing is broken", "minutes, hours and days of the server's clock later"},
		{"no refunds, and orders are floating-point numbers", "orders-as-floats", final(errors.New("all sales are final")), "a refund returns to the stock", "no-undersell is broken: buy of 1 by order", "very large orders and ids"},
		{"no refunds, and sells seven bits at most", "lua", always(saboteur{
			refund: final(errors.New("all sales are final"))().refund,
			buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
				o.Quantity = min(o.Quantity, 127)
				return s.Buy(ctx, o, l)
			},
		}), "a refund returns to the stock", "with a stock of 200000000000000: no-oversell is broken: after buy of 128 by order 12", "orders of every size"},
		{"no refunds, and oversells", "reads-then-writes", final(errors.New("all sales are final")), "a refund returns to the stock", "no-oversell is broken", "a buyer held up between two commands"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			base := saleNamed(t, tt.base)
			limited := base
			limited.New = func(env variant.Env, product string) stockimpl.Sale {
				s := tt.with()
				s.Sale = base.New(env, product)
				return s
			}
			noRefunds := newBenchOf(newBench(t), limited).withoutRefunds(t.Context())
			if (noRefunds == nil) == (tt.with().refund != nil) {
				t.Fatalf("the suite takes the sale for one without refunds: %v", noRefunds)
			}
			const failing = "an error of the server or the connection is no answer"
			tried := rules
			if tt.by != "" && os.Getenv("OVERSELL_LONG") != "1" {
				tried = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return r.name != failing && r.name != tt.skipped && r.name != tt.by })
			}
			said := tryAll(t, tried, limited, noRefunds, newBench)
			if errors.As(said[failing], new(*suitetest.NotJudged)) {
				t.Errorf("the rule %q is not judged: %v", failing, said[failing])
			}
			accused := false
			for name, err := range said {
				if !errors.As(err, new(*suitetest.Breach)) {
					continue
				}
				accused = accused || strings.Contains(err.Error(), tt.says)
				if tt.says == "" {
					t.Errorf("the rule %q accuses it: %v", name, err)
				}
			}
			if !accused && tt.says != "" {
				t.Errorf("no rule says %q", tt.says)
			}
			if tt.skipped != "" && !errors.As(said[tt.skipped], new(*suitetest.NotJudged)) {
				t.Errorf("the rule %q says %v; want that it cannot judge the sale", tt.skipped, said[tt.skipped])
			}
		})
	}
}

// tryAll tries those of some rules that apply to a sale, and returns what each says.
func tryAll(t *testing.T, some []rule, sale stockimpl.Variant, noRefunds error, open func(*testing.T) Bench) map[string]error {
	t.Helper()
	one := newBenchOf(open(t), sale).refusesOrders(t.Context(), 2)
	var mu sync.Mutex
	said := map[string]error{}
	slots := make(chan struct{}, sideBySide)
	var rest sync.WaitGroup
	for _, r := range some {
		if !r.appliesTo(sale) {
			continue
		}
		b := newBenchOf(open(t), sale)
		b.noRefunds, b.single, b.split = noRefunds, one, one && slices.Contains(oneAfterTheOther, r.name)
		rest.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			err := r.try(t.Context(), b)
			mu.Lock()
			defer mu.Unlock()
			said[r.name] = err
		})
	}
	rest.Wait()
	return said
}

// saleNamed returns a shipped sale, or one of the mutants.
func saleNamed(t *testing.T, name string) stockimpl.Variant {
	t.Helper()
	if v, ok := stockimpl.Find(name); ok {
		return v
	}
	for _, s := range sales.All() {
		if s.Name == name {
			return s.Variant
		}
	}
	t.Fatalf("no sale %q", name)
	return stockimpl.Variant{}
}

// TestForgottenAmongThousands checks that the suite finds a sale that remembers only its latest orders.
func TestForgottenAmongThousands(t *testing.T) {
	good, _ := stockimpl.Find("lua")
	bad := good
	var mu sync.Mutex
	place := map[int64]int{} // by order: its position among the orders made
	bad.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			mu.Lock()
			at, made := place[o.ID]
			if !made {
				place[o.ID] = len(place)
			} else if at < len(place)-200 {
				o.ID += 1 << 40
			}
			mu.Unlock()
			return s.Buy(ctx, o, l)
		}}
	}
	err := find(t, "thousands of orders").check(t.Context(), newBenchOf(newBench(t), bad))
	if err == nil || !strings.Contains(err.Error(), "once-per-order is broken") {
		t.Errorf("the rule says %v; want that an order was bought twice", err)
	}
}

// TestUnsaidReservations checks a sale whose reservations end by a clock that the suite cannot move: the suite asks for
// Bench.Reserves, and judges the sale when that says how long a reservation lasts.
func TestUnsaidReservations(t *testing.T) {
	good, _ := stockimpl.Find("reserve")
	own := good
	own.New = func(env variant.Env, product string) stockimpl.Sale {
		return saboteur{Sale: good.New(env, product), buy: func(ctx context.Context, s stockimpl.Sale, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
			if err := env.Redis[0].Set(ctx, product+"/last", time.Now().UnixMilli(), 0).Err(); err != nil {
				return stockimpl.Unsaid, err
			}
			return s.Buy(ctx, o, l)
		}}
	}
	r := find(t, "reservations end")
	b := newBenchOf(newBench(t), own)
	if err := r.check(t.Context(), b); err == nil || errors.As(err, new(*suitetest.NotJudged)) || !strings.Contains(err.Error(), "Bench.Reserves") {
		t.Errorf("the rule says %v; want that it asks for Bench.Reserves", err)
	}
	b.Product += "-said"
	b.Reserves = stockimpl.ReservedFor
	if err := r.check(t.Context(), b); err != nil {
		t.Errorf("the rule accuses it: %v", err)
	}
}

// TestUnheardAnswers checks that an order may be answered as repeated if an earlier answer was lost and its driver sent
// it again, but not if all its answers arrived.
func TestUnheardAnswers(t *testing.T) {
	for _, unheard := range []bool{false, true} {
		c := stockmodel.Call{Order: order(1, 2), Begun: 1, Ended: 2, Left: stockimpl.Unsaid, Err: stockimpl.ErrRepeated, Unheard: unheard}
		m := &stockmodel.Model{Stock: 3, IDs: true}
		err := m.Verdict([]stockmodel.Call{c}, stockimpl.State{Left: 1, Sold: 2})
		if (err == nil) != unheard {
			t.Errorf("with an answer that was lost: %t; the verdict is %v", unheard, err)
		}
		if err := m.Verdict([]stockmodel.Call{c}, stockimpl.State{Left: 3}); err == nil {
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
			return variant.Env{Redis: []redis.UniversalClient{c}, Clock: clock.Real{}, Token: rand.Text}
		},
	}
}

// TestPiecesThatAreGone checks that too few pieces are called undersold, if the sale promises that, and too many oversold.
func TestPiecesThatAreGone(t *testing.T) {
	for _, tt := range []struct {
		left     int64
		promises []variant.Property
		says     variant.Property
	}{
		{1, []variant.Property{variant.NoOversell, variant.NoUndersell}, variant.NoUndersell},
		{1, []variant.Property{variant.NoOversell}, variant.NoOversell},
		{3, []variant.Property{variant.NoOversell, variant.NoUndersell}, variant.NoOversell},
	} {
		v := saleNamed(t, "lua")
		v.Promises = tt.promises
		sound := v.New
		v.New = func(env variant.Env, product string) stockimpl.Sale {
			return saboteur{Sale: sound(env, product), state: func(stockimpl.State) stockimpl.State { return stockimpl.State{Left: tt.left, Sold: stockimpl.Unsaid} }}
		}
		b := newBench(t)
		y, err := opened(t.Context(), newBenchOf(b, v), b.Product, 2)
		if err != nil {
			t.Fatal(err)
		}
		w := new(suitetest.Breach)
		if err := y.state(t.Context(), variant.NoOversell, 2, 0); !errors.As(err, &w) || w.Promise != tt.says {
			t.Errorf("%d left of 2, %v promised: %v; want %s", tt.left, tt.promises, err, tt.says)
		}
	}
}

// holding is a sale that has so many pieces left.
type holding struct {
	stockimpl.Sale
	left int64
}

func (h holding) State(context.Context) (stockimpl.State, error) {
	return stockimpl.State{Left: h.left, Sold: stockimpl.Unsaid}, nil
}

// TestStateNamesThePromise checks that too many pieces break no-oversell, and too few no-undersell, whichever the rule is about.
func TestStateNamesThePromise(t *testing.T) {
	b := newBenchOf(Bench{}, stockimpl.Variant{Promises: []variant.Property{variant.NoOversell, variant.NoUndersell}})
	y := &buyer{b: b, sale: &timedSale{Sale: holding{left: 4}, limits: &limits{}}}
	for _, of := range []variant.Property{variant.NoOversell, variant.NoUndersell} {
		for want, promise := range map[int64]variant.Property{2: variant.NoOversell, 5: variant.NoUndersell} {
			if err := y.state(t.Context(), of, want, 0); err == nil || !strings.Contains(err.Error(), string(promise)+" is broken") {
				t.Errorf("with 4 left, and %d expected by a rule about %s: %v; want that it names %s", want, of, err, promise)
			}
		}
	}
}
