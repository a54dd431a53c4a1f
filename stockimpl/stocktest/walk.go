package stocktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/stockimpl"
	"oversell/stockimpl/stockmodel"
	"oversell/variant"
)

// A walk has two or three clients buy and refund at once, chooses at random which of them sends
// its next command, loses some requests and answers, and lets some clients die. A model then tells
// whether the answers, and what the server holds in the end, can be explained.

const (
	walksFor = 4 * time.Second // how long walks go on
	walkers  = 3               // walks at once
	// parked is how long a client may take to its next command before others go on: it may sleep,
	// or wait for another.
	parked = 30 * time.Millisecond
	// pause is now and then waited for, so that what is set aside for a second runs out.
	pause = 1100 * time.Millisecond
)

// canWalk tells the sales that bear calls side by side whose commands can be acted upon.
func canWalk(v stockimpl.Variant) bool {
	for _, f := range v.Flaws {
		if (f.Fault == variant.NoFault || f.Fault == variant.Overrun) && slices.Contains(v.Promises, f.Property) {
			return false
		}
	}
	return onRedis(v) && slices.Contains(v.Promises, variant.NoOversell) && slices.Contains(v.Promises, variant.NoUndersell)
}

// seed is the seed of the first walk; OVERSELL_SEED sets it.
func seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("OVERSELL_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return n
}

// randomWalks walks until time is over or a promise is broken.
func randomWalks(ctx context.Context, b bench) error {
	setsAside, err := b.setsAside(ctx)
	if err != nil {
		return err
	}
	var next atomic.Uint64
	next.Store(seed())
	end := time.Now().Add(walksFor)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, walkers)
	var all sync.WaitGroup
	for i := range walkers {
		envs := make([]variant.Env, 4)
		for n := range envs {
			envs[n] = b.Env()
		}
		all.Go(func() {
			for ctx.Err() == nil && time.Now().Before(end) {
				w := newWalk(b, envs, next.Add(1)-1)
				w.model.TellsLeft = b.promises(variant.Linearizable) && !setsAside
				err := w.run(ctx)
				if ctx.Err() != nil && !errors.As(err, new(*suitetest.Breach)) {
					return // another walk found something, or time is over
				}
				if errs[i] = err; err != nil {
					stop()
					return
				}
			}
		})
	}
	all.Wait()
	return firstBreach(errs)
}

// setsAside tells whether pieces are reserved in the middle of a purchase. Then what is left
// depends on who counts what is reserved.
func (b bench) setsAside(ctx context.Context) (bool, error) {
	b.Product += "-aside"
	f := &fences{}
	y, err := openedWith(ctx, b, b.Product, 5, f)
	if err != nil {
		return false, err
	}
	c, line := b.buyerOf(ctx, b.Product, f)
	found := false
	var last <-chan struct{}
	line.Plan(func(int) interrupt.Action {
		var s stockimpl.State
		var err error
		done, ok := soon(func() { s, err = y.sale.State(ctx) })
		if last = done; !ok {
			line.Plan(nil)
			return interrupt.Pass
		}
		found = found || err == nil && s.Reserved > 0
		return interrupt.Pass
	})
	_, _ = c.sale.Buy(ctx, order(1, 1), c.lock())
	if last != nil {
		<-last
	}
	return found, nil
}

// walk is one random walk.
type walk struct {
	b      bench
	seed   uint64
	rand   *rand.Rand
	fences *fences
	model  *stockmodel.Model
	sizes  map[int64]int // of orders

	opener  *buyer
	clients []*walker

	mu     sync.Mutex
	events []string
	calls  []stockmodel.Call
}

// walker is a client in a walk.
type walker struct {
	*buyer
	number int
	line   *interrupt.Interceptor
	plan   []stockmodel.Call
	// gate hands out where the client waits before a command.
	gate chan chan interrupt.Action
	done chan struct{}
	dead atomic.Bool
	now  stockmodel.Call // under way
	// unheard says that the answer of a command of the call under way was lost.
	unheard atomic.Bool
}

// gone tells whether the client has died. The client that opens a walk is no walker, and lives.
func (c *walker) gone() bool { return c != nil && c.dead.Load() }

