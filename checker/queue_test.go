package checker

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

func attempt(op history.Op, n int32) history.Op { op.Amount = n; return op }

func asRequest(op history.Op, n int64) history.Op { op.Session = history.Int(n); return op }

// unsaid returns an operation on a queue without an answer.
func unsaid(kind history.Kind, client int32, task int64, call, ret time.Duration) history.Op {
	return queueOp(kind, client, task, call, ret, history.Unknown, history.NoReason)
}

func done(client int32, task int64, call, ret time.Duration) history.Op {
	return queueOp(history.Effect, client, task, call, ret, history.OK, history.NoReason)
}

func again(op history.Op) history.Op { op.Reason = history.Repeated; return op }

func withdrawn(client int32, task int64, call, ret time.Duration) history.Op {
	return queueOp(history.Dequeue, client, task, call, ret, history.OK, history.NoReason)
}

// many returns enqueues of so many tasks.
func many(tasks int64) (ops []history.Op) {
	for task := range tasks {
		ops = append(ops, enqueued(1, task+1, time.Duration(2*task+1), time.Duration(2*task+2), 0))
	}
	return ops
}

func crashed(client int32, when time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Fault, Outcome: history.OK, Key: queueKey, Arg: monitor.Crash, Call: when, Return: when}
}

// auditing returns a final audit that begins at from: the tasks that are waiting, and the journal, whose entries are
// pairs of a request and the task that it took.
func auditing(from time.Duration, waiting []int64, journal ...[2]int64) []history.Op {
	var ops []history.Op
	line := func(what history.Value, task, session int64) {
		ops = append(ops, history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: queueKey, Arg: what, Result: history.Int(task), Session: history.Int(session), Call: from, Return: from + 1})
		from += 2
	}
	for _, task := range waiting {
		line(monitor.IsWaiting, task, 0)
	}
	for _, j := range journal {
		line(monitor.WasPopped, j[1], j[0])
	}
	line(monitor.TheAudit, int64(len(ops)), 0)
	return ops
}

func onlyClaimed(ops []history.Op) []history.Op {
	for i := range ops {
		if ops[i].Arg == monitor.IsWaiting {
			ops[i].Arg = monitor.IsClaimed
		}
	}
	return ops
}

// TestAuditBesideAnOpenCall checks that what an audit lists counts although a call without an answer may go on, and only as far as
// the tasks that it lists were surely taken before.
func TestAuditBesideAnOpenCall(t *testing.T) {
	open := queueOp(history.Enqueue, 5, 9, 12, 1000, history.Unknown, history.NoReason)
	of7 := queueOp(history.Enqueue, 5, 7, 12, 1000, history.Unknown, history.NoReason)
	asks := queueOp(history.Pop, 6, 0, 13, 1000, history.Unknown, history.NoReason)
	for _, tt := range []struct {
		name     string
		ops      []history.Op
		violated bool
	}{
		{"taken before", []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), open}, true},
		{"taken before, and a pop goes on", []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), asks}, true},
		{"perhaps enqueued again", []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), of7}, false},
		{"enqueued again", []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5), open}, false},
		{"never enqueued", []history.Op{enqueued(1, 8, 1, 2, 1), popped(2, 8, 3, 4), open}, true},
		{"taken while it was read", []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 15, 21), open}, false},
		{"not taken", []history.Op{enqueued(1, 8, 1, 2, 1), enqueued(1, 7, 3, 4, 3), popped(2, 8, 5, 6), open}, false},
	} {
		audit := auditing(20, []int64{7})
		audit[0].Return, audit[1].Call, audit[1].Return = 30, 31, 32
		ops := append(tt.ops, audit...)
		slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Queue}, Grace: 10}, Ops: ops, Trailer: &history.Trailer{}}
		for _, v := range Judge(h).Verdicts {
			if v.Property == variant.Linearizable && (v.Result == Violated) != tt.violated {
				t.Errorf("%s: %v (%s); want violated: %v", tt.name, v.Result, v.Why, tt.violated)
			}
		}
	}
}

// claimedToo makes the first task of a final audit a claimed one.
func claimedToo(ops []history.Op) []history.Op {
	onlyClaimed(ops[:1])
	return ops
}

func withAudit(ops []history.Op, waiting ...int64) []history.Op {
	return append(ops, auditing(1000, waiting)...)
}

