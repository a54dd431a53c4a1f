package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

var poolKey = history.Text("pool:{run}tasks")

func took(client int32, hold, task int64, call, ret, until time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Take, Outcome: history.OK, Key: poolKey, Arg: history.Int(int64(client)), Result: history.Int(task), Session: history.Int(hold), Call: call, Return: ret, Until: until}
}

func submitted(client int32, hold, task int64, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.Submit, Outcome: history.OK, Key: poolKey, Arg: history.Int(task), Session: history.Int(hold), Call: call, Return: ret}
}

func declined(op history.Op) history.Op {
	op.Outcome, op.Reason = history.Refused, history.Lost
	return op
}

// stopped makes an operation one that its client did not ask for any more.
func stopped(op history.Op) history.Op {
	op.Outcome, op.Reason = history.Refused, history.Stopped
	return op
}

// byUser makes a take one of a user; 0: it names none.
func byUser(op history.Op, user int64) history.Op {
	if op.Arg = history.Int(user); user == 0 {
		op.Arg = history.Value{}
	}
	return op
}

func withCall(op history.Op, call time.Duration) history.Op {
	op.Call, op.Return = call, max(call, op.Return)
	return op
}

func withReturn(op history.Op, ret time.Duration) history.Op { op.Return = ret; return op }

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
	runCases(t, monitorOf(variant.Dispatch, variant.OneHolderPerTask), []verdictCase{
		{"two at once", h, list(took(2, 2, 7, 3, 4, 12)), Violated, "while client 1 held it"},
		{"two tasks", h, list(took(2, 2, 8, 3, 4, 12)), Holds, "2 holds of 2 tasks"},
		{"twice the same user", h, list(byUser(took(2, 2, 7, 3, 4, 12), 1)), Holds, "2 holds of 1 task"},
		{"the same user by two clients, and another", h, list(byUser(took(2, 2, 7, 3, 4, 12), 1), took(3, 3, 7, 5, 6, 12)), Violated, ""},
		{"the same user again for less time, and another", h, list(byUser(took(2, 2, 7, 3, 4, 5), 1), took(3, 3, 7, 6, 7, 12)), Violated, "while client 1 held it"},
		{"the same user again, and another after the first was submitted", h, list(submitted(1, 1, 7, 5, 6), byUser(took(2, 2, 7, 3, 4, 12), 1), took(3, 3, 7, 7, 8, 12)), Violated, "while client 2 held it"},
		{"another while the first was submitted and before the second was granted", h, list(submitted(1, 1, 7, 3, 20), took(3, 3, 7, 4, 5, 12), submitted(3, 3, 7, 6, 7), byUser(took(2, 2, 7, 8, 9, 30), 1)), Holds, ""},
		{"two who are not named", h, []history.Op{byUser(took(1, 1, 7, 1, 2, 10), 0), byUser(took(1, 2, 7, 3, 4, 12), 0)}, Violated, ""},
		{"after the limit", h, list(took(2, 2, 7, 9, 10, 19)), Holds, ""},
		{"just before the limit", h, list(took(2, 2, 7, 8, 9, 19)), Violated, ""},
		{"after the submit", h, list(submitted(1, 1, 7, 4, 5), took(2, 2, 7, 3, 4, 19)), Holds, ""},
		{"before the submit", h, list(submitted(1, 1, 7, 5, 6), took(2, 2, 7, 3, 4, 19)), Violated, "submitted it only at"},
		{"given up", h, list(noAnswer(submitted(1, 1, 7, 3, 4)), took(2, 2, 7, 3, 4, 19)), Holds, ""},
		{"a late commit is another matter", h, list(took(2, 2, 7, 12, 13, 22), submitted(1, 1, 7, 14, 15)), Holds, ""},
		{"a submit that was refused", h, list(declined(submitted(1, 1, 7, 4, 5)), took(2, 2, 7, 6, 7, 19)), Holds, ""},
		{"a submit that was not asked", h, list(stopped(submitted(1, 1, 7, 4, 5)), took(2, 2, 7, 6, 7, 19)), Violated, "and never submitted it"},
		{"the same, after the limit", h, list(stopped(submitted(1, 1, 7, 4, 5)), took(2, 2, 7, 11, 12, 19)), Holds, ""},
		{"the same, and it was asked again", h, list(stopped(submitted(1, 1, 7, 4, 5)), submitted(1, 1, 7, 6, 7), took(2, 2, 7, 8, 9, 19)), Holds, ""},
		{"without a limit", h, []history.Op{took(1, 1, 7, 1, 2, 0), took(2, 2, 7, 300, 400, 500)}, Violated, ""},
		{"granted too late to hold", h, []history.Op{took(1, 1, 7, 1, 12, 10), took(2, 2, 7, 13, 14, 30)}, Holds, ""},
		{"nothing", h, []history.Op{noTask(1, 1, 2)}, Unknown, "nobody was given a task"},
	})
}

