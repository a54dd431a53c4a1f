package checker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oversell/history"
	"oversell/variant"
)

// TestUnansweredExtensions holds the smallest histories that a monitor once misjudged because an operation of a
// session had no answer.
func TestUnansweredExtensions(t *testing.T) {
	far := time.Hour
	ttl := func(d time.Duration) history.Header { return history.Header{TTL: d, Grace: 1} }
	t.Run("linearizable", func(t *testing.T) {
		runCases(t, newLockLinear, []verdictCase{
			{"it may have worked from its call on", ttl(3), []history.Op{acquired(1, 4, 8, 8, 11), held(2, 5, 13, 13), unanswered(history.Extend, 1, 4, 9, 15), released(1, 4, 16, 21)}, Holds, ""},
			{"called after the lease it extends nothing", ttl(1), []history.Op{acquired(1, 1, 2, 2, 3), unanswered(history.Extend, 1, 1, 5, 5), held(2, 2, 5, 5)}, Violated, "nobody can have held it after"},
			{"called at the last moment of the lease", ttl(3), []history.Op{acquired(1, 1, 2, 2, 5), unanswered(history.Extend, 1, 1, 5, 5), held(2, 2, 9, 9)}, Holds, ""},
			{"called after the lease, of a lock that renews", history.Header{TTL: 1, Renews: true}, []history.Op{acquired(1, 1, 2, 2, 3), unanswered(history.Extend, 1, 1, 5, 5), held(2, 2, 5, 5)}, Holds, ""},
			{"called after the lease, and a release tells of a renewal", ttl(1), []history.Op{acquired(1, 1, 2, 2, 3), unanswered(history.Extend, 1, 1, 5, 5), held(2, 2, 7, 7), withUntil(released(1, 1, 8, 8), 6)}, Holds, ""},
			{"then one that worked", ttl(3), []history.Op{acquired(1, 1, 1, 1, 4), unanswered(history.Extend, 1, 1, 3, 5), held(2, 2, 9, 9), extended(1, 1, 12, 12, 15), released(1, 1, 14, 14), acquired(2, 3, 15, 16, 19)}, Holds, ""},
			{"then one that worked after it cannot have", ttl(3), []history.Op{acquired(1, 1, 1, 1, 4), unanswered(history.Extend, 1, 1, 5, 5), extended(1, 1, 12, 12, 15)}, Violated, "extended its lease"},
			{"a release without an answer, then a refused one", history.Header{}, []history.Op{acquired(1, 1, 1, 2, far), unanswered(history.Release, 1, 1, 3, 4), lostTo(history.Release, 1, 1, 5, 6), held(2, 2, 7, 8)}, Violated, "nobody can have held it after"},
			{"a release without an answer, and no other", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 0), unanswered(history.Release, 1, 1, 3, 4), held(2, 2, 7, 8)}, Holds, ""},
			{"a release without an answer, and another holder before the one that worked", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 0), unanswered(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, 0), released(1, 1, 7, 8)}, Violated, "released it only at"},
			{"a release without an answer, then an extension while another holds it", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 0), unanswered(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, 0), extended(1, 1, 7, 8, 0)}, Violated, ""},
			{"an acquire without an answer that an extension confirms", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), extended(1, 1, 3, 4, 0), acquired(2, 2, 5, 6, 0)}, Violated, ""},
			{"the same, and another's lock before", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), acquired(2, 2, 1, 3, 0), released(2, 2, 4, 5), extended(1, 1, 3, 6, 0)}, Holds, "2 grants"},
		})
	})
	t.Run("mutual exclusion", func(t *testing.T) {
		runCases(t, newMutualExclusion, []verdictCase{
			{"an acquire without an answer that an extension confirms", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), extended(1, 1, 3, 4, 20), acquired(2, 2, 5, 6, far)}, Violated, "extending its lease"},
			{"it promised nothing before", history.Header{}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), acquired(2, 2, 1, 3, 4), extended(1, 1, 3, 5, 20)}, Holds, ""},
			{"an extension without an answer promises nothing", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 5), unanswered(history.Extend, 1, 1, 3, 20), acquired(2, 2, 6, 7, far)}, Holds, ""},
			{"a release without an answer, then an extension that promises more", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 5), unanswered(history.Release, 1, 1, 3, 4), extended(1, 1, 5, 6, 20), acquired(2, 2, 7, 8, far)}, Violated, ""},
			{"an extension that returns after the release", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 9), released(1, 1, 3, 4), extended(1, 1, 3, 5, 20), acquired(2, 2, 7, 8, far)}, Holds, ""},
		})
	})
	t.Run("owner", func(t *testing.T) {
		runCases(t, newOwnerOnlyRelease, []verdictCase{
			{"a release without an answer, then one of another's lock", ttl(9), []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Release, 1, 1, 3, 4), acquired(2, 2, 5, 6, 14), released(1, 1, 8, 9)}, Violated, "its own grant was of"},
			{"an extension without an answer may have set its key anew, or the release is of another's lock", ttl(9), []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Extend, 1, 1, 3, 4), acquired(2, 2, 12, 13, 21), released(1, 1, 14, 15)}, Violated, "its own grant was of"},
			{"an extension without an answer, and a release before the other's grant returned", ttl(9), []history.Op{acquired(1, 1, 1, 2, 10), unanswered(history.Extend, 1, 1, 3, 4), acquired(2, 2, 12, 15, 21), released(1, 1, 14, 16)}, Holds, ""},
		})
	})
	t.Run("progress", func(t *testing.T) {
		runCases(t, newProgress, []verdictCase{
			{"an extension without an answer may hold the lock for a lease more", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Extend, 1, 1, 9, 12), held(2, 2, 3, 23)}, Holds, ""},
			{"but not for ever", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Extend, 1, 1, 9, 12), held(2, 2, 3, 24)}, Violated, ""},
			{"one after the other", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Extend, 1, 1, 9, 12), unanswered(history.Extend, 1, 1, 20, 22), held(2, 2, 3, 33)}, Holds, ""},
			{"one that was called too late holds nothing", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Extend, 1, 1, 14, 20), held(2, 2, 3, 23)}, Violated, "after the lease of client 1"},
			{"one that was still in flight when somebody was granted the lock", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), acquired(2, 2, 5, 29, 37), extended(1, 1, 9, 30, 19)}, Holds, ""},
			{"the same without it", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), acquired(2, 2, 5, 29, 37)}, Violated, ""},
			{"an acquire without an answer that an extension confirms", history.Header{TTL: 20, Grace: 1}, []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), extended(1, 1, 10, 11, 30), held(2, 2, 3, 29)}, Unknown, "nobody obtained"},
			{"an acquire without an answer that a release confirms", ttl(10), []history.Op{unanswered(history.Acquire, 1, 1, 1, 2), held(2, 2, 3, 19), released(1, 1, 20, 21), acquired(2, 3, 22, 23, 32)}, Holds, ""},
			{"a release without an answer, then an extension", ttl(10), []history.Op{acquired(1, 1, 1, 2, 11), unanswered(history.Release, 1, 1, 3, 4), extended(1, 1, 9, 10, 20), held(2, 2, 5, 19)}, Holds, ""},
		})
	})
}

