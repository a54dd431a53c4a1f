package checker

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/linear"
	"oversell/history"
	"oversell/internal/cputime"
	"oversell/variant"
)

// lockHistory returns the history of a correct lock: n operations by that many clients. Each hold takes 20 µs, a
// tenth of the attempts are refused, and answers are delayed at random.
func lockHistory(n, clients int) []history.Op {
	r := rand.New(rand.NewPCG(1, 1))
	ops := make([]history.Op, 0, n+2)
	free := make([]time.Duration, clients)
	now := time.Duration(0)
	for s := int64(1); len(ops) < n; s++ {
		c := int32(r.IntN(clients))
		now = max(now, free[c]) + time.Duration(1000+r.IntN(1000))
		call := max(free[c]+1, now-time.Duration(r.IntN(50_000)))
		ret := now + time.Duration(r.IntN(5000))
		ops = append(ops, acquired(c, s, call, ret, call+15*time.Second))
		if r.IntN(10) == 0 {
			d := (c + 1) % int32(clients)
			if at := max(free[d]+1, now); at < ret {
				ops = append(ops, held(d, -s, at, ret+time.Duration(r.IntN(3000))))
				free[d] = ops[len(ops)-1].Return
			}
		}
		now = ret + 20*time.Microsecond
		end := now + time.Duration(r.IntN(5000))
		rel := released(c, s, ret+1+time.Duration(r.IntN(15_000)), end)
		rel.Until = call + 15*time.Second
		ops = append(ops, rel)
		free[c] = end
	}
	return complete(ops[:n])
}

// saleHistory returns the history of a correct sale whose stock lasts for half of the orders.
func saleHistory(n, clients int) []history.Op {
	r := rand.New(rand.NewPCG(2, 2))
	ops := make([]history.Op, 0, n)
	left := int64(n / 2)
	free := make([]time.Duration, clients)
	now := time.Duration(0)
	for i := range n {
		c := int32(i % clients)
		now = max(now+1000, free[c]+1)
		op := bought(c, int64(i), max(free[c]+1, now-time.Duration(r.IntN(20_000))), now+time.Duration(r.IntN(20_000)))
		if left > 0 {
			left--
			op.Result = history.Int(left)
		} else {
			op.Outcome, op.Reason = history.Refused, history.SoldOut
		}
		free[c] = op.Return
		ops = append(ops, op)
	}
	return complete(ops)
}

// shopHistory returns the history of a correct sale of many products, each of which has stock for half of its orders.
// Tokens rise from order to order, and the history ends with readings of what is left.
func shopHistory(n, clients int, keys int64) []history.Op {
	ops := saleHistory(n, clients)
	left := make([]int64, keys)
	for i := range left {
		left[i] = int64(n) / 2 / keys
	}
	for i := range ops {
		op := &ops[i]
		k, _ := op.Arg.Num()
		k %= keys
		op.Key, op.Fence = history.Int(k), int64(i+1)
		if left[k] > 0 {
			left[k]--
			op.Outcome, op.Reason, op.Result = history.OK, history.NoReason, history.Int(left[k])
		} else {
			op.Outcome, op.Reason, op.Result = history.Refused, history.SoldOut, history.Int(-1)
		}
	}
	end := ops[n-1].Return + 1
	for k := range left {
		op := read("left", left[k], end)
		op.Key = history.Int(int64(k))
		ops = append(ops, op)
	}
	return ops
}

