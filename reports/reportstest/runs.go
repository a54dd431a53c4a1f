package reportstest

import (
	"oversell/history"
	"oversell/reports"
	"oversell/variant"
)

// latency returns the latency of an operation.
func latency(p50, p99, p999 float64) reports.Latency {
	return reports.Latency{Count: 500, Call: reports.Percentiles{P50: p50, P99: p99, P999: p999, Max: p999}}
}

// sold returns a sale under a lock.
func sold(lock string, stock, pieces int64, properties ...reports.Property) reports.Run {
	unknown := int64(0)
	r := reports.Run{
		Scenario: "seckill", Lock: lock, Sale: "plain", Verdict: reports.Pass, Expected: reports.Pass, Throughput: 8123.4, Stock: &stock, Sold: &pieces, Unknown: &unknown,
		Latency:    map[string]reports.Latency{"acquire": latency(0.05, 160, 182), "buy": latency(0.08, 0.41, 2.24), "release": latency(0.04, 0.36, 16.4)},
		Properties: properties,
	}
	for _, p := range properties {
		if p.Result == reports.Broken {
			r.Verdict, r.Expected = reports.Violated, reports.Violated
		}
	}
	return r
}

// untried returns conditions under which a sale is known to break.
func untried(under ...string) (all []history.Untried) {
	for _, u := range under {
		all = append(all, history.Untried{Under: u, Breaks: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}, Why: "it is declared"})
	}
	return all
}

// Document returns a document of several runs: passed, broken, undecided, not as declared, with a fault, and with
// names that are long or Chinese.
func Document() reports.Document {
	held := reports.Property{Name: variant.NoOversell, Of: variant.Sale, Result: reports.Holds, Measured: reports.Holds, Opportunities: 1204, Why: "sold 500 of 500"}
	broken := []reports.Property{
		{Name: variant.NoOversell, Of: variant.Sale, Result: reports.Broken, Measured: reports.Broken, Declared: true, Count: 4147, Unit: "piece", Why: "sold 4,647 of 500: client 29 and client 30 both sold down to 481 left, at the same time (13.665 ms to 13.968 ms and 13.788 ms to 14.159 ms)"},
		{Name: variant.NoUndersell, Of: variant.Sale, Result: reports.Broken, Measured: reports.Broken, Declared: true, Count: 4147, Unit: "piece", Why: "4,147 pieces too many: of 500, 4,647 sold, 0 left"},
		{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.Broken, Measured: reports.Broken, Declared: true, Count: 2, Why: `client 32 was granted "order" at 4.799 ms by SET after TTL -1 (takeover), while client 34 held it since 4.776 ms`},
		{Name: variant.Linearizable, Of: variant.Lock, Result: reports.NotClaimed, Measured: reports.Broken, Count: 3314, Why: "two grants at once"},
	}
	none := sold("none", 500, 16_539, broken[0])
	none.KnownToBreak = untried("overrun", "drop-reply", "failover")
	printed := sold("php-lock-printed", 500, 4_647, broken...)
	printed.KnownToBreak = untried("overrun", "crash", "drop-reply", "failover", "restart-empty")
	sound := sold("setnx-expire-atomic", 500, 500, held)
	sound.KnownToBreak = untried("overrun", "drop-reply", "failover", "restart-empty")
	fenced := sold("fenced", 500, 500, held)
	fenced.Sale, fenced.KnownToBreak = "fenced", untried("drop-reply", "failover", "restart-empty")
	ours := sold("我们的分布式锁-基于Redis实现", 500, 500, held)
	ours.Expected, ours.Notes = "", []string{"3 operations ended in an error"}
	ours.Faults = []reports.Fault{{Name: "freeze holder 150ms 5%", Fired: 12, Holders: new(int64(12))}}
	ours.Phases = []reports.Phase{
		{Name: "before", ToMS: 120, Operations: 400, Throughput: 3333, Latency: ours.Latency},
		{Name: "during", FromMS: 120, ToMS: 620, Operations: 90, Throughput: 180, Latency: ours.Latency},
	}
	odd := sold("watchdog", 500, 501, broken[0])
	odd.Expected = reports.Pass
	stopped := sold("redlock", 500, 499)
	stopped.Verdict, stopped.Why = reports.Inconclusive, "the run was stopped before its end"
	return reports.Document{Schema: reports.Schema, Runs: []reports.Run{none, printed, sound, fenced, ours, odd, stopped}}
}

