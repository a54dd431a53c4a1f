package checker

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"oversell/checker/linear"
	"oversell/checker/monitor"
	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

func TestMonitors(t *testing.T) {
	names := func(h history.Header) (out []string) {
		for _, m := range Monitors(h) {
			v := m.Verdict()
			if v.Result != Unknown || v.Why == "" {
				t.Errorf("%s %s of nothing: %v (%q)", v.Of, v.Property, v.Result, v.Why)
			}
			out = append(out, string(v.Of)+" "+string(v.Property))
		}
		return out
	}
	lock := []string{"lock mutual-exclusion", "lock owner-only-release", "lock progress", "lock linearizable"}
	sale := []string{"sale no-oversell", "sale no-undersell", "sale once-per-order", "sale linearizable"}
	if got := names(history.Header{Objects: []variant.Object{variant.Lock}}); !reflect.DeepEqual(got, lock) {
		t.Errorf("mutex: %q", got)
	}
	if got := names(history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}}); !reflect.DeepEqual(got, append(sale[:4:4], lock...)) {
		t.Errorf("seckill: %q", got)
	}
	all := history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}}
	for _, p := range variant.Properties {
		all.Promises = append(all.Promises, history.Promise{Of: p.Of, Property: p.Name})
	}
	if got := names(all); len(got) != len(variant.Properties) {
		t.Errorf("with everything promised: %q, want all %d", got, len(variant.Properties))
	}
}

// bigHistory returns a sale under a lock with leases, correct or with a few answers changed.
func bigHistory(seed uint64, n, corruptions int) *history.History {
	r := rand.New(rand.NewPCG(seed, 3))
	h := &history.History{Trailer: &history.Trailer{}, Header: history.Header{
		Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: int64(n / 3), TTL: 40, Drift: 3, Grace: 1 << 30, Refund: 0.1}}
	for _, p := range variant.Properties {
		h.Header.Promises = append(h.Header.Promises, history.Promise{Of: p.Of, Property: p.Name})
	}
	ops := lockRun(r, &h.Header, n, false)
	h.Ops = append(ops, saleRun(r, &h.Header, n, saleMix{refunds: true, unknown: true, resend: true}, false)...)
	for range corruptions {
		corruptLock(r, &h.Ops[r.IntN(len(h.Ops))])
	}
	complete(h.Ops)
	return h
}

func TestJudgeIsDeterministicAndAdvancingChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		h := bigHistory(seed, 6000, int(seed%4))
		a, b := Judge(h), Judge(h)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: two judgements differ:\n%+v\n%+v", seed, a, b)
		}
		if a.Ops != len(h.Ops) || len(a.Verdicts) != len(Monitors(h.Header)) {
			t.Fatalf("seed %d: %d operations, %d verdicts", seed, a.Ops, len(a.Verdicts))
		}
		for i, m := range Monitors(h.Header) {
			if v := feed(m, h.Ops); v.Result != a.Verdicts[i].Result {
				t.Errorf("seed %d: %s %s: %v (%s) without Advance, %v (%s) with", seed, v.Of, v.Property, v.Result, v.Why, a.Verdicts[i].Result, a.Verdicts[i].Why)
			}
		}
	}
}

