package stocktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/variant"
)

// The rules in this file compare what a buyer is told with what the server holds. ErrSoldOut, ErrStale
// and ErrRepeated say what happened, so they must be true; any other error says nothing.

// told compares the answer of the only purchase of a product with what the server holds. Without
// order ids the books must be right at once; with them a copy of the order may repair them.
func (y *buyer) told(ctx context.Context, what string, answer error, stock, pieces int64) error {
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	there := s.Left + s.Reserved
	what = fmt.Sprintf("a purchase of %d pieces of %d, %s, was answered %s", pieces, stock, what, say(answer))
	switch {
	case there > stock:
		return broken(variant.NoOversell, "%s, and State says %v: more than there was", what, s)
	case there < stock-pieces:
		return broken(variant.NoUndersell, "%s, and State says %v: pieces are gone that no answer accounts for", what, s)
	case errors.Is(answer, stockimpl.ErrSoldOut):
		return broken(variant.NoUndersell, "%s, though nobody else bought; State says %v", what, s)
	case errors.Is(answer, stockimpl.ErrStale) && there != stock:
		return broken(variant.NoUndersell, "%s, which says that nothing changed, and State says %v", what, s)
	case errors.Is(answer, stockimpl.ErrRepeated) && there != stock-pieces:
		return broken(variant.OncePerOrder, "%s, and State says %v: the order had no effect", what, s)
	case answer == nil && there != stock-pieces:
		return broken(variant.NoOversell, "%s, and State says %v: the pieces are there to be sold again", what, s)
	case s.Sold != stockimpl.Unsaid && there+s.Sold != stock && (answer == nil || !y.b.promises(variant.OncePerOrder)):
		return broken(variant.NoUndersell, "%s, and State says %v: its count of what is sold does not fit", what, s)
	}
	return nil
}

// toldOfRefund compares the answer of a refund with what the server holds: all but these pieces were
// there when it was sent, and nobody else does anything.
func (y *buyer) toldOfRefund(ctx context.Context, what string, answer error, stock, pieces int64) error {
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	there := s.Left + s.Reserved
	what = fmt.Sprintf("a refund of %d pieces of %d, %s, was answered %s", pieces, stock, what, say(answer))
	switch {
	case there > stock:
		return broken(variant.NoOversell, "%s, and State says %v: more than there was", what, s)
	case there < stock-pieces:
		return broken(variant.NoUndersell, "%s, and State says %v: pieces are gone that no answer accounts for", what, s)
	case errors.Is(answer, stockimpl.ErrSoldOut):
		return broken(theInterface, "%s, which is no answer to a refund", what)
	case errors.Is(answer, stockimpl.ErrStale) && there != stock-pieces:
		return broken(theInterface, "%s, which says that nothing changed, and State says %v", what, s)
	case (answer == nil || errors.Is(answer, stockimpl.ErrRepeated)) && there != stock:
		return broken(variant.NoUndersell, "%s, and State says %v: the pieces have not come back", what, s)
	}
	return nil
}

// failure is an error that says nothing about the outcome of a command. The server executes the command
// in none, one or both ways.
type failure struct {
	name    string
	actions []interrupt.Action
	err     error
}

func failures() []failure {
	fs := []failure{
		{"the connection timed out", bothWays, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}},
		{"the connection was closed", bothWays, io.EOF},
	}
	for _, r := range interrupt.Refusals {
		fs = append(fs, failure{"the server answered that " + r.What, []interrupt.Action{interrupt.Refuse}, r.Err})
	}
	return fs
}

// trying is a purchase or a refund, the only one of its product, of which one command fails.
type trying struct {
	refund        bool
	stock, pieces int
	y, c          *buyer // c makes the call, and y looks
	line          *interrupt.Interceptor
}

