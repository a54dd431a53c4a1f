package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"oversell/internal/phrase"
)

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(20) {
		ops := randomOps(int(seed)*500, seed)
		h, trailer := testHeader(), testTrailer()
		half := len(ops) / 2
		got, err := rawRead(writeHistory(t, h, &trailer, ops[:half], nil, ops[half:]))
		if err != nil {
			t.Fatal(err)
		}
		if got.Cut != "" {
			t.Fatal(got.Cut)
		}
		if !reflect.DeepEqual(got.Header, h) || !reflect.DeepEqual(*got.Trailer, trailer) {
			t.Fatalf("header %+v\ntrailer %+v", got.Header, got.Trailer)
		}
		wantOps(t, got.Ops, completed(ops))
	}
}

func TestCompletionOrderOfALoad(t *testing.T) {
	ops := loadOps(30_000, 300, 1)
	trailer := testTrailer()
	got, err := rawRead(writeHistory(t, testHeader(), &trailer, ops))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, got.Ops, completed(ops))
}

func TestTiesAreBrokenByCallThenClient(t *testing.T) {
	var ops []Op
	for i := range 5000 {
		ops = append(ops, Op{Client: int32(i % 3), Return: time.Duration(100 + i%7), Call: time.Duration(50 - i%2), Arg: Int(int64(i))})
	}
	want := completed(ops)
	SortByCompletion(ops)
	wantOps(t, ops, want)
	ops[0].Return, ops[1].Return = -Forever, Forever // the sort must look at all 64 bits
	want = completed(ops)
	SortByCompletion(ops)
	wantOps(t, ops, want)
}

func TestEveryFrameIsOneWrite(t *testing.T) {
	trailer := testTrailer()
	m := encoded(t, testHeader(), &trailer, loadOps(10_000, 3, 1))
	at := len(magic)
	for i, b := range m.writes {
		if i == 0 {
			b = b[len(magic):]
		}
		f, problem := nextFrame(m.bytes(), at)
		if problem != "" || f.end()-at != len(b) {
			t.Fatalf("write %d is no frame: problem %q, length %d", i, problem, len(b))
		}
		at = f.end()
	}
	if len(m.writes) != 6 { // header, symbols, three frames of operations, trailer
		t.Errorf("%d writes, want 6", len(m.writes))
	}
}

func TestHeaderIsReadableAtOnce(t *testing.T) {
	path := writeHistory(t, testHeader(), nil)
	h, err := rawRead(path)
	if err != nil {
		t.Fatal(err)
	}
	if h.Header.Lock != "simple" || !strings.HasPrefix(h.Cut, "cut off after 0 operations: the file ends at byte ") {
		t.Errorf("header %+v, cut %q", h.Header, h.Cut)
	}
	if _, err := Create(path, testHeader()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create over a history = %v, want fs.ErrExist", err)
	}
}

// TestCutAnywhere cuts a file at every byte: the whole frames before the cut must be read.
func TestCutAnywhere(t *testing.T) {
	trailer := testTrailer()
	var frames [][]Op
	for i := range 4 {
		frames = append(frames, randomOps(3+i, uint64(i)))
	}
	m := encoded(t, testHeader(), &trailer, frames...)
	checkCuts(t, m, frames, 1)
}

func TestCutALargeFile(t *testing.T) {
	trailer := testTrailer()
	var frames [][]Op
	for i := range 5 {
		frames = append(frames, loadOps(1500, 40, uint64(i)))
	}
	checkCuts(t, encoded(t, testHeader(), &trailer, frames...), frames, 997)
}

