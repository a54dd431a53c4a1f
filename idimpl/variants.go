package idimpl

import (
	"slices"

	"oversell/variant"
)

// Why generators break.
const (
	whyLostUpdate = "two clients read the same last number and both write, and hand out, the next one"
	whySetBack    = "a write that comes late sets the counter back, and lower numbers follow higher ones"
	whyOverrun    = "the section outlives its lease: the next holder reads the last number before the late one writes"
	whyFailover   = "the promoted replica had not seen the last numbers and gives them out again"
	whyAnew       = "the server lost the counter with its data: numbers begin at 1 again"
	whyGap        = "the number was counted, and the client that it was for died before it used it"
)

// all is what a generator can promise.
var all = []variant.Property{variant.UniqueIDs, variant.NoGaps, variant.RealTimeOrder, variant.Linearizable}

// begunAnew lists the flaws of a generator whose counter is on one server.
var begunAnew = []variant.Flaw{
	{Property: variant.UniqueIDs, Fault: variant.Failover, Why: whyFailover},
	{Property: variant.RealTimeOrder, Fault: variant.Failover, Why: whyFailover},
	{Property: variant.Linearizable, Fault: variant.Failover, Why: whyFailover},
	{Property: variant.UniqueIDs, Fault: variant.RestartEmpty, Why: whyAnew},
	{Property: variant.RealTimeOrder, Fault: variant.RestartEmpty, Why: whyAnew},
	{Property: variant.Linearizable, Fault: variant.RestartEmpty, Why: whyAnew},
}

// Variants lists every generator.
var Variants = []Variant{
	{
		Name: "get-set", Source: "ours: numbers as the listings write their sale",
		Summary:  "GET the last number, SET the next; relies entirely on the lock",
		Promises: all,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.UniqueIDs, Fault: variant.NoFault, Under: variant.Unserialized, Why: whyLostUpdate},
			{Property: variant.RealTimeOrder, Fault: variant.NoFault, Under: variant.Unserialized, Why: whySetBack},
			{Property: variant.Linearizable, Fault: variant.NoFault, Under: variant.Unserialized, Why: whyLostUpdate},
			{Property: variant.UniqueIDs, Fault: variant.Overrun, Why: whyOverrun},
			{Property: variant.RealTimeOrder, Fault: variant.Overrun, Why: whySetBack},
			{Property: variant.Linearizable, Fault: variant.Overrun, Why: whyOverrun},
			{Property: variant.NoGaps, Fault: variant.Crash, Why: whyGap},
		}, begunAnew),
		New: newGetSet,
	},
	{
		Name: "incr", Source: "ours",
		Summary:  "INCR",
		Promises: all,
		Flaws: slices.Concat([]variant.Flaw{
			{Property: variant.NoGaps, Fault: variant.Crash, Why: whyGap},
			{Property: variant.NoGaps, Fault: variant.Retry, Why: "the driver counts again when it sends the command again, and no client gets the first number"},
		}, begunAnew),
		New: newIncr,
	},
	{
		Name: "script", Source: "ours",
		Summary:  "one script increments the counter and stores which request got the number",
		Promises: all,
		Flaws:    begunAnew,
		New:      newScript,
	},
	{
		Name: "block", Source: "ours, as widely used",
		Summary:  "INCRBY 20, and the block is handed out without asking",
		Promises: []variant.Property{variant.UniqueIDs},
		Flaws: []variant.Flaw{
			{Property: variant.UniqueIDs, Fault: variant.Failover, Why: whyFailover},
			{Property: variant.UniqueIDs, Fault: variant.RestartEmpty, Why: whyAnew},
			{Property: variant.NoGaps, Fault: variant.NoFault, Why: "the numbers of a block that its client has not used up when it stops are never given out"},
			{Property: variant.RealTimeOrder, Fault: variant.NoFault, Why: "a client hands out its block while others hand out higher ones"},
			{Property: variant.Linearizable, Fault: variant.NoFault, Why: "a client hands out its block while others hand out higher ones"},
		},
		New: newBlock,
	},
}

// Find returns the generator with this name.
func Find(name string) (Variant, bool) {
	return variant.First(Variants, func(v Variant) bool { return v.Name == name })
}
