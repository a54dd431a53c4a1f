package checker

import (
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// verdictCase is a hand-made history and its expected verdict.
type verdictCase struct {
	name string
	h    history.Header
	ops  []history.Op
	want Result
	says string // a part of the sentence
}

func runCases(t *testing.T, open func(*history.Header) Monitor, cases []verdictCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ops := complete(c.ops)
			v := both(t, &c.h, func() Monitor { return open(&c.h) }, ops)
			if v.Result != c.want {
				t.Fatalf("%v (%s), want %v\n%s", v.Result, v.Why, c.want, show(&c.h, ops))
			}
			if !strings.Contains(v.Why, c.says) {
				t.Errorf("the sentence is %q, want %q in it", v.Why, c.says)
			}
			if v.Why == "" || v.Result == Violated && (len(v.Witness) == 0 || v.Count == 0) {
				t.Errorf("a verdict without a sentence, a count or a witness: %+v", v)
			}
			if v.Result != Violated && v.Count != 0 {
				t.Errorf("%v counts %d violations", v.Result, v.Count)
			}
		})
	}
}

const msec = time.Millisecond

func withFence(op history.Op, f int64) history.Op { op.Fence = f; return op }

func withUntil(op history.Op, u time.Duration) history.Op { op.Until = u; return op }

func extended(client int32, session int64, call, ret, until time.Duration) history.Op {
	return withUntil(lockOp(history.Extend, client, session, call, ret, history.OK, history.NoReason), until)
}

func lostTo(kind history.Kind, client int32, session int64, call, ret time.Duration) history.Op {
	return lockOp(kind, client, session, call, ret, history.Refused, history.Lost)
}

func unanswered(kind history.Kind, client int32, session int64, call, ret time.Duration) history.Op {
	return lockOp(kind, client, session, call, ret, history.Unknown, history.NoReason)
}

func TestMutualExclusion(t *testing.T) {
	far := time.Hour
	took := acquired(12, 2, 3, 3123*time.Microsecond, far)
	took.Result = history.Text("SET after TTL -1")
	had := acquired(3, 1, 1, 3001*time.Microsecond, 15003*msec)
	had.Result = history.Text("SETNX")
	other := acquired(2, 2, 3, 4, far)
	other.Key = history.Text("other")
	runCases(t, newMutualExclusion, []verdictCase{
		{"nobody", history.Header{}, []history.Op{held(1, 1, 1, 2)}, Unknown, "nobody obtained the lock"},
		{"an unknown acquire has no core", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), unanswered(history.Acquire, 2, 2, 3, 4)}, Holds, "1 grant"},
		{"two at once", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), acquired(2, 2, 3, 4, far)}, Violated, "never released it"},
		{"the sentence", history.Header{}, []history.Op{had, took, released(3, 1, 5240*time.Microsecond, 6*msec), released(12, 2, 7*msec, 8*msec)}, Violated,
			`client 12 was granted "Lock:order" at 3.123 ms by SET after TTL -1, while client 3 held it since 3.001 ms (by SETNX, lease until 15.003 s) and released it only at 5.240 ms`},
		{"released before", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), released(1, 1, 3, 4), acquired(2, 2, 5, 6, far)}, Holds, "2 grants, no two at once"},
		{"released at the same instant", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), acquired(2, 2, 1, 4, far), released(1, 1, 4, 9)}, Holds, ""},
		{"released an instant later", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), acquired(2, 2, 1, 4, far), released(1, 1, 5, 9)}, Violated, ""},
		{"a refused release ends it too", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), lostTo(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, far)}, Holds, ""},
		{"a release that was not asked ends nothing", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), lockOp(history.Release, 1, 1, 3, 4, history.Refused, history.Stopped), acquired(2, 2, 5, 6, far)}, Violated, "never released it"},
		{"an unknown release ends it too", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), unanswered(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, far)}, Holds, ""},
		{"the lease ends at the same instant", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 6), acquired(2, 2, 1, 6, far)}, Holds, ""},
		{"the lease ends an instant later", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 7), acquired(2, 2, 1, 6, far)}, Violated, ""},
		{"the grant came after its lease", history.Header{}, []history.Op{acquired(1, 1, 1, 9, 9), acquired(2, 2, 1, 3, far)}, Holds, ""},
		{"an extension in time", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 10), extended(1, 1, 3, 4, 20), acquired(2, 2, 1, 12, far)}, Violated, ""},
		{"a lapsed lease extended leaves a gap", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 10), acquired(2, 2, 1, 12, 14), extended(1, 1, 15, 16, 26)}, Holds, ""},
		{"a lapsed lease extended while another holds", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 10), acquired(2, 2, 1, 12, 20), extended(1, 1, 15, 16, 26)}, Violated, "extended its lease"},
		{"a lost extension ends it", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), lostTo(history.Extend, 1, 1, 3, 4), acquired(2, 2, 5, 6, far)}, Holds, ""},
		{"a lost extension ends it with its answer", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 100), acquired(2, 2, 3, 22, far), released(2, 2, 79, 80), lostTo(history.Extend, 1, 1, 20, 90)}, Violated, "learned only at"},
		{"a lost one extended after all", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 11), lostTo(history.Extend, 1, 1, 12, 13), acquired(2, 2, 3, 15, 24), extended(1, 1, 16, 17, 26)}, Violated, "extended its lease"},
		{"an unknown extension promises nothing", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Extend, 1, 1, 3, 4), acquired(2, 2, 5, 11, far)}, Holds, ""},
		{"a renewal in the background", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 10), acquired(2, 2, 1, 12, 20), withUntil(released(1, 1, 30, 31), 40)}, Violated, "(lease until 0.000 ms, renewed until 0.000 ms)"},
		{"another key", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), other}, Holds, ""},
	})
}