// TestSharedSessions checks that answers are not judged by the order of their returns if two clients used one session at once.
func TestSharedSessions(t *testing.T) {
	const open = "overlapped, so their order is open"
	runCases(t, newLockLinear, []verdictCase{
		{"an extension that returns after the release", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), released(1, 1, 4, 6), extended(2, 1, 3, 9, 95)}, Unknown, open},
		{"the same, one after the other", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), released(1, 1, 4, 6), extended(2, 1, 7, 9, 95)}, Violated, "which did not hold it"},
		{"two releases", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), lostTo(history.Release, 2, 1, 3, 5), released(1, 1, 4, 6)}, Unknown, open},
		{"the same, one after the other", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), lostTo(history.Release, 2, 1, 3, 4), released(1, 1, 5, 6)}, Violated, "was lost"},
		{"an extension that is told that the lock is lost", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), lostTo(history.Extend, 2, 1, 3, 5), released(1, 1, 4, 6)}, Unknown, open},
		{"an extension that returns before the release", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), extended(2, 1, 3, 5, 95), released(1, 1, 4, 6)}, Holds, ""},
		{"another session", history.Header{}, []history.Op{acquired(1, 1, 1, 2, 90), acquired(2, 2, 3, 4, 90)}, Violated, ""},
	})
}

