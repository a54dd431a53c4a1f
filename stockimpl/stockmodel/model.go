// Package stockmodel explains the calls of a walk by a sale without flaws: it looks for an order of the calls in which each
// takes effect between its beginning and its end and gets the answer that it got. The search is exhaustive, so a walk has few
// calls. See Herlihy and Wing, Linearizability (1990).
package stockmodel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// Call is one call of a client in a walk.
type Call struct {
	Client int
	Refund bool
	Order  stockimpl.Order
	// Begun and Ended are when, counted in events of the walk.
	Begun, Ended int
	Left         int64
	Err          error
	// Open says that nobody knows whether the call had its effect: its error is not declared, or
	// its client died.
	Open bool
	// Unheard says that the answer of one of its commands was lost. A client that sends the command
	// again may then be told that the order was counted before: by the call itself.
	Unheard bool
}

// Never is when a call with an open outcome ends.
const Never = math.MaxInt

func (c Call) String() string {
	what := "Buy"
	if c.Refund {
		what = "Refund"
	}
	return fmt.Sprintf("%s of %d by order %d", what, c.Order.Quantity, c.Order.ID)
}

// Answer says what a call was told.
func (c Call) Answer() string {
	switch {
	case c.Err == nil && c.Left == stockimpl.Unsaid:
		return "success"
	case c.Err == nil:
		return fmt.Sprintf("success, with %d left", c.Left)
	}
	return Said(c.Err)
}

// Declared tells whether an error says what the outcome is.
func Declared(err error) bool {
	return err == nil || errors.Is(err, stockimpl.ErrSoldOut) || errors.Is(err, stockimpl.ErrStale) || errors.Is(err, stockimpl.ErrRepeated)
}

// Model is a sale without flaws: the stock, and what became of each order.
type Model struct {
	Stock     int64 // pieces
	IDs       bool  // an order counts once
	TellsLeft bool  // what a call says is left is true

	left   int64
	orders map[int64]int64 // pieces; less than 0 when they were refunded
}

// history is what was seen of a sale in a walk.
type history struct {
	calls []Call
	final stockimpl.State
	books bool // final is to be compared with the model
	// doubts tells which answers are not believed; nil: all are.
	doubts func(i int, c Call) doubt
	// twice says that an order may have its effect more than once.
	twice bool
	// over says that more pieces may be sold than there are.
	over bool
}

// doubt is how much of an answer is not believed.
type doubt int

const (
	believed doubt = iota
	leftDoubted
	doubted
)

func (h history) doubt(i int, c Call) doubt {
	if h.doubts == nil {
		return believed
	}
	return h.doubts(i, c)
}

// explained tells whether the calls can have taken effect one after the other, each between its
// beginning and its end, with the answers that were given. The smallest that cannot: of a stock of
// 1, order 1 buys 1, and then order 2 buys 1.
func (h history) explained(m *Model, done []bool) bool {
	first := Never // no call that begins after another's end comes before that
	all := true
	for i, c := range h.calls {
		if !done[i] {
			first, all = min(first, c.Ended), false
		}
	}
	if all {
		return !h.books || m.agrees(h.final)
	}
	for i, c := range h.calls {
		if done[i] || c.Begun > first {
			continue
		}
		done[i] = true
		if h.takes(m, i, c, done) {
			done[i] = false
			return true
		}
		done[i] = false
	}
	return false
}

