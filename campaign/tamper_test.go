package campaign

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/campaign/judging"
	"oversell/history"
	"oversell/reports"
)

// original is the history of a real run that broke no promise, in both forms.
type original struct {
	name   string
	h      *history.History
	binary []byte
	lines  []byte
}

// originals returns short runs of several scenarios.
func originals(t testing.TB) (all []original) {
	t.Helper()
	for _, args := range [][]string{
		{"--lock", "lua-release", "--stock", "12", "--quantity", "2", "--clients", "4", "--resend", "0.3", "--refund", "0.3", "--sale", "lua"},
		{"--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--ops", "12", "--hold", "1ms"},
		{"--scenario", "queue", "--queue", "zset-atomic", "--clients", "6", "--ops", "30"},
		{"--scenario", "floors", "--ids", "incr", "--lock", "none", "--clients", "4", "--ops", "20"},
		{"--scenario", "dispatch", "--dispatch", "dispatch-locked", "--lock", "lua-release", "--clients", "6", "--ops", "25"},
	} {
		o, err := Parse(append(args, "--target", "embedded", "--seed", "5"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), *o)
		if err != nil {
			t.Fatal(err)
		}
		p.Dir = t.TempDir()
		if _, err := Run(t.Context(), p, silent{}); err != nil {
			t.Fatal(err)
		}
		x := original{name: fmt.Sprint(args)}
		if x.binary, err = os.ReadFile(filepath.Join(p.Dir, runName(0, p.Runs[0]), HistoryFile)); err != nil {
			t.Fatal(err)
		}
		if x.h, err = history.ReadFrom(bytes.NewReader(x.binary)); err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		if r := judging.Judge(x.h).Run; r.Verdict == reports.Violated {
			t.Fatalf("%s: %s %s", x.name, r.Verdict, r.Why)
		} else if r.Verdict != reports.Pass {
			t.Logf("%s: %s, %s", x.name, r.Verdict, r.Why) // an altered history of it must not pass either
		}
		var lines bytes.Buffer
		if err := history.WriteJSONL(&lines, x.h); err != nil {
			t.Fatal(err)
		}
		x.lines = lines.Bytes()
		all = append(all, x)
	}
	return all
}

// pieces cuts a history file into its frames, or its lines.
func (x *original) pieces(lines bool) (all [][]byte) {
	if lines {
		return bytes.SplitAfter(bytes.TrimSuffix(x.lines, []byte("\n")), []byte("\n"))
	}
	const magic, head, length = 8, 17, 5
	all = append(all, x.binary[:magic])
	for rest := x.binary[magic:]; len(rest) > 0; {
		n := head + int(binary.LittleEndian.Uint32(rest[length:]))
		all, rest = append(all, rest[:n]), rest[n:]
	}
	return all
}

// tampered returns the history with something deleted, doubled, moved or altered.
func (x *original) tampered(r *rand.Rand, lines bool) (data []byte, how string) {
	pieces := slices.Clone(x.pieces(lines))
	i, j := r.IntN(len(pieces)), r.IntN(len(pieces))
	whole := x.binary
	if lines {
		whole = x.lines
	}
	switch r.IntN(6) {
	case 0:
		return bytes.Join(slices.Delete(pieces, i, i+1), nil), fmt.Sprintf("piece %d deleted", i)
	case 1:
		return bytes.Join(slices.Insert(pieces, j, pieces[i]), nil), fmt.Sprintf("piece %d doubled at %d", i, j)
	case 2:
		pieces[i], pieces[j] = pieces[j], pieces[i]
		return bytes.Join(pieces, nil), fmt.Sprintf("pieces %d and %d swapped", i, j)
	case 3:
		at := r.IntN(len(whole))
		data = bytes.Clone(whole)
		data[at] ^= 1 << r.IntN(8)
		return data, fmt.Sprintf("a bit at byte %d flipped", at)
	case 4:
		at := r.IntN(len(whole))
		return bytes.Clone(whole[:at]), fmt.Sprintf("cut at byte %d", at)
	}
	at, n := r.IntN(len(whole)), 1+r.IntN(40)
	data = bytes.Clone(whole)
	for k := at; k < min(at+n, len(data)); k++ {
		data[k] = byte(r.Uint32())
	}
	return data, fmt.Sprintf("%d bytes at %d overwritten", n, at)
}

// TestTampered alters the files of real runs, and their contents. No altered history passes or counts as a
// violation; nothing crashes or hangs.
func TestTampered(t *testing.T) {
	all := originals(t)
	runs := 1_200 // a few seconds even under the race detector
	if os.Getenv("OVERSELL_LONG") == "1" {
		runs = 1_000_000
	}
	var mu sync.Mutex
	counts := map[string]int{}
	slowest := time.Duration(0)
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			mine := map[string]int{}
			longest := time.Duration(0)
			for n := w; n < runs; n += workers {
				r := rand.New(rand.NewPCG(uint64(n), 12))
				x := &all[r.IntN(len(all))]
				began := time.Now()
				what, problem := tamper(x, r)
				longest = max(longest, time.Since(began))
				if problem != "" {
					t.Errorf("run %d, %s: %s", n, x.name, problem)
				}
				mine[what]++
			}
			mu.Lock()
			defer mu.Unlock()
			for what, n := range mine {
				counts[what] += n
			}
			slowest = max(slowest, longest)
		})
	}
	wg.Wait()
	t.Log(counts, "slowest:", slowest)
	for _, want := range []string{"file: refused", "file: inconclusive", "told: refused", "told: inconclusive", "told: violated"} {
		if counts[want] == 0 {
			t.Errorf("%q never came up: %v", want, counts)
		}
	}
}