// TestCutNeverViolates cuts correct histories at a random place. The operations in flight are then missing, and no
// monitor may take that for a violation.
func TestCutNeverViolates(t *testing.T) {
	runs := crossRuns() / 10
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 9))
		h := bigHistory(seed, 30, 0)
		for i := range h.Ops { // fencing tokens that rise from grant to grant
			if op := &h.Ops[i]; op.Kind == history.Acquire {
				op.Fence, _ = op.Arg.Num()
			}
		}
		h.Header.Promises = h.Header.Promises[:3]
		h.Header.Stock = int64(5 + r.IntN(10))
		h.Ops = append(lockRun(r, &h.Header, 30, false), saleRun(r, &h.Header, 30, saleMix{refunds: chance(r, 50), unknown: chance(r, 50), resend: chance(r, 50)}, false)...)
		h.Ops = complete(h.Ops)
		whole := Judge(h)
		h.Trailer, h.Cut = nil, "cut"
		h.Ops = h.Ops[:r.IntN(len(h.Ops)+1)]
		for i, v := range Judge(h).Verdicts {
			if v.Property == variant.OncePerOrder {
				continue // the generator refunds some orders more than once
			}
			if v.Result == Violated && whole.Verdicts[i].Result != Violated {
				t.Fatalf("seed %d: %s %s: %s\n%s", seed, v.Of, v.Property, v.Why, show(&h.Header, h.Ops))
			}
			if whole.Verdicts[i].Result == Violated {
				t.Fatalf("seed %d: a correct run: %s %s: %s", seed, v.Of, v.Property, whole.Verdicts[i].Why)
			}
		}
	}
}

func TestJudgeMeasures(t *testing.T) {
	h := &history.History{Header: history.Header{Objects: []variant.Object{variant.Lock, variant.Sale}, Stock: 3}, Trailer: &history.Trailer{}, Ops: []history.Op{
		acquired(1, 1, 1, 2, 5), bought(1, 1, 3, 4), withUntil(released(1, 1, 6, 7), 5),
		acquired(1, 2, 8, 9, 15), withUntil(released(1, 2, 15, 16), 15), held(2, 3, 1, 17),
		lostBuyOp(2, 2, 18, 19), soldOutTo(2, 3, 20, 21), lockOp(history.Acquire, 3, 4, 20, 22, history.Refused, history.Stopped),
	}}
	j := Judge(h)
	if j.Ops != 9 || j.Sold != 1 || j.Unknown != 1 || j.Overruns != 1 || j.Fairness != 0.5 {
		t.Errorf("%+v", j)
	}
	if want := map[history.Reason]int64{history.Held: 1, history.SoldOut: 1, history.Stopped: 1}; !reflect.DeepEqual(j.Refusals, want) {
		t.Errorf("refusals %v, want %v", j.Refusals, want)
	}
}

func TestLowWaters(t *testing.T) {
	for _, n := range []int{0, 1, judgeBlock - 1, judgeBlock, judgeBlock + 1, 3*judgeBlock + 7} {
		ops := make([]history.Op, n)
		r := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range ops {
			ops[i].Call = time.Duration(i) - upTo(r, 100)
		}
		low := lowWaters(ops)
		for block := range low {
			want := history.Forever
			for _, op := range ops[min(n, block*judgeBlock):] {
				want = min(want, op.Call)
			}
			if low[block] != want {
				t.Errorf("%d operations: block %d has %d, want %d", n, block, low[block], want)
			}
		}
	}
}

func TestTwoKeys(t *testing.T) {
	other := func(op history.Op) history.Op { op.Key = history.Text("other"); return op }
	m := newMutualExclusion(&history.Header{})
	v := feedAdvancing(m, complete([]history.Op{acquired(1, 1, 1, 2, 50), other(acquired(2, 2, 1, 3, 50)), other(acquired(3, 3, 4, 5, 50)), released(1, 1, 6, 7)}))
	if v.Result != Violated || v.Count != 1 || !strings.Contains(v.Why, `"other"`) {
		t.Errorf("%+v", v)
	}
	m = newMutualExclusion(&history.Header{})
	v = feed(m, complete([]history.Op{acquired(1, 1, 1, 2, 50), other(acquired(2, 2, 1, 3, 50)), released(1, 1, 6, 7)}))
	if v.Result != Holds || !strings.Contains(v.Why, "; ") {
		t.Errorf("%+v", v)
	}
}