// takes tells whether the calls are explained if this one is next.
func (h history) takes(m *Model, i int, c Call, done []bool) bool {
	of := h.doubt(i, c)
	had := m.orders[c.Order.ID]
	if !m.IDs {
		had = 0
	}
	without := false // it can have had no effect
	switch {
	case c.Open, of == doubted, errors.Is(c.Err, stockimpl.ErrStale):
		without = true
	case errors.Is(c.Err, stockimpl.ErrRepeated):
		without = had < 0 || !c.Refund && had != 0
	case errors.Is(c.Err, stockimpl.ErrSoldOut):
		without = !c.Refund && had == 0 && m.left < int64(c.Order.Quantity)
	}
	if without && h.explained(m, done) {
		return true
	}
	itself := c.Unheard && errors.Is(c.Err, stockimpl.ErrRepeated)
	if c.Err != nil && !c.Open && of != doubted && !itself {
		return false
	}
	by := -int64(c.Order.Quantity)
	if c.Refund {
		by = -by
		if m.IDs {
			by = had
		}
	}
	if h.twice && had < 0 && c.Refund {
		by, had = -had, 0
	}
	if h.twice && had > 0 && !c.Refund {
		had = 0
	}
	if c.Refund && by <= 0 || !c.Refund && (had != 0 || m.left+by < 0 && !h.over) {
		return false
	}
	if c.Err == nil && !c.Open && of == believed && m.TellsLeft && c.Left != stockimpl.Unsaid && c.Left != m.left+by {
		return false
	}
	was := m.orders[c.Order.ID]
	m.left += by
	m.orders[c.Order.ID] = -by
	ok := h.explained(m, done)
	m.left -= by
	m.orders[c.Order.ID] = was
	return ok
}

// agrees compares the model with the server's books.
func (m *Model) agrees(s stockimpl.State) bool {
	return s.Left+s.Reserved == m.left && (s.Sold == stockimpl.Unsaid || s.Sold == m.Stock-m.left)
}

// fits tells whether a history is explained by a sale without flaws.
func (m *Model) fits(h history) bool {
	m.left, m.orders = m.Stock, map[int64]int64{}
	return h.explained(m, make([]bool, len(h.calls)))
}

// Verdict returns nil if a history can be explained, and otherwise which promise is broken, and
// why. It doubts one answer after the other to find the one that is false.
func (m *Model) Verdict(calls []Call, final stockimpl.State) error {
	h := history{calls: calls, final: final, books: true}
	if m.fits(h) {
		return nil
	}
	if err := m.counted(calls, final); err != nil {
		return err
	}
	for _, how := range []doubt{leftDoubted, doubted} {
		for i := range calls {
			h.doubts = func(n int, _ Call) doubt {
				if n == i {
					return how
				}
				return believed
			}
			if m.fits(h) {
				return accused(calls[i], how == leftDoubted, m.Stock)
			}
		}
	}
	if m.fits(history{calls: calls, final: final}) {
		return m.wrongBooks(calls, final)
	}
	return m.several(calls, final)
}

// several finds what is wrong when no single answer is.
func (m *Model) several(calls []Call, final stockimpl.State) error {
	refusals := func(_ int, c Call) doubt {
		if errors.Is(c.Err, stockimpl.ErrSoldOut) {
			return doubted
		}
		return believed
	}
	lefts := func(int, Call) doubt { return leftDoubted }
	of := fmt.Sprintf("a stock of %d", m.Stock)
	switch {
	case m.fits(history{calls: calls, final: final, over: true, doubts: lefts}):
		return suitetest.Broken(variant.NoOversell, "%s: the answers can be explained only if more pieces were sold than there were", of)
	case m.IDs && m.fits(history{calls: calls, final: final, books: true, twice: true}):
		return suitetest.Broken(variant.OncePerOrder, "%s: the answers can be explained only if an order had its effect more than once", of)
	case m.fits(history{calls: calls, final: final, books: true, doubts: refusals}):
		return suitetest.Broken(variant.NoUndersell, "%s: orders were refused as sold out; in every order of the calls that explains the other answers enough pieces were left for one of them", of)
	case m.fits(history{calls: calls, final: final, books: true, doubts: lefts}):
		return suitetest.Broken(variant.Linearizable, "%s: no order of the calls explains the numbers of pieces that they said are left", of)
	case m.fits(history{calls: calls, final: final, doubts: refusals}):
		return suitetest.Broken(variant.NoUndersell, "%s: orders were refused as sold out, though pieces that nobody bought must be there; State says %v in the end", of, final)
	case m.IDs && m.fits(history{calls: calls, final: final, twice: true, doubts: lefts}):
		return suitetest.Broken(variant.OncePerOrder, "%s: the answers can be explained only if an order had its effect more than once", of)
	}
	return suitetest.Broken(variant.Linearizable, "%s: no order of the calls explains their answers", of)
}

