package stocktest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"oversell/stockimpl"
	"oversell/variant"
)

// call is one call of a client in a walk.
type call struct {
	client int
	refund bool
	order  stockimpl.Order
	// begun and ended are when, counted in events of the walk.
	begun, ended int
	left         int64
	err          error
	// open says that nobody knows whether the call had its effect: its error is not declared, or
	// its client died.
	open bool
	// unheard says that the answer of one of its commands was lost. A client that sends the command
	// again may then be told that the order was counted before: by the call itself.
	unheard bool
}

// never is when a call with an open outcome ends.
const never = math.MaxInt

func (c call) String() string {
	what := "Buy"
	if c.refund {
		what = "Refund"
	}
	return fmt.Sprintf("%s of %d by order %d", what, c.order.Quantity, c.order.ID)
}

// answer says what a call was told.
func (c call) answer() string {
	switch {
	case c.err == nil && c.left == stockimpl.Unsaid:
		return "success"
	case c.err == nil:
		return fmt.Sprintf("success, with %d left", c.left)
	}
	return say(c.err)
}

// declared tells whether an error says what the outcome is.
func declared(err error) bool {
	return err == nil || errors.Is(err, stockimpl.ErrSoldOut) || errors.Is(err, stockimpl.ErrStale) || errors.Is(err, stockimpl.ErrRepeated)
}

// model is a sale without flaws: the stock, and what became of each order.
type model struct {
	stock, left int64
	orders      map[int64]int64 // pieces; less than 0 when they were refunded
	ids         bool            // an order counts once
	tellsLeft   bool            // what a call says is left is true
}

