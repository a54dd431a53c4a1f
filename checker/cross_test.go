package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// crossRuns returns how many histories a generator makes for a model. One goroutine makes and judges them, so the
// race detector needs only a few; runs without it judge the rest.
func crossRuns() int {
	switch {
	case long():
		return 150_000
	case raced:
		return 1_000
	}
	return 5_000
}

type crossCount struct {
	holds, violated, unknown int
	open                     map[string]int // reasons for unknown
}

func (c *crossCount) add(v Verdict) {
	switch v.Result {
	case Holds:
		c.holds++
	case Violated:
		c.violated++
	default:
		c.unknown++
		if c.open == nil {
			c.open = make(map[string]int)
		}
		c.open[digits.ReplaceAllString(v.Why, "#")]++
	}
}

var digits = regexp.MustCompile(`[0-9][0-9,.]*`)

// cross compares a monitor with an oracle over many histories.
func cross(t *testing.T, mostUnknown float64, open func(*history.Header) Monitor, make func(*rand.Rand) (*history.Header, []history.Op), legal func(*history.Header, []history.Op) bool) {
	t.Helper()
	t.Parallel()
	var c crossCount
	start := time.Now()
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 20240521))
		h, ops := make(r)
		v := both(t, h, func() Monitor { return open(h) }, ops)
		c.add(v)
		if ok := legal(h, ops); v.Result == Holds && !ok || v.Result == Violated && ok {
			t.Fatalf("seed %d: the monitor says %v (%s), the oracle says legal=%v\n%s", seed, v.Result, v.Why, ok, show(h, ops))
		}
	}
	t.Logf("%d histories in %v: %d hold, %d violated, %d unknown %v", crossRuns(), time.Since(start).Round(time.Millisecond), c.holds, c.violated, c.unknown, c.open)
	if c.holds == 0 || c.violated == 0 {
		t.Errorf("the generator makes only one kind of history: %+v", c)
	}
	if share := float64(c.unknown) / float64(crossRuns()); share > mostUnknown {
		t.Errorf("%.2f %% of the verdicts are unknown, more than %.2f %%", 100*share, 100*mostUnknown)
	}
}

func porcupineLock(_ *history.Header, ops []history.Op) bool {
	return porcupine.CheckOperations(linear.LockModel(), linear.Operations(ops))
}

func porcupineStock(h *history.Header, ops []history.Op) bool {
	ops = toldOfItself(ops)
	return porcupine.CheckOperations(linear.StockModel(h.Stock, ops), linear.Operations(ops))
}

func openLock(h *history.Header) Monitor { return newLockLinear(h) }
func openSale(h *history.Header) Monitor { return saleOf(h, variant.Linearizable) }

func TestCrossLock(t *testing.T) {
	t.Run("simulated", func(t *testing.T) {
		cross(t, 0.02, openLock, func(r *rand.Rand) (*history.Header, []history.Op) {
			h := &history.Header{}
			return h, named(r, lockRun(r, h, 3+r.IntN(10), chance(r, 60)))
		}, porcupineLock)
	})
	t.Run("noise", func(t *testing.T) {
		cross(t, 0.02, openLock, func(r *rand.Rand) (*history.Header, []history.Op) {
			h := &history.Header{}
			return h, named(r, lockNoise(r, h, 2+r.IntN(8)))
		}, porcupineLock)
	})
}

func TestCrossLease(t *testing.T) {
	for _, c := range []struct {
		name        string
		ttl         time.Duration
		mostUnknown float64
	}{
		// The lease is about as long as an operation. Many leases end before the client learns of them, and beside a
		// refusal the monitor often cannot decide such a case.
		{"short", 3, 0.2},
		{"long", 12, 0.05},
	} {
		lease := func(r *rand.Rand) *history.Header {
			return &history.Header{TTL: c.ttl + upTo(r, 6), Drift: upTo(r, 2)}
		}
		t.Run(c.name+"/simulated", func(t *testing.T) {
			cross(t, c.mostUnknown, openLock, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := lease(r)
				return h, named(r, lockRun(r, h, 3+r.IntN(9), chance(r, 60)))
			}, legalLease)
		})
		t.Run(c.name+"/noise", func(t *testing.T) {
			cross(t, c.mostUnknown, openLock, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := lease(r)
				return h, named(r, lockNoise(r, h, 2+r.IntN(7)))
			}, legalLease)
		})
	}
}