func newWalk(b bench, envs []variant.Env, seed uint64) *walk {
	b.Product = fmt.Sprintf("%s-walk-%d", b.Product, seed)
	w := &walk{b: b, seed: seed, rand: rand.New(rand.NewPCG(seed, 1)), fences: &fences{}, sizes: map[int64]int{}}
	w.model = &stockmodel.Model{Stock: int64(1 + w.rand.IntN(3)), IDs: b.promises(variant.OncePerOrder)}
	for id := int64(1); id <= 4; id++ {
		w.sizes[id] = 1 + w.rand.IntN(2)
	}
	w.opener = &buyer{b: b, sale: b.newSale(envs[0], b.Product), fences: w.fences}
	for i := range 2 + w.rand.IntN(2) {
		env, line := b.interrupted(envs[i+1])
		c := &walker{number: i + 1, line: line, gate: make(chan chan interrupt.Action), done: make(chan struct{})}
		c.buyer = &buyer{b: b, sale: b.newSale(env, b.Product), fences: w.fences}
		for n := range 1 + w.rand.IntN(2) {
			id := int64(1 + w.rand.IntN(4))
			if !w.model.IDs { // each order comes once, and is refunded once
				id = int64(10*c.number + n)
				w.sizes[id] = 1 + w.rand.IntN(2)
			}
			c.plan = append(c.plan, stockmodel.Call{Refund: w.model.IDs && w.rand.IntN(3) == 0 && b.noRefunds == nil, Order: order(id, w.sizes[id])})
		}
		w.clients = append(w.clients, c)
	}
	return w
}

// note records an event, and returns its number.
func (w *walk) note(format string, args ...any) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, args...))
	return len(w.events)
}