// tamper reads and judges one altered history, and returns the result and, if it is wrong, the problem.
func tamper(x *original, r *rand.Rand) (what, problem string) {
	if r.IntN(2) == 0 {
		return retold(x, r)
	}
	lines := r.IntN(2) == 0
	data, how := x.tampered(r, lines)
	same := bytes.Equal(data, x.binary)
	if lines {
		same = bytes.Equal(bytes.TrimSuffix(data, []byte("\n")), bytes.TrimSuffix(x.lines, []byte("\n")))
	}
	if same {
		return "file: the same", ""
	}
	h, err := history.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return "file: refused", ""
	}
	run := judging.Judge(h).Run
	if run.Verdict != reports.Inconclusive {
		return "file: " + run.Verdict, fmt.Sprintf("%s (lines: %t): %s %s", how, lines, run.Verdict, run.Why)
	}
	return "file: inconclusive", ""
}

// retold alters operations or the header of a history and writes it anew as JSON lines. The trailer fits the altered
// history or has the count of the original; only that count can show that an operation is missing.
func retold(x *original, r *rand.Rand) (what, problem string) {
	h := *x.h
	h.Ops = slices.Clone(h.Ops)
	lost := false
	for range 1 + r.IntN(3) {
		i, j := r.IntN(len(h.Ops)), r.IntN(len(h.Ops))
		op := &h.Ops[i]
		switch r.IntN(10) {
		case 0:
			h.Ops, lost = slices.Delete(h.Ops, i, i+1), true
		case 1:
			op.Call, op.Return = h.Ops[j].Call, h.Ops[j].Return
		case 2:
			op.Session, op.Arg = h.Ops[j].Session, h.Ops[j].Arg
		case 3:
			op.Outcome, op.Reason = history.Outcome(r.IntN(3)), history.Reason(r.IntN(9))
		case 4:
			op.Amount = []int32{0, 1, 2, -1, 1 << 30}[r.IntN(5)]
		case 5:
			op.Kind = history.Kind(r.IntN(17))
		case 6:
			op.Key, op.Client = h.Ops[j].Key, h.Ops[j].Client
		case 7:
			op.Until, op.Fence = time.Duration(r.Int64())>>r.IntN(60), r.Int64()>>r.IntN(63)
		case 8:
			op.Result = []history.Value{h.Ops[j].Result, history.Int(r.Int64()), history.Text("x"), history.Text("")}[r.IntN(4)]
		case 9:
			h.Header.Stock, h.Header.TTL, h.Header.Drift = r.Int64()>>r.IntN(64), time.Duration(r.Int64()>>r.IntN(64)), time.Duration(r.Int64()>>r.IntN(64))
			h.Header.Faults = append(slices.Clone(h.Header.Faults), "crash")
		}
	}
	var text bytes.Buffer
	if err := history.WriteJSONL(&text, &h); err != nil {
		return "told: unwritten", err.Error()
	}
	data := text.Bytes()
	counted := r.IntN(2) == 0 && x.h.Trailer != nil
	if counted { // like a file from elsewhere of which lines were deleted
		data = data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
		data = bytes.Replace(data, []byte(`,"sealed":true`), nil, 1)
		data = fmt.Appendf(data, `{"trailer":{"operations":%d,"elapsed_ns":%d}}`+"\n", len(x.h.Ops), x.h.Trailer.Elapsed)
	}
	read, err := history.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return "told: refused", ""
	}
	run := judging.Judge(read).Run
	if counted && lost && run.Verdict != reports.Inconclusive {
		problem = fmt.Sprintf("operations are lost, and the verdict is %s", run.Verdict)
	}
	return "told: " + run.Verdict, problem
}

// fuzzed reads and judges any bytes: a history that passes must be whole.
func fuzzed(t *testing.T, data []byte) {
	h, err := history.ReadFrom(bytes.NewReader(data))
	if err != nil {
		return
	}
	if r := judging.Judge(h).Run; r.Verdict == reports.Pass && (h.Trailer == nil || h.Damaged || h.Cut != "") {
		t.Fatalf("passed, and is not whole: %q, damaged %t", h.Cut, h.Damaged)
	}
}

func FuzzReadBinary(f *testing.F) {
	for _, x := range originals(f) {
		f.Add(x.binary)
	}
	f.Fuzz(fuzzed)
}

func FuzzReadJSONL(f *testing.F) {
	for _, x := range originals(f) {
		f.Add(x.lines)
	}
	f.Fuzz(fuzzed)
}