func TestOwnerOnlyRelease(t *testing.T) {
	h := history.Header{TTL: 9}
	lapsed := []history.Op{acquired(1, 1, 1, 2, 10), acquired(2, 2, 12, 13, 21)}
	with := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), lapsed...), ops...) }
	runCases(t, newOwnerOnlyRelease, []verdictCase{
		{"another's lock", h, with(released(1, 1, 14, 15)), Violated, "its own grant was of"},
		{"lost is no change", h, with(lostTo(history.Release, 1, 1, 14, 15)), Holds, "refused as too late"},
		{"unknown is no change", h, with(unanswered(history.Release, 1, 1, 14, 15)), Unknown, ""},
		{"its own", h, with(released(2, 2, 14, 15)), Holds, "1 release"},
		{"called as the other's grant returned", h, with(released(1, 1, 13, 15)), Holds, ""},
		{"the other released in the meantime", h, with(released(1, 1, 14, 18), released(2, 2, 17, 19)), Holds, ""},
		{"the other released as it returned", h, with(released(1, 1, 14, 17), released(2, 2, 17, 19)), Holds, ""},
		{"the other released after it returned", h, with(released(1, 1, 14, 16), released(2, 2, 17, 19)), Violated, "released it only at"},
		{"the other's lease ended as it returned", h, with(released(1, 1, 14, 21)), Holds, ""},
		{"the other extended at the last instant", h, with(extended(2, 2, 21, 21, 30), released(1, 1, 20, 25)), Violated, ""},
		{"an extension of another's lock", h, with(extended(1, 1, 14, 15, 30)), Violated, "extended"},
		{"an extension without an answer, or the release after it", h, with(unanswered(history.Extend, 1, 1, 14, 15), released(1, 1, 16, 17)), Violated, "released"},
		{"an extension while the other was granted it, or the release after it", h, []history.Op{acquired(1, 1, 1, 2, 60), acquired(2, 2, 5, 9, 70), extended(1, 1, 5, 9, 80), released(1, 1, 11, 12)}, Violated, "released"},
		{"robbed by a grant that may be older", h, []history.Op{acquired(1, 1, 1, 20, 29), acquired(2, 2, 1, 13, 30), released(1, 1, 22, 23)}, Holds, ""},
		{"robbed in its own lease", h, []history.Op{acquired(1, 1, 1, 2, 1000), acquired(2, 2, 3, 4, 1000), released(1, 1, 5, 6)}, Violated, ""},
		{"renewed in the background, it may have been its own", h, with(withUntil(released(1, 1, 14, 15), 20)), Holds, ""},
		{"a second release", h, []history.Op{acquired(1, 1, 1, 2, 10), released(1, 1, 3, 4), acquired(2, 2, 5, 6, 14), released(1, 1, 7, 8), lostTo(history.Release, 2, 2, 10, 11)}, Violated, "session 1 did not hold it"},
		{"a second release, of nobody's lock", h, []history.Op{acquired(1, 1, 1, 2, 10), released(1, 1, 3, 4), acquired(2, 2, 5, 9, 14), released(1, 1, 7, 8)}, Holds, ""},
		{"a release by one who was refused", h, []history.Op{acquired(1, 1, 1, 2, 10), held(2, 2, 3, 4), released(2, 2, 5, 6)}, Violated, "session 2 did not hold it"},
		{"an extension by a stranger", h, []history.Op{acquired(1, 1, 1, 2, 10), extended(2, 2, 5, 6, 20)}, Violated, "extended"},
		{"a release after an acquire without an answer", h, []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Acquire, 2, 2, 3, 4), released(2, 2, 5, 6)}, Unknown, "may have granted it"},
		{"the same, answered later", h, []history.Op{acquired(1, 1, 1, 2, 10), released(3, 2, 5, 6), unanswered(history.Acquire, 2, 2, 3, 7)}, Unknown, "may have granted it"},
		{"a release while its grant is on its way", h, []history.Op{acquired(1, 1, 1, 2, 10), released(3, 2, 5, 6), acquired(2, 2, 3, 7, 12)}, Holds, ""},
		{"it was told that it had lost the lock", h, []history.Op{acquired(1, 1, 1, 2, 3), lostTo(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, 14), released(1, 1, 7, 8)}, Violated, "did not hold it"},
		{"a second release, after an extension without an answer", h, []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Extend, 1, 1, 2, 3), released(1, 1, 3, 4), acquired(2, 2, 5, 6, 14), released(1, 1, 7, 8)}, Violated, "did not hold it"},
		{"a third release, after one without an answer", h, []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Release, 1, 1, 3, 4), released(1, 1, 5, 6), acquired(2, 2, 7, 8, 14), released(1, 1, 9, 10)}, Violated, "session 1 did not hold it"},
		{"a second release, after one without an answer", h, append([]history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Release, 1, 1, 3, 4)}, acquired(2, 2, 12, 13, 21), released(1, 1, 14, 15)), Violated, ""},
	})
}

