package foreign

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"oversell/checker"
)

// porcupineModel returns an object as a porcupine model. An unanswered operation that is not legal counts as one that
// had no effect.
func porcupineModel(s *sequential, begin any) porcupine.Model {
	seed := maphash.MakeSeed()
	return porcupine.Model{
		Hash: func(state any) uint64 { return maphash.Comparable(seed, state) },
		Init: func() any { return begin },
		Step: func(state, input, _ any) (bool, any) {
			op := input.(*Op)
			next, right := s.step(state, op)
			if !right && op.Outcome == Unknown {
				return true, state
			}
			return right, next
		},
	}
}

// drawn has generators of random operations, whose values often coincide.
var drawn = map[string]func(rng *rand.Rand) (f, arg, result string){
	"register": func(rng *rand.Rand) (f, arg, result string) {
		switch rng.IntN(3) {
		case 0:
			return "read", "nil", []string{"nil", "0", "1", "2"}[rng.IntN(4)]
		case 1:
			v := fmt.Sprint(rng.IntN(3))
			return "write", v, v
		}
		v := fmt.Sprintf("[%d %d]", rng.IntN(3), rng.IntN(3))
		return "cas", v, v
	},
	"mutex":       func(rng *rand.Rand) (f, arg, result string) { return lockOp(rng), "nil", "nil" },
	"owner-mutex": func(rng *rand.Rand) (f, arg, result string) { return lockOp(rng), "nil", "nil" },
	"fenced-mutex": func(rng *rand.Rand) (f, arg, result string) {
		if f = lockOp(rng); f == "acquire" {
			return f, "nil", []string{"nil", "1", "2", "3"}[rng.IntN(4)]
		}
		return f, "nil", "nil"
	},
	"counter": func(rng *rand.Rand) (f, arg, result string) {
		if rng.IntN(2) == 0 {
			return "read", "nil", fmt.Sprint(rng.IntN(4))
		}
		return "add", fmt.Sprint(1 + rng.IntN(2)), "nil"
	},
	"counter that falls": func(rng *rand.Rand) (f, arg, result string) {
		if rng.IntN(2) == 0 {
			return "read", "nil", fmt.Sprint(-rng.IntN(4))
		}
		return "add", fmt.Sprint(-1 - rng.IntN(2)), "nil"
	},
	"counter of both": func(rng *rand.Rand) (f, arg, result string) {
		if rng.IntN(2) == 0 {
			return "read", "nil", fmt.Sprint(rng.IntN(4) - 1)
		}
		return "add", fmt.Sprint(rng.IntN(4) - 1), "nil"
	},
	"kv": func(rng *rand.Rand) (f, arg, result string) {
		switch rng.IntN(3) {
		case 0:
			return "get", "nil", []string{`""`, `"a"`, `"aa"`, `"ba"`}[rng.IntN(4)]
		case 1:
			return "put", []string{`"a"`, `"b"`}[rng.IntN(2)], "nil"
		}
		return "append", `"a"`, "nil"
	},
	"multi-register": func(rng *rand.Rand) (f, arg, result string) {
		k, v := rng.IntN(2), []string{"nil", "1", "2"}[rng.IntN(3)]
		switch rng.IntN(3) {
		case 0:
			return "txn", fmt.Sprintf("[[:r %d nil]]", k), fmt.Sprintf("[[:r %d %s]]", k, v)
		case 1:
			return "txn", fmt.Sprintf("[[:w %d 1]]", k), "nil"
		}
		return "txn", fmt.Sprintf("[[:r %d nil] [:w %d 2]]", k, 1-k), fmt.Sprintf("[[:r %d %s] [:w %d 2]]", k, v, 1-k)
	},
}

func lockOp(rng *rand.Rand) string { return []string{"acquire", "release"}[rng.IntN(2)] }

// crashing returns a random history of processes that continue under another number after an operation without an
// answer, of which there are many. Most locks are released by their holders.
func crashing(rng *rand.Rand, processes, events int, draw func(*rand.Rand) (f, arg, result string)) string {
	type open struct{ f, arg, result string }
	var b strings.Builder
	busy, holds := map[int]open{}, map[int]bool{}
	ids := make([]int, processes)
	for i := range ids {
		ids[i] = i
	}
	for range events {
		at := rng.IntN(processes)
		p := ids[at]
		o, is := busy[p]
		if !is {
			f, arg, result := draw(rng)
			if f == "release" && !holds[p] && rng.IntN(8) > 0 {
				f = "acquire"
			}
			busy[p] = open{f, arg, result}
			fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :%s, :value %s}\n", p, f, arg)
			continue
		}
		kind, value := "ok", o.result
		switch rng.IntN(4) {
		case 0:
			kind, value = "fail", o.arg
		case 1:
			kind, value = "info", o.arg
			ids[at] += processes
		}
		holds[p] = o.f == "acquire" && kind == "ok"
		fmt.Fprintf(&b, "{:process %d, :type :%s, :f :%s, :value %s}\n", p, kind, o.f, value)
		delete(busy, p)
	}
	return b.String()
}