func TestPicture(t *testing.T) {
	h := bigHistory(1, 3000, 0)
	for _, monitor := range []struct {
		m  Monitor
		op func(i int) history.Op
	}{
		{newMutualExclusion(&history.Header{}), func(i int) history.Op {
			return acquired(50, int64(1_000_000+i), h.Ops[i].Call, h.Ops[i].Return, history.Forever)
		}},
		{saleOf(&h.Header, variant.OncePerOrder), func(i int) history.Op { return bought(50, 1_000_000, h.Ops[i].Call, h.Ops[i].Return) }},
	} {
		bad := &history.History{Header: h.Header, Ops: append([]history.Op(nil), h.Ops...)}
		bad.Ops = complete(append(bad.Ops, monitor.op(1000), monitor.op(1010)))
		v := feed(monitor.m, bad.Ops)
		if v.Result != Violated {
			t.Fatalf("%v: %s", v.Result, v.Why)
		}
		var page bytes.Buffer
		if err := linear.Picture(&page, bad, v); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(page.Bytes(), []byte("witness: ")) || page.Len() < 10_000 || page.Len() > 3_000_000 {
			t.Errorf("%s: a page of %d bytes", v.Property, page.Len())
		}
	}
	if err := linear.Picture(new(bytes.Buffer), h, Verdict{}); err == nil {
		t.Error("a verdict without a witness has a picture")
	}
	if err := linear.Picture(new(bytes.Buffer), h, Verdict{Of: variant.Lock, Witness: []history.Op{{Key: history.Text("nothing")}}}); err == nil {
		t.Error("a key without operations has a picture")
	}
}

// TestOracleGivesUp checks that the oracle gives up on a hard history, and answers unknown each time.
func TestOracleGivesUp(t *testing.T) {
	var ops []history.Op
	for i := range int64(40) {
		ops = append(ops, unanswered(history.Acquire, int32(i), i+1, 0, 1))
	}
	ops = append(ops, released(99, 999, 2, 3))
	for range 2 {
		start := time.Now()
		if r := linear.Ask(linear.LockModel(), linear.Operations(ops)); r != Unknown {
			t.Errorf("the oracle says %v", r)
		}
		if d := time.Since(start); d > 2*linear.OracleLimit {
			t.Errorf("it took %v", d)
		}
	}
}

func TestFrontierGivesUp(t *testing.T) {
	h := history.Header{Stock: 1000, Refund: 0.5, Quantity: 50}
	m := saleOf(&h, variant.Linearizable)
	var ops []history.Op
	for i := range int64(48) { // all in flight at once, all of different amounts
		ops = append(ops, pieces(bought(int32(i), i, 0, time.Duration(100+i)), int32(1+i)))
		ops = append(ops, pieces(refunded(int32(100+i), i, 0, time.Duration(200+i)), int32(1+i)))
	}
	ops = append(ops, soldOutTo(99, 1000, 1, 50))
	start := time.Now()
	v := feed(m, complete(ops))
	if v.Result == Holds || v.Result == Unknown && !strings.Contains(v.Why, "with fewer clients") {
		t.Errorf("%v: %s", v.Result, v.Why)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("it took %v", d)
	}
	t.Log(v.Result, v.Why, time.Since(start))
}