// TestOneLockIsHarmedOnce checks that a release after an extension of another's lock does not count again.
func TestOneLockIsHarmedOnce(t *testing.T) {
	h := &history.Header{TTL: 9}
	ops := complete([]history.Op{acquired(1, 1, 1, 2, 10), acquired(2, 2, 12, 13, 60), extended(1, 1, 14, 15, 30), released(1, 1, 16, 17)})
	if v := both(t, h, func() Monitor { return newOwnerOnlyRelease(h) }, ops); v.Result != Violated || v.Count != 1 {
		t.Errorf("%v, %d times (%s); want one violation", v.Result, v.Count, v.Why)
	}
}

func TestFirstCome(t *testing.T) {
	h := history.Header{TTL: 100}
	join := func(client int32, session int64, call, ret time.Duration) history.Op {
		return lockOp(history.Join, client, session, call, ret, history.OK, history.NoReason)
	}
	exclusive := history.Header{Promises: []history.Promise{{Of: variant.Lock, Property: variant.FIFO}, {Of: variant.Lock, Property: variant.MutualExclusion}}}
	runCases(t, newFirstCome, []verdictCase{
		{"no line", h, []history.Op{acquired(1, 1, 1, 2, 0)}, Unknown, "nobody was served from a line"},
		{"overtaken", h, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), acquired(1, 1, 1, 7, 105)}, Violated, "called only at"},
		{"called when the place was given", h, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 2, 4, 0), acquired(1, 1, 1, 7, 105)}, Holds, "1 grant from the line"},
		{"granted perhaps before", h, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 5, 0), acquired(1, 1, 1, 7, 105)}, Holds, ""},
		{"without a lease the wait is all that is known", h, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), acquired(1, 1, 1, 7, 0)}, Holds, ""},
		{"overtaken by one that released it", exclusive, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), released(2, 2, 5, 6), acquired(1, 1, 1, 7, 0)}, Violated, "called only at"},
		{"the same by a lock that several may hold", history.Header{}, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), released(2, 2, 5, 6), acquired(1, 1, 1, 7, 0)}, Holds, "1 of a call that came"},
		{"joined first, by a call of its own", exclusive, []history.Op{join(1, 1, 1, 2), join(2, 2, 3, 4), acquired(1, 1, 6, 7, 0), released(1, 1, 8, 9), acquired(2, 2, 5, 10, 0), released(2, 2, 11, 12)}, Holds, "1 of a call that came"},
		{"joined later, by a call of its own", exclusive, []history.Op{join(2, 2, 1, 2), join(1, 1, 3, 4), acquired(1, 1, 6, 7, 0), released(1, 1, 8, 9), acquired(2, 2, 5, 10, 0), released(2, 2, 11, 12)}, Violated, "called only at"},
		{"released before it called", exclusive, []history.Op{acquired(2, 2, 1, 2, 0), join(1, 1, 3, 4), released(2, 2, 5, 6), acquired(1, 1, 3, 7, 0)}, Holds, ""},
		{"its lease had ended long before it released it", exclusive, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 4), acquired(1, 1, 1, 7, 0), released(2, 2, 8, 9)}, Holds, ""},
		{"its own lease was over when it was told", exclusive, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), released(2, 2, 5, 6), acquired(1, 1, 1, 7, 3)}, Holds, ""},
		{"never served", h, []history.Op{join(1, 1, 1, 2), acquired(2, 2, 3, 4, 0), held(1, 1, 1, 7)}, Unknown, ""},
	})
}