func TestHolderCommits(t *testing.T) {
	h := history.Header{}
	lapsed := []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 12, 13, 22)}
	held9 := noTask(9, 3, 4)
	held9.Session = history.Int(9)
	list := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), lapsed...), ops...) }
	runCases(t, monitorOf(variant.Dispatch, variant.HolderCommits), []verdictCase{
		{"late", h, list(submitted(1, 1, 7, 14, 15)), Violated, "late commit: client 1 was given task 7 until"},
		{"late even after the other one's limit", h, list(submitted(1, 1, 7, 40, 50)), Violated, ""},
		{"late under one hold, and the user was given it again", h, list(byUser(took(3, 3, 7, 24, 25, 40), 1), submitted(1, 1, 7, 26, 27)), Holds, ""},
		{"under the earlier of two holds of one user", h, []history.Op{took(1, 1, 7, 1, 2, 10), byUser(took(2, 2, 7, 12, 13, 22), 1), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"the same, and another was given it before the second", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(3, 3, 7, 3, 4, 10), byUser(took(2, 2, 7, 12, 13, 22), 1), submitted(3, 3, 7, 14, 15)}, Violated, "late commit: client 3"},
		{"the same, and another was given it in between, and the user may have been", h, list(noAnswer(byUser(noTask(4, 14, 15), 1)), submitted(1, 1, 7, 16, 17)), Holds, ""},
		{"late, and the last take was the user's own, of which the answer is not there", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 3, 4, 10), submitted(1, 1, 7, 5, 6), byUser(took(3, 3, 7, 7, 8, 22), 1)}, Violated, "late commit"},
		{"finished, handed out again, and submitted again", h, []history.Op{took(1, 1, 7, 1, 2, 10), submitted(1, 1, 7, 3, 4), took(2, 2, 7, 12, 13, 22), submitted(2, 2, 7, 14, 15)}, Violated, "two commits of task 7"},
		{"the same, by one user", h, []history.Op{took(1, 1, 7, 1, 2, 10), submitted(1, 1, 7, 3, 4), byUser(took(2, 2, 7, 12, 13, 22), 1), submitted(2, 2, 7, 14, 15)}, Violated, "two commits of task 7"},
		{"declined", h, list(declined(submitted(1, 1, 7, 14, 15)), submitted(2, 2, 7, 16, 17)), Holds, "1 commit landed, none after another user was given the task; 1 submit refused"},
		{"as the other was given it", h, list(submitted(1, 1, 7, 13, 15)), Holds, ""},
		{"perhaps in time, at an earlier try", h, list(noAnswer(submitted(1, 1, 7, 5, 6)), submitted(1, 1, 7, 14, 15)), Holds, ""},
		{"late, after a try that was late as well", h, list(noAnswer(submitted(1, 1, 7, 14, 15)), submitted(1, 1, 7, 16, 17)), Violated, "late commit"},
		{"given it again by a take that returns later", h, list(byUser(took(3, 3, 7, 20, 60, 70), 1), submitted(1, 1, 7, 25, 50)), Holds, ""},
		{"late, and given it again by a take that was called later", h, list(submitted(1, 1, 7, 25, 30), byUser(took(3, 3, 7, 30, 60, 70), 1)), Violated, "late commit"},
		{"told to be a repetition, and another submits it later", h, []history.Op{took(1, 1, 7, 1, 2, 10), again(submitted(1, 1, 7, 3, 4)), took(2, 2, 7, 12, 13, 22), submitted(2, 2, 7, 14, 15)}, Violated, "second commit: task 7 was submitted by"},
		{"told to be a repetition, perhaps of another's try, who is told of success later", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 1, 3, 10), noAnswer(submitted(2, 2, 7, 4, 5)), again(submitted(1, 1, 7, 6, 7)), submitted(2, 2, 7, 8, 9)}, Holds, ""},
		{"the same, and the try is given up later", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 1, 3, 10), again(submitted(1, 1, 7, 6, 7)), submitted(3, 2, 7, 8, 9), noAnswer(submitted(2, 2, 7, 4, 15))}, Holds, ""},
		{"late, but nobody else wanted it", h, []history.Op{took(1, 1, 7, 1, 2, 10), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"another task", h, []history.Op{took(1, 1, 7, 1, 2, 10), took(2, 2, 8, 12, 13, 22), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"given to the other before", h, []history.Op{took(2, 2, 7, 1, 2, 10), took(1, 1, 7, 12, 13, 22), submitted(1, 1, 7, 14, 15)}, Holds, ""},
		{"given at the same time", h, []history.Op{took(2, 2, 7, 1, 4, 10), took(1, 1, 7, 3, 5, 12), submitted(1, 1, 7, 6, 7)}, Holds, ""},
		{"late, after the other one's commit", h, list(submitted(2, 2, 7, 14, 15), submitted(1, 1, 7, 16, 17)), Violated, "late commit"},
		{"two commits", h, []history.Op{took(2, 2, 7, 1, 4, 10), took(1, 1, 7, 3, 5, 12), submitted(1, 1, 7, 6, 7), submitted(2, 2, 7, 6, 8)}, Violated, "two commits of task 7"},
		{"nothing", h, lapsed, Unknown, "nobody submitted"},
		{"under a hold that nobody was granted", h, list(submitted(9, 9, 7, 14, 15)), Violated, "commit without a hold: client 9 was not given task 7, under hold 9 or another"},
		{"by the holder, under a hold that nobody was granted", h, list(submitted(2, 9, 7, 14, 15)), Holds, ""},
		{"under a hold of another task", h, []history.Op{took(1, 1, 7, 1, 2, 90), took(2, 2, 8, 3, 4, 90), submitted(2, 2, 7, 5, 6)}, Violated, "commit without a hold"},
		{"under a hold of another task, by the holder", h, []history.Op{took(1, 1, 7, 1, 2, 90), took(1, 2, 8, 3, 4, 90), submitted(1, 2, 7, 5, 6)}, Holds, ""},
		{"late, by the former holder, under a hold of another task", h, list(took(1, 3, 8, 14, 15, 90), submitted(1, 3, 7, 16, 17)), Violated, "late commit"},
		{"after a refused take", h, []history.Op{took(1, 1, 7, 1, 2, 90), held9, submitted(9, 9, 7, 14, 15)}, Violated, "commit without a hold"},
		{"after a take without an answer", h, []history.Op{took(1, 1, 7, 1, 2, 90), noAnswer(held9), submitted(9, 9, 7, 14, 15)}, Holds, ""},
		{"after a take without an answer that is given up later", h, []history.Op{took(1, 1, 7, 1, 2, 90), submitted(8, 9, 7, 14, 15), noAnswer(withReturn(held9, 50))}, Holds, ""},
		{"after a take without an answer under another hold", h, []history.Op{noAnswer(held9), submitted(9, 8, 7, 14, 15)}, Holds, ""},
		{"after another client's take without an answer", h, []history.Op{took(1, 1, 7, 1, 2, 90), noAnswer(held9), submitted(8, 8, 7, 14, 15)}, Violated, ""},
		{"before a take without an answer", h, []history.Op{took(1, 1, 7, 1, 2, 90), submitted(9, 8, 7, 3, 4), noAnswer(withCall(held9, 5))}, Violated, ""},
		{"perhaps in time, at a try that is given up later", h, list(submitted(8, 1, 7, 14, 15), noAnswer(submitted(1, 1, 7, 5, 50))), Holds, ""},
		{"refused, and then landed late", h, list(declined(submitted(1, 1, 7, 13, 14)), submitted(1, 1, 7, 15, 16)), Violated, "late commit"},
		{"late, and told to be a repetition of nothing", h, list(again(submitted(1, 1, 7, 14, 15)), declined(submitted(2, 2, 7, 16, 17))), Violated, "late commit"},
		{"late, and told to be a repetition twice", h, list(again(submitted(1, 1, 7, 14, 15)), again(submitted(1, 1, 7, 16, 17))), Violated, "late commit"},
		{"late, and told to be a repetition of the other one's", h, list(submitted(2, 2, 7, 14, 15), again(submitted(1, 1, 7, 16, 17))), Holds, ""},
		{"late, and told to be a repetition of one without an answer", h, list(noAnswer(submitted(2, 2, 7, 13, 14)), again(submitted(1, 1, 7, 14, 15))), Holds, ""},
		{"the same, and its client may have been given it by a take that is given up later", h, list(noAnswer(submitted(5, 5, 7, 13, 14)), again(submitted(1, 1, 7, 14, 15)), noAnswer(noTask(5, 10, 50))), Holds, ""},
		{"late, and told to be a repetition of one without an answer by nobody who was given it", h, list(noAnswer(submitted(5, 5, 7, 13, 14)), again(submitted(1, 1, 7, 14, 15))), Violated, "late commit"},
		{"late, and told to be a repetition before any other", h, list(again(submitted(1, 1, 7, 14, 15)), submitted(2, 2, 7, 16, 17)), Violated, ""},
		{"in time, and told to be a repetition", h, []history.Op{took(1, 1, 7, 1, 2, 10), again(submitted(1, 1, 7, 3, 4))}, Holds, ""},
	})
	h.Objects = []variant.Object{variant.Dispatch}
	for _, v := range Judge(&history.History{Header: h, Ops: list(submitted(9, 9, 7, 14, 15))}).Verdicts {
		if v.Property == variant.HolderCommits && v.Result != Unknown {
			t.Errorf("a commit without a hold in a history that was cut off: %v (%s)", v.Result, v.Why)
		}
	}
}

