package stocktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/emulated"
	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockrules"
	"oversell/variant"
)

// The rules in this file move the clock of the server: a year is over in no time.

// onVirtualClock runs a check on the emulation. The clock there is far ahead of the real one, runs at its pace, and is
// advanced by the check. onVirtualClock reports whether the sale can be judged there. It cannot if it sends times of
// the real clock to the server, or if it uses commands that the emulation does not know: then it does not sell there at
// all.
func (b bench) onVirtualClock(ctx context.Context, check func(b bench, pass func(time.Duration)) error) (judged bool, err error) {
	at, err := emulated.Judge(func(server *emulated.Server) error {
		defer server.Ticks(ctx)()
		own := b
		own.Env = server.Env
		works := own
		works.Product += "-works"
		if works.sellsAtAll(ctx) != nil {
			return errUnfit
		}
		if err := check(own, server.Clock.Advance); err != nil || !server.Real() {
			return err
		}
		return errReal
	})
	switch {
	case at != "" || errors.Is(err, errUnfit) || errors.As(err, new(*suitetest.Remark)):
		return false, nil
	case errors.Is(err, errReal): // it was no time
		return true, nil
	}
	return true, err
}

var (
	errUnfit = errors.New("the sale does not sell on a clock that is moved")
	errReal  = errors.New("the sale was as it should be, and may have sent times of the real clock")
)

// sellsAtAll returns an error if two purchases and, if the sale refunds, a refund do not succeed.
func (b bench) sellsAtAll(ctx context.Context) error {
	y, err := opened(ctx, b, b.Product, 5)
	if err != nil {
		return err
	}
	for id := int64(1); id <= 2; id++ {
		if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(id, 2), y.lock()) }); err != nil {
			return err
		}
	}
	if b.noRefunds != nil {
		return y.state(ctx, theInterface, 1, 4)
	}
	if _, err := y.again(ctx, nil, func() (int64, error) { return y.sale.Refund(ctx, order(1, 2), y.lock()) }); err != nil {
		return err
	}
	return y.state(ctx, theInterface, 3, 2)
}