func checkCuts(t *testing.T, m *memoryFile, frames [][]Op, step int) {
	t.Helper()
	data := m.bytes()
	headerEnd := len(m.writes[0])
	for size := 0; size < len(data); size += step {
		h, err := rawFrom(bytes.NewReader(data[:size]))
		if size < headerEnd {
			if !errors.Is(err, ErrNoHeader) {
				t.Fatalf("cut at %d, inside the header: %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		var want []Op
		end, next := headerEnd, 0
		for _, w := range m.writes[1:] {
			if end += len(w); end > size {
				break
			}
			switch start := end - len(w); data[start] {
			case byte(opsFrame):
				want = append(want, frames[next]...)
				next++
			case byte(trailerFrame):
				t.Fatal("a cut file cannot have a trailer")
			}
		}
		if h.Trailer != nil || !strings.HasPrefix(h.Cut, fmt.Sprintf("cut off after %s: the ", phrase.Count(len(want), "operation"))) {
			t.Fatalf("cut at %d: trailer %v, %q", size, h.Trailer, h.Cut)
		}
		wantOps(t, h.Ops, completed(want))
	}
}

func TestCutSentence(t *testing.T) {
	trailer := testTrailer()
	ops := loadOps(12_345, 10, 1)
	m := encoded(t, testHeader(), &trailer, ops, ops[:1])
	data := m.bytes()
	n := len(m.writes)
	lastOps := len(data) - len(m.writes[n-1]) - len(m.writes[n-2])
	for name, c := range map[string]struct {
		damage func([]byte) []byte
		want   string
	}{
		"cut": {func(b []byte) []byte { return b[:lastOps+20] },
			fmt.Sprintf("cut off after 12,345 operations: the frame at byte %s is incomplete", group(lastOps))},
		"no trailer": {func(b []byte) []byte { return b[:len(b)-len(m.writes[n-1])] },
			fmt.Sprintf("cut off after 12,346 operations: the file ends at byte %s without a trailer", group(len(data)-len(m.writes[n-1])))},
		"flipped bit": {func(b []byte) []byte { b[lastOps+20] ^= 4; return b },
			fmt.Sprintf("damaged after 12,345 operations: the frame at byte %s fails its checksum; %s bytes from there on are not read", group(lastOps), group(len(data)-lastOps))},
		"flipped length": {func(b []byte) []byte { b[lastOps+5] ^= 4; return b },
			fmt.Sprintf("damaged after 12,345 operations: the frame at byte %s fails its checksum; %s bytes from there on are not read", group(lastOps), group(len(data)-lastOps))},
		"hostile length": {func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[lastOps+5:], 1<<31)
			return resealHead(b, lastOps)
		},
			fmt.Sprintf("damaged after 12,345 operations: the frame at byte %s is 2,147,483,648 bytes long, and at most 16,777,216 are allowed; %s bytes from there on are not read", group(lastOps), group(len(data)-lastOps))},
		"more behind the trailer": {func(b []byte) []byte { return append(b, "abc"...) },
			fmt.Sprintf("damaged: 3 bytes follow the trailer at byte %s", group(len(data)))},
	} {
		h, err := rawFrom(bytes.NewReader(c.damage(bytes.Clone(data))))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if h.Cut != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, h.Cut, c.want)
		}
	}
}