func TestNoLostTask(t *testing.T) {
	h := history.Header{}
	list := func(ops ...history.Op) []history.Op { return ops }
	put, pop := enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4)
	buy := history.Op{Client: 2, Kind: history.Buy, Outcome: history.Refused, Reason: history.SoldOut, Key: shopKey, Arg: history.Int(7), Call: 5, Return: 6}
	inHand := func(task int64) history.Op {
		op := popped(2, task, 7, 8)
		op.Kind, op.Outcome, op.Reason, op.Arg, op.Result = history.Effect, history.Refused, history.Stopped, history.Int(task), history.Value{}
		return op
	}
	runCases(t, openQueue(variant.NoLostTask), []verdictCase{
		{"taken by one that died", h, withAudit(list(put, pop, crashed(2, 5))), Violated, "task is lost: 7 (handed to client 2 by 0.000 ms, which died"},
		{"handed to nobody", h, withAudit(list(put)), Violated, "handed to nobody"},
		{"handed to nobody, as far as is known", h, withAudit(list(put, unsaid(history.Pop, 2, 0, 3, 4))), Violated, "handed to nobody, unless by 1 pop without an answer"},
		{"handed to nobody, by a journal", h, append(list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 5), enqueued(1, 8, 5, 6, 1)), auditing(100, nil, [2]int64{5, 8})...), Violated, "7 (handed to nobody)"},
		{"not done", h, withAudit(list(put, pop)), Violated, "which did not do it"},
		{"in hand when the run ended", h, withAudit(list(put, pop, inHand(7))), Holds, "1 in a client's hands when the run ended"},
		{"more than are named", h, withAudit(many(12)), Violated, "12 of 12 tasks are lost: 1 (handed to nobody), 2 (handed to nobody), 3 (handed to nobody), 4, 5, 6, 7, 8, 9, 10, and 2 more"},
		{"another one in hand when the run ended", h, withAudit(list(put, pop, enqueued(1, 8, 3, 4, 1), popped(2, 8, 5, 6), inHand(8))), Violated, "lost: 7"},
		{"without an audit nobody knows", h, list(put, pop, crashed(2, 5)), Unknown, "there is no final audit"},
		{"with half an audit", h, append(list(put, pop), auditing(100, []int64{8})[1]), Unknown, "lists 0 of 1 entry"},
		{"went on after the audit", h, append(withAudit(list(put)), popped(2, 7, 2000, 2001)), Unknown, "is not final: it was read before all operations had ended"},
		{"done", h, list(put, pop, done(2, 7, 5, 6)), Holds, "1 task: 1 done"},
		{"done before, says the consumer", h, list(put, pop, again(done(2, 7, 5, 6))), Holds, ""},
		{"waiting", h, withAudit(list(put), 7), Holds, "1 waiting"},
		{"withdrawn", h, list(put, withdrawn(1, 7, 3, 4)), Holds, "1 withdrawn"},
		{"perhaps done", h, withAudit(list(put, pop, unsaid(history.Effect, 2, 7, 5, 6))), Unknown, "no answer"},
		{"an enqueue without an answer is not owed", h, withAudit(list(unsaid(history.Enqueue, 1, 7, 1, 2), pop)), Unknown, "no task was enqueued for certain"},
		{"but it is when the queue says it is there", h, withAudit(list(unsaid(history.Enqueue, 1, 7, 1, 2), again(enqueued(1, 7, 3, 4, 0)))), Violated, ""},
		{"done once, enqueued again, lost", h, withAudit(list(put, pop, done(2, 7, 5, 6), enqueued(1, 7, 7, 8, 7), popped(2, 7, 9, 10))), Violated, ""},
		{"done and withdrawn before it was enqueued", h, withAudit(list(done(2, 7, 1, 2), withdrawn(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5))), Violated, "handed to nobody"},
		{"withdrawn as it was enqueued", h, withAudit(list(withdrawn(2, 7, 3, 5), enqueued(1, 7, 5, 6, 5))), Holds, "1 withdrawn"},
		{"waiting by an audit that overlaps the pop", h, append(list(put, pop), auditing(4, []int64{7})...), Unknown, "lists 0 of 1 entry"},
		{"claimed by an audit that overlaps the end of its claim", h, append(list(put, pop, queueOp(history.Ack, 2, 7, 5, 8, history.OK, history.NoReason)), onlyClaimed(auditing(7, []int64{7}))...), Unknown, "lists 0 of 1 entry"},
		{"done, perhaps before it was enqueued, then lost", h, withAudit(list(unsaid(history.Enqueue, 1, 7, 1, 2), pop, done(2, 7, 5, 6), enqueued(3, 7, 7, 8, 7))), Violated, "1 of 1 task is lost"},
		{"done once, enqueued again, done before", h, list(put, pop, done(2, 7, 5, 6), enqueued(1, 7, 7, 8, 7), popped(2, 7, 9, 10), again(done(2, 7, 11, 12))), Holds, ""},
		{"taken by a request without an answer", h, append(list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 5)), auditing(100, nil, [2]int64{5, 7})...), Violated, "taken for client 2, which asked"},
		{"an order that was sold out is done", history.Header{Objects: []variant.Object{variant.Queue, variant.Sale}}, withAudit(list(put, pop, buy)), Holds, ""},
		{"in a queue of tasks it is not", h, withAudit(list(put, pop, buy)), Violated, ""},
	})
}

