package checker

import (
	"math/rand/v2"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

var poolKey = history.Text("pool:{run}tasks")

func took(client int32, hold, task int64, call, ret, until time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Take, Outcome: history.OK, Key: poolKey, Arg: history.Int(int64(client)), Result: history.Int(task), Session: hold, Call: call, Return: ret, Until: until}
}

func submitted(client int32, hold, task int64, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Submit, Outcome: history.OK, Key: poolKey, Arg: history.Int(task), Session: hold, Call: call, Return: ret}
}

func declined(op history.Op) history.Op {
	op.Outcome, op.Reason = history.Refused, history.Lost
	return op
}

func noAnswer(op history.Op) history.Op { op.Outcome = history.Unknown; return op }

func noTask(client int32, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Take, Outcome: history.Refused, Reason: history.Empty, Key: poolKey, Arg: history.Int(int64(client)), Call: call, Return: ret}
}

func poolAudit(from time.Duration, what string, tasks ...int64) []history.Op {
	var ops []history.Op
	line := func(what string, n int64) {
		ops = append(ops, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: poolKey, Arg: history.Text(what), Result: history.Int(n), Call: from, Return: from + 1})
		from += 2
	}
	for _, task := range tasks {
		line(what, task)
	}
	line("audit", int64(len(tasks)))
	return ops
}

func TestOneHolder(t *testing.T) {
	h := history.Header{}
	first := took(1, 1, 7, 1, 2, 10)
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{first}, ops...) }
	runCases(t, func(*history.Header) Monitor { return newOneHolder() }, []verdictCase{
		{"two at once", h, list(took(2, 2, 7, 3, 4, 12)), Violated, "while client 1 held it"},
		{"two tasks", h, list(took(2, 2, 8, 3, 4, 12)), Holds, "2 holds of 2 tasks"},
		{"after the limit", h, list(took(2, 2, 7, 9, 10, 19)), Holds, ""},
		{"just before the limit", h, list(took(2, 2, 7, 8, 9, 19)), Violated, ""},
		{"after the submit", h, list(submitted(1, 1, 7, 4, 5), took(2, 2, 7, 3, 4, 19)), Holds, ""},
		{"before the submit", h, list(submitted(1, 1, 7, 5, 6), took(2, 2, 7, 3, 4, 19)), Violated, "submitted it only at"},
		{"given up", h, list(noAnswer(submitted(1, 1, 7, 3, 4)), took(2, 2, 7, 3, 4, 19)), Holds, ""},
		{"a late commit is another matter", h, list(took(2, 2, 7, 12, 13, 22), submitted(1, 1, 7, 14, 15)), Holds, ""},
		{"without a limit", h, []history.Op{took(1, 1, 7, 1, 2, 0), took(2, 2, 7, 300, 400, 500)}, Violated, ""},
		{"granted too late to hold", h, []history.Op{took(1, 1, 7, 1, 12, 10), took(2, 2, 7, 13, 14, 30)}, Holds, ""},
		{"nothing", h, []history.Op{noTask(1, 1, 2)}, Unknown, "nobody was given a task"},
	})
}