// tryings runs a case for every command of a purchase and, if the sale refunds, of a refund. A case reports whether the
// call sends so many commands.
func (b bench) tryings(ctx context.Context, name string, try func(b bench, t *trying, n int) (reached bool, err error)) error {
	for _, refund := range []bool{false, true} {
		for n := 1; n <= most && (!refund || b.noRefunds == nil); n++ {
			own := b
			own.Product = fmt.Sprintf("%s-%s-%t-%d", b.Product, name, refund, n)
			t := &trying{refund: refund, stock: 6, pieces: b.several(2)}
			f := &fences{}
			var err error
			if t.y, err = openedWith(ctx, own, own.Product, int64(t.stock), f); err != nil {
				return err
			}
			t.c, t.line = own.buyerOf(ctx, own.Product, f)
			if refund {
				if err := t.y.buy(ctx, variant.NoUndersell, 1, t.pieces, nil, int64(t.stock-t.pieces)); err != nil {
					return err
				}
			}
			reached, err := try(own, t, n)
			if reached && (errors.As(err, new(*suitetest.Breach)) || errors.As(err, new(*suitetest.NotJudged))) {
				err = fmt.Errorf("at command %d: %w", n, err)
			}
			if err != nil {
				return err
			}
			if !reached {
				break
			}
		}
	}
	return nil
}

func (t *trying) call(ctx context.Context) error {
	if t.refund {
		_, err := t.c.sale.Refund(ctx, order(1, t.pieces), t.c.lock())
		return err
	}
	_, err := t.c.sale.Buy(ctx, order(1, t.pieces), t.c.lock())
	return err
}

// judge compares an answer with what the server holds.
func (t *trying) judge(ctx context.Context, what string, answer error) error {
	if t.refund {
		return t.y.toldOfRefund(ctx, what, answer, int64(t.stock), int64(t.pieces))
	}
	return t.y.told(ctx, what, answer, int64(t.stock), int64(t.pieces))
}

// again sends the order or the refund again, by another client, until it is decided.
func (t *trying) again(ctx context.Context, what string) error {
	if !t.refund {
		err := t.y.decided(ctx, 1, t.pieces)
		if errors.As(err, new(*suitetest.NotJudged)) {
			return err
		}
		if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
			return broken(variant.NoUndersell, "an order %s, sent again with %d pieces of %d there at first, answered %s; want success or %q", what, t.stock, t.stock, say(err), stockimpl.ErrRepeated)
		}
		return t.y.told(ctx, what+" and that was sent again", err, int64(t.stock), int64(t.pieces))
	}
	_, err := t.y.again(ctx, nil, func() (int64, error) { return t.y.sale.Refund(ctx, order(1, t.pieces), t.y.lock()) })
	if err != nil && !errors.Is(err, stockimpl.ErrRepeated) {
		return broken(variant.NoUndersell, "a refund %s, sent again, answered %s; want success or %q", what, say(err), stockimpl.ErrRepeated)
	}
	return t.y.toldOfRefund(ctx, what+" and that was sent again", err, int64(t.stock), int64(t.pieces))
}

