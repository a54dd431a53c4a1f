package checker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

var (
	lockKey = history.Text("Lock:{run}order")
	shopKey = history.Text("phone")
)

// long reports whether the long cross-validation was asked for: OVERSELL_LONG=1.
func long() bool { return os.Getenv("OVERSELL_LONG") != "" }

// show formats a history for the message of a failed test.
func show(h *history.Header, ops []history.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "stock %d, ttl %d, drift %d, grace %d\n", h.Stock, h.TTL, h.Drift, h.Grace)
	for _, op := range ops {
		fmt.Fprintf(&b, "  [%d..%d] client %d %s %s", int64(op.Call), int64(op.Return), op.Client, op.Kind, op.Arg)
		if op.Kind == history.Buy || op.Kind == history.Refund {
			fmt.Fprintf(&b, " x%d", op.Pieces())
		}
		fmt.Fprintf(&b, " %s", op.Outcome)
		if op.Reason != history.NoReason {
			fmt.Fprintf(&b, " (%s)", op.Reason)
		}
		if op.Kind == history.ReadState {
			fmt.Fprintf(&b, " %s", op.Result)
		}
		if op.Until != 0 {
			fmt.Fprintf(&b, " until %d", int64(op.Until))
		}
		if op.Fence != 0 {
			fmt.Fprintf(&b, " fence %d", op.Fence)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// complete sorts operations into completion order.
func complete(ops []history.Op) []history.Op {
	slices.SortStableFunc(ops, func(a, b history.Op) int { return int(a.Return - b.Return) })
	return ops
}

// feed runs a monitor over ops without calling Advance.
func feed(m Monitor, ops []history.Op) Verdict {
	for _, op := range ops {
		m.Observe(&op)
	}
	return m.Verdict()
}

// feedAdvancing runs a monitor over ops with an exact Advance after every operation. Now and then it also asks for a
// verdict, which must not change anything.
func feedAdvancing(m Monitor, ops []history.Op) Verdict {
	low := make([]time.Duration, len(ops)+1)
	low[len(ops)] = history.Forever
	for i := len(ops) - 1; i >= 0; i-- {
		low[i] = min(low[i+1], ops[i].Call)
	}
	for i, op := range ops {
		m.Observe(&op)
		m.Advance(low[i+1])
		if i%3 == 0 {
			m.Verdict()
		}
	}
	return m.Verdict()
}

// both runs a monitor with feed and another with feedAdvancing, and fails when their results differ.
func both(t *testing.T, h *history.Header, open func() Monitor, ops []history.Op) Verdict {
	t.Helper()
	a, b := feed(open(), ops), feedAdvancing(open(), ops)
	if a.Result != b.Result {
		t.Fatalf("advancing changes the verdict from %v (%s) to %v (%s):\n%s", a.Result, a.Why, b.Result, b.Why, show(h, ops))
	}
	return a
}

// upTo returns a random duration from 0 to most.
func upTo(r *rand.Rand, most int) time.Duration { return time.Duration(r.IntN(most + 1)) }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

func acquired(client int32, session int64, call, ret, until time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Acquire, Outcome: history.OK, Key: lockKey, Arg: history.Int(session), Call: call, Return: ret, Until: until}
}

func lockOp(kind history.Kind, client int32, session int64, call, ret time.Duration, outcome history.Outcome, reason history.Reason) history.Op {
	return history.Op{Client: client, Kind: kind, Outcome: outcome, Reason: reason, Key: lockKey, Arg: history.Int(session), Call: call, Return: ret}
}

func held(client int32, session int64, call, ret time.Duration) history.Op {
	return lockOp(history.Acquire, client, session, call, ret, history.Refused, history.Held)
}

func released(client int32, session int64, call, ret time.Duration) history.Op {
	return lockOp(history.Release, client, session, call, ret, history.OK, history.NoReason)
}

func saleOp(kind history.Kind, client int32, order int64, call, ret time.Duration, outcome history.Outcome, reason history.Reason) history.Op {
	return history.Op{Client: client, Kind: kind, Outcome: outcome, Reason: reason, Key: shopKey, Arg: history.Int(order), Result: history.Int(-1), Call: call, Return: ret}
}

func bought(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Buy, client, order, call, ret, history.OK, history.NoReason)
}

func soldOutTo(client int32, order int64, call, ret time.Duration) history.Op {
	return saleOp(history.Buy, client, order, call, ret, history.Refused, history.SoldOut)
}

func read(what string, n int64, call time.Duration) history.Op {
	return history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: shopKey, Arg: history.Text(what), Result: history.Int(n), Call: call, Return: call + 1}
}

// monitorsOf returns all monitors of one object.
func monitorsOf(of variant.Object, h *history.Header) (ms []Monitor) {
	s := &Shared{Header: h}
	for _, j := range All {
		if j.Of == of {
			ms = append(ms, j.New(s))
		}
	}
	return ms
}

// monitorOf returns a function that opens the monitor of one property by itself.
func monitorOf(of variant.Object, p variant.Property) func(*history.Header) Monitor {
	return func(h *history.Header) Monitor {
		j, ok := find(of, p)
		if !ok {
			panic("no monitor of " + p)
		}
		return j.New(&Shared{Header: h})
	}
}

// saleOf returns the monitor of one property of sales.
func saleOf(h *history.Header, p variant.Property) Monitor { return monitorOf(variant.Sale, p)(h) }

// The monitors of locks.
var (
	newMutualExclusion  = monitorOf(variant.Lock, variant.MutualExclusion)
	newOwnerOnlyRelease = monitorOf(variant.Lock, variant.OwnerOnlyRelease)
	newGrantTokens      = monitorOf(variant.Lock, variant.Fencing)
	newFirstCome        = monitorOf(variant.Lock, variant.FIFO)
	newProgress         = monitorOf(variant.Lock, variant.Progress)
	newLockLinear       = monitorOf(variant.Lock, variant.Linearizable)
)

// lowWaters returns, for the start of every block, the earliest call of the operations from there on.
func lowWaters(ops []history.Op) []time.Duration {
	low := []time.Duration{history.Forever}
	if len(ops) > 0 {
		low[0] = ops[0].Call
	}
	for i := range ops {
		low[0] = min(low[0], ops[i].Call)
	}
	h := history.History{Ops: ops}
	for _, next := range h.Batches(judgeBlock) {
		low = append(low, next)
	}
	return low
}
