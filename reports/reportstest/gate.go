// Package reportstest holds example documents that the tests of all renderings share: a gate, runs and searches. It
// is for tests only.
package reportstest

import (
	"time"

	"oversell/history"
	"oversell/reports"
)

// Gate returns a gate with every kind of result, and with names that are hard to escape.
func Gate() reports.Gate {
	part := func(x float64) *float64 { return &x }
	witness := history.Op{Client: 2, Kind: history.Acquire, Key: history.Text("order"), Outcome: history.OK, Call: time.Millisecond, Return: 2 * time.Millisecond}
	control := &reports.GateControl{What: "lock none", Of: "sale", Property: "no-oversell", Runs: 3, Caught: 3, Good: true, Why: "sold 5 of 3", Tried: []string{"sale *ticket*: it held"}}
	faults := []reports.Fault{{Name: "slow 10ms | 5%", Fired: 12}, {Name: "crash after `ZREM`", Fired: 0}}
	g := reports.Gate{
		Schema: reports.GateSchema, Plan: "plans/gate.yaml", Seed: 5, FalseAlarms: 0.01, Machine: reports.Machine{CPU: "X|Y", Cores: 2, OS: "linux/amd64", Go: "go1.26"},
		Safety: []reports.GateEntry{
			{Name: "sound", Kind: "run", Line: 3, Column: 11, Expect: reports.Pass, Verdict: reports.Pass, Cases: []reports.GateCase{{
				Title: "seckill, lock lua-release, sale plain", Contender: reports.Contender{Lock: "lua-release"}, Verdict: reports.Pass, Runs: 3, Opportunities: 1284,
				Properties: []reports.GateProperty{{Name: "no-oversell", Of: "sale", Result: reports.Holds, Why: "sold 500 of 500"}}, Control: control,
			}}},
			{Name: "a|b `c`, <d> 100%: *e* & \x01\xff", Kind: "run", Line: 9, Column: 11, Expect: reports.Pass, Verdict: reports.Violated, Cases: []reports.GateCase{{
				Title: "mutex, lock x|y", Contender: reports.Contender{Lock: "x|y"}, Verdict: reports.Violated, Why: "mutual-exclusion of the lock was broken", Runs: 2, Broke: 1, Faults: faults,
				Properties: []reports.GateProperty{
					{Name: "mutual-exclusion", Of: "lock", Result: reports.Broken, Runs: 1, Why: "client 2 got it\nwhile client 1 held it, \x00", Witness: []history.Op{witness}, Story: "```\n*a story*\n```"},
					{Name: "progress", Of: "lock", Result: reports.Unknown, Why: "not decided"},
				},
				Control: control, Command: "oversell run '--fault=slow 10ms | 5%'",
				Limits: []reports.GateLimit{{Operation: "acquire", Percentile: "p99", LimitMS: 5, MeasuredMS: part(7)}, {Operation: "pop", Percentile: "p50", LimitMS: 5, MeasuredMS: nil}},
			}}},
			{Name: "broke", Kind: "explore", Line: 20, Column: 11, Expect: reports.Violated, Verdict: reports.Pass, Cases: []reports.GateCase{{
				Title: "mutex, lock none", Contender: reports.Contender{Lock: "none"}, Verdict: reports.Pass, Runs: 1, Broke: 1, Searched: "broken within these bounds",
				Properties: []reports.GateProperty{{Name: "mutual-exclusion", Of: "lock", Result: reports.Broken, Runs: 1, Why: "two held it"}},
			}}},
			{Name: "powerless", Kind: "run", Line: 30, Column: 11, Expect: reports.Pass, Verdict: reports.Inconclusive, Cases: []reports.GateCase{{
				Title: "mutex, lock fair", Contender: reports.Contender{Lock: "fair"}, Verdict: reports.Inconclusive, Why: "the gate had no power", Runs: 1, Opportunities: 7,
				Control: &reports.GateControl{What: reports.NoControl, Why: "the plan has none"},
			}}},
		},
		Performance: []reports.GatePerformance{{
			Name: "speed", Line: 40, Column: 11, Verdict: reports.Slower, Candidate: "lock a", Baseline: "lock b", Rounds: 20, MostRounds: 80,
			Measures: []reports.GateMeasure{{Name: "throughput", Unit: "a second", Candidate: 700, Baseline: 1000, Slowdown: reports.Estimate{Middle: 0.43, Low: part(0.3), High: part(0.5)}, Noise: reports.Estimate{Middle: 0, Low: part(-0.03), High: part(0.04)}, Allowed: 0.1, Verdict: reports.Slower}},
		}},
		Notes: []string{"a note"}, Command: "oversell gate plans/gate.yaml",
	}
	g.Verdict = g.Judged()
	return g
}
