package stocktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/alike"
	"oversell/internal/interrupt"
	"oversell/internal/keyname"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// Some rules in this file act on one command among those of a call: they hold a buyer up
// before it, lose its request or its answer, or have the buyer die there.

// The rules act on the first commands of a call: on fewest at least, and on up to most of a long call.
const fewest, most = 5, 20

var said = map[interrupt.Action]string{interrupt.Pass: "", interrupt.Refuse: " (refused)", interrupt.LoseRequest: " (not executed)", interrupt.LoseReply: " (executed, not answered)"}

var bothWays = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply}

// fences is where the tokens of a product come from, each newer than all before.
type fences struct{ last atomic.Int64 }

// buyerOf is one more client of a product, whose commands can be acted upon.
func (b bench) buyerOf(ctx context.Context, product string, f *fences) (*buyer, *interrupt.Interceptor) {
	env, line := b.interrupted(b.Env())
	y := &buyer{b: b, sale: b.newSale(env, product), fences: f}
	b.practise(ctx, env, product)
	line.Plan(nil)
	return y, line
}

// practise buys and refunds pieces of another product: the first purchase loads the scripts.
func (b bench) practise(ctx context.Context, env variant.Env, product string) {
	y := &buyer{b: b, sale: b.newSale(env, product+"-practice"), fences: &fences{}}
	if y.sale.Open(ctx, 5) == nil {
		_, _ = y.sale.Buy(ctx, order(1, 1), y.lock())
		if b.noRefunds == nil {
			_, _ = y.sale.Refund(ctx, order(1, 1), y.lock())
		}
	}
}

// setUp is what went wrong before a command was interfered with.
type setUp struct{ error }

func (s *setUp) Unwrap() error { return s.error }

// steps is how many commands are interfered with: one more than the longest of a purchase, a refund, and an order for more
// than there is.
func (b bench) steps(ctx context.Context) int {
	f := &fences{}
	product := b.Product + "-steps"
	if _, err := openedWith(ctx, b, product, 5, f); err != nil {
		return fewest
	}
	c, line := b.buyerOf(ctx, product, f)
	calls := []func(){
		func() { _, _ = c.sale.Buy(ctx, order(1, 2), c.lock()) },
		func() { _, _ = c.sale.Buy(ctx, order(2, 6), c.lock()) },
	}
	if b.noRefunds == nil {
		calls = append(calls, func() { _, _ = c.sale.Refund(ctx, order(1, 2), c.lock()) })
	}
	longest := 0
	for _, call := range calls {
		line.Plan(nil)
		call()
		longest = max(longest, line.Sent())
	}
	return min(max(longest+1, fewest), most)
}

// each runs a case for every step and action, on a product of its own.
func (b bench) each(ctx context.Context, actions []interrupt.Action, check func(b bench, n int, a interrupt.Action) error) error {
	steps := b.steps(ctx)
	errs := make([]error, steps*len(actions))
	var all sync.WaitGroup
	for n := 1; n <= steps; n++ {
		for i, a := range actions {
			own := b
			own.Product = fmt.Sprintf("%s-%d-%d", b.Product, n, a)
			all.Go(func() {
				err := check(own, n, a)
				if !errors.As(err, new(*setUp)) && (errors.As(err, new(*suitetest.Breach)) || errors.As(err, new(*suitetest.NotJudged))) {
					err = fmt.Errorf("at command %d%s: %w", n, said[a], err)
				}
				errs[(n-1)*len(actions)+i] = err
			})
		}
	}
	all.Wait()
	return firstBreach(errs)
}

// eachOpened is each with a buyer for each command, and so many pieces on sale.
func (b bench) eachOpened(ctx context.Context, stock int64, actions []interrupt.Action, check func(y *buyer, n int, a interrupt.Action) error) error {
	return b.each(ctx, actions, func(b bench, n int, a interrupt.Action) error {
		y, err := opened(ctx, b, b.Product, stock)
		if err != nil {
			return err
		}
		return check(y, n, a)
	})
}

// undecided is how long an order may be told to come again while no other client buys: longer
// than pieces are set aside for a buyer that died.
const undecided = 8 * time.Second

