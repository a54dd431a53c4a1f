package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/variant"
)

// noGaps judges that every number from 1 to the largest is given out: to the
// largest that somebody got and, when the final state is known, to the last that
// the server knows.
//
// A request without an answer may have used up one missing number, so that many
// may be missing without a gap being certain; which ones, the verdict says. The
// smallest bad history:
//
//	client 1  next-id  [1, 2]  2
type noGaps struct {
	counters keyed[numbered]
	ended    bool
}

type numbered struct {
	key     history.Value
	seen    runs
	largest history.Op
	n, odd  int64 // numbers, and answers that are none
	max     int64
	last    int64 // as the server knows; 0: not known
	lost    []history.Op
	unknown int64
}

func newNoGaps() *noGaps {
	return &noGaps{counters: newKeyed(func(key history.Value) *numbered { return &numbered{key: key} })}
}

// Observe implements [Monitor].
func (m *noGaps) Observe(op *history.Op) {
	switch {
	case answered(op):
		m.counters.at(op.Key).give(op)
	case op.Kind == history.NextID && op.Outcome == history.Unknown:
		s := m.counters.at(op.Key)
		s.unknown++
		if s.last = 0; len(s.lost) < 4 {
			s.lost = append(s.lost, *op)
		}
	case readsLast(op):
		m.counters.at(op.Key).last, _ = op.Result.Num()
	}
}

// readsLast tells whether op tells the highest number that the server knows.
func readsLast(op *history.Op) bool {
	return op.Kind == history.ReadState && op.Outcome == history.OK && op.Arg == theLast
}

func (s *numbered) give(op *history.Op) {
	v, ok := op.Result.Num()
	if !ok || v < 1 {
		s.odd++
		return
	}
	s.n++
	s.last = 0 // what was read before is not final
	if v > s.max {
		s.max, s.largest = v, *op
	}
	s.seen.add(v)
}

// Advance implements [Monitor].
func (m *noGaps) Advance(time.Duration) {}

func (m *noGaps) cut() { m.ended = true }

// Verdict implements [Monitor].
func (m *noGaps) Verdict() Verdict {
	return m.counters.verdict(variant.IDs, variant.NoGaps, nothingNumbered, func(s *numbered) Verdict {
		return s.verdict(m.ended)
	})
}

func (s *numbered) verdict(cut bool) Verdict {
	end := s.max
	if !cut {
		end = max(end, s.last)
	}
	missing := end - s.seen.distinct()
	gaps := s.seen.gaps(end)
	witness := s.lost
	if s.largest.Kind != history.NoKind {
		witness = append(slices.Clone(witness), s.largest)
	}
	switch {
	case s.n == 0 && end == 0:
		return Verdict{Why: nothingNumbered}
	case missing > 0 && cut:
		return Verdict{Why: fmt.Sprintf("missing from 1 to %s: %s; but %s", count(end), gaps, cutOff)}
	case missing > s.unknown:
		why := fmt.Sprintf("nobody was given %s of the numbers from 1 to %s: %s", count(missing), count(end), gaps)
		if s.unknown > 0 {
			why += fmt.Sprintf("; %s without an answer may have used up as many, no more", many(s.unknown, "request"))
		}
		return Verdict{Result: Violated, Count: int(missing - s.unknown), Why: why, Witness: inOrder(witness...)}
	case missing > 0:
		return Verdict{Why: fmt.Sprintf("nobody is known to have been given %s, which %s without an answer may have used up", gaps, many(s.unknown, "request"))}
	case s.odd > 0:
		return Verdict{Why: fmt.Sprintf("%s that are no numbers from 1 on", many(s.odd, "answer"))}
	}
	return Verdict{Result: Holds, Why: fmt.Sprintf("every number from 1 to %s was given out", count(end))}
}

// runs is a set of numbers, as a sorted list of stretches without a gap, and
// the numbers not yet sorted in.
type runs struct {
	list []run
	news []run
}

type run struct{ from, to int64 }

func (r *runs) add(v int64) {
	if n := len(r.list); n > 0 && r.list[n-1].to == v-1 {
		r.list[n-1].to = v
		return
	}
	r.news = append(r.news, run{v, v})
	if len(r.news) > 4096 && len(r.news) > len(r.list) {
		r.merge()
	}
}

func (r *runs) merge() {
	if len(r.news) == 0 {
		return
	}
	all := append(r.list, r.news...)
	slices.SortFunc(all, func(a, b run) int { return cmp.Compare(a.from, b.from) })
	out := all[:1]
	for _, x := range all[1:] {
		if last := &out[len(out)-1]; x.from <= last.to+1 {
			last.to = max(last.to, x.to)
		} else {
			out = append(out, x)
		}
	}
	r.list, r.news = out, nil
}

// distinct is how many numbers there are.
func (r *runs) distinct() int64 {
	r.merge()
	n := int64(0)
	for _, x := range r.list {
		n += x.to - x.from + 1
	}
	return n
}

// gaps lists the numbers from 1 to end that are missing.
func (r *runs) gaps(end int64) string {
	r.merge()
	var out []string
	next, hidden := int64(1), 0
	gap := func(from, to int64) {
		switch {
		case from > to:
		case len(out) == 10:
			hidden++
		case from == to:
			out = append(out, count(from))
		default:
			out = append(out, count(from)+" to "+count(to))
		}
	}
	for _, x := range r.list {
		gap(next, x.from-1)
		next = x.to + 1
	}
	gap(next, end)
	if hidden > 0 {
		out = append(out, "and "+many(int64(hidden), "gap")+" more")
	}
	return strings.Join(out, ", ")
}