func TestNoDuplicateDelivery(t *testing.T) {
	h := history.Header{}
	put, pop := enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4)
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{put, pop}, ops...) }
	runCases(t, openQueue(variant.NoDuplicateDelivery), []verdictCase{
		{"handed out twice", h, list(popped(3, 7, 3, 5)), Violated, "and enqueued once"},
		{"enqueued again", h, list(enqueued(1, 7, 5, 6, 1), popped(3, 7, 7, 8)), Holds, "2 deliveries"},
		{"enqueued again at the same time", h, list(enqueued(1, 7, 3, 9, 1), popped(3, 7, 4, 5)), Holds, ""},
		{"perhaps enqueued again", h, list(unsaid(history.Enqueue, 1, 7, 2, 3), popped(3, 7, 100, 101)), Holds, ""},
		{"enqueued again only after", h, list(popped(3, 7, 5, 6), enqueued(1, 7, 7, 8, 1)), Violated, ""},
		{"enqueued again only before", h, []history.Op{put, enqueued(1, 7, 3, 4, 1), popped(2, 7, 5, 6), popped(3, 7, 7, 8)}, Violated, "not enqueued in between"},
		{"the enqueue changed nothing", h, list(again(enqueued(1, 7, 5, 6, 0)), popped(3, 7, 7, 8)), Violated, ""},
		{"announced", h, list(attempt(popped(3, 7, 50, 51), 2)), Violated, "1 of them announced as another attempt"},
		{"nobody had the other", h, list(asRequest(unsaid(history.Pop, 3, 0, 5, 6), 5)), Holds, ""},
		{"nothing handed out", h, []history.Op{put}, Unknown, "nobody was handed a task"},
		{"nobody enqueued it", h, list(popped(3, 8, 5, 6)), Violated, "task 8 was handed to client 3 between 0.000 ms and 0.000 ms, and nobody had enqueued it by then"},
		{"nobody enqueued it by then", h, list(popped(3, 8, 5, 6), enqueued(1, 8, 7, 8, 1)), Violated, "nobody had enqueued it by then"},
		{"perhaps enqueued", h, list(unsaid(history.Enqueue, 1, 8, 3, 4), popped(3, 8, 5, 6)), Holds, ""},
		{"enqueued as it was handed out", h, list(popped(3, 8, 5, 6), enqueued(1, 8, 6, 7, 1)), Holds, ""},
		{"told to be there already, and nobody had enqueued it", h, list(again(enqueued(1, 8, 3, 4, 1)), popped(3, 8, 5, 6)), Holds, ""},
		{"the same, handed out twice", h, list(again(enqueued(1, 8, 3, 4, 1)), popped(3, 8, 5, 6), popped(3, 8, 7, 8)), Violated, ""},
	})
}

func TestEffectOnce(t *testing.T) {
	h := history.Header{}
	put := enqueued(1, 7, 1, 2, 1)
	runCases(t, openQueue(variant.EffectOnce), []verdictCase{
		{"twice", h, []history.Op{put, done(2, 7, 5, 6), done(3, 7, 7, 8)}, Violated, "enqueued once, took effect 2 times"},
		{"the second a repetition", h, []history.Op{put, done(2, 7, 5, 6), again(done(3, 7, 7, 8))}, Holds, "1 effect, none twice; 1 told"},
		{"enqueued twice", h, []history.Op{put, done(2, 7, 5, 6), enqueued(1, 7, 6, 7, 6), done(3, 7, 7, 8)}, Holds, ""},
		{"perhaps enqueued twice", h, []history.Op{put, done(2, 7, 5, 6), unsaid(history.Enqueue, 1, 7, 6, 7), done(3, 7, 7, 8)}, Holds, ""},
		{"enqueued again only after both", h, []history.Op{put, done(2, 7, 3, 4), done(3, 7, 5, 6), enqueued(1, 7, 7, 8, 7)}, Violated, "took effect 2 times"},
		{"perhaps twice", h, []history.Op{put, done(2, 7, 5, 6), unsaid(history.Effect, 3, 7, 7, 8)}, Unknown, "may have taken effect twice"},
		{"once, perhaps", h, []history.Op{put, unsaid(history.Effect, 3, 7, 7, 8)}, Holds, ""},
		{"told to be done already, and done after that", h, []history.Op{put, again(done(2, 7, 5, 6)), done(3, 7, 7, 8)}, Violated, "took effect 2 times: by 0.000 ms, as client 2 was told, and by client 3"},
		{"told to be done already, perhaps by the effect that was under way", h, []history.Op{put, again(done(2, 7, 5, 6)), done(3, 7, 6, 8)}, Holds, ""},
		{"told to be done already, perhaps by an effect without an answer", h, []history.Op{put, unsaid(history.Effect, 4, 7, 3, 4), again(done(2, 7, 5, 6)), again(done(3, 7, 7, 8))}, Holds, ""},
		{"told to be done already, and done after it was enqueued again", h, []history.Op{put, again(done(2, 7, 5, 6)), enqueued(1, 7, 6, 7, 6), done(3, 7, 8, 9)}, Holds, ""},
		{"none", h, []history.Op{put}, Unknown, "no effect"},
		{"of a task that nobody enqueued", h, []history.Op{put, done(2, 8, 5, 6)}, Violated, "task 8 took effect by client 2"},
		{"of a task that was enqueued only after", h, []history.Op{done(2, 7, 0, 0), put}, Violated, "nobody had enqueued it by then"},
		{"of a task that was perhaps enqueued", h, []history.Op{put, unsaid(history.Enqueue, 1, 8, 3, 4), done(2, 8, 5, 6)}, Holds, ""},
		{"of a task that told that it was there already", h, []history.Op{again(put), done(2, 7, 5, 6)}, Holds, ""},
	})
}

