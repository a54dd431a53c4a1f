package stockimpl

import (
	"slices"

	"oversell/variant"
)

// The mechanisms behind the flaws that several sales share.
const (
	whyLostUpdate = "two buyers read the same stock, and the later SET undoes the earlier purchase"
	whyBooks      = "a SET that undoes another's purchase or refund leaves a record that no longer adds up with what was sold"
	whyTwoOrders  = "two buyers are told the same number of pieces left, which no order of purchases allows"
	whyOverrun    = "the section outlives its lease: the next holder reads the stock before the late one writes it"
	whyLateSet    = "a SET that the server executes after its client gave up undoes what later holders sold"
	whyNoIDs      = "the sale knows no order ids, so an order that is sent again is another order"

	whyReadUnfenced = "token 1 reads, token 2 reads, token 1 writes (no newer write was seen), token 2 writes: one purchase is undone"
	whyTicket       = "the buyers with tickets 1 and 2 read the same stock; 1 writes, and is on display; 2 is above 1, and overwrites that"

	whyBorrowedPieces = "a large order takes what is there for a moment, and a small one is refused in that moment; both are refused though a piece is left"
	whyDebt           = "a refused buyer's pieces are not yet given back when a refund arrives, and the next buyer is refused although stock is left"
	whyLostGiveBack   = "a buyer dies between DECRBY and giving back: its pieces are lost"
	whyNoReply        = "a buyer who gets no reply to a DECRBY cannot tell that pieces must be given back"
	whyTwice          = "the DECRBY counted though its reply was lost; the order, asked for again, is subtracted again"
	whyPaidForTwo     = "the write counted though its reply was lost; the order, asked for again, is subtracted again, and its buyer has it once"
	whyCheckedTooSoon = "both copies of an order look its id up before either has written it"
	whyRetry          = "a command that the driver sends again counts again, or is answered as if it had counted before"
	whyFailover       = "purchases were on the lost master only: the promoted replica sells the same pieces again"
	whyForgotten      = "DECRBY counts from 0 where the stock is gone with the data: every buyer is told that it is sold out"
	whyNeverWritten   = "the buyer dies after the pieces are taken and before the id is written; the order, sent again, is new"
)

// onOneMaster returns the flaws of every sale in Redis: Redis replicates after it has answered, and cannot distinguish
// a repeated command from a new one.
func onOneMaster(more ...variant.Property) (flaws []variant.Flaw) {
	for _, p := range append([]variant.Property{variant.NoOversell, variant.NoUndersell, variant.Linearizable}, more...) {
		flaws = append(flaws, variant.Flaw{Property: p, Fault: variant.Failover, Why: whyFailover})
	}
	for _, p := range []variant.Property{variant.NoUndersell, variant.Linearizable} {
		flaws = append(flaws, variant.Flaw{Property: p, Fault: variant.Retry, Why: whyRetry})
	}
	return flaws
}

// demands are the promises that a user of the sale expects; once and fencing add a promise each.
var (
	demands = []variant.Property{variant.NoOversell, variant.NoUndersell, variant.Linearizable}
	once    = []variant.Property{variant.NoOversell, variant.NoUndersell, variant.OncePerOrder, variant.Linearizable}
	fencing = []variant.Property{variant.NoOversell, variant.NoUndersell, variant.Fencing, variant.Linearizable}
)

// undone are the flaws of a sale where one write undoes another's purchase or refund.
func undone(fault variant.Fault, under, why string) []variant.Flaw {
	return []variant.Flaw{
		{Property: variant.NoOversell, Fault: fault, Under: under, Why: why},
		{Property: variant.NoUndersell, Fault: fault, Under: under, Why: whyBooks},
		{Property: variant.Linearizable, Fault: fault, Under: under, Why: whyTwoOrders},
	}
}

// readsThenWrites are the flaws of a sale in Redis that reads the stock and later writes what is left
// of it: why others come in between, why they do when the lease is over, and why late writes count.
func readsThenWrites(between, over, late string) []variant.Flaw {
	return slices.Concat(
		undone(variant.NoFault, variant.Unserialized, between),
		undone(variant.Overrun, "", over),
		undone(variant.LateRequest, "", late),
	)
}