func TestGrantTokens(t *testing.T) {
	far := time.Duration(0)
	fenced := func(client int32, f int64, call, ret time.Duration) history.Op {
		return withFence(acquired(client, int64(client), call, ret, far), f)
	}
	runCases(t, newGrantTokens, []verdictCase{
		{"none", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far)}, Unknown, "no grant carried a token"},
		{"falling", history.Header{}, []history.Op{fenced(1, 8, 1, 2), fenced(2, 7, 3, 4)}, Violated, "after client 1"},
		{"falling, but perhaps at once", history.Header{}, []history.Op{fenced(1, 8, 1, 3), fenced(2, 7, 3, 4)}, Holds, "2 tokens"},
		{"rising", history.Header{}, []history.Op{fenced(1, 7, 1, 2), fenced(2, 8, 3, 4)}, Holds, ""},
		{"twice", history.Header{}, []history.Op{fenced(1, 7, 1, 3), fenced(2, 7, 2, 4)}, Violated, "granted before"},
		{"some without", history.Header{}, []history.Op{fenced(1, 7, 1, 2), acquired(2, 2, 3, 4, far)}, Unknown, "carried none"},
	})
}

func TestProgress(t *testing.T) {
	h := history.Header{TTL: 10, Grace: 1}
	stopped := func(client int32, session int64, call, ret time.Duration) history.Op {
		return lockOp(history.Acquire, client, session, call, ret, history.Refused, history.Stopped)
	}
	free := []history.Op{acquired(1, 1, 1, 2, 11), released(1, 1, 3, 4)}
	with := func(ops ...history.Op) []history.Op { return append(append([]history.Op(nil), free...), ops...) }
	patient := h
	patient.Hold = 5
	runCases(t, newProgress, []verdictCase{
		{"no lease", history.Header{}, free, Unknown, "neither a lease nor a grace"},
		{"never granted, for too short", h, []history.Op{held(1, 1, 1, 12)}, Unknown, "only"},
		{"never granted", h, []history.Op{held(1, 1, 1, 13)}, Violated, "since the run began"},
		{"stuck after a release", h, with(held(2, 2, 5, 17)), Violated, "after client 1 released it"},
		{"just in time", h, with(held(2, 2, 5, 16)), Holds, "1 grant"},
		{"stopped by the end of the run", h, with(stopped(2, 2, 5, 17)), Violated, ""},
		{"many short tries", h, with(held(2, 2, 5, 7), held(3, 3, 8, 11), held(2, 4, 11, 14), held(3, 5, 15, 17)), Violated, ""},
		{"many short tries with a pause", h, with(held(2, 2, 5, 7), held(3, 3, 9, 11), held(2, 4, 11, 14), held(3, 5, 15, 17)), Holds, ""},
		{"granted too late", h, with(acquired(2, 2, 5, 18, 27)), Violated, ""},
		{"granted late", h, with(acquired(2, 2, 5, 17, 26)), Holds, ""},
		{"granted late, and then another too late", h, with(acquired(2, 2, 5, 15, 24), released(2, 2, 16, 17), acquired(3, 3, 18, 33, 42)), Violated, ""},
		{"held all the time", h, []history.Op{acquired(1, 1, 1, 2, 100), held(2, 2, 3, 90)}, Holds, ""},
		{"extended all the time", h, []history.Op{acquired(1, 1, 1, 2, 10), extended(1, 1, 9, 10, 100), held(2, 2, 3, 90)}, Holds, ""},
		{"extended after it had lapsed", h, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 12, 13), extended(1, 1, 14, 15, 40), held(2, 3, 16, 39)}, Holds, ""},
		{"stuck after a release long before the end of the lease", h, []history.Op{acquired(1, 1, 1, 2, 15), held(2, 2, 11, 12), released(1, 1, 13, 13), held(3, 3, 13, 25)}, Violated, "released it"},
		{"stuck after a lease", h, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 3, 23)}, Violated, "after the lease of client 1"},
		{"stuck, but for too short", h, with(acquired(2, 2, 5, 6, 15), held(3, 3, 7, 26)), Unknown, "too early to tell"},
		{"stuck, but for too short, and it was free again before", h, with(acquired(2, 2, 5, 6, 15), acquired(3, 3, 7, 17, 26), held(2, 4, 18, 37)), Holds, ""},
		{"the dead may have been renewed", patient, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 3, 23)}, Holds, ""},
		{"renewals were seen, so the dead may be held for ever", h, []history.Op{acquired(1, 1, 1, 2, 11), withUntil(released(1, 1, 12, 13), 20), acquired(2, 2, 13, 14, 23), held(3, 3, 14, 50)}, Unknown, "renewed in the background"},
		{"a lost grant holds for a lease", h, with(unanswered(history.Acquire, 2, 2, 5, 8), held(3, 3, 8, 19)), Holds, ""},
		{"a lost grant does not hold for ever", h, with(unanswered(history.Acquire, 2, 2, 5, 8), held(3, 3, 8, 20)), Violated, "gave up without an answer"},
		{"a grant that returns late refutes a stall", h, with(held(4, 4, 5, 16), acquired(2, 2, 6, 60, 15), acquired(3, 3, 15, 18, 27)), Holds, ""},
		{"the same without it", h, with(held(4, 4, 5, 16), acquired(3, 3, 15, 18, 27)), Violated, ""},
	})
}