// counted finds what can be seen without a look at the order of the calls.
func (m *Model) counted(calls []Call, final stockimpl.State) error {
	bought, refunded := map[int64]int{}, map[int64]int{}
	sold := int64(0)
	for _, c := range calls {
		switch {
		case c.Refund && (c.Open || c.Err == nil):
			sold -= int64(c.Order.Quantity)
		case !c.Refund && c.Err == nil && !c.Open:
			sold += int64(c.Order.Quantity)
		}
		if c.Err != nil || c.Open || !m.IDs {
			continue
		}
		if c.Refund {
			refunded[c.Order.ID]++
		} else {
			bought[c.Order.ID]++
		}
		switch {
		case bought[c.Order.ID] > 1:
			return suitetest.Broken(variant.OncePerOrder, "order %d was told twice that it bought", c.Order.ID)
		case refunded[c.Order.ID] > 1:
			return suitetest.Broken(variant.OncePerOrder, "order %d was refunded twice", c.Order.ID)
		}
	}
	if sold > m.Stock {
		return suitetest.Broken(variant.NoOversell, "at least %d pieces were sold and not refunded, of a stock of %d", sold, m.Stock)
	}
	if final.Sold > m.Stock {
		return suitetest.Broken(variant.NoOversell, "the server itself counts %d pieces as sold, of a stock of %d", final.Sold, m.Stock)
	}
	return nil
}

// accused tells what is wrong with the one answer without which the calls can be explained.
func accused(c Call, onlyLeft bool, stock int64) error {
	who := fmt.Sprintf("of a stock of %d, client %d's %v was answered %s", stock, c.Client, c, c.Answer())
	const all = "in every order of the calls that explains the other answers"
	switch {
	case onlyLeft:
		return suitetest.Broken(variant.Linearizable, "%s; %s another number was left", who, all)
	case c.Err == nil && c.Refund:
		return suitetest.Broken(variant.OncePerOrder, "%s; %s this order had nothing to refund, or its pieces did not come back", who, all)
	case c.Err == nil:
		return suitetest.Broken(variant.NoOversell, "%s; %s too few pieces were left for it, or it took none", who, all)
	case errors.Is(c.Err, stockimpl.ErrSoldOut):
		return suitetest.Broken(variant.NoUndersell, "%s; %s enough pieces were left for it", who, all)
	case errors.Is(c.Err, stockimpl.ErrStale) && !c.Refund:
		return suitetest.Broken(variant.NoUndersell, "%s, which says that nothing changed; %s it took its pieces", who, all)
	case errors.Is(c.Err, stockimpl.ErrStale):
		return suitetest.Broken(TheInterface, "%s, which says that nothing changed; %s it returned its pieces", who, all)
	case c.Refund:
		return suitetest.Broken(variant.NoUndersell, "%s; %s the order's pieces had not come back", who, all)
	}
	return suitetest.Broken(variant.OncePerOrder, "%s; %s the order had not had its effect", who, all)
}

// wrongBooks tells how the server's books differ from every order of the calls that explains their answers.
func (m *Model) wrongBooks(calls []Call, final stockimpl.State) error {
	var lefts []int64
	for left := int64(0); left <= m.Stock; left++ {
		if m.fits(history{calls: calls, final: stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, books: true}) {
			lefts = append(lefts, left)
		}
	}
	held := final.Left + final.Reserved
	what := fmt.Sprintf("State says %v in the end, of a stock of %d; the answers leave %v", final, m.Stock, lefts)
	switch {
	case len(lefts) > 0 && held > slices.Max(lefts):
		return suitetest.Broken(variant.NoOversell, "%s: pieces that are sold are there to be sold again", what)
	case len(lefts) > 0 && held < slices.Min(lefts):
		return suitetest.Broken(variant.NoUndersell, "%s: pieces are gone that no answer accounts for", what)
	}
	return suitetest.Broken(variant.NoUndersell, "%s: its count of what is sold does not fit", what)
}

// Said quotes an answer.
func Said(err error) string {
	if err == nil {
		return "success"
	}
	return fmt.Sprintf("%q", err)
}

// TheInterface stands, in place of a promise, for the rules of stockimpl.Sale.
const TheInterface variant.Property = "the contract of stockimpl.Sale"
