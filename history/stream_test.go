package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"oversell/variant"
)

// saved writes a history with appends of random sizes, and returns its path.
func saved(t testing.TB, h Header, ops []Op, r *rand.Rand) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.bin")
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	for len(ops) > 0 {
		n := min(1+r.IntN(3000), len(ops))
		if err := w.Append(ops[:n]); err != nil {
			t.Fatal(err)
		}
		ops = ops[n:]
	}
	if err := w.Finish(testTrailer()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStreamIsWhatReadReads checks that a stream from the disk has the same operations, batches and low waters as a
// history in memory.
func TestStreamIsWhatReadReads(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		ops := loadOps(30_000+r.IntN(9000), 1+r.IntN(40), seed)
		path := saved(t, testHeader(), ops, r)
		h, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := open(path, 10)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if s.stream == nil {
			t.Fatal("it was read into memory")
		}
		sameUnchecked(t, path, h, 1+r.IntN(6000))
		if s.Len() != len(h.Ops) || s.SHA256 != h.SHA256 || !reflect.DeepEqual(s.Header, h.Header) || !reflect.DeepEqual(s.Trailer, h.Trailer) {
			t.Errorf("%d %s %v %v", s.Len(), s.SHA256, s.Header, s.Trailer)
		}
		i := 0
		for op := range s.Each() {
			if *op != h.Ops[i] {
				t.Fatalf("operation %d is %v; want %v", i, op, h.Ops[i])
			}
			i++
		}
		n := 1 + r.IntN(6000)
		var want []string
		for ops, low := range h.Batches(n) {
			want = append(want, fmt.Sprint(len(ops), ops[0], low))
		}
		for ops, low := range s.Batches(n) {
			if got := fmt.Sprint(len(ops), ops[0], low); len(want) == 0 || got != want[0] {
				t.Fatalf("batch %s; want %s", got, want)
			}
			want = want[1:]
		}
		if i != len(h.Ops) || len(want) > 0 || s.Err() != nil {
			t.Errorf("%d operations, %d batches are missing, %v", len(h.Ops)-i, len(want), s.Err())
		}
		for range s.Each() {
			break // ending early must leave nothing blocked
		}
	}
}

// TestAcceptedIsValid checks with altered histories that Open refuses, with the same error, what Read refuses.
func TestAcceptedIsValid(t *testing.T) {
	accepted, refused := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 2))
		ops := loadOps(60, 1+r.IntN(4), seed)
		if r.IntN(2) == 0 {
			ops = queueOps(r, 60)
		}
		for range r.IntN(3) {
			alter(r, ops)
		}
		h := testHeader()
		h.Objects = []variant.Object{variant.Lock, variant.Sale}
		if r.IntN(2) == 0 {
			h.Promises = append(h.Promises, Promise{variant.Sale, variant.OncePerOrder})
		}
		path := saved(t, h, ops, r)
		_, err := Read(path)
		file, openErr := open(path, 0)
		if fmt.Sprint(openErr) != fmt.Sprint(err) {
			t.Fatalf("seed %d: Open says %v, Read %v", seed, openErr, err)
		}
		first, firstErr := openUnchecked(path, 0)
		if firstErr == nil && first.stream != nil {
			for range first.Each() {
			}
			firstErr = first.Err()
			first.Close()
		}
		if passed := openErr == nil && file.stream != nil; passed != (firstErr == nil) {
			t.Fatalf("seed %d: Open checked it: %t, and OpenUnchecked says %v", seed, passed, firstErr)
		}
		switch {
		case err != nil:
			refused++
		case file.stream != nil:
			accepted++
			file.Close()
		}
	}
	if accepted < 100 || refused < 100 {
		t.Errorf("%d accepted, %d refused: this test shows nothing", accepted, refused)
	}
	t.Log(accepted, refused)
}

