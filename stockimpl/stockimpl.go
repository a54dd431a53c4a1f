// Package stockimpl holds the sales under test: the ways in which programs
// subtract a purchase from a stock record kept in Redis.
//
// A sale runs inside or without a lock. Some lean on the lock entirely (plain),
// some do not need one (lua, watch), and some need a lock that grants fencing
// tokens (fenced). One sale is one file, with its scripts as .lua files beside
// it; [Variants] lists them all.
package stockimpl

import (
	"context"
	"errors"

	"oversell/lockimpl"
	"oversell/variant"
)

// ErrSoldOut refuses an order: less is left than it wants. Nothing changed.
var ErrSoldOut = errors.New("sold out")

// ErrStale refuses an order: the stock has seen a newer fencing token, ticket
// or version than the caller's, or the pieces it needs are, or are no longer,
// reserved. It says nothing about how many are left. Nothing changed; the
// caller may try again with a fresh lock.
var ErrStale = errors.New("stale")

// ErrRepeated answers an order that already had its effect: it stands, and
// nothing changed now. It counts as a success.
var ErrRepeated = errors.New("order was already counted")

// Unsaid is what Buy and Refund return as pieces left when the sale does not know.
const Unsaid = -1

// Order is one buyer's wish. Sending the same ID twice is sending the same
// order twice.
type Order struct {
	ID int64
	// Quantity is at least 1. A sale sells no other: it answers with an error.
	Quantity int
}

// Sale is one client's view of one product's stock. It is used by one goroutine
// at a time. An error that is none of this package's leaves the outcome open.
type Sale interface {
	// Open puts the product on sale with this many pieces. It is called once,
	// before any client starts.
	Open(ctx context.Context, stock int64) error
	// Buy takes o.Quantity pieces and returns what is left as this sale
	// believes, or ErrSoldOut, ErrStale or ErrRepeated. l is the lock the
	// caller holds, the zero Lock when it holds none.
	Buy(ctx context.Context, o Order, l lockimpl.Lock) (left int64, err error)
	// Refund gives the pieces of an accepted order back.
	Refund(ctx context.Context, o Order, l lockimpl.Lock) (left int64, err error)
	// State reads what the server holds now.
	State(ctx context.Context) (State, error)
}

// Optimist is a sale that reads, and writes only if nobody wrote in between.
type Optimist interface {
	// RefuseStale has Buy and Refund answer ErrStale when somebody did. A sale that
	// was not told so begins again until the order is decided.
	RefuseStale()
}

// optimist is the choice of an Optimist.
type optimist struct{ refuses bool }

// RefuseStale implements [Optimist].
func (o *optimist) RefuseStale() { o.refuses = true }

// State is the stock as the server holds it.
type State struct {
	Left     int64
	Reserved int64 // set aside for orders that are not yet confirmed
	// Sold is the server's own count of pieces in the hands of buyers (sold and
	// not given back), Unsaid if it keeps none.
	Sold int64
}

// Variant describes a sale under test.
type Variant struct {
	Name, Source, Summary string
	// Promises are what its authors claim; a broken one fails a run.
	Promises []variant.Property
	// Flaws are the ways in which it must be caught.
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
