package stockimpl

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

//go:embed lua_buy.lua
var luaBuyText string

//go:embed lua_refund.lua
var luaRefundText string

var (
	luaBuy    = redis.NewScript(luaBuyText)
	luaRefund = redis.NewScript(luaRefundText)
)

// lua decides an order in one script, which the server runs without
// interruption, and remembers it under its id. The script is the critical section, so no lock is needed; the id makes
// repeated orders, and so lost replies, harmless.
//
// An id is used up by its purchase: sent again, even after its refund, it is
// ErrRepeated and buys nothing. An order that was refused is not remembered
// and may be sent again.
type lua struct {
	record
	keys []string
	sold string
}

func newLua(env variant.Env, product string) Sale {
	r := newRecord(env, product)
	sold := r.key("Sold")
	return &lua{record: r, keys: []string{r.stock, r.key("Orders"), sold}, sold: sold}
}

func (s *lua) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) {
		return answer(luaBuy.Run(ctx, s.rdb, s.keys, o.ID, pieces))
	})
}

// Refund returns the pieces that the order with this id took and ignores o.Quantity. A second refund is ErrRepeated;
// the refund of an id that never bought anything is an error. Neither changes anything.
func (s *lua) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(int64) (int64, error) {
		return answer(luaRefund.Run(ctx, s.rdb, s.keys, o.ID))
	})
}

func (s *lua) State(ctx context.Context) (State, error) {
	n, err := s.counts(ctx, s.sold)
	if err != nil {
		return State{}, err
	}
	return State{Left: n[0], Sold: n[1]}, nil
}
