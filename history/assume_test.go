package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oversell/variant"
)

// foreignText returns a history as another tool writes it.
func foreignText(header string, ops ...string) string {
	return fmt.Sprintf(`{"schema":"oversell-history/1"%s}`+"\n%s\n"+`{"trailer":{"operations":%d}}`+"\n", header, strings.Join(ops, "\n"), len(ops))
}

const (
	aBuy   = `{"client":1,"kind":"buy","key":"s","arg":"a","outcome":"ok","call_ns":10,"return_ns":20}`
	aGrant = `{"client":2,"kind":"acquire","key":"l","arg":"t","outcome":"ok","call_ns":10,"return_ns":20}`
)

// TestAssumedPromises checks that a header without promises gets those that its operations suggest, with a remark,
// and that a header with promises keeps them.
func TestAssumedPromises(t *testing.T) {
	for _, c := range []struct {
		what, text string
		promises   []Promise
		objects    []variant.Object
		remark     string
	}{
		{"purchases and a stock", foreignText(`,"stock":5`, aBuy), []Promise{{variant.Sale, variant.NoOversell}}, []variant.Object{variant.Sale},
			`the header has no "promises": no-oversell of the sale is assumed to be promised`},
		{"a stock of nothing", foreignText(`,"stock":0`, aBuy), []Promise{{variant.Sale, variant.NoOversell}}, []variant.Object{variant.Sale}, "is assumed"},
		{"purchases and a lock", foreignText(`,"stock":5`, aGrant, aBuy), []Promise{{variant.Lock, variant.MutualExclusion}, {variant.Sale, variant.NoOversell}},
			[]variant.Object{variant.Lock, variant.Sale}, "mutual-exclusion of the lock and no-oversell of the sale is assumed to be promised"},
		{"a lock", foreignText(``, aGrant), []Promise{{variant.Lock, variant.MutualExclusion}}, []variant.Object{variant.Lock}, "mutual-exclusion of the lock is assumed"},
		{"a variant's name", foreignText(`,"stock":5,"sale":"ours"`, aBuy), []Promise{{variant.Sale, variant.NoOversell}}, nil, "no-oversell of the sale is assumed"},
		{"no promises at all", foreignText(`,"stock":5,"promises":[]`, aBuy), []Promise{}, []variant.Object{variant.Sale}, ""},
		{"other promises", foreignText(`,"stock":5,"promises":[{"of":"sale","property":"once-per-order"}]`, aBuy), []Promise{{variant.Sale, variant.OncePerOrder}}, nil, ""},
		{"promises of another object", foreignText(`,"stock":5,"promises":[{"of":"lock","property":"mutual-exclusion"}]`, aGrant, aBuy),
			[]Promise{{variant.Lock, variant.MutualExclusion}}, []variant.Object{variant.Sale}, ""},
		{"promises of another object, and no stock", foreignText(`,"promises":[{"of":"lock","property":"mutual-exclusion"}]`, aGrant, aBuy),
			[]Promise{{variant.Lock, variant.MutualExclusion}}, nil, ""},
		{"nothing", foreignText(``, `{"client":1,"kind":"fault","key":"f","outcome":"ok","call_ns":1,"return_ns":2}`), nil, nil, ""},
	} {
		h, err := ReadFrom(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		remarks := strings.Join(h.Remarks, "; ")
		if !slices.Equal(h.Header.Promises, c.promises) || !slices.Equal(h.Header.Objects, c.objects) || !strings.Contains(remarks, c.remark) || c.remark == "" && remarks != "" {
			t.Errorf("%s: promises %v, objects %v, remarks %q; want %v, %v, %q", c.what, h.Header.Promises, h.Header.Objects, remarks, c.promises, c.objects, c.remark)
		}
	}
	_, err := ReadFrom(strings.NewReader(foreignText(``, aGrant, aBuy)))
	if want := `line 1: invalid history: the header has no "stock", and line 3 is a buy`; !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("purchases without a stock: %v, want %s", err, want)
	}
	for _, p := range Assumed {
		if !slices.ContainsFunc(variant.Properties, func(i variant.PropertyInfo) bool { return i.Of == p.Of && i.Name == p.Property }) {
			t.Errorf("%v is assumed, and is no property", p)
		}
	}
}

