package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"oversell/internal/stats"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/stockimpl"
	"oversell/variant"
)

// rates are operations per second by round: under a lock, and with optimistic locking.
type rates struct{ locked, optimistic []float64 }

// advantage returns the ratio of the optimistic to the pessimistic rate.
func (r rates) advantage() float64 { return stats.Median(ratios(r.optimistic, r.locked)) }

// comparison is one pair of C17.
type comparison struct {
	what string
	many bool // conflicts
	rates
}

// pessimistic measures C17.
func pessimistic(ctx context.Context, b *bench) (a answer, err error) {
	rounds := b.times(5, 3)
	one, err := b.oneBuyer(ctx)
	if err != nil {
		return a, err
	}
	reading, err := b.mostlyReading(ctx, b.times(9, 5))
	if err != nil {
		return a, err
	}
	all := []comparison{
		{what: "one buyer, WATCH by lock", rates: one},
		{what: "16 clients, one purchase in 20 and else reads, WATCH by lock", rates: reading},
	}
	flags := func(lock, sale, clients, stock string) []string {
		return []string{"--lock", lock, "--sale", sale, "--clients", clients, "--stock", stock, "--hold", "1us"}
	}
	for _, x := range []struct {
		what       string
		many       bool
		pess, opti []string
	}{
		{"64 buyers, WATCH by lock", true, flags("lua-release", "plain", "64", "300"), flags("none", "watch", "64", "300")},
		{"one buyer, version column by SELECT FOR UPDATE (SQLite)", false, flags("none", "sql-for-update", "1", "300"), flags("none", "sql-version", "1", "300")},
		{"16 buyers, version column by SELECT FOR UPDATE (SQLite)", true, flags("none", "sql-for-update", "16", "300"), flags("none", "sql-version", "16", "300")},
	} {
		c := comparison{what: x.what, many: x.many}
		if c.rates, err = b.sell(ctx, rounds, x.pess, x.opti); err != nil {
			return a, err
		}
		all = append(all, c)
	}
	var few, many []float64
	for _, c := range all {
		how := "few"
		if c.many {
			many, how = append(many, c.advantage()), "many"
		} else {
			few = append(few, c.advantage())
		}
		a.says += fmt.Sprintf("With %s conflicts (%s) optimistic locking did %s as much. ", how, c.what, times(c.advantage()))
		a.numbers = append(a.numbers,
			repeated(c.what+": pessimistic", c.locked, "a second"),
			repeated(c.what+": optimistic", c.optimistic, "a second"),
			repeated(c.what+": ratio", ratios(c.optimistic, c.locked), ""))
	}
	a.says, a.plain = strings.TrimSpace(a.says), true
	a.is = lockingPays(few, many)
	a.on = "what is locked: a lock that takes three more commands, or a row that the database locks in the same transaction; and on the cost of a failed attempt."
	return a, nil
}

// purchases is the number of purchases of one buyer in a round.
const purchases = 10

// trade is a stock that clients of either kind sell and read.
type trade struct {
	lock       lockimpl.Locker
	key        string
	plain, opt stockimpl.Sale
	order      stockimpl.Order
}

// newTrade opens a stock for clients of both kinds.
func (b *bench) newTrade(ctx context.Context, name string) (*trade, error) {
	env, err := b.env(ctx)
	if err != nil {
		return nil, err
	}
	t := &trade{key: b.key(name), order: stockimpl.Order{Quantity: 1}}
	if t.lock, err = b.locker(ctx, "lua-release"); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		sale string
		to   *stockimpl.Sale
	}{{"plain", &t.plain}, {"watch", &t.opt}} {
		v, ok := stockimpl.Find(x.sale)
		if !ok {
			return nil, fmt.Errorf("no sale %q", x.sale)
		}
		*x.to = v.New(env, b.key(name+"-"+x.sale))
	}
	return t, nil
}

// enough is a stock that no measurement sells out.
const enough = 100_000_000

func (t *trade) open(ctx context.Context) error {
	return errors.Join(t.plain.Open(ctx, enough), t.opt.Open(ctx, enough))
}

// locked calls do with the stock, under the lock.
func (t *trade) locked(ctx context.Context, do func(stockimpl.Sale, lockimpl.Lock) error) error {
	l, err := t.lock.Acquire(ctx, t.key, lockimpl.Options{TTL: 10 * time.Second, Wait: 10 * time.Second, RetryEvery: shortWait})
	if err != nil {
		return err
	}
	return errors.Join(do(t.plain, l), t.lock.Release(ctx, l))
}

func (t *trade) buyLocked(ctx context.Context) error {
	t.order.ID++
	return t.locked(ctx, func(s stockimpl.Sale, l lockimpl.Lock) error {
		_, err := s.Buy(ctx, t.order, l)
		return err
	})
}