func TestHolderCommits(t *testing.T) {
	h := history.Header{}
	lapsed := []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 12, 13, 22)}
	list := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), lapsed...), ops...) }
	runCases(t, func(*history.Header) Monitor { return newHolderCommits() }, []verdictCase{
		{"late", h, list(submitted(1, 1, 7, 14, 15)), Violated, "late commit: client 1 was given task 7 until"},
		{"late even after the other one's limit", h, list(submitted(1, 1, 7, 40, 50)), Violated, ""},
		{"declined", h, list(declined(submitted(1, 1, 7, 14, 15)), submitted(2, 2, 7, 16, 17)), Holds, "1 commit landed, none after another user was given the task; 1 submit refused"},
		{"as the other was given it", h, list(submitted(1, 1, 7, 13, 15)), Holds, ""},
		{"perhaps in time, at an earlier try", h, list(noAnswer(submitted(1, 1, 7, 5, 6)), submitted(1, 1, 7, 14, 15)), Holds, ""},
		{"late, but nobody else wanted it", h, []history.Op{took(1, 1, 7, 1, 2, 10), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"another task", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 8, 12, 13, 22), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"given to the other before", h, []history.Op{took(2, 2, 7, 1, 2, 10), took(1, 1, 7, 12, 13, 22), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"given at the same time", h, []history.Op{took(2, 2, 7, 1, 4, 10), took(1, 1, 7, 3, 5, 12), submitted(1, 1, 7, 6, 7)}, Holds, ""},
		{"late, after the other one's commit", h, list(submitted(2, 2, 7, 14, 15), submitted(1, 1, 7, 16, 17)), Violated, "late commit"},
		{"two commits", h, []history.Op{took(2, 2, 7, 1, 4, 10), took(1, 1, 7, 3, 5, 12), submitted(1, 1, 7, 6, 7), submitted(2, 2, 7, 6, 8)}, Violated, "two commits of task 7"},
		{"nothing", h, lapsed, Unknown, "nobody submitted"},
	})
}