// failedCommands: a command of a purchase or a refund fails in each way in which commands do.
func failedCommands(ctx context.Context, b bench) error {
	var all sync.WaitGroup
	fs := failures()
	errs := make([]error, len(fs))
	for i, f := range fs {
		all.Go(func() {
			for _, a := range f.actions {
				errs[i] = b.tryings(ctx, fmt.Sprintf("failure-%d-%d", i, a), func(b bench, t *trying, n int) (bool, error) {
					t.line.Errors(f.err, f.err)
					t.line.Arm(n, a)
					answer := t.call(ctx)
					reached := t.line.Sent() >= n
					t.line.Plan(nil)
					if !reached {
						return false, nil
					}
					what := "during which " + f.name
					if err := t.judge(ctx, what, answer); err != nil || answer == nil || !b.promises(variant.OncePerOrder) {
						return true, err
					}
					return true, t.again(ctx, what)
				})
				if errs[i] == nil {
					errs[i] = b.failedLook(ctx, fmt.Sprintf("look-%d-%d", i, a), a, f)
				}
				if errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return firstBreach(errs)
}

// writesFail has every command that writes fail in a purchase, a refund or a look. A script that ignores such an error goes
// on.
func writesFail(ctx context.Context, b bench) error {
	b.limits.interrupts.Store(true)
	env, writes, err := interrupt.WithUser(ctx, b.Env())
	if err != nil {
		return &suitetest.Remark{Text: fmt.Sprintf("failing commands within a script were not tested: %v", err)}
	}
	defer writes.Close()
	b.Env = func() variant.Env { return env }
	return b.tryings(ctx, "writes", func(b bench, t *trying, _ int) (bool, error) {
		const what = "during which the client had no right to write (ACL)"
		var answer, seen error
		var s stockimpl.State
		if err := writes.During(ctx, func() {
			answer = t.call(ctx)
			s, seen = t.c.sale.State(ctx)
		}); err != nil {
			return false, err
		}
		if err := t.judge(ctx, what, answer); err != nil {
			return false, err
		}
		if now, err := t.y.sale.State(ctx); err == nil && seen == nil && s != now {
			return false, broken(theInterface, "State, %s, answered %v, and no error; the server held %v", what, s, now)
		}
		if answer == nil || !b.promises(variant.OncePerOrder) {
			return false, nil
		}
		return false, t.again(ctx, what)
	})
}

// failedLook has each command of State fail. It may answer with an error, or else with what is true.
func (b bench) failedLook(ctx context.Context, name string, a interrupt.Action, f failure) error {
	const stock = 6
	pieces := int64(b.several(2))
	b.Product += "-" + name
	fences := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, fences)
	if err != nil {
		return err
	}
	if err := y.buy(ctx, variant.NoUndersell, 1, int(pieces), nil, stock-pieces); err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, fences)
	line.Errors(f.err, f.err)
	for n := 1; n <= most; n++ {
		line.Arm(n, a)
		s, err := c.sale.State(ctx)
		reached := line.Sent() >= n
		line.Plan(nil)
		if !reached {
			break
		}
		if err == nil && (s.Left+s.Reserved != stock-pieces || s.Sold != pieces && s.Sold != stockimpl.Unsaid) {
			of := variant.NoUndersell
			if s.Left+s.Reserved > stock-pieces {
				of = variant.NoOversell
			}
			return broken(of, "State, during which %s, answered %v, and no error; %d of %d pieces are left", f.name, s, stock-pieces, stock)
		}
	}
	return nil
}

// endedContexts: the context of a purchase or a refund is cancelled, or its deadline passes, before one
// of its commands is sent, or before it is answered.
func endedContexts(ctx context.Context, b bench) error {
	ends := []struct {
		what     string
		deadline bool
		a        interrupt.Action
	}{
		{"the context of which was cancelled before a command", false, interrupt.Pass},
		{"the context of which was cancelled before a command was answered", false, interrupt.LoseReply},
		{"the deadline of which passed before a command", true, interrupt.Pass},
		{"the deadline of which passed before a command was answered", true, interrupt.LoseReply},
	}
	errs := make([]error, len(ends))
	var all sync.WaitGroup
	for i, end := range ends {
		all.Go(func() {
			errs[i] = b.tryings(ctx, fmt.Sprint("end-", i), func(b bench, t *trying, n int) (bool, error) {
				own := interrupt.NewEnding(ctx, end.deadline)
				defer own.End()
				var answer error
				s := stalledBefore(ctx, t.line, n, end.a, func() { answer = t.call(own) })
				if s == nil {
					return false, nil
				}
				own.End()
				_ = (clock.Real{}).Sleep(ctx, 20*time.Millisecond) // it may return now
				s.GoOn()
				_ = (clock.Real{}).Sleep(ctx, 50*time.Millisecond) // what goes on behind its back comes to its end
				return true, t.judge(ctx, end.what, answer)
			})
		})
	}
	all.Wait()
	return firstBreach(errs)
}

// slowServer: a command of a purchase takes longer than clients like to wait.
func slowServer(ctx context.Context, b bench) error {
	const stock, pieces, slow = 6, 2, 1500 * time.Millisecond
	return b.eachOpened(ctx, stock, []interrupt.Action{interrupt.Pass}, func(y *buyer, n int, _ interrupt.Action) error {
		b, f := y.b, y.fences
		c, line := b.buyerOf(ctx, b.Product, f)
		var answer error
		s := stalled(ctx, line, n, func() { _, answer = c.sale.Buy(ctx, order(1, pieces), c.lock()) })
		if s == nil {
			return nil
		}
		_ = (clock.Real{}).Sleep(ctx, slow)
		s.GoOn()
		return y.told(ctx, fmt.Sprintf("a command of which took %v", slow), answer, stock, pieces)
	})
}

// For how long, and how often, another client may buy before the commands of one call: a limit of a
// hundred attempts or two shows, and a machine that is busy does not wait forever.
const conflicts, conflictsFor = 1500, 2500 * time.Millisecond

// steadyConflict has another client buy one piece before each command of a purchase, and of a refund, as
// long as plenty is left.
func steadyConflict(ctx context.Context, b bench) error {
	errs := make([]error, 2)
	var all sync.WaitGroup
	for i, refund := range []bool{false, true} {
		own := b
		own.Product += fmt.Sprint("-", i)
		all.Go(func() { errs[i] = own.steadilyDisturbed(ctx, refund) })
	}
	all.Wait()
	return firstBreach(errs)
}

func (b bench) steadilyDisturbed(ctx context.Context, refund bool) error {
	const first = 2 // pieces of order 1, if it is refunded
	f := &fences{}
	stock := int64(2 * conflicts)
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil { // it may not take so many
		b.Product, stock = b.Product+"-fewer", 100
		if y, err = openedWith(ctx, b, b.Product, stock, f); err != nil {
			return err
		}
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	call, what, had := func() error { _, err := c.sale.Buy(ctx, order(1, 1), c.lock()); return err }, "a buyer of 1 piece", int64(0)
	if refund {
		call, what, had = func() error { _, err := c.sale.Refund(ctx, order(1, first), c.lock()); return err }, "a client that refunded 2 pieces", first
		if err := y.buy(ctx, variant.NoUndersell, 1, first, nil, stock-first); err != nil {
			return err
		}
	}
	sold := int64(0)
	var other error
	var waits <-chan struct{}
	start := time.Now()
	line.Plan(func(int) interrupt.Action {
		if sold < stock/2 && other == nil && waits == nil && time.Since(start) < conflictsFor {
			done, ok := soon(func() { _, other = y.sale.Buy(ctx, order(100+sold, 1), y.lock()) })
			if !ok {
				waits = done
			} else if other == nil {
				sold++
			}
		}
		return interrupt.Pass
	})
	answer := call()
	if waits != nil {
		<-waits
		return &suitetest.NotJudged{Why: fmt.Sprintf("a call did not return for %v while the suite held another client up: it may wait for that client", blockedFor)}
	}
	commands := line.Sent()
	line.Plan(nil)
	what = fmt.Sprintf("before each of the first %d commands of %s another bought 1", min(int64(commands), sold), what)
	if errors.Is(other, stockimpl.ErrSoldOut) {
		return broken(variant.NoUndersell, "order %d for 1 piece was refused as sold out after %d pieces of %d were sold", 100+sold, sold, stock)
	}
	if errors.Is(answer, stockimpl.ErrSoldOut) {
		return broken(variant.NoUndersell, "%s, and it was refused as sold out with %d of %d left", what, stock-sold-had, stock)
	}
	s, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	want := stock - sold - had
	switch {
	case refund && (answer == nil || errors.Is(answer, stockimpl.ErrRepeated)):
		want += had
	case answer == nil:
		want--
	}
	if there := s.Left + s.Reserved; other == nil && declared(answer) && there != want {
		p := variant.NoUndersell
		if there > want {
			p = variant.NoOversell
		}
		return broken(p, "%s, %d in all of %d; it was answered %s, and State says %v; want %d left", what, sold, stock, say(answer), s, want)
	}
	return nil
}

// movingPiece keeps one piece in stock at all times: before each command of a purchase, another client refunds an order
// and buys again. A sale that splits its stock among several keys may read each key while the piece is in another one.
func movingPiece(ctx context.Context, b bench) error {
	const stock, trials = 12, 150
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	var sold []int64 // orders, of which one can be refunded
	next := int64(0)
	buy := func(z *buyer) error {
		next++
		id := next
		_, err := z.again(ctx, nil, func() (int64, error) { return z.sale.Buy(ctx, order(id, 1), z.lock()) })
		if err == nil {
			sold = append(sold, id)
		}
		return err
	}
	refund := func() error {
		at := rand.IntN(len(sold))
		id := sold[at]
		sold = slices.Delete(sold, at, at+1)
		_, err := y.sale.Refund(ctx, order(id, 1), y.lock())
		return err
	}
	for len(sold) < stock-1 {
		if err := buy(y); err != nil {
			return broken(theInterface, "buy of 1, with %d of %d sold, answered %s", len(sold), stock, say(err))
		}
	}
	for start, n := time.Now(), 0; n < trials && time.Since(start) < conflictsFor; n++ {
		var other error
		var waits <-chan struct{}
		moves := 0
		line.Plan(func(int) interrupt.Action {
			if waits == nil && other == nil && time.Since(start) < conflictsFor {
				moves++
				if done, ok := soon(func() { other = errors.Join(refund(), buy(y)) }); !ok {
					waits = done
				}
			}
			return interrupt.Pass
		})
		next++
		id := next
		_, err := c.sale.Buy(ctx, order(id, 1), c.lock())
		line.Plan(nil)
		if waits != nil {
			<-waits
			return &suitetest.NotJudged{Why: fmt.Sprintf("a call did not return for %v while the suite held another client up: it may wait for that client", blockedFor)}
		}
		switch {
		case other != nil:
			return nil // other rules are about that
		case errors.Is(err, stockimpl.ErrSoldOut):
			return broken(variant.NoUndersell, "an order for 1 piece was refused as sold out, and at no time was none left: before each of its %d commands another client refunded an order and bought 1 piece again, and at least 1 of %d was left before and after", moves, stock)
		case err != nil:
			return nil
		}
		sold = append(sold, id)
		if err := refund(); err != nil {
			return nil
		}
	}
	return nil
}

// stalledRefunds holds up a refund while others buy, or refund other orders.
func stalledRefunds(ctx context.Context, b bench) error {
	const stock = 6
	return b.each(ctx, []interrupt.Action{interrupt.Pass}, func(b bench, n int, _ interrupt.Action) error {
		for _, what := range []string{"bought", "refunded another order"} {
			own := b
			own.Product = b.Product + "-" + what[:4]
			if err := own.refundBeside(ctx, n, what, stock); err != nil {
				return err
			}
		}
		return nil
	})
}

// refundBeside holds up a refund of 2 pieces while another client buys 1 piece, or refunds 1.
func (b bench) refundBeside(ctx context.Context, n int, what string, stock int64) error {
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, stock, f)
	if err != nil {
		return err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	if err := firstOf(
		func() error { return y.buy(ctx, variant.NoUndersell, 1, 2, nil, stock-2) },
		func() error { return y.buy(ctx, variant.NoUndersell, 2, 1, nil, stock-3) },
	); err != nil {
		return &setUp{err}
	}
	var answer error
	s := stalled(ctx, line, n, func() { _, answer = c.sale.Refund(ctx, order(1, 2), c.lock()) })
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
	for tries := 0; errors.Is(answer, stockimpl.ErrStale) && tries < 20; tries++ {
		_, answer = c.sale.Refund(ctx, order(1, 2), c.lock())
	}
	if answer != nil && !errors.Is(answer, stockimpl.ErrRepeated) {
		return nil
	}
	state, err := y.sale.State(ctx)
	if err != nil {
		return broken(theInterface, "state: %w", err)
	}
	if there := state.Left + state.Reserved; there != want {
		p := variant.NoUndersell
		if there > want {
			p = variant.NoOversell
		}
		return broken(p, "a refund of 2 pieces was held up while another client %s 1 piece, and was answered %s in the end; State says %v; want %d left", strings.TrimSuffix(what, " another order back"), say(answer), state, want)
	}
	return nil
}

// refundsByOthers: a client that did not make a purchase refunds it, and says another quantity.
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
			func() error { return y.buy(ctx, of, 2, 4, nil, stock-bought-4) }, // so that too much can come back
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
		s, err := y.sale.State(ctx)
		if err != nil {
			return broken(theInterface, "state: %w", err)
		}
		if s.Left > stock-4 {
			return broken(of, "order 1 bought %d pieces, another client asked for a refund of %d and was answered %s: State says %v; want no more than %d left", bought, pieces, say(first), s, stock-4)
		}
		// The rest, if there is one, comes back too.
		for _, rest := range []int{bought - pieces, bought} {
			if rest > 0 && s.Left < stock-4 {
				refund := func() (int64, error) { return other.sale.Refund(ctx, order(1, rest), other.lock()) }
				if rest == bought {
					_, _ = b.settled(ctx, refund)
				} else {
					_, _ = refund()
				}
				if s, err = y.sale.State(ctx); err != nil {
					return broken(theInterface, "state: %w", err)
				}
			}
		}
		if s.Left != stock-4 {
			return broken(of, "order 1 bought %d pieces, and another client asked for a refund of %d, which was answered %s, and then of the rest: State says %v; want %d left", bought, pieces, say(first), s, stock-4)
		}
	}
	return nil
}

// usesScripts tells whether a purchase calls a script by its digest.
func (b bench) usesScripts(ctx context.Context) bool {
	f := &fences{}
	product := b.Product + "-scripts"
	if _, err := openedWith(ctx, b, product, 5, f); err != nil {
		return false
	}
	c, line := b.buyerOf(ctx, product, f)
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
