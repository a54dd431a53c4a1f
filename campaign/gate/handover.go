package gate

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
	"oversell/variant"
)

// contended counts, in a history, the events in which somebody could have come to harm,
// and says what they are.
//
// Of a lock that promises to keep clients apart these are the hand-overs for which the
// next holder had been waiting: its acquisition was called before the release of the
// holder before it had returned (or, if that one never released, before its lease was
// over). Of everything else they are operations on one thing that were called while
// another client's had not been answered.
func contended(h *history.History) (n int64, of string) {
	if h.Header.Lock != "" && h.Header.Promised(variant.Lock, variant.MutualExclusion) {
		return handovers(h.Ops), "contended hand-overs"
	}
	for _, x := range []struct {
		name string
		kind history.Kind
		of   string
	}{
		{h.Header.Dispatch, history.Take, "contended takings"},
		{h.Header.IDs, history.NextID, "contended numbers"},
		{h.Header.Sale, history.Buy, "contended purchases"},
		{h.Header.Queue, history.Pop, "contended deliveries"},
	} {
		if x.name != "" {
			return overlapping(h.Ops, x.kind), x.of
		}
	}
	return handovers(h.Ops), "contended hand-overs"
}

// session is one client's tenure of one lock.
type session struct {
	key    history.Value
	number int64
}

// handovers counts the grants to a client that had been waiting while another held the
// lock.
func handovers(ops []history.Op) (n int64) {
	ended := map[session]time.Duration{} // when releases returned
	var grants []history.Op
	for _, op := range ops {
		number, _ := op.Arg.Num()
		switch {
		case op.Kind == history.Release && op.Outcome != history.Refused:
			ended[session{op.Key, number}] = op.Return
		case op.Kind == history.Acquire && op.Outcome == history.OK:
			grants = append(grants, op)
		}
	}
	slices.SortStableFunc(grants, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
	before := map[history.Value]history.Op{}
	for _, next := range grants {
		last, seen := before[next.Key]
		before[next.Key] = next
		if !seen || last.Client == next.Client {
			continue
		}
		number, _ := last.Arg.Num()
		end, released := ended[session{last.Key, number}]
		if !released {
			end = last.Until
		}
		if next.Call < end {
			n++
		}
	}
	return n
}

// overlapping counts the operations of a kind that were called while another client's,
// on the same thing, had not been answered. Of two that overlap one counts.
func overlapping(ops []history.Op, kind history.Kind) (n int64) {
	var of []history.Op
	for _, op := range ops {
		if op.Kind == kind && op.Outcome != history.Refused {
			of = append(of, op)
		}
	}
	slices.SortStableFunc(of, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	// For each thing the two latest returns of different clients, of which one is another's.
	type latest struct {
		client int32
		until  time.Duration
	}
	open := map[history.Value][2]latest{}
	for _, op := range of {
		l, seen := open[op.Key]
		other := l[0]
		if other.client == op.Client {
			other = l[1]
		}
		if seen && op.Call < other.until {
			n++
		}
		mine := latest{op.Client, op.Return}
		switch {
		case l[0].client == op.Client && seen:
			l[0].until = max(l[0].until, op.Return)
		case mine.until > l[0].until:
			l[0], l[1] = mine, l[0]
		case mine.until > l[1].until:
			l[1] = mine
		}
		open[op.Key] = l
	}
	return n
}