func TestTaskReturns(t *testing.T) {
	h := history.Header{Grace: 1}
	lost := took(1, 1, 7, 1, 2, 10)
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{lost}, ops...) }
	with := func(ops []history.Op, more ...history.Op) []history.Op { return append(list(more...), ops...) }
	runCases(t, func(h *history.Header) Monitor { return newTaskReturns(h) }, []verdictCase{
		{"refused twice", h, list(noTask(1, 12, 13), noTask(1, 15, 16)), Violated, "and client 1 again at"},
		{"refused once", h, list(noTask(1, 12, 13)), Unknown, "is not known"},
		{"refused twice within the grace", h, list(noTask(1, 12, 13), noTask(1, 14, 15)), Unknown, ""},
		{"refused twice before the limit", h, list(noTask(1, 3, 4), noTask(1, 9, 10)), Unknown, ""},
		{"another user may not be able to do it", h, list(noTask(2, 12, 13), noTask(2, 15, 16)), Unknown, ""},
		{"taken again", h, list(noTask(1, 12, 13), took(2, 2, 7, 14, 15, 24), noTask(1, 15, 16), submitted(2, 2, 7, 16, 17)), Holds, "1 ended by the limit, of which 1 returned"},
		{"taken again too late", h, list(noTask(1, 12, 13), noTask(1, 15, 16), took(2, 2, 7, 17, 18, 24), submitted(2, 2, 7, 19, 20)), Violated, ""},
		{"submitted", h, list(submitted(1, 1, 7, 3, 4), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, "1 hold: 1 submitted"},
		{"submitted late", h, list(submitted(1, 1, 7, 13, 14)), Holds, "1 submitted, 0 ended"},
		{"submitted late, and declined", h, list(declined(submitted(1, 1, 7, 13, 14))), Holds, "of which 1 returned"},
		{"submitted late, and another had been given it", h, list(took(2, 2, 7, 12, 13, 22), submitted(2, 2, 7, 14, 15), submitted(1, 1, 7, 16, 17)), Holds, "of which 1 returned"},
		{"submitted late, and nobody was given it", h, list(noTask(1, 12, 13), noTask(1, 15, 16), submitted(1, 1, 7, 17, 18)), Violated, ""},
		{"perhaps submitted", h, list(noAnswer(submitted(1, 1, 7, 3, 4)), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, ""},
		{"somebody without an answer may hold it", h, list(noAnswer(noTask(3, 5, 6)), noTask(1, 12, 13), noTask(1, 15, 16)), Unknown, "may hold as many"},
		{"free in the end", h, with(poolAudit(20, "free", 7)), Holds, ""},
		{"held in the end, and somebody had asked", h, with(poolAudit(20, "held", 7), noTask(2, 12, 13)), Violated, "still calls it held"},
		{"held in the end, and nobody had asked", h, with(poolAudit(20, "held", 7)), Unknown, ""},
		{"held in the end, in time", h, with(poolAudit(11, "held", 7)), Unknown, "no hold is known to have ended"},
		{"gone", h, with(poolAudit(20, "free", 8), noTask(2, 12, 13)), Violated, "does not list it"},
		{"held as far as counted", h, list(noTask(2, 12, 13), inPool("count-held", 1, 20)), Violated, "counts 1 task held"},
		{"none held as far as counted", h, list(noTask(2, 12, 13), inPool("count-held", 0, 20)), Holds, ""},
		{"held by two, one of them in time", h, list(took(2, 2, 7, 3, 4, 30), noTask(1, 12, 13), noTask(1, 15, 16)), Unknown, ""},
		{"nothing", h, []history.Op{noTask(1, 1, 2)}, Unknown, "nobody was given a task"},
	})
}

func inPool(what string, n int64, call time.Duration) history.Op {
	op := read(what, n, call)
	op.Key = poolKey
	return op
}

// dispatchNoise generates a pool's history at random.
func dispatchNoise(r *rand.Rand, n int) []history.Op {
	people := make([]person, 2+r.IntN(3))
	for i := range people {
		people[i].free = upTo(r, 4) - 1
	}
	var ops []history.Op
	tasks := make(map[int32]int64)
	hold := int64(0)
	for len(ops) < n {
		i := int32(r.IntN(len(people)))
		p := &people[i]
		call := p.free + 1 + upTo(r, 4)
		p.free = call + upTo(r, 4)
		if p.session == 0 {
			hold++
			p.session, tasks[i] = hold, int64(1+r.IntN(4))
			ops = append(ops, took(i, hold, tasks[i], call, p.free, call+4+upTo(r, 6)))
			continue
		}
		op := submitted(i, p.session, tasks[i], call, p.free)
		p.session = 0
		switch {
		case chance(r, 30):
			continue // it went away
		case chance(r, 20):
			op = noAnswer(op)
		case chance(r, 40):
			op = declined(op)
		}
		ops = append(ops, op)
	}
	return complete(ops)
}

func TestCrossDispatch(t *testing.T) {
	t.Parallel()
	var seen [3]int
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 13))
		ops := dispatchNoise(r, 3+r.IntN(12))
		type hold struct{ take, submit history.Op }
		var holds []hold
		for _, op := range ops {
			if op.Kind == history.Take {
				h := hold{take: op}
				for _, s := range ops {
					if s.Kind == history.Submit && s.Session == op.Session {
						h.submit = s
					}
				}
				holds = append(holds, h)
			}
		}
		held, commits := Holds, Unknown
		for _, a := range holds {
			end := a.take.Until
			if a.submit.Kind == history.Submit {
				end = min(end, a.submit.Call)
				if a.submit.Outcome != history.Unknown && commits != Violated {
					commits = Holds
				}
			}
			for _, b := range holds {
				if b.take.Session == a.take.Session || b.take.Result != a.take.Result {
					continue
				}
				endB := b.take.Until
				if b.submit.Kind == history.Submit {
					endB = min(endB, b.submit.Call)
				}
				if a.take.Return < endB && b.take.Return < end && a.take.Return < end && b.take.Return < endB {
					held = Violated
				}
				late := a.take.Return < b.take.Call && b.take.Return < a.submit.Call
				if a.submit.Outcome == history.OK && (late || b.submit.Outcome == history.OK) {
					commits = Violated
				}
			}
		}
		want := map[variant.Property]Result{variant.OneHolderPerTask: held, variant.HolderCommits: commits}
		for _, open := range []func() Monitor{func() Monitor { return newOneHolder() }, func() Monitor { return newHolderCommits() }} {
			v, w := feed(open(), ops), feedAdvancing(open(), ops)
			if v.Result != want[v.Property] || w.Result != v.Result || w.Count != v.Count {
				t.Fatalf("seed %d: %s: %v (%s), advancing %v, want %v\n%s", seed, v.Property, v.Result, v.Why, w.Result, want[v.Property], showTasks(&history.Header{}, ops))
			}
			seen[v.Result]++
		}
	}
	if seen[Holds] == 0 || seen[Violated] == 0 {
		t.Errorf("the generator makes only one kind of history: %v", seen)
	}
}
