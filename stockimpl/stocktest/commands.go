package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/internal/keyname"
	"oversell/stockimpl"
	"oversell/variant"
)

// Some rules in this file act on one command among those of a call: they hold a buyer up
// before it, lose its request or its answer, or have the buyer die there.

// The last command of a call that they act on: at least fewest, and most if the calls are long.
const fewest, most = 5, 20

var said = map[interrupt.Action]string{interrupt.Pass: "", interrupt.Refuse: " (refused)", interrupt.LoseRequest: " (not executed)", interrupt.LoseReply: " (executed, not answered)"}

// What is done to a command: its client is held up before it, or loses its request or its answer.
var (
	paused   = []interrupt.Action{interrupt.Pass}
	bothWays = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply}
)

// fences issues the tokens of a product, each newer than all before.
type fences struct{ last atomic.Int64 }

// buyerOf returns another client of a product, with commands that the suite can interrupt.
func (b bench) buyerOf(ctx context.Context, product string, f *fences) (*buyer, *interrupt.Line) {
	env, line := interrupt.On(b.Env())
	y := &buyer{b: b, sale: b.newSale(env, product), fences: f}
	// Its scripts are loaded by the first purchase of another product.
	practice := &buyer{b: b, sale: b.newSale(env, product+"-practice"), fences: &fences{}}
	if practice.sale.Open(ctx, 5) == nil {
		_, _ = practice.sale.Buy(ctx, order(1, 1), practice.lock())
		_, _ = practice.sale.Refund(ctx, order(1, 1), practice.lock())
	}
	line.Plan(nil)
	return y, line
}

// rehearsed puts the bench's product on sale, and returns the client that did and one whose commands can be acted upon.
func (b bench) rehearsed(ctx context.Context, stock int) (y, c *buyer, line *interrupt.Line, err error) {
	f := &fences{}
	if y, err = openedWith(ctx, b, b.Product, int64(stock), f); err != nil {
		return nil, nil, nil, err
	}
	c, line = b.buyerOf(ctx, b.Product, f)
	return y, c, line, nil
}

// eachRehearsed is each for a case that begins with clients as rehearsed returns them.
func (b bench) eachRehearsed(ctx context.Context, actions []interrupt.Action, stock int, check func(y, c *buyer, line *interrupt.Line, n int, a interrupt.Action) error) error {
	return b.each(ctx, actions, func(b bench, n int, a interrupt.Action) error {
		y, c, line, err := b.rehearsed(ctx, stock)
		if err != nil {
			return err
		}
		return check(y, c, line, n, a)
	})
}

// setUp is what went wrong before a command was interfered with.
type setUp struct{ error }

func (s *setUp) Unwrap() error { return s.error }

// steps returns how many commands to interrupt: one more than a purchase, a refund and an impossible order send.
func (b bench) steps(ctx context.Context) int {
	b.Product += "-steps"
	_, c, line, err := b.rehearsed(ctx, 5)
	if err != nil {
		return fewest
	}
	longest := 0
	for _, call := range []func(){
		func() { _, _ = c.sale.Buy(ctx, order(1, 2), c.lock()) },
		func() { _, _ = c.sale.Buy(ctx, order(2, 6), c.lock()) },
		func() { _, _ = c.sale.Refund(ctx, order(1, 2), c.lock()) },
	} {
		line.Plan(nil)
		call()
		longest = max(longest, line.Sent())
	}
	return min(max(longest+1, fewest), most)
}

// each runs a case for every step and action, on a product of its own.
func (b bench) each(ctx context.Context, actions []interrupt.Action, check func(b bench, n int, a interrupt.Action) error) error {
	steps := b.steps(ctx)
	return atOnce(steps*len(actions), func(i int) error {
		n, a := i/len(actions)+1, actions[i%len(actions)]
		own := b
		own.Product = fmt.Sprintf("%s-%d-%d", b.Product, n, a)
		err := check(own, n, a)
		if !errors.As(err, new(*setUp)) && (errors.As(err, new(*breach)) || errors.As(err, new(*notJudged))) {
			err = fmt.Errorf("at command %d%s: %w", n, said[a], err)
		}
		return err
	})
}

// atOnce tries so many cases at once.
func atOnce(n int, try func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = try(i) })
	}
	all.Wait()
	return firstBreach(errs)
}