// givesBack are the flaws of a sale that takes pieces first and gives them back if they are too many.
var givesBack = []variant.Flaw{
	{Property: variant.NoUndersell, Fault: variant.NoFault, Under: variant.WithQuantity + variant.And + variant.Unserialized, Why: whyBorrowedPieces},
	{Property: variant.Linearizable, Fault: variant.NoFault, Under: variant.WithQuantity + variant.And + variant.Unserialized, Why: whyBorrowedPieces},
	{Property: variant.NoUndersell, Fault: variant.NoFault, Under: variant.WithRefunds + variant.And + variant.Unserialized, Why: whyDebt},
	{Property: variant.Linearizable, Fault: variant.NoFault, Under: variant.WithRefunds + variant.And + variant.Unserialized, Why: whyDebt},
	{Property: variant.NoUndersell, Fault: variant.Crash, Why: whyLostGiveBack},
	{Property: variant.NoUndersell, Fault: variant.DropReply, Why: whyNoReply},
	{Property: variant.Linearizable, Fault: variant.Crash, Why: whyLostGiveBack},
	{Property: variant.Linearizable, Fault: variant.DropReply, Why: whyNoReply},
	{Property: variant.NoUndersell, Fault: variant.RestartEmpty, Why: whyForgotten},
	{Property: variant.Linearizable, Fault: variant.RestartEmpty, Why: whyForgotten},
}

// noIDs are the flaws of a sale that does not know an order again; paidForTwo adds that of one whose
// answer can be lost.
var (
	noIDs      = []variant.Flaw{{Property: variant.OncePerOrder, Fault: variant.Resend, Why: whyNoIDs}}
	paidForTwo = append(noIDs[:1:1], variant.Flaw{Property: variant.NoUndersell, Fault: variant.DropReply, Why: whyPaidForTwo})
)

