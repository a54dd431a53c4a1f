package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"oversell/internal/phrase"
)

const headerLine = `{"schema":"oversell-history/1","scenario":"seckill","stock":5}` + "\n"

func TestJSONLRoundTrip(t *testing.T) {
	trailer := testTrailer()
	ops := randomOps(3000, 9)
	first, err := rawRead(writeHistory(t, testHeader(), &trailer, ops))
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
	second, err := rawRead(path)
	if err != nil {
		t.Fatal(err)
	}
	third, err := rawRead(writeHistory(t, second.Header, second.Trailer, second.Ops))
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
	got, err := rawJSONL(&b)
	if err != nil || got.Cut != h.Cut || got.Trailer != nil {
		t.Errorf("cut %q, trailer %v, error %v", got.Cut, got.Trailer, err)
	}
}

func TestJSONLFormat(t *testing.T) {
	var b bytes.Buffer
	ops := []Op{
		{Client: 3, Kind: Buy, Key: Text("order"), Arg: Int(17), Result: Int(-1), Outcome: Refused, Reason: SoldOut, Due: 1, Call: 2, Return: 5},
		{Client: 4, Kind: Acquire, Key: Text("a\"b"), Arg: Text("s"), Due: 3, Call: 3, Return: 9, Until: 20, Fence: 2, Session: Int(8), Amount: 6},
		{Client: 5, Kind: Buy, Session: Text("a\"b"), Outcome: OK, Due: 3, Call: 3, Return: 10},
	}
	if err := WriteJSONL(&b, &History{Ops: ops, Trailer: &Trailer{Elapsed: 7}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	want := []string{
		`{"client":3,"kind":"buy","key":"order","arg":"17","result":"-1","outcome":"refused","reason":"sold-out","due_ns":1,"call_ns":2,"return_ns":5,"until_ns":0}`,
		`{"client":4,"kind":"acquire","key":"a\"b","arg":"s","result":"0","outcome":"unknown","reason":"","due_ns":3,"call_ns":3,"gave_up_ns":9,"until_ns":20,"amount":6,"fence":2,"session":8}`,
		`{"client":5,"kind":"buy","key":"0","arg":"0","result":"0","outcome":"ok","reason":"","due_ns":3,"call_ns":3,"return_ns":10,"until_ns":0,"session":"a\"b"}`,
		`{"trailer":{"elapsed_ns":7,"operations":3,"sha256":"9577ffb9e895d903d4398b21bb18c2b5174ae2df6f32858a9c24c2557b2b6d35"}}`, ``,
	}
	if !reflect.DeepEqual(lines[1:], want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(lines[1:], "\n"), strings.Join(want, "\n"))
	}
}

func TestJSONLFromOtherTools(t *testing.T) {
	const text = headerLine +
		`{"client":1,"kind":"buy","key":7.0,"arg":"1.5","outcome":"ok","call_ns":10,"return_ns":20,"session":"s-1","colour":"red"}` + "\r\n" +
		"\n" +
		`{"client":2,"kind":"buy","key":"7","arg":0,"session":8,"outcome":"unknown","call_ns":5}` + "\n" +
		`{"client":3, "kind":"buy", "arg":"a b", "result":null, "outcome":"unknown", "call_ns":30, "return_ns":null }` + "\n" +
		`{"client":2,"kind":"refund","arg":-3,"result":0,"outcome":"refused","call_ns":15,"return_ns":40}` + "\n" +
		`{"client":4,"kind":"buy","arg":"\u0041","outcome":"unknown","call_ns":1,"return_ns":3}` // complete, although it has no newline
	h, err := rawFrom(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, h.Ops, []Op{
		{Client: 4, Kind: Buy, Arg: Text("A"), Result: Int(-1), Due: 1, Call: 1, Return: 3},
		{Client: 2, Kind: Buy, Key: Int(7), Session: Int(8), Result: Int(-1), Due: 5, Call: 5, Return: 14}, // given up just before the client's next call
		{Client: 1, Kind: Buy, Key: Int(7), Arg: Text("1.5"), Session: Text("s-1"), Result: Int(-1), Outcome: OK, Due: 10, Call: 10, Return: 20},
		{Client: 2, Kind: Refund, Arg: Int(-3), Outcome: Refused, Due: 15, Call: 15, Return: 40},
		{Client: 3, Kind: Buy, Arg: Text("a b"), Result: Int(-1), Due: 30, Call: 30, Return: 40},
	})
	if h.Cut != "cut off after 5 operations: the file ends at line 7 without a trailer" || h.Trailer != nil || h.Damaged || h.Header.Stock != 5 {
		t.Errorf("cut %q, trailer %v, header %+v", h.Cut, h.Trailer, h.Header)
	}
}

// TestJSONLIsCounted checks that deleted, doubled, swapped or altered lines are noticed. In files from elsewhere only
// a count can show it.
func TestJSONLIsCounted(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJSONL(&b, &History{Header: testHeader(), Ops: loadOps(6, 2, 1), Trailer: &Trailer{Elapsed: 7}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(b.String(), "\n"), "\n")
	end := func(trailer string) []string {
		elsewhere := strings.Replace(lines[0], `,"sealed":true`, "", 1)
		return slices.Concat([]string{elsewhere}, lines[1:7], []string{trailer})
	}
	for name, c := range map[string]struct {
		lines   []string
		cut     string
		damaged bool
	}{
		"as written": {lines: lines},
		"counted":    {lines: end(`{"trailer":{"operations":6}}`)},
		"deleted":    {append(lines[:2:2], lines[3:]...), "damaged: its trailer counts 6 operations, and there are 5: some are missing or doubled", true},
		"doubled":    {append(lines[:2:2], lines[1:]...), "damaged: its trailer counts 6 operations, and there are 7: some are missing or doubled", true},
		"miscounted": {end(`{"trailer":{"operations":7}}`), "damaged: its trailer counts 7 operations, and there are 6: some are missing or doubled", true},
		"swapped":    {slices.Concat(lines[:2], lines[3:4], lines[2:3], lines[4:]), "damaged: its trailer holds another digest than that of the operations before it: something was altered", true},
		"altered":    {slices.Concat([]string{strings.Replace(lines[0], `"stock":100`, `"stock":900`, 1)}, lines[1:]), "damaged: its trailer holds another digest than that of the operations before it: something was altered", true},
		"no count":   {end(`{"trailer":{"elapsed_ns":7}}`), `its trailer does not tell how many operations there are ("operations")`, false},
		"no digest":  {append(lines[:7:7], `{"trailer":{"operations":6}}`), "damaged: its header announces a digest, and its trailer holds none", true},
		"no trailer": {lines[:7], "cut off after 6 operations: the file ends at line 7 without a trailer", false},
	} {
		h, err := ReadJSONL(strings.NewReader(strings.Join(c.lines, "")))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if h.Cut != c.cut || h.Damaged != c.damaged || (h.Trailer == nil) != (c.cut != "") {
			t.Errorf("%s: %q, damaged %t, trailer %v; want %q, %t", name, h.Cut, h.Damaged, h.Trailer, c.cut, c.damaged)
		}
	}
}

func TestJSONLErrors(t *testing.T) {
	const good = `{"client":1,"kind":"buy","arg":1,"outcome":"ok","call_ns":10,"return_ns":20}` + "\n"
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
		{`{"client":1,"kind":"buy","outcome":"ok","call_ns":"10","return_ns":20}`, `"call_ns" is a JSON string, it must be a whole number of nanoseconds`},
		{`{"client":1.5}`, `"client" is a JSON number 1.5, it must be a whole number of 32 bits`},
		{`{"client":1,"key":["a"]}`, `"key", "arg", "result" and "session" must be strings or whole numbers of 64 bits, not ["a"]`},
		{`{"client":1,"key":1.5}`, `must be strings or whole numbers of 64 bits, not 1.5`},
		{`{"client":1,"result":9223372036854775808}`, `must be strings or whole numbers of 64 bits, not 9223372036854775808`},
		{`{"client":1,"Client":2,"client":1}`, `"client" is given twice in one object`},
		{`{"client":1,"more":[{"a":1,"\u0061":2}]}`, `"a" is given twice in one object`},
		{`{"client":1,"kind":"buy","outcome":"ok","outcome":"unknown","call_ns":30}`, `"outcome" is given twice in one object`},
		{`{"client":1,"kind":"buy","Outcome":"ok","arg":1,"call_ns":30,"return_ns":40}`, `there is no field "Outcome": did you mean "outcome"?`},
		{`{"client":1,"kind":"buy","arg":1,"quantity":3,"outcome":"ok","call_ns":30,"return_ns":40}`, `there is no field "quantity": did you mean "amount"?`},
		{`{"client":1,"kind":"buy","arg":1,"ammount":3,"outcome":"ok","call_ns":30,"return_ns":40}`, `there is no field "ammount": did you mean "amount"?`},
		{`{"client":1,"kind":"buy","arg":1,"outcome":"ok","call":30,"return_ns":40}`, `there is no field "call": did you mean "call_ns"?`},
		{`{"client":1,"kind":"buy","arg":1,"outcome":"ok","call_ns":1764000000.25,"return_ns":40}`, `"call_ns" is a JSON number 1764000000.25, it must be a whole number of nanoseconds`},
		{`{"client":1,"kind":"buy","arg":1,"outcome":"sold-out","call_ns":30,"return_ns":40}`, `"outcome" is "sold-out", which is a reason: say "outcome":"refused","reason":"sold-out"`},
		{`{"client":1,"key":"\udcff"}`, `the text "\udcff" is not Unicode`},
		{`{"client":1,"arg":"a\ud800\u0041"}`, `the text "a\ud800\u0041" is not Unicode`},
		{`{"client":1,"result":"\ud83d\ud83d\ude00"}`, `is not Unicode`},
		{`{"client":1,"session":"\ud83d"}`, `is not Unicode`},
		{"{\"client\":1,\"session\":\"\xff\"}", "the text \"\xff\" is not Unicode"},
		{`{"client":1,"key":"` + strings.Repeat("\ufffd", 5000) + `\udcff"}`, `…(15,008 bytes) is not Unicode`},
		{`{"client":1,"kind":"` + strings.Repeat("x", 5000) + `"}`, `…(5,000 bytes)", it must be one of`},
		{`[1]`, `a JSON array instead of an object`},
		{`{"client":1,}`, `not JSON: invalid character '}'`},
		{`{"trailer":{"elapsed_ns":1}}` + "\n" + good, `nothing may follow the trailer`},
		{`{"trailer":{"elapsed_ns":1}}` + "\n" + `{"schema":"oversell-history/1","clients":2}`, `nothing may follow the trailer`},
		{`{"trailer":{"operations":1}}` + "\n" + `{"trailer":{"operations":1}}`, `nothing may follow the trailer`},
		{`{"trailer":null}`, `"trailer" is null, it must be an object such as {"operations":2}`},
		{`{"client":1,"kind":"buy","outcome":"ok","call_ns":30,"return_ns":40}`, `"arg" is missing: a purchase needs the identity of its order`},
		{`{"client":1,"kind":"acquire","arg":null,"outcome":"unknown","call_ns":30}`, `"arg" is missing: an acquisition needs the identity of its session`},
		{`{"client":1,"kind":"pop","key":"q","outcome":"ok","call_ns":30,"return_ns":40}`, `"result" is missing: a delivery needs the task`},
		{`{"client":1,"kind":"buy","arg":7,"amount":0,"outcome":"ok","call_ns":30,"return_ns":40}`, `"amount" is 0: a purchase or refund is of 1 piece or more`},
		{`{"client":1,"kind":"buy","arg":7,"amount":4294967297,"outcome":"ok","call_ns":30,"return_ns":40}`, `"amount" is a JSON number 4294967297, it must be a whole number of 32 bits`},
		{`{"client":1,"key":"` + strings.Repeat("x", 1<<20) + `"}`, `line 3 is longer than 1,048,576 bytes`},
	} {
		_, err := rawJSONL(strings.NewReader(headerLine + good + c.line + "\n"))
		at := "line 3: "
		if strings.Contains(c.line, `"trailer":{`) {
			at = "line 4: "
		}
		if err == nil || !strings.HasPrefix(err.Error(), at[:6]) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 500 {
			t.Errorf("%s\nerror %v\nwant %s… %s", c.line, err, at, c.says)
		}
	}
}

func TestJSONLHeaders(t *testing.T) {
	for text, want := range map[string]error{
		`{"schema":"` + strings.Repeat("x", 1<<20): ErrNoHeader, // a line without an end
		"":                                            ErrNoHeader,
		"\n\n":                                        ErrNoHeader,
		`{"schema":"oversell-his`:                     ErrNoHeader,
		`{"scenario":"seckill"}` + "\n":               ErrNotHistory,
		`[{"schema":"oversell-history/1"}]`:           ErrNotHistory,
		"\x1f\x8b\x08\x00":                            ErrNotHistory,
		"{\n\"schema\":\"oversell-history/1\"":        ErrNotHistory,
		`{"schema":"oversell-history/2"}`:             ErrVersion,
		"{nonsense}\n":                                ErrNotHistory,
		"client,kind\n":                               ErrNotHistory,
		`{"schema":1}` + "\n":                         ErrNotHistory,
		headerLine[:17] + `/1","stock":"x"}`:          ErrVersion,
		`{"schema":"oversell-history/1","stock":"x"}`: ErrNoHeader,
	} {
		if _, err := rawJSONL(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: error %v, want %v", text, err, want)
		}
	}
}

// TestJSONLHeaderErrors checks that an error in a header is explained in the words of the format.
func TestJSONLHeaderErrors(t *testing.T) {
	for more, says := range map[string]string{
		`"clients":1e99`:                        `"clients" is a JSON number 1e99, it must be a whole number of 64 bits`,
		`"clients":1.5`:                         `"clients" is a JSON number 1.5, it must be a whole number of 64 bits`,
		`"seed":-1`:                             `"seed" is a JSON number -1, it must be a whole number of 64 bits without a sign`,
		`"started":"yesterday"`:                 `"started" is "yesterday": it must be a time such as "2026-01-31T12:00:00Z"`,
		`"started":5`:                           `"started" is 5: it must be a time such as`,
		`"lock":{}`:                             `"lock" is a JSON object, it must be a string`,
		`"objects":"lock"`:                      `"objects" is a JSON string, it must be an array`,
		`"overwrite":1`:                         `"overwrite" is a JSON number, it must be true or false`,
		`"promises":[{"of":1}]`:                 `"promises.of" is a JSON number, it must be a string`,
		`"stock":1,"stock":2`:                   `"stock" is given twice in one object`,
		`"promises":[{"of":"lock","of":"ids"}]`: `"of" is given twice in one object`,
		`"lock":"\ud800"`:                       `the text "\ud800" is not Unicode`,
		`"Stock":3`:                             `there is no field "Stock": did you mean "stock"?`,
		`"stok":3`:                              `there is no field "stok": did you mean "stock"?`,
		`"ttl":3`:                               `there is no field "ttl": did you mean "ttl_ns"?`,
		`"promises":["fencing"]`:                `"promises" is a JSON string, it must be an object such as {"of":`,
		`"expected":"banana"`:                   `line 1: invalid history: "expected" is "banana": it must be "pass" or "violated"`,
	} {
		_, err := ReadFrom(strings.NewReader(`{"schema":"oversell-history/1",` + more + "}\n"))
		if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v\nwant %s", more, err, says)
		}
	}
	h, err := ReadFrom(strings.NewReader(`{"schema":"oversell-history/1","Clients":7,"clients":2e1,"seed":18446744073709551615,"resend":0.5}` + "\n"))
	if err != nil || h.Header.Clients != 20 || h.Header.Stock != 0 || h.Header.Seed != math.MaxUint64 || h.Header.Resend != 0.5 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestNumbersAreTheSameInEverySpelling checks that every spelling of a number in JSON gives the same value.
func TestNumbersAreTheSameInEverySpelling(t *testing.T) {
	for text, want := range map[string]Value{
		`7`: Int(7), `7.0`: Int(7), `70e-1`: Int(7), `0.7E+1`: Int(7), `"7"`: Int(7), `"7.0"`: Text("7.0"), `1e1`: Int(10), `-0`: Int(0), `0e999999999999999999`: Int(0), `0.000`: Int(0), `-2.50e1`: Int(-25),
		`9223372036854775807`: Int(math.MaxInt64), `9223372036854775807.0`: Int(math.MaxInt64), `-9223372036854775808`: Int(math.MinInt64), `-922337203685477580.8e1`: Int(math.MinInt64),
		`100000000000000000000e-2`: Int(1e18), `"\ud83d\ude00"`: Text("\U0001f600"), `"\ufffd"`: Text("\ufffd"),
	} {
		line := `{"client":1.0,"kind":"pop","key":` + text + `,"arg":` + text + `,"result":` + text + `,"session":` + text + `,"outcome":"ok","call_ns":1e3,"return_ns":20e2}` + "\n"
		h, err := rawJSONL(strings.NewReader(headerLine + line))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		wantOps(t, h.Ops, []Op{{Client: 1, Kind: Pop, Outcome: OK, Key: want, Arg: want, Result: want, Session: want, Due: 1000, Call: 1000, Return: 2000}})
	}
	for _, text := range []string{`0.5`, `1e-1`, `7.01`, `9223372036854775808`, `-9223372036854775809`, `1e19`, `1e99`, `1e999999999999999999`, `1E-999999999999999999`} {
		if _, err := rawJSONL(strings.NewReader(headerLine + `{"client":1,"arg":` + text + "}\n")); err == nil || !strings.Contains(err.Error(), "line 2: ") || !strings.Contains(err.Error(), "not "+text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestByteOrderMark checks that a byte order mark, which some tools write, is skipped, and that UTF-16 is refused.
func TestByteOrderMark(t *testing.T) {
	for _, read := range []func(io.Reader) (*History, error){ReadFrom, ReadJSONL} {
		if h, err := read(strings.NewReader("\ufeff" + headerLine)); err != nil || h.Header.Stock != 5 {
			t.Errorf("%+v, %v", h, err)
		}
	}
	if _, err := ReadFrom(strings.NewReader("\xff\xfe{\x00")); !errors.Is(err, ErrNotHistory) || !strings.Contains(err.Error(), "UTF-16: save it as UTF-8") {
		t.Error(err)
	}
}

// TestWriteJSONLKeepsTextsApart checks that a text that is not UTF-8 is refused: JSON could not tell two of them
// apart.
func TestWriteJSONLKeepsTextsApart(t *testing.T) {
	err := WriteJSONL(new(discard), &History{Ops: []Op{{Kind: Buy}, {Kind: Buy, Arg: Text("a\xff")}}})
	if err == nil || err.Error() != `operation 2: "a\xff" is not UTF-8: JSON lines cannot hold it` {
		t.Error(err)
	}
}

// TestLeasesMustBeTold checks that, in a history with leases, a grant without "until_ns" is refused, not taken for
// one without an end.
func TestLeasesMustBeTold(t *testing.T) {
	const op = `{"client":1,"kind":%q,"key":"k","arg":"a","session":"a","result":"a","outcome":%q,"call_ns":10,"return_ns":20%s}` + "\n"
	for _, c := range []struct {
		ttl, kind, outcome, until string
		wrong                     bool
	}{
		{`,"ttl_ns":100`, "acquire", "ok", "", true},
		{`,"ttl_ns":100`, "extend", "ok", "", true},
		{`,"ttl_ns":100`, "take", "ok", "", true},
		{`,"ttl_ns":100`, "take", "ok", `,"colour":"red"`, true},
		{`,"ttl_ns":100`, "acquire", "ok", `,"until_ns":0`, false},
		{`,"ttl_ns":100`, "acquire", "ok", `,"until_ns":110`, false},
		{`,"ttl_ns":100`, "acquire", "unknown", "", false},
		{`,"ttl_ns":100`, "release", "ok", "", false},
		{"", "acquire", "ok", "", false},
	} {
		_, err := rawJSONL(strings.NewReader(`{"schema":"oversell-history/1"` + c.ttl + "}\n" + fmt.Sprintf(op, c.kind, c.outcome, c.until)))
		if c.wrong != (err != nil) || c.wrong && !strings.Contains(err.Error(), `line 2: "until_ns" is missing: the header has a "ttl_ns"`) {
			t.Errorf("%+v: %v", c, err)
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
		h, err := rawJSONL(bytes.NewReader(data[:size]))
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
		wantCut := fmt.Sprintf("cut off after %s: line %d is incomplete", phrase.Count(len(h.Ops), "operation"), bytes.Count(data[:size], []byte("\n"))+1)
		if whole {
			n := bytes.Count(data[:size], []byte("\n"))
			if rest != "" {
				n++
			}
			wantCut = fmt.Sprintf("cut off after %s: the file ends at line %d without a trailer", phrase.Count(len(h.Ops), "operation"), n)
		}
		if len(h.Ops) == len(ops) && h.Trailer != nil {
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
		if _, err := rawJSONL(bytes.NewReader(text.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e4, "ns/record")
}

// TestOpAsJSON checks that an operation in any JSON document looks like one in a line of a history.
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