func TestTaskReturns(t *testing.T) {
	h := history.Header{Grace: 1}
	lost := took(1, 1, 7, 1, 2, 10)
	list := func(ops ...history.Op) []history.Op { return append([]history.Op{lost}, ops...) }
	returned := list(took(2, 2, 8, 20, 21, 30), took(3, 3, 8, 33, 34, 90), submitted(3, 3, 8, 35, 36)) // of two tasks, one
	with := func(ops []history.Op, more ...history.Op) []history.Op { return append(list(more...), ops...) }
	runCases(t, monitorOf(variant.Dispatch, variant.TaskReturns), []verdictCase{
		{"refused twice", h, list(noTask(1, 12, 13), noTask(1, 15, 16)), Violated, "and client 1 again at"},
		{"refused once", h, list(noTask(1, 12, 13)), Unknown, "is not known"},
		{"refused twice within the grace", h, list(noTask(1, 12, 13), noTask(1, 14, 15)), Unknown, ""},
		{"refused twice before the limit", h, list(noTask(1, 3, 4), noTask(1, 9, 10)), Unknown, ""},
		{"another user may not be able to do it", h, list(noTask(2, 12, 13), noTask(2, 15, 16)), Unknown, ""},
		{"taken again", h, list(noTask(1, 12, 13), took(2, 2, 7, 14, 15, 24), noTask(1, 15, 16), submitted(2, 2, 7, 16, 17)), Holds, "1 ended by the limit, of which 1 returned"},
		{"taken again by one who asked before the limit", h, list(took(2, 2, 7, 5, 15, 24), submitted(2, 2, 7, 16, 17)), Holds, "1 ended by the limit, of which 1 returned"},
		{"held by two, and the limit of one is over", h, []history.Op{took(1, 1, 7, 1, 2, 100), took(2, 2, 7, 3, 4, 10), noTask(2, 20, 21), noTask(2, 30, 31)}, Unknown, "no hold is known to have ended"},
		{"taken again too late", h, list(noTask(1, 12, 13), noTask(1, 15, 16), took(2, 2, 7, 17, 18, 24), submitted(2, 2, 7, 19, 20)), Violated, ""},
		{"submitted", h, list(submitted(1, 1, 7, 3, 4), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, "1 hold: 1 submitted"},
		{"submitted late", h, list(submitted(1, 1, 7, 13, 14)), Holds, "1 submitted, 0 ended"},
		{"submitted late, and declined", h, list(declined(submitted(1, 1, 7, 13, 14))), Holds, "of which 1 returned"},
		{"submitted late, and another had been given it", h, list(took(2, 2, 7, 12, 13, 22), submitted(2, 2, 7, 14, 15), submitted(1, 1, 7, 16, 17)), Holds, "of which 1 returned"},
		{"submitted late, and nobody was given it", h, list(noTask(1, 12, 13), noTask(1, 15, 16), submitted(1, 1, 7, 17, 18)), Violated, ""},
		{"perhaps submitted", h, list(noAnswer(submitted(1, 1, 7, 3, 4)), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, ""},
		{"somebody without an answer may hold it", h, list(noAnswer(noTask(3, 5, 6)), noTask(1, 12, 13), noTask(1, 15, 16)), Unknown, "may hold as many"},
		{"submitted in time, and declined", h, list(declined(submitted(1, 1, 7, 3, 4)), noTask(1, 12, 13), noTask(1, 15, 16)), Violated, "client 1 again at"},
		{"the same, and nobody asked", h, list(declined(submitted(1, 1, 7, 3, 4))), Unknown, "no hold is known to have ended"},
		{"a submit that was not asked", h, list(stopped(submitted(1, 1, 7, 3, 4)), noTask(1, 12, 13), noTask(1, 15, 16)), Violated, "client 1 again at"},
		{"the same, after the limit", h, list(stopped(submitted(1, 1, 7, 11, 12)), noTask(1, 12, 13), noTask(1, 15, 16)), Violated, ""},
		{"the same, after the audit", h, with(append(poolAudit(20, "held", 7), stopped(submitted(1, 1, 7, 30, 31))), noTask(2, 12, 13)), Violated, "still calls it held"},
		{"declined in time, and then submitted", h, list(declined(submitted(1, 1, 7, 3, 4)), submitted(1, 1, 7, 5, 6), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, "1 hold: 1 submitted"},
		{"submitted, and declined as done before", h, list(submitted(1, 1, 7, 3, 4), declined(submitted(1, 1, 7, 11, 12)), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, "1 hold: 1 submitted"},
		{"free in the end", h, with(poolAudit(20, "free", 7)), Holds, ""},
		{"held in the end, and somebody had asked", h, with(poolAudit(20, "held", 7), noTask(2, 12, 13)), Violated, "still calls it held"},
		{"held in the end, and nobody had asked", h, with(poolAudit(20, "held", 7)), Unknown, ""},
		{"held in the end, in time", h, with(poolAudit(11, "held", 7)), Unknown, "no hold is known to have ended"},
		{"gone", h, with(poolAudit(20, "free", 8), noTask(2, 12, 13)), Violated, "does not list it"},
		{"gone, and nobody had asked", h, with(poolAudit(20, "free", 8)), Violated, "does not list it"},
		{"gone, by an audit that lists nothing", h, with(poolAudit(20, "free")), Violated, "does not list it"},
		{"gone, within the grace", h, with(poolAudit(11, "free")), Unknown, "no hold is known to have ended"},
		{"gone, and one without an answer may hold it", h, with(poolAudit(20, "free"), noAnswer(noTask(3, 5, 6))), Unknown, "may hold as many"},
		{"gone, and the audit is not complete", h, list(inPool("audit", 1, 20)), Unknown, ""},
		{"done, and nobody submitted it", h, with(poolAudit(20, "done", 7)), Violated, "calls it done, though nobody can have submitted it"},
		{"the same, and the user was refused", h, with(poolAudit(20, "done", 7), declined(submitted(1, 1, 7, 12, 13))), Violated, "calls it done"},
		{"the same, and one without an answer may have", h, with(poolAudit(20, "done", 7), noAnswer(submitted(1, 1, 7, 3, 4))), Holds, ""},
		{"held in the end, nobody had asked, and another returned", h, slices.Concat(returned, poolAudit(50, "held", 7)), Unknown, "nobody asked since"},
		{"free in the end, and another returned", h, slices.Concat(returned, poolAudit(50, "free", 7)), Holds, ""},
		{"held and free in the end", h, slices.Concat(returned, poolAudit(50, "held", 7)[:1], poolAudit(52, "free", 7)[:1], []history.Op{inPool("audit", 2, 60)}), Unknown, ""},
		{"one held as far as counted, nobody had asked, and another returned", h, slices.Concat(returned, []history.Op{inPool("count-held", 1, 50)}), Unknown, "nobody asked since"},
		{"held as far as counted", h, list(noTask(2, 12, 13), inPool("count-held", 1, 20)), Violated, "counts 1 task held"},
		{"none held as far as counted", h, list(noTask(2, 12, 13), inPool("count-held", 0, 20)), Holds, ""},
		{"held by two, one of them in time", h, list(took(2, 2, 7, 3, 4, 30), noTask(1, 12, 13), noTask(1, 15, 16)), Unknown, ""},
		{"an audit that was called before the end", h, list(noTask(1, 12, 13), inPool("count-held", 0, 9)), Unknown, "is not known"},
		{"many held as far as counted", h, list(noTask(2, 12, 13), inPool("count-held", 1<<62, 20)), Violated, "held, though"},
		{"submitted under the hold of another task", h, list(took(2, 2, 8, 3, 4, 30), submitted(2, 2, 7, 5, 6), noTask(1, 12, 13), noTask(1, 15, 16)), Holds, ""},
		{"nothing", h, []history.Op{noTask(1, 1, 2)}, Unknown, "nobody was given a task"},
	})
}

func inPool(what string, n int64, call time.Duration) history.Op {
	op := read(what, n, call)
	op.Key = poolKey
	return op
}

// dispatchNoise generates a random history of a pool of tasks.
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
			ops = append(ops, byUser(took(i, hold, tasks[i], call, p.free, call+4+upTo(r, 6)), int64(i)%3))
			continue
		}
		op := submitted(i, p.session, tasks[i], call, p.free)
		p.session = 0
		switch {
		case chance(r, 30):
			continue // the client leaves without a submit
		case chance(r, 20):
			op = noAnswer(op)
		case chance(r, 40):
			op = declined(op)
		case chance(r, 10):
			op = again(op)
		}
		if chance(r, 10) {
			op.Session = history.Int(1 + r.Int64N(hold+2)) // perhaps another client's hold, or nobody's
		}
		if chance(r, 10) {
			op.Arg = history.Int(int64(1 + r.IntN(4)))
		}
		ops = append(ops, op)
	}
	for i := range ops {
		if op := &ops[i]; op.Kind == history.Take && chance(r, 10) {
			op.Outcome, op.Result, op.Until = history.Unknown, history.Value{}, 0
			if chance(r, 50) {
				op.Outcome, op.Reason = history.Refused, history.Empty
			}
		}
		if op := &ops[i]; op.Outcome == history.Unknown {
			op.Return += upTo(r, 30) // a missing answer may be recorded late
		}
	}
	takes := slices.Clone(ops)
	ops = slices.DeleteFunc(ops, func(op history.Op) bool { // no history may have a submit that is called before its hold was taken
		return op.Kind == history.Submit && slices.ContainsFunc(takes, func(take history.Op) bool {
			return take.Kind == history.Take && take.Session == op.Session && (take.Call >= op.Call || take.Outcome == history.OK && take.Return >= op.Call)
		})
	})
	return complete(ops)
}

// bruteCommits judges holder-commits by its definition.
func bruteCommits(ops []history.Op) Result {
	landed := func(op history.Op) bool { return op.Kind == history.Submit && op.Outcome == history.OK }
	// bad reports whether submit s cannot be legal.
	var bad func(s history.Op) bool
	bad = func(s history.Op) bool {
		var hold *history.Op
		for i := range ops {
			if op := &ops[i]; op.Kind == history.Take && op.Outcome != history.Refused && op.Session == s.Session {
				if op.Outcome == history.Unknown {
					return false
				}
				if op.Result == s.Arg {
					hold = op
				}
			}
		}
		for i := range ops {
			if op := &ops[i]; (hold == nil || hold.Session != s.Session) && op.Kind == history.Take && op.Outcome == history.OK && op.Client == s.Client && op.Result == s.Arg && op.Return < s.Return {
				hold = op
			}
		}
		if (hold == nil || hold.Session != s.Session) && slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Kind == history.Take && op.Outcome == history.Unknown && op.Client == s.Client && op.Call <= s.Return
		}) {
			return false
		}
		if hold == nil {
			return true
		}
		user, since := hold.Arg, hold.Return
		named := user != (history.Value{})
		mine := func(op history.Op) bool { return op.Client == s.Client || named && op.Arg == user }
		for _, op := range ops { // the user may have been given it again by a take that returns later
			if op.Kind == history.Take && op.Outcome == history.OK && op.Result == s.Arg && op.Call < s.Return && op.Return > s.Return && mine(op) {
				return false
			}
		}
		for _, op := range ops { // the last hold of the user
			if op.Kind != history.Take || !named || op.Arg != user {
				continue
			}
			if op.Outcome == history.Unknown && op.Call <= s.Return {
				return false
			}
			if op.Outcome == history.OK && op.Result == s.Arg && op.Return <= s.Return {
				since = max(since, op.Return)
			}
		}
		other := slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Kind == history.Take && op.Outcome == history.OK && op.Result == s.Arg && op.Call > since && op.Return < s.Call && (!named || op.Arg != user)
		})
		tried := slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Kind == history.Submit && op.Outcome != history.Refused && op.Session == hold.Session && op.Call < s.Call && (landed(op) || !bad(op))
		})
		return other && !tried
	}
	// toldBefore reports whether the task of a commit was submitted before it began, in another hold, as a repetition told.
	toldBefore := func(i int) bool {
		s := ops[i]
		held := slices.ContainsFunc(ops[:i], func(op history.Op) bool {
			return op.Kind == history.Take && op.Outcome != history.Refused && op.Session == s.Session
		})
		return held && slices.ContainsFunc(ops, func(o history.Op) bool {
			return landed(o) && o.Reason == history.Repeated && o.Arg == s.Arg && o.Session != s.Session && o.Return < s.Call &&
				!slices.ContainsFunc(ops, func(try history.Op) bool {
					return try.Kind == history.Submit && try.Outcome != history.Refused && try.Session == s.Session && try.Call <= o.Return
				})
		})
	}
	out := Unknown
	for i, s := range ops {
		if s.Kind == history.Submit && s.Outcome != history.Unknown {
			out = max(out, Holds)
		}
		if !landed(s) {
			continue
		}
		if s.Reason != history.Repeated {
			second := slices.ContainsFunc(ops[:i], func(o history.Op) bool {
				return landed(o) && o.Reason != history.Repeated && o.Arg == s.Arg && o.Session != s.Session
			})
			if bad(s) || second || toldBefore(i) {
				return Violated
			}
			continue
		}
		explained := slices.ContainsFunc(ops, func(o history.Op) bool {
			return o.Kind == history.Submit && o.Arg == s.Arg && o.Call <= s.Return && (o.Outcome == history.Unknown && !bad(o) || landed(o) && (o.Reason != history.Repeated || !bad(o)))
		})
		if bad(s) && !explained {
			return Violated
		}
	}
	return out
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
			if op.Kind == history.Take && op.Outcome == history.OK {
				h := hold{take: op}
				for _, s := range slices.Backward(ops) { // ends with the first submit of the hold
					if s.Kind == history.Submit && s.Session == op.Session {
						h.submit = s
					}
				}
				holds = append(holds, h)
			}
		}
		held := Holds
		for _, a := range holds {
			end := a.take.Until
			if a.submit.Kind == history.Submit {
				end = min(end, a.submit.Call)
			}
			for _, b := range holds {
				if b.take.Session == a.take.Session || b.take.Result != a.take.Result {
					continue
				}
				endB := b.take.Until
				if b.submit.Kind == history.Submit {
					endB = min(endB, b.submit.Call)
				}
				if a.take.Arg == b.take.Arg && a.take.Arg != (history.Value{}) {
					continue
				}
				if a.take.Return < endB && b.take.Return < end && a.take.Return < end && b.take.Return < endB {
					held = Violated
				}
			}
		}
		if len(holds) == 0 {
			held = Unknown
		}
		commits := bruteCommits(ops)
		want := map[variant.Property]Result{variant.OneHolderPerTask: held, variant.HolderCommits: commits}
		for p := range want {
			open := monitorOf(variant.Dispatch, p)
			v, w := feed(open(&history.Header{}), ops), feedAdvancing(open(&history.Header{}), ops)
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

// TestOpportunitiesOfDispatch checks how many opportunities each promise has.
func TestOpportunitiesOfDispatch(t *testing.T) {
	list := func(ops ...history.Op) []history.Op { return ops }
	elsewhere := func(op history.Op) history.Op { op.Key = history.Text("another"); return op }
	for _, c := range []struct {
		name                    string
		ops                     []history.Op
		holder, commit, returns int64
	}{
		{"one user", list(took(1, 1, 7, 1, 2, 90), submitted(1, 1, 7, 3, 4), took(1, 2, 8, 5, 6, 90), submitted(1, 2, 8, 7, 8)), 0, 0, 0},
		{"one after the other", list(took(1, 1, 7, 1, 2, 90), submitted(1, 1, 7, 3, 4), took(2, 2, 8, 5, 6, 90), submitted(2, 2, 8, 7, 8)), 0, 0, 0},
		{"two at once", list(took(1, 1, 7, 1, 3, 90), took(2, 2, 8, 2, 4, 90), submitted(1, 1, 7, 5, 6), submitted(2, 2, 8, 7, 8)), 1, 1, 0},
		{"one of them gets nothing", list(noTask(2, 1, 3), took(1, 1, 7, 2, 4, 90), submitted(1, 1, 7, 5, 6)), 1, 1, 0},
		{"two pools", list(took(1, 1, 7, 1, 3, 90), elsewhere(took(2, 2, 8, 2, 4, 90)), submitted(1, 1, 7, 5, 6), elsewhere(submitted(2, 2, 8, 7, 8))), 0, 0, 0},
		{"a submit that was not asked", list(took(1, 1, 7, 1, 3, 90), took(2, 2, 8, 2, 4, 90), submitted(1, 1, 7, 5, 6), stopped(submitted(2, 2, 8, 7, 8))), 1, 0, 0},
		{"no answers", list(noAnswer(noTask(2, 1, 3)), took(1, 1, 7, 2, 4, 90), noAnswer(submitted(1, 1, 7, 5, 6))), 0, 0, 0},
		{"given to another after the limit", list(took(1, 1, 7, 1, 2, 10), took(2, 2, 7, 12, 13, 90), submitted(2, 2, 7, 14, 15)), 1, 1, 1},
		{"the limit is over, and nobody heard of the submit", list(took(1, 1, 7, 1, 2, 10), noAnswer(submitted(1, 1, 7, 3, 4)), noTask(2, 30, 31)), 0, 0, 0},
	} {
		h := &history.Header{Objects: []variant.Object{variant.Dispatch}, Grace: 1}
		for p, want := range map[variant.Property]int64{variant.OneHolderPerTask: c.holder, variant.HolderCommits: c.commit, variant.TaskReturns: c.returns} {
			v := both(t, h, func() Monitor { return monitorOf(variant.Dispatch, p)(h) }, complete(slices.Clone(c.ops)))
			if v.Opportunities != want {
				t.Errorf("%s: %s has %d opportunities, want %d (%v: %s)", c.name, p, v.Opportunities, want, v.Result, v.Why)
			}
		}
	}
}