// Variants are all the sales, in the order in which reports show them.
var Variants = []Variant{
	{
		Name:     "plain",
		Source:   variant.TextListing + ", " + variant.TextLease,
		Summary:  "GET the stock, subtract in the client, SET it; relies entirely on the lock",
		Promises: demands,
		Flaws:    slices.Concat(onOneMaster(), readsThenWrites(whyLostUpdate, whyOverrun, whyLateSet), paidForTwo),
		New:      newPlain,
	},
	{
		Name:       "watch",
		Source:     variant.TextDispatch + ", optimistic locking",
		Summary:    "WATCH, GET, MULTI, SET, EXEC, again until nobody wrote in between",
		Promises:   demands,
		Flaws:      append(onOneMaster(), paidForTwo...),
		Optimistic: true,
		New:        newWatch,
	},
	{
		Name:     "lua",
		Source:   "ours",
		Summary:  "one script decides an order and remembers its id",
		Promises: once,
		Flaws:    onOneMaster(variant.OncePerOrder),
		New:      newLua,
	},
	{
		Name:     "fenced",
		Source:   "ours",
		Summary:  "read and write both show the lock's fencing token; an older one is refused",
		Promises: fencing,
		Flaws:    append(onOneMaster(variant.Fencing), paidForTwo...),
		Needs:    variant.Needs{Fence: true},
		New:      newFenced,
	},
	{
		Name:     "reserve",
		Source:   "ours",
		Summary:  "one script sets pieces aside until a deadline, another confirms the order; late reservations go back",
		Promises: once,
		Flaws:    onOneMaster(variant.OncePerOrder),
		Needs:    variant.Needs{ServerClock: true},
		New:      newReserve,
	},
	{
		Name:     "decr",
		Source:   "ours, as widely copied",
		Summary:  "DECRBY first; below zero means sold out, and INCRBY gives back",
		Promises: demands,
		Flaws: slices.Concat(onOneMaster(), givesBack, []variant.Flaw{
			{Property: variant.OncePerOrder, Fault: variant.Resend, Why: whyNoIDs},
			{Property: variant.OncePerOrder, Fault: variant.DropReply, Why: whyTwice},
		}),
		Control: true,
		New:     newDecr,
	},
	{
		Name:     "check-then-act",
		Source:   "ours",
		Summary:  "look the order id up, DECRBY, write the id down: three steps that are not one",
		Promises: once,
		Flaws: slices.Concat(onOneMaster(variant.OncePerOrder), []variant.Flaw{
			{Property: variant.OncePerOrder, Fault: variant.Resend, Under: variant.Unserialized, Why: whyCheckedTooSoon},
			{Property: variant.OncePerOrder, Fault: variant.NoFault, Under: variant.WithRepeats + variant.And + variant.Unserialized, Why: whyCheckedTooSoon},
			{Property: variant.OncePerOrder, Fault: variant.Crash, Why: whyNeverWritten},
			{Property: variant.OncePerOrder, Fault: variant.DropReply, Why: whyTwice},
		}, givesBack),
		Control: true,
		New:     newCheckThenAct,
	},
	{
		Name:     "ticket",
		Source:   variant.TextDispatch + ", the picture of the gym",
		Summary:  "take a number, GET the stock, SET it if the number is above the one on display",
		Promises: demands,
		Flaws:    slices.Concat(onOneMaster(), readsThenWrites(whyTicket, whyTicket, whyTicket), paidForTwo),
		Control:  true,
		New:      newTicket,
	},
	{
		Name:     "ticket-machine",
		Source:   variant.TextDispatch + ", the picture of the gym, with a machine that one client at a time uses",
		Summary:  "as ticket, and wait until the machine is free before the SET",
		Promises: demands,
		Flaws:    slices.Concat(onOneMaster(), readsThenWrites(whyTicket, whyTicket, whyTicket), paidForTwo),
		Control:  true,
		New:      newTicketMachine,
	},
	{
		Name:     "fenced-write",
		Source:   "ours",
		Summary:  "GET freely, and show the lock's fencing token on the write only",
		Promises: fencing,
		Flaws:    slices.Concat(onOneMaster(variant.Fencing), readsThenWrites(whyReadUnfenced, whyReadUnfenced, whyReadUnfenced), paidForTwo),
		Needs:    variant.Needs{Fence: true},
		Control:  true,
		New:      newFencedWrite,
	},
	{
		Name:       "sql-version",
		Source:     variant.TextDispatch + ", optimistic locking",
		Summary:    "SELECT stock and version, UPDATE if the version is still that one, again until it is",
		Promises:   demands,
		Flaws:      noIDs,
		Needs:      variant.Needs{SQL: true},
		Optimistic: true,
		New:        newSQLVersion,
	},
	{
		Name:     "sql-for-update",
		Source:   variant.TextDispatch + ", pessimistic locking: the database's own lock",
		Summary:  "a transaction: SELECT … FOR UPDATE, UPDATE, COMMIT",
		Promises: demands,
		Flaws:    noIDs,
		Needs:    variant.Needs{SQL: true},
		New:      newSQLForUpdate,
	},
	{
		Name:     "sql-conditional",
		Source:   "ours",
		Summary:  "one UPDATE subtracts if enough is left; no row found means sold out",
		Promises: demands,
		Flaws:    noIDs,
		Needs:    variant.Needs{SQL: true},
		New:      newSQLConditional,
	},
	{
		Name:     "sql-plain",
		Source:   "ours",
		Summary:  "SELECT the stock, subtract in the client, UPDATE it to that; relies entirely on the lock",
		Promises: demands,
		Flaws: slices.Concat(
			undone(variant.NoFault, variant.Unserialized, whyLostUpdate),
			undone(variant.Overrun, "", whyOverrun),
			noIDs,
		),
		Needs:   variant.Needs{SQL: true},
		Control: true,
		New:     newSQLPlain,
	},
}

// Find returns the sale with this name.
func Find(name string) (Variant, bool) {
	return variant.First(Variants, func(v Variant) bool { return v.Name == name })
}
