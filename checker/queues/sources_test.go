package queues

import (
	"cmp"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
)

// bruteSource returns the enqueue that a delivery can stem from, by the definition in the comment of queue.early. Of
// several it returns the one due first.
func bruteSource(p *record, puts, pops []*record, replaces bool) *record {
	used := monitor.Always
	for i, e := range puts {
		taken := 0
		for _, o := range pops {
			if o.ret < e.call {
				taken++
			}
		}
		if e.end() < p.call && (replaces || taken >= i) {
			used = max(used, e.call)
		}
	}
	var out *record
	for _, e := range puts {
		if e.call <= p.ret && e.end() >= used && (out == nil || e.due < out.due) {
			out = e
		}
	}
	return out
}

// bruteTwice reports whether an id was delivered too often: at least twice more than it can have been enqueued in
// some stretch of time, or at least once more up to some moment.
func bruteTwice(puts, pops []*record) bool {
	between := func(list []*record, from, to time.Duration, within bool) (n int) {
		for _, r := range list {
			if within && r.call >= from && r.ret <= to || !within && r.call <= to && r.end() >= from {
				n++
			}
		}
		return n
	}
	for _, b := range pops {
		if between(pops, monitor.Always, b.ret, true) > between(puts, monitor.Always, b.ret, false) {
			return true
		}
		for _, a := range pops {
			if a.call <= b.ret && between(pops, a.call, b.ret, true)-1 > between(puts, a.call, b.ret, false) {
				return true
			}
		}
	}
	return false
}

var key = history.Text("Queue:tasks")

func upTo(r *rand.Rand, most int) time.Duration { return time.Duration(r.IntN(most + 1)) }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// rounds returns how many histories are tried.
func rounds() int {
	if os.Getenv("OVERSELL_LONG") != "" {
		return 40_000
	}
	return 5_000
}

// TestCrossOneID compares the procedures for an id that is enqueued and popped many times with their definitions.
func TestCrossOneID(t *testing.T) {
	t.Parallel()
	seen := make(map[bool]int)
	for seed := range uint64(rounds()) {
		r := rand.New(rand.NewPCG(seed, 15))
		m := newQueues(&monitor.Shared{Header: &history.Header{Overwrite: chance(r, 30)}})
		var ops []history.Op
		for i := range 2 + r.IntN(20) {
			call := time.Duration(4*i) + upTo(r, 20)
			op := history.Op{Client: int32(i), Kind: history.Pop, Outcome: history.OK, Key: key, Result: history.Int(7), Amount: 1, Call: call, Return: call + upTo(r, 20)}
			if chance(r, 55) {
				op = history.Op{Client: int32(i), Kind: history.Enqueue, Outcome: history.OK, Key: key, Arg: history.Int(7), Call: call, Return: call + upTo(r, 20), Until: 1 + upTo(r, 50)}
				if chance(r, 20) {
					op.Outcome = history.Unknown
				}
			}
			ops = append(ops, op)
		}
		slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		for i := range ops {
			m.observe(&ops[i])
		}
		q := m.All.At(key)
		task := q.tasks.At(0)
		var puts, pops []*record
		q.each(task, func(r *record) {
			if r.kind == history.Pop {
				pops = append(pops, r)
			} else {
				puts = append(puts, r)
			}
		})
		slices.SortStableFunc(puts, func(a, b *record) int { return cmp.Compare(a.call, b.call) })
		for i, got := range q.sources(puts, pops) {
			want := bruteSource(pops[i], puts, pops, q.h.Overwrite)
			if (got == nil) != (want == nil) || got != nil && got.due != want.due {
				t.Fatalf("seed %d: the source of delivery %d is %+v, want %+v\n%v", seed, i, got, want, ops)
			}
		}
		_, b := q.twice(task)
		want := bruteTwice(puts, pops)
		if (b != nil) != want {
			t.Fatalf("seed %d: a delivery without an enqueue of its own: %v, want %v\n%v", seed, b != nil, want, ops)
		}
		seen[want]++
	}
	if len(seen) < 2 {
		t.Errorf("the generator makes only one kind of history: %v", seen)
	}
}
