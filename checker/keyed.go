package checker

import (
	"fmt"

	"oversell/history"
	"oversell/variant"
)

// keyed holds one state per key. Locks of different names and stocks of
// different products are independent of each other, so a property of all of
// them is the property of each. A run has one key as a rule, and that costs a
// comparison only; further keys are found by their hash.
type keyed[S any] struct {
	last  history.Value
	cur   *S
	all   []*S // in order of appearance
	keys  []history.Value
	index table[*S] // used from the second key on
	open  func(history.Value) *S
}

func newKeyed[S any](open func(history.Value) *S) keyed[S] { return keyed[S]{open: open} }

func (k *keyed[S]) at(key history.Value) *S {
	if k.cur != nil && key == k.last {
		return k.cur
	}
	return k.find(key)
}

func (k *keyed[S]) find(key history.Value) *S {
	if len(k.all) == 1 {
		*k.index.at(k.keys[0]) = k.all[0]
	}
	s := k.index.at(key)
	if *s == nil {
		*s = k.open(key)
		k.keys = append(k.keys, key)
		k.all = append(k.all, *s)
	}
	k.last, k.cur = key, *s
	return *s
}

// toldKeys is for how many keys a verdict tells what was seen.
const toldKeys = 3

// verdict merges the verdicts of all keys; nothing says why there is none when
// no operation came by. It tells of the first key that was violated or, if none was, of
// the first that is unknown; of the first few when all hold. A key with nothing to judge
// counts only if there is no other.
func (k *keyed[S]) verdict(of variant.Object, p variant.Property, nothing string, judge func(*S) Verdict) Verdict {
	var out Verdict
	same := 0 // keys with the result of out
	for i, s := range k.all {
		v := judge(s)
		count, opportunities := out.Count+v.Count, out.Opportunities+v.Opportunities
		switch {
		case i > 0 && v.idle: // the other keys decide
		case i == 0 || out.idle || Merge(out.Result, v.Result) != out.Result:
			v = v.told()
			out, same = v, 1
			if len(k.all) > 1 && v.Result == Holds {
				out.Why = title(k.keys[i]) + ": " + v.Why
			}
		case v.Result == out.Result:
			if same++; v.Result == Holds && same <= toldKeys {
				out.Why += "; " + title(k.keys[i]) + ": " + v.told().Why
			}
		}
		out.Count, out.Opportunities = count, opportunities
	}
	out.Of, out.Property = of, p
	switch more := same - toldKeys; {
	case len(k.all) == 0:
		out.Why = nothing
	case out.Result == Holds && more > 0:
		out.Why += fmt.Sprintf("; and so on for %s", many(more, "more key"))
	case out.Result != Holds && same > 1:
		out.Why += fmt.Sprintf("; %s for %s of %s", out.Result, count(same), many(len(k.all), "key"))
	}
	return out
}
