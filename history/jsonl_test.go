package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const headerLine = `{"schema":"oversell-history/1","scenario":"seckill","stock":5}` + "\n"

func TestJSONLRoundTrip(t *testing.T) {
	trailer := testTrailer()
	ops := randomOps(3000, 9)
	first, err := Read(writeHistory(t, testHeader(), &trailer, ops))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "history.jsonl")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteJSONL(out, first), out.Close()); err != nil {
		t.Fatal(err)
	}
	second, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	third, err := Read(writeHistory(t, second.Header, second.Trailer, second.Ops))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, third.Ops, completed(ops))
	if !reflect.DeepEqual(first.Header, third.Header) || !reflect.DeepEqual(first.Trailer, third.Trailer) || third.Cut != "" {
		t.Errorf("header %+v\ntrailer %+v\ncut %q", third.Header, third.Trailer, third.Cut)
	}
}

func TestJSONLKeepsTheCut(t *testing.T) {
	var b bytes.Buffer
	h := &History{Header: testHeader(), Ops: randomOps(3, 1), Cut: "cut off here"}
	if err := WriteJSONL(&b, h); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSONL(&b)
	if err != nil || got.Cut != h.Cut || got.Trailer != nil {
		t.Errorf("cut %q, trailer %v, error %v", got.Cut, got.Trailer, err)
	}
}

func TestJSONLFormat(t *testing.T) {
	var b bytes.Buffer
	ops := []Op{
		{Client: 3, Kind: Buy, Key: Text("order"), Arg: Int(17), Result: Int(-1), Outcome: Refused, Reason: SoldOut, Due: 1, Call: 2, Return: 5},
		{Client: 4, Kind: Acquire, Key: Text("a\"b"), Arg: Text("s"), Due: 3, Call: 3, Return: 9, Until: 20, Fence: 2, Session: 8, Amount: 6},
	}
	if err := WriteJSONL(&b, &History{Ops: ops, Trailer: &Trailer{Elapsed: 7}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	want := []string{
		`{"client":3,"kind":"buy","key":"order","arg":"17","result":"-1","outcome":"refused","reason":"sold-out","due_ns":1,"call_ns":2,"return_ns":5,"until_ns":0}`,
		`{"client":4,"kind":"acquire","key":"a\"b","arg":"s","result":"0","outcome":"unknown","reason":"","due_ns":3,"call_ns":3,"gave_up_ns":9,"until_ns":20,"amount":6,"fence":2,"session":8}`,
		`{"trailer":{"elapsed_ns":7}}`, ``,
	}
	if !reflect.DeepEqual(lines[1:], want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(lines[1:], "\n"), strings.Join(want, "\n"))
	}
}

func TestJSONLFromOtherTools(t *testing.T) {
	const text = headerLine +
		`{"client":1,"kind":"buy","key":7,"arg":1.5,"outcome":"ok","call_ns":10,"return_ns":20,"colour":"red"}` + "\r\n" +
		"\n" +
		`{"client":2,"kind":"buy","key":"7","arg":null,"outcome":"unknown","call_ns":5}` + "\n" +
		`{"client":3,"kind":"buy","outcome":"unknown","call_ns":30,"return_ns":null}` + "\n" +
		`{"client":4,"kind":"buy","outcome":"unknown","call_ns":1,"return_ns":3}` // whole, though without a newline
	h, err := ReadFrom(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, h.Ops, []Op{
		{Client: 4, Kind: Buy, Due: 1, Call: 1, Return: 3},
		{Client: 2, Kind: Buy, Key: Int(7), Due: 5, Call: 5, Return: 20},
		{Client: 1, Kind: Buy, Key: Int(7), Arg: Text("1.5"), Outcome: OK, Due: 10, Call: 10, Return: 20},
		{Client: 3, Kind: Buy, Due: 30, Call: 30, Return: 30},
	})
	if h.Cut != "" || h.Trailer != nil || h.Header.Stock != 5 {
		t.Errorf("cut %q, trailer %v, header %+v", h.Cut, h.Trailer, h.Header)
	}
}

func TestJSONLErrors(t *testing.T) {
	const good = `{"client":1,"kind":"buy","outcome":"ok","call_ns":10,"return_ns":20}` + "\n"
	const kinds = `must be one of acquire, extend, release, join, buy, refund, read-state, fault`
	for _, c := range []struct {
		line, says string
	}{
		{`{"kind":"buy","outcome":"ok","call_ns":10,"return_ns":20}`, `"client" is missing`},
		{`{"client":1,"kind":"sell","outcome":"ok","call_ns":10,"return_ns":20}`, `"kind" is "sell", it ` + kinds},
		{`{"client":1,"outcome":"ok","call_ns":10,"return_ns":20}`, `"kind" is "", it ` + kinds},
		{`{"client":1,"kind":"buy","outcome":"fine","call_ns":10,"return_ns":20}`, `"outcome" is "fine", it must be one of unknown, ok, refused`},
		{`{"client":1,"kind":"buy","outcome":"refused","reason":"why","call_ns":10,"return_ns":20}`, `"reason" is "why", it must be one of held, lost`},
		{`{"client":1,"kind":"buy","outcome":"ok","return_ns":20}`, `"call_ns" is missing: when`},
		{`{"client":1,"kind":"buy","outcome":"ok","call_ns":10}`, `"return_ns" is missing: only operations whose outcome is "unknown" go without, and this one is "ok"`},
		{`{"client":1,"kind":"buy","outcome":"ok","call_ns":10,"return_ns":9}`, `"return_ns" is 9, before the call at 10`},
		{`{"client":1,"kind":"buy","outcome":"unknown","call_ns":10,"gave_up_ns":9}`, `"gave_up_ns" is 9, before the call at 10`},
		{`{"client":1,"kind":"buy","outcome":"ok","call_ns":"10","return_ns":20}`, `"call_ns" is a JSON string, it must be a whole number of 64 bits`},
		{`{"client":1.5}`, `"client" is a JSON number 1.5, it must be a whole number of 32 bits`},
		{`{"client":1,"key":["a"]}`, `"key", "arg" and "result" must be strings or numbers, not ["a"]`},
		{`[1]`, `a JSON array instead of an object`},
		{`{"client":1,}`, `not JSON: invalid character '}'`},
		{`{"trailer":{"elapsed_ns":1}}` + "\n" + good, `nothing may follow the trailer`},
	} {
		_, err := ReadJSONL(strings.NewReader(headerLine + good + c.line + "\n"))
		at := "line 3: "
		if strings.Contains(c.line, "trailer") {
			at = "line 4: "
		}
		if err == nil || !strings.HasPrefix(err.Error(), at) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\nerror %v\nwant %s… %s", c.line, err, at, c.says)
		}
	}
}

