package monitor

import (
	"fmt"
	"strings"

	"oversell/checker/say"
	"oversell/history"
	"oversell/variant"
)

// Keyed holds one state per key. Locks of different names and stocks of
// different products are independent of each other, so a property of all of them is the property of each. A run usually
// has one key, which costs only a comparison; further keys are found by their hash.
type Keyed[S any] struct {
	last  history.Value
	cur   *S
	All   []*S // in order of appearance
	keys  []history.Value
	index Table[*S] // read from the second key on
	open  func(history.Value) *S
}

// NewKeyed returns an empty Keyed; open makes the state of a key at its first use.
func NewKeyed[S any](open func(history.Value) *S) Keyed[S] { return Keyed[S]{open: open} }

// At returns the state of a key. It calls open if the key has none.
func (k *Keyed[S]) At(key history.Value) *S {
	if k.cur != nil && key == k.last {
		return k.cur
	}
	return k.find(key)
}

func (k *Keyed[S]) find(key history.Value) *S {
	if len(k.All) == 1 {
		*k.index.At(k.keys[0]) = k.All[0]
	}
	s := k.index.At(key)
	if *s == nil {
		*s = k.open(key)
		k.keys = append(k.keys, key)
		k.All = append(k.All, *s)
	}
	k.last, k.cur = key, *s
	return *s
}

// describedKeys is the largest number of keys of which a verdict describes each.
const describedKeys = 3

// Verdict merges the verdicts of all keys; nothing is the reason to give when there was
// no operation to judge. It describes the first key that was violated or, if none was, the first that is unknown; when
// all hold, each of a few, and of many only the one with most opportunities. A key with nothing to judge counts only if
// there is no other.
func (k *Keyed[S]) Verdict(of variant.Object, p variant.Property, nothing string, judge func(*S) Verdict) Verdict {
	var out, busiest Verdict
	var why []string // of the first few that hold
	same, at := 0, 0 // keys with the result of out; which of them is the busiest
	for i, s := range k.All {
		v := judge(s)
		count, opportunities, unit := out.Count+v.Count, out.Opportunities+v.Opportunities, OneUnit(out.Count, out.Unit, v.Count, v.Unit)
		switch {
		case i > 0 && v.Idle: // the other keys decide
		case i == 0 || out.Idle || Merge(out.Result, v.Result) != out.Result:
			out, same, busiest, at = v.Told(), 1, v, i
			why = append(why[:0], say.Title(k.keys[i])+": "+out.Why)
		case v.Result == out.Result:
			if same++; v.Result == Holds && same <= describedKeys {
				why = append(why, say.Title(k.keys[i])+": "+v.Told().Why)
			}
			if v.Opportunities > busiest.Opportunities {
				busiest, at = v, i
			}
		}
		out.Count, out.Opportunities, out.Unit = count, opportunities, unit
	}
	out.Of, out.Property = of, p
	switch {
	case len(k.All) == 0:
		out.Why = nothing
	case out.Result == Holds && same > describedKeys:
		out.Why = fmt.Sprintf("each of %s by itself, such as %s: %s", say.Count(same, "key"), say.Title(k.keys[at]), busiest.Told().Why)
	case out.Result == Holds && len(k.All) > 1:
		out.Why = strings.Join(why, "; ")
	case out.Result != Holds && same > 1:
		out.Why += fmt.Sprintf("; %s for %s of %s", out.Result, say.Thousands(same), say.Count(len(k.All), "key"))
	}
	return out
}