// decided repeats an order until it is decided: it may be stale, or its answer be lost.
func (y *buyer) decided(ctx context.Context, id int64, pieces int) error {
	call := func() (int64, error) { return y.sale.Buy(ctx, order(id, pieces), y.lock()) }
	for start, open := time.Now(), false; ; {
		left, err := call()
		got, asked := y.b.settle(ctx, answered{left, err}, call)
		open = open || asked
		switch {
		case open && errors.Is(got.err, stockimpl.ErrRepeated):
			return &ownRepeat{got.err}
		case !errors.Is(got.err, stockimpl.ErrStale):
			return got.err
		}
		limit := undecided
		if r := y.b.Reserves; r != 0 {
			limit = min(limit, r+2*time.Second)
		}
		if time.Since(start) > limit {
			if s, err := y.sale.State(ctx); err == nil && s.Reserved > 0 && (y.b.Reserves == 0 || y.b.Reserves > undecided) {
				return &suitetest.NotJudged{Why: fmt.Sprintf("an order was answered with ErrStale for %v, and State says that %d pieces are still reserved: the suite does not wait longer for reservations to end; it tests that on a clock that it moves", undecided, s.Reserved)}
			}
			return broken(variant.NoUndersell, "an order for %d pieces was answered with ErrStale for %v, however often it was sent again, while nobody else bought: it is neither accepted nor refused as sold out", pieces, limit)
		}
		if (clock.Real{}).Sleep(ctx, time.Millisecond) != nil {
			if y.setAside(ctx) {
				return &suitetest.NotJudged{Why: fmt.Sprintf("an order was answered with ErrStale for %v, and when the time of the rule was over, pieces were still reserved", time.Since(start).Round(100*time.Millisecond))}
			}
			y.b.limits.ended(ctx, start)
			return fmt.Errorf("every attempt of order %d was answered with ErrStale: %w", id, context.Cause(ctx))
		}
	}
}

// setAside reports whether pieces are reserved, for longer than the suite waits, when a context has ended.
func (y *buyer) setAside(ended context.Context) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), answer)
	defer cancel()
	s, err := y.sale.Sale.State(ctx)
	return err == nil && s.Reserved > 0 && (y.b.Reserves == 0 || y.b.Reserves > undecided)
}

// decidedAlone is decided for an order that no other client sends.
func (y *buyer) decidedAlone(ctx context.Context, id int64, pieces int) error {
	return unlessItself(y.decided(ctx, id, pieces))
}

// sellsOut sells single pieces until the stock is sold out, and returns how many.
func (y *buyer) sellsOut(ctx context.Context, from int64, most int) (int, error) {
	for n := 0; ; n++ {
		err := y.decidedAlone(ctx, from+int64(n), 1)
		switch {
		case errors.Is(err, stockimpl.ErrSoldOut):
			return n, nil
		case errors.As(err, new(*suitetest.Breach)), errors.As(err, new(*suitetest.NotJudged)):
			return n, err
		case err != nil:
			return n, broken(theInterface, "buy of 1 by order %d answered %s", from+int64(n), say(err))
		case n > most:
			return n, broken(variant.NoOversell, "%d pieces were sold, of %d", n, most)
		}
	}
}

// interruptedOrder is the first order of a new sale, one command of which was interfered with.
type interruptedOrder struct {
	opener, buyer *buyer
	line          *interrupt.Interceptor
	answer        error
	reached       bool // the order sent as many commands
}

// interrupted has a buyer order so many pieces, and does a to its nth command.
func interrupted(ctx context.Context, b bench, n int, a interrupt.Action, stock, pieces int) (o interruptedOrder, err error) {
	f := &fences{}
	if o.opener, err = openedWith(ctx, b, b.Product, int64(stock), f); err != nil {
		return o, err
	}
	o.buyer, o.line = b.buyerOf(ctx, b.Product, f)
	o.line.Arm(n, a)
	_, o.answer = o.buyer.sale.Buy(ctx, order(1, pieces), o.buyer.lock())
	o.reached = o.line.Sent() >= n
	o.line.Plan(nil)
	return o, nil
}

