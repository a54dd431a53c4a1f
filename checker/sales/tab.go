package sales

import (
	"cmp"
	"slices"
	"time"

	"oversell/history"
)

// tab follows one order that was bought or refunded more than once, or without an answer, or that an answer calls
// already bought or refunded. At each moment, surely sold is the least that its purchases and refunds allow: the pieces
// surely bought by then, less those that the refunds called by then may have returned. A refund cannot be of
// a purchase that was called after the refund returned. An answer may come before the operation without an answer
// to which it refers, so a purchase or a refund can change the number sold before others that are known; product.net
// gets the difference.
type tab struct {
	bought []entry // the one with the latest bound first
	given  []entry
}

// entry is a purchase from its return on, or a refund from its call on.
type entry struct {
	moment instant
	bound  time.Duration // the call of the purchase, or the return of the refund
	pieces int64
}

// instant is a moment at which the balance changes: calls come before returns.
type instant struct {
	when time.Duration
	late bool // a return
}

func (t instant) compare(u instant) int {
	switch {
	case t.when != u.when || t.late == u.late:
		return cmp.Compare(t.when, u.when)
	case t.late:
		return 1
	}
	return -1
}

// mostEntries bounds the purchases and the refunds of a tab. If there are more, the oldest
// two are merged into one, with the times that make less surely sold.
const mostEntries = 8

// boughtBy returns the purchase that an answer shows. If the answer says that the order had
// been counted before, the call of the purchase is unknown.
func boughtBy(op *history.Op, pieces int64) entry {
	e := entry{moment: instant{op.Return, true}, pieces: pieces}
	if op.Kind == history.Buy && op.Reason != history.Repeated {
		e.bound = op.Call
	}
	return e
}

// givenBy returns a refund that may have had an effect.
func givenBy(op *history.Op) entry {
	e := entry{moment: instant{op.Call, false}, bound: op.Return, pieces: op.Pieces()}
	if op.Outcome == history.Unknown {
		e.bound = history.Forever
	}
	return e
}

// tabOf returns the tab of an order, made if necessary.
func (p *product) tabOf(o *order, b *back) *tab {
	if b.tab != nil {
		return b.tab
	}
	b.tab = new(tab)
	if b.bought > 0 {
		e := entry{moment: instant{o.ret, true}, pieces: b.bought}
		if b.bought == int64(o.pieces) && !o.told {
			e.bound = o.call
		}
		b.tab.bought = []entry{e}
	}
	if b.refunds > 0 {
		b.tab.given = []entry{{moment: instant{b.call, false}, bound: b.by, pieces: b.given + b.maybe}}
	}
	return b.tab
}

// buy enters a purchase whose pieces net already has.
func (t *tab) buy(net *balance, e entry) {
	t.enter(net, e, &t.bought, e.pieces)
	if len(t.bought) > mostEntries {
		a, b := oldest(&t.bought), oldest(&t.bought)
		add(&t.bought, entry{b.moment, min(a.bound, b.bound), a.pieces + b.pieces})
	}
}

func (t *tab) refund(net *balance, e entry) {
	t.enter(net, e, &t.given, 0)
	if len(t.given) > mostEntries {
		a, b := oldest(&t.given), oldest(&t.given)
		add(&t.given, entry{a.moment, max(a.bound, b.bound), a.pieces + b.pieces})
	}
}

// enter adds an entry to a list. sold is the part of it that net already has.
func (t *tab) enter(net *balance, e entry, list *[]entry, sold int64) {
	moments := []instant{e.moment}
	for _, l := range [][]entry{t.bought, t.given} {
		for i := range l {
			if m := l[i].moment; m.compare(e.moment) > 0 {
				moments = append(moments, m)
			}
		}
	}
	slices.SortFunc(moments, instant.compare)
	before := make([]int64, len(moments))
	for i, m := range moments {
		before[i] = t.standing(m)
	}
	add(list, e)
	deducted := int64(0)
	for i, m := range moments {
		if less := before[i] + sold - t.standing(m); less != deducted {
			net.refund(m.when, less-deducted, m.late)
			deducted = less
		}
	}
}

// standing returns how many pieces are surely sold at a moment.
func (t *tab) standing(at instant) (n int64) {
	// A refund that can belong to a purchase can belong to every purchase that was called
	// before that one.
	g, spare := 0, int64(0)
	for _, buy := range t.bought {
		if buy.moment.compare(at) > 0 {
			continue
		}
		for ; g < len(t.given) && t.given[g].bound >= buy.bound; g++ {
			if t.given[g].moment.compare(at) <= 0 {
				spare += t.given[g].pieces
			}
		}
		back := min(buy.pieces, spare)
		spare -= back
		n += buy.pieces - back
	}
	return n
}

// add enters an entry, the latest bound first.
func add(list *[]entry, e entry) {
	i, _ := slices.BinarySearchFunc(*list, e.bound, func(a entry, bound time.Duration) int { return cmp.Compare(bound, a.bound) })
	*list = slices.Insert(*list, i, e)
}

// oldest removes the entry with the earliest moment.
func oldest(list *[]entry) entry {
	i := 0
	for j := range *list {
		if (*list)[j].moment.compare((*list)[i].moment) < 0 {
			i = j
		}
	}
	e := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return e
}