// Catalogue returns a small catalogue, with entries that variants share and entries of
// their own.
func Catalogue() reports.Catalogue {
	flaw := func(p variant.Property, f variant.Fault, under, why string) variant.Flaw {
		return variant.Flaw{Property: p, Fault: f, Under: under, Why: why}
	}
	shared := []variant.Flaw{
		flaw(variant.MutualExclusion, "failover", "", "the grant was on the lost master only: the promoted replica grants the lock again"),
		flaw(variant.Linearizable, "failover", "", "the grant was on the lost master only: the promoted replica grants the lock again"),
		flaw(variant.MutualExclusion, "restart-empty", "", "a server without its data grants a lock again that is held"),
	}
	asks := "DEL asks nobody: a holder that outlived its lease deletes its successor's lock"
	promises := []variant.Property{variant.MutualExclusion, variant.OwnerOnlyRelease, variant.Progress}
	return reports.Catalogue{
		Schema:    reports.CatalogueSchema,
		Scenarios: []reports.ScenarioInfo{{Name: "seckill", Source: "a text about locks", Summary: "a flash sale: every buyer acquires the lock, buys, releases the lock, and repeats until the stock is gone"}, {Name: "floors", Summary: "floor numbers of a forum thread", Promises: []history.Promise{{Of: variant.IDs, Property: variant.NoGaps}}}},
		Locks: []variant.Described{
			{Name: "none", Source: "ours, control", Summary: "no lock: every client may enter at any time", Control: true, Flaws: []variant.Flaw{flaw(variant.MutualExclusion, variant.NoFault, "", "no client is kept out")}},
			{Name: "php-lock", Was: []string{"redislock"}, Source: "基于Redis实现分布式锁以及任务队列 (PHP lock and queue, copy of 2018)", Summary: "SETNX, EXPIRE, takeover with an expiry when TTL < 0, release by GET, compare, DEL", Promises: promises, Needs: variant.Needs{WholeSeconds: true},
				Flaws: append([]variant.Flaw{flaw(variant.Progress, variant.NoFault, "abandon", "the lease of a dead holder runs for decades"), flaw(variant.Progress, "crash", "", "the lease of a dead holder runs for decades")}, shared...)},
			{Name: "set-nx-ex", Source: "notes on task dispatch", Summary: "SET 1 NX EX in one command; released by DEL", Promises: append(promises, variant.Linearizable), Needs: variant.Needs{WholeSeconds: true},
				Flaws: append([]variant.Flaw{flaw(variant.MutualExclusion, "overrun", "", asks), flaw(variant.OwnerOnlyRelease, "overrun", "", asks), flaw(variant.OwnerOnlyRelease, "failover", "", asks)}, shared...)},
			{Name: "lua-release", Source: "notes on locks and Lua scripts", Summary: "SET token NX EX; released by a script that compares and deletes", Promises: append(promises, variant.Linearizable), Flaws: shared},
		},
		Faults: []reports.FaultInfo{
			{Name: "crash", Level: "client", Syntax: "crash [before|after] [COMMAND] [client N] [at D] [nth N|P%]", Summary: "the client dies: no command of it goes out any more, nor does it see an answer"},
			{Name: "clock-node", Level: "server", Syntax: "clock +D|-D node N [at D] [for D|for good]", Summary: "the clock of a server jumps ahead by D, or back"},
		},
		Properties: []variant.PropertyInfo{{Name: variant.NoOversell, Of: variant.Sale, Promise: "accepted sales never exceed the stock"}},
	}
}