// lostOrder: an order whose answer was lost is sent again, and counts once.
func lostOrder(ctx context.Context, b bench) error {
	const stock, pieces = 6, 2
	return b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		o, err := interrupted(ctx, b, n, a, stock, pieces)
		if err != nil || !o.reached {
			return err
		}
		y, c, err := o.opener, o.buyer, o.answer
		what := "an order whose answer was lost"
		if errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(variant.NoUndersell, "%s was told that the stock is sold out, with %d pieces left", what, stock)
		}
		if err != nil {
			if err := c.decided(ctx, 1, pieces); errors.As(err, new(*suitetest.NotJudged)) {
				return err
			} else if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
				return broken(variant.NoUndersell, "%s, sent again with %d pieces there, answered %s; want success or %q", what, stock, say(err), stockimpl.ErrRepeated)
			}
		}
		if err := y.state(ctx, variant.OncePerOrder, stock-pieces, pieces); err != nil {
			return fmt.Errorf("after %s was sent again: %w", what, err)
		}
		o.line.Arm(n, a)
		_, err = c.sale.Refund(ctx, order(1, pieces), c.lock())
		reached := o.line.Sent() >= n
		o.line.Plan(nil)
		if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
			_, err = c.again(ctx, nil, func() (int64, error) { return c.sale.Refund(ctx, order(1, pieces), c.lock()) })
		}
		if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.NoUndersell, "a refund whose answer was lost, sent again, answered %s; want success or %q", say(err), stockimpl.ErrRepeated)
		}
		if !reached {
			return nil
		}
		return y.state(ctx, variant.OncePerOrder, stock, 0)
	})
}

// lostAnswer: a purchase that was sent once takes its pieces once, whatever its client does
// about an answer that was lost.
func lostAnswer(ctx context.Context, b bench) error {
	const stock, pieces = 6, 2
	return b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		o, err := interrupted(ctx, b, n, a, stock, pieces)
		if err != nil || !o.reached {
			return err
		}
		y, err := o.opener, o.answer
		s, look := y.sale.State(ctx)
		if look != nil {
			return fmt.Errorf("state: %w", look)
		}
		if s.Left+s.Reserved < stock-pieces {
			return broken(variant.NoUndersell, "a purchase of %d that had lost an answer (%s) left %v of %d: pieces are gone that no answer accounts for", pieces, say(err), s, stock)
		}
		return y.told(ctx, "during which the connection was lost", err, stock, pieces)
	})
}

// deadBuyer: what a dead buyer leaves must not keep its pieces from being sold, nor sell
// them twice.
func deadBuyer(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		return b.deadBuyer(ctx, n, a, 5, 2)
	})
}

// deadBuyer has a buyer of so many pieces die at its n-th command.
func (b bench) deadBuyer(ctx context.Context, n int, a interrupt.Action, stock, pieces int) error {
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, int64(stock), f)
	if err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	if !line.DiesAt(n, a, func() { _, _ = c.sale.Buy(ctx, order(1, pieces), c.lock()) }) {
		return nil
	}
	sold, err := y.sellsOut(ctx, 100, stock)
	if err != nil {
		return err
	}
	if sold != stock && sold != stock-pieces {
		return broken(variant.NoUndersell, "a buyer of %d pieces died in its purchase, and of a stock of %d others could buy %d; want %d or %d", pieces, stock, sold, stock-pieces, stock)
	}
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	if s.Left != 0 || (s.Sold != stockimpl.Unsaid && s.Sold != int64(stock)) {
		return broken(variant.NoUndersell, "after the death of a buyer and the sale of all else State says %v; want none left, and %d sold", s, stock)
	}
	// The order of the dead comes again: it had its effect, or there is nothing left.
	if err := y.decided(ctx, 1, pieces); errors.As(err, new(*suitetest.NotJudged)) {
		return err
	} else if b.promises(variant.OncePerOrder) {
		if sold == stock && errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.OncePerOrder, "the order of a buyer that died was told that it had been counted, after all %d pieces had been sold to others", stock)
		}
		if sold == stock && err == nil {
			return broken(variant.NoOversell, "the order of a buyer that died was accepted after all %d pieces had been sold to others", stock)
		}
		if sold == stock && !errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(theInterface, "the order of a buyer that died, sent again after all %d pieces had been sold to others, answered %s; want %q", stock, say(err), stockimpl.ErrSoldOut)
		}
		if sold == stock-pieces && !errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.OncePerOrder, "the order of a buyer that died took %d pieces, and sent again it answered %s; want %q", pieces, say(err), stockimpl.ErrRepeated)
		}
	}
	return nil
}