// TestWrittenHistoriesAssumeNothing checks that a history of this program without promises stays without, and keeps
// its times.
func TestWrittenHistoriesAssumeNothing(t *testing.T) {
	late := Op{Client: 1, Kind: Buy, Key: Text("s"), Arg: Text("a"), Outcome: OK, Due: time.Hour, Call: time.Hour, Return: time.Hour + 1}
	var b strings.Builder
	if err := WriteJSONL(&b, &History{Header: Header{Stock: 5}, Ops: []Op{late}, Trailer: &Trailer{}}); err != nil {
		t.Fatal(err)
	}
	h, err := ReadFrom(strings.NewReader(b.String()))
	if err != nil || len(h.Header.Promises)+len(h.Remarks) > 0 || h.Ops[0].Call != time.Hour {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestForeignClocks checks that times may count from any moment.
func TestForeignClocks(t *testing.T) {
	at := func(client int, call int64, more string) string {
		return fmt.Sprintf(`{"client":%d,"kind":"acquire","key":"l","arg":"t%[1]d","outcome":"ok","call_ns":%d,"return_ns":%d%s}`, client, call, call+10, more)
	}
	const epoch = 1764000000000000000
	h, err := ReadFrom(strings.NewReader(foreignText(``, at(1, epoch+500, fmt.Sprintf(`,"until_ns":%d`, int64(epoch+900))), at(2, epoch, `,"until_ns":0`), at(3, epoch+1, fmt.Sprintf(`,"due_ns":%d`, int64(epoch-50))))))
	if err != nil {
		t.Fatal(err)
	}
	wantOps(t, h.Ops, []Op{
		{Client: 2, Kind: Acquire, Key: Text("l"), Arg: Text("t2"), Outcome: OK, Due: 50, Call: 50, Return: 60},
		{Client: 3, Kind: Acquire, Key: Text("l"), Arg: Text("t3"), Outcome: OK, Due: 0, Call: 51, Return: 61},
		{Client: 1, Kind: Acquire, Key: Text("l"), Arg: Text("t1"), Outcome: OK, Due: 550, Call: 550, Return: 560, Until: 950},
	})
	if said := strings.Join(h.Remarks, "; "); !strings.Contains(said, "the first operation is at 1763999999999999950 ns: all times here count from it") {
		t.Error(said)
	}
	if h, err = ReadFrom(strings.NewReader(foreignText(``, at(1, int64(lateStart), "")))); err != nil || h.Ops[0].Call != lateStart {
		t.Errorf("a late start: %+v, %v", h, err)
	}
}

// TestForeignFields checks that unknown fields are reported once each.
func TestForeignFields(t *testing.T) {
	more := strings.Replace(aBuy, "{", `{"price":9.99,"user":{"id":1},`, 1)
	text := foreignText(`,"stock":5,"shop":"x"`, more, strings.NewReplacer(`"client":1`, `"client":2,"seq":1`, `"a"`, `"b"`).Replace(more))
	h, err := ReadFrom(strings.NewReader(text))
	const want = `ignored what histories have no fields for: "shop" (line 1), "price" (line 2), "user" (line 2) and "seq" (line 3)`
	if err != nil || !slices.Contains(h.Remarks, want) || len(h.Ops) != 2 {
		t.Errorf("%+v, %v, want %s", h, err, want)
	}
	many := strings.Replace(aBuy, "{", `{"x1":1,"x2":1,"x3":1,"x4":1,"x5":1,"x6":1,"x7":1,`, 1)
	if h, err = ReadFrom(strings.NewReader(foreignText(`,"stock":5`, many))); err != nil || !strings.HasSuffix(h.Remarks[1], `"x5" (line 2) and others`) {
		t.Errorf("%+v, %v", h, err)
	}
}