func TestNotEarly(t *testing.T) {
	h := history.Header{}
	keeps := history.Header{Promises: []history.Promise{{Of: variant.Queue, Property: variant.OneEntryPerID}}}
	overwrites := history.Header{Overwrite: true}
	put := enqueued(1, 7, 1, 2, 10)
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{put}, ops...) }
	runCases(t, openQueue(variant.NotEarly), []verdictCase{
		{"early", h, list(popped(2, 7, 3, 9)), Violated, "was due only at"},
		{"just in time", h, list(popped(2, 7, 3, 10)), Holds, "1 of delayed tasks"},
		{"early within the drift", history.Header{Drift: 1}, list(popped(2, 7, 3, 9)), Holds, ""},
		{"due at once", h, []history.Op{enqueued(1, 7, 1, 2, 0), popped(2, 7, 1, 2)}, Holds, "0 of delayed tasks"},
		{"before the enqueue had returned", h, []history.Op{popped(2, 7, 3, 4), enqueued(1, 7, 1, 5, 10)}, Violated, ""},
		{"it may be an entry due earlier", h, list(enqueued(1, 7, 3, 4, 5), popped(2, 7, 5, 6)), Holds, ""},
		{"the earlier one was taken", h, []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 50), popped(2, 7, 7, 8)}, Violated, ""},
		{"perhaps it was not", h, []history.Op{enqueued(1, 7, 1, 2, 1), popped(2, 7, 3, 5), enqueued(1, 7, 5, 6, 50), popped(2, 7, 7, 8)}, Holds, ""},
		{"the earlier one was replaced", overwrites, []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 5, 6, 50), popped(2, 7, 7, 8)}, Violated, ""},
		{"perhaps it was not yet", overwrites, []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 5, 6, 50), popped(2, 7, 6, 8)}, Holds, ""},
		{"the later one was ignored", keeps, []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 5, 6, 50), popped(2, 7, 7, 8)}, Holds, ""},
		{"a redelivery comes when it comes", h, list(attempt(popped(2, 7, 3, 4), 2)), Unknown, "nobody was handed a task"},
	})
}

func TestOneEntry(t *testing.T) {
	h := history.Header{}
	two := []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 3, 4, 3)}
	list := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), two...), ops...) }
	runCases(t, openQueue(variant.OneEntryPerID), []verdictCase{
		{"waiting, and claimed from before", h, append(list(popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5)), claimedToo(auditing(1000, []int64{7, 7}))...), Holds, "none is waiting twice"},
		{"waiting twice", h, withAudit(list(), 7, 7), Violated, "2 times as waiting"},
		{"waiting once", h, withAudit(list(), 7), Holds, "enqueued again once"},
		{"twice for one request", h, list(asRequest(popped(2, 7, 5, 6), 3), asRequest(popped(2, 7, 5, 6), 3)), Violated, "by one request"},
		{"for two requests", h, withAudit(list(asRequest(popped(2, 7, 5, 6), 3), asRequest(popped(2, 7, 7, 8), 4))), Holds, ""},
		{"nobody looked", h, list(), Unknown, "no final audit"},
		{"nothing", h, withAudit([]history.Op{unsaid(history.Enqueue, 1, 7, 1, 2)}), Unknown, "no task was enqueued"},
	})
}

func TestInOrder(t *testing.T) {
	h := history.Header{}
	two := []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 8, 3, 4, 3)}
	list := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), two...), ops...) }
	runCases(t, openQueue(variant.InOrder), []verdictCase{
		{"the later one first", h, list(popped(2, 8, 5, 6)), Violated, "while task 7 was there"},
		{"a pop without an answer took nothing that waits at the end", h, withAudit(list(unsaid(history.Pop, 3, 0, 5, 6), popped(2, 8, 7, 8)), 7), Violated, "while task 7 was there"},
		{"a pop without an answer may have taken it, and it came back", history.Header{Visibility: 20}, withAudit(list(unsaid(history.Pop, 3, 0, 5, 6), popped(2, 8, 7, 8)), 7), Unknown, "may have taken that before"},
		{"the later one before the other was there", h, []history.Op{enqueued(1, 8, 1, 2, 3), popped(2, 8, 3, 4), enqueued(1, 7, 3, 4, 1), popped(2, 7, 5, 6)}, Holds, "2 first deliveries"},
		{"while the other may have been taken", h, list(popped(3, 7, 5, 7), popped(2, 8, 5, 6)), Holds, ""},
		{"due at the same time", h, []history.Op{enqueued(1, 7, 1, 2, 3), enqueued(1, 8, 3, 4, 3), popped(2, 8, 5, 6)}, Holds, ""},
		{"the last first, and nobody says when they were due", h, []history.Op{enqueued(1, 7, 1, 2, 0), enqueued(1, 8, 3, 4, 0), popped(2, 8, 5, 6)}, Violated, "task 8, due between"},
		{"the same, enqueued at once", h, []history.Op{enqueued(1, 7, 1, 3, 0), enqueued(3, 8, 3, 4, 0), popped(2, 8, 5, 6)}, Holds, ""},
		{"the same, within the drift", history.Header{Drift: 1}, []history.Op{enqueued(1, 7, 1, 2, 0), enqueued(3, 8, 3, 4, 0), popped(2, 8, 5, 6)}, Holds, ""},
		{"the last first, enqueued without an answer", h, []history.Op{enqueued(1, 7, 1, 2, 0), unsaid(history.Enqueue, 3, 8, 3, 4), popped(2, 8, 5, 6)}, Violated, "due at 0.000 ms or later"},
		{"due after the return of one at once", h, []history.Op{enqueued(1, 7, 1, 2, 0), enqueued(1, 8, 3, 4, 3), popped(2, 8, 5, 6)}, Violated, ""},
		{"the later one first, while the other was enqueued again", h, list(popped(2, 8, 5, 8), enqueued(1, 7, 7, 9, 2)), Violated, "while task 7 was there"},
		{"the same, with a later due time", h, list(popped(2, 8, 5, 8), enqueued(1, 7, 7, 9, 4)), Holds, "loosely"},
		{"the later one first, while the other was enqueued again without an answer", h, list(popped(2, 8, 5, 8), dueAt(unsaid(history.Enqueue, 1, 7, 7, 9), 2)), Violated, "while task 7 was there"},
		{"the same, and nobody was told when it is due", h, list(popped(2, 8, 5, 8), unsaid(history.Enqueue, 1, 7, 7, 9)), Holds, "loosely"},
		{"enqueued again to be due later, and handed out first", history.Header{Overwrite: true}, []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 3, 4, 9), enqueued(1, 8, 5, 6, 5), popped(2, 7, 10, 11)}, Violated, "while task 8 was there"},
		{"the same, where an enqueue may have been ignored", h, []history.Op{enqueued(1, 7, 1, 2, 1), enqueued(1, 7, 3, 4, 9), enqueued(1, 8, 5, 6, 5), popped(2, 7, 10, 11)}, Holds, "loosely"},
		{"a redelivery", h, list(popped(2, 7, 5, 6), popped(2, 8, 7, 8), attempt(popped(2, 7, 9, 10), 2)), Holds, "1 redelivery left out"},
		{"an unanswered pop may have taken the other", h, list(asRequest(unsaid(history.Pop, 3, 0, 5, 6), 1), popped(2, 8, 7, 8)), Unknown, "may have taken that before"},
		{"the journal says that it had", h, append(list(asRequest(unsaid(history.Pop, 3, 0, 5, 6), 1), popped(2, 8, 7, 8)), auditing(100, nil, [2]int64{1, 7})...), Holds, ""},
		{"the audit says that it had not", h, withAudit(list(asRequest(unsaid(history.Pop, 3, 0, 5, 6), 1), popped(2, 8, 7, 8)), 7), Violated, ""},
		{"called after it, it cannot have", h, list(popped(2, 8, 5, 6), asRequest(unsaid(history.Pop, 3, 0, 7, 8), 1)), Violated, ""},
		{"nothing", h, list(), Unknown, "nobody was handed a task"},
	})
}