// stalledBuyer holds up a buyer while others buy all, refund, or send the same order.
func stalledBuyer(ctx context.Context, b bench) error { return b.stalledBuyers(ctx, false) }

// stalledBuyers is stalledBuyer, for a buyer that finds its scripts forgotten or not.
func (b bench) stalledBuyers(ctx context.Context, forgotten bool) error {
	return b.each(ctx, []interrupt.Action{interrupt.Pass}, func(b bench, n int, _ interrupt.Action) error {
		errs := make([]error, len(whiles))
		var all sync.WaitGroup
		for i, what := range whiles {
			h := stalling{n: n, i: i, what: what, stock: cmp.Or(stocks[i], 4), pieces: 1, forgotten: forgotten}
			if h.sendsSame() && !b.promises(variant.OncePerOrder) {
				continue
			}
			own := b
			own.Product = fmt.Sprintf("%s-%d", b.Product, i)
			all.Go(func() {
				errs[i] = own.stalledWhile(ctx, h)
			})
		}
		all.Wait()
		return firstBreach(errs)
	})
}

// whiles describes what other clients do while a buyer is held up.
var whiles = []string{"others buy everything", "others buy one", "the same order is sent by another", "others buy everything and refund some", "the same order is sent by another and an order of the same size is refunded", "an order of the same size is refunded", "the same order, for all that is left, is sent by another"}

const (
	everything = iota
	one
	sameOrder
	everythingAndBack
	sameOrderAndBack
	refunded
	sameOrderForAll
)

// sendsSame reports whether another client sends the order of the buyer that is held up.
func (h stalling) sendsSame() bool {
	return h.i == sameOrder || h.i == sameOrderAndBack || h.i == sameOrderForAll
}

// stocks are the pieces on sale in single orders, by what other clients do.
var stocks = map[int]int{refunded: 2, sameOrderForAll: 1}

// earlier is the order that is refunded.
const earlier = 50

// stalling says how a buyer is held up.
type stalling struct {
	n             int // before which command
	i             int // of whiles
	what          string
	stock, pieces int
	forgotten     bool // its scripts are
}

// stalledWhile holds up a buyer before a command while something happens.
func (b bench) stalledWhile(ctx context.Context, h stalling) error {
	if b.noRefunds != nil && (h.i == everythingAndBack || h.i == sameOrderAndBack || h.i == refunded) {
		return nil
	}
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, int64(h.stock), f)
	if err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	if h.forgotten {
		h.what += ", after the server forgot the buyer's scripts"
		line.ForgetScripts()
	}
	if h.i == sameOrderAndBack || h.i == refunded {
		if err := y.decidedAlone(ctx, earlier, h.pieces); err != nil {
			return nil // other rules judge that
		}
	}
	var answer error
	call := func() (int64, error) { return c.sale.Buy(ctx, order(1, h.pieces), c.lock()) }
	s := stalled(ctx, line, h.n, func() { _, answer = call() })
	if s == nil {
		return nil
	}
	sold := 0
	if blocked := s.beside(y, func() { sold, err = y.meanwhile(ctx, h) }); blocked != nil {
		return blocked
	}
	if errors.As(err, new(*suitetest.Breach)) || errors.As(err, new(*suitetest.NotJudged)) {
		return fmt.Errorf("beside a buyer that was held up, while %s: %w", h.what, err)
	}
	if err != nil && !errors.Is(err, stockimpl.ErrSoldOut) && !maybeItself(err) {
		return broken(theInterface, "beside a buyer that was held up, while %s, a call of another client was answered %s; want success or an error of package stockimpl that is true", h.what, say(err))
	}
	got, _ := c.b.settle(ctx, answered{err: answer}, call)
	return y.afterStall(ctx, h, sold, h.counted(sold, got.err, err))
}

// counted returns nil instead of the answer of the buyer that was held up if that buyer's own call had the effect: an
// earlier answer to this buyer, or to the other client of the same order, may have left that open.
func (h stalling) counted(sold int, answer, other error) error {
	switch {
	case !h.sendsSame():
		return unlessItself(answer)
	case sold == 0 && (maybeItself(answer) || maybeItself(other) && (errors.Is(answer, stockimpl.ErrRepeated) || errors.Is(answer, stockimpl.ErrStale))):
		return nil
	}
	return answer
}

