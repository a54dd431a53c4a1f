package stocktest_test

import (
	"context"
	"fmt"
	"testing"

	"oversell/lockimpl"
	"oversell/stockimpl"
	"oversell/stockimpl/stocktest"
	"oversell/variant"
)

// scripted is one client's view of a sale that decides an order in a script. The suite needs no more than this.
type scripted struct {
	env     variant.Env
	product string
}

func (s scripted) Open(ctx context.Context, stock int64) error {
	return s.env.Redis[0].Set(ctx, "stock:"+s.product, stock, 0).Err()
}

func (s scripted) Buy(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
	if o.Quantity < 1 {
		return 0, fmt.Errorf("an order for %d pieces", o.Quantity)
	}
	const script = `
		local left = tonumber(redis.call("GET", KEYS[1]))
		if left < tonumber(ARGV[1]) then return -1 end
		return redis.call("DECRBY", KEYS[1], ARGV[1])`
	left, err = s.env.Redis[0].Eval(ctx, script, []string{"stock:" + s.product}, o.Quantity).Int64()
	if err == nil && left < 0 {
		err = stockimpl.ErrSoldOut
	}
	return left, err // any other error: nobody knows whether the pieces were taken
}

// Refund may return errors.ErrUnsupported instead: the suite then skips the rules about refunds.
func (s scripted) Refund(ctx context.Context, o stockimpl.Order, _ lockimpl.Lock) (left int64, err error) {
	if o.Quantity < 1 {
		return 0, fmt.Errorf("a refund of %d pieces", o.Quantity)
	}
	return s.env.Redis[0].IncrBy(ctx, "stock:"+s.product, int64(o.Quantity)).Result()
}

func (s scripted) State(ctx context.Context) (stockimpl.State, error) {
	left, err := s.env.Redis[0].Get(ctx, "stock:"+s.product).Int64()
	return stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, err
}

// mine describes the sale. It does not promise once-per-order: an order that is sent again buys again, and a refund that is
// sent again refunds again.
var mine = stockimpl.Variant{
	Name:     "mine",
	Promises: []variant.Property{variant.NoOversell, variant.NoUndersell, variant.Linearizable},
	New:      func(env variant.Env, product string) stockimpl.Sale { return scripted{env, product} },
}

// The test of a sale belongs in a file whose name ends in _test.go.
func ExampleRun() {
	testMySale := func(t *testing.T) { // func TestMySale
		stocktest.Run(t, mine, stocktest.Auto(t))
	}
	_ = testMySale
}

// TestExample runs the suite on the example's sale.
func TestExample(t *testing.T) { stocktest.Run(t, mine, stocktest.Auto(t)) }