// TestSessionsAreTold checks that the monitors tell sessions apart when their names are texts, as they do when they
// are numbers.
func TestSessionsAreTold(t *testing.T) {
	named := func(op history.Op, name string) history.Op { op.Arg = history.Text(name); return op }
	twice := []history.Op{named(acquired(1, 0, 1, 2, 100), "a"), named(acquired(2, 0, 3, 4, 100), "b"), named(released(1, 0, 5, 6), "a"), named(released(2, 0, 7, 8), "b")}
	for _, p := range []variant.Property{variant.MutualExclusion, variant.Linearizable} {
		if v := both(t, &history.Header{}, func() Monitor { return monitorOf(variant.Lock, p)(&history.Header{}) }, twice); v.Result != Violated {
			t.Errorf("%s: two texts hold a lock at once: %v (%s)", p, v.Result, v.Why)
		}
	}
	sound := []history.Op{named(acquired(1, 0, 1, 2, 100), "a"), named(released(1, 0, 3, 4), "a"), named(acquired(2, 0, 5, 6, 100), "b"), named(released(1, 0, 7, 8), "a")}
	if v := feed(newLockLinear(&history.Header{}), sound); v.Result != Violated || !strings.Contains(v.Why, `in session "a", which did not hold it`) {
		t.Errorf("a text released again: %v (%s)", v.Result, v.Why)
	}
	if v := feed(newMutualExclusion(&history.Header{}), sound); v.Result != Holds {
		t.Errorf("a text after another: %v (%s)", v.Result, v.Why)
	}
	// More sessions at once than a monitor looks through one by one, with numbers and texts mixed.
	var many []history.Op
	for i := range int64(30) {
		op := acquired(int32(i), i, time.Duration(10*i), time.Duration(10*i+1), 0)
		rel := released(int32(i), i, time.Duration(10*i+2), time.Duration(10*i+3))
		if i%2 == 0 {
			op.Arg, rel.Arg = history.Text(fmt.Sprint("s", i)), history.Text(fmt.Sprint("s", i))
		}
		lost := unanswered(history.Acquire, 99, 1000+i, time.Duration(10*i+4), time.Duration(10*i+5))
		many = append(many, op, rel, lost)
	}
	for _, p := range []variant.Property{variant.MutualExclusion, variant.Linearizable} {
		if v := feedAdvancing(monitorOf(variant.Lock, p)(&history.Header{}), many); v.Result != Holds {
			t.Errorf("%s: %v (%s)", p, v.Result, v.Why)
		}
	}
}

// TestLockOpportunities checks how many opportunities each promise has.
func TestLockOpportunities(t *testing.T) {
	const ttl = 100
	stopped := func(client int32, session int64, call, ret time.Duration) history.Op {
		return lockOp(history.Acquire, client, session, call, ret, history.Refused, history.Stopped)
	}
	elsewhere := func(op history.Op) history.Op { op.Key = history.Text("other"); return op }
	fenced := func(op history.Op) history.Op { op.Fence, _ = op.Arg.Num(); return op }
	join := func(client int32, session int64, call, ret time.Duration) history.Op {
		return lockOp(history.Join, client, session, call, ret, history.OK, history.NoReason)
	}
	type counts [6]int64 // in the order of All: exclusion, owner, fencing, fifo, progress, linearizable
	for _, c := range []struct {
		name string
		ops  []history.Op
		want counts
	}{
		{"one client", []history.Op{fenced(acquired(1, 1, 1, 2, 90)), released(1, 1, 3, 4), fenced(acquired(1, 2, 5, 6, 95)), released(1, 2, 7, 8)}, counts{}},
		{"a contended hand-over", []history.Op{fenced(acquired(1, 1, 1, 2, 90)), fenced(acquired(2, 2, 3, 6, 104)), released(1, 1, 4, 5), released(2, 2, 7, 8)}, counts{1, 1, 1, 0, 1, 1}},
		{"one after the other", []history.Op{fenced(acquired(1, 1, 1, 2, 90)), released(1, 1, 3, 4), fenced(acquired(2, 2, 5, 6, 104)), released(2, 2, 7, 8)}, counts{0, 0, 1, 0, 1, 0}},
		{"asked after the release was called", []history.Op{fenced(acquired(1, 1, 1, 2, 90)), released(1, 1, 3, 7), fenced(acquired(2, 2, 4, 6, 104))}, counts{0, 1, 1, 0, 1, 2}},
		{"a refusal", []history.Op{fenced(acquired(1, 1, 1, 2, 90)), held(2, 2, 3, 4), released(1, 1, 5, 6)}, counts{1, 0, 0, 0, 0, 1}},
		{"a refusal during a lease that nobody released", []history.Op{acquired(1, 1, 1, 2, 90), held(2, 2, 3, 4)}, counts{1, 0, 0, 0, 0, 1}},
		{"a refusal of the client's own", []history.Op{acquired(1, 1, 1, 2, 90), held(1, 2, 3, 4), released(1, 1, 5, 6)}, counts{}},
		{"a waiter that was stopped", []history.Op{acquired(1, 1, 1, 2, 90), stopped(2, 2, 3, 8), released(1, 1, 5, 6)}, counts{}},
		{"a waiter that was never answered", []history.Op{acquired(1, 1, 1, 2, 90), unanswered(history.Acquire, 2, 2, 3, 8), released(1, 1, 5, 6)}, counts{}},
		{"nothing but unknown outcomes", []history.Op{unanswered(history.Acquire, 1, 1, 1, 9), unanswered(history.Acquire, 2, 2, 3, 8), unanswered(history.Release, 1, 1, 10, 12), unanswered(history.Release, 2, 2, 9, 14)}, counts{}},
		{"another key", []history.Op{acquired(1, 1, 1, 2, 90), elsewhere(acquired(2, 2, 3, 4, 103)), elsewhere(held(3, 3, 1, 2)), released(1, 1, 5, 6), elsewhere(released(2, 2, 7, 8))}, counts{}},
		{"a lease that was over when it was granted", []history.Op{acquired(1, 1, 1, 20, 15), held(2, 2, 16, 22)}, counts{0, 0, 0, 0, 0, 1}},
		{"granted, and over already", []history.Op{acquired(1, 1, 1, 2, 90), acquired(2, 2, 3, 40, 35), released(1, 1, 4, 5)}, counts{0, 1, 0, 0, 1, 1}},
		{"a final reading", []history.Op{acquired(1, 1, 1, 2, 90), {Client: 2, Kind: history.ReadState, Outcome: history.OK, Key: lockKey, Arg: history.Text("left"), Call: 1, Return: 9}, released(1, 1, 3, 4)}, counts{}},
		{"a lease that was extended", []history.Op{acquired(1, 1, 1, 2, 10), extended(1, 1, 8, 9, 108), held(2, 2, 20, 21)}, counts{1, 0, 0, 0, 0, 1}},
		{"an extension while another client asks", []history.Op{acquired(1, 1, 1, 2, 90), extended(1, 1, 3, 5, 103), held(2, 2, 4, 6)}, counts{1, 1, 0, 0, 0, 1}},
		{"overtaking would have shown", []history.Op{join(1, 1, 1, 2), join(2, 2, 3, 4), acquired(1, 1, 1, 5, 104), released(1, 1, 6, 7), acquired(2, 2, 3, 8, 107)}, counts{1, 1, 0, 1, 1, 1}},
		{"a line with one in it", []history.Op{join(1, 1, 1, 2), acquired(1, 1, 1, 5, 104), released(1, 1, 6, 7), join(2, 2, 8, 9), acquired(2, 2, 8, 10, 109)}, counts{0, 0, 0, 0, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := history.Header{TTL: ttl, Grace: 1}
			ops := complete(c.ops)
			for _, feed := range []func(Monitor, []history.Op) Verdict{feed, feedAdvancing} {
				var got counts
				for i, m := range monitorsOf(variant.Lock, &h) {
					got[i] = feed(m, ops).Opportunities
				}
				if got != c.want {
					t.Errorf("opportunities %v, want %v\n%s", got, c.want, show(&h, ops))
				}
			}
		})
	}
}