func TestCrossStock(t *testing.T) {
	for bits := range 16 {
		if bits > 0 && !long() {
			break // without OVERSELL_LONG one subtest draws all mixes
		}
		mix := func(r *rand.Rand) saleMix {
			b := bits
			if !long() {
				b = r.IntN(16)
			}
			return saleMix{amounts: b&1 != 0, refunds: b&2 != 0, unknown: b&4 != 0, resend: b&8 != 0, reads: chance(r, 70)}
		}
		shop := func(r *rand.Rand, m saleMix) *history.Header {
			h := &history.Header{Stock: int64(r.IntN(6))}
			if chance(r, 50) && m.refunds {
				h.Refund = 0.1
			}
			if chance(r, 50) && m.amounts {
				h.Quantity = 3
			}
			return h
		}
		t.Run(fmt.Sprintf("simulated/%d", bits), func(t *testing.T) {
			cross(t, 0.001, openSale, func(r *rand.Rand) (*history.Header, []history.Op) {
				m := mix(r)
				h := shop(r, m)
				return h, saleRun(r, h, 3+r.IntN(10), m, chance(r, 60))
			}, porcupineStock)
		})
		t.Run(fmt.Sprintf("noise/%d", bits), func(t *testing.T) {
			cross(t, 0.001, openSale, func(r *rand.Rand) (*history.Header, []history.Op) {
				m := mix(r)
				h := shop(r, m)
				return h, saleNoise(r, h, 2+r.IntN(8), m)
			}, porcupineStock)
		})
	}
}

// TestCrossStockLonger uses histories with enough operations in flight to make the search branch.
func TestCrossStockLonger(t *testing.T) {
	runs := crossRuns() / 20
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 7))
		h := &history.Header{Stock: int64(2 + r.IntN(6)), Refund: 0.2, Quantity: 3}
		m := saleMix{amounts: chance(r, 50), refunds: true, unknown: chance(r, 30), reads: chance(r, 50)}
		ops := saleRun(r, h, 40, m, chance(r, 70))
		v := both(t, h, func() Monitor { return saleOf(h, variant.Linearizable) }, ops)
		if legal := porcupineStock(h, ops); v.Result == Unknown || legal != (v.Result == Holds) {
			t.Fatalf("seed %d: the monitor says %v (%s), porcupine legal=%v\n%s", seed, v.Result, v.Why, legal, show(h, ops))
		}
	}
}

// bruteCores judges mutual exclusion by its definition: it compares every pair of cores, the times during which a
// session surely held the lock.
func bruteCores(_ *history.Header, ops []history.Op) bool {
	type core struct {
		session    history.Value
		start, end time.Duration
	}
	var cores []core
	for i, a := range ops {
		switch {
		case a.Outcome != history.OK:
			continue
		case a.Kind == history.Extend: // an extension begins a new core, unless it continues the last one
			var last *history.Op
			for j := range ops[:i] {
				if op := &ops[j]; monitor.Session(op) == monitor.Session(&a) && (op.Kind != history.Extend || op.Outcome == history.OK || op.Reason == history.Lost) {
					last = op
				}
			}
			vague := func(op history.Op) bool {
				return monitor.Session(&op) == monitor.Session(&a) && op.Outcome == history.Unknown && (op.Kind == history.Acquire || op.Kind == history.Release)
			}
			lost := last != nil && last.Kind == history.Extend && last.Reason == history.Lost
			if last == nil || last.Outcome == history.OK || !slices.ContainsFunc(ops[:i], vague) && !(lost && a.Call > last.Return) {
				continue
			}
		case a.Kind != history.Acquire:
			continue
		}
		until, start, ended := monitor.Leased(&a), a.Return, false
		add := func(end time.Duration) { cores = append(cores, core{monitor.Session(&a), start, end}) }
		for _, op := range ops[i+1:] {
			if monitor.Session(&op) != monitor.Session(&a) || ended {
				continue
			}
			switch {
			case op.Kind == history.Release:
				add(min(op.Call, max(until, op.Until)))
				ended = true
			case op.Kind == history.Extend && op.Reason == history.Lost:
				add(min(op.Return, until))
				ended = true
			case op.Kind == history.Extend && op.Outcome == history.OK && op.Return > until:
				add(until)
				start, until = op.Return, monitor.Leased(&op)
			case op.Kind == history.Extend && op.Outcome == history.OK:
				until = max(until, monitor.Leased(&op))
			}
		}
		if !ended {
			add(until)
		}
	}
	for i, a := range cores {
		for _, b := range cores[i+1:] {
			if a.session != b.session && a.start < a.end && b.start < b.end && a.start < b.end && b.start < a.end {
				return false
			}
		}
	}
	return true
}

