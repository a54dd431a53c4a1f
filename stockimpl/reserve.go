package stockimpl

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// ReservedFor is how long the sale "reserve" sets pieces aside for an order
// that is not confirmed, by the server's clock.
const ReservedFor = 5 * time.Second

// reconcileBatch bounds how many reservations one script ends, so that no script blocks the server for long.
const reconcileBatch = 16

// Reconciler is a sale in which reserved pieces can return to the stock.
type Reconciler interface {
	// Reconcile returns to the stock the pieces reserved past their deadline, and reports how many orders lost their
	// reservation.
	Reconcile(ctx context.Context) (orders int64, err error)
}

//go:embed reserve_common.lua
var reserveCommonText string

//go:embed reserve_take.lua
var reserveTakeText string

//go:embed reserve_confirm.lua
var reserveConfirmText string

//go:embed reserve_refund.lua
var reserveRefundText string

//go:embed reserve_reconcile.lua
var reserveReconcileText string

var (
	reserveTake      = redis.NewScript(reserveCommonText + reserveTakeText)
	reserveConfirm   = redis.NewScript(reserveCommonText + reserveConfirmText)
	reserveRefund    = redis.NewScript(reserveCommonText + reserveRefundText)
	reserveReconcile = redis.NewScript(reserveCommonText + reserveReconcileText)
)

// reserve sells in two steps, with room for a payment between them: one script
// sets pieces aside for the order, another one confirms it. Both are keyed by
// the order's id, so either may be sent again. If a buyer dies between the two, no piece is lost: after its deadline
// the reservation returns to the stock, by the next buyers' scripts or by Reconcile.
//
// A reserved piece is neither sold nor free, and the answers say no more than
// that. ErrSoldOut means that too few are left even if every reservation came
// back, so it stays true. When only reservations stand in the way the answer is
// ErrStale: try again. A confirmation after its reservation ran out gets the
// same answer: its pieces go back to the stock, and the order may be sent again.
// "Left", in the answers of Buy and Refund, counts the pieces that are not
// bought: free and reserved. Above 2^53 pieces, which a script does not add
// exactly, the answer is Unsaid; an order for a few more than there are may then
// be ErrStale instead of ErrSoldOut.
//
// As with lua, an id is used up by its purchase: sent again, even after its
// refund, it is ErrRepeated and buys nothing.
type reserve struct {
	record
	keys           []string
	reserved, sold string
}

func newReserve(env variant.Env, product string) Sale {
	s := &reserve{record: newRecord(env, product)}
	s.reserved, s.sold = s.key("Reserved"), s.key("Sold")
	s.keys = []string{s.stock, s.key("Orders"), s.key("Deadlines"), s.reserved, s.sold}
	return s
}

func (s *reserve) Buy(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("buy", o, func(pieces int64) (int64, error) {
		_, err := answer(reserveTake.Run(ctx, s.rdb, s.keys, o.ID, pieces, ReservedFor.Milliseconds(), reconcileBatch))
		if err != nil {
			return Unsaid, err
		}
		return answer(reserveConfirm.Run(ctx, s.rdb, s.keys, o.ID))
	})
}

// Refund returns the pieces that the order with this id bought and ignores o.Quantity. A second refund is
// ErrRepeated; the refund of an order that was never confirmed is an error. Neither changes anything.
func (s *reserve) Refund(ctx context.Context, o Order, _ lockimpl.Lock) (int64, error) {
	return s.order("refund", o, func(int64) (int64, error) {
		return answer(reserveRefund.Run(ctx, s.rdb, s.keys, o.ID))
	})
}

// Reconcile implements Reconciler.
func (s *reserve) Reconcile(ctx context.Context) (orders int64, err error) {
	for {
		ended, err := reserveReconcile.Run(ctx, s.rdb, s.keys, reconcileBatch).Int64()
		if err != nil {
			return orders, fmt.Errorf("reconcile %q: %w", s.product, err)
		}
		orders += ended
		if ended < reconcileBatch {
			return orders, nil
		}
	}
}

// State reconciles first, so that Reserved counts only valid reservations.
func (s *reserve) State(ctx context.Context) (State, error) {
	if _, err := s.Reconcile(ctx); err != nil {
		return State{}, fmt.Errorf("state of %q: %w", s.product, err)
	}
	n, err := s.counts(ctx, s.reserved, s.sold)
	if err != nil {
		return State{}, err
	}
	return State{Left: n[0], Reserved: n[1], Sold: n[2]}, nil
}
