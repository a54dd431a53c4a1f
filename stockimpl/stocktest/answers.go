package stocktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/stockimpl"
	"oversell/variant"
)

// The rules in this file compare the answers to buyers with what the server holds. ErrSoldOut, ErrStale and ErrRepeated
// state the outcome, so they must be true; any other error states nothing.

// told compares the answer of the only purchase of a product with what the server holds. Without
// order ids the books must be right at once; with them a copy of the order may repair them.
func (y *buyer) told(ctx context.Context, what string, answer error, stock, pieces int64) error {
	s, err := y.holds(ctx)
	if err != nil {
		return err
	}
	there := s.Left + s.Reserved
	what = fmt.Sprintf("a purchase of %d pieces of %d, %s, was answered %s", pieces, stock, what, say(answer))
	switch {
	case there > stock:
		return broken(variant.NoOversell, "%s, and the server holds %+v: more than there was", what, s)
	case there < stock-pieces:
		return broken(variant.NoUndersell, "%s, and the server holds %+v: pieces are gone that nobody bought", what, s)
	case errors.Is(answer, stockimpl.ErrSoldOut):
		return broken(variant.NoUndersell, "%s, though nobody else bought; the server holds %+v", what, s)
	case errors.Is(answer, stockimpl.ErrStale) && there != stock:
		return broken(variant.NoUndersell, "%s, which says that nothing changed, and the server holds %+v", what, s)
	case errors.Is(answer, stockimpl.ErrRepeated) && there != stock-pieces:
		return broken(variant.OncePerOrder, "%s, and the server holds %+v: the order had no effect", what, s)
	case answer == nil && there != stock-pieces:
		return broken(variant.NoOversell, "%s, and the server holds %+v: the pieces are there to be sold again", what, s)
	case s.Sold != stockimpl.Unsaid && there+s.Sold != stock && (answer == nil || !y.b.promises(variant.OncePerOrder)):
		return broken(variant.NoUndersell, "%s, and the server holds %+v: its count of what is sold does not fit", what, s)
	}
	return nil
}

// failures are errors that say nothing about the outcome of a command. The server executes the command
// in none, one or both ways.
var failures = []struct {
	name    string
	actions []interrupt.Action
	err     error
}{
	{"the server answered that it is out of memory", []interrupt.Action{interrupt.Refuse}, interrupt.Refusal("OOM command not allowed when used memory > 'maxmemory'.")},
	{"the server answered that it is a replica", []interrupt.Action{interrupt.Refuse}, interrupt.Refusal("READONLY You can't write against a read only replica.")},
	{"the server answered that it loads its data", []interrupt.Action{interrupt.Refuse}, interrupt.Refusal("LOADING Redis is loading the dataset in memory")},
	{"the connection timed out", bothWays, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}},
	{"the connection was closed", bothWays, io.EOF},
}

// failedCommands: a command of a purchase fails in each possible way.
func failedCommands(ctx context.Context, b bench) error {
	return atOnce(len(failures), func(i int) error {
		own, f := b, failures[i]
		own.Product = fmt.Sprintf("%s-failure-%d", b.Product, i)
		return own.each(ctx, f.actions, func(b bench, n int, a interrupt.Action) error {
			return b.failedCommand(ctx, n, a, f.name, f.err)
		})
	})
}

func (b bench) failedCommand(ctx context.Context, n int, a interrupt.Action, what string, failure error) error {
	const stock, pieces = 6, 2
	y, c, line, err := b.rehearsed(ctx, stock)
	if err != nil {
		return err
	}
	line.Errors(failure, failure)
	line.Arm(n, a)
	_, answer := c.sale.Buy(ctx, order(1, pieces), c.lock())
	reached := line.Sent() >= n
	line.Plan(nil)
	if !reached {
		return nil
	}
	if err := y.told(ctx, "during which "+what, answer, stock, pieces); err != nil {
		return err
	}
	if answer == nil || !b.promises(variant.OncePerOrder) {
		return nil
	}
	err = y.decided(ctx, 1, pieces)
	if errors.As(err, new(*notJudged)) {
		return err
	}
	if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
		return broken(variant.NoUndersell, "an order during which %s, sent again with %d pieces of %d there at first, answered %s", what, stock, stock, say(err))
	}
	return y.told(ctx, "during which "+what+" and that was sent again", err, stock, pieces)
}

