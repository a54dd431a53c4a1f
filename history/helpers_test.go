package history

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/variant"
)

func testHeader() Header {
	return Header{
		Schema: Schema, Scenario: "seckill", Lock: "simple", Sale: "plain", Clients: 7, Stock: 100, Seed: 42,
		Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), TTL: 15 * time.Second, Resend: 0.25,
		Promises: []Promise{{variant.Sale, variant.NoOversell}}, Expected: "pass",
	}
}

func testTrailer() Trailer {
	return Trailer{Elapsed: time.Second, Notes: []string{"a note"}, Faults: []FaultCount{{Name: "crash after SETNX 1%", Level: "client", Fired: 3, Holders: new(int64(1)), Waiters: new(int64(2))}, {Name: "failover at 5s", Level: "server", Failed: "no replica"}}}
}

// loadOps imitates a load of n operations: clients acquire, buy and release, in the order in which sweeps every 100
// ms find the operations.
func loadOps(n, clients int, seed uint64) []Op {
	rnd := rand.New(rand.NewPCG(seed, 1))
	key, granted := Text("Lock:order"), Text("polled")
	us := func(n int) time.Duration { return time.Duration(1+rnd.IntN(n*1000)) * time.Nanosecond }
	now := make([]time.Duration, clients)
	seq := make([]int64, clients)
	var ops []Op
	for sweep := 100 * time.Millisecond; len(ops) < n; sweep += 100 * time.Millisecond {
		for c := range clients {
			for now[c] < sweep {
				seq[c]++
				session := int64(c)<<32 | seq[c]
				call := now[c] + us(300)
				op := Op{Client: int32(c), Kind: Acquire, Key: key, Arg: Int(session), Result: granted, Outcome: OK,
					Due: call, Call: call, Return: call + us(5000), Until: call + 15*time.Second}
				buy := Op{Client: int32(c), Kind: Buy, Key: Text("order"), Arg: Int(session), Result: Int(-1), Outcome: OK, Session: Int(session), Amount: 1}
				buy.Call = op.Return + us(50)
				buy.Due, buy.Return = buy.Call, buy.Call+us(500)
				release := op
				release.Kind, release.Result = Release, Value{}
				release.Call = buy.Return + us(50)
				release.Due, release.Return = release.Call, release.Call+us(500)
				now[c] = release.Return
				ops = append(ops, op, buy, release)
			}
		}
	}
	return ops[:n]
}

// randomOps returns operations that make no sense, to exercise every field. Only the times of each client rise.
func randomOps(n int, seed uint64) []Op {
	rnd := rand.New(rand.NewPCG(seed, 2))
	numbers := []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, 1 << 40}
	number := func() int64 {
		if rnd.IntN(2) == 0 {
			return numbers[rnd.IntN(len(numbers))]
		}
		return int64(rnd.Uint64()) >> rnd.IntN(64)
	}
	texts := []string{"", "order", "sold out", "a\"b\\c\n", "größe", "007", "1.5", strings.Repeat("x", 300)}
	value := func() Value {
		if rnd.IntN(2) == 0 {
			return Text(texts[rnd.IntN(len(texts))])
		}
		return Int(number())
	}
	last := map[int32]time.Duration{}
	ops := make([]Op, n)
	for i := range ops {
		c := int32(rnd.IntN(5)) - 1
		call := last[c] + 1 + time.Duration(rnd.Int64N(1e6))
		ret := call + 1 + time.Duration(rnd.Int64N(1e6))
		last[c] = ret
		ops[i] = Op{Client: c, Kind: Acquire + Kind(rnd.IntN(len(kindNames)-1)), Outcome: Outcome(rnd.IntN(len(outcomeNames))),
			Reason: Reason(rnd.IntN(len(reasonNames))), Key: value(), Arg: value(), Result: value(), Due: call - time.Duration(rnd.Int64N(1000)),
			Call: call, Return: ret}
		if rnd.IntN(2) == 0 {
			ops[i].Amount, ops[i].Fence, ops[i].Session, ops[i].Until = int32(number()), number(), value(), time.Duration(number())
		}
	}
	return ops
}

// writeHistory writes a file and returns its path.
func writeHistory(t testing.TB, h Header, trailer *Trailer, frames ...[]Op) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history.bin")
	w, err := Create(path, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, ops := range frames {
		if err := w.Append(ops); err != nil {
			t.Fatal(err)
		}
	}
	if trailer == nil {
		return path
	}
	if err := w.Finish(*trailer); err != nil {
		t.Fatal(err)
	}
	return path
}

// memoryFile is a file for a Writer that keeps each write as a slice. It fails from the write numbered failAt on,
// unless failAt is 0.
type memoryFile struct {
	writes         [][]byte
	failAt         int
	failure        error
	synced, closed bool
}

func (m *memoryFile) Write(b []byte) (int, error) {
	if m.failAt > 0 && len(m.writes)+1 >= m.failAt {
		return 0, m.failure
	}
	m.writes = append(m.writes, bytes.Clone(b))
	return len(b), nil
}
func (m *memoryFile) Sync() error   { m.synced = true; return nil }
func (m *memoryFile) Close() error  { m.closed = true; return nil }
func (m *memoryFile) bytes() []byte { return bytes.Join(m.writes, nil) }

// encoded writes a whole history file in memory.
func encoded(t testing.TB, h Header, trailer *Trailer, frames ...[]Op) *memoryFile {
	t.Helper()
	m := new(memoryFile)
	w := newWriter(m)
	w.begin(h)
	for _, ops := range frames {
		w.keep(w.Append(ops))
	}
	if trailer != nil {
		w.end(*trailer)
	}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return m
}

// completed returns the operations in the order in which they are read back.
func completed(ops []Op) []Op {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, byCompletion)
	return ops
}

func wantOps(t testing.TB, got, want []Op) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d operations, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("operation %d is\n%+v\nwant\n%+v", i, got[i], want[i])
		}
	}
}

// The functions below read without checking that the operations make sense: most tests of the formats write
// operations that do not.

func rawFrom(r io.Reader) (*History, error) { return unchecked(decode(r)) }

func rawJSONL(r io.Reader) (*History, error) { return unchecked(decodeJSONL(r)) }

func rawRead(path string) (*History, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rawFrom(f)
}

func unchecked(h *History, _ *places, err error) (*History, error) {
	if err == nil {
		SortByCompletion(h.Ops)
	}
	return h, err
}
