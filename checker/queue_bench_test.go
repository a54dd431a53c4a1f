package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// dueTask is a task in the queue.
type dueTask struct {
	due  time.Duration
	task int32
}

func byDue(a, b dueTask) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.task, b.task)) }

// dueLine holds the tasks in the queue, by due time.
type dueLine []dueTask

func (l *dueLine) push(e dueTask) {
	i, _ := slices.BinarySearchFunc(*l, e, byDue)
	*l = slices.Insert(*l, i, e)
}

func (l *dueLine) pop() dueTask {
	e := (*l)[0]
	*l = (*l)[1:]
	return e
}

// queueHistory returns the history of a correct queue: n operations (enqueues, half of them delayed; pops, some of
// them with nothing due; effects) and the final audit.
func queueHistory(n, clients int) []history.Op {
	r := rand.New(rand.NewPCG(5, 5))
	ops := make([]history.Op, 0, n+1000)
	free := make([]time.Duration, clients)
	var in dueLine // few are due at the same time
	now, task, request := time.Duration(1), int32(0), int64(0)
	for len(ops) < n {
		c := int32(r.IntN(clients))
		now = max(now, free[c]) + time.Duration(500+r.IntN(1000))
		op := history.Op{Client: c, Key: queueKey, Outcome: history.OK, Call: max(free[c]+1, now-time.Duration(r.IntN(20_000))), Return: now + time.Duration(r.IntN(20_000))}
		switch {
		case r.IntN(3) == 0 && len(in) < 1000:
			task++
			op.Kind, op.Arg, op.Until = history.Enqueue, history.Int(int64(task)), now
			if r.IntN(2) == 0 {
				op.Until += time.Duration(r.IntN(300_000))
			}
			in.push(dueTask{op.Until, task})
		default:
			request++
			op.Kind, op.Session = history.Pop, history.Int(request)
			if len(in) == 0 || in[0].due > now {
				if r.IntN(5) > 0 {
					continue
				}
				op.Outcome, op.Reason = history.Refused, history.Empty
				break
			}
			op.Result, op.Amount = history.Int(int64(in.pop().task)), 1
			done := history.Op{Client: c, Kind: history.Effect, Outcome: history.OK, Key: queueKey, Arg: op.Result, Call: op.Return + 1, Return: op.Return + 1000}
			free[c] = done.Return
			ops = append(ops, done)
		}
		free[c] = max(free[c], op.Return)
		ops = append(ops, op)
	}
	ops = complete(ops)
	end := ops[len(ops)-1].Return
	audit := func(what, result history.Value) {
		end += 2
		ops = append(ops, history.Op{Client: -1, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: what, Result: result, Call: end - 1, Return: end})
	}
	for _, e := range in {
		audit(monitor.IsWaiting, history.Int(int64(e.task)))
	}
	audit(monitor.TheAudit, history.Int(int64(len(in))))
	return ops
}

func BenchmarkQueue(b *testing.B) {
	h := history.Header{Grace: time.Second, Objects: []variant.Object{variant.Queue}}
	for _, clients := range []int{10, 1000} {
		ops := queueHistory(1_000_000, clients)
		b.Run(fmt.Sprintf("linearizable/1000000/clients=%d", clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return []Monitor{openQueue(variant.Linearizable)(&h)} })
		})
		b.Run(fmt.Sprintf("all/1000000/clients=%d", clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return monitorsOf(variant.Queue, &h) })
		})
	}
	for _, c := range []struct{ n, clients int }{{1000, 10}, {10_000, 10}, {1000, 100}} {
		ops := queueHistory(c.n, c.clients)
		b.Run(fmt.Sprintf("porcupine/%d/clients=%d", c.n, c.clients), func(b *testing.B) { benchPorcupineQueue(b, ops) })
	}
}

// waitingRoom returns a model of a queue that knows no time: its state is the list of all tasks in the queue, sorted
// by due time.
func waitingRoom() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []dueTask(nil) },
		Step: func(state, input, _ any) (bool, any) {
			in, op := state.([]dueTask), input.(history.Op)
			switch {
			case op.Kind == history.Enqueue:
				n, _ := op.Arg.Num()
				e := dueTask{op.Until, int32(n)}
				i, _ := slices.BinarySearchFunc(in, e, byDue)
				return true, slices.Insert(slices.Clone(in), i, e)
			case op.Outcome == history.Refused:
				return true, in // always legal: the tasks in the queue may be delayed
			}
			n, _ := op.Result.Num()
			if len(in) == 0 || int64(in[0].task) != n {
				return false, in
			}
			return true, in[1:]
		},
		Equal: func(a, b any) bool { return slices.Equal(a.([]dueTask), b.([]dueTask)) },
	}
}

func benchPorcupineQueue(b *testing.B, ops []history.Op) {
	var list []porcupine.Operation
	for _, op := range ops {
		if op.Kind == history.Enqueue || op.Kind == history.Pop {
			list = append(list, porcupine.Operation{ClientId: int(op.Client), Input: op, Call: int64(op.Call), Return: int64(op.Return)})
		}
	}
	for b.Loop() {
		switch porcupine.CheckOperationsTimeout(waitingRoom(), list, time.Minute) {
		case porcupine.Illegal:
			b.Fatal("porcupine found no order")
		case porcupine.Unknown:
			b.Skip("porcupine did not finish in a minute")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(list)), "ns/checked-op")
}

// BenchmarkQueueOneID judges one delayed task that is enqueued and popped again and again: the time per operation
// must not grow with their number.
func BenchmarkQueueOneID(b *testing.B) {
	for _, n := range []int{2000, 20_000} {
		var ops []history.Op
		for i := range n {
			t := time.Duration(10 * i)
			ops = append(ops, enqueued(1, 7, t+1, t+2, t+3), popped(2, 7, t+4, t+5), done(2, 7, t+6, t+7))
		}
		ops = append(ops, auditing(ops[len(ops)-1].Return+1, nil)...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return monitorsOf(variant.Queue, &history.Header{Grace: 1 << 40}) })
		})
	}
}