// refundHistory returns the history of a correct sale in which about a fifth of the operations are refunds, so that
// the product is sold out and on sale again all the time.
func refundHistory(n, clients int, stock int64) []history.Op {
	r := rand.New(rand.NewPCG(3, 3))
	ops := make([]history.Op, 0, n)
	left := stock
	stretch := clients * 500 // keeps about as many operations in flight as there are clients
	free := make([]time.Duration, clients)
	now := time.Duration(0)
	var sold []history.Op // purchases without a refund
	for i := range n {
		c := int32(i % clients)
		now = max(now+1000, free[c]+1)
		op := bought(c, int64(i), max(free[c]+1, now-time.Duration(r.IntN(stretch))), now+time.Duration(r.IntN(stretch)))
		switch {
		case r.IntN(5) == 0 && len(sold) > 0 && sold[0].Return < op.Call:
			op.Kind, op.Arg = history.Refund, sold[0].Arg
			sold = sold[1:]
			left++
		case left > 0:
			left--
			sold = append(sold, op)
		default:
			op.Outcome, op.Reason = history.Refused, history.SoldOut
		}
		free[c] = op.Return
		ops = append(ops, op)
	}
	return complete(ops)
}

// benchMonitors feeds the monitors as Judge does. It reports and returns the processor time per operation, summed
// over all threads, including the garbage collector's.
func benchMonitors(b *testing.B, ops []history.Op, open func() []Monitor) (nanoseconds float64) {
	low := lowWaters(ops)
	b.ReportAllocs()
	runtime.GC() // so that the monitors do not pay for earlier garbage
	start := cputime.Own()
	for b.Loop() {
		ms := open()
		for i := range ops {
			for _, m := range ms {
				m.Observe(&ops[i])
			}
			if (i+1)%judgeBlock == 0 {
				for _, m := range ms {
					m.Advance(low[(i+1)/judgeBlock])
				}
			}
		}
		for _, m := range ms {
			m.Advance(history.Forever)
			if v := m.Verdict(); v.Result != Holds {
				b.Fatalf("%s %s: %v: %s", v.Of, v.Property, v.Result, v.Why)
			}
		}
	}
	nanoseconds = float64(cputime.Own()-start) / float64(b.N) / float64(len(ops))
	b.ReportMetric(nanoseconds, "cpu-ns/checked-op")
	return nanoseconds
}

// idle is a monitor that does nothing. It measures what it costs to pass the operations to a monitor.
type idle struct{}

func (idle) Observe(*history.Op)   {}
func (idle) Advance(time.Duration) {}
func (idle) Verdict() Verdict      { return Verdict{Result: Holds} }

func BenchmarkNothing(b *testing.B) {
	ops := saleHistory(1_000_000, 1000)
	b.Run("two-idle-monitors/1000000", func(b *testing.B) {
		benchMonitors(b, ops, func() []Monitor { return []Monitor{idle{}, idle{}} })
	})
}

// BenchmarkLock compares all monitors of a lock that promises fencing tokens with the monitor of linearizability
// alone. The metric x-linearizable of "all" is the ratio of their processor times for the same operations.
func BenchmarkLock(b *testing.B) {
	h := history.Header{TTL: 15 * time.Second, Grace: time.Second}
	fenced := h
	fenced.Promises = []history.Promise{{Of: variant.Lock, Property: variant.Fencing}}
	for _, n := range []int{1_000_000} {
		for _, clients := range []int{10, 1000} {
			ops := lockHistory(n, clients)
			for i := range ops {
				if op := &ops[i]; op.Kind == history.Acquire && op.Outcome == history.OK {
					op.Fence, _ = op.Arg.Num()
				}
			}
			var alone float64
			b.Run(fmt.Sprintf("linearizable/%d/clients=%d", n, clients), func(b *testing.B) {
				alone = benchMonitors(b, ops, func() []Monitor { return []Monitor{newLockLinear(&h)} })
			})
			b.Run(fmt.Sprintf("all/%d/clients=%d", n, clients), func(b *testing.B) {
				all := benchMonitors(b, ops, func() []Monitor { return Monitors(fenced) })
				b.ReportMetric(all/alone, "x-linearizable")
			})
		}
	}
	spread := lockHistory(1_000_000, 1000)
	for i := range spread { // all operations of a session get the same key
		n, _ := spread[i].Arg.Num()
		spread[i].Key = history.Int(max(n, -n) % 100_000)
	}
	b.Run("all/1000000/keys=100000", func(b *testing.B) {
		benchMonitors(b, spread, func() []Monitor {
			return Monitors(history.Header{Objects: []variant.Object{variant.Lock}, TTL: h.TTL, Grace: h.Grace})
		})
	})
	for _, n := range []int{1000, 10_000} {
		ops := lockHistory(n, 10)
		b.Run(fmt.Sprintf("porcupine/%d/clients=10", n), func(b *testing.B) { benchPorcupine(b, linear.LockModel(), ops) })
	}
}