// afterStall judges the answer of a buyer that was held up while others bought.
func (y *buyer) afterStall(ctx context.Context, h stalling, sold int, answer error) error {
	switch {
	case answer == nil:
		sold += h.pieces
	case errors.Is(answer, stockimpl.ErrSoldOut) && h.i == sameOrderForAll:
		return broken(variant.OncePerOrder, "an order for all pieces, of which a copy was sent while its buyer was held up, was answered %s, and nobody else has bought; want success, or %q", say(answer), stockimpl.ErrRepeated)
	case errors.Is(answer, stockimpl.ErrSoldOut) && h.i != everything && h.i != everythingAndBack:
		return broken(variant.NoUndersell, "a buyer of %d was held up, while %s, and refused as sold out, with at least %d of %d left", h.pieces, h.what, h.stock-max(sold, h.pieces), h.stock)
	case errors.Is(answer, stockimpl.ErrRepeated) && h.sendsSame(), errors.Is(answer, stockimpl.ErrSoldOut), errors.Is(answer, stockimpl.ErrStale):
	default:
		return broken(theInterface, "a buyer that was held up, while %s, was answered %s; want success or an error of package stockimpl that is true", h.what, say(answer))
	}
	if sold > h.stock {
		return broken(variant.NoOversell, "a buyer was held up, while %s: %d pieces were sold, of %d", h.what, sold, h.stock)
	}
	if h.sendsSame() && sold != h.pieces {
		return broken(variant.OncePerOrder, "of two copies of one order, one of them held up, %d were told that they bought; want 1", sold/h.pieces)
	}
	more, err := y.sellsOut(ctx, largeID-100_000, h.stock)
	if err != nil {
		return fmt.Errorf("after a buyer was held up, while %s: %w", h.what, err)
	}
	if sold+more != h.stock {
		p := variant.NoUndersell
		if sold+more > h.stock {
			p = variant.NoOversell
		}
		return broken(p, "a buyer was held up, while %s, and answered %s: %d pieces were sold in all, of %d", h.what, say(answer), sold+more, h.stock)
	}
	return nil
}

// meanwhile does what happens while a buyer is held up, and returns how many pieces it bought.
func (y *buyer) meanwhile(ctx context.Context, h stalling) (sold int, err error) {
	switch h.i {
	case everything, everythingAndBack:
		if h.pieces == 1 && h.stock > 10 { // most of it by one order
			err = y.decidedAlone(ctx, 99, h.stock-10)
			if errors.Is(err, stockimpl.ErrSoldOut) {
				err = broken(variant.NoUndersell, "an order for %d pieces of %d was refused as sold out, while only a buyer of 1 piece had begun its purchase", h.stock-10, h.stock)
			}
			if err != nil {
				return sold, err
			}
			sold = h.stock - 10
		}
		more := 0
		more, err = y.sellsOut(ctx, 100, h.stock)
		sold += more
		if h.i == everythingAndBack && err == nil && more > 0 {
			if _, err = y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(100, 1), y.lock()) }); err == nil {
				sold--
			}
		}
	case one:
		if err = y.decidedAlone(ctx, 100, 1); err == nil {
			sold++
		}
	case refunded:
		if _, back := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(earlier, h.pieces), y.lock()) }); back != nil {
			return h.pieces, back // it may stand
		}
	case sameOrder, sameOrderAndBack, sameOrderForAll:
		if err = y.decided(ctx, 1, h.pieces); err == nil {
			sold += h.pieces
		} else if h.i == sameOrderForAll && errors.Is(err, stockimpl.ErrSoldOut) {
			return sold, broken(variant.OncePerOrder, "a copy of an order for all pieces was answered %s, and nobody else has bought; want success, %q or %q", say(err), stockimpl.ErrRepeated, stockimpl.ErrStale)
		} else if errors.Is(err, stockimpl.ErrRepeated) && !maybeItself(err) {
			err = nil
		}
		if h.i == sameOrderAndBack && (err == nil || maybeItself(err)) {
			if _, back := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(earlier, h.pieces), y.lock()) }); back != nil {
				return sold + h.pieces, back // it may stand
			}
		}
	}
	return sold, err
}

