// Package stockimpl holds the sales under test: ways to subtract a purchase from a stock record in Redis or SQL.
//
// A sale runs inside or without a lock. Some rely entirely on the lock (plain), some do not need one (lua, watch), and
// some need a lock that grants fencing tokens (fenced). One sale is one file, with its scripts as .lua files beside it;
// [Variants] lists them all.
package stockimpl

import (
	"context"
	"errors"
	"fmt"

	"oversell/lockimpl"
	"oversell/variant"
)

// ErrSoldOut refuses an order: less is left than it wants. Nothing changed.
var ErrSoldOut = errors.New("sold out")

// ErrStale refuses an order: the stock has seen a newer fencing token, ticket or version than the caller's, or the
// pieces it needs are reserved, or no longer reserved. It does not say how many are left. Nothing changed; the caller
// may try again with a fresh lock.
var ErrStale = errors.New("stale")

// ErrRepeated answers an order that already had its effect: the effect stands, and nothing changed now. It counts as a
// success.
var ErrRepeated = errors.New("order was already counted")

// Unsaid is what Buy and Refund return as the number of pieces left if the sale does not report it.
const Unsaid = -1

// Order is one buyer's order. Sending the same ID twice means sending the same order twice.
type Order struct {
	ID int64
	// Quantity is at least 1. A sale answers any other with an error.
	Quantity int
}

// Sale is one client's view of one product's stock. It is used by one goroutine
// at a time. An error other than ErrSoldOut, ErrStale and ErrRepeated leaves the
// outcome open.
type Sale interface {
	// Open puts the product on sale with this many pieces. It is called once,
	// before any client starts.
	Open(ctx context.Context, stock int64) error
	// Buy takes o.Quantity pieces and returns how many are left according to this sale, or ErrSoldOut, ErrStale or
	// ErrRepeated. l is the lock the caller holds, the zero Lock if it holds none.
	Buy(ctx context.Context, o Order, l lockimpl.Lock) (left int64, err error)
	// Refund returns the pieces of an accepted order. ErrRepeated says that it was refunded before, ErrStale the same as
	// from Buy; a sale that remembers its orders refuses one that was never bought with another error. A sale that does
	// not refund answers with an error that wraps errors.ErrUnsupported.
	Refund(ctx context.Context, o Order, l lockimpl.Lock) (left int64, err error)
	// State reads what the server holds now.
	State(ctx context.Context) (State, error)
}

// Optimist is a sale that reads, and writes only if there was no other write in between.
type Optimist interface {
	// RefuseStale makes Buy and Refund answer ErrStale if there was another write in between. If RefuseStale was not
	// called, the sale begins again until the order is decided.
	RefuseStale()
}

// optimist is the setting of an Optimist.
type optimist struct{ refuses bool }

// RefuseStale implements [Optimist].
func (o *optimist) RefuseStale() { o.refuses = true }

// State is the stock as the server holds it.
type State struct {
	Left     int64
	Reserved int64 // set aside for orders that are not yet confirmed
	// Sold is the server's own count of pieces sold and not refunded, Unsaid if it keeps none.
	Sold int64
}

// String returns "3 left, 1 reserved, 6 sold", without what is not reserved or not counted.
func (s State) String() string {
	text := fmt.Sprintf("%d left", s.Left)
	if s.Reserved != 0 {
		text += fmt.Sprintf(", %d reserved", s.Reserved)
	}
	if s.Sold != Unsaid {
		text += fmt.Sprintf(", %d sold", s.Sold)
	}
	return text
}

// Variant describes a sale under test.
type Variant struct {
	Name, Source, Summary string
	// Promises are what its authors claim; a broken one fails a run.
	Promises []variant.Property
	// Flaws are its known ways to break promises; checks must catch them.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Optimistic says that New makes an [Optimist].
	Optimistic bool
	// Control marks a sale that is wrong on purpose.
	Control bool
	// New makes one client's Sale of the product with this name. It must not
	// use the network.
	New func(env variant.Env, product string) Sale
}

// Described returns what is known of the variant.
func (v Variant) Described() variant.Described {
	return variant.Described{Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control, Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs}
}
