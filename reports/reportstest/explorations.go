package reportstest

import (
	"oversell/reports"
	"oversell/variant"
)

// Explorations returns handmade examples, one for each kind of result.
func Explorations() map[string]reports.Exploration {
	return map[string]reports.Exploration{
		"takeover":     Takeover(),
		"late-release": lateRelease(),
		"crash":        crash(),
		"masters":      masters(),
		"pass":         safe(),
		"inconclusive": inconclusive(),
	}
}

// Takeover returns a takeover of a live owner's lock, as in docs/explore.md.
func Takeover() reports.Exploration {
	why := "client 1 took the lock over while client 0, alive, had not yet set its expiry"
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "mutex", Lock: "php-lock-printed", Masters: 1, TTLMS: 1000,
		Bounds:  reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, Lost: 1, Late: 1, Advances: 2},
		Verdict: reports.Violated, Why: why, Expected: reports.Violated,
		ExpectedWhy: []string{"SETNX and EXPIRE are two commands: between them the lock looks abandoned"},
		Properties: []reports.Property{
			breaking(variant.Lock, variant.MutualExclusion, why),
			{Name: variant.Progress, Of: variant.Lock, Result: reports.Unknown, Measured: reports.Unknown, Why: "the search ended at the counterexample"},
			{Name: variant.FIFO, Of: variant.Lock, Result: reports.NotClaimed, Measured: reports.Unknown, Why: "not judged"},
		},
		Counterexample: &reports.Counterexample{
			Of: variant.Lock, Property: variant.MutualExclusion, Sentence: why, Clients: []string{"client 0", "client 1"},
			Steps: []reports.Step{
				{Kind: reports.StepCommand, Client: 0, Text: "set lock exp nx -> OK", Redis: "lock=exp", Commands: [][]string{{"set", "Lock:order", "1768-exp", "nx"}}, Reply: "+OK\r\n"},
				{Kind: reports.StepCommand, Client: 1, Text: "set lock exp nx -> (nil)", Redis: "lock=exp"},
				{Kind: reports.StepCommand, Client: 1, Text: "ttl lock -> -1", Redis: "lock=exp"},
				{Kind: reports.StepCommand, Client: 0, Text: "expire lock 1 -> 1", Marks: []string{reports.MarkEnter}, Redis: "lock=exp (1 s)"},
				{Kind: reports.StepCommand, Client: 1, Text: "set lock exp ex 1 -> OK", Marks: []string{reports.MarkEnter}, Redis: "lock=exp (1 s)"},
			},
		},
		Stats:   reports.Effort{States: 311, Transitions: 702, Depth: 5, Executions: 28, Observed: 19, Entered: 3, Expiries: 4, Advances: 6, Crashes: 40, Lost: 22, Late: 8, Collision: 1.4e-34, BytesPerState: 88, ElapsedMS: 0.231},
		Command: "oversell explore --scenario mutex --lock php-lock-printed --clients 2 --tries 1",
	}
}