// endedContexts: the context of a purchase ends before one of its commands.
func endedContexts(ctx context.Context, b bench) error {
	const stock, pieces = 6, 2
	return b.eachRehearsed(ctx, paused, stock, func(y, c *buyer, line *interrupt.Line, n int, _ interrupt.Action) error {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		s := stalled(ctx, line, n, func() error { return c.buys(own, 1, pieces) })
		if s == nil {
			return nil
		}
		cancel()
		_ = (clock.Real{}).Sleep(ctx, 20*time.Millisecond) // it may return now
		s.GoOn()
		_ = (clock.Real{}).Sleep(ctx, 50*time.Millisecond) // what goes on behind its back comes to its end
		return y.told(ctx, "the context of which ended before a command", s.answer, stock, pieces)
	})
}

// slowServer: a command of a purchase takes longer than clients usually wait.
func slowServer(ctx context.Context, b bench) error {
	const stock, pieces, slow = 6, 2, 1500 * time.Millisecond
	return b.eachHeld(ctx, stock, func(c *buyer) error { return c.buys(ctx, 1, pieces) }, func(y *buyer, s *heldUp) error {
		_ = (clock.Real{}).Sleep(ctx, slow)
		s.GoOn()
		return y.told(ctx, fmt.Sprintf("a command of which took %v", slow), s.answer, stock, pieces)
	})
}

// steadyConflict has another client buy one piece before each command of a buyer, as long as many are left.
func steadyConflict(ctx context.Context, b bench) error {
	const stock, others = 100, 40
	y, c, line, err := b.rehearsed(ctx, stock)
	if err != nil {
		return err
	}
	sold := 0
	var other error
	var waits <-chan struct{}
	line.Plan(func(int) interrupt.Action {
		if sold < others && other == nil && waits == nil {
			done, ok := soon(func() { _, other = y.sale.Buy(ctx, order(int64(100+sold), 1), y.lock()) })
			if !ok {
				waits = done
			} else if other == nil {
				sold++
			}
		}
		return interrupt.Pass
	})
	_, answer := c.sale.Buy(ctx, order(1, 1), c.lock())
	if waits != nil {
		<-waits
		return &notJudged{fmt.Sprintf("a call did not return for %v while the suite held another client up: it may wait for that client", blockedFor)}
	}
	commands := line.Sent()
	line.Plan(nil)
	if errors.Is(other, stockimpl.ErrSoldOut) {
		return broken(variant.NoUndersell, "order %d for 1 piece was refused as sold out after %d pieces of %d were sold", 100+sold, sold, stock)
	}
	if errors.Is(answer, stockimpl.ErrSoldOut) {
		return broken(variant.NoUndersell, "before each of the first %d commands of a buyer of 1 piece another bought 1, and the buyer was refused as sold out with %d of %d left", min(commands, others), stock-sold, stock)
	}
	s, err := y.holds(ctx)
	if err != nil {
		return err
	}
	want := int64(stock - sold)
	if answer == nil {
		want--
	}
	if there := s.Left + s.Reserved; other == nil && declared(answer) && there != want {
		p := variant.NoUndersell
		if there > want {
			p = variant.NoOversell
		}
		return broken(p, "before each command of a buyer another bought 1 piece, %d in all of %d; the buyer was answered %s, and the server holds %+v; want %d left", sold, stock, say(answer), s, want)
	}
	return nil
}

// stalledRefunds holds up a refund while others buy, or give other orders back.
func stalledRefunds(ctx context.Context, b bench) error {
	const stock = 6
	return b.each(ctx, paused, func(b bench, n int, _ interrupt.Action) error {
		for _, what := range []string{"bought", "gave another order back"} {
			own := b
			own.Product = b.Product + "-" + what[:4]
			if err := own.refundBeside(ctx, n, what, stock); err != nil {
				return err
			}
		}
		return nil
	})
}

