package checker

import (
	"strings"
	"testing"

	"oversell/checker/monitor"
	"oversell/history"
	"oversell/variant"
)

// keyedVerdict gives each of these verdicts a key of its own and returns the merged verdict.
func keyedVerdict(vs ...Verdict) Verdict {
	next := 0
	k := monitor.NewKeyed(func(history.Value) *Verdict { next++; return &vs[next-1] })
	for i := range vs {
		k.At(history.Text(string(rune('a' + i))))
	}
	return k.Verdict(variant.Sale, variant.NoOversell, "nothing was sold", func(v *Verdict) Verdict { return *v })
}

func TestKeyedVerdict(t *testing.T) {
	good := Verdict{Result: Holds, Why: "good", Opportunities: 2}
	bad := Verdict{Result: Violated, Why: "bad", Count: 3, Opportunities: 1}
	open := Verdict{Result: Unknown, Why: "open"}
	for _, c := range []struct {
		name string
		of   []Verdict
		want Verdict
	}{
		{"none", nil, Verdict{Why: "nothing was sold"}},
		{"one", []Verdict{good}, good},
		{"two", []Verdict{good, good}, Verdict{Result: Holds, Why: `"a": good; "b": good`, Opportunities: 4}},
		{"five", []Verdict{good, good, good, good, good}, Verdict{Result: Holds, Why: `each of 5 keys by itself, such as "a": good`, Opportunities: 10}},
		{"the busiest of five", []Verdict{good, good, good, {Result: Holds, Why: "very good", Opportunities: 5}, good}, Verdict{Result: Holds, Why: `each of 5 keys by itself, such as "d": very good`, Opportunities: 13}},
		{"one unknown", []Verdict{good, open, good}, Verdict{Result: Unknown, Why: "open", Opportunities: 4}},
		{"two unknown", []Verdict{open, good, open}, Verdict{Result: Unknown, Why: "open; unknown for 2 of 3 keys", Opportunities: 2}},
		{"two violated", []Verdict{open, bad, good, bad}, Verdict{Result: Violated, Why: "bad; violated for 2 of 4 keys", Count: 6, Opportunities: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := keyedVerdict(c.of...)
			if v.Of != variant.Sale || v.Property != variant.NoOversell || v.Result != c.want.Result || v.Why != c.want.Why || v.Count != c.want.Count || v.Opportunities != c.want.Opportunities {
				t.Errorf("%+v, want %+v", v, c.want)
			}
		})
	}
}

// TestVerdictOfManyKeys checks that the verdict about a thousand products stays short enough to read.
func TestVerdictOfManyKeys(t *testing.T) {
	h := history.Header{Stock: 1}
	for _, m := range monitorsOf(variant.Sale, &h) {
		for i := range int64(1000) {
			op := bought(1, i, 1, 2)
			op.Key = history.Int(i)
			m.Observe(&op)
		}
		if v := m.Verdict(); strings.Count(v.Why, ";") > 10 || len(v.Why) > 1000 {
			t.Errorf("%s: a sentence of %d bytes: %.200s", v.Property, len(v.Why), v.Why)
		}
	}
}
