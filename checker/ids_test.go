package checker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

var counterKey = history.Text("Id:{run}orders")

func gave(client int32, n int64, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.NextID, Outcome: history.OK, Key: counterKey, Result: history.Int(n), Call: call, Return: ret}
}

// lettered returns an answer that gives a text instead of a number.
func lettered(text string, call, ret time.Duration) history.Op {
	return history.Op{Client: 1, Kind: history.NextID, Outcome: history.OK, Key: counterKey, Result: history.Text(text), Call: call, Return: ret}
}

func unnumbered(client int32, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.NextID, Key: counterKey, Call: call, Return: ret}
}

func lastNumber(n int64, call time.Duration) history.Op {
	return history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: counterKey, Arg: monitor.TheLast, Result: history.Int(n), Call: call, Return: call + 1}
}

func onRequest(op history.Op, request string) history.Op { op.Arg = history.Text(request); return op }

func TestUniqueIDs(t *testing.T) {
	h := history.Header{}
	runCases(t, monitorOf(variant.IDs, variant.UniqueIDs), []verdictCase{
		{"twice", h, []history.Op{gave(1, 7, 1, 2), gave(2, 7, 3, 4)}, Violated, "was given to client 1"},
		{"two numbers", h, []history.Op{gave(1, 7, 1, 2), gave(2, 8, 3, 4)}, Holds, "2 numbers"},
		{"an unknown one", h, []history.Op{gave(1, 7, 1, 2), unnumbered(2, 3, 4)}, Holds, "1 number"},
		{"of the same request", h, []history.Op{onRequest(gave(1, 7, 1, 2), "a"), onRequest(gave(1, 7, 3, 4), "a")}, Holds, ""},
		{"of two requests", h, []history.Op{onRequest(gave(1, 7, 1, 2), "a"), onRequest(gave(1, 7, 3, 4), "b")}, Violated, ""},
		{"a far number, twice", h, []history.Op{gave(1, 1<<50, 1, 2), gave(2, 1<<50, 3, 4)}, Violated, ""},
		{"texts", h, []history.Op{lettered("b", 1, 2), lettered("b", 3, 4)}, Violated, "was given to client 1"},
		{"of the same request, to two clients", h, []history.Op{onRequest(gave(1, 7, 1, 3), "a"), onRequest(gave(2, 7, 2, 4), "a")}, Violated, "and to client 2"},
		{"of the same request, to two clients, told to be a repetition", h, []history.Op{onRequest(gave(1, 7, 1, 3), "a"), again(onRequest(gave(2, 7, 2, 4), "a"))}, Holds, ""},
		{"of the same request, to two clients, of which the first is told to be a repetition", h, []history.Op{again(onRequest(gave(1, 7, 1, 3), "a")), onRequest(gave(2, 7, 2, 4), "a")}, Holds, ""},
		{"of the same request, tried before", h, []history.Op{onRequest(unnumbered(3, 1, 2), "a"), onRequest(gave(1, 7, 1, 3), "a"), onRequest(gave(2, 7, 2, 4), "a")}, Holds, ""},
		{"of the same request, tried before and given up later", h, []history.Op{onRequest(gave(1, 7, 1, 3), "a"), onRequest(gave(2, 7, 2, 4), "a"), onRequest(unnumbered(3, 4, 90), "a")}, Holds, ""},
		{"of the same request, tried only after", h, []history.Op{onRequest(gave(1, 7, 1, 3), "a"), onRequest(gave(2, 7, 2, 4), "a"), onRequest(unnumbered(3, 5, 6), "a")}, Violated, ""},
		{"of another request, told to be a repetition", h, []history.Op{onRequest(gave(1, 7, 1, 2), "a"), again(onRequest(gave(2, 7, 3, 4), "b"))}, Violated, ""},
		{"of another request that is told later", h, []history.Op{again(onRequest(gave(2, 7, 3, 4), "b")), onRequest(gave(1, 7, 1, 5), "a")}, Violated, ""},
		{"of another client, told to be a repetition", h, []history.Op{gave(1, 7, 1, 2), again(gave(2, 7, 3, 4))}, Violated, "and to client 2"},
		{"of the same client, told to be a repetition", h, []history.Op{gave(1, 7, 1, 2), again(gave(1, 7, 3, 4))}, Holds, ""},
		{"a repetition of nothing", h, []history.Op{gave(1, 7, 1, 2), again(onRequest(gave(2, 8, 3, 4), "a"))}, Unknown, "client 2 was told at 0.000 ms to have been given 8 before"},
		{"a repetition of a try", h, []history.Op{onRequest(unnumbered(1, 1, 2), "a"), again(onRequest(gave(2, 8, 3, 4), "a"))}, Holds, "1 number"},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestNoGaps(t *testing.T) {
	h := history.Header{}
	runCases(t, monitorOf(variant.IDs, variant.NoGaps), []verdictCase{
		{"the first is missing", h, []history.Op{gave(1, 2, 1, 2)}, Violated, "1 of the numbers from 1 to 2: 1"},
		{"none is missing", h, []history.Op{gave(1, 2, 1, 2), gave(1, 1, 3, 4)}, Holds, "from 1 to 2"},
		{"a lost answer may have it", h, []history.Op{gave(1, 2, 1, 2), unnumbered(2, 1, 2)}, Unknown, "may have used up"},
		{"one lost answer for two gaps", h, []history.Op{gave(1, 3, 1, 2), unnumbered(2, 1, 2)}, Violated, "1 to 2"},
		{"the server knows more", h, []history.Op{gave(1, 1, 1, 2), lastNumber(2, 9)}, Violated, ""},
		{"the server knows more, and an answer got lost", h, []history.Op{gave(1, 1, 1, 2), unnumbered(2, 1, 2), lastNumber(2, 9)}, Unknown, "2"},
		{"the server knows no more", h, []history.Op{gave(1, 1, 1, 2), unnumbered(2, 1, 2), lastNumber(1, 9)}, Holds, ""},
		{"of two readings the larger one counts", h, []history.Op{gave(1, 1, 1, 2), lastNumber(2, 9), lastNumber(1, 9)}, Violated, "1 of the numbers from 1 to 2: 2"},
		{"read too early", h, []history.Op{lastNumber(2, 0), gave(1, 1, 2, 3)}, Holds, ""},
		{"the largest number there is, twice", h, []history.Op{gave(1, math.MaxInt64, 1, 2), gave(1, math.MaxInt64, 3, 4)}, Violated, "9,223,372,036,854,775,806 of the numbers from 1 to 9,223,372,036,854,775,807: 1 to 9,223,372,036,854,775,806"},
		{"a long way", h, []history.Op{gave(1, 1, 1, 2), gave(1, 1<<40, 3, 4), gave(1, 5, 5, 6)}, Violated, "2 to 4, 6 to "},
		{"no number", h, []history.Op{gave(1, 1, 1, 2), gave(1, 0, 3, 4)}, Unknown, "no numbers"},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestRealTimeOrder(t *testing.T) {
	h := history.Header{}
	runCases(t, monitorOf(variant.IDs, variant.RealTimeOrder), []verdictCase{
		{"falling", h, []history.Op{gave(1, 8, 1, 2), gave(2, 7, 3, 4)}, Violated, "was given 7"},
		{"falling, but perhaps at once", h, []history.Op{gave(1, 8, 1, 3), gave(2, 7, 3, 4)}, Holds, "2 numbers"},
		{"rising with gaps", h, []history.Op{gave(1, 8, 1, 2), gave(2, 70, 3, 4)}, Holds, ""},
		{"asked for before", h, []history.Op{onRequest(unnumbered(2, 0, 1), "a"), gave(1, 8, 1, 2), onRequest(gave(2, 7, 3, 4), "a")}, Holds, ""},
		{"asked for before by a try that is given up later", h, []history.Op{gave(1, 8, 1, 2), onRequest(gave(2, 7, 3, 4), "a"), onRequest(unnumbered(3, 1, 9), "a")}, Holds, ""},
		{"tried by another, too late", h, []history.Op{gave(1, 8, 1, 2), onRequest(gave(2, 7, 4, 5), "a"), onRequest(unnumbered(3, 3, 9), "a")}, Violated, "only at"},
		{"texts have no order", h, []history.Op{lettered("b", 1, 2), lettered("a", 3, 4)}, Unknown, "2 answers that are no numbers"},
		{"falling beside a text", h, []history.Op{lettered("b", 1, 2), gave(1, 8, 3, 4), gave(2, 7, 5, 6)}, Violated, "was given 7"},
		{"another was asked for before", h, []history.Op{onRequest(unnumbered(2, 0, 1), "a"), gave(1, 8, 1, 2), onRequest(gave(2, 7, 3, 4), "b")}, Violated, ""},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestIDLinear(t *testing.T) {
	h := history.Header{}
	runCases(t, monitorOf(variant.IDs, variant.Linearizable), []verdictCase{
		{"a number left out", h, []history.Op{gave(1, 2, 1, 2)}, Violated, "nobody can have been given 1"},
		{"the largest number there is was read", h, []history.Op{gave(1, 1, 1, 2), lastNumber(math.MaxInt64, 9)}, Violated, "nobody can have been given it by then"},
		{"filled by a lost answer", h, []history.Op{gave(1, 2, 1, 2), unnumbered(2, 2, 3)}, Holds, "1 number"},
		{"by one called too late", h, []history.Op{gave(1, 2, 1, 2), unnumbered(2, 3, 4)}, Violated, ""},
		{"by one called too late for the next", h, []history.Op{gave(1, 1, 5, 6), gave(3, 3, 1, 4), unnumbered(2, 2, 3)}, Violated, ""},
		{"twice", h, []history.Op{gave(1, 1, 1, 3), gave(2, 1, 2, 4)}, Violated, "was given to"},
		{"falling", h, []history.Op{gave(1, 2, 1, 2), gave(2, 1, 3, 4)}, Violated, ""},
		{"falling, but perhaps at once", h, []history.Op{gave(1, 2, 1, 3), gave(2, 1, 3, 4)}, Holds, ""},
		{"zero", h, []history.Op{gave(1, 0, 1, 3)}, Violated, "no counter"},
		{"the last is known", h, []history.Op{gave(1, 1, 1, 3), lastNumber(1, 5)}, Holds, ""},
		{"the last is higher", h, []history.Op{gave(1, 1, 1, 3), lastNumber(2, 5)}, Violated, "last number"},
		{"the last is higher by a lost answer", h, []history.Op{gave(1, 1, 1, 3), unnumbered(1, 4, 5), lastNumber(2, 5)}, Holds, ""},
		{"the last is lower", h, []history.Op{gave(1, 1, 1, 2), gave(1, 2, 3, 4), lastNumber(1, 5)}, Violated, "last number"},
		{"a first try had got it", h, []history.Op{onRequest(unnumbered(2, 0, 1), "a"), gave(1, 2, 1, 2), onRequest(gave(2, 1, 3, 4), "a")}, Holds, ""},
		{"a first try had got it, and is given up later", h, []history.Op{gave(1, 2, 1, 2), onRequest(gave(2, 1, 3, 4), "a"), onRequest(unnumbered(3, 1, 9), "a")}, Holds, ""},
		{"a request that is sent again gets its number again", h, []history.Op{onRequest(gave(1, 1, 1, 2), "a"), again(onRequest(gave(2, 1, 3, 4), "a")), gave(1, 2, 5, 6)}, Holds, "2 numbers"},
		{"a request that was answered gets its number again as a new one", h, []history.Op{onRequest(gave(1, 1, 1, 2), "a"), onRequest(gave(2, 1, 3, 4), "a"), gave(1, 2, 5, 6)}, Violated, "was given to client 1"},
		{"a repetition of nothing", h, []history.Op{gave(1, 1, 1, 2), again(onRequest(gave(2, 2, 3, 4), "a")), gave(1, 3, 5, 6)}, Unknown, "was told at"},
		{"a repetition of a try, called after a higher number was received", h, []history.Op{gave(1, 1, 1, 2), gave(1, 3, 3, 4), onRequest(unnumbered(2, 5, 6), "a"), again(onRequest(gave(2, 2, 7, 8), "a"))}, Violated, ""},
		{"far off", h, []history.Op{gave(1, 1, 1, 2), gave(1, 1<<60, 3, 4), gave(1, 1<<60+1, 5, 6)}, Violated, ""},
	})
}

// TestCrossRepeated compares unique-ids with its definition on histories in which requests have names and some
// answers say that they are repetitions.
func TestCrossRepeated(t *testing.T) {
	none := history.Value{}
	tried := func(ops []history.Op, op history.Op) bool {
		return op.Arg != none && slices.ContainsFunc(ops, func(o history.Op) bool {
			return o.Outcome == history.Unknown && o.Arg == op.Arg && o.Call <= op.Return
		})
	}
	legal := func(_ *history.Header, ops []history.Op) bool {
		for j, b := range ops {
			for _, a := range ops[:j] {
				repeated := a.Reason == history.Repeated || b.Reason == history.Repeated
				switch {
				case a.Outcome != history.OK || b.Outcome != history.OK || a.Result != b.Result:
				case a.Arg != b.Arg, a.Arg == none && (a.Client != b.Client || !repeated),
					a.Arg != none && a.Client != b.Client && !repeated && !tried(ops, b):
					return false
				}
			}
		}
		return true
	}
	// explained reports whether every repetition has an answer or an unanswered try that it can repeat.
	explained := func(ops []history.Op) bool {
		return !slices.ContainsFunc(ops, func(op history.Op) bool {
			return op.Reason == history.Repeated && !tried(ops, op) && !slices.ContainsFunc(ops, func(o history.Op) bool {
				return o.Outcome == history.OK && o.Reason != history.Repeated && o.Result == op.Result
			})
		})
	}
	agree(t, 0.5, monitorOf(variant.IDs, variant.UniqueIDs), func(r *rand.Rand) (*history.Header, []history.Op) {
		var ops []history.Op
		free := make([]time.Duration, 3)
		for range 2 + r.IntN(5) {
			c := int32(r.IntN(len(free)))
			call := free[c] + 1 + upTo(r, 4)
			free[c] = call + upTo(r, 6)
			op := gave(c, int64(1+r.IntN(4)), call, free[c])
			switch {
			case chance(r, 25):
				op = unnumbered(c, call, free[c]+upTo(r, 20))
			case chance(r, 40):
				op = again(op)
			}
			if n, _ := op.Result.Num(); chance(r, 80) {
				op = onRequest(op, string(rune('a'+int(n)%3)))
			}
			ops = append(ops, op)
		}
		return new(history.Header), complete(ops)
	}, func(h *history.Header, ops []history.Op) bool {
		ok := legal(h, ops)
		if v := feed(monitorOf(variant.IDs, variant.UniqueIDs)(h), ops); v.Result != Violated && !ok || v.Result == Holds && !explained(ops) {
			t.Errorf("%v (%s), want violated: %v, explained: %v\n%s", v.Result, v.Why, !ok, explained(ops), showTasks(h, ops))
		}
		return ok
	}, toTheLetter)
}

// counterModel returns the model of a counter whose next number is the state plus 1, as the comment of counter.linear
// defines it.
func counterModel() porcupine.Model {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{int64(0)} },
		Step: func(state, input, _ any) []any {
			n, op := state.(int64), input.(history.Op)
			got, _ := op.Result.Num()
			switch {
			case op.Kind == history.ReadState && got == n:
				return []any{n}
			case op.Kind == history.NextID && op.Outcome == history.Unknown:
				return []any{n, n + 1}
			case op.Kind == history.NextID && got == n+1:
				return []any{n + 1}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return model.ToModel()
}

func legalCounter(_ *history.Header, ops []history.Op) bool {
	var list []porcupine.Operation
	for _, op := range ops {
		ret := int64(op.Return)
		if op.Outcome == history.Unknown {
			ret = linear.EndOfOpen
		}
		list = append(list, porcupine.Operation{ClientId: int(op.Client), Input: op, Call: int64(op.Call), Return: ret})
	}
	return porcupine.CheckOperations(counterModel(), list)
}

// counterRun generates a history by simulating a correct counter. At most one corruption is applied.
func counterRun(r *rand.Rand, n int, corrupt bool) []history.Op {
	people := make([]person, 2+r.IntN(4))
	for i := range people {
		people[i].free = -1
	}
	var ops []history.Op
	var now time.Duration
	last := int64(0)
	for tries := 0; len(ops) < n && tries < 20*n; tries++ {
		now += upTo(r, 2)
		i := r.IntN(len(people))
		p := &people[i]
		if p.free >= now {
			continue
		}
		call, ret := max(p.free+1, now-upTo(r, 4)), now+upTo(r, 4)
		p.free = ret
		switch {
		case chance(r, 8):
			ops = append(ops, lastNumber(last, call))
			op := &ops[len(ops)-1]
			op.Client, op.Return = int32(i), ret
		case chance(r, 12):
			ops = append(ops, unnumbered(int32(i), call, ret))
			if chance(r, 60) {
				last++
			}
		default:
			last++
			ops = append(ops, gave(int32(i), last, call, ret))
		}
	}
	if corrupt && len(ops) > 0 {
		i := r.IntN(len(ops))
		op := &ops[i]
		switch r.IntN(4) {
		case 0:
			if n, _ := op.Result.Num(); op.Outcome == history.OK {
				op.Result = history.Int(max(0, n+int64(r.IntN(3))-1))
			}
		case 1:
			op.Call = max(0, op.Call-upTo(r, 6))
		case 2:
			op.Return += upTo(r, 6)
		case 3:
			if d := op.Return - op.Call; d > 1 {
				op.Call += time.Duration(r.Int64N(int64(d)))
			}
		}
		inTurn(ops, i)
	}
	return complete(ops)
}

// counterNoise generates a random history of a counter with few gaps and repetitions.
func counterNoise(r *rand.Rand, n int) []history.Op {
	people := make([]person, 2+r.IntN(4))
	for i := range people {
		people[i].free = upTo(r, 4) - 1
	}
	numbers := r.Perm(n + r.IntN(2))
	var ops []history.Op
	for len(ops) < n {
		i := int32(r.IntN(len(people)))
		p := &people[i]
		call := p.free + 1 + upTo(r, 2)
		p.free = call + upTo(r, 8)
		switch k := len(ops); {
		case chance(r, 20):
			ops = append(ops, unnumbered(i, call, p.free))
		case chance(r, 5):
			op := lastNumber(int64(numbers[k]), call)
			op.Client, op.Return = i, p.free
			ops = append(ops, op)
		default:
			ops = append(ops, gave(i, 1, call, p.free))
		}
	}
	ops = complete(ops)
	next := int64(1)
	for i := range ops {
		if op := &ops[i]; op.Kind == history.NextID && op.Outcome == history.OK {
			if chance(r, 15) {
				next++
			}
			op.Result = history.Int(next)
			if j := i - 1 - r.IntN(3); chance(r, 30) && j >= 0 && ops[j].Kind == history.NextID && ops[j].Outcome == history.OK {
				op.Result, ops[j].Result = ops[j].Result, op.Result
			}
			next++
		}
	}
	return ops
}

// underLock returns the operations of a client that takes a number under a lock: it asks for the lock at since, and
// holds it when it asks for the number.
func underLock(op history.Op, session int64, since time.Duration) []history.Op {
	op.Session = history.Int(session)
	return []history.Op{acquired(op.Client, session, since, op.Call-1, 0), op}
}

// TestOpportunitiesOfCounters checks how many opportunities each promise has.
func TestOpportunitiesOfCounters(t *testing.T) {
	list := func(parts ...[]history.Op) (ops []history.Op) { return slices.Concat(parts...) }
	elsewhere := gave(2, 2, 2, 5)
	elsewhere.Key = history.Text("another")
	for _, c := range []struct {
		name                string
		ops                 []history.Op
		contended, followed int64
	}{
		{"one client", []history.Op{gave(1, 1, 1, 2), gave(1, 2, 3, 4)}, 0, 0},
		{"one after the other", []history.Op{gave(1, 1, 1, 2), gave(2, 2, 3, 4), gave(1, 3, 5, 6)}, 0, 2},
		{"one follows as the other ends", []history.Op{gave(1, 1, 1, 2), gave(2, 2, 2, 4)}, 0, 0},
		{"two at once", []history.Op{gave(1, 1, 1, 4), gave(2, 2, 2, 5)}, 1, 0},
		{"three at once", []history.Op{gave(1, 1, 1, 4), gave(2, 2, 2, 5), gave(3, 3, 3, 6)}, 2, 0},
		{"one within another", []history.Op{gave(1, 1, 2, 3), gave(1, 2, 4, 5), gave(2, 3, 1, 6)}, 1, 0},
		{"falling for one client", []history.Op{gave(1, 2, 1, 2), gave(1, 1, 3, 4)}, 0, 1},
		{"two keys", []history.Op{gave(1, 1, 1, 4), elsewhere}, 0, 0},
		{"no answers", []history.Op{gave(1, 1, 1, 4), unnumbered(2, 2, 5), unnumbered(3, 2, 5)}, 0, 0},
		{"under a lock that another waited for", list(underLock(gave(1, 1, 3, 4), 1, 1), underLock(gave(2, 2, 7, 8), 2, 2)), 1, 1},
		{"under a lock that nobody waited for", list(underLock(gave(1, 1, 3, 4), 1, 1), underLock(gave(2, 2, 7, 8), 2, 5)), 0, 1},
		{"under another lock than it waited for", list(underLock(gave(1, 1, 3, 4), 1, 1), underLock(gave(2, 2, 7, 8), 2, 2)[:1], []history.Op{gave(2, 2, 7, 8)}), 0, 1},
	} {
		for property, want := range map[variant.Property]int64{
			variant.UniqueIDs: c.contended, variant.NoGaps: c.contended, variant.RealTimeOrder: c.followed, variant.Linearizable: c.contended,
		} {
			h := &history.Header{Objects: []variant.Object{variant.IDs}, Promises: []history.Promise{{Of: variant.IDs, Property: property}}}
			v := both(t, h, func() Monitor { return monitorOf(variant.IDs, property)(h) }, complete(slices.Clone(c.ops)))
			if v.Opportunities != want {
				t.Errorf("%s: %s has %d opportunities, want %d (%s)", c.name, property, v.Opportunities, want, v.Why)
			}
			if w := witnessed(v); v.Result == Holds && (w.Result == Holds) != (want > 0) {
				t.Errorf("%s: with %d opportunities %s is %v", c.name, want, property, w.Result)
			}
		}
	}
}

// withRetries turns some of the unanswered requests into tries of requests that were answered.
func withRetries(r *rand.Rand, ops []history.Op) []history.Op {
	var answers []int
	for i, op := range ops {
		if op.Kind == history.NextID && op.Outcome == history.OK {
			answers = append(answers, i)
		}
	}
	for i := range ops {
		if ops[i].Outcome == history.Unknown && len(answers) > 0 && chance(r, 70) {
			of := answers[r.IntN(len(answers))]
			request := fmt.Sprint("request ", of)
			ops[i], ops[of] = onRequest(ops[i], request), onRequest(ops[of], request)
		}
	}
	return ops
}

// fromFirstTry returns the operations, with the call of each answered request moved back to its first try.
func fromFirstTry(ops []history.Op) []history.Op {
	out := slices.Clone(ops)
	for i := range out {
		for _, try := range ops {
			if out[i].Kind == history.NextID && out[i].Outcome == history.OK && out[i].Arg != (history.Value{}) && try.Arg == out[i].Arg && try.Outcome == history.Unknown {
				out[i].Call = min(out[i].Call, try.Call)
			}
		}
	}
	return out
}

// TestCrossRetries compares the monitors that depend on when a number was asked for with their definitions, on
// histories with several tries of one request, at once or one after the other.
func TestCrossRetries(t *testing.T) {
	for name, run := range map[string]func(r *rand.Rand) []history.Op{
		"simulated": func(r *rand.Rand) []history.Op { return counterRun(r, 3+r.IntN(8), chance(r, 60)) },
		"noise":     func(r *rand.Rand) []history.Op { return counterNoise(r, 2+r.IntN(8)) },
	} {
		retried := func(r *rand.Rand) (*history.Header, []history.Op) {
			return new(history.Header), withRetries(r, run(r))
		}
		t.Run(name+"/linearizable", func(t *testing.T) {
			agree(t, 0.01, monitorOf(variant.IDs, variant.Linearizable), retried, func(h *history.Header, ops []history.Op) bool {
				return legalCounter(h, fromFirstTry(ops))
			}, toTheLetter)
		})
		t.Run(name+"/real-time-order", func(t *testing.T) {
			agree(t, 0.3, monitorOf(variant.IDs, variant.RealTimeOrder), retried, func(_ *history.Header, ops []history.Op) bool {
				return !fallsInTime(fromFirstTry(ops))
			}, toTheLetter)
		})
	}
}

// fallsInTime reports whether some number is lower than a number that was received before it was asked for.
func fallsInTime(ops []history.Op) bool {
	for _, op := range ops {
		for _, o := range ops {
			v, _ := op.Result.Num()
			w, _ := o.Result.Num()
			if op.Kind == history.NextID && o.Kind == history.NextID && op.Outcome == history.OK && o.Outcome == history.OK && o.Return < op.Call && w > v {
				return true
			}
		}
	}
	return false
}

func TestCrossIDs(t *testing.T) {
	open := monitorOf(variant.IDs, variant.Linearizable)
	for i := range 1 + 4*b2i(long()) {
		t.Run(fmt.Sprintf("simulated/%d", i), func(t *testing.T) {
			agree(t, 0.01, open, func(r *rand.Rand) (*history.Header, []history.Op) {
				return &history.Header{}, counterRun(r, 3+i+r.IntN(10), chance(r, 60))
			}, legalCounter, toTheLetter)
		})
		t.Run(fmt.Sprintf("noise/%d", i), func(t *testing.T) {
			agree(t, 0.01, open, func(r *rand.Rand) (*history.Header, []history.Op) {
				return &history.Header{}, counterNoise(r, 2+i+r.IntN(8))
			}, legalCounter, toTheLetter)
		})
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestCrossIDProperties compares the other monitors with their definitions.
func TestCrossIDProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(crossRuns()) {
		r := rand.New(rand.NewPCG(seed, 9))
		ops := counterNoise(r, 2+r.IntN(12))
		seen, most := make(map[int64]int), int64(0)
		falls, twice, unknown := false, false, 0
		last := int64(0)
		for i, op := range ops {
			v, _ := op.Result.Num()
			switch {
			case op.Kind == history.ReadState:
				last = max(last, v)
				continue
			case op.Outcome == history.Unknown:
				unknown++
				last = 0
				continue
			}
			seen[v]++
			last = 0
			twice = twice || seen[v] > 1
			most = max(most, v)
			for _, o := range ops[:i] {
				w, _ := o.Result.Num()
				falls = falls || o.Kind == history.NextID && o.Outcome == history.OK && o.Return < op.Call && w > v
			}
		}
		missing := int(max(most, last)) - len(seen)
		gaps := Holds
		switch {
		case missing > unknown:
			gaps = Violated
		case missing > 0 || max(most, last) == 0:
			gaps = Unknown
		}
		want := map[variant.Property]Result{variant.UniqueIDs: Holds, variant.NoGaps: gaps, variant.RealTimeOrder: Holds}
		if twice {
			want[variant.UniqueIDs] = Violated
		}
		if falls {
			want[variant.RealTimeOrder] = Violated
		}
		if len(seen) == 0 {
			want[variant.UniqueIDs], want[variant.RealTimeOrder] = Unknown, Unknown
		}
		for property := range want {
			open := func() Monitor { return monitorOf(variant.IDs, property)(new(history.Header)) }
			if v, w := feed(open(), ops), feedAdvancing(open(), ops); v.Result != want[v.Property] || w.Result != v.Result {
				t.Fatalf("seed %d: %s: %v (%s), advancing %v, want %v\n%s", seed, v.Property, v.Result, v.Why, w.Result, want[v.Property], showTasks(&history.Header{}, ops))
			}
		}
	}
}

// counterHistory returns the history of a correct counter.
func counterHistory(n, clients int) []history.Op {
	r := rand.New(rand.NewPCG(6, 6))
	ops := make([]history.Op, 0, n)
	free := make([]time.Duration, clients)
	now := time.Duration(0)
	for i := range n {
		c := int32(i % clients)
		now = max(now+1000, free[c]+1)
		op := gave(c, int64(i+1), max(free[c]+1, now-time.Duration(r.IntN(20_000))), now+time.Duration(r.IntN(20_000)))
		free[c] = op.Return
		ops = append(ops, op)
	}
	return complete(ops)
}

func BenchmarkIDs(b *testing.B) {
	for _, clients := range []int{10, 1000} {
		ops := counterHistory(1_000_000, clients)
		b.Run(fmt.Sprintf("linearizable/1000000/clients=%d", clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return []Monitor{monitorOf(variant.IDs, variant.Linearizable)(new(history.Header))} })
		})
		b.Run(fmt.Sprintf("all/1000000/clients=%d", clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return monitorsOf(variant.IDs, new(history.Header)) })
		})
	}
	for _, n := range []int{1000, 10_000} {
		ops := counterHistory(n, 10)
		b.Run(fmt.Sprintf("porcupine/%d/clients=10", n), func(b *testing.B) {
			for b.Loop() {
				if !legalCounter(nil, ops) {
					b.Fatal("porcupine found no order")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/checked-op")
		})
	}
}
