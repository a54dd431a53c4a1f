package checker

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// openQueue opens the monitor of one property of queues.
func openQueue(p variant.Property) func(*history.Header) Monitor { return monitorOf(variant.Queue, p) }

// judgedExactly reports whether the monitor judged every task exactly; otherwise its sentence says "loosely".
func judgedExactly(v Verdict) bool { return !strings.Contains(v.Why, "loosely") }

func TestCrossQueue(t *testing.T) {
	linear := openQueue(variant.Linearizable)
	mixes := []queueMix{
		{}, {lost: true}, {withdraws: true, lost: true}, {again: true, withdraws: true},
		{lost: true, asks: true, audit: true}, {again: true, withdraws: true, lost: true, asks: true, audit: true},
	}
	for i := range mixes {
		if i > 0 && !long() {
			break // without OVERSELL_LONG one subtest draws all mixes
		}
		mix := func(r *rand.Rand) queueMix {
			if !long() {
				return mixes[r.IntN(len(mixes))]
			}
			return mixes[i]
		}
		t.Run(fmt.Sprintf("simulated/porcupine/%d", i), func(t *testing.T) {
			agree(t, 0.25, linear, func(r *rand.Rand) (*history.Header, []history.Op) {
				h := &history.Header{Overwrite: chance(r, 50)}
				return h, queueRun(r, h, 3+r.IntN(10), mix(r), chance(r, 60))
			}, legalQueue, judgedExactly)
		})
		t.Run(fmt.Sprintf("noise/porcupine/%d", i), func(t *testing.T) {
			agree(t, 0.25, linear, func(r *rand.Rand) (*history.Header, []history.Op) {
				return &history.Header{Overwrite: chance(r, 50)}, queueNoise(r, 2+r.IntN(8), mix(r))
			}, legalQueue, judgedExactly)
		})
		t.Run(fmt.Sprintf("simulated/timed/%d", i), func(t *testing.T) {
			agree(t, 0.25, linear, func(r *rand.Rand) (*history.Header, []history.Op) {
				h, m := &history.Header{Drift: upTo(r, 2), Overwrite: chance(r, 50)}, mix(r)
				m.timed = true
				return h, queueRun(r, h, 3+r.IntN(8), m, chance(r, 60))
			}, legalTimed, judgedExactly)
		})
		t.Run(fmt.Sprintf("noise/timed/%d", i), func(t *testing.T) {
			agree(t, 0.25, linear, func(r *rand.Rand) (*history.Header, []history.Op) {
				m := mix(r)
				m.timed = true
				return &history.Header{Drift: upTo(r, 2), Overwrite: chance(r, 50)}, queueNoise(r, 2+r.IntN(7), m)
			}, legalTimed, judgedExactly)
		})
	}
}

// bruteOrder judges in-order by its definition, for ids enqueued once: x can have been taken at a moment at which no
// task that was surely due earlier was surely in the queue.
func bruteOrder(h *history.Header, ops []history.Op) bool {
	steps := queueSteps(h, ops)
	put, take := make(map[history.Value]*queueStep), make(map[history.Value]*queueStep)
	for i := range steps {
		switch s := &steps[i]; {
		case s.op.Kind == history.Enqueue:
			put[s.op.Arg] = s
		case s.op.Kind == history.Pop && s.op.Outcome == history.OK:
			if take[s.op.Result] == nil {
				take[s.op.Result] = s
			}
		}
	}
	for id, p := range take {
		x := put[id]
		if x == nil {
			continue
		}
		from := max(x.op.Call, p.op.Call, x.from)
		if from > p.op.Return { // handed out too early: not a question of order
			from = max(x.op.Call, p.op.Call)
		}
		free := from > p.op.Return // handed out before its enqueue: not a question of order either
		for t := from; t <= p.op.Return && !free; t++ {
			free = true
			for other, y := range put {
				end := history.Forever
				if q := take[other]; q != nil {
					end = q.op.Call
				}
				if y.op.Outcome == history.OK && y.hi < x.lo && y.op.Return < t && t < end {
					free = false
				}
			}
		}
		if !free {
			return false
		}
	}
	return true
}