func lateRelease() reports.Exploration {
	why := "client 1 bought the last piece, and so did client 0, whose release had deleted another's lock"
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "seckill", Lock: "set-nx-ex", Sale: "plain", Masters: 1, TTLMS: 1000, Stock: 1, Quantity: 1,
		Bounds:  reports.Bounds{Clients: 3, Tries: 2, Lost: 1, Late: 1, Advances: 1},
		Verdict: reports.Violated, Why: why, Expected: reports.Pass,
		Properties: []reports.Property{
			breaking(variant.Sale, variant.NoOversell, "sold 2 of 1"),
			{Name: variant.MutualExclusion, Of: variant.Lock, Result: reports.NotClaimed, Measured: reports.Broken, Why: "two were inside at once"},
		},
		Counterexample: &reports.Counterexample{
			Of: variant.Sale, Property: variant.NoOversell, Sentence: why, Clients: []string{"client 0", "client 1", "client 2"},
			Steps: []reports.Step{
				{Kind: reports.StepStart, Client: 0, Redis: "stock=1"},
				{Kind: reports.StepCommand, Client: 0, Text: "set lock 0-5f8d7a3e11c04b7c nx ex 1 -> OK", Marks: []string{reports.MarkEnter}, Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=1"},
				{Kind: reports.StepCommand, Client: 0, Text: "get stock -> 1", Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=1"},
				{Kind: reports.StepNoReply, Client: 0, Text: "set stock 0 -> OK", Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=0"},
				{Kind: reports.StepLate, Client: 0, Text: "del lock", Marks: []string{reports.MarkLeave}, Redis: "lock=0-5f8d7a3e11c04b7c (1 s), stock=0"},
				{Kind: reports.StepAdvance, Client: reports.TheClock, AdvanceMS: 1000, Text: "lock expires", Redis: "stock=0"},
				{AtMS: 1000, Kind: reports.StepLost, Client: 2, Text: "set lock 2-77aa01 nx ex 1", Redis: "stock=0"},
				{AtMS: 1000, Kind: reports.StepCommand, Client: 1, Text: "set lock 1-9b1c44d2 nx ex 1 -> OK", Marks: []string{reports.MarkEnter}, Redis: "lock=1-9b1c44d2 (1 s), stock=0"},
				{AtMS: 1000, Kind: reports.StepArrive, Client: 0, Of: 4, Text: "del lock -> 1", Redis: "stock=0"},
				{AtMS: 1000, Kind: reports.StepCommand, Client: 2, Text: "set lock 2-77aa01 nx ex 1 -> OK", Marks: []string{reports.MarkEnter}, Redis: "lock=2-77aa01 (1 s), stock=0"},
				{AtMS: 1000.5, Kind: reports.StepCommand, Client: 1, Text: "decr stock -> -1", Marks: []string{"SOLD 2"}, Redis: "lock=2-77aa01 (1 s), stock=-1"},
			},
		},
		Stats: reports.Effort{States: 88_211, Transitions: 301_944, Depth: 11, Executions: 214, Observed: 120, Entered: 9_310, Sold: 4_004, Expiries: 811, Advances: 2_904, Lost: 1_022, Late: 998, Collision: 1.1e-29, BytesPerState: 61.4, ElapsedMS: 412},
	}
}

func crash() reports.Exploration {
	why := "client 0 died between SETNX and EXPIRE, and the lock it left has no expiry: nobody can ever take it"
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "mutex", Lock: "setnx-expire", Masters: 1, TTLMS: 1000,
		Bounds:  reports.Bounds{Clients: 2, Tries: 1, Crashes: 1, TimeMS: 60_000, MemoryMB: 2048},
		Verdict: reports.Violated, Why: why, Expected: reports.Violated,
		Properties: []reports.Property{holding(variant.Lock, variant.MutualExclusion), breaking(variant.Lock, variant.Progress, why)},
		Counterexample: &reports.Counterexample{
			Of: variant.Lock, Property: variant.Progress, Sentence: why, Clients: []string{"client 0", "client 1"},
			Steps: []reports.Step{
				{Kind: reports.StepCommand, Client: 0, Text: "setnx lock 0 -> 1", Redis: "lock=0"},
				{Kind: reports.StepCrash, Client: 0, Redis: "lock=0"},
				{Kind: reports.StepCommand, Client: 1, Text: "setnx lock 1 -> 0", Redis: "lock=0"},
				{Kind: reports.StepPause, Client: 1, Text: "gives up", Redis: "lock=0"},
				{Kind: reports.StepEnd, Client: reports.TheClock, Text: "lock is held, never expires, and nobody is left to release it", Redis: "lock=0"},
			},
		},
		Stats: reports.Effort{States: 41, Transitions: 77, Depth: 5, Executions: 9, Observed: 7, Entered: 2, Crashes: 12, Ends: 1, Collision: 4e-36, BytesPerState: 90, ElapsedMS: 0.09},
	}
}

// masters has several independent servers.
func masters() reports.Exploration {
	why := "client 0 counted two of three nodes, one of which had let its lock expire before"
	names := []string{"client 0", "client 1"}
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "mutex", Lock: "redlock", Masters: 3, TTLMS: 1000,
		Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 2}, Verdict: reports.Violated, Why: why, Expected: reports.Violated,
		Properties: []reports.Property{breaking(variant.Lock, variant.MutualExclusion, why)},
		Counterexample: &reports.Counterexample{
			Of: variant.Lock, Property: variant.MutualExclusion, Sentence: why, Clients: names,
			Steps: []reports.Step{
				{Kind: reports.StepCommand, Client: 0, Node: 0, Text: "set lock a nx px 1000 -> OK", Redis: "0: lock=a (1 s)"},
				{Kind: reports.StepCommand, Client: 0, Node: 1, Thread: 1, Text: "set lock a nx px 1000 -> OK", Marks: []string{reports.MarkEnter}, Redis: "0: lock=a (1 s); 1: lock=a (1 s)"},
				{Kind: reports.StepLost, Client: 0, Node: 2, Thread: 2, Text: "set lock a nx px 1000", Redis: "0: lock=a (1 s); 1: lock=a (1 s)"},
				{Kind: reports.StepAdvance, Client: reports.TheClock, AdvanceMS: 1000, Redis: ""},
				{AtMS: 1000, Kind: reports.StepCommand, Client: 1, Node: 1, Text: "set lock b nx px 1000 -> OK", Redis: "1: lock=b (1 s)"},
				{AtMS: 1000, Kind: reports.StepCommand, Client: 1, Node: 2, Text: "set lock b nx px 1000 -> OK", Marks: []string{reports.MarkEnter}, Redis: "1: lock=b (1 s); 2: lock=b (1 s)"},
			},
		},
		Stats: reports.Effort{States: 4, Transitions: 7, Depth: 6, Executions: 3, Observed: 3, Entered: 2, ElapsedMS: 1},
	}
}

