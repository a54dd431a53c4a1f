package checker

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// promiseAll makes the header promise everything that its monitors judge.
func promiseAll(h *history.Header) {
	h.Promises = nil
	for _, m := range Monitors(*h) {
		v := m.Verdict()
		h.Promises = append(h.Promises, history.Promise{Of: v.Of, Property: v.Property})
	}
}

// runningRuns make random histories, many of which break something.
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
	"queues": func(r *rand.Rand) *history.History {
		m := queueMix{timed: chance(r, 50), lost: chance(r, 30), asks: chance(r, 30), withdraws: chance(r, 50), again: chance(r, 50), audit: chance(r, 50)}
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Queue}, Drift: 1, Grace: 5}}
		h.Ops = queueRun(r, &h.Header, 30, m, chance(r, 70))
		return h
	},
	"noise of queues": func(r *rand.Rand) *history.History {
		m := queueMix{timed: chance(r, 50), lost: chance(r, 30), asks: chance(r, 30), withdraws: chance(r, 50), again: chance(r, 50)}
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Queue}, Drift: 1, Grace: 5}}
		h.Ops = queueNoise(r, 12, m)
		return h
	},
	"noise of pools": func(r *rand.Rand) *history.History {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Dispatch}, Grace: 5}}
		h.Ops = dispatchNoise(r, 12)
		return h
	},
	"noise of numbers": func(r *rand.Rand) *history.History {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.IDs}}}
		h.Ops = withRetries(r, counterNoise(r, 12))
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

// TestRunningNeverSpeaksTooEarly passes histories to the monitors in random batches with a random legal low water
// after each, as a run in progress does, and then judges the whole history. Whatever was called broken on the way
// must be broken in the end.
func TestRunningNeverSpeaksTooEarly(t *testing.T) {
	for name, run := range runningRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, missed := map[string]int{}, map[string]int{}
			for seed := range uint64(crossRuns() / 20) {
				r := rand.New(rand.NewPCG(seed, 17))
				h := run(r)
				h.Ops, h.Trailer = complete(h.Ops), &history.Trailer{}
				promiseAll(&h.Header)
				final := map[string]Verdict{}
				for _, v := range Judge(h).Verdicts {
					final[fmt.Sprint(v.Of, " ", v.Property)] = v
				}
				for what, v := range inBatches(r, h) {
					told[what]++
					if f := final[what]; f.Result != Violated {
						t.Fatalf("seed %d: %s is called broken: %s\n%s\nin the end it is %v: %s\n%s\n%s",
							seed, what, v.Why, showTasks(&h.Header, v.Witness), f.Result, f.Why, show(&h.Header, h.Ops), showTasks(&h.Header, h.Ops))
					}
					delete(final, what)
				}
				for what, f := range final {
					if f.Result == Violated {
						missed[what]++
					}
				}
			}
			if len(told) == 0 {
				t.Error("nothing was ever called broken: this test shows nothing")
			}
			t.Log("told", told, "at the end only", missed)
		})
	}
}

// inBatches passes a history to the monitors as a run in progress does, and returns what they called broken on the
// way.
func inBatches(r *rand.Rand, h *history.History) map[string]Verdict {
	told := map[string]Verdict{}
	running := NewRunning(h.Header)
	low := exactLows(h.Ops)
	water := time.Duration(0)
	for i := range h.Ops {
		running.Observe(&h.Ops[i])
		if chance(r, 60) {
			continue
		}
		if next := min(low[i+1], h.Ops[i].Return+1); next > water {
			water += time.Duration(r.Int64N(int64(next-water)) + 1)
		}
		running.Advance(water)
		for _, v := range running.Broken() {
			told[fmt.Sprint(v.Of, " ", v.Property)] = v
		}
	}
	return told
}

// exactLows returns, for every place in a history including its end, the earliest call of the operations from there
// on.
func exactLows(ops []history.Op) []time.Duration {
	low := make([]time.Duration, len(ops)+1)
	low[len(ops)] = history.Forever
	for i := len(ops) - 1; i >= 0; i-- {
		low[i] = min(low[i+1], ops[i].Call)
	}
	return low
}

// TestBatchesDoNotMatter checks that the monitors come to the results of Judge, whatever low water they are told, and
// when. Only the choice among several violations may depend on it: Judge always tells the same low waters at the same
// places.
func TestBatchesDoNotMatter(t *testing.T) {
	for name, run := range runningRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(crossRuns() / 20) {
				r := rand.New(rand.NewPCG(seed, 18))
				h := run(r)
				h.Ops, h.Trailer = complete(h.Ops), &history.Trailer{}
				promiseAll(&h.Header)
				monitors, low, water := Monitors(h.Header), exactLows(h.Ops), time.Duration(0)
				for i := range h.Ops {
					for _, m := range monitors {
						m.Observe(&h.Ops[i])
					}
					if chance(r, 60) {
						continue
					}
					if next := min(low[i+1], h.Ops[i].Return+1); next > water {
						water += time.Duration(r.Int64N(int64(next-water)) + 1)
					}
					for _, m := range monitors {
						m.Advance(water)
						m.Verdict() // asking for a verdict must change nothing
					}
				}
				for i, want := range Judge(h).Verdicts {
					monitors[i].Advance(history.Forever)
					if got := witnessed(monitors[i].Verdict()); got.Result != want.Result || got.Opportunities != want.Opportunities {
						t.Fatalf("seed %d: in batches %+v\nfrom the file %+v\n%s", seed, got, want, showTasks(&h.Header, h.Ops))
					}
				}
			}
		})
	}
}

// TestManyAtOnce checks that monitors reach the same verdicts, word for word, whether they observe operations one by one or in
// batches.
func TestManyAtOnce(t *testing.T) {
	for name, run := range runningRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(crossRuns() / 20) {
				r := rand.New(rand.NewPCG(seed, 19))
				h := run(r)
				h.Ops = complete(h.Ops)
				promiseAll(&h.Header)
				single, many, low := Monitors(h.Header), Monitors(h.Header), exactLows(h.Ops)
				for from := 0; from < len(h.Ops); {
					to := min(len(h.Ops), from+1+r.IntN(9))
					for i := range h.Ops[from:to] {
						for _, m := range single {
							m.Observe(&h.Ops[from+i])
						}
					}
					for i, m := range many {
						observe(m, h.Ops[from:to])
						single[i].Advance(low[to])
						m.Advance(low[to])
					}
					from = to
				}
				for i, m := range many {
					if got, want := m.Verdict().Told(), single[i].Verdict().Told(); !reflect.DeepEqual(got, want) {
						t.Fatalf("seed %d: many at once %+v\none by one %+v", seed, got, want)
					}
				}
			}
		})
	}
}

// TestRunningTellsAtOnce checks that a violation that two answers prove is reported once, when the second answer is
// there, and only if the property was promised.
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
