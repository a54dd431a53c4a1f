package checker

import (
	"fmt"
	"strings"

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

// toldKeys is for how many keys a verdict tells what was seen with each.
const toldKeys = 3

// verdict merges the verdicts of all keys; nothing says why there is none when
// no operation came by. It tells of the first key that was violated or, if none was, of
// the first that is unknown; when all hold, of each of a few, and of many only of the one
// that had most opportunities to break. A key with nothing to judge counts only if there
// is no other.
func (k *keyed[S]) verdict(of variant.Object, p variant.Property, nothing string, judge func(*S) Verdict) Verdict {
	var out, busiest Verdict
	var why []string // of the first few that hold
	same, at := 0, 0 // keys with the result of out; which of them is the busiest
	for i, s := range k.all {
		v := judge(s)
		count, opportunities := out.Count+v.Count, out.Opportunities+v.Opportunities
		switch {
		case i > 0 && v.idle: // the other keys decide
		case i == 0 || out.idle || Merge(out.Result, v.Result) != out.Result:
			out, same, busiest, at = v.told(), 1, v, i
			why = append(why[:0], title(k.keys[i])+": "+out.Why)
		case v.Result == out.Result:
			if same++; v.Result == Holds && same <= toldKeys {
				why = append(why, title(k.keys[i])+": "+v.told().Why)
			}
			if v.Opportunities > busiest.Opportunities {
				busiest, at = v, i
			}
		}
		out.Count, out.Opportunities = count, opportunities
	}
	out.Of, out.Property = of, p
	switch {
	case len(k.all) == 0:
		out.Why = nothing
	case out.Result == Holds && same > toldKeys:
		out.Why = fmt.Sprintf("each of %s by itself, such as %s: %s", many(same, "key"), title(k.keys[at]), busiest.told().Why)
	case out.Result == Holds && len(k.all) > 1:
		out.Why = strings.Join(why, "; ")
	case out.Result != Holds && same > 1:
		out.Why += fmt.Sprintf("; %s for %s of %s", out.Result, count(same), many(len(k.all), "key"))
	}
	return out
}