// blockedFor is how long one call may take while the suite holds another client up. It is
// longer than locks inside sales last.
const blockedFor = 7 * time.Second

// heldUp is a client that the suite holds up before a command.
type heldUp struct{ *interrupt.Stall }

// stalled starts a call of a client and holds it up before its n-th command. It returns nil if
// the call has fewer.
func stalled(ctx context.Context, line *interrupt.Interceptor, n int, call func()) *heldUp {
	return stalledBefore(ctx, line, n, interrupt.Pass, call)
}

// stalledBefore is stalled for a command that suffers a when the client goes on.
func stalledBefore(ctx context.Context, line *interrupt.Interceptor, n int, a interrupt.Action, call func()) *heldUp {
	s := line.StalledBefore(ctx, n, a, call)
	if s == nil {
		return nil
	}
	return &heldUp{s}
}

// beside runs calls of y while the client is held up, and then lets it go on. A sale may have a
// call wait for another of the same process: then the rule is not judged, since the suite itself
// keeps the other from ending.
func (s *heldUp) beside(y *buyer, calls func()) error {
	defer s.GoOn()
	done := make(chan struct{})
	go func() { defer close(done); calls() }()
	for {
		select {
		case <-done:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		if since := y.sale.since.Load(); since != 0 && time.Since(time.Unix(0, since)) > blockedFor {
			s.GoOn()
			<-done
			return &suitetest.NotJudged{Why: fmt.Sprintf("a call did not return for %v while the suite held another client up: it may wait for that client", blockedFor)}
		}
	}
}

// soon runs a call while the suite holds another client up, and reports whether it returned in
// time. If it did not, done is closed when it has.
func soon(call func()) (done <-chan struct{}, ok bool) {
	end := make(chan struct{})
	go func() { defer close(end); call() }()
	select {
	case <-end:
		return end, true
	case <-time.After(blockedFor):
		return end, false
	}
}

// stalledRefund holds up a refund while another copy of it is carried out, or others buy.
func stalledRefund(ctx context.Context, b bench) error {
	const stock = 4
	return b.eachOpened(ctx, stock, []interrupt.Action{interrupt.Pass}, func(y *buyer, n int, _ interrupt.Action) error {
		b, f := y.b, y.fences
		c, line := b.buyerOf(ctx, b.Product, f)
		if err := y.buy(ctx, variant.NoUndersell, 1, 2, nil, stock-2); err != nil {
			return &setUp{err}
		}
		var answer, other error
		call := func() (int64, error) { return c.sale.Refund(ctx, order(1, 2), c.lock()) }
		s := stalled(ctx, line, n, func() { _, answer = call() })
		if s == nil {
			return nil
		}
		if blocked := s.beside(y, func() {
			_, other = b.settled(ctx, func() (int64, error) { return y.sale.Refund(ctx, order(1, 2), y.lock()) })
		}); blocked != nil {
			return blocked
		}
		got, _ := b.settle(ctx, answered{err: answer}, call)
		answer = got.err
		for _, err := range []error{answer, other} {
			if err != nil && !errors.Is(err, stockimpl.ErrRepeated) && !errors.Is(err, stockimpl.ErrStale) {
				return broken(theInterface, "one of two copies of a refund was answered %s; want success, %q or %q", say(err), stockimpl.ErrRepeated, stockimpl.ErrStale)
			}
		}
		return y.state(ctx, variant.OncePerOrder, stock, 0)
	})
}

// otherQuantity sends an order again for another number of pieces.
func otherQuantity(ctx context.Context, b bench) error {
	const stock = 10
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	const of = variant.OncePerOrder
	if err := y.buy(ctx, of, 1, 2, nil, stock-2); err != nil {
		return err
	}
	for _, pieces := range []int{1, 3, stock + 1} {
		if _, err := y.sale.Buy(ctx, order(1, pieces), y.lock()); err == nil {
			return broken(of, "order 1 for 2 pieces was sent again for %d, and bought again", pieces)
		}
		if err := y.state(ctx, of, stock-2, 2); err != nil {
			return fmt.Errorf("after order 1 for 2 pieces was sent again for %d: %w", pieces, err)
		}
	}
	// A refund returns what was bought.
	if _, err := y.sale.Refund(ctx, order(1, 5), y.lock()); err != nil {
		return y.state(ctx, of, stock-2, 2)
	}
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(of, "state: %w", err)
	}
	if s.Left != stock {
		return broken(of, "order 1 bought 2 pieces and asked for a refund of 5: %d are left of %d; want %d", s.Left, stock, stock)
	}
	return nil
}