func TestSay(t *testing.T) {
	for _, c := range [][2]string{
		{say.Thousands(int64(0)), "0"}, {say.Thousands(int64(999)), "999"}, {say.Thousands(int64(1204)), "1,204"}, {say.Thousands(int64(-1234567)), "-1,234,567"},
		{say.Count(int64(1), "grant"), "1 grant"}, {say.Count(int64(1204), "grant"), "1,204 grants"}, {say.Count(int64(2), "key"), "2 keys"}, {say.Count(int64(2), "entry"), "2 entries"},
		{say.At(3123 * time.Microsecond), "3.123 ms"}, {say.At(9999*time.Millisecond + 999*time.Microsecond), "9,999.999 ms"},
		{say.At(15003 * time.Millisecond), "15.003 s"}, {say.At(10 * time.Second), "10.000 s"}, {say.At(-1500 * time.Microsecond), "-1.500 ms"},
		{say.At(1999500 * time.Microsecond), "1,999.500 ms"}, {say.At(999600 * time.Nanosecond), "1.000 ms"},
		{say.Title(history.Text("Lock:{run-7}order")), `"Lock:order"`}, {say.Title(history.Text("order")), `"order"`}, {say.Title(history.Text("{x}")), `"{x}"`},
		{say.Titled("lock", history.Value{}), "the lock"}, {say.Titled("counter", history.Text("order")), `"order"`},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

// TestSayWithoutKeys checks that a sentence gives the object no name when the history has no keys.
func TestSayWithoutKeys(t *testing.T) {
	const two = time.Millisecond
	lock := &history.History{Header: history.Header{Clients: 2, Lock: "own"}, Trailer: &history.Trailer{}, Ops: []history.Op{
		{Client: 1, Kind: history.Acquire, Outcome: history.OK, Arg: history.Int(1), Call: 0, Return: two},
		{Client: 2, Kind: history.Acquire, Outcome: history.OK, Arg: history.Int(2), Call: two, Return: 2 * two},
	}}
	ids := &history.History{Header: history.Header{Clients: 2, IDs: "own"}, Trailer: &history.Trailer{}, Ops: []history.Op{
		{Client: 1, Kind: history.NextID, Outcome: history.OK, Arg: history.Int(1), Result: history.Int(7), Call: 0, Return: two},
		{Client: 2, Kind: history.NextID, Outcome: history.OK, Arg: history.Int(2), Result: history.Int(7), Call: 0, Return: 2 * two},
	}}
	for want, h := range map[string]*history.History{"was granted the lock at": lock, "7 of the counter was given to": ids} {
		var said []string
		for _, v := range Judge(h).Verdicts {
			said = append(said, v.Told().Why)
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, want) || strings.Contains(all, `"0"`) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}
}

func TestTable(t *testing.T) {
	var tab monitor.Table[int]
	ids := []history.Value{history.Int(0), history.Int(5), history.Int(15), history.Int(16), history.Int(1 << 40), history.Int(-3), history.Text("a"), history.Int(1 << 23),
		history.Int(100_000), history.Int(-1 << 63), history.Int(1<<63 - 1), history.Text("b")}
	for i := range int64(1000) {
		ids = append(ids, history.Int(i*i*i<<20+1), history.Int(2000+i))
	}
	for round := range 2 {
		for i, id := range ids {
			if p := tab.At(id); *p != round*(i+1) {
				t.Fatalf("round %d: %s holds %d", round, id, *p)
			} else {
				*p = i + 1
			}
		}
	}
}

// TestTableOfIDsFarApart checks that a table stays small when no two of its ids share a page. Each once cost a whole
// page of 4,096 entries.
func TestTableOfIDsFarApart(t *testing.T) {
	const ids = 1000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var tab monitor.Table[int64]
	for i := range int64(ids) {
		*tab.At(history.Int(i << 12)) = i
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > ids*512 {
		t.Errorf("%d bytes for an id", bytes/ids)
	}
}

// TestUndecided checks that Unwitnessed tells a promise without an opportunity from one that the history leaves
// undecided.
func TestUndecided(t *testing.T) {
	h := &history.Header{Stock: 2}
	lost := bought(2, 2, 1, 9)
	lost.Outcome = history.Unknown
	for _, c := range []struct {
		what     string
		property variant.Property
		ops      []history.Op
		want     bool
	}{
		{"nothing was ordered", variant.Linearizable, nil, true},
		{"one buyer alone", variant.NoUndersell, []history.Op{bought(1, 1, 1, 2), read("left", 1, 3)}, true},
		{"nobody read what is left", variant.NoUndersell, []history.Op{bought(1, 1, 1, 2)}, false},
		{"one without an answer may have been too many", variant.NoOversell, []history.Op{bought(1, 1, 1, 2), bought(1, 3, 3, 4), lost}, false},
	} {
		v := feed(saleOf(h, c.property), c.ops)
		if v = witnessed(v); v.Result != Unknown || v.Unwitnessed() != c.want {
			t.Errorf("%s: %v, nothing could have broken it: %t; want unknown, %t (%s)", c.what, v.Result, v.Unwitnessed(), c.want, v.Why)
		}
	}
}