func TestLockLinear(t *testing.T) {
	far := time.Hour
	h := history.Header{TTL: 10, Drift: 1}
	renewing := history.Header{TTL: 10, Renews: true}
	runCases(t, newLockLinear, []verdictCase{
		{"two at once", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), acquired(2, 2, 3, 4, far)}, Violated, "while client 1 held it"},
		{"changing hands", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), acquired(2, 2, 1, 4, far), released(1, 1, 4, 9)}, Holds, "2 grants and 0 refusals"},
		{"refused while free", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), released(1, 1, 3, 4), held(2, 2, 5, 6)}, Violated, "nobody can have held it after"},
		{"refused as it was released", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), released(1, 1, 3, 4), held(2, 2, 4, 6)}, Holds, ""},
		{"refused before it was asked for", history.Header{}, []history.Op{held(2, 2, 1, 2), acquired(1, 1, 3, 4, far)}, Violated, "nobody had held it before"},
		{"refused as it was asked for", history.Header{}, []history.Op{held(2, 2, 1, 3), acquired(1, 1, 3, 4, far)}, Holds, ""},
		{"a lost answer explains a refusal", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), held(2, 2, 5, 6)}, Holds, ""},
		{"a lost answer cannot explain one before its call", history.Header{}, []history.Op{held(2, 2, 1, 2), unanswered(history.Acquire, 1, 1, 3, 4)}, Violated, ""},
		{"one lost answer fills one gap", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), held(2, 2, 3, 4), acquired(3, 3, 5, 6, far), released(3, 3, 7, 8), held(2, 4, 9, 10)}, Violated, ""},
		{"two lost answers fill two", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), unanswered(history.Acquire, 4, 5, 1, 2), held(2, 2, 3, 4), acquired(3, 3, 5, 6, far), released(3, 3, 7, 8), held(2, 4, 9, 10)}, Holds, ""},
		{"extended by another client before its acquire was given up", h, []history.Op{unanswered(history.Acquire, 1, 1, 1, 9), extended(2, 1, 3, 4, 15)}, Unknown, "before the end of the acquire"},
		{"the same, without leases", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 9), extended(2, 1, 3, 4, far)}, Holds, ""},
		{"the same, and called too late", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 5, 9), extended(2, 1, 3, 4, far)}, Violated, "did not hold it"},
		{"the same, by a stranger", h, []history.Op{unanswered(history.Acquire, 1, 1, 1, 9), extended(2, 2, 3, 4, 15)}, Violated, "did not hold it"},
		{"lost in its own lease", h, []history.Op{acquired(1, 1, 1, 2, 11), lostTo(history.Release, 1, 1, 3, 10)}, Violated, "told at"},
		{"lost as the lease ended", h, []history.Op{acquired(1, 1, 1, 2, 11), lostTo(history.Release, 1, 1, 3, 11)}, Holds, ""},
		{"lost, but an earlier release may have worked", h, []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Release, 1, 1, 3, 4), lostTo(history.Release, 1, 1, 5, 6)}, Holds, ""},
		{"an extension lost in its own lease", h, []history.Op{acquired(1, 1, 1, 2, 11), lostTo(history.Extend, 1, 1, 3, 10)}, Violated, "told at"},
		{"released long after its lease", h, []history.Op{acquired(1, 1, 1, 2, 11), released(1, 1, 14, 15)}, Violated, "though its lease was over"},
		{"released within the drift", h, []history.Op{acquired(1, 1, 1, 2, 11), released(1, 1, 13, 15)}, Holds, ""},
		{"released late after a renewal", h, []history.Op{acquired(1, 1, 1, 2, 11), withUntil(released(1, 1, 14, 15), 20)}, Holds, ""},
		{"extended long after its lease", h, []history.Op{acquired(1, 1, 1, 2, 11), extended(1, 1, 14, 15, 24)}, Violated, "extended its lease"},
		{"released twice", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), released(1, 1, 3, 4), released(1, 1, 5, 6)}, Violated, "did not hold it"},
		{"refused after a lease that surely ended", h, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 14, 15)}, Violated, ""},
		{"refused within the drift", h, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 13, 15)}, Holds, ""},
		{"refused late, but renewals were seen", h, []history.Op{acquired(1, 1, 1, 2, 11), withUntil(released(1, 1, 14, 15), 20), acquired(3, 3, 15, 16, 25), held(2, 2, 40, 41)}, Holds, ""},
		{"the renewed lease covered the refusal", h, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 14, 15), withUntil(released(1, 1, 16, 17), 20)}, Holds, ""},
		{"a grant that came after its lease fits nowhere", h, []history.Op{acquired(1, 1, 1, 2, 11), extended(1, 1, 3, 4, 100), acquired(2, 2, 20, 40, 30)}, Violated, "all of which another session held it"},
		{"a grant that came after its lease fits", h, []history.Op{acquired(1, 1, 1, 2, 11), extended(1, 1, 3, 4, 35), acquired(2, 2, 20, 40, 30)}, Holds, ""},
		{"a grant that came after its lease, and was released, explains no refusal after that", h, []history.Op{acquired(1, 1, 1, 20, 11), released(1, 1, 21, 22), held(2, 2, 40, 41)}, Violated, "nobody can have held it after"},
		{"the same of one that was never released", h, []history.Op{acquired(1, 1, 1, 20, 11), held(2, 2, 40, 41)}, Violated, ""},
		{"the same of one that was extended", h, []history.Op{acquired(1, 1, 1, 20, 11), extended(1, 1, 21, 22, 31), held(2, 2, 60, 61)}, Violated, ""},
		{"a grant that came after its lease may explain a refusal close by", h, []history.Op{acquired(1, 1, 1, 20, 11), released(1, 1, 21, 24), held(2, 2, 23, 41)}, Unknown, "1 grant came back after its lease was over"},
		{"a grant that came after its lease counts", h, []history.Op{acquired(1, 1, 1, 20, 11), acquired(2, 2, 40, 41, 50)}, Holds, "2 grants and 0 refusals"},
		{"a grant that came after its lease, of a lock with renewals, may be held for long", h, []history.Op{acquired(1, 1, 1, 2, 11), withUntil(released(1, 1, 16, 17), 20), acquired(2, 2, 18, 40, 28), held(3, 3, 60, 61)}, Unknown, ""},
		{"the same where a section takes long", history.Header{TTL: 10, Hold: 5}, []history.Op{acquired(2, 2, 18, 40, 28), held(3, 3, 53, 54)}, Unknown, ""},
		{"refused late, of a lock with renewals that no release tells of", renewing, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 30, 31), released(1, 1, 40, 41)}, Holds, ""},
		{"the same, and it was never released", renewing, []history.Op{acquired(1, 1, 1, 2, 11), held(2, 2, 30, 31)}, Holds, ""},
		{"an acquire without an answer explains a refusal, but was told that it did not hold", h, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), lostTo(history.Release, 1, 1, 3, 4), held(2, 2, 5, 6)}, Unknown, "unless an acquire without an answer was granted"},
		{"a release with no answer to its acquire", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), released(1, 1, 3, 4), acquired(2, 2, 5, 6, far)}, Holds, ""},
		{"the same inside another's core", history.Header{}, []history.Op{acquired(2, 2, 1, 2, far), unanswered(history.Acquire, 1, 1, 3, 4), released(1, 1, 5, 6)}, Violated, ""},
		{"released again after a lost answer", h, []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Release, 1, 1, 3, 4), released(1, 1, 5, 6)}, Holds, ""},
		{"a line may refuse", h, []history.Op{lockOp(history.Join, 1, 1, 1, 2, history.OK, history.NoReason), held(1, 1, 1, 20)}, Holds, "wait line"},
		{"stopped is no refusal", h, []history.Op{acquired(1, 1, 1, 2, 11), released(1, 1, 3, 4), lockOp(history.Acquire, 2, 2, 5, 6, history.Refused, history.Stopped)}, Holds, "0 refusals"},
		{"nothing", h, []history.Op{lockOp(history.Acquire, 2, 2, 5, 6, history.Refused, history.Stopped)}, Unknown, ""},
	})
}