func TestJSONLHeaders(t *testing.T) {
	for text, want := range map[string]error{
		"":                                   ErrNoHeader,
		"\n\n":                               ErrNoHeader,
		`{"schema":"oversell-his`:            ErrNoHeader,
		`{"scenario":"seckill"}` + "\n":      ErrVersion,
		`{"schema":"oversell-history/2"}`:    ErrVersion,
		"{nonsense}\n":                       ErrNotHistory,
		"client,kind\n":                      ErrNotHistory,
		`{"schema":1}` + "\n":                ErrNotHistory,
		headerLine[:17] + `/1","stock":"x"}`: ErrVersion,
		`{"schema":"oversell-history/1","stock":"x"}`: ErrNoHeader,
	} {
		if _, err := ReadJSONL(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", text, err, want)
		}
	}
}

func TestJSONLCutAnywhere(t *testing.T) {
	var b bytes.Buffer
	ops := completed(randomOps(5, 4))
	trailer := testTrailer()
	if err := WriteJSONL(&b, &History{Header: testHeader(), Ops: ops, Trailer: &trailer}); err != nil {
		t.Fatal(err)
	}
	data := b.Bytes()
	header := bytes.IndexByte(data, '\n')
	for size := range data {
		h, err := ReadJSONL(bytes.NewReader(data[:size]))
		if size < header {
			if !errors.Is(err, ErrNoHeader) {
				t.Fatalf("cut at %d, inside the header: %v", size, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		last := bytes.LastIndexByte(data[:size], '\n')
		rest := strings.TrimSpace(string(data[last+1 : size]))
		whole := rest == "" || data[size] == '\n'
		wantCut := fmt.Sprintf("cut off after %s: line %d is incomplete", plural(len(h.Ops), "operation"), bytes.Count(data[:size], []byte("\n"))+1)
		if whole {
			wantCut = ""
		}
		if last >= 0 && h.Cut != wantCut {
			t.Fatalf("cut at %d: %q, want %q", size, h.Cut, wantCut)
		}
		wantOps(t, h.Ops, ops[:len(h.Ops)])
	}
}

func BenchmarkWriteJSONL(b *testing.B) {
	h := &History{Ops: loadOps(10_000, 50, 1)}
	for b.Loop() {
		if err := WriteJSONL(new(discard), h); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e4, "ns/record")
}

func BenchmarkReadJSONL(b *testing.B) {
	var text bytes.Buffer
	if err := WriteJSONL(&text, &History{Ops: loadOps(10_000, 50, 1)}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := ReadJSONL(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e4, "ns/record")
}

// TestOpAsJSON: an operation anywhere in a JSON document is as in a line of a history.
func TestOpAsJSON(t *testing.T) {
	for i, op := range randomOps(2_000, 5) {
		b, err := json.Marshal([]Op{op})
		if err != nil {
			t.Fatal(err)
		}
		if line := string(appendOpLine(nil, &op)); string(b) != "["+strings.TrimSuffix(line, "\n")+"]" {
			t.Fatalf("operation %d is\n%s\nin a document, and in a history\n%s", i, b, line)
		}
		var back []Op
		if err := json.Unmarshal(b, &back); err != nil || len(back) != 1 || back[0] != op {
			t.Fatalf("%s was read as %+v, %v; want %+v", b, back, err, op)
		}
	}
	if err := json.Unmarshal([]byte(`{"client":1,"kind":"buys"}`), new(Op)); err == nil || !strings.Contains(err.Error(), "must be one of") {
		t.Errorf("a wrong kind is answered with %v", err)
	}
}