// queueOps imitates consumers that take a lock during a pop.
func queueOps(r *rand.Rand, n int) (ops []Op) {
	now, key, lock := time.Duration(1), Text("tasks"), Text("Lock:order")
	tick := func() time.Duration { now += time.Duration(1 + r.IntN(5)); return now }
	for i := int64(1); len(ops) < n; i++ {
		c := int32(r.IntN(3))
		pop := Op{Client: c, Kind: Pop, Key: key, Session: Int(i), Outcome: OK, Amount: 1, Call: tick()}
		got := Op{Client: c, Kind: Acquire, Key: lock, Arg: Int(i), Outcome: OK, Call: tick(), Return: tick(), Until: time.Hour}
		back := Op{Client: c, Kind: Release, Key: lock, Arg: Int(i), Outcome: OK, Call: tick(), Return: tick(), Until: time.Hour}
		pop.Return = tick()
		ops = append(ops, got, back)
		for k := range 1 + r.Int64N(2) {
			pop.Result = Int(2*i + k)
			ops = append(ops, pop)
		}
		ops = append(ops, Op{Client: c, Kind: Ack, Key: key, Arg: pop.Result, Session: Int(i), Outcome: OK, Call: tick(), Return: tick()})
		buy := Op{Client: c, Kind: Buy, Key: Text("phone"), Arg: Int(i), Session: Int(i), Outcome: OK, Amount: int32(1 + i%2), Call: tick(), Return: tick()}
		ops = append(ops, buy, Op{Client: c, Kind: Refund, Key: buy.Key, Arg: Int(i), Outcome: OK, Amount: buy.Amount, Call: tick(), Return: tick()})
	}
	for i := range ops {
		ops[i].Due = ops[i].Call
	}
	return ops
}

// alter makes one change, which often makes no sense.
func alter(r *rand.Rand, ops []Op) {
	op, other := &ops[r.IntN(len(ops))], ops[r.IntN(len(ops))]
	switch r.IntN(14) {
	case 0:
		op.Arg = other.Arg
	case 1:
		op.Session = other.Session
	case 2:
		op.Call, op.Due = op.Call-time.Duration(r.IntN(2_000_000)), op.Call
	case 3:
		op.Return += time.Duration(r.IntN(2_000_000))
	case 4:
		op.Outcome = Outcome(r.IntN(3))
	case 5:
		op.Reason = Reason(r.IntN(9))
	case 6:
		op.Amount = int32(r.IntN(4) - 1)
	case 7:
		op.Key = []Value{other.Key, {}, Text("x")}[r.IntN(3)]
	case 8:
		op.Client = other.Client
	case 9:
		op.Kind = other.Kind
	case 10:
		op.Call, op.Return = other.Call, other.Return
	case 11:
		op.Arg = []Value{{}, Text(""), Text("x"), Int(r.Int64N(70))}[r.IntN(4)]
	case 12:
		*op = other
	case 13:
		i := r.IntN(len(ops))
		*op, ops[i] = ops[i], *op
	}
}

// TestStreamNoticesChanges checks that a change to a file after it was opened is noticed.
func TestStreamNoticesChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	path := saved(t, testHeader(), loadOps(20_000, 5, 1), r)
	h, err := open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	overwrite(t, path, 100_000)
	for range h.Each() {
	}
	if h.Err() == nil {
		t.Error("nothing was noticed")
	}
}

// TestDamageIsNotStreamed checks that Open answers like Read if a file was damaged before it was opened.
func TestDamageIsNotStreamed(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"bytes after the trailer": func(b []byte) []byte { return append(b, 0) },
		"an altered byte":         func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"a missing end":           func(b []byte) []byte { return b[:len(b)-1] },
	} {
		path := saved(t, testHeader(), loadOps(20_000, 5, 1), rand.New(rand.NewPCG(1, 1)))
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, damage(whole), 0o666); err != nil {
			t.Fatal(err)
		}
		want, err := Read(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h, err := open(path, 10)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want.Cut == "" || h.Cut != want.Cut || h.Damaged != want.Damaged {
			t.Errorf("%s: Open finds %t, %q; Read finds %t, %q", name, h.Damaged, h.Cut, want.Damaged, want.Cut)
		}
		h.Close()
	}
}

func BenchmarkOpen(b *testing.B) {
	path := saved(b, testHeader(), loadOps(1_000_000, 64, 1), rand.New(rand.NewPCG(1, 1)))
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			h, _ := open(path, 10)
			h.Close()
		}
	})
	b.Run("each", func(b *testing.B) {
		h, _ := open(path, 10)
		defer h.Close()
		for b.Loop() {
			for range h.Each() {
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			_, _ = Read(path)
		}
	})
}

// overwrite changes a byte of a file.
func overwrite(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
