package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// promiseAll has everything promised that the monitors of a header judge.
func promiseAll(h *history.Header) {
	h.Promises = nil
	for _, m := range Monitors(*h) {
		v := m.Verdict()
		h.Promises = append(h.Promises, history.Promise{Of: v.Of, Property: v.Property})
	}
}

// runningRuns are random runs, of which many break something.
var runningRuns = map[string]func(r *rand.Rand) *history.History{
	"locks": func(r *rand.Rand) *history.History {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock}, TTL: 20, Drift: 3, Grace: 30}}
		h.Ops = lockRun(r, &h.Header, 40, chance(r, 50))
		return h
	},
	"noise of locks": func(r *rand.Rand) *history.History {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock}, TTL: 10, Drift: 3, Grace: 30}}
		h.Ops = lockNoise(r, &h.Header, 12)
		return h
	},
	"sales": func(r *rand.Rand) *history.History {
		m := saleMix{refunds: chance(r, 30), unknown: chance(r, 50), resend: chance(r, 50)}
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: int64(r.IntN(10)), TTL: 20, Drift: 3, Grace: 30}}
		if m.refunds {
			h.Header.Refund = 0.1
		}
		h.Ops = saleRun(r, &h.Header, 30, m, chance(r, 50))
		return h
	},
	"noise of sales": func(r *rand.Rand) *history.History {
		m := saleMix{refunds: chance(r, 30), unknown: chance(r, 50), resend: chance(r, 50)}
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: int64(r.IntN(4))}}
		if m.refunds {
			h.Header.Refund = 0.1
		}
		h.Ops = saleNoise(r, &h.Header, 10, m)
		return h
	},
	"numbers": func(r *rand.Rand) *history.History {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.IDs}}}
		last := int64(0)
		for i := range 12 {
			call := time.Duration(4*i) + upTo(r, 3)
			if last++; chance(r, 10) {
				last--
			}
			h.Ops = append(h.Ops, history.Op{Client: int32(i % 3), Kind: history.NextID, Outcome: history.OK, Key: history.Text("ids"),
				Result: history.Int(last), Due: call, Call: call, Return: call + 1 + upTo(r, 9)})
		}
		return h
	},
}

// TestRunningNeverSpeaksTooEarly asks after every operation, and then judges the whole
// history: whatever was called broken on the way must be so in the end.
func TestRunningNeverSpeaksTooEarly(t *testing.T) {
	for name, run := range runningRuns {
		t.Run(name, func(t *testing.T) {
			told := map[string]int{}
			for seed := range uint64(crossRuns() / 20) {
				r := rand.New(rand.NewPCG(seed, 17))
				h := run(r)
				h.Ops, h.Trailer = complete(h.Ops), &history.Trailer{}
				promiseAll(&h.Header)
				final := map[string]Verdict{}
				for _, v := range Judge(h).Verdicts {
					final[fmt.Sprint(v.Of, " ", v.Property)] = v
				}
				running := NewRunning(h.Header)
				for i := range h.Ops {
					running.Observe(&h.Ops[i])
					for _, v := range running.Broken() {
						what := fmt.Sprint(v.Of, " ", v.Property)
						told[what]++
						if f := final[what]; f.Result != Violated {
							t.Fatalf("seed %d: after %d operations %s is called broken: %s\nin the end it is %v: %s\n%s",
								seed, i+1, what, v.Why, f.Result, f.Why, show(&h.Header, h.Ops))
						}
					}
				}
			}
			if len(told) == 0 {
				t.Error("nothing was ever called broken: this test shows nothing")
			}
			t.Log(told)
		})
	}
}

// TestRunningTellsAtOnce: what two answers prove is told when the second is there, once,
// and only if it was promised.
func TestRunningTellsAtOnce(t *testing.T) {
	h := history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: 1, Promises: []history.Promise{{Of: variant.Sale, Property: variant.NoOversell}}}
	r := NewRunning(h)
	ops := []history.Op{bought(1, 1, 1, 2), bought(2, 2, 3, 4), bought(3, 3, 5, 6)}
	var found []int
	for i := range ops {
		r.Observe(&ops[i])
		for _, v := range r.Broken() {
			if v.Property != variant.NoOversell || len(v.Witness) == 0 || v.Why == "" {
				t.Errorf("%+v", v)
			}
			found = append(found, i)
		}
	}
	if len(found) != 1 || found[0] != 1 {
		t.Errorf("told after operations %v; want once, after 1", found)
	}
}
