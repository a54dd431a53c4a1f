package stockrules

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/keyname"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
)

// Dying is a product whose buyers can die with pieces reserved for them.
type Dying struct {
	Sale stockimpl.Sale
	Dies func(id int64)                   // the buyer of this order dies; all orders are of the same number of pieces
	Once func(id int64, pieces int) error // see [Shop]
	// Holds returns what the server holds for the product.
	Holds func() (string, error)
}

// Reconciled calls Reconcile of a sale that is a [stockimpl.Reconciler], when so many of its orders are past their deadline, of which
// Reconcile was not called for any; pass lets the time of their reservations pass. Reconcile must report that number, and
// nothing may stay reserved but so many pieces. Reconcile may report 0 if it changes nothing on the server: then the reservations
// ended by themselves. Reconciled does not judge the number if something else changes what the server holds meanwhile, such as a
// reservation that expires. If the sale is no Reconciler, it only lets the time pass.
func Reconciled(ctx context.Context, p *Dying, orders, stay int64, pass func() error) error {
	const of = theInterface
	r, ok := p.Sale.(stockimpl.Reconciler)
	if !ok {
		return pass()
	}
	var holds [3]string
	var n int64
	for i, step := range []func() error{
		func() error { return nil },
		pass,
		func() (err error) { n, err = r.Reconcile(ctx); return err },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("reconcile: %w", err)
		}
		var err error
		if holds[i], err = p.Holds(); err != nil {
			return err
		}
	}
	after, err := p.Sale.State(ctx)
	if err != nil {
		return suitetest.Broken(of, "state: %w", err)
	}
	byItself := holds[0] != holds[1] || n == 0 && holds[1] == holds[2]
	switch {
	case after.Reserved > stay:
		return suitetest.Broken(of, "reconcile answered that %d orders lost their reservation, and State then says %v; want %s reserved", n, after, nothingOr(stay))
	case n != orders && !byItself:
		return suitetest.Broken(of, "reconcile answered that %d orders lost their reservation; want %d, as many as are past their deadline; State says %v", n, orders, after)
	case after.Reserved < stay:
		return suitetest.Broken(of, "reconcile ended reservations that were not past their deadline: State then says %v; want %d reserved", after, stay)
	}
	return nil
}

func nothingOr(n int64) string {
	if n == 0 {
		return "nothing"
	}
	return fmt.Sprint(n)
}

// Due tries when a sale that is a [stockimpl.Reconciler] ends reservations, on a clock that only the test moves.
type Due struct {
	Pieces int64 // of each order that a dying buyer made
	// Open puts a new product on sale.
	Open func(stock int64) (*Dying, error)
	Pass func(time.Duration)
}

// The numbers of buyers that die early, and of those that die later.
const earlier, later = 3, 2

// Reconciles expects Reconcile to end no reservation that runs, and then, when some orders are past their deadline and others are
// not, to end those of the former and to report their number. The orders are of several pieces, if the sale takes such.
func (d Due) Reconciles(ctx context.Context) error {
	if err := d.tooEarly(ctx); err != nil {
		return err
	}
	start := time.Now()
	running, over, err := d.lasts(ctx)
	if err != nil || over == 0 {
		return err // it is not over after 40 days
	}
	// The clock of the server may go on by itself, and the times are wrong by that.
	slack := time.Since(start)
	if slack > running/8 {
		return nil
	}
	err = d.someEnd(ctx, running, over+over/16+slack)
	if time.Since(start) > slack+running/8 {
		return nil
	}
	return err
}

// someEnd has buyers die, and others later, when half of the time has passed for which a reservation runs. Then it calls Reconcile twice, when the first
// reservations are over, and the others are not.
func (d Due) someEnd(ctx context.Context, running, over time.Duration) error {
	stock := 2 * (earlier + later) * d.Pieces
	p, err := d.Open(stock)
	if err != nil {
		return err
	}
	die(p, 1, earlier)
	d.Pass(running / 2)
	die(p, 101, later)
	what := fmt.Sprintf("%d buyers of %d pieces of %d died, and later %d more, and the time of reservations passed for the first ones", earlier, d.Pieces, stock, later)
	return suitetest.FirstOf(
		func() error {
			return within(what, Reconciled(ctx, p, earlier, later*d.Pieces, func() error { d.Pass(over - running/2); return nil }))
		},
		func() error { _, err := whole(ctx, p, stock); return within(what, err) },
		func() error {
			return within(what+", and Reconcile was called twice", Reconciled(ctx, p, 0, later*d.Pieces, func() error { return nil }))
		},
		func() error { _, err := whole(ctx, p, stock); return within(what, err) },
	)
}