func TestQueueProgress(t *testing.T) {
	h := history.Header{Grace: 10}
	put := enqueued(1, 7, 1, 2, 1)
	locked := func(client int32, call, ret time.Duration) history.Op {
		return queueOp(history.Pop, client, 0, call, ret, history.Refused, history.Held)
	}
	leased := history.Header{Grace: 8, TTL: 3}
	slowed := func(client int32, from, to time.Duration) history.Op {
		return history.Op{Client: client, Kind: history.Fault, Outcome: history.OK, Key: queueKey, Arg: history.Text("slow"), Call: from, Return: to}
	}
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{put}, ops...) }
	runCases(t, openQueue(variant.Progress), []verdictCase{
		{"asked in vain", h, list(nothingFor(2, 3, 4), nothingFor(2, 13, 14)), Violated, "nothing of"},
		{"for just so long", h, list(nothingFor(2, 3, 4), nothingFor(2, 12, 13), popped(2, 7, 14, 15)), Holds, "for 0.000 ms at the longest"},
		{"locked out", h, list(locked(2, 3, 4), locked(2, 13, 14)), Violated, "refused (held)"},
		{"nobody asked in between", h, list(nothingFor(2, 3, 4), nothingFor(2, 15, 16)), Unknown, "2 pops refused"},
		{"not due yet", h, []history.Op{enqueued(1, 7, 1, 2, 10), nothingFor(2, 3, 4), nothingFor(2, 13, 14), popped(2, 7, 15, 16)}, Holds, ""},
		{"due for long", h, []history.Op{enqueued(1, 7, 1, 2, 10), nothingFor(2, 11, 12), nothingFor(2, 20, 22)}, Violated, ""},
		{"another one was handed out", h, list(enqueued(1, 8, 3, 4, 1), nothingFor(2, 3, 4), popped(3, 8, 8, 9), nothingFor(2, 13, 14)), Holds, ""},
		{"another one was being handed out", h, list(enqueued(1, 8, 1, 2, 1), nothingFor(2, 3, 4), popped(3, 8, 4, 30), nothingFor(2, 13, 14)), Holds, ""},
		{"perhaps", h, list(nothingFor(2, 3, 4), unsaid(history.Pop, 3, 0, 3, 4), nothingFor(2, 13, 14), nothingFor(2, 23, 24)), Unknown, "without an answer"},
		{"while a fault held up who may have had the lock", leased, list(locked(2, 3, 4), slowed(3, 5, 8), locked(2, 12, 15), locked(2, 17, 17), popped(3, 7, 18, 19)), Holds, ""},
		{"for longer than that", leased, list(locked(2, 3, 4), slowed(3, 5, 8), locked(2, 12, 15), locked(2, 17, 18)), Violated, ""},
		{"while a fault held somebody up for longer than the lease", leased, list(locked(2, 3, 4), slowed(3, 5, 9), locked(2, 12, 15), locked(2, 17, 17)), Violated, ""},
		{"no grace", history.Header{}, list(nothingFor(2, 3, 4)), Unknown, "neither a lease nor a grace"},
	})
}