// serverTimes: what a sale knows of orders, refunds and tokens must outlast minutes, hours, days and a
// year of the server's clock.
func serverTimes(ctx context.Context, b bench) error {
	_, err := b.onVirtualClock(ctx, func(b bench, pass func(time.Duration)) error {
		for _, passed := range []time.Duration{45 * time.Second, 3 * time.Minute, 17 * time.Minute, 2 * time.Hour, 26 * time.Hour, 9 * 24 * time.Hour, 40 * 24 * time.Hour, 366 * 24 * time.Hour} {
			own := b
			own.Product = fmt.Sprintf("%s-%v", b.Product, passed)
			move := func() error { pass(passed); return nil }
			if err := own.laterBy(ctx, move, nil, fmt.Sprintf("%v after a purchase", passed)); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// longest is how long pieces may be set aside for an order, if the bench does not say so.
const longest = 32 * 24 * time.Hour

// reservationsEnd: when the time of reservations is over and others have bought since, no piece is set aside for an
// order that is decided, or whose buyer died, or that was sent twice. However many buyers died, one order can buy all
// of their pieces.
func reservationsEnd(ctx context.Context, b bench) error {
	return b.afterReservations(ctx, bench.reservedFor)
}

// heldBeyond: a buyer that is held up until its reservation is over, and others have bought all, sells no piece twice.
func heldBeyond(ctx context.Context, b bench) error {
	return b.afterReservations(ctx, bench.heldFor)
}

// afterReservations runs a check that moves the clock past the end of all reservations, by calling pass.
func (b bench) afterReservations(ctx context.Context, check func(b bench, ctx context.Context, pass func() error) error) error {
	after := b.Reserves
	if after == 0 {
		after = longest
	}
	judged, err := b.onVirtualClock(ctx, func(b bench, pass func(time.Duration)) error {
		if aside, err := b.setsAside(ctx); err != nil || !aside {
			return err
		}
		return check(b, ctx, func() error { pass(after + time.Second); return nil })
	})
	if judged || err != nil {
		return err
	}
	if aside, err := b.setsAside(ctx); err != nil || !aside {
		return err
	}
	switch {
	case b.Reserves == 0:
		return fmt.Errorf("not judged: pieces are set aside by a clock that the suite cannot move. Say in Bench.Reserves for how long they are, at most %v in the test, so that it can wait until they have come back", undecided)
	case b.Reserves > undecided:
		return &suitetest.NotJudged{Why: fmt.Sprintf("pieces are set aside for %v by a clock that the suite cannot move, and it does not wait for so long", b.Reserves)}
	}
	return check(b, ctx, func() error { return (clock.Real{}).Sleep(ctx, b.Reserves+time.Second/2) })
}

// befalls describes what can happen to a buyer at one of its commands.
var befalls = []string{
	"a buyer died at %s of its purchase",
	"a buyer died at %s of its purchase, and another sent the order again",
	"a buyer was held up before %s of its purchase, while another sent the order",
	"a buyer died at %s of its purchase, and another sent the order again for fewer pieces",
}

const (
	diesAlone = iota
	diesAndAgain
	heldBesideCopy
	diesAndFewer
)

// orderedPieces is the number of pieces in the order of a buyer that one of befalls happens to.
const orderedPieces = 2

// reservedFor tries everything that may befall a buyer, and looks what is set aside when the time of
// reservations has passed for all of them.
func (b bench) reservedFor(ctx context.Context, pass func() error) error {
	const stock = 6
	type tried struct {
		y      *buyer
		what   string
		pieces []int
	}
	var mu sync.Mutex
	var cases []tried
	if err := b.each(ctx, bothWays, func(b bench, n int, a interrupt.Action) error {
		for i, what := range befalls {
			if i != diesAlone && !b.promises(variant.OncePerOrder) || i == heldBesideCopy && a != bothWays[0] {
				continue
			}
			own := b
			own.Product = fmt.Sprint(b.Product, "-", i)
			f := &fences{}
			y, err := openedWith(ctx, own, own.Product, stock, f)
			if err != nil {
				return err
			}
			if i == heldBesideCopy {
				a = interrupt.Pass
			}
			if reached, err := own.befall(ctx, y, f, n, a, i); err != nil || !reached {
				return err
			}
			mu.Lock()
			c := tried{y, fmt.Sprintf(what, fmt.Sprint("command ", n, said[a])), []int{orderedPieces}}
			if i == diesAndFewer {
				c.pieces = append(c.pieces, orderedPieces-1)
			}
			cases = append(cases, c)
			mu.Unlock()
		}
		return nil
	}); err != nil {
		return err
	}
	crowd, err := b.abandon(ctx)
	if err != nil {
		return err
	}
	passed := pass
	if crowd != nil {
		crowd.y.b.Reserves = time.Second
		passed = func() error { return crowd.pass(ctx, pass) }
	}
	if err := passed(); err != nil {
		return err
	}
	for _, c := range cases {
		c.y.b.Reserves = time.Second // which has passed
		if err := c.y.nothingAside(ctx, stock, c.pieces...); err != nil {
			return fmt.Errorf("%s, and then the time of reservations passed: %w", c.what, err)
		}
	}
	if crowd != nil {
		return crowd.comesBack(ctx)
	}
	return nil
}

// reconciles tries when Reconcile ends reservations, on the emulation.
func reconciles(ctx context.Context, b bench) error {
	_, err := b.onVirtualClock(ctx, func(b bench, pass func(time.Duration)) error {
		if _, ok := b.client(&fences{}).sale.Sale.(stockimpl.Reconciler); !ok {
			return nil
		}
		env := b.Env()
		b.practise(ctx, env, b.Product)
		for n := range b.steps(ctx) {
			own := b
			own.Product = fmt.Sprint(b.Product, "-dies-", n)
			y, err := opened(ctx, own, own.Product, 5)
			if err != nil || !y.dies(ctx, env, n+1, interrupt.LoseReply, order(1, b.several(2))) {
				return err
			}
			if s, err := y.sale.State(ctx); err != nil || s.Reserved == 0 {
				continue
			}
			products := 0
			return stockrules.Due{Pieces: int64(b.several(2)), Pass: pass, Open: func(stock int64) (*stockrules.Dying, error) {
				products++
				own := b
				own.Product = fmt.Sprint(b.Product, "-due-", products)
				y, err := opened(ctx, own, own.Product, stock)
				if err != nil {
					return nil, err
				}
				return y.dying(ctx, env, n+1, interrupt.LoseReply, b.several(2)), nil
			}}.Reconciles(ctx)
		}
		return nil
	})
	return err
}

// shownReserved looks at State after the death of a buyer at each of its commands.
func shownReserved(ctx context.Context, b bench) error {
	_, err := b.onVirtualClock(ctx, func(b bench, pass func(time.Duration)) error {
		env := b.Env()
		b.practise(ctx, env, b.Product)
		stock := b.several(2)
		for n := 1; n <= b.steps(ctx); n++ {
			own := b
			own.Product = fmt.Sprint(b.Product, "-middle-", n)
			y, err := opened(ctx, own, own.Product, int64(stock))
			if err != nil || !y.dies(ctx, env, n, interrupt.LoseReply, order(1, stock)) {
				return err
			}
			m := stockrules.Middle{Stock: int64(stock), Command: n, Later: func() (int, error) {
				pass(cmp.Or(b.Reserves, longest) + time.Second)
				if r, ok := y.sale.Sale.(stockimpl.Reconciler); ok {
					_, _ = r.Reconcile(ctx)
				}
				return y.sellsOut(ctx, 1000, stock)
			}}
			if m.At, err = y.sale.State(ctx); err != nil {
				return broken(theInterface, "state: %w", err)
			}
			_, m.Other = y.sale.Buy(ctx, order(2, stock), y.lock())
			if err := m.Shown(); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// refusesStale tries stockrules.RefusesStale on the emulation, where no other rule writes what the sale may watch.
func refusesStale(ctx context.Context, b bench) error {
	_, err := b.onVirtualClock(ctx, func(b bench, _ func(time.Duration)) error {
		if _, ok := b.client(&fences{}).sale.Sale.(stockimpl.Optimist); !ok {
			return nil
		}
		return stockrules.RefusesStale(b.steps(ctx), b.noRefunds == nil, func(c stockrules.Clash) (stockrules.Clashed, error) { return b.clash(ctx, c) })
	})
	return err
}

// clash makes one call for refusesStale.
func (b bench) clash(ctx context.Context, c stockrules.Clash) (got stockrules.Clashed, err error) {
	const stock = 20
	b.Product = fmt.Sprintf("%s-clash-%t-%t-%d", b.Product, c.Refund, c.Told, c.N)
	y, err := opened(ctx, b, b.Product, stock)
	if err != nil {
		return got, err
	}
	if err := y.buy(ctx, variant.NoUndersell, 1, 1, nil, stock-1); err != nil {
		return got, err
	}
	z, line := b.buyerOf(ctx, b.Product, y.fences)
	if o, ok := z.sale.Sale.(stockimpl.Optimist); ok && c.Told {
		o.RefuseStale()
	}
	_, _ = z.sale.Buy(ctx, order(4, 1), z.lock()) // the setting is for all calls
	before, err := y.sale.State(ctx)
	if err != nil {
		return got, broken(theInterface, "state: %w", err)
	}
	do, o := z.sale.Buy, order(2, 1)
	if c.Refund {
		do, o = z.sale.Refund, order(1, 1)
	}
	if s := stalled(ctx, line, c.N, func() { _, got.Answer = do(ctx, o, z.lock()); got.Sent = line.Sent() }); s != nil {
		if blocked := s.beside(y, func() { got.Met = y.decided(ctx, 3, 1) == nil }); blocked != nil {
			return got, blocked
		}
		before.Left--
	}
	at, err := y.sale.State(ctx)
	got.Took = before.Left + before.Reserved - at.Left - at.Reserved
	return got, err
}

// heldFor holds buyers up at each of their commands while the time of reservations passes.
func (b bench) heldFor(ctx context.Context, pass func() error) error {
	return stockrules.HeldBeyond(b.steps(ctx), func(n int) (*stockrules.Held, error) {
		own := b
		own.Product = fmt.Sprint(b.Product, "-held-", n)
		return own.heldAt(ctx, n, 6, orderedPieces)
	}, pass)
}

// heldBeside returns a rule: for each n, a buyer of a product with this stock is held up before its n-th command, and check is called.
func heldBeside(stock int, check func(*stockrules.Held) error) func(context.Context, bench) error {
	return func(ctx context.Context, b bench) error {
		return b.each(ctx, []interrupt.Action{interrupt.Pass}, func(b bench, n int, _ interrupt.Action) error {
			h, err := b.heldAt(ctx, n, stock, 1)
			if h == nil || err != nil {
				return err
			}
			return check(h)
		})
	}
}

// heldAt starts the purchase of order 1 and holds it up before its n-th command. It returns nil if a purchase sends fewer commands.
func (b bench) heldAt(ctx context.Context, n, stock, pieces int) (*stockrules.Held, error) {
	y, err := opened(ctx, b, b.Product, int64(stock))
	if err != nil {
		return nil, err
	}
	c, line := b.buyerOf(ctx, b.Product, y.fences)
	var answer error
	s := stalled(ctx, line, n, func() { _, answer = c.sale.Buy(ctx, order(1, pieces), c.lock()) })
	if s == nil {
		return nil, nil
	}
	return &stockrules.Held{
		Shop: y.shop(ctx, stock), Stock: stock, Pieces: pieces, Command: n,
		Beside: func(calls func()) error { return s.beside(y, calls) }, Answer: func() error { return answer },
	}, nil
}

// befall makes event i of befalls happen at a buyer's n-th command.
func (b bench) befall(ctx context.Context, y *buyer, f *fences, n int, a interrupt.Action, i int) (reached bool, err error) {
	c, line := b.buyerOf(ctx, b.Product, f)
	buy := func() { _, _ = c.sale.Buy(ctx, order(1, orderedPieces), c.lock()) }
	again := func() { err = y.decided(ctx, 1, orderedPieces) }
	if i == heldBesideCopy {
		s := stalled(ctx, line, n, buy)
		if s == nil {
			return false, nil
		}
		if blocked := s.beside(y, again); blocked != nil {
			return false, blocked
		}
	} else if !line.DiesAt(n, a, buy) {
		return false, nil
	} else if i == diesAndAgain {
		again()
	}
	if i == diesAndFewer {
		_, _ = y.again(ctx, nil, func() (int64, error) { return y.sale.Buy(ctx, order(1, orderedPieces-1), y.lock()) }) // it may be refused
	}
	if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
		if errors.As(err, new(*suitetest.Breach)) || errors.As(err, new(*suitetest.NotJudged)) {
			return false, err
		}
		return false, broken(variant.NoUndersell, "an order that was sent again, with enough there, was answered %s; want success or %q", say(err), stockimpl.ErrRepeated)
	}
	return true, nil
}

// nothingAside expects that order 1, of one of these numbers of pieces, is bought, or nobody has them, and that nothing is
// set aside as soon as others have bought.
func (y *buyer) nothingAside(ctx context.Context, stock int, pieces ...int) error {
	if r, ok := y.sale.Sale.(stockimpl.Reconciler); ok {
		if _, err := r.Reconcile(ctx); err != nil {
			return broken(theInterface, "reconcile: %w", err)
		}
	}
	for id := int64(1000); id < 1002; id++ { // each may end some reservations that are over
		if err := y.decidedAlone(ctx, id, 1); err != nil {
			if errors.As(err, new(*suitetest.Breach)) || errors.As(err, new(*suitetest.NotJudged)) {
				return err
			}
			return broken(variant.NoUndersell, "buy of 1, with at least %d of %d there, answered %s", stock-slices.Max(pieces)-int(id-1000), stock, say(err))
		}
	}
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	if s.Reserved != 0 {
		return broken(variant.NoUndersell, "State says %v of %d: every order that has come is decided, and pieces are still set aside", s, stock)
	}
	more, err := y.sellsOut(ctx, 2000, stock)
	if err != nil {
		return err
	}
	if sold := 2 + more; sold != stock && !slices.Contains(pieces, stock-sold) {
		of := variant.NoUndersell
		if sold > stock {
			of = variant.NoOversell
		}
		return broken(of, "others could buy %d pieces of %d in all; want %d, or %v less", sold, stock, stock, pieces)
	}
	return nil
}
