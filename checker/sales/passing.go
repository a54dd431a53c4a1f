package sales

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"oversell/history"
)

// passing finds room for purchases that may have been refunded at once: a refund
// was called before the purchase must have taken effect, so no moment is known at which the
// pieces were surely sold. Yet they were sold at some moment, and the stock had to suffice
// then, besides the pieces that were surely sold by others. The smallest bad history,
// with a stock of 0:
//
//	client 1  buy     [2, 6]  order 7  ok
//	client 2  refund  [4, 5]  order 7  ok
//
// The moment lies between the later call and the earlier return of the two. Such purchases can have their moments one
// after the other at the same time, so each is judged by itself.
type passing struct {
	list    []passage
	windows []moment // not begun
	mixed   bool     // windows may not be sorted
	begun   moments
}

// passage is one such purchase.
type passage struct {
	pieces   int64
	fits     bool
	from, to time.Duration // the first and the last time at which it may have had its moment
	op       *history.Op   // the operation that completed last of the two; nil when it fits
}

// moment is a time at which a passage may have had its moment: from and to are included.
type moment struct {
	from, to time.Duration
	passage  int
	pieces   int64
}

// moments is a heap: the smallest number of pieces first.
type moments []moment

func (w moments) Len() int           { return len(w) }
func (w moments) Less(i, j int) bool { return w[i].pieces < w[j].pieces }
func (w moments) Swap(i, j int)      { w[i], w[j] = w[j], w[i] }
func (w *moments) Push(x any)        { *w = append(*w, x.(moment)) }
func (w *moments) Pop() any {
	last := (*w)[len(*w)-1]
	*w = (*w)[:len(*w)-1]
	return last
}

// add enters a passage and returns its number.
func (p *passing) add(op *history.Op, pieces int64) int {
	p.list = append(p.list, passage{pieces: pieces, op: clone(op), from: history.Forever, to: -1 << 63})
	return len(p.list) - 1
}

// allow enters another time at which a passage may have had its moment. It begins no earlier than the last low water.
func (p *passing) allow(passage int, from, to time.Duration) {
	own := &p.list[passage]
	own.from, own.to = min(own.from, from), max(own.to, to)
	p.windows = append(p.windows, moment{from, to, passage, own.pieces})
	p.mixed = true
}

func (p *passing) idle() bool { return len(p.windows) == 0 && len(p.begun) == 0 }

func (p *passing) sort() {
	if p.mixed {
		slices.SortStableFunc(p.windows, func(x, y moment) int { return cmp.Compare(x.from, y.from) })
		p.mixed = false
	}
}

// begin enters the windows that began before a time, or with until by then, while so
// many pieces were not surely sold.
func (p *passing) begin(when time.Duration, until bool, room int64) {
	for len(p.windows) > 0 && (p.windows[0].from < when || until && p.windows[0].from == when) {
		w := p.windows[0]
		p.windows = p.windows[1:]
		switch {
		case w.from > w.to || p.list[w.passage].fits:
		case w.pieces <= room:
			p.fit(w.passage)
		default:
			heap.Push(&p.begun, w)
		}
	}
}

// settle finds the passages that fit at a time at which refunds made room.
func (p *passing) settle(when time.Duration, room int64) {
	for len(p.begun) > 0 && p.begun[0].pieces <= room {
		if w := heap.Pop(&p.begun).(moment); w.to >= when {
			p.fit(w.passage)
		}
	}
}

func (p *passing) fit(i int) { p.list[i].fits, p.list[i].op = true, nil }

func (p *passing) clone() passing {
	return passing{slices.Clone(p.list), slices.Clone(p.windows), p.mixed, slices.Clone(p.begun)}
}

// most returns how many pieces of such purchases may have been sold at one time.
func (p *passing) most() (most int64) {
	var changes []change
	for _, one := range p.list {
		changes = append(changes, change{one.from, one.pieces, false}, change{one.to, -one.pieces, true})
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.when, b.when), cmp.Compare(b.pieces, a.pieces)) // both ends are included
	})
	net := int64(0)
	for _, c := range changes {
		net += c.pieces
		most = max(most, net)
	}
	return most
}

// unfit returns how many passages found no room, and the first of them.
func (p *passing) unfit() (n int, first *passage) {
	for i := range p.list {
		if !p.list[i].fits {
			if n++; n == 1 {
				first = &p.list[i]
			}
		}
	}
	return n, first
}