// history is what was seen of a sale in a walk.
type history struct {
	calls []call
	final stockimpl.State
	books bool // final is to be compared with the model
	// doubts tells which answers are not believed; nil: all are.
	doubts func(i int, c call) doubt
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

func (h history) doubt(i int, c call) doubt {
	if h.doubts == nil {
		return believed
	}
	return h.doubts(i, c)
}

// explained tells whether the calls can have taken effect one after the other, each between its
// beginning and its end, with the answers that were given. The smallest that cannot: of a stock of
// 1, order 1 buys 1, and then order 2 buys 1.
func (h history) explained(m *model, done []bool) bool {
	first := never // no call that begins after another's end comes before that
	all := true
	for i, c := range h.calls {
		if !done[i] {
			first, all = min(first, c.ended), false
		}
	}
	if all {
		return !h.books || m.agrees(h.final)
	}
	for i, c := range h.calls {
		if done[i] || c.begun > first {
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
func (h history) takes(m *model, i int, c call, done []bool) bool {
	of := h.doubt(i, c)
	had := m.orders[c.order.ID]
	if !m.ids {
		had = 0
	}
	without := false // it can have had no effect
	switch {
	case c.open, of == doubted, errors.Is(c.err, stockimpl.ErrStale):
		without = true
	case errors.Is(c.err, stockimpl.ErrRepeated):
		without = had < 0 || !c.refund && had != 0
	case errors.Is(c.err, stockimpl.ErrSoldOut):
		without = !c.refund && had == 0 && m.left < int64(c.order.Quantity)
	}
	if without && h.explained(m, done) {
		return true
	}
	itself := c.unheard && errors.Is(c.err, stockimpl.ErrRepeated)
	if c.err != nil && !c.open && of != doubted && !itself {
		return false
	}
	by := -int64(c.order.Quantity)
	if c.refund {
		by = -by
		if m.ids {
			by = had
		}
	}
	if h.twice && had < 0 && c.refund {
		by, had = -had, 0
	}
	if h.twice && had > 0 && !c.refund {
		had = 0
	}
	if c.refund && by <= 0 || !c.refund && (had != 0 || m.left+by < 0 && !h.over) {
		return false
	}
	if c.err == nil && !c.open && of == believed && m.tellsLeft && c.left != stockimpl.Unsaid && c.left != m.left+by {
		return false
	}
	was := m.orders[c.order.ID]
	m.left += by
	m.orders[c.order.ID] = -by
	ok := h.explained(m, done)
	m.left -= by
	m.orders[c.order.ID] = was
	return ok
}

// agrees compares the model with the server's books.
func (m *model) agrees(s stockimpl.State) bool {
	return s.Left+s.Reserved == m.left && (s.Sold == stockimpl.Unsaid || s.Sold == m.stock-m.left)
}

// fits tells whether a history is explained by a sale without flaws.
func (m *model) fits(h history) bool {
	m.left, m.orders = m.stock, map[int64]int64{}
	return h.explained(m, make([]bool, len(h.calls)))
}

// verdict returns nil if a history can be explained, and otherwise which promise is broken, and
// why. It doubts one answer after the other to find the one that is false.
func (m *model) verdict(calls []call, final stockimpl.State) error {
	h := history{calls: calls, final: final, books: true}
	if m.fits(h) {
		return nil
	}
	if err := m.counted(calls, final); err != nil {
		return err
	}
	for _, how := range []doubt{leftDoubted, doubted} {
		for i := range calls {
			h.doubts = func(n int, _ call) doubt {
				if n == i {
					return how
				}
				return believed
			}
			if m.fits(h) {
				return accused(calls[i], how == leftDoubted, m.stock)
			}
		}
	}
	if m.fits(history{calls: calls, final: final}) {
		return m.wrongBooks(calls, final)
	}
	return m.several(calls, final)
}

// several finds what is wrong when no single answer is.
func (m *model) several(calls []call, final stockimpl.State) error {
	refusals := func(_ int, c call) doubt {
		if errors.Is(c.err, stockimpl.ErrSoldOut) {
			return doubted
		}
		return believed
	}
	lefts := func(int, call) doubt { return leftDoubted }
	of := fmt.Sprintf("a stock of %d", m.stock)
	switch {
	case m.fits(history{calls: calls, final: final, over: true, doubts: lefts}):
		return broken(variant.NoOversell, "%s: the answers can be explained only if more pieces were sold than there were", of)
	case m.ids && m.fits(history{calls: calls, final: final, books: true, twice: true}):
		return broken(variant.OncePerOrder, "%s: the answers can be explained only if an order had its effect more than once", of)
	case m.fits(history{calls: calls, final: final, books: true, doubts: refusals}):
		return broken(variant.NoUndersell, "%s: orders were refused as sold out; in every order of the calls that explains the other answers enough pieces were left for one of them", of)
	case m.fits(history{calls: calls, final: final, books: true, doubts: lefts}):
		return broken(variant.Linearizable, "%s: no order of the calls explains the numbers of pieces that they said are left", of)
	case m.fits(history{calls: calls, final: final, doubts: refusals}):
		return broken(variant.NoUndersell, "%s: orders were refused as sold out, though pieces that nobody bought must be there; State says %v in the end", of, final)
	case m.ids && m.fits(history{calls: calls, final: final, twice: true, doubts: lefts}):
		return broken(variant.OncePerOrder, "%s: the answers can be explained only if an order had its effect more than once", of)
	}
	return broken(variant.Linearizable, "%s: no order of the calls explains their answers", of)
}

// counted finds what can be seen without a look at the order of the calls.
func (m *model) counted(calls []call, final stockimpl.State) error {
	bought, refunded := map[int64]int{}, map[int64]int{}
	sold := int64(0)
	for _, c := range calls {
		switch {
		case c.refund && (c.open || c.err == nil):
			sold -= int64(c.order.Quantity)
		case !c.refund && c.err == nil && !c.open:
			sold += int64(c.order.Quantity)
		}
		if c.err != nil || c.open || !m.ids {
			continue
		}
		if c.refund {
			refunded[c.order.ID]++
		} else {
			bought[c.order.ID]++
		}
		switch {
		case bought[c.order.ID] > 1:
			return broken(variant.OncePerOrder, "order %d was told twice that it bought", c.order.ID)
		case refunded[c.order.ID] > 1:
			return broken(variant.OncePerOrder, "order %d was refunded twice", c.order.ID)
		}
	}
	if sold > m.stock {
		return broken(variant.NoOversell, "at least %d pieces were sold and not refunded, of a stock of %d", sold, m.stock)
	}
	if final.Sold > m.stock {
		return broken(variant.NoOversell, "the server itself counts %d pieces as sold, of a stock of %d", final.Sold, m.stock)
	}
	return nil
}

// accused tells what is wrong with the one answer without which the calls can be explained.
func accused(c call, onlyLeft bool, stock int64) error {
	who := fmt.Sprintf("of a stock of %d, client %d's %v was answered %s", stock, c.client, c, c.answer())
	const all = "in every order of the calls that explains the other answers"
	switch {
	case onlyLeft:
		return broken(variant.Linearizable, "%s; %s another number was left", who, all)
	case c.err == nil && c.refund:
		return broken(variant.OncePerOrder, "%s; %s this order had nothing to refund, or its pieces did not come back", who, all)
	case c.err == nil:
		return broken(variant.NoOversell, "%s; %s too few pieces were left for it, or it took none", who, all)
	case errors.Is(c.err, stockimpl.ErrSoldOut):
		return broken(variant.NoUndersell, "%s; %s enough pieces were left for it", who, all)
	case errors.Is(c.err, stockimpl.ErrStale) && !c.refund:
		return broken(variant.NoUndersell, "%s, which says that nothing changed; %s it took its pieces", who, all)
	case errors.Is(c.err, stockimpl.ErrStale):
		return broken(theInterface, "%s, which says that nothing changed; %s it returned its pieces", who, all)
	case c.refund:
		return broken(variant.NoUndersell, "%s; %s the order's pieces had not come back", who, all)
	}
	return broken(variant.OncePerOrder, "%s; %s the order had not had its effect", who, all)
}

// wrongBooks tells how the server's books differ from every order of the calls that explains their answers.
func (m *model) wrongBooks(calls []call, final stockimpl.State) error {
	var lefts []int64
	for left := int64(0); left <= m.stock; left++ {
		if m.fits(history{calls: calls, final: stockimpl.State{Left: left, Sold: stockimpl.Unsaid}, books: true}) {
			lefts = append(lefts, left)
		}
	}
	held := final.Left + final.Reserved
	what := fmt.Sprintf("State says %v in the end, of a stock of %d; the answers leave %v", final, m.stock, lefts)
	switch {
	case len(lefts) > 0 && held > slices.Max(lefts):
		return broken(variant.NoOversell, "%s: pieces that are sold are there to be sold again", what)
	case len(lefts) > 0 && held < slices.Min(lefts):
		return broken(variant.NoUndersell, "%s: pieces are gone that no answer accounts for", what)
	}
	return broken(variant.NoUndersell, "%s: its count of what is sold does not fit", what)
}
