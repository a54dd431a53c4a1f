package sales

import (
	"context"
	"errors"
	"fmt"
	"html"
	"path"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// toldMutants break what the contract says of RefuseStale, Reconcile and State.
func toldMutants() []Sale {
	contract := entry.Breaks(entry.Contract)
	return []Sale{
		{entry.New("refuse-stale-ignored", "a purchase or a refund whose transaction failed begins again though RefuseStale was called", contract, ""),
			refusing(func(bool) bool { return false })},
		{entry.New("refund-never-stale", "a refund whose transaction failed begins again though RefuseStale was called; a purchase does not", contract, ""),
			refusing(func(refund bool) bool { return !refund })},
		{entry.New("reconcile-ends-all", "a call of Reconcile returns all pieces that are set aside, also those that are not due", contract, ""),
			reconciles(entry.Changed(reconcileLua, `'-inf', now)`, `'-inf', '+inf')`))},
		{entry.New("reconcile-counts-pieces", "a call of Reconcile answers how many pieces came back", contract, ""),
			reconciles(entry.Changed(reconcileLua, `n = n + redis.call('ZREM', KEYS[5], who)`, `n = n + redis.call('HGET', KEYS[6], who)
  redis.call('ZREM', KEYS[5], who)`))},
		{entry.New("reconcile-ends-a-hundred", "a call of Reconcile returns the pieces of a hundred orders at most, and State those of all", contract, ""),
			withState(reconciles(entry.Changed(reconcileLua, `'-inf', now)`, `'-inf', now, 'LIMIT', 0, 100)`)), stateReconciled)},
		{entry.New("reserved-not-shown", "State does not show the pieces that are set aside", contract, ""),
			withState(reconciles(reconcileLua), func(ctx context.Context, s *sale) (stockimpl.State, error) {
				state, err := stateReserved(ctx, s)
				state.Reserved = 0
				return state, err
			})},
	}
}

// soundTold are sound where the others of this file are not.
func soundTold() []Sale {
	return []Sale{
		{entry.New("sound-refuses-stale", "a purchase or a refund whose transaction failed is stale if RefuseStale was called", nil, ""),
			refusing(func(bool) bool { return true })},
		{entry.New("sound-state-reconciles", "pieces that are set aside and due come back by a purchase, by Reconcile, or when State is asked", nil, ""),
			withState(reconciles(reconcileLua), stateReconciled)},
		{entry.New("sound-keys-behind-marks", "the keys of a product are its name with a mark before it", nil, ""),
			keyed(func(product string) []string {
				return []string{"stock-of/" + product, "orders-of/" + product, "sold-of/" + product, "newest-of/" + product}
			})},
	}
}

// confusedMutants take some orders, or some products, for the same.
func confusedMutants() []Sale {
	once := entry.Breaks(variant.OncePerOrder, variant.NoUndersell)
	mixed := entry.Breaks(variant.NoOversell, variant.NoUndersell)
	numbered := func(name, mechanism string, order func(id int64) any) Sale {
		return Sale{entry.New(name, mechanism, once, ""), selling(func(s *saleSteps) { s.order = order })}
	}
	named := func(name, mechanism string, to func(product string) string) Sale {
		return Sale{entry.New(name, mechanism, mixed, ""), keyed(func(product string) []string { return (&sale{}).of(to(product)) })}
	}
	// shortened keeps so many digits of numbers that have another length.
	shortened := func(length, kept int) func(int64) any {
		return func(id int64) any {
			text := strconv.FormatInt(id, 10)
			if len(text) == length {
				text = text[:kept]
			}
			return text
		}
	}
	return []Sale{
		numbered("orders-by-the-second", "of an order number of 13 digits, which is a time in milliseconds, the first ten are kept", shortened(13, 10)),
		numbered("orders-without-two-digits", "of an order number of 18 digits the last two are lost", shortened(18, 16)),
		numbered("orders-by-20-bits", "an order is known by 20 bits of its number times the golden ratio", func(id int64) any { return golden(id) >> 44 }),
		numbered("orders-by-24-bits", "an order is known by 24 bits of its number times the golden ratio", func(id int64) any { return golden(id) >> 40 }),
		named("product-names-as-paths", "a product's name is cleaned like a path", path.Clean),
		named("product-names-as-html", "a product's name is read as HTML", html.UnescapeString),
		named("product-names-without-braces", "braces are taken out of a product's name", strings.NewReplacer("{", "", "}", "").Replace),
		named("product-names-trimmed", "a slash at the end of a product's name is dropped", func(product string) string { return strings.TrimSuffix(product, "/") }),
	}
}

// golden multiplies a number by the golden ratio, of which the upper bits are a hash.
func golden(id int64) uint64 { return uint64(id) * 0x9e3779b97f4a7c15 }

// keyed makes a variant of a sale with these keys for a product.
func keyed(keys func(product string) []string) stockimpl.Variant {
	return selling(func(s *saleSteps) { s.keys = keys })
}

// stateReconciled returns what is due and then reads the state.
func stateReconciled(ctx context.Context, s *sale) (stockimpl.State, error) {
	if err := s.reserving(ctx, reconcileLua).Err(); err != nil {
		return stockimpl.State{}, err
	}
	return stateReserved(ctx, s)
}

// withState makes a variant of one that reconciles, with another State.
func withState(v stockimpl.Variant, state func(context.Context, *sale) (stockimpl.State, error)) stockimpl.Variant {
	n := v.New
	v.New = func(env variant.Env, product string) stockimpl.Sale {
		r := n(env, product).(reconciling)
		r.saleSteps.state = state
		return r
	}
	return v
}

// refusing returns a sale that changes the stock in a transaction under WATCH. After RefuseStale, a purchase or a refund whose transaction
// failed answers ErrStale if refuses returns true, and begins again otherwise.
func refusing(refuses func(refund bool) bool) stockimpl.Variant {
	v := counting(func(*saleSteps) {})
	n := v.New
	v.Optimistic = true
	v.New = func(env variant.Env, product string) stockimpl.Sale {
		return &optimist{sale: n(env, product).(*sale), refuses: refuses}
	}
	return v
}

type optimist struct {
	*sale
	told    bool
	refuses func(refund bool) bool
}

// RefuseStale implements stockimpl.Optimist.
func (o *optimist) RefuseStale() { o.told = true }

// Buy implements stockimpl.Sale.
func (o *optimist) Buy(ctx context.Context, r stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return o.change(ctx, r.Quantity, false)
}

// Refund implements stockimpl.Sale.
func (o *optimist) Refund(ctx context.Context, r stockimpl.Order, _ lockimpl.Lock) (int64, error) {
	return o.change(ctx, r.Quantity, true)
}

func (o *optimist) change(ctx context.Context, quantity int, refund bool) (int64, error) {
	if quantity <= 0 {
		return stockimpl.Unsaid, fmt.Errorf("a quantity of %d", quantity)
	}
	by := -int64(quantity)
	if refund {
		by = -by
	}
	for {
		left, err := watchOnce(ctx, o.sale, by)
		if !errors.Is(err, redis.TxFailedErr) {
			return said(left, err)
		}
		if o.told && o.refuses(refund) {
			return stockimpl.Unsaid, stockimpl.ErrStale
		}
	}
}