// do makes a call of a client and keeps its answer.
func (w *walk) do(ctx context.Context, y *buyer, c stockmodel.Call, by *walker) stockmodel.Call {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if by != nil {
		by.unheard.Store(false)
	}
	c.Begun = w.note("client %d calls %v", c.Client, c)
	if c.Refund {
		c.Left, c.Err = y.sale.Refund(ctx, c.Order, y.lock())
	} else {
		c.Left, c.Err = y.sale.Buy(ctx, c.Order, y.lock())
	}
	c.Open = !declared(c.Err) || by.gone()
	c.Unheard = by != nil && by.unheard.Load()
	if !by.gone() {
		c.Ended = w.note("client %d's %v is answered %s", c.Client, c, c.Answer())
	}
	if c.Open {
		c.Ended = stockmodel.Never
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	return c
}

// run walks once, and judges.
func (w *walk) run(ctx context.Context) error {
	if err := w.opener.sale.Open(ctx, w.model.Stock); err != nil {
		return fmt.Errorf("open %q with %d pieces: %w", w.b.Product, w.model.Stock, err)
	}
	for id := range int64(w.rand.IntN(3)) {
		if w.model.IDs {
			w.do(ctx, w.opener, stockmodel.Call{Order: order(id+1, w.sizes[id+1])}, nil)
		}
	}
	for _, c := range w.clients {
		c.line.Plan(func(int) interrupt.Action { return c.await(ctx) })
		if w.rand.IntN(4) == 0 {
			c.line.ForgetScripts()
		}
		go w.follow(ctx, c)
	}
	paused := w.schedule(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if paused && !w.sleep(ctx) {
		return context.Cause(ctx)
	}
	w.sendAgain(ctx)
	for id := int64(100); id < 110; id++ { // sell what is left
		if w.do(ctx, w.opener, stockmodel.Call{Client: 0, Order: order(id, 1)}, nil).Err != nil {
			break
		}
	}
	final, err := w.opener.sale.State(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}
	err = w.model.Verdict(w.calls, final)
	if v := new(suitetest.Breach); errors.As(err, &v) {
		return w.shown(v)
	}
	return err
}

// follow makes the calls that a client has before it. A client without order ids refunds
// some of what it bought.
func (w *walk) follow(ctx context.Context, c *walker) {
	defer close(c.done)
	for _, next := range c.plan {
		next.Client = c.number
		c.now = next
		got := w.do(ctx, c.buyer, next, c)
		if !w.model.IDs && w.b.noRefunds == nil && got.Err == nil && !c.dead.Load() && next.Order.Quantity == 1 {
			next.Refund = true
			c.now = next
			w.do(ctx, c.buyer, next, c)
		}
		if c.dead.Load() {
			return
		}
	}
}

// await holds a client up until it is its turn.
func (c *walker) await(ctx context.Context) interrupt.Action {
	if c.dead.Load() {
		return interrupt.LoseRequest
	}
	turn := make(chan interrupt.Action)
	select {
	case c.gate <- turn:
		return <-turn
	case <-ctx.Done():
		return interrupt.LoseRequest
	}
}

// schedule lets one client after the other send a command, until all have come to their end. It
// reports whether a second was waited for.
func (w *walk) schedule(ctx context.Context) (paused bool) {
	running := slices.Clone(w.clients)
	waiting := map[*walker]chan interrupt.Action{}
	for len(running) > 0 || len(waiting) > 0 {
		running = slices.DeleteFunc(running, func(c *walker) bool {
			select {
			case turn := <-c.gate:
				waiting[c] = turn
				return true
			case <-c.done:
				return true
			case <-time.After(parked):
				return false
			}
		})
		var who []*walker
		for _, c := range w.clients {
			if waiting[c] != nil {
				who = append(who, c)
			}
		}
		if len(who) == 0 {
			continue
		}
		c := who[w.rand.IntN(len(who))]
		if !paused && w.rand.IntN(320) == 0 {
			paused = w.sleep(ctx)
		}
		w.act(c, waiting[c])
		delete(waiting, c)
		running = append(running, c)
	}
	return paused
}

// sleep lets what is set aside for a second run out.
func (w *walk) sleep(ctx context.Context) bool {
	w.note("%v pass", pause)
	return (clock.Real{}).Sleep(ctx, pause) == nil
}

// act chooses what happens to a client's next command.
func (w *walk) act(c *walker, turn chan interrupt.Action) {
	a, how := interrupt.Pass, "is sent, and answered"
	dies := false
	n := w.rand.IntN(40)
	switch {
	case n == 0 && !w.b.hasFlaw(variant.DropReply):
		a, how = interrupt.LoseReply, "is executed, and its answer is lost"
	case n == 1 && !w.b.hasFlaw(variant.DropReply):
		a, how = interrupt.LoseRequest, "is lost, and not executed"
	case n == 2 && !w.b.hasFlaw(variant.Crash):
		a, how, dies = interrupt.LoseRequest, "is not sent: the client has died", true
	case n == 3 && !w.b.hasFlaw(variant.Crash):
		a, how, dies = interrupt.LoseReply, "is executed, and the client dies", true
	case n == 4 || n == 5:
		w.note("the server forgets its scripts")
		for _, each := range w.clients {
			each.line.ForgetScripts()
		}
	}
	w.note("client %d's %v: %s %s", c.number, c.now, c.line.Command(), how)
	if dies {
		c.dead.Store(true)
	}
	if a == interrupt.LoseReply {
		c.unheard.Store(true)
	}
	turn <- a
}

// sendAgain sends again, by another client, what was stale or has an open outcome: the caller, or
// a clean-up job, would do so.
func (w *walk) sendAgain(ctx context.Context) {
	if !w.model.IDs {
		return
	}
	for _, c := range slices.Clone(w.calls) {
		if !c.Open && !errors.Is(c.Err, stockimpl.ErrStale) {
			continue
		}
		for tries := 0; tries < 20; tries++ {
			again := stockmodel.Call{Refund: c.Refund, Order: c.Order}
			if err := w.do(ctx, w.opener, again, nil).Err; !errors.Is(err, stockimpl.ErrStale) {
				break
			}
			_ = (clock.Real{}).Sleep(ctx, time.Millisecond)
		}
	}
}

// hasFlaw tells whether the sale says that a fault breaks what it promises.
func (b bench) hasFlaw(f variant.Fault) bool {
	return slices.ContainsFunc(b.sale.Flaws, func(flaw variant.Flaw) bool {
		return flaw.Fault == f && b.promises(flaw.Property)
	})
}

// shown tells how the walk went.
func (w *walk) shown(v *suitetest.Breach) error {
	var text strings.Builder
	for i, e := range w.events {
		fmt.Fprintf(&text, "\n  %3d. %s", i+1, e)
	}
	v.How = fmt.Errorf("%w. What happened, with a stock of %d (client 0 opens the sale, and sells what is left in the end; OVERSELL_SEED=%d tries this walk first):%s", v.How, w.model.Stock, w.seed, text.String())
	return v
}