func TestCrossInOrder(t *testing.T) {
	for _, timed := range []bool{false, true} {
		m := queueMix{timed: timed, lost: true}
		t.Run(fmt.Sprintf("timed=%v/simulated", timed), func(t *testing.T) {
			agree(t, 1, openQueue(variant.InOrder), func(r *rand.Rand) (*history.Header, []history.Op) {
				h := &history.Header{Drift: upTo(r, 2)}
				ops := queueRun(r, h, 3+r.IntN(20), m, chance(r, 60))
				return h, onlyOnce(ops)
			}, bruteOrder, toTheLetter)
		})
		t.Run(fmt.Sprintf("timed=%v/noise", timed), func(t *testing.T) {
			agree(t, 1, openQueue(variant.InOrder), func(r *rand.Rand) (*history.Header, []history.Op) {
				return &history.Header{Drift: upTo(r, 2)}, onlyOnce(queueNoise(r, 2+r.IntN(20), m))
			}, bruteOrder, toTheLetter)
		})
	}
}

// onlyOnce leaves out pops of a task that was popped before, or that was not yet enqueued.
func onlyOnce(ops []history.Op) []history.Op {
	seen, called := make(map[history.Value]bool), make(map[history.Value]time.Duration)
	for _, op := range ops {
		if op.Kind == history.Enqueue {
			called[op.Arg] = op.Call
		}
	}
	out := ops[:0]
	for _, op := range ops {
		if op.Kind == history.Pop && op.Outcome == history.OK {
			if call, ok := called[op.Result]; !ok || call > op.Return || seen[op.Result] {
				continue
			}
			seen[op.Result] = true
		}
		out = append(out, op)
	}
	return out
}

// bruteDeliveries tries all orders of the enqueues and pops of every id: each pop removes the entry.
func bruteDeliveries(_ *history.Header, ops []history.Op) bool {
	for id := int64(1); id < modelTasks; id++ {
		var mine []history.Op
		pops := 0
		for _, op := range ops {
			switch {
			case op.Kind == history.Enqueue && op.Arg == history.Int(id):
				mine = append(mine, op)
			case op.Kind == history.Pop && op.Outcome == history.OK && op.Result == history.Int(id):
				mine = append(mine, op)
				pops++
			}
		}
		var search func(done int, now int64, in bool) bool
		search = func(done int, now int64, in bool) bool {
			all := true
			for i, op := range mine {
				if done&(1<<i) != 0 {
					continue
				}
				all = all && op.Outcome == history.Unknown
				if t := max(now, int64(op.Call)); t <= int64(op.End()) && (op.Kind == history.Enqueue || in) && search(done|1<<i, t, op.Kind == history.Enqueue) {
					return true
				}
			}
			return all
		}
		if pops > 0 && !search(0, 0, false) {
			return false
		}
	}
	return true
}

func TestCrossDuplicates(t *testing.T) {
	agree(t, 1, openQueue(variant.NoDuplicateDelivery), func(r *rand.Rand) (*history.Header, []history.Op) {
		ops := queueNoise(r, 4+r.IntN(8), queueMix{again: true, lost: true})
		for i := range ops {
			if chance(r, 50) && ops[i].Kind == history.Pop && ops[i].Outcome == history.OK {
				ops[i].Result = history.Int(1 + r.Int64N(2))
			}
			if chance(r, 50) && ops[i].Kind == history.Enqueue {
				ops[i].Arg = history.Int(1 + r.Int64N(2))
			}
		}
		return &history.Header{}, ops
	}, bruteDeliveries, func(Verdict) bool { return false })
}

// TestCorrectQueueIsNeverBlamed runs all monitors over the histories of correct queues.
func TestCorrectQueueIsNeverBlamed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 3))
		h := &history.Header{Drift: upTo(r, 2), Grace: 20, Objects: []variant.Object{variant.Queue}, Overwrite: true}
		m := queueMix{timed: chance(r, 50), lost: chance(r, 30), asks: chance(r, 30), withdraws: chance(r, 50), again: chance(r, 50), audit: chance(r, 80)}
		ops := queueRun(r, h, 20, m, false)
		for _, m := range monitorsOf(variant.Queue, h) {
			v := feedAdvancing(m, ops)
			if v.Result == Violated && v.Property != variant.NoLostTask { // the generator makes no effects, so every task seems lost
				t.Fatalf("seed %d: %s: %s\n%s", seed, v.Property, v.Why, showTasks(h, ops))
			}
			if v.Why == "" {
				t.Fatalf("seed %d: %s: %v without a sentence", seed, v.Property, v.Result)
			}
		}
	}
}