func TestCrossMutualExclusion(t *testing.T) {
	open := newMutualExclusion
	for _, ttl := range []time.Duration{0, 4, 12} {
		t.Run(fmt.Sprintf("ttl=%d/simulated", ttl), func(t *testing.T) {
			cross(t, 1, open, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := &history.Header{TTL: ttl}
				return h, named(r, lockRun(r, h, 3+r.IntN(20), chance(r, 60)))
			}, bruteCores)
		})
		t.Run(fmt.Sprintf("ttl=%d/noise", ttl), func(t *testing.T) {
			cross(t, 1, open, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := &history.Header{TTL: ttl}
				return h, named(r, lockNoise(r, h, 2+r.IntN(20)))
			}, bruteCores)
		})
	}
}

// bruteOwners judges owner-only-release by its definition.
func bruteOwners(h *history.Header, ops []history.Op) bool {
	type life struct {
		from, granted, until, end time.Duration
	}
	lives := make(map[history.Value]life)
	for i, a := range ops {
		if a.Kind != history.Acquire || a.Outcome != history.OK {
			continue
		}
		l := life{from: monitor.Granted(h, &a), granted: a.Return, until: monitor.Leased(&a), end: history.Forever}
		for _, op := range ops[i+1:] {
			if monitor.Session(&op) != monitor.Session(&a) || l.end != history.Forever {
				continue
			}
			switch {
			case op.Kind == history.Release:
				l.end = min(op.Call, max(l.until, op.Until))
			case op.Kind == history.Extend && op.Reason == history.Lost:
				l.end = min(op.Call, l.until)
			case op.Kind == history.Extend && op.Outcome == history.OK && op.Return > l.until:
				l.end = l.until
			case op.Kind == history.Extend && op.Outcome == history.OK:
				l.until = max(l.until, monitor.Leased(&op))
			}
		}
		l.end = min(l.end, l.until)
		lives[monitor.Session(&a)] = l
	}
	for i, x := range ops {
		a := lives[monitor.Session(&x)]
		if x.Outcome != history.OK || x.Kind != history.Release && x.Kind != history.Extend {
			continue
		}
		owned, until, since := a.granted, time.Duration(0), time.Duration(-1)
		over, vague := true, false
		for j, op := range ops {
			if monitor.Session(&op) != monitor.Session(&x) {
				continue
			}
			if op.Kind == history.Acquire && op.Call <= x.Return && (op.Outcome == history.Unknown || op.Outcome == history.OK && j > i) {
				vague = true // the session may have been granted the lock
			}
			if j >= i {
				continue
			}
			until = max(until, op.Until)
			switch {
			case op.Kind == history.Acquire && op.Outcome == history.OK:
				over = false
			case op.Kind == history.Extend && op.Outcome == history.OK:
				since = max(since, op.Call)
			case op.Kind == history.Release && op.Outcome == history.Unknown: // it may be tried again
			case op.Kind == history.Release:
				over = true
			}
		}
		if over {
			owned, since = -1, -1
		}
		if over && vague || x.Kind == history.Release && x.Until > until {
			continue
		}
		for n, b := range lives {
			if n != monitor.Session(&x) && b.from > owned && b.granted < x.Call && x.Return < b.end && since <= b.granted {
				return false
			}
		}
	}
	return true
}

// strays adds releases and extensions in sessions that had already ended or were never granted the lock.
func strays(r *rand.Rand, ops []history.Op) []history.Op {
	end := ops[len(ops)-1].Return
	for range r.IntN(3) {
		op := released(90, 1+r.Int64N(int64(len(ops))), 0, 0)
		op.Call = upTo(r, int(end))
		op.Return = op.Call + upTo(r, 2)
		if chance(r, 30) {
			op.Kind = history.Extend
		}
		ops = append(ops, op)
	}
	return complete(ops)
}