// within puts words before an error, if there is one.
func within(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// whole expects State to say that what is left, reserved and sold is the stock, and returns what it says.
func whole(ctx context.Context, p *Dying, stock int64) (stockimpl.State, error) {
	at, err := p.Sale.State(ctx)
	if err != nil {
		return at, suitetest.Broken(theInterface, "state: %w", err)
	}
	if sum := at.Left + at.Reserved + max(at.Sold, 0); sum != stock {
		return at, suitetest.Broken(theInterface, "State says %v: what is left, reserved and sold is %d in all; want %d", at, sum, stock)
	}
	return at, nil
}

func die(p *Dying, from int64, buyers int) {
	for n := range buyers {
		p.Dies(from + int64(n))
	}
}

// tooEarly calls Reconcile just after buyers died.
func (d Due) tooEarly(ctx context.Context) error {
	stock := 2 * earlier * d.Pieces
	p, err := d.Open(stock)
	if err != nil {
		return err
	}
	start := time.Now()
	die(p, 1, earlier)
	what := fmt.Sprintf("%d buyers of %d pieces of %d died, with pieces reserved for them", earlier, d.Pieces, stock)
	at, err := whole(ctx, p, stock)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = Reconciled(ctx, p, 0, at.Reserved, func() error { return nil })
	if time.Since(start) > time.Second/4 {
		return nil // the machine is busy, and a reservation may have ended
	}
	if err != nil {
		return fmt.Errorf("%s, and Reconcile was called at once: %w", what, err)
	}
	return nil
}

// lasts returns a time after which a reservation still runs, and one after which it is over, which is little longer; 0 if it is not
// over after 40 days.
func (d Due) lasts(ctx context.Context) (running, over time.Duration, err error) {
	const most = 40 * 24 * time.Hour
	for over = time.Second; ; over *= 2 {
		if over > most {
			return running, 0, nil
		}
		ended, err := d.ends(ctx, over)
		if err != nil {
			return 0, 0, err
		}
		if ended {
			break
		}
		running = over
	}
	for range 4 {
		half := (running + over) / 2
		ended, err := d.ends(ctx, half)
		if err != nil {
			return 0, 0, err
		}
		if ended {
			over = half
		} else {
			running = half
		}
	}
	return running, over, nil
}

// ends reports whether the reservation of a buyer that died is over after this time: others can have its pieces.
func (d Due) ends(ctx context.Context, after time.Duration) (bool, error) {
	p, err := d.Open(d.Pieces)
	if err != nil {
		return false, err
	}
	p.Dies(1)
	d.Pass(after)
	if _, err := p.Sale.(stockimpl.Reconciler).Reconcile(ctx); err != nil {
		return false, fmt.Errorf("reconcile: %w", err)
	}
	err = p.Once(2, int(d.Pieces))
	if errors.Is(err, stockimpl.ErrStale) || errors.Is(err, stockimpl.ErrSoldOut) {
		return false, nil
	}
	return err == nil, err
}

// Holds returns what a server holds for a product: the numbers, and how large its sorted sets are.
func Holds(ctx context.Context, rdb redis.UniversalClient, product string) (string, error) {
	keys, err := keyname.Of(ctx, rdb, product)
	if err != nil {
		return "", err
	}
	held := map[string]any{}
	for _, key := range keys {
		if n, err := rdb.Get(ctx, key).Result(); err == nil {
			held[key] = n
		} else if fields, err := rdb.HGetAll(ctx, key).Result(); err == nil {
			held[key] = fields
		} else if n, err := rdb.ZCard(ctx, key).Result(); err == nil {
			held[key] = n
		}
	}
	return fmt.Sprint(held), nil
}