// BenchmarkSale makes the same comparison for a sale.
func BenchmarkSale(b *testing.B) {
	const n = 1_000_000
	h := history.Header{Stock: n / 2}
	for _, clients := range []int{10, 1000} {
		ops := saleHistory(n, clients)
		var alone float64
		b.Run(fmt.Sprintf("linearizable/%d/clients=%d", n, clients), func(b *testing.B) {
			alone = benchMonitors(b, ops, func() []Monitor { return []Monitor{saleOf(&h, variant.Linearizable)} })
		})
		ops = append(ops, read("left", 0, ops[n-1].Return+1))
		for i := range ops {
			ops[i].Fence = int64(i + 1)
		}
		b.Run(fmt.Sprintf("all/%d/clients=%d", n, clients), func(b *testing.B) {
			all := benchMonitors(b, ops, func() []Monitor { return monitorsOf(variant.Sale, &h) })
			b.ReportMetric(all/alone, "x-linearizable")
		})
	}
	for _, keys := range []int64{100_000} {
		shop := history.Header{Stock: n / 2 / keys}
		ops := shopHistory(n, 1000, keys)
		b.Run(fmt.Sprintf("all/%d/keys=%d", n, keys), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return monitorsOf(variant.Sale, &shop) })
		})
	}
	back := history.Header{Stock: 50, Refund: 0.2}
	for _, clients := range []int{10, 100, 1000} {
		ops := refundHistory(100_000, clients, back.Stock)
		b.Run(fmt.Sprintf("search/%d/clients=%d", len(ops), clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return []Monitor{saleOf(&back, variant.Linearizable)} })
		})
	}
	for _, n := range []int{1000, 10_000} {
		ops := saleHistory(n, 10)
		b.Run(fmt.Sprintf("porcupine/%d/clients=10", n), func(b *testing.B) { benchPorcupine(b, plainStock(int64(n/2)), ops) })
	}
}

// plainStock returns a model of the stock that keeps no orders: in these histories no order is sent twice.
func plainStock(stock int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return stock },
		Step: func(state, input, _ any) (bool, any) {
			left, op := state.(int64), input.(history.Op)
			if op.Outcome == history.Refused {
				return left < op.Pieces(), left
			}
			return left >= op.Pieces(), left - op.Pieces()
		},
		Hash: func(state any) uint64 { return uint64(state.(int64)) * 0x9e3779b97f4a7c15 },
	}
}

func benchPorcupine(b *testing.B, model porcupine.Model, ops []history.Op) {
	list := linear.Operations(ops)
	for b.Loop() {
		if porcupine.CheckOperationsTimeout(model, list, time.Minute) != porcupine.Ok {
			b.Fatal("porcupine found no order")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ops)), "ns/checked-op")
}

func BenchmarkJudge(b *testing.B) {
	const n = 1_000_000
	locks, buys := lockHistory(n/2, 100), saleHistory(n/2, 100)
	ops := complete(append(append([]history.Op(nil), locks...), buys...))
	h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: n / 4, TTL: 15 * time.Second, Grace: time.Second}, Ops: ops, Trailer: &history.Trailer{}}
	b.ReportAllocs()
	for b.Loop() {
		Judge(h)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(ops)), "ns/checked-op")
}