// undecided is how long an order may be answered as stale while no other client buys: longer than pieces are reserved
// for a dead buyer.
const undecided = 8 * time.Second

// decided repeats an order until it is decided: it may be stale, or its answer may be lost.
func (y *buyer) decided(ctx context.Context, id int64, pieces int) error {
	start := time.Now()
	for {
		_, err := y.sale.Buy(ctx, order(id, pieces), y.lock())
		if !errors.Is(err, stockimpl.ErrStale) {
			return err
		}
		if time.Since(start) > undecided {
			if s, err := y.sale.State(ctx); err == nil && s.Reserved > 0 {
				return &notJudged{fmt.Sprintf("an order was told for %v to come again, and State says that %d pieces are still reserved: the suite does not wait for longer reservations to end", undecided, s.Reserved)}
			}
			return broken(variant.NoUndersell, "an order for %d pieces was told for %v to come again, each time with a newer token, while nobody else bought: it is neither accepted nor refused", pieces, undecided)
		}
		if (clock.Real{}).Sleep(ctx, time.Millisecond) != nil {
			return fmt.Errorf("order %d is stale and stays so: %w", id, context.Cause(ctx))
		}
	}
}

// sellsOut sells single pieces until the stock is sold out, and returns how many.
func (y *buyer) sellsOut(ctx context.Context, from int64, most int) (int, error) {
	for n := 0; ; n++ {
		err := y.decided(ctx, from+int64(n), 1)
		switch {
		case errors.Is(err, stockimpl.ErrSoldOut):
			return n, nil
		case errors.As(err, new(*breach)), errors.As(err, new(*notJudged)):
			return n, err
		case err != nil:
			return n, broken(theInterface, "buy of 1 by order %d answered %s", from+int64(n), say(err))
		case n > most:
			return n, broken(variant.NoOversell, "%d pieces were sold, of %d", n, most)
		}
	}
}

// interruptedOrder is the first order of a new sale, with one interrupted command.
type interruptedOrder struct {
	opener, buyer *buyer
	line          *interrupt.Line
	answer        error
}

// eachInterrupted has a buyer order so many pieces, does something to each command of that in turn, and then judges.
func (b bench) eachInterrupted(ctx context.Context, stock, pieces int, then func(o interruptedOrder, n int, a interrupt.Action) error) error {
	return b.eachRehearsed(ctx, bothWays, stock, func(y, c *buyer, line *interrupt.Line, n int, a interrupt.Action) error {
		line.Arm(n, a)
		answer := c.buys(ctx, 1, pieces)
		reached := line.Sent() >= n
		line.Plan(nil)
		if !reached {
			return nil
		}
		return then(interruptedOrder{y, c, line, answer}, n, a)
	})
}

// lostOrder: an order with a lost answer is sent again, and counts once.
func lostOrder(ctx context.Context, b bench) error {
	const stock, pieces = 6, 2
	return b.eachInterrupted(ctx, stock, pieces, func(o interruptedOrder, n int, a interrupt.Action) error {
		y, c, err := o.opener, o.buyer, o.answer
		what := "an order whose answer was lost"
		if errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(variant.NoUndersell, "%s was told that the stock is sold out, with %d pieces left", what, stock)
		}
		if err != nil {
			if err := c.decided(ctx, 1, pieces); errors.As(err, new(*notJudged)) {
				return err
			} else if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
				return broken(variant.NoUndersell, "%s, sent again with %d pieces there, answered %s", what, stock, say(err))
			}
		}
		if err := y.state(ctx, variant.OncePerOrder, stock-pieces, pieces); err != nil {
			return fmt.Errorf("after %s was sent again: %w", what, err)
		}
		o.line.Arm(n, a)
		_, err = c.sale.Refund(ctx, order(1, pieces), c.lock())
		reached := o.line.Sent() >= n
		o.line.Plan(nil)
		for tries := 0; err != nil && !errors.Is(err, stockimpl.ErrRepeated) && tries < 5; tries++ {
			_, err = c.sale.Refund(ctx, order(1, pieces), c.lock())
		}
		if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.NoUndersell, "a refund whose answer was lost, sent again, answered %s", say(err))
		}
		if !reached {
			return nil
		}
		return y.state(ctx, variant.OncePerOrder, stock, 0)
	})
}