func TestCrossOwnerOnlyRelease(t *testing.T) {
	open := newOwnerOnlyRelease
	for _, ttl := range []time.Duration{4, 12} {
		t.Run(fmt.Sprintf("ttl=%d/noise", ttl), func(t *testing.T) {
			cross(t, 1, open, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := &history.Header{TTL: ttl}
				return h, named(r, strays(r, lockNoise(r, h, 4+r.IntN(20))))
			}, bruteOwners)
		})
	}
	t.Run("a correct lock is never blamed", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(crossRuns()) {
			r := rand.New(rand.NewPCG(seed, 11))
			h := &history.Header{TTL: 3 + upTo(r, 12), Drift: upTo(r, 2)}
			h.Grace = h.Drift + 10 // clients pause between two attempts
			ops := named(r, lockRun(r, h, 30, false))
			for _, m := range []Monitor{newOwnerOnlyRelease(h), newMutualExclusion(h), newProgress(h), newLockLinear(h)} {
				if v := feedAdvancing(m, ops); v.Result == Violated {
					t.Fatalf("seed %d: %s: %s\n%s", seed, v.Property, v.Why, show(h, ops))
				}
			}
		}
	})
}

// bruteTokens takes the tokens in rising order and fits each into its interval.
func bruteTokens(ops []history.Op, distinct bool, from func(*history.Op) time.Duration, takes func(*history.Op) bool) bool {
	var list []history.Op
	for _, op := range ops {
		if takes(&op) {
			list = append(list, op)
		}
	}
	slices.SortFunc(list, func(a, b history.Op) int {
		return cmp.Or(cmp.Compare(a.Fence, b.Fence), cmp.Compare(from(&a), from(&b)))
	})
	t := time.Duration(-1)
	for i := 0; i < len(list); {
		j, next := i, t
		for ; j < len(list) && list[j].Fence == list[i].Fence; j++ {
			at := max(t, from(&list[j]))
			if at > list[j].Return {
				return false
			}
			next = max(next, at)
		}
		if distinct && j > i+1 {
			return false
		}
		t, i = next, j
	}
	return true
}

func TestCrossTokens(t *testing.T) {
	fences := func(r *rand.Rand, ops []history.Op) {
		f := int64(1)
		for i := range ops {
			if chance(r, 90) {
				f++
			}
			ops[i].Fence = max(1, f+int64(upTo(r, 2))-1)
		}
	}
	t.Run("grants", func(t *testing.T) {
		cross(t, 1, newGrantTokens, func(r *rand.Rand) (*history.Header, []history.Op) {
			h := &history.Header{TTL: 6}
			ops := lockNoise(r, h, 2+r.IntN(10))
			fences(r, ops)
			return h, ops
		}, func(h *history.Header, ops []history.Op) bool {
			return bruteTokens(ops, true, func(op *history.Op) time.Duration { return monitor.Granted(h, op) },
				func(op *history.Op) bool { return op.Kind == history.Acquire && op.Outcome == history.OK })
		})
	})
	t.Run("accepts", func(t *testing.T) {
		cross(t, 1, func(h *history.Header) Monitor { return saleOf(h, variant.Fencing) }, func(r *rand.Rand) (*history.Header, []history.Op) {
			var ops []history.Op
			for i := range 1 + r.IntN(7) {
				call := upTo(r, 12)
				op := withFence(saleOp(history.Buy, int32(i), int64(i), call, call+1+upTo(r, 6), history.OK, history.NoReason), 1+int64(r.IntN(4)))
				switch r.IntN(8) {
				case 0, 1:
					op.Outcome, op.Reason = history.Refused, history.Stale
				case 2:
					op.Outcome = history.Unknown
				case 3:
					op.Outcome, op.Reason = history.Refused, history.SoldOut
				case 4:
					op.Reason = history.Repeated
				}
				ops = append(ops, op)
			}
			return &history.Header{}, complete(ops)
		}, func(_ *history.Header, ops []history.Op) bool {
			return acceptable(ops, make([]bool, len(ops)), make([]bool, len(ops)), 0, 0)
		})
	})
}