func (t *trade) readLocked(ctx context.Context) error {
	return t.locked(ctx, func(s stockimpl.Sale, _ lockimpl.Lock) error {
		_, err := s.State(ctx)
		return err
	})
}

func (t *trade) buyOptimistically(ctx context.Context) error {
	t.order.ID++
	_, err := t.opt.Buy(ctx, t.order, lockimpl.Lock{})
	return err
}

func (t *trade) readOptimistically(ctx context.Context) error {
	_, err := t.opt.State(ctx)
	return err
}

// oneBuyer counts the purchases of one client under a lock and with WATCH, in turns.
func (b *bench) oneBuyer(ctx context.Context) (r rates, err error) {
	t, err := b.newTrade(ctx, "one")
	if err == nil {
		err = t.open(ctx)
	}
	if err != nil {
		return r, err
	}
	rounds := func(buy func(context.Context) error) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			return timed(func() error {
				for range purchases {
					if err := buy(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	taken, err := inTurns(ctx, b.times(250, 150), rounds(t.buyLocked), rounds(t.buyOptimistically))
	if err != nil {
		return r, err
	}
	for i := range taken[0] {
		r.locked = append(r.locked, purchases/(taken[0][i]/1e9))
		r.optimistic = append(r.optimistic, purchases/(taken[1][i]/1e9))
	}
	return r, nil
}

// readers is the number of clients that mostly read; one in so many of their operations is a purchase.
const (
	readers  = 16
	oneIn    = 20
	readTime = 150 * time.Millisecond
)

// mostlyReading counts the operations of clients that mostly read, in turns under a lock and with optimistic
// locking. Readers take the lock, too, so that they do not read during a change.
func (b *bench) mostlyReading(ctx context.Context, rounds int) (r rates, err error) {
	crowd := make([]*trade, readers)
	for i := range crowd {
		if crowd[i], err = b.newTrade(ctx, "read"); err != nil {
			return r, err
		}
	}
	if err := crowd[0].open(ctx); err != nil {
		return r, err
	}
	for range rounds {
		for _, x := range []struct {
			read, buy func(*trade, context.Context) error
			to        *[]float64
		}{
			{(*trade).readLocked, (*trade).buyLocked, &r.locked},
			{(*trade).readOptimistically, (*trade).buyOptimistically, &r.optimistic},
		} {
			var done atomic.Int64
			var g errgroup.Group
			start := time.Now()
			for i, t := range crowd {
				g.Go(func() error {
					for n := i; time.Since(start) < readTime; n++ {
						do := x.read
						if n%oneIn == 0 {
							do = x.buy
						}
						err := do(t, ctx)
						if errors.Is(err, lockimpl.ErrHeld) {
							continue
						}
						if err != nil {
							return err
						}
						done.Add(1)
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				return r, err
			}
			*x.to = append(*x.to, float64(done.Load())/time.Since(start).Seconds())
		}
	}
	return r, nil
}

// sell makes the same sale in two ways, in turns, and counts purchases per second.
func (b *bench) sell(ctx context.Context, rounds int, pessimistic, optimistic []string) (r rates, err error) {
	pair := [][]string{pessimistic, optimistic}
	var cells [][]string
	for range rounds {
		cells = append(cells, pair...)
		slices.Reverse(pair)
	}
	rs, err := b.runs(ctx, cells...)
	if err != nil {
		return r, err
	}
	name := optimistic[slices.Index(optimistic, "--sale")+1]
	for _, x := range rs {
		if x.broke(variant.Sale, variant.NoOversell) > 0 || *x.Sold != *x.Stock {
			return r, fmt.Errorf("a sale of %d pieces sold %d", *x.Stock, *x.Sold)
		}
		rate := float64(*x.Sold) / x.ElapsedMS * 1e3
		if x.Sale == name {
			r.optimistic = append(r.optimistic, rate)
		} else {
			r.locked = append(r.locked, rate)
		}
	}
	return r, nil
}

// clearly is the ratio from which one side counts as faster.
const clearly = 1.05

// lockingPays decides C17 by the advantages of optimistic locking under few conflicts and
// under many.
func lockingPays(few, many []float64) string {
	if len(few) == 0 || len(many) == 0 || slices.Contains(few, 0) || slices.Contains(many, 0) {
		return reports.Inconclusive
	}
	so, not := 0, 0
	note := func(advantage float64) {
		switch {
		case advantage >= clearly:
			so++
		case advantage > 0 && advantage <= 1/clearly:
			not++
		}
	}
	for _, x := range few {
		note(x)
	}
	for _, x := range many {
		if x > 0 {
			note(1 / x)
		}
	}
	switch n := len(few) + len(many); {
	case so == n:
		return reports.Confirmed
	case not == n:
		return reports.Refuted
	case so > 0:
		return reports.Depends // it holds in part
	}
	return reports.Inconclusive
}