// lostAnswer: a purchase that was sent once takes its pieces once, however its client handles a lost answer.
func lostAnswer(ctx context.Context, b bench) error {
	const stock, pieces = 6, 2
	return b.eachInterrupted(ctx, stock, pieces, func(o interruptedOrder, _ int, _ interrupt.Action) error {
		y, err := o.opener, o.answer
		s, look := y.sale.State(ctx)
		if look != nil {
			return fmt.Errorf("state: %w", look)
		}
		if s.Left+s.Reserved < stock-pieces {
			return broken(variant.NoUndersell, "a purchase of %d that had lost an answer (%s) left %+v of %d: pieces are gone that nobody bought", pieces, say(err), s, stock)
		}
		return y.told(ctx, "during which the connection was lost", err, stock, pieces)
	})
}

// deadBuyer: data left by a dead buyer must neither block the sale of its pieces nor sell them twice.
func deadBuyer(ctx context.Context, b bench) error {
	return b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		return b.deadBuyer(ctx, n, a, 5, 2)
	})
}

// deadBuyer has a buyer of so many pieces die at its n-th command.
func (b bench) deadBuyer(ctx context.Context, n int, a interrupt.Action, stock, pieces int) error {
	y, c, line, err := b.rehearsed(ctx, stock)
	if err != nil {
		return err
	}
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
	s, err := y.holds(ctx)
	if err != nil {
		return err
	}
	if s.Left != 0 || (s.Sold != stockimpl.Unsaid && s.Sold != int64(stock)) {
		return broken(variant.NoUndersell, "after the death of a buyer and the sale of all else the server holds %+v; want none left, and %d sold", s, stock)
	}
	// The order of the dead buyer is sent again: it had its effect, or nothing is left.
	if err := y.decided(ctx, 1, pieces); errors.As(err, new(*notJudged)) {
		return err
	} else if b.promises(variant.OncePerOrder) {
		if sold == stock && errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.OncePerOrder, "the order of a buyer that died was told that it had been counted, after all %d pieces had been sold to others", stock)
		}
		if sold == stock && !errors.Is(err, stockimpl.ErrSoldOut) {
			return broken(variant.NoOversell, "the order of a buyer that died was accepted after all pieces had been sold to others: it answered %s", say(err))
		}
		if sold == stock-pieces && !errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.OncePerOrder, "the order of a buyer that died took %d pieces, and sent again it answered %s; want %q", pieces, say(err), stockimpl.ErrRepeated)
		}
	}
	return nil
}

// stalledBuyer holds up a buyer while others buy all, refund, or send the same order.
func stalledBuyer(ctx context.Context, b bench) error { return b.stalledBuyers(ctx, false) }

// stalledBuyers is stalledBuyer for a buyer with scripts that the server has forgotten or not.
func (b bench) stalledBuyers(ctx context.Context, forgotten bool) error {
	return b.each(ctx, paused, func(b bench, n int, _ interrupt.Action) error {
		return atOnce(len(whiles), func(i int) error {
			if (i == sameOrder || i == sameOrderAndBack) && !b.promises(variant.OncePerOrder) {
				return nil
			}
			own := b
			own.Product = fmt.Sprintf("%s-%d", b.Product, i)
			return own.stalledWhile(ctx, stalling{n: n, i: i, what: whiles[i], stock: 4, pieces: 1, forgotten: forgotten})
		})
	})
}

// whiles are the events while a buyer is held up.
var whiles = []string{"others buy everything", "others buy one", "the same order is sent by another", "others buy everything and give some back", "the same order is sent by another and an order of the same size is given back"}

const (
	everything = iota
	one
	sameOrder
	everythingAndBack
	sameOrderAndBack
)

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

// stalledWhile holds up a buyer before a command while one of whiles happens.
func (b bench) stalledWhile(ctx context.Context, h stalling) error {
	y, c, line, err := b.rehearsed(ctx, h.stock)
	if err != nil {
		return err
	}
	if h.forgotten {
		h.what += ", after the server forgot the buyer's scripts"
		line.ForgetScripts()
	}
	if h.i == sameOrderAndBack {
		if err := y.decided(ctx, earlier, h.pieces); err != nil {
			return nil // other rules judge that
		}
	}
	s := stalled(ctx, line, h.n, func() error { return c.buys(ctx, 1, h.pieces) })
	if s == nil {
		return nil
	}
	sold := 0
	if blocked := s.beside(y, func() { sold, err = y.meanwhile(ctx, h) }); blocked != nil {
		return blocked
	}
	if errors.As(err, new(*breach)) || errors.As(err, new(*notJudged)) {
		return fmt.Errorf("beside a buyer that was held up, while %s: %w", h.what, err)
	}
	if err != nil && !errors.Is(err, stockimpl.ErrSoldOut) {
		return broken(theInterface, "beside a buyer that was held up, while %s: %w", h.what, err)
	}
	return y.afterStall(ctx, h, sold, s.answer)
}