func TestQueueLinear(t *testing.T) {
	h := history.Header{}
	list := func(ops ...history.Op) []history.Op { return ops }
	put := enqueued(1, 7, 1, 2, 1)
	ms := time.Millisecond
	leases := history.Header{Visibility: 20}
	uncounted := func(op history.Op) history.Op { op.Amount = 0; return op }
	runCases(t, openQueue(variant.Linearizable), []verdictCase{
		{"waiting in the end, and nobody had enqueued it", h, withAudit(list(put), 7, 8), Violated, "which nobody had enqueued"},
		{"withdrawn when its claim had ended", leases, list(put, popped(2, 7, 3, 4), withdrawn(1, 7, 50, 51)), Holds, ""},
		{"withdrawn, and nobody had enqueued it", leases, list(withdrawn(1, 7, 50, 51)), Violated, "which nobody had enqueued"},
		{"delivered again without a number", leases, list(put, uncounted(popped(2, 7, 3, 4)), uncounted(popped(2, 7, 50, 51))), Holds, ""},
		{"delivered again as if it were the first time", leases, list(put, popped(2, 7, 3, 4), popped(2, 7, 50, 51)), Violated, "not been enqueued since"},
		{"nothing to do, after a pop without an answer", leases, withAudit(list(put, unsaid(history.Pop, 3, 0, 3, 4), nothingFor(2, 5, 6)), 7), Unknown, "1 pop without an answer may have taken tasks"},
		{"waiting in the end, and perhaps enqueued", h, withAudit(list(put, unsaid(history.Enqueue, 1, 8, 3, 4)), 7, 8), Holds, ""},
		{"waiting in the end, and it had been taken", h, withAudit(list(put, popped(2, 7, 3, 4), done(2, 7, 5, 6)), 7), Violated, "had taken it and nobody can have enqueued it since"},
		{"waiting in the end, and it had been withdrawn", h, withAudit(list(put, withdrawn(2, 7, 3, 4)), 7), Violated, ""},
		{"waiting in the end, as perhaps enqueued since", h, withAudit(list(put, popped(2, 7, 3, 4), unsaid(history.Enqueue, 1, 7, 1, 2)), 7), Unknown, "judged exactly"},
		{"waiting in the end, enqueued again only before", h, withAudit(list(put, enqueued(1, 7, 3, 4, 1), popped(2, 7, 5, 6)), 7), Violated, ""},
		{"waiting in the end, and a request without an answer had taken it", h, append(append(list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 5)), auditing(100, nil, [2]int64{5, 7})[0]), auditing(200, []int64{7})...), Violated, ""},
		{"waiting in the end, and a request without an answer took it then", h, append(list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 5)), auditing(100, []int64{7}, [2]int64{5, 7})...), Holds, ""},
		{"put back by a queue that hands tasks out again", history.Header{Visibility: 5}, withAudit(list(put, popped(2, 7, 3, 4)), 7), Holds, ""},
		{"read as waiting before the end", h, append(list(put, popped(2, 7, 3, 4)), auditing(4, []int64{7})...), Holds, ""},
		{"empty while there", h, list(put, nothingFor(2, 3, 4)), Violated, "nothing to do, while there was task 7"},
		{"empty before it had returned", h, list(put, nothingFor(2, 2, 4)), Holds, "1 enqueue, 0 first deliveries and 1 pop refused"},
		{"empty while it may have been taken", h, list(put, nothingFor(2, 3, 4), popped(3, 7, 4, 5)), Holds, ""},
		{"empty while it was not due", h, list(enqueued(1, 7, 1, 2, 5), nothingFor(2, 3, 5)), Holds, ""},
		{"empty when it was due", h, list(enqueued(1, 7, 1, 2, 5), nothingFor(2, 6, 7)), Violated, ""},
		{"empty within the drift", history.Header{Drift: 1}, list(enqueued(1, 7, 1, 2, 5), nothingFor(2, 6, 7)), Holds, ""},
		{"before the client of an enqueue without an answer had it due", h, list(dueAt(unsaid(history.Enqueue, 1, 7, 1, 2), 50), popped(2, 7, 3, 4)), Violated, "due only at"},
		{"when it had it due", h, list(dueAt(unsaid(history.Enqueue, 1, 7, 1, 2), 4), popped(2, 7, 3, 4)), Holds, ""},
		{"the last first, and nobody says when they were due", h, list(enqueued(1, 7, 1, 2, 0), enqueued(1, 8, 3, 4, 0), popped(2, 8, 5, 6)), Violated, "while task 7 was there"},
		{"without an answer, due at a time that nobody was told", h, list(unsaid(history.Enqueue, 1, 7, 1, 2), popped(2, 7, 3, 4)), Holds, ""},
		{"without an answer, due after another that was there", h, list(enqueued(1, 8, 1, 2, 2), dueAt(unsaid(history.Enqueue, 3, 7, 1, 2), 3), popped(2, 7, 4, 5)), Violated, "while task 8 was there"},
		{"from nowhere", h, list(popped(2, 7, 1, 2)), Violated, "nobody had enqueued"},
		{"before its enqueue", h, list(popped(2, 7, 1, 2), enqueued(1, 7, 3, 4, 1)), Violated, ""},
		{"at the same time", h, list(popped(2, 7, 1, 3), enqueued(1, 7, 3, 4, 1)), Holds, ""},
		{"twice", h, list(put, popped(2, 7, 3, 4), popped(3, 7, 5, 6)), Violated, "had been handed to client 2"},
		{"again", h, list(put, popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5), popped(3, 7, 7, 8), nothingFor(3, 9, 10)), Holds, ""},
		{"again, and forgotten", h, list(put, popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5), nothingFor(3, 7, 8)), Violated, ""},
		{"empty while it is enqueued again", h, list(put, nothingFor(2, 3, 6), enqueued(1, 7, 5, 7, 2)), Violated, "while there was task 7"},
		{"empty while it is enqueued again, to be due later", h, list(put, nothingFor(2, 3, 6), enqueued(1, 7, 5, 7, 9)), Holds, ""},
		{"enqueued by two at once, and forgotten", h, list(put, enqueued(3, 7, 1, 3, 1), nothingFor(2, 4, 5)), Violated, "while there was task 7"},
		{"enqueued by two at once, not due before the later time", h, list(put, enqueued(3, 7, 1, 3, 9), nothingFor(2, 4, 9)), Holds, ""},
		{"enqueued by two at once, due by the later time", h, list(put, enqueued(3, 7, 1, 3, 9), nothingFor(2, 10, 11)), Violated, ""},
		{"enqueued by two at once, and taken before either is due", h, list(enqueued(3, 7, 2*ms, 3*ms, 500*ms), enqueued(1, 7, 1*ms, 10*ms, 100*ms), popped(2, 7, 60*ms, 61*ms)), Violated, "was due only at 100.000 ms"},
		{"enqueued by two at once, and taken meanwhile", h, list(put, enqueued(3, 7, 1, 6, 1), popped(2, 7, 3, 4), nothingFor(2, 7, 8)), Unknown, "judged exactly"},
		{"enqueued by three at once, and taken", h, list(put, enqueued(3, 7, 1, 3, 1), enqueued(4, 7, 2, 3, 1), popped(2, 7, 4, 5), nothingFor(2, 6, 7)), Holds, "loosely"},
		{"enqueued by two at once, one perhaps", h, list(put, unsaid(history.Enqueue, 3, 7, 1, 3), nothingFor(2, 4, 5)), Violated, ""},
		{"the same, and both perhaps", h, []history.Op{unsaid(history.Enqueue, 1, 7, 1, 2), unsaid(history.Enqueue, 3, 7, 1, 3), nothingFor(2, 4, 5)}, Holds, ""},
		{"enqueued again all the while", h, list(put, enqueued(1, 7, 10, 30, 0), nothingFor(2, 5, 20)), Violated, "there was nothing to do, while there was task 7"},
		{"the same, and it is replaced", history.Header{Overwrite: true}, list(put, enqueued(1, 7, 10, 30, 0), nothingFor(2, 5, 20)), Violated, ""},
		{"the same, and clocks differ", history.Header{Drift: 3}, list(put, enqueued(1, 7, 10, 30, 0), nothingFor(2, 11, 20)), Holds, ""},
		{"the same, and it is to be due later", h, list(put, enqueued(1, 7, 10, 30, 40), nothingFor(2, 11, 20)), Holds, ""},
		{"enqueued again all the while, without an answer", h, list(put, unsaid(history.Enqueue, 1, 7, 10, 30), nothingFor(2, 5, 20)), Violated, ""},
		{"the same, and once more", h, list(put, unsaid(history.Enqueue, 1, 7, 3, 4), enqueued(3, 7, 10, 30, 0), nothingFor(2, 5, 20)), Violated, ""},
		{"the same, and it is taken", h, list(put, unsaid(history.Enqueue, 1, 7, 3, 4), enqueued(3, 7, 5, 6, 0), popped(2, 7, 7, 8), popped(2, 7, 9, 10), nothingFor(2, 11, 12)), Unknown, "judged exactly"},
		{"enqueued by two, of which one had ended", h, []history.Op{enqueued(1, 7, 1, 3, 0), enqueued(3, 7, 2, 30, 0), nothingFor(2, 5, 20)}, Violated, ""},
		{"the same, and taken in between", h, []history.Op{enqueued(1, 7, 1, 3, 0), enqueued(3, 7, 2, 30, 0), popped(4, 7, 4, 6), nothingFor(2, 7, 20), popped(4, 7, 31, 32)}, Unknown, "judged exactly"},
		{"replaced, and forgotten", h, list(put, enqueued(1, 7, 3, 4, 3), nothingFor(3, 5, 6)), Violated, ""},
		{"replaced, taken, and taken again", h, list(put, enqueued(1, 7, 3, 4, 3), popped(2, 7, 5, 6), popped(3, 7, 7, 8)), Violated, "not been enqueued since"},
		{"enqueued perhaps, taken, again, and forgotten", h, list(unsaid(history.Enqueue, 1, 7, 1, 2), popped(2, 7, 3, 4), enqueued(1, 7, 5, 6, 5), nothingFor(2, 7, 8)), Violated, ""},
		{"a pop without an answer may take what comes later", h, list(asRequest(unsaid(history.Pop, 2, 0, 1, 2), 1), enqueued(1, 7, 3, 4, 3), nothingFor(3, 5, 6)), Unknown, ""},
		{"too early", h, list(enqueued(1, 7, 1, 2, 9), popped(2, 7, 3, 4)), Violated, "was due only"},
		{"withdrawn", h, list(put, withdrawn(1, 7, 3, 4), nothingFor(2, 5, 6)), Holds, ""},
		{"withdrawn and taken", h, list(put, withdrawn(1, 7, 3, 4), popped(2, 7, 3, 4)), Violated, ""},
		{"withdrawn perhaps", h, list(put, unsaid(history.Dequeue, 1, 7, 3, 4), nothingFor(2, 50, 60)), Holds, "loosely"},
		{"enqueued perhaps", h, list(unsaid(history.Enqueue, 1, 7, 1, 2), nothingFor(2, 5, 6), popped(2, 7, 7, 8)), Holds, ""},
		{"the journal's pop cannot be placed", h, append(list(put, enqueued(1, 8, 3, 4, 2), asRequest(unsaid(history.Pop, 2, 0, 5, 6), 1)), auditing(100, []int64{7}, [2]int64{1, 8})...), Violated, ""},
		{"the journal's pop", h, append(list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 1), nothingFor(2, 5, 6)), auditing(100, nil, [2]int64{1, 7})...), Holds, ""},
		{"no journal", h, list(put, asRequest(unsaid(history.Pop, 2, 0, 3, 4), 1), nothingFor(2, 5, 6)), Unknown, "may have taken tasks"},
		{"nothing", h, list(again(put)), Unknown, ""},
	})
}