// TestOpportunitiesAreNotLost checks that the count of opportunities is the same with and without Advance, and that a
// history that breaks mutual exclusion has at least one.
func TestOpportunitiesAreNotLost(t *testing.T) {
	for seed := range uint64(crossRuns() / 10) {
		h := bigHistory(seed, 40, int(seed%3))
		for _, j := range All {
			if j.Of != variant.Lock {
				continue
			}
			a, b := feed(j.New(&Shared{Header: &h.Header}), h.Ops), feedAdvancing(j.New(&Shared{Header: &h.Header}), h.Ops)
			if a.Opportunities != b.Opportunities {
				t.Fatalf("seed %d: %s: %d opportunities without Advance, %d with\n%s", seed, j.Property, a.Opportunities, b.Opportunities, show(&h.Header, h.Ops))
			}
			if a.Result == Violated && a.Opportunities == 0 && j.Property == variant.MutualExclusion {
				t.Fatalf("seed %d: %s is broken without an opportunity: %s\n%s", seed, j.Property, a.Why, show(&h.Header, h.Ops))
			}
		}
	}
}

// TestHoldsNeedsAnOpportunity checks that Judge turns "holds" into "unknown" when nothing could have broken the
// promise.
func TestHoldsNeedsAnOpportunity(t *testing.T) {
	alone := []history.Op{acquired(1, 1, 1, 2, 90), released(1, 1, 3, 4), acquired(1, 2, 5, 6, 95), released(1, 2, 7, 8)}
	met := []history.Op{acquired(1, 1, 1, 2, 90), acquired(2, 2, 3, 6, 104), released(1, 1, 4, 5), held(3, 3, 6, 7), released(2, 2, 8, 9)}
	for _, c := range []struct {
		ops  []history.Op
		want Result
		says string
	}{
		{alone, Unknown, "nothing in the history could have broken it"},
		{met, Holds, ""},
	} {
		h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock}, TTL: 100, Grace: 1}, Ops: complete(c.ops), Trailer: &history.Trailer{}}
		for _, v := range Judge(h).Verdicts {
			if v.Result != c.want || !strings.Contains(v.Why, c.says) {
				t.Errorf("%s of %d operations: %v (%s), want %v", v.Property, len(c.ops), v.Result, v.Why, c.want)
			}
		}
	}
	v := feed(newMutualExclusion(&history.Header{}), complete(met))
	if want := "no two holders at once in 1 contended hand-over and 1 refusal"; v.Why != want {
		t.Errorf("the sentence is %q, want %q", v.Why, want)
	}
}
