package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/history"
	"oversell/variant"
)

var counterKey = history.Text("Id:{run}orders")

func gave(client int32, n int64, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.NextID, Outcome: history.OK, Key: counterKey, Result: history.Int(n), Call: call, Return: ret}
}

func unnumbered(client int32, call, ret time.Duration) history.Op {
	return history.Op{Client: client, Kind: history.NextID, Key: counterKey, Call: call, Return: ret}
}

func lastNumber(n int64, call time.Duration) history.Op {
	return history.Op{Client: 99, Kind: history.ReadState, Outcome: history.OK, Key: counterKey, Arg: theLast, Result: history.Int(n), Call: call, Return: call + 1}
}

func onRequest(op history.Op, request string) history.Op { op.Arg = history.Text(request); return op }

func TestUniqueIDs(t *testing.T) {
	h := history.Header{}
	runCases(t, func(*history.Header) Monitor { return newUniqueIDs() }, []verdictCase{
		{"twice", h, []history.Op{gave(1, 7, 1, 2), gave(2, 7, 3, 4)}, Violated, "was given to client 1"},
		{"two numbers", h, []history.Op{gave(1, 7, 1, 2), gave(2, 8, 3, 4)}, Holds, "2 numbers"},
		{"an unknown one", h, []history.Op{gave(1, 7, 1, 2), unnumbered(2, 3, 4)}, Holds, "1 number"},
		{"of the same request", h, []history.Op{onRequest(gave(1, 7, 1, 2), "a"), onRequest(gave(1, 7, 3, 4), "a")}, Holds, ""},
		{"of two requests", h, []history.Op{onRequest(gave(1, 7, 1, 2), "a"), onRequest(gave(1, 7, 3, 4), "b")}, Violated, ""},
		{"a far number, twice", h, []history.Op{gave(1, 1<<50, 1, 2), gave(2, 1<<50, 3, 4)}, Violated, ""},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestNoGaps(t *testing.T) {
	h := history.Header{}
	runCases(t, func(*history.Header) Monitor { return newNoGaps() }, []verdictCase{
		{"the first is missing", h, []history.Op{gave(1, 2, 1, 2)}, Violated, "1 of the numbers from 1 to 2: 1"},
		{"none is missing", h, []history.Op{gave(1, 2, 1, 2), gave(1, 1, 3, 4)}, Holds, "from 1 to 2"},
		{"a lost answer may have it", h, []history.Op{gave(1, 2, 1, 2), unnumbered(2, 1, 2)}, Unknown, "may have used up"},
		{"one lost answer for two gaps", h, []history.Op{gave(1, 3, 1, 2), unnumbered(2, 1, 2)}, Violated, "1 to 2"},
		{"the server knows more", h, []history.Op{gave(1, 1, 1, 2), lastNumber(2, 9)}, Violated, ""},
		{"the server knows more, and an answer got lost", h, []history.Op{gave(1, 1, 1, 2), unnumbered(2, 1, 2), lastNumber(2, 9)}, Unknown, "2"},
		{"the server knows no more", h, []history.Op{gave(1, 1, 1, 2), unnumbered(2, 1, 2), lastNumber(1, 9)}, Holds, ""},
		{"read too early", h, []history.Op{lastNumber(2, 0), gave(1, 1, 2, 3)}, Holds, ""},
		{"a long way", h, []history.Op{gave(1, 1, 1, 2), gave(1, 1<<40, 3, 4), gave(1, 5, 5, 6)}, Violated, "2 to 4, 6 to "},
		{"no number", h, []history.Op{gave(1, 1, 1, 2), gave(1, 0, 3, 4)}, Unknown, "no numbers"},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestRealTimeOrder(t *testing.T) {
	h := history.Header{}
	runCases(t, func(*history.Header) Monitor { return newRealTimeOrder() }, []verdictCase{
		{"falling", h, []history.Op{gave(1, 8, 1, 2), gave(2, 7, 3, 4)}, Violated, "was given 7"},
		{"falling, but perhaps at once", h, []history.Op{gave(1, 8, 1, 3), gave(2, 7, 3, 4)}, Holds, "2 numbers"},
		{"rising with gaps", h, []history.Op{gave(1, 8, 1, 2), gave(2, 70, 3, 4)}, Holds, ""},
		{"asked for before", h, []history.Op{onRequest(unnumbered(2, 0, 1), "a"), gave(1, 8, 1, 2), onRequest(gave(2, 7, 3, 4), "a")}, Holds, ""},
		{"another was asked for before", h, []history.Op{onRequest(unnumbered(2, 0, 1), "a"), gave(1, 8, 1, 2), onRequest(gave(2, 7, 3, 4), "b")}, Violated, ""},
		{"nothing", h, []history.Op{unnumbered(1, 1, 2)}, Unknown, "nobody obtained a number"},
	})
}

func TestIDLinear(t *testing.T) {
	h := history.Header{}
	runCases(t, func(*history.Header) Monitor { return newIDLinear() }, []verdictCase{
		{"a number left out", h, []history.Op{gave(1, 2, 1, 2)}, Violated, "nobody can have been given 1"},
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
		{"far off", h, []history.Op{gave(1, 1, 1, 2), gave(1, 1<<60, 3, 4), gave(1, 1<<60+1, 5, 6)}, Violated, ""},
	})
}

// counterModel is a counter whose next number is 1 more than the state, as the
// comment of idLinear has it.
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
			ret = endOfOpen
		}
		list = append(list, porcupine.Operation{ClientId: int(op.Client), Input: op, Call: int64(op.Call), Return: ret})
	}
	return porcupine.CheckOperations(counterModel(), list)
}

// counterRun generates a counter's history by simulating a correct one. At most
// one corruption is applied.
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

// counterNoise generates a counter's history at random, with few gaps and
// repetitions.
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

func TestCrossIDs(t *testing.T) {
	open := func(*history.Header) Monitor { return newIDLinear() }
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
				last = v
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
		for _, open := range []func() Monitor{func() Monitor { return newUniqueIDs() }, func() Monitor { return newNoGaps() }, func() Monitor { return newRealTimeOrder() }} {
			if v, w := feed(open(), ops), feedAdvancing(open(), ops); v.Result != want[v.Property] || w.Result != v.Result {
				t.Fatalf("seed %d: %s: %v (%s), advancing %v, want %v\n%s", seed, v.Property, v.Result, v.Why, w.Result, want[v.Property], showTasks(&history.Header{}, ops))
			}
		}
	}
}

// counterHistory is a correct counter's history.
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
			benchMonitors(b, ops, func() []Monitor { return []Monitor{newIDLinear()} })
		})
		b.Run(fmt.Sprintf("all/1000000/clients=%d", clients), func(b *testing.B) {
			benchMonitors(b, ops, func() []Monitor { return idMonitors(nil) })
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
