package checker

import (
	"slices"

	"oversell/history"
	"oversell/variant"
)

// keyed holds one state per key. Locks of different names and stocks of
// different products are independent of each other, so a property of all of
// them is the property of each. A run has one key as a rule, and that costs a
// comparison only.
type keyed[S any] struct {
	last history.Value
	cur  *S
	all  []*S // in order of appearance
	keys []history.Value
	open func(history.Value) *S
}

func newKeyed[S any](open func(history.Value) *S) keyed[S] { return keyed[S]{open: open} }

func (k *keyed[S]) at(key history.Value) *S {
	if k.cur != nil && key == k.last {
		return k.cur
	}
	return k.find(key)
}

func (k *keyed[S]) find(key history.Value) *S {
	i := slices.Index(k.keys, key)
	if i < 0 {
		i = len(k.keys)
		k.keys = append(k.keys, key)
		k.all = append(k.all, k.open(key))
	}
	k.last, k.cur = key, k.all[i]
	return k.cur
}

// verdict merges the verdicts of all keys; nothing says why there is none when
// no operation came by.
func (k *keyed[S]) verdict(of variant.Object, p variant.Property, nothing string, judge func(*S) Verdict) Verdict {
	out := Verdict{Of: of, Property: p, Why: nothing}
	for i, s := range k.all {
		v := judge(s)
		v.Of, v.Property = of, p
		if i == 0 {
			out = v
			continue
		}
		broken := out.Count + v.Count
		switch {
		case Merge(out.Result, v.Result) != out.Result:
			out = v
		case v.Result == out.Result && v.Result == Holds:
			out.Why += "; " + title(k.keys[i]) + ": " + v.Why
		}
		out.Count = broken
	}
	return out
}