// refundsAtOnce sends copies of one refund at the same time.
func refundsAtOnce(ctx context.Context, b bench) error {
	const stock, copies = 10, 8
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	if err := y.buy(ctx, variant.OncePerOrder, 1, 2, nil, stock-2); err != nil {
		return err
	}
	answers := make([]error, copies)
	var all sync.WaitGroup
	for i := range copies {
		c := b.client(f)
		all.Go(func() {
			_, answers[i] = b.insist(ctx, func() (int64, error) { return c.sale.Refund(ctx, order(1, 2), c.lock()) })
		})
	}
	all.Wait()
	done, open := 0, false
	for _, err := range answers {
		open = open || maybeItself(err)
		switch {
		case err == nil:
			done++
		case !errors.Is(err, stockimpl.ErrRepeated):
			return broken(variant.OncePerOrder, "a copy of a refund was answered %s; want success or %q", say(err), stockimpl.ErrRepeated)
		}
	}
	if err := y.state(ctx, variant.OncePerOrder, stock, 0); err != nil {
		return fmt.Errorf("after %d copies of a refund at once: %w", copies, err)
	}
	if done != 1 && !(done == 0 && open) {
		return broken(variant.OncePerOrder, "%d of %d copies of a refund were told that they were the first; want 1", done, copies)
	}
	return nil
}