func dueAt(op history.Op, due time.Duration) history.Op { op.Until = due; return op }

// TestOpportunitiesOfQueues checks how many opportunities each promise has.
func TestOpportunitiesOfQueues(t *testing.T) {
	list := func(ops ...history.Op) []history.Op { return ops }
	elsewhere := func(op history.Op) history.Op { op.Key = history.Text("another"); return op }
	locked := nothingFor(3, 2, 6)
	locked.Reason = history.Held
	put := enqueued(1, 7, 1, 2, 1)
	for _, c := range []struct {
		name string
		ops  []history.Op
		want map[variant.Property]int64 // promises that are not named have none
	}{
		{"one client", list(put, enqueued(1, 7, 3, 4, 1), enqueued(1, 8, 5, 6, 60), popped(1, 7, 7, 8), nothingFor(1, 9, 10), done(1, 7, 11, 12)), nil},
		{"enqueued again, done by another", list(put, enqueued(1, 7, 3, 4, 1), popped(2, 7, 7, 8), done(2, 7, 11, 12)), map[variant.Property]int64{variant.EffectOnce: 1}},
		{"one after the other", list(put, popped(2, 7, 3, 4), done(2, 7, 5, 6)), nil},
		{"two consumers at once", list(put, popped(2, 7, 3, 5), nothingFor(3, 4, 6), done(2, 7, 7, 8)), map[variant.Property]int64{
			variant.NoDuplicateDelivery: 1, variant.Linearizable: 1,
		}},
		{"the one that gets it ends last", list(put, nothingFor(3, 3, 5), popped(2, 7, 4, 6), done(2, 7, 7, 8)), map[variant.Property]int64{
			variant.NoDuplicateDelivery: 1, variant.Linearizable: 1, variant.NoLostTask: 1, variant.EffectOnce: 1, variant.Progress: 1,
		}},
		{"one of them finds it locked", list(put, popped(2, 7, 3, 5), locked, done(2, 7, 7, 8)), map[variant.Property]int64{
			variant.NoDuplicateDelivery: 1,
		}},
		{"two in vain", list(put, nothingFor(2, 1, 3), nothingFor(3, 2, 4)), map[variant.Property]int64{variant.Linearizable: 2, variant.NoLostTask: 0}},
		{"no answers", list(put, unsaid(history.Pop, 2, 0, 1, 5), unsaid(history.Pop, 3, 0, 1, 6), unsaid(history.Enqueue, 4, 8, 1, 6)), nil},
		{"two keys", list(put, popped(2, 7, 3, 6), elsewhere(enqueued(3, 7, 1, 4, 1)), elsewhere(popped(3, 7, 5, 7))), nil},
		{"asked for before it was due", list(enqueued(1, 7, 1, 2, 20), nothingFor(2, 3, 4), popped(2, 7, 21, 22)), map[variant.Property]int64{variant.NotEarly: 1}},
		{"asked for by its own client", list(enqueued(1, 7, 1, 2, 20), nothingFor(1, 3, 4), popped(2, 7, 21, 22)), nil},
		{"another handed out instead", list(enqueued(1, 7, 1, 2, 20), enqueued(1, 8, 3, 4, 3), popped(2, 8, 5, 6), popped(2, 7, 21, 22)), map[variant.Property]int64{variant.NotEarly: 1, variant.InOrder: 1}},
		{"due at the same time", list(enqueued(1, 7, 1, 2, 3), enqueued(1, 8, 3, 4, 3), popped(2, 8, 5, 6)), nil},
		{"an id again", list(put, enqueued(1, 7, 3, 6, 1), again(enqueued(2, 7, 4, 7, 0)), enqueued(2, 7, 8, 9, 1)), map[variant.Property]int64{
			variant.OneEntryPerID: 1, variant.NoLostTask: 1, variant.Linearizable: 1,
		}},
	} {
		h := &history.Header{Objects: []variant.Object{variant.Queue}, Grace: 1 << 40}
		for _, p := range variant.PropertiesOf(variant.Queue) {
			ops := complete(slices.Clone(c.ops))
			if p == variant.Linearizable {
				ops = withAudit(ops)
			} else {
				ops = withAudit(ops, 7)
			}
			v := both(t, h, func() Monitor { return openQueue(p)(h) }, ops)
			if v.Result == Holds && v.Opportunities != c.want[p] {
				t.Errorf("%s: %s has %d opportunities, want %d (%s)", c.name, p, v.Opportunities, c.want[p], v.Why)
			}
			if v.Result != Holds && c.want[p] > 0 {
				t.Errorf("%s: %s is %v (%s), want %d opportunities", c.name, p, v.Result, v.Why, c.want[p])
			}
		}
	}
}