// TestCrossTold compares the monitor with porcupine on histories in which answers tell buyers how many pieces are
// left. Some answers are missing, are repetitions, or tell no number, and there are refunds.
func TestCrossTold(t *testing.T) {
	cross(t, 0.02, openSale, func(r *rand.Rand) (*history.Header, []history.Op) {
		h := &history.Header{Stock: 1 + int64(r.IntN(6))}
		left, now := h.Stock, time.Duration(0)
		var ops []history.Op
		for i := range 1 + r.IntN(8) {
			now += upTo(r, 3)
			op := saleOp(history.Buy, int32(i), int64(i), max(0, now-upTo(r, 6)), now+upTo(r, 6), history.OK, history.NoReason)
			op.Amount = 1 + int32(r.IntN(8)/7)
			if q := op.Pieces(); left >= q {
				left -= q
				op.Result = history.Int(left)
			} else {
				op.Outcome, op.Reason = history.Refused, history.SoldOut
			}
			switch r.IntN(16) {
			case 0:
				op.Outcome, op.Reason, op.Return, op.Result = history.Unknown, history.NoReason, history.Forever, history.Value{}
			case 1:
				op.Result = history.Value{}
			case 2:
				op.Result = history.Int(max(0, left-1+int64(r.IntN(3))))
			case 3:
				if i > 0 {
					back := ops[r.IntN(i)]
					op.Kind, op.Arg, op.Amount, op.Outcome, op.Reason = history.Refund, back.Arg, back.Amount, history.OK, history.NoReason
					left += back.Pieces()
					op.Result = history.Int(left)
				}
			}
			ops = append(ops, op)
		}
		return h, complete(ops)
	}, porcupineStock)
}

// bruteNet returns the largest number of pieces that was surely sold at any moment.
func bruteNet(ops []history.Op) int64 {
	var peak int64
	for _, at := range ops {
		standing := make(map[history.Value]int64)
		for _, op := range ops {
			if op.Kind == history.Buy && op.Outcome == history.OK && op.Return <= at.Return {
				standing[op.Arg] += op.Pieces()
			}
		}
		for _, back := range ops {
			if back.Kind != history.Refund || back.Reason == history.Repeated || back.Call > at.Return {
				continue
			}
			for _, buy := range ops {
				if buy.Kind == history.Buy && buy.Arg == back.Arg && (back.Outcome == history.Unknown || buy.Call <= back.Return) {
					standing[back.Arg] = max(0, standing[back.Arg]-back.Pieces())
				}
			}
		}
		var net int64
		for _, n := range standing {
			net += n
		}
		peak = max(peak, net)
	}
	return peak
}

// bruteRefusals returns false if a client was refused while at every moment enough stock was surely left.
func bruteRefusals(h *history.Header, ops []history.Op) bool {
	for _, no := range ops {
		if no.Reason != history.SoldOut {
			continue
		}
		explained := false
		for t := no.Call; t <= no.Return && !explained; t++ {
			left := h.Stock
			for _, op := range ops {
				switch {
				case op.Kind == history.Buy && op.Outcome != history.Refused && op.Reason != history.Repeated && op.Call <= t:
					left -= op.Pieces()
				case op.Kind == history.Refund && op.Outcome == history.OK && op.Reason != history.Repeated && op.Return < t:
					left += op.Pieces()
				}
			}
			explained = left < no.Pieces()
		}
		if !explained {
			return false
		}
	}
	return true
}