// mixedCrowd buys different quantities and refunds some, all at once, around the end of
// the stock. The books must add up afterwards, and what is left be sold.
func mixedCrowd(ctx context.Context, b bench) error {
	const stock, buyers, orders = 60, 10, 12
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	locked := leansOnLock(b.sale)
	var lock sync.Mutex
	call := func(do func() (int64, error)) error {
		_, err := b.insist(ctx, func() (int64, error) {
			if locked {
				lock.Lock()
				defer lock.Unlock()
			}
			return do()
		})
		return unlessItself(err)
	}
	var sold atomic.Int64
	errs := make([]error, buyers)
	var all sync.WaitGroup
	for i := range buyers {
		c := b.client(f)
		all.Go(func() {
			for n := range orders {
				o := order(int64(i*orders+n+1), 1+(i+n)%3)
				err := call(func() (int64, error) { return c.sale.Buy(ctx, o, c.lock()) })
				if errors.Is(err, stockimpl.ErrSoldOut) {
					continue
				}
				if err != nil {
					errs[i] = broken(theInterface, "buy of %d by order %d answered %s", o.Quantity, o.ID, say(err))
					return
				}
				sold.Add(int64(o.Quantity))
				if n%4 == 3 && b.noRefunds == nil {
					if err := call(func() (int64, error) { return c.sale.Refund(ctx, o, c.lock()) }); err != nil {
						errs[i] = broken(theInterface, "refund of order %d answered %s", o.ID, say(err))
						return
					}
					sold.Add(-int64(o.Quantity))
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if n := sold.Load(); n > stock {
		return broken(variant.NoOversell, "%d pieces were sold and not refunded, of %d", n, stock)
	}
	if err := y.state(ctx, variant.NoUndersell, stock-sold.Load(), sold.Load()); err != nil {
		return fmt.Errorf("after a crowd with orders of 1 to 3 pieces, and refunds: %w", err)
	}
	more, err := y.sellsOut(ctx, 10_000, stock)
	if err != nil {
		return err
	}
	if total := sold.Load() + int64(more); total != stock {
		return broken(variant.NoUndersell, "%d pieces were sold in the end, of %d", total, stock)
	}
	return nil
}

// manyOrders are so many that a flaw of one in some hundreds shows.
func manyOrders(ctx context.Context, b bench) error {
	const orders = 1203 // no multiple of 8: a sale may keep pieces in bytes
	y, err := opened(ctx, b, b.Product, orders)
	if err != nil {
		return err
	}
	for id, start := int64(1), time.Now(); id <= orders; id++ {
		if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, orders-id); err != nil {
			return err
		}
		if time.Since(start) > 2*time.Second { // a slow server
			if err := y.state(ctx, variant.NoUndersell, orders-id, id); err != nil || b.single || id == orders {
				return err
			}
			return firstOf(
				func() error { return y.buy(ctx, variant.NoUndersell, orders+1, int(orders-id), nil, 0) },
				func() error { return y.buy(ctx, variant.NoOversell, orders+2, 1, stockimpl.ErrSoldOut, 0) },
			)
		}
	}
	if b.promises(variant.OncePerOrder) {
		for id := int64(1); id <= orders; id += 7 {
			if err := y.buy(ctx, variant.OncePerOrder, id, 1, stockimpl.ErrRepeated, 0); err != nil {
				return err
			}
		}
	}
	return firstOf(
		func() error { return y.state(ctx, variant.NoUndersell, 0, orders) },
		func() error { return y.buy(ctx, variant.NoOversell, orders+1, 1, stockimpl.ErrSoldOut, 0) },
	)
}

// extremes are orders that careless arithmetic accepts, and ids that it takes for the same.
func extremes(ctx context.Context, b bench) error {
	const stock = 10
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	for i, pieces := range []int{stock + 1, 1 << 31, 1<<32 + 1, 1 << 53, math.MaxInt64} {
		if err := y.cannotBeHad(ctx, int64(i+1), pieces, stock, 0); err != nil {
			return err
		}
	}
	ids := []int64{100, 1000, 10000, 1<<31 + 100, 1<<32 + 100, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for i, id := range ids {
		if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, int64(stock-1-i)); err != nil {
			return fmt.Errorf("of the orders %v, one after the other: %w", ids, err)
		}
	}
	return y.state(ctx, variant.NoUndersell, int64(stock-len(ids)), int64(len(ids)))
}

// similarProducts have names that resemble each other. Names that share a key because keys are made of a name and signs before or after it
// are only logged.
func similarProducts(ctx context.Context, b bench) error {
	first := b.Product + "-keys"
	var keys []string // of the product with this name
	if env, touched := stockrules.Touched(b.Env(), first); len(env.Redis) > 0 {
		y := &buyer{b: b, sale: b.newSale(env, first), fences: &fences{}}
		if err := y.sale.Open(ctx, 5); err != nil {
			return fmt.Errorf("open %q: %w", first, err)
		}
		if err := y.buy(ctx, theInterface, 1, 1, nil, 4); err != nil {
			return err
		}
		found, err := keyname.Of(ctx, env.Redis[0], first)
		if err != nil {
			return err
		}
		keys = append(found, touched()...)
	}
	tried := b.names(ctx, func(p string) []string {
		if b.sale.Needs.SQL {
			return []string{p, p + "-", p + "1"}
		}
		others := keyname.Collisions(keys, first, p)
		return slices.DeleteFunc(similar(p), func(name string) bool { return slices.Contains(others, name) })
	}, func(name string, err error) bool { return name != b.Product && !errors.As(err, new(redis.Error)) })
	if err := tried.Apart(); err != nil {
		return err
	}
	others := keyname.Collisions(keys, first, b.Product)
	if len(others) == 0 {
		return nil
	}
	return &suitetest.Remark{Text: keyname.Remark("product", b.Product, others)}
}

// similar returns names that resemble a name, and the name.
func similar(p string) []string {
	names := slices.Concat(alike.Between(p), alike.Numbers(p), alike.Spelled(p+"-spelled"), alike.Rewritten(p+"-rewritten"), []string{p, p + "-", p[:len(p)-1], p + ":", p + ":1", p + "*", p + "?", p + " ", p + "\n", p + "%", strings.ToUpper(p), p + strings.Repeat("x", 60), p + strings.Repeat("x", 60) + "y"})
	if bare := strings.NewReplacer("{", "", "}", "").Replace(p); bare != p {
		names = append(names, bare)
	}
	return names
}

// promises tells whether the sale makes a promise.
func (b bench) promises(p variant.Property) bool { return slices.Contains(b.sale.Promises, p) }
