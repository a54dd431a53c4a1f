package limits

import (
	"math"
	"time"
)

// Masters is the largest number of independent masters.
const Masters = 64

const day = 24 * time.Hour

// Run holds the limits of the options of runs and comparisons.
var Run = Table{
	count("clients", 1, 100_000, "each is a goroutine with connections or a share of them, or a coroutine"),
	count("stock", 0, 1_000_000_000, "sums of all orders must stay exact"),
	count("quantity", 1, 1_000_000, "sums of all orders must stay exact"),
	count("ops", 0, 100_000_000, "a history of more does not fit on most disks"),
	span("rtt", 0, time.Minute, "no network takes longer"),
	count("pool", 0, 10_000, "each is a connection to every server"),
	count("attempts", 0, 1_000_000, "more never happen in a run"),
	share("repeat", "it is a probability"),
	count("batch", 1, 1000, "one call of a queue takes no more"),
	share("withdraw", "it is a probability"),
	share("peek", "it is a probability"),
	share("resend", "it is a probability"),
	share("refund", "it is a probability"),
	below(share("die", "it is a probability, and one client must live")),
	count("abandon", 0, 1000, "each is waited for until its limit"),
	whole(span("ttl", time.Millisecond, day, "Redis counts in whole milliseconds, and a run ends within a day")),
	span("wait", 0, day, "a run ends within a day"),
	span("retry", 0, time.Hour, "waiters that look more rarely see nothing of a run"),
	span("hold", 0, time.Hour, "a section of more than an hour shows nothing"),
	span("delay", 0, time.Hour, "consumers wait for the last task"),
	whole(span("visibility", 0, time.Hour, "Redis counts in whole milliseconds, and consumers wait for the last task")),
	span("timeout", time.Millisecond, time.Hour, "an answer takes a part of a millisecond, and a client that waits longer than an hour shows nothing"),
	span("duration", 0, day, "a run ends within a day"),
	seed,
}

// Compare holds the limits of the further options of comparisons.
var Compare = Table{
	count("rounds", 1, 10_000, "each round runs every contender once in every configuration"),
	span("time", time.Millisecond, 7*day, "a comparison ends within a week"),
	span("measure", 0, time.Hour, "a comparison ends within a week"),
}

// Explore holds the limits of searches.
var Explore = Table{
	count("clients", 1, 6, "a search with more does not end"),
	count("tries", 1, 100, "a search with more does not end"),
	count("crashes", 0, 6, "that is every client"),
	count("lost", 0, 100, "a search with more does not end"),
	count("late", 0, 100, "a search with more does not end"),
	count("advances", 0, 100, "a search with more does not end"),
	count("stalls", 0, 100, "a search with more does not end"),
	count("resends", 0, 1, "a buyer sends an order again once or never"),
	count("depth", 0, 1_000_000, "a search with more does not end"),
	count("memory", 0, 1<<20, "it is in MB"),
	count("masters", 0, 9, "a search with more does not end"),
	count("stock", 1, 1_000_000, "a few pieces show all that more would"),
	count("quantity", 1, 1_000_000, "sums of all orders must stay exact"),
	whole(span("ttl", time.Millisecond, 15*time.Minute, "Redis counts in whole milliseconds, and a search looks 70 minutes ahead")),
	span("hold", 0, 15*time.Minute, "a search looks 70 minutes ahead"),
	whole(span("visibility", 0, 15*time.Minute, "Redis counts in whole milliseconds, and a search looks 70 minutes ahead")),
	span("time", 0, 7*day, "a search ends within a week"),
	count("times", 1, 10_000, "each replay starts servers"),
}

// Gate holds the limits of a gate's options, on its command line and in its plan.
var Gate = Table{
	count("repeat", 1, 10_000, "each is a run, or a round of three"),
	span("budget", time.Microsecond, 7*day, "a gate ends within a week"),
	seed,
}

// Proxy holds the limits of a proxy's options.
var Proxy = Table{seed}

// Fault holds the limits of the numbers in a fault sentence.
var Fault = Table{
	span("clock", -10*366*day, 10*366*day, "clocks are moved by at most ten years"),
	span("time", 0, day, "a run ends within a day"),
	count("nth", 1, 1_000_000_000, "more never happen in a run"),
	count("times", 1, 1_000_000_000, "more never happen in a run"),
	count("client", 1, 100_000, "that is the largest number of clients"),
	count("node", 1, 3*Masters, "there are no more servers"),
}

// seed fixes random choices.
var seed = Limit{Name: "seed", Unit: Seed, Most: math.MaxUint64, Why: "it is a number of 64 bits"}

func count(name string, least, most int64, why string) Limit {
	return Limit{Name: name, Unit: Count, Least: float64(least), Most: float64(most), Why: why}
}

func span(name string, least, most time.Duration, why string) Limit {
	return Limit{Name: name, Unit: Span, Least: float64(least), Most: float64(most), Why: why}
}

func share(name, why string) Limit { return Limit{Name: name, Unit: Share, Most: 1, Why: why} }

func below(l Limit) Limit { l.Below = true; return l }

func whole(l Limit) Limit { l.Whole = time.Millisecond; return l }
