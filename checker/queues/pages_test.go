package queues

import (
	"math/rand/v2"
	"testing"
	"time"

	"oversell/checker/monitor"
	"oversell/checker/monitor/packtest"
	"oversell/history"
)

// TestPack checks that a queue's records, tasks and states keep the value of their last change when their pages are
// packed in between, and that usual values take little room.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	odd := func() bool { return r.IntN(20) == 0 }
	value := func(near int64) history.Value {
		switch {
		case odd():
			return history.Int(int64(r.Uint64()))
		case odd():
			return history.Text(string(rune('a' + r.IntN(26))))
		}
		return history.Int(near + int64(r.IntN(4)))
	}
	packs(t, "record", packRecord, 22, func(i int32, v *record) {
		now := time.Duration(i) * 10 * time.Microsecond
		*v = record{call: now, ret: now + time.Duration(r.IntN(1e6)), session: value(int64(i)), client: int32(r.IntN(64)), task: i / 3, next: i + 1 + int32(r.IntN(3)),
			kind: history.Pop, outcome: history.OK, attempt: 1}
		if odd() {
			v.ret, v.due, v.next, v.task, v.since, v.attempt = history.Forever, now+time.Second, -1, -1, i, 3
			v.kind, v.outcome, v.reason = history.Dequeue, history.Unknown, history.Reason(r.IntN(60))
		}
	})
	packs(t, "task", packTask, 15, func(i int32, v *task) {
		*v = task{id: value(int64(i)), first: 3 * i, last: 3*i + 2, puts: 1, pops: 1, takes: 1, effects: 1, done: 1, client: int32(r.IntN(64)), met: r.IntN(2) == 0, waited: r.IntN(2) == 0}
		if odd() {
			*v = task{id: value(int64(i)), first: -1, last: -1, maybePuts: int32(r.IntN(1 << 30)), dead: 1, raced: true, stopped: true, delayed: true, early: true, doubted: true}
		}
	})
	packs(t, "state", packState, 6, func(i int32, v *state) {
		*v = state{version: int32(r.IntN(3))}
		if odd() {
			*v = state{lo: monitor.Always, hi: history.Forever, sight: time.Duration(i), put: i, asked: 5, since: 7, credit: 2, flying: 1, version: 9, phase: anew, taking: true}
		}
	})
}

// TestPackEveryField checks that packing loses no field of a record or a task.
func TestPackEveryField(t *testing.T) {
	packtest.Fields(t, packRecord, func(i int32) record {
		at := time.Duration(i) * time.Microsecond
		return record{call: at, ret: at + 5, session: history.Int(int64(i)), client: i % 64, task: i / 3, next: i + 1, kind: history.Pop, outcome: history.OK, attempt: 1}
	})
	packtest.Fields(t, packTask, func(i int32) task {
		return task{id: history.Int(int64(i)), first: 3 * i, last: 3*i + 2, puts: 1, pops: 1, takes: 1, effects: 1, done: 1, client: i % 64}
	})
}

// packs adds values to pages, changes older ones now and then, and checks that none is lost.
func packs[T comparable](t *testing.T, what string, code func(*monitor.Packer, int32, *T, *T), most float64, set func(int32, *T)) {
	ps := monitor.NewPages(code)
	var all []T
	r := rand.New(rand.NewPCG(1, 2))
	check := func(i int32) *T {
		v := ps.At(i)
		if *v != all[i] {
			t.Fatalf("%s %d is %+v, and was %+v", what, i, *v, all[i])
		}
		return v
	}
	for range 200_000 {
		i := ps.Add()
		set(i, ps.At(i))
		all = append(all, *ps.At(i))
		if r.IntN(100) == 0 {
			old := int32(r.IntN(len(all)))
			set(old, check(old))
			all[old] = *ps.At(old)
		}
	}
	values, bytes := ps.Packed()
	if each := float64(bytes) / float64(values); values < len(all)/2 || each > most {
		t.Errorf("%d of %d are packed, each %s in %.1f bytes; want most, in at most %.0f", values, len(all), what, each, most)
	}
	seen := int32(0)
	ps.Each(func(i int32, v *T) {
		if i != seen || *v != all[i] {
			t.Fatalf("%s %d, which should be number %d, is %+v, and was %+v", what, i, seen, *v, all[i])
		}
		seen++
	})
	if still, _ := ps.Packed(); seen != ps.Len() || still != values {
		t.Errorf("Each visited %d of %d values, and left %d packed; before, %d were packed", seen, ps.Len(), still, values)
	}
	other := ps.Clone()
	set(0, other.At(0))
	for range 2000 { // several pages
		i := ps.Add()
		set(i, ps.At(i))
		all = append(all, *ps.At(i))
		*other.At(other.Add()) = all[0]
	}
	for i := range ps.Len() {
		check(i)
	}
}