// TestSenselessFrames appends frames with correct checksums and wrong contents to one good operation.
func TestSenselessFrames(t *testing.T) {
	op := []byte{byte(Buy), byte(OK), 0, 0, 0, 2}
	altered := func(at int, b byte, more ...byte) []byte {
		p := append([]byte{1}, op...)
		p[1+at] = b
		return append(p, more...)
	}
	for name, c := range map[string]struct {
		kind    frameKind
		payload []byte
		want    string
	}{
		"kind":          {opsFrame, altered(0, 77), "operation 1: this build does not know kind 77"},
		"outcome":       {opsFrame, altered(1, 3), "operation 1: this build does not know outcome 3"},
		"reason":        {opsFrame, altered(1, 63<<2), "operation 1: this build does not know reason 63"},
		"client":        {opsFrame, append([]byte{1, byte(Buy), 1, hasClient}, binary.AppendUvarint(nil, 1<<33)...), "operation 1: 4294967296 does not fit in 32 bits"},
		"text":          {opsFrame, []byte{1, byte(Buy), 1, hasKey, 5<<1 | 1, 0, 0, 2}, "operation 1: text 4 is not defined"},
		"amount":        {opsFrame, append([]byte{1, byte(Buy), 1, hasAmount}, binary.AppendUvarint(nil, 1<<40)...), "operation 1: 549755813888 does not fit in 32 bits"},
		"count":         {opsFrame, append(binary.AppendUvarint(nil, 1<<62), op...), "it ends too early"},
		"rest":          {opsFrame, append(append([]byte{1}, op...), 0), "its operations end 1 byte early"},
		"empty":         {opsFrame, nil, "it ends too early"},
		"symbol length": {symbolsFrame, binary.AppendUvarint(nil, 1<<63), "it ends too early"},
		"long number":   {opsFrame, append([]byte{1, byte(Buy), 1, hasClient}, bytes.Repeat([]byte{0xff}, 12)...), "operation 1: a number has more than 64 bits"},
		"trailer":       {trailerFrame, []byte("{"), "unexpected end of JSON input"},
		"second header": {headerFrame, []byte("{}"), "this build does not know its kind, 'H'"},
	} {
		m := encoded(t, testHeader(), nil, []Op{{Kind: Buy, Return: 1}})
		bad := append(make([]byte, frameHead), c.payload...)
		seal(c.kind, 2, bad)
		h, err := rawFrom(bytes.NewReader(append(m.bytes(), bad...)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := fmt.Sprintf("damaged after 1 operation: the frame at byte %s makes no sense: %s; %s bytes from there on are not read", group(len(m.bytes())), c.want, group(len(bad)))
		if h.Cut != want || !h.Damaged || len(h.Ops) != 1 || h.Trailer != nil {
			t.Errorf("%s: %d operations\n%s\nwant\n%s", name, len(h.Ops), h.Cut, want)
		}
	}
}

func TestReadErrors(t *testing.T) {
	good := encoded(t, testHeader(), nil).bytes()
	changed := func(at int, b byte) []byte { d := bytes.Clone(good); d[at] = b; return d }
	schema2 := testHeader()
	schema2.Schema = "oversell-history/2"
	for name, c := range map[string]struct {
		data []byte
		is   error
		says string
	}{
		"nothing":      {nil, ErrNoHeader, "the file is empty"},
		"a picture":    {[]byte("\x89PNG\r\n\x1a\n"), ErrNotHistory, `it begins with "\x89PNG\r\n\x1a", neither`},
		"file version": {changed(7, 9), ErrVersion, "file version 9, this build reads 2"},
		"schema":       {encoded(t, schema2, nil).bytes(), ErrVersion, `its schema is "oversell-history/2", this build reads "oversell-history/1"`},
		"cut":          {good[:40], ErrNoHeader, "nothing can be judged: the file ends inside it"},
		"damaged":      {changed(30, '#'), ErrNoHeader, "nothing can be judged: damaged: it fails its checksum"},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line with %q", name, err, c.says)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestWriterStaysFailed(t *testing.T) {
	full := errors.New("disk full")
	m := &memoryFile{failAt: 4, failure: full}
	w := newWriter(m)
	w.begin(testHeader())
	ops := loadOps(3*maxFrameOps, 5, 1)
	for _, err := range []error{w.Append(ops), w.Append(ops[:1]), w.Finish(Trailer{})} {
		if !errors.Is(err, full) {
			t.Errorf("error %v, want disk full", err)
		}
	}
	if !m.closed {
		t.Error("Finish did not close the file")
	}
	h, err := rawFrom(bytes.NewReader(m.bytes()))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, h.Ops, completed(ops[:maxFrameOps]))
}

func TestFinishSyncsAndCloses(t *testing.T) {
	m := new(memoryFile)
	w := newWriter(m)
	w.begin(testHeader())
	if err := w.Finish(testTrailer()); err != nil || !m.synced || !m.closed {
		t.Errorf("Finish = %v, synced %v, closed %v", err, m.synced, m.closed)
	}
	if err := w.Append([]Op{{}}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after Finish = %v, want os.ErrClosed", err)
	}
}

func FuzzRead(f *testing.F) {
	trailer := testTrailer()
	f.Add(encoded(f, testHeader(), &trailer, randomOps(3, 1)).bytes())
	f.Add(encoded(f, testHeader(), nil, loadOps(4, 2, 1), randomOps(2, 2)).bytes())
	f.Add([]byte(magic))
	var lines bytes.Buffer
	if err := WriteJSONL(&lines, &History{Header: testHeader(), Ops: randomOps(3, 3), Trailer: &trailer}); err != nil {
		f.Fatal(err)
	}
	f.Add(lines.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		checkReading(t, data)
		checkReading(t, reseal(data))
	})
}

// checkReading reads any bytes: a history that can be read can also be written, and then reads back the same.
func checkReading(t *testing.T, data []byte) {
	h, err := rawFrom(bytes.NewReader(data))
	if err != nil {
		return
	}
	again, err := rawFrom(bytes.NewReader(encoded(t, h.Header, &Trailer{}, h.Ops).bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if again.Cut != "" {
		t.Fatal(again.Cut)
	}
	wantOps(t, again.Ops, h.Ops)
}

// resealHead corrects the checksum in the head of the frame at byte at.
func resealHead(data []byte, at int) []byte {
	binary.LittleEndian.PutUint32(data[at+9:], headSum(data[at:]))
	return data
}

// reseal corrects the numbers and checksums of all frames, so that fuzzing gets past them.
func reseal(data []byte) []byte {
	data = bytes.Clone(data)
	number := uint32(0)
	for at := len(magic); at+frameHead <= len(data); {
		end := uint64(at) + frameHead + uint64(binary.LittleEndian.Uint32(data[at+5:]))
		if end > uint64(len(data)) {
			break
		}
		seal(frameKind(data[at]), number, data[at:end])
		number++
		at = int(end)
	}
	return data
}

func BenchmarkAppend(b *testing.B) {
	ops := loadOps(maxFrameOps, 50, 1)
	m := new(discard)
	w := newWriter(m)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if err := w.Append(ops); err != nil {
			b.Fatal(err)
		}
		n += len(ops)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
	b.ReportMetric(float64(m.n)/float64(n), "B/record")
}

// discard is a file that only counts the bytes.
type discard struct{ n int }

func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }
func (*discard) Sync() error                   { return nil }
func (*discard) Close() error                  { return nil }

func BenchmarkRead(b *testing.B) {
	for _, clients := range []int{50, 5000} {
		b.Run(fmt.Sprintf("1M/clients=%d", clients), func(b *testing.B) {
			trailer := testTrailer()
			path := writeHistory(b, testHeader(), &trailer, loadOps(1_000_000, clients, 1))
			info, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if h, err := Read(path); err != nil || len(h.Ops) != 1_000_000 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(info.Size())/1e6, "B/record")
		})
	}
}

func BenchmarkSort(b *testing.B) {
	for _, clients := range []int{1, 50, 5000} {
		b.Run(fmt.Sprintf("1M/clients=%d", clients), func(b *testing.B) {
			ops := loadOps(1_000_000, clients, 1)
			work := make([]Op, len(ops))
			for b.Loop() {
				b.StopTimer()
				copy(work, ops)
				b.StartTimer()
				SortByCompletion(work)
			}
		})
	}
}