// TestSearch compares the search and its shortcuts with a trial of all orders on small histories, and with porcupine
// on larger ones.
func TestSearch(t *testing.T) {
	for name, draw := range drawn {
		rng := rand.New(rand.NewPCG(7, 8))
		count := map[bool]int{}
		for round := range 3000 {
			processes, events := 3, 2+rng.IntN(14)
			if round%2 == 1 {
				processes, events = 4, 12+rng.IntN(16)
			}
			h, err := parseJepsen("{:process 99, :type :invoke, :f :" + map[bool]string{true: "txn, :value []}\n", false: "read}\n{:process 99, :type :fail, :f :read}\n"}[name == "multi-register"] + crashing(rng, processes, events, draw))
			if err != nil {
				t.Fatal(err)
			}
			h.Ops = h.Ops[1:]
			model, _, _ := strings.Cut(name, " ")
			m, err := FindModel(model, h)
			if name == "fenced-mutex" && errors.Is(err, ErrModel) {
				continue // it has no fencing token
			}
			if err != nil {
				t.Fatal(err)
			}
			_, groups := byKey(h)
			ops := groups[""]
			var want bool
			if round%2 == 0 {
				want = brute(m.linear, ops, m.begin)
			} else {
				var list []porcupine.Operation
				for _, op := range ops {
					list = append(list, porcupine.Operation{Input: op, Call: op.Call, Return: op.Return})
				}
				want = porcupine.CheckOperations(porcupineModel(m.linear, m.begin), list)
			}
			count[want]++
			got := search(m, ops, time.Now().Add(time.Minute))
			if plain := legalOrder(m.linear, m.begin, ops, time.Now().Add(time.Minute)); got != plain {
				t.Fatalf("%s: %v with idle operations left out, and %v with them: %+v", name, got, plain, h.Ops)
			}
			if got != map[bool]found{true: legal, false: illegalOrder}[want] {
				t.Fatalf("%s: %v, want legal: %v: %+v", name, got, want, h.Ops)
			}
		}
		if count[true] < 100 || count[false] < 100 {
			t.Errorf("%s: %v: too one-sided to tell anything", name, count)
		}
	}
}

// TestManyUnknown checks that many operations without an answer do not make the search take exponential time.
func TestManyUnknown(t *testing.T) {
	for _, model := range []string{"mutex", "owner-mutex", "fenced-mutex"} {
		for _, end := range []string{"", "0i:release 0o:release "} {
			first := ""
			if model == "fenced-mutex" {
				first = "=1"
			}
			var b strings.Builder
			for p := range 60 {
				fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :acquire}\n{:process %d, :type :info, :f :acquire}\n", 10+p, 10+p)
			}
			h, err := parseJepsen(b.String() + events("0i:acquire 0o:acquire"+first+" 0i:release 0o:release 0i:acquire 0o:acquire 0i:release 0o:release "+end))
			if err != nil {
				t.Fatal(err)
			}
			m, err := FindModel(model, h)
			if err != nil {
				t.Fatal(err)
			}
			want := checker.Holds
			if end != "" && model != "mutex" { // process 0 does not hold the lock, whoever else may
				want = checker.Violated
			}
			if v := Judge(h, m, Limits{Time: time.Minute})[0]; v.Result != want {
				t.Errorf("%s: %v, want %v: %s", model, v.Result, want, v.Why)
			}
		}
	}
}

// busy returns a correct history of processes, some of which crash.
func busy(model string, n, processes int, crash float64) string {
	rng := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	type open struct {
		f, arg, result string
		done           bool
	}
	ops, ids, sum, value := make([]*open, processes), make([]int, processes), 0, 0
	for i := range ids {
		ids[i] = i
	}
	for begun := 0; begun < n; {
		at := rng.IntN(processes)
		o := ops[at]
		switch {
		case o == nil:
			begun++
			f, arg := "read", "nil"
			if rng.IntN(2) == 0 {
				f, arg = map[string]string{"counter": "add", "register": "write"}[model], fmt.Sprint(1+rng.IntN(5))
			}
			ops[at] = &open{f: f, arg: arg, result: arg}
			fmt.Fprintf(&b, "{:process %d, :type :invoke, :f :%s, :value %s}\n", ids[at], f, arg)
		case !o.done && rng.IntN(2) == 0:
			o.done = true
			var v int
			fmt.Sscan(o.arg, &v)
			switch {
			case o.f == "add":
				sum += v
			case o.f == "write":
				value = v
			case model == "counter":
				o.result = fmt.Sprint(sum)
			default:
				o.result = fmt.Sprint(value)
			}
		case rng.Float64() < crash:
			fmt.Fprintf(&b, "{:process %d, :type :info, :f :%s, :value %s}\n", ids[at], o.f, o.arg)
			ids[at], ops[at] = ids[at]+processes, nil
		case o.done:
			fmt.Fprintf(&b, "{:process %d, :type :ok, :f :%s, :value %s}\n", ids[at], o.f, o.result)
			ops[at] = nil
		}
	}
	return b.String()
}

func BenchmarkSearch(b *testing.B) {
	for _, c := range []struct {
		model     string
		processes int
		crash     float64
	}{{"counter", 10, 0}, {"counter", 10, 0.01}, {"counter", 50, 0}, {"register", 10, 0.01}, {"register", 50, 0}, {"register", 50, 0.01}} {
		b.Run(fmt.Sprintf("%s/10000/processes=%d/crash=%v", c.model, c.processes, c.crash), func(b *testing.B) {
			h, err := parseJepsen(busy(c.model, 10_000, c.processes, c.crash))
			if err != nil {
				b.Fatal(err)
			}
			m, err := FindModel(c.model, h)
			if err == nil {
				m, err = m.From("0")
			}
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if v := Judge(h, m, Limits{Time: 30 * time.Second})[0]; v.Result != checker.Holds {
					b.Fatalf("%+v", v)
				}
			}
		})
	}
}
