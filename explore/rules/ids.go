package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"oversell/history"
	"oversell/variant"
)

// idsPast is the past of an id generator, without the clients that were given the numbers: they would keep states apart
// that no later event can distinguish.
type idsPast struct {
	top     int64 // the highest number that a client received
	unknown int64 // requests that had no answer
	given   []stretch
}

// stretch is a range of numbers, both ends included.
type stretch struct{ from, to int64 }

// asks notes the call of a request. A request that had no answer and is sent again may get the answer of the first one.
func (r *Rules) asks(p *past, client int, op *history.Op, d *doing) {
	if !r.ids.order {
		return
	}
	me := &p.people[client]
	d.what, d.floor = labelOf(op.Arg, client), p.ids.top
	if me.asked.what == d.what {
		d.floor = me.asked.floor
	}
	me.asked = doing{}
}

// numbered judges a number that was given out.
func (r *Rules) numbered(p *past, client int, op *history.Op, d *doing) (b *Breach) {
	n, ok := op.Result.Num()
	switch {
	case op.Outcome == history.Unknown:
		if r.ids.gaps {
			p.ids.unknown++
		}
		if r.ids.order {
			p.people[client].asked = doing{what: d.what, floor: d.floor}
		}
		return nil
	case op.Outcome != history.OK || op.Reason == history.Repeated || !ok:
		return nil
	}
	if r.ids.unique || r.ids.gaps {
		if fresh := p.ids.give(n); !fresh && r.ids.unique {
			b = broken(variant.IDs, variant.UniqueIDs, "client %d was given the number %d, which had been given out before", client, n)
		}
	}
	if r.ids.order {
		if b == nil && n < d.floor {
			b = broken(variant.IDs, variant.RealTimeOrder, "client %d was given the number %d, though %d had been given out before it asked", client, n, d.floor)
		}
		p.ids.top = max(p.ids.top, n)
	}
	return b
}

// give adds a number, and reports whether it is new.
func (s *idsPast) give(n int64) bool {
	i, found := slices.BinarySearchFunc(s.given, n, func(g stretch, n int64) int {
		switch {
		case g.to < n:
			return -1
		case g.from > n:
			return 1
		}
		return 0
	})
	if found {
		return false
	}
	s.given = slices.Insert(s.given, i, stretch{n, n})
	slices.SortFunc(s.given, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	for i := len(s.given) - 1; i > 0; i-- {
		if s.given[i-1].to == s.given[i].from-1 {
			s.given[i-1].to = s.given[i].to
			s.given = slices.Delete(s.given, i, i+1)
		}
	}
	return true
}

// numberedInTheEnd judges that no number is missing, from 1 to the last that the server knows, except those that
// requests without an answer may have used.
func (r *Rules) numberedInTheEnd(p *past, audit []history.Op) *Breach {
	if !r.ids.gaps {
		return nil
	}
	last := int64(0)
	for _, g := range p.ids.given {
		last = max(last, g.to)
	}
	for i := range audit {
		if audit[i].Kind == history.ReadState && audit[i].Arg.String() == "last" {
			n, _ := audit[i].Result.Num()
			last = max(last, n)
		}
	}
	lost := p.ids.unknown
	for i := range p.people {
		if p.people[i].at(history.NextID) >= 0 {
			lost++
		}
	}
	var gaps []string
	missing, next := int64(0), int64(1)
	for _, g := range append(slices.Clone(p.ids.given), stretch{last + 1, last + 1}) {
		for n := next; n < g.from; n++ {
			if missing++; missing <= 10 {
				gaps = append(gaps, fmt.Sprint(n))
			}
		}
		next = max(next, g.to+1)
	}
	if missing <= lost {
		return nil
	}
	why := ""
	if lost > 0 {
		why = fmt.Sprintf(", and only %d had no answer", lost)
	}
	return broken(variant.IDs, variant.NoGaps, "of the numbers from 1 to %d nobody was given %s%s", last, strings.Join(gaps, ", "), why)
}