func safe() reports.Exploration {
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "seckill", Lock: "fenced", Sale: "fenced", Masters: 1, TTLMS: 1000, Stock: 2, Quantity: 1,
		Bounds:  reports.Bounds{Clients: 3, Tries: 3, Crashes: 2, Lost: 2, Late: 1, Advances: 4, TimeMS: 60_000},
		Verdict: reports.Pass, Why: "every interleaving within the bounds was tried, and no promise was broken", Expected: reports.Pass,
		Properties: []reports.Property{holding(variant.Sale, variant.NoOversell), holding(variant.Sale, variant.Fencing), holding(variant.Lock, variant.MutualExclusion)},
		Stats: reports.Effort{States: 1_090_441, Transitions: 8_120_977, Depth: 61, Executions: 954, Observed: 411, Entered: 310_022, Sold: 120_331, Advances: 88_100,
			Expiries: 51_007, Crashes: 412_990, Lost: 301_775, Late: 98_111, Ends: 20_114, Collision: 3.5e-27, BytesPerState: 43.7, ElapsedMS: 4_020},
		NotChecked: []string{
			"more than 3 clients, or more than 3 tries of each",
			"failover: the server never loses what it has acknowledged",
			"clocks that run at different speeds",
		},
		Command: "oversell explore --lock fenced --sale fenced --clients 3 --tries 3 --crashes 2 --lost 2 --late 1 --advances 4",
	}
}

func inconclusive() reports.Exploration {
	return reports.Exploration{
		Schema: reports.ExplorationSchema, Scenario: "queue", Queue: "msetnx", Masters: 1,
		Bounds:  reports.Bounds{Clients: 2, Tries: 1, Depth: 40},
		Verdict: reports.Inconclusive, Why: "the model does not know the command MSETNX, so nothing is proved", Expected: reports.Pass,
		Properties: []reports.Property{{Name: variant.NoLostTask, Of: variant.Queue, Result: reports.Unknown, Measured: reports.Unknown, Why: "the search could not go on"}},
		Stats:      reports.Effort{States: 2, Transitions: 1, Depth: 1, Executions: 2, Observed: 1, ElapsedMS: 0},
		NotChecked: []string{"everything after the first MSETNX"},
	}
}

func holding(o variant.Object, p variant.Property) reports.Property {
	return reports.Property{Name: p, Of: o, Result: reports.Holds, Measured: reports.Holds}
}

func breaking(o variant.Object, p variant.Property, why string) reports.Property {
	return reports.Property{Name: p, Of: o, Result: reports.Broken, Measured: reports.Broken, Count: 1, Why: why}
}