func TestCrossBooks(t *testing.T) {
	m := saleMix{amounts: true, refunds: true, unknown: true}
	make := func(r *rand.Rand) (*history.Header, []history.Op) {
		h := &history.Header{Stock: int64(r.IntN(8))}
		ops := saleNoise(r, h, 3+r.IntN(12), m)
		if chance(r, 50) {
			ops = saleRun(r, h, 3+r.IntN(20), m, true)
		}
		for i, op := range ops { // "refunded before" must refer to some refund; otherwise make it a plain one
			if op.Kind == history.Refund && op.Reason == history.Repeated && !slices.ContainsFunc(ops, func(o history.Op) bool {
				return o.Kind == history.Refund && o.Reason != history.Repeated && o.Arg == op.Arg && o.Call <= op.Return
			}) {
				ops[i].Reason = history.NoReason
			}
		}
		return h, ops
	}
	t.Run("oversell", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(crossRuns()) {
			h, ops := make(rand.New(rand.NewPCG(seed, 20240521)))
			v := both(t, h, func() Monitor { return saleOf(h, variant.NoOversell) }, ops)
			legal := bruteNet(ops) <= h.Stock
			if v.Result == Holds && !legal || v.Result == Violated && legal && porcupineStock(h, withoutRefusals(ops)) {
				t.Fatalf("seed %d: the monitor says %v (%s), want legal=%v\n%s", seed, v.Result, v.Why, legal, show(h, ops))
			}
		}
	})
	t.Run("undersell", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(crossRuns()) {
			h, ops := make(rand.New(rand.NewPCG(seed, 5)))
			v := both(t, h, func() Monitor { return saleOf(h, variant.NoUndersell) }, ops)
			if ok := bruteRefusals(h, ops); ok != (v.Result != Violated) {
				t.Fatalf("seed %d: %v (%s), want legal=%v\n%s", seed, v.Result, v.Why, ok, show(h, ops))
			}
		}
	})
}

// withoutRefusals returns the purchases and refunds that may have had an effect. They have a legal order exactly if
// there was stock for them.
func withoutRefusals(ops []history.Op) []history.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op history.Op) bool { return op.Outcome == history.Refused })
}

// TestCrossOverlappingRefunds compares no-oversell with porcupine on histories in which a refund overlaps the
// purchase that it returns.
func TestCrossOverlappingRefunds(t *testing.T) {
	var results [3]int
	for seed := range uint64(crossRuns() / 4) {
		r := rand.New(rand.NewPCG(seed, 92))
		h := &history.Header{Stock: int64(r.IntN(4))}
		var ops []history.Op
		for i := range 1 + r.IntN(4) {
			buy := pieces(bought(int32(i), int64(i), upTo(r, 12), 0), int32(1+r.IntN(2)))
			buy.Return = buy.Call + 1 + upTo(r, 6)
			back := pieces(saleOp(history.Refund, int32(10+i), int64(i), buy.Call+upTo(r, 8), 0, history.OK, history.NoReason), buy.Amount)
			back.Return = max(buy.Call, back.Call) + 1 + upTo(r, 6)
			for _, op := range []*history.Op{&buy, &back} {
				if chance(r, 15) {
					op.Outcome = history.Unknown
				}
			}
			if ops = append(ops, buy); chance(r, 75) {
				ops = append(ops, back)
			}
		}
		ops = complete(ops)
		v := both(t, h, func() Monitor { return saleOf(h, variant.NoOversell) }, ops)
		results[v.Result]++
		if legal := porcupineStock(h, ops); legal == (v.Result == Violated) {
			t.Fatalf("seed %d: %v (%s), want legal=%v\n%s", seed, v.Result, v.Why, legal, show(h, ops))
		}
	}
	t.Logf("%v", results)
	if results[Holds] == 0 || results[Violated] == 0 || results[Unknown] == 0 {
		t.Errorf("the generator does not make every kind of history: %v", results)
	}
}

// acceptable tries every order in which the operations were accepted and refused as stale. Before that, or without an
// answer, each may have registered its token.
func acceptable(ops []history.Op, done, shown []bool, now time.Duration, registered int64) bool {
	left := false
	for i, op := range ops {
		accepts, refuses := op.Outcome == history.OK && op.Reason == history.NoReason, op.Reason == history.Stale
		if done[i] || !accepts && !refuses {
			continue
		}
		left = true
		t := max(now, op.Call)
		if t > op.Return {
			return false // its interval is already over
		}
		if refuses == (registered > op.Fence) {
			done[i] = true
			if acceptable(ops, done, shown, t, max(registered, op.Fence)) {
				return true
			}
			done[i] = false
		}
	}
	for i, op := range ops {
		if t := max(now, op.Call); left && !shown[i] && op.Fence > registered && t <= op.End() {
			shown[i] = true
			if acceptable(ops, done, shown, t, op.Fence) {
				return true
			}
			shown[i] = false
		}
	}
	return !left
}
