package stockimpl

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// errNotOnSale reports a missing stock record. It is not a declared refusal: a server that lost its data does not know
// what it sold before.
var errNotOnSale = errors.New("the product is not on sale: it has no stock record")

// errNeverBought reports the refund of an order that the sale does not know.
var errNeverBought = errors.New("the order was never bought")

// errNoToken reports a lock without a fencing token, passed to a sale that needs one.
var errNoToken = errors.New("the lock grants no fencing token, and this sale needs one")

// record is the common part of all sales: one server, one product, and a stock record that holds the number of pieces
// left. A sale that keeps nothing else uses its Open and State.
type record struct {
	rdb     redis.UniversalClient
	product string
	stock   string // the key of the stock record
}

func newRecord(env variant.Env, product string) record {
	r := record{rdb: env.Redis[0], product: product}
	r.stock = r.key("Stock")
	return r
}

// key names a key of this product. It contains the whole product name, so that a hash tag in the name keeps all keys on
// one node of a cluster.
func (r *record) key(of string) string { return of + ":" + r.product }

// Open writes the stock record.
func (r *record) Open(ctx context.Context, stock int64) error {
	if stock < 0 {
		return fmt.Errorf("open %q: the stock must not be negative, but is %d", r.product, stock)
	}
	if err := r.rdb.Set(ctx, r.stock, stock, 0).Err(); err != nil {
		return fmt.Errorf("open %q: %w", r.product, err)
	}
	return nil
}

// take subtracts the pieces, or gives them back and reports ErrSoldOut.
func (r *record) take(ctx context.Context, pieces int64) (int64, error) {
	left, err := r.rdb.DecrBy(ctx, r.stock, pieces).Result()
	if err != nil || left >= 0 {
		return left, err
	}
	if err := r.rdb.IncrBy(ctx, r.stock, pieces).Err(); err != nil {
		return Unsaid, err
	}
	return Unsaid, ErrSoldOut
}

// State reads the stock record: the simple sales keep nothing else.
func (r *record) State(ctx context.Context) (State, error) {
	left, err := read(ctx, r.rdb, r.stock)
	if err != nil {
		return State{}, fmt.Errorf("state of %q: %w", r.product, err)
	}
	return State{Left: left, Sold: Unsaid}, nil
}

// counts reads the stock record and further counters at one instant; a further counter that was never written is 0.
func (r *record) counts(ctx context.Context, further ...string) ([]int64, error) {
	values, err := r.rdb.MGet(ctx, append([]string{r.stock}, further...)...).Result()
	if err != nil {
		return nil, fmt.Errorf("state of %q: %w", r.product, err)
	}
	if values[0] == nil {
		return nil, fmt.Errorf("state of %q: %w", r.product, errNotOnSale)
	}
	counts := make([]int64, len(values))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			continue
		}
		if counts[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("state of %q: %w", r.product, err)
		}
	}
	return counts, nil
}

// order checks an order, carries it out, and wraps errors with what was attempted. It returns declared answers
// unchanged.
func (r *record) order(what string, o Order, carryOut func(pieces int64) (int64, error)) (int64, error) {
	if o.Quantity <= 0 {
		return Unsaid, fmt.Errorf("%s order %d of %q: a quantity of %d: it must be positive", what, o.ID, r.product, o.Quantity)
	}
	left, err := carryOut(int64(o.Quantity))
	switch {
	case err == nil:
		return left, nil
	case errors.Is(err, ErrSoldOut), errors.Is(err, ErrStale), errors.Is(err, ErrRepeated):
		return Unsaid, err
	}
	return Unsaid, fmt.Errorf("%s order %d of %q: %w", what, o.ID, r.product, err)
}

// changer is a sale that changes its stock in one way for purchases and for refunds.
type changer interface {
	Open(ctx context.Context, stock int64) error
	State(ctx context.Context) (State, error)
	order(what string, o Order, carryOut func(pieces int64) (int64, error)) (int64, error)
	change(ctx context.Context, by int64, l lockimpl.Lock) (int64, error)
}

// twoWay is a sale whose refund is its purchase with the other sign. It knows no orders, so whatever is
// handed in is added.
type twoWay struct{ changer }

// Buy implements Sale.
func (s twoWay) Buy(ctx context.Context, o Order, l lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) { return s.change(ctx, -pieces, l) })
}

// Refund implements Sale.
func (s twoWay) Refund(ctx context.Context, o Order, l lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(pieces int64) (int64, error) { return s.change(ctx, pieces, l) })
}

// optimisticTwoWay is one that can refuse what is stale.
type optimisticTwoWay struct {
	twoWay
	Optimist
}

// read gets the number of pieces left.
func read(ctx context.Context, c redis.Cmdable, stock string) (int64, error) {
	left, err := c.Get(ctx, stock).Int64()
	if errors.Is(err, redis.Nil) {
		return Unsaid, errNotOnSale
	}
	return left, err
}

// changed returns what is left after a purchase (change < 0) or a refund.
func changed(left, change int64) (int64, error) {
	if left+change < 0 {
		return Unsaid, ErrSoldOut
	}
	return left + change, nil
}

// answer reads the reply of this package's scripts: {answer, pieces}.
func answer(cmd *redis.Cmd) (int64, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return Unsaid, err
	}
	if len(reply) != 2 {
		return Unsaid, fmt.Errorf("a script replied %v", reply)
	}
	switch reply[0] {
	case "ok":
		switch pieces := reply[1].(type) {
		case int64:
			return pieces, nil
		case string: // as Redis keeps it, and not as a number of Lua
			if n, err := strconv.ParseInt(pieces, 10, 64); err == nil {
				return n, nil
			}
		}
	case "sold-out":
		return Unsaid, ErrSoldOut
	case "stale":
		return Unsaid, ErrStale
	case "repeated":
		return Unsaid, ErrRepeated
	case "absent":
		return Unsaid, errNotOnSale
	case "never-bought":
		return Unsaid, errNeverBought
	}
	return Unsaid, fmt.Errorf("a script replied %v", reply)
}