// afterStall judges the answer of a buyer that was held up while others bought.
func (y *buyer) afterStall(ctx context.Context, h stalling, sold int, answer error) error {
	switch {
	case answer == nil:
		sold += h.pieces
	case errors.Is(answer, stockimpl.ErrSoldOut) && h.i != everything && h.i != everythingAndBack:
		return broken(variant.NoUndersell, "a buyer of %d was held up, while %s, and refused as sold out, with at least %d of %d left", h.pieces, h.what, h.stock-max(sold, h.pieces), h.stock)
	case errors.Is(answer, stockimpl.ErrRepeated) && (h.i == sameOrder || h.i == sameOrderAndBack), errors.Is(answer, stockimpl.ErrSoldOut), errors.Is(answer, stockimpl.ErrStale):
	default:
		return broken(theInterface, "a buyer that was held up, while %s, was answered %s", h.what, say(answer))
	}
	if sold > h.stock {
		return broken(variant.NoOversell, "a buyer was held up, while %s: %d pieces were sold, of %d", h.what, sold, h.stock)
	}
	if (h.i == sameOrder || h.i == sameOrderAndBack) && sold != h.pieces {
		return broken(variant.OncePerOrder, "of two copies of one order, one of them held up, %d were told that they bought; want 1", sold/h.pieces)
	}
	more, err := y.sellsOut(ctx, 1_000_000, h.stock)
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

// meanwhile runs the event while a buyer is held up, and returns how many pieces it bought.
func (y *buyer) meanwhile(ctx context.Context, h stalling) (sold int, err error) {
	switch h.i {
	case everything, everythingAndBack:
		if h.pieces == 1 && h.stock > 10 { // most of it by one order
			err = y.decided(ctx, 99, h.stock-10)
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
			if _, err = y.sale.Refund(ctx, order(100, 1), y.lock()); err == nil {
				sold--
			}
		}
	case one:
		if err = y.decided(ctx, 100, 1); err == nil {
			sold++
		}
	case sameOrder:
		if err = y.decided(ctx, 1, h.pieces); err == nil {
			sold += h.pieces
		} else if errors.Is(err, stockimpl.ErrRepeated) {
			err = nil
		}
	case sameOrderAndBack:
		if err = y.decided(ctx, 1, h.pieces); err == nil {
			sold += h.pieces
		} else if errors.Is(err, stockimpl.ErrRepeated) {
			err = nil
		}
		if err == nil {
			if _, err = y.sale.Refund(ctx, order(earlier, h.pieces), y.lock()); err != nil {
				sold += h.pieces // it may stand
			}
		}
	}
	return sold, err
}

// blockedFor is how long one call may take while the suite holds another client up. It is
// longer than locks inside sales last.
const blockedFor = 7 * time.Second

// heldUp is a client that the suite holds up before a command, with the answer that it has got when it has gone on.
type heldUp struct {
	*interrupt.Stall
	answer error
}

// stalled starts a call of a client and holds it up before its n-th command. It returns nil if
// the call has fewer.
func stalled(ctx context.Context, line *interrupt.Line, n int, call func() error) *heldUp {
	s := &heldUp{}
	if s.Stall = line.Stalled(ctx, n, func() { s.answer = call() }); s.Stall == nil {
		return nil
	}
	return s
}

// eachHeld holds up a client of a new product before each command of a call in turn.
func (b bench) eachHeld(ctx context.Context, stock int, call func(c *buyer) error, then func(y *buyer, s *heldUp) error) error {
	return b.eachRehearsed(ctx, paused, stock, func(y, c *buyer, line *interrupt.Line, n int, _ interrupt.Action) error {
		s := stalled(ctx, line, n, func() error { return call(c) })
		if s == nil {
			return nil
		}
		return then(y, s)
	})
}

// buys and gives are purchases and refunds of which only the error counts.
func (y *buyer) buys(ctx context.Context, id int64, pieces int) error {
	_, err := y.sale.Buy(ctx, order(id, pieces), y.lock())
	return err
}

func (y *buyer) gives(ctx context.Context, id int64, pieces int) error {
	_, err := y.sale.Refund(ctx, order(id, pieces), y.lock())
	return err
}

// beside runs calls of y while the client is held up, and then lets it go on. In a sale a call may wait for another of
// the same process: then the rule is not judged, since the suite itself keeps the other from ending.
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
			return &notJudged{fmt.Sprintf("a call did not return for %v while the suite held another client up: it may wait for that client", blockedFor)}
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
	return b.eachRehearsed(ctx, paused, stock, func(y, c *buyer, line *interrupt.Line, n int, _ interrupt.Action) error {
		err := y.buy(ctx, variant.NoUndersell, 1, 2, nil, stock-2)
		if err != nil {
			return &setUp{err}
		}
		s := stalled(ctx, line, n, func() error { return c.gives(ctx, 1, 2) })
		if s == nil {
			return nil
		}
		if blocked := s.beside(y, func() { _, err = y.sale.Refund(ctx, order(1, 2), y.lock()) }); blocked != nil {
			return blocked
		}
		for _, err := range []error{s.answer, err} {
			if err != nil && !errors.Is(err, stockimpl.ErrRepeated) && !errors.Is(err, stockimpl.ErrStale) {
				return broken(theInterface, "one of two copies of a refund was answered %s", say(err))
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
	// A refund gives back what was bought.
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
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	if err := y.buy(ctx, variant.OncePerOrder, 1, 2, nil, stock-2); err != nil {
		return err
	}
	answers := make([]error, copies)
	var all sync.WaitGroup
	for i := range copies {
		c := b.client(y.fences)
		all.Go(func() {
			for ctx.Err() == nil {
				if _, answers[i] = c.sale.Refund(ctx, order(1, 2), c.lock()); !errors.Is(answers[i], stockimpl.ErrStale) {
					return
				}
			}
		})
	}
	all.Wait()
	done, err := firsts(answers, "a copy of a refund was answered")
	if err != nil {
		return err
	}
	if err := y.state(ctx, variant.OncePerOrder, stock, 0); err != nil {
		return fmt.Errorf("after %d copies of a refund at once: %w", copies, err)
	}
	if done != 1 {
		return broken(variant.OncePerOrder, "%d of %d copies of a refund were told that they were the first; want 1", done, copies)
	}
	return nil
}

// mixedCrowd buys different quantities and refunds some, all at once, around the end of the stock. Afterwards the books
// must add up, and the rest must be sold.
func mixedCrowd(ctx context.Context, b bench) error {
	const stock, buyers, orders = 60, 10, 12
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	call := b.turns(ctx)
	var sold atomic.Int64
	errs := make([]error, buyers)
	var all sync.WaitGroup
	for i := range buyers {
		c := b.client(y.fences)
		all.Go(func() {
			for n := range orders {
				o := order(int64(i*orders+n+1), 1+(i+n)%3)
				_, err := call(func() (int64, error) { return c.sale.Buy(ctx, o, c.lock()) })
				if errors.Is(err, stockimpl.ErrSoldOut) {
					continue
				}
				if err != nil {
					errs[i] = broken(theInterface, "buy of %d by order %d answered %s", o.Quantity, o.ID, say(err))
					return
				}
				sold.Add(int64(o.Quantity))
				if n%4 == 3 {
					if _, err := call(func() (int64, error) { return c.sale.Refund(ctx, o, c.lock()) }); err != nil {
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
		return broken(variant.NoOversell, "%d pieces were sold and not given back, of %d", n, stock)
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

// manyOrders makes so many orders that a fault in one of some hundred shows.
func manyOrders(ctx context.Context, b bench) error {
	const orders = 1200
	y, err := opened(ctx, b, b.Product, orders)
	if err != nil {
		return err
	}
	for id, start := int64(1), time.Now(); id <= orders; id++ {
		if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, orders-id); err != nil {
			return err
		}
		if time.Since(start) > 2*time.Second { // a slow server
			return y.state(ctx, variant.NoUndersell, orders-id, id)
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

// otherClients: other clients change the stock that a client has read.
func otherClients(ctx context.Context, b bench) error {
	one, err := opened(ctx, b, b.Product, 3)
	if err != nil {
		return err
	}
	client := func() *buyer { return b.client(one.fences) }
	two := client()
	return firstOf(
		func() error { return one.buy(ctx, variant.NoUndersell, 1, 1, nil, 2) },
		func() error { return two.buy(ctx, variant.NoUndersell, 2, 2, nil, 0) },
		func() error { return one.buy(ctx, variant.NoOversell, 3, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return client().buy(ctx, variant.NoOversell, 4, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return two.refund(ctx, variant.NoUndersell, 2, 2, nil, 2) },
		func() error { return one.buy(ctx, variant.NoUndersell, 5, 1, nil, 1) },
		func() error { return client().buy(ctx, variant.NoUndersell, 6, 1, nil, 0) },
		func() error { return two.buy(ctx, variant.NoOversell, 7, 1, stockimpl.ErrSoldOut, 0) },
		func() error { return one.state(ctx, variant.NoUndersell, 0, 3) },
	)
}

// extremes makes orders that careless arithmetic accepts, with ids that it takes for equal.
func extremes(ctx context.Context, b bench) error {
	const stock = 10
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return err
	}
	for i, pieces := range []int{stock + 1, 1 << 31, 1<<32 + 1, 1 << 53, math.MaxInt64} {
		if left, err := y.sale.Buy(ctx, order(int64(i+1), pieces), y.lock()); err == nil {
			return broken(variant.NoOversell, "an order for %d pieces was accepted with %d there (%d left)", pieces, stock, left)
		}
		if err := y.state(ctx, variant.NoOversell, stock, 0); err != nil {
			return fmt.Errorf("after an order for %d pieces: %w", pieces, err)
		}
	}
	ids := []int64{100, 1000, 10000, 1<<31 + 100, 1<<32 + 100, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}
	for i, id := range ids {
		if err := y.buy(ctx, variant.NoUndersell, id, 1, nil, int64(stock-1-i)); err != nil {
			return fmt.Errorf("with orders %v: %w", ids[:i], err)
		}
	}
	return y.state(ctx, variant.NoUndersell, int64(stock-len(ids)), int64(len(ids)))
}

// similarProducts uses names that resemble each other, and each other's keys.
func similarProducts(ctx context.Context, b bench) error {
	p := b.Product
	names := []string{p, p + "-", p[:len(p)-1], p + ":", p + ":1", p + ":sold", p + ":orders", p + ":stock", p + "*", p + "?", p + " ", p + "\n", p + "%", strings.ToUpper(p), p + strings.Repeat("x", 60), p + strings.Repeat("x", 60) + "y"}
	if b.sale.Needs.SQL {
		names = []string{p, p + "-", p + "1"}
	}
	if rdb := b.Env().Redis; len(rdb) > 0 {
		// The keys show names that would share a key.
		first := p + "-keys"
		y, err := opened(ctx, b, first, 5)
		if err != nil {
			return err
		}
		if err := y.buy(ctx, theInterface, 1, 1, nil, 4); err != nil {
			return err
		}
		found, err := keyname.Of(ctx, rdb[0], first)
		if err != nil {
			return err
		}
		for _, name := range keyname.Collisions(found, first) {
			names = append(names, strings.Replace(name, first, p, 1))
		}
	}
	var all []*buyer
	for i, name := range names {
		y, err := opened(ctx, b, name, int64(10+i))
		if err != nil {
			return err
		}
		all = append(all, y)
	}
	for i, y := range all {
		if err := y.untouched(ctx, i, names); err != nil {
			return err
		}
		of := theInterface
		if b.promises(variant.NoUndersell) {
			of = variant.NoUndersell // its pieces cannot be sold beside the others'
		}
		if err := y.buy(ctx, of, 1, i%3+1, nil, int64(10+i-i%3-1)); err != nil {
			return fmt.Errorf("with products of similar names, %q: %w", names[i], err)
		}
	}
	for i, y := range all {
		if err := y.state(ctx, theInterface, int64(10+i-i%3-1), int64(i%3+1)); err != nil {
			return fmt.Errorf("with products of similar names, %q: %w", names[i], err)
		}
	}
	return nil
}

// promises reports whether the sale makes a promise.
func (b bench) promises(p variant.Property) bool { return slices.Contains(b.sale.Promises, p) }