// TestProgressIsUnknownWithoutPeace checks that the progress of a stuck lock is unknown while faults keep disturbing
// the servers: there was never enough undisturbed time to judge it.
func TestProgressIsUnknownWithoutPeace(t *testing.T) {
	h := &history.Header{TTL: 10, Grace: 1, Redial: 5}
	m := newProgress(h)
	key := history.Text("lock")
	op := func(kind history.Kind, outcome history.Outcome, call, ret time.Duration) *history.Op {
		o := history.Op{Client: 1, Kind: kind, Outcome: outcome, Key: key, Arg: history.Int(1), Call: call, Return: ret}
		if outcome == history.Refused {
			o.Client, o.Reason = 2, history.Held
		}
		if kind == history.Fault {
			o.Until = ret
		}
		return &o
	}
	m.Observe(op(history.Acquire, history.OK, 1, 2))
	m.Observe(op(history.Release, history.OK, 3, 4))
	for at := time.Duration(5); at < 100; at += 5 {
		m.Observe(op(history.Fault, history.OK, at, at+1))
	}
	m.Observe(op(history.Acquire, history.Refused, 5, 100))
	m.Advance(history.Forever)
	if v := m.Verdict(); v.Result != Unknown {
		t.Errorf("%v: %s", v.Result, v.Why)
	}
}

// TestProgressUnderAFaultThatIsNeverHealed checks that nobody is accused of a lock that is stuck under a fault that
// lasts for ever, and that a fault from which the servers recovered excuses nothing for longer.
func TestProgressUnderAFaultThatIsNeverHealed(t *testing.T) {
	h := &history.Header{TTL: 10, Grace: 1, Redial: 5}
	for _, c := range []struct {
		until time.Duration
		want  Result
	}{{6, Violated}, {history.Forever, Unknown}} {
		ops := []history.Op{
			acquired(1, 1, 1, 2, 12), released(1, 1, 3, 4),
			held(2, 2, 5, 100),
			{Client: -1, Kind: history.Fault, Outcome: history.OK, Key: history.Text("cut for good"), Call: 5, Return: 90, Until: c.until},
		}
		if v := both(t, h, func() Monitor { return newProgress(h) }, complete(ops)); v.Result != c.want {
			t.Errorf("until %d: %v (%s), want %v", c.until, v.Result, v.Why, c.want)
		}
	}
}
