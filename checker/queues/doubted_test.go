package queues

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// TestDoubted checks that verdicts do not change if every task is looked at one by one.
func TestDoubted(t *testing.T) {
	judges := map[string]func(*queue) monitor.Verdict{
		"lost": (*queue).lost, "duplicates": (*queue).duplicates, "effectsOnce": (*queue).effectsOnce, "early": (*queue).early, "oneEntry": (*queue).oneEntry,
	}
	violated, passed, plain := map[string]int{}, map[string]int{}, 0
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		qs := newQueues(&monitor.Shared{Header: &history.Header{Objects: []variant.Object{variant.Queue}, Overwrite: seed%2 == 0}})
		ops := doubtfulOps(r)
		for i := range ops {
			qs.observe(&ops[i])
		}
		for _, q := range qs.All.All {
			told := map[string]string{}
			for name, judge := range judges {
				v := judge(q)
				told[name] = fmt.Sprintf("%v %d of %d: %v", v.Result, v.Count, v.Opportunities, v.Why)
				switch v.Result {
				case monitor.Violated:
					violated[name]++
				case monitor.Holds:
					passed[name]++
				}
			}
			plain += int(q.tasks.Len()) - len(q.doubted)
			q.doubted, q.waited, q.racedEffects = nil, 0, 0
			for i := range q.tasks.Len() {
				q.tasks.At(i).doubted = true
				q.doubted = append(q.doubted, i)
			}
			for name, judge := range judges {
				v := judge(q)
				if all := fmt.Sprintf("%v %d of %d: %v", v.Result, v.Count, v.Opportunities, v.Why); all != told[name] && v.Count <= 1 {
					t.Fatalf("seed %d: %s: %s; with all tasks doubted: %s", seed, name, told[name], all)
				}
			}
		}
	}
	for name := range judges {
		if violated[name] < 100 || passed[name] < 100 {
			t.Errorf("%s: violated %d times, passed %d times; want 100 of each", name, violated[name], passed[name])
		}
	}
	if plain < 10_000 {
		t.Errorf("%d tasks were not doubted; want 10,000", plain)
	}
}

// doubtfulOps returns a few operations on a few tasks. Most tasks are enqueued, delivered and done in this order.
func doubtfulOps(r *rand.Rand) (ops []history.Op) {
	odd := func() bool { return r.IntN(12) == 0 }
	var next []history.Op
	tasks := 1 + r.IntN(4)
	for id := range tasks {
		for _, kind := range []history.Kind{history.Enqueue, history.Pop, history.Effect} {
			times := 1
			if odd() {
				times = r.IntN(3)
			}
			for range times {
				op := history.Op{Kind: kind, Outcome: history.OK, Key: history.Text("q"), Arg: history.Int(int64(id + 1)), Client: int32(r.IntN(3))}
				switch kind {
				case history.Enqueue:
					if r.IntN(3) == 0 {
						op.Until = time.Duration(1 + r.IntN(60))
					}
				case history.Pop:
					op.Arg, op.Result, op.Amount, op.Session = history.Value{}, op.Arg, 1, history.Int(int64(len(next)+1))
				}
				switch r.IntN(40) {
				case 0:
					op.Outcome = history.Unknown
				case 1:
					op.Reason = history.Repeated
				case 2:
					op.Amount = 2
				case 3:
					op.Kind = history.Dequeue
				}
				next = append(next, op)
			}
		}
	}
	if odd() {
		r.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
	}
	now := time.Duration(1)
	for _, op := range next {
		now += time.Duration(1 + r.IntN(10))
		op.Call, op.Return = max(0, now-time.Duration(r.IntN(15))), now
		op.Due = op.Call
		ops = append(ops, op)
	}
	now++
	left := int64(0)
	for id := range tasks {
		for range max(0, r.IntN(6)-3) {
			now += 2
			left++
			ops = append(ops, history.Op{Client: -1, Kind: history.ReadState, Outcome: history.OK, Key: history.Text("q"), Arg: monitor.IsWaiting, Result: history.Int(int64(id + 1)), Call: now - 1, Return: now})
		}
	}
	return append(ops, history.Op{Client: -1, Kind: history.ReadState, Outcome: history.OK, Key: history.Text("q"), Arg: monitor.TheAudit, Result: history.Int(left), Call: now + 1, Return: now + 2})
}