// refundBeside holds up a refund of 2 pieces while another client buys 1 piece, or gives back 1.
func (b bench) refundBeside(ctx context.Context, n int, what string, stock int64) error {
	y, c, line, err := b.rehearsed(ctx, int(stock))
	if err != nil {
		return err
	}
	if err := firstOf(
		func() error { return y.buy(ctx, variant.NoUndersell, 1, 2, nil, stock-2) },
		func() error { return y.buy(ctx, variant.NoUndersell, 2, 1, nil, stock-3) },
	); err != nil {
		return &setUp{err}
	}
	s := stalled(ctx, line, n, func() error { return c.gives(ctx, 1, 2) })
	if s == nil {
		return nil
	}
	want := stock - 2 // orders 2 and 3
	if blocked := s.beside(y, func() {
		if what == "bought" {
			err = y.decided(ctx, 3, 1)
		} else {
			want = stock
			_, err = y.sale.Refund(ctx, order(2, 1), y.lock())
		}
	}); blocked != nil {
		return blocked
	}
	if err != nil {
		return nil // it keeps others out: other rules judge that
	}
	answer := s.answer
	for tries := 0; errors.Is(answer, stockimpl.ErrStale) && tries < 20; tries++ {
		_, answer = c.sale.Refund(ctx, order(1, 2), c.lock())
	}
	if answer != nil && !errors.Is(answer, stockimpl.ErrRepeated) {
		return nil
	}
	state, err := y.holds(ctx)
	if err != nil {
		return err
	}
	if there := state.Left + state.Reserved; there != want {
		p := variant.NoUndersell
		if there > want {
			p = variant.NoOversell
		}
		return broken(p, "a refund of 2 pieces was held up while another client %s 1 piece, and was answered %s in the end; the server holds %+v; want %d left", strings.TrimSuffix(what, " another order back"), say(answer), state, want)
	}
	return nil
}

// refundsByOthers: a client that did not make a purchase refunds it, with another quantity.
func refundsByOthers(ctx context.Context, b bench) error {
	const stock, bought = 10, 3
	const of = variant.OncePerOrder
	for _, pieces := range []int{1, 2, 3, 5, stock + 1} {
		own := b
		own.Product = fmt.Sprintf("%s-%d", b.Product, pieces)
		f := &fences{}
		y, err := openedWith(ctx, own, own.Product, stock, f)
		if err != nil {
			return err
		}
		other := own.client(f)
		if err := firstOf(
			func() error { return y.buy(ctx, of, 1, bought, nil, stock-bought) },
			func() error { return y.buy(ctx, of, 2, 4, nil, stock-bought-4) }, // so that too many can come back
			func() error {
				if _, err := other.sale.Buy(ctx, order(1, pieces), other.lock()); err == nil {
					return broken(of, "order 1 for %d pieces was sent again for %d by another client, and bought again", bought, pieces)
				}
				return y.state(ctx, of, stock-bought-4, bought+4)
			},
		); err != nil {
			return err
		}
		_, first := other.sale.Refund(ctx, order(1, pieces), other.lock())
		s, err := y.holds(ctx)
		if err != nil {
			return err
		}
		if s.Left > stock-4 {
			return broken(of, "order 1 bought %d pieces, another client asked for a refund of %d and was answered %s: the server holds %+v; want no more than %d left", bought, pieces, say(first), s, stock-4)
		}
		// The rest, if there is one, comes back too.
		for _, rest := range []int{bought - pieces, bought} {
			if rest > 0 && s.Left < stock-4 {
				_, _ = other.sale.Refund(ctx, order(1, rest), other.lock())
				if s, err = y.holds(ctx); err != nil {
					return err
				}
			}
		}
		if s.Left != stock-4 {
			return broken(of, "order 1 bought %d pieces, and another client asked for a refund of %d, which was answered %s, and then of the rest: the server holds %+v; want %d left", bought, pieces, say(first), s, stock-4)
		}
	}
	return nil
}

// usesScripts reports whether a purchase calls a script by its digest.
func (b bench) usesScripts(ctx context.Context) bool {
	b.Product += "-scripts"
	_, c, line, err := b.rehearsed(ctx, 5)
	if err != nil {
		return false
	}
	found := false
	line.Plan(func(int) interrupt.Action {
		found = found || strings.Contains(line.Command(), "EVALSHA")
		return interrupt.Pass
	})
	_, _ = c.sale.Buy(ctx, order(1, 1), c.lock())
	return found
}

// forgottenScripts holds up a buyer that finds its scripts forgotten.
func forgottenScripts(ctx context.Context, b bench) error {
	if !b.usesScripts(ctx) {
		return nil
	}
	return b.stalledBuyers(ctx, true)
}
