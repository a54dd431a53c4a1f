package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
)

// refusals maps, for each operation, the protocol's refusals to errors.
var refusals = map[string]map[string]error{
	"acquire": {"held": lockimpl.ErrHeld},
	"extend":  {"lost": lockimpl.ErrLost},
	"release": {"lost": lockimpl.ErrLost},
	"buy":     {"sold-out": stockimpl.ErrSoldOut, "stale": stockimpl.ErrStale},
	"refund":  {"stale": stockimpl.ErrStale},
	"pop":     {"empty": queueimpl.ErrEmpty, "locked": queueimpl.ErrLocked},
	"enqueue": {"locked": queueimpl.ErrLocked},
	"ack":     {"lost": queueimpl.ErrLost},
}

// ask is like call, but returns a refusal as its declared error. An undeclared refusal leaves the outcome unknown.
func (c *client) ask(ctx context.Context, r request, wait time.Duration) (answer, error) {
	a, err := c.call(ctx, r, wait)
	declared, known := refusals[r.Op][a.Refused]
	if err == nil && a.Refused != "" && !known {
		err = undeclared(c, r, a)
	}
	if c.env.Step == nil {
		c.system.note(r.Op, err)
	}
	if err == nil && known {
		return a, declared
	}
	return a, err
}

// undeclared returns the error for a refusal that is not part of the protocol.
func undeclared(c *client, r request, a answer) error {
	return fmt.Errorf("%s of %s was refused with %q, which is not a refusal of %s", r.Op, c.system.Name, a.Refused, r.Op)
}

// answers counts the answers to the calls of an operation in a run.
type answers struct {
	definite, open int
	first          error // of the calls with unknown outcome
}

// note counts a finished call; with an err the outcome is unknown.
func (s *System) note(op string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.asked[op]
	switch {
	case err == nil:
		a.definite++
	default:
		a.open++
		a.first = cmp.Or(a.first, err)
	}
	if s.asked == nil {
		s.asked = map[string]answers{}
	}
	s.asked[op] = a
}

// dispensable are the operations that a run does not need: extensions are in the history, and the final state is
// judged only if it is known.
var dispensable = []string{"extend", "state", "last"}

// Silent returns an error if no call of some operation had a definite answer. A system that lacks an operation does
// nothing, and calls that may have had an effect would hide violations. In a disturbed run, only an explicit
// answer that the operation is missing counts.
func (s *System) Silent(disturbed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, op := range slices.Sorted(maps.Keys(s.asked)) {
		a := s.asked[op]
		if lacks := errors.Is(a.first, errors.ErrUnsupported); a.definite == 0 && !slices.Contains(dispensable, op) && (lacks || !disturbed) {
			return fmt.Errorf("no answer to %s was definite (%s); the first: %w", op, phrase.Count(a.open, "call"), a.first)
		}
	}
	return nil
}

// lock is a client's handle of a system that is a lock.
type lock struct{ *client }

// Acquire implements [lockimpl.Locker].
func (l *lock) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	sent := time.Now()
	if o.MaxTries == 1 {
		o.Wait = 0
	}
	a, err := l.ask(ctx, request{Op: "acquire", Key: key, TTLMS: o.TTL.Milliseconds(), WaitMS: o.Wait.Milliseconds(), RetryMS: o.RetryEvery.Milliseconds()}, o.Wait)
	if err != nil {
		return lockimpl.Lock{}, err
	}
	return lockimpl.Lock{Key: key, Token: string(a.Lock), Fence: a.Fence, Until: a.until(sent, o.TTL), Via: a.Via}, nil
}

// Extend implements [lockimpl.Locker].
func (l *lock) Extend(ctx context.Context, held lockimpl.Lock, ttl time.Duration) (lockimpl.Lock, error) {
	sent := time.Now()
	a, err := l.ask(ctx, request{Op: "extend", Key: held.Key, TTLMS: ttl.Milliseconds(), Lock: raw(held.Token)}, 0)
	if err != nil {
		return lockimpl.Lock{}, err
	}
	held.Until = a.until(sent, ttl)
	if len(a.Lock) > 0 {
		held.Token = string(a.Lock)
	}
	return held, nil
}

// Release implements [lockimpl.Locker].
func (l *lock) Release(ctx context.Context, held lockimpl.Lock) error {
	_, err := l.ask(ctx, request{Op: "release", Key: held.Key, Lock: raw(held.Token)}, 0)
	return err
}

// raw returns what a system returned as its lock; nil if nothing.
func raw(token string) []byte {
	if token == "" {
		return nil
	}
	return []byte(token)
}

// sale is a client's handle of a system that is a sale.
type sale struct {
	*client
	product string
}

// Open implements [stockimpl.Sale].
func (s *sale) Open(ctx context.Context, stock int64) error {
	_, err := s.ask(ctx, request{Op: "open", Product: s.product, Stock: stock}, 0)
	return err
}

// Buy implements [stockimpl.Sale].
func (s *sale) Buy(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	return s.order(ctx, "buy", o, l)
}

// Refund implements [stockimpl.Sale].
func (s *sale) Refund(ctx context.Context, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	return s.order(ctx, "refund", o, l)
}

func (s *sale) order(ctx context.Context, op string, o stockimpl.Order, l lockimpl.Lock) (int64, error) {
	a, err := s.ask(ctx, request{Op: op, Product: s.product, Order: o.ID, Quantity: o.Quantity, Fence: l.Fence}, 0)
	left := int64(stockimpl.Unsaid)
	if a.Left != nil {
		left = *a.Left
	}
	if err == nil && a.Repeated {
		err = stockimpl.ErrRepeated
	}
	return left, err
}

// State implements [stockimpl.Sale].
func (s *sale) State(ctx context.Context) (stockimpl.State, error) {
	a, err := s.ask(ctx, request{Op: "state", Product: s.product}, 0)
	if err != nil {
		return stockimpl.State{}, err
	}
	if a.Left == nil {
		return stockimpl.State{}, fmt.Errorf("state of %s: the answer has no %q", s.system.Name, "left")
	}
	state := stockimpl.State{Left: *a.Left, Reserved: a.Reserved, Sold: stockimpl.Unsaid}
	if a.Sold != nil {
		state.Sold = *a.Sold
	}
	return state, nil
}

// queue is a client's handle of a system that is a queue.
type queue struct{ *client }

// ackedQueue is a queue that keeps its tasks until they are acknowledged.
type ackedQueue struct{ queue }

// Enqueue implements [queueimpl.Queue].
func (q *queue) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	a, err := q.ask(ctx, request{Op: "enqueue", Queue: name, Tasks: ids}, 0)
	if err != nil {
		return nil, err
	}
	if a.Entered == nil { // all were added
		for _, id := range ids {
			a.Entered = append(a.Entered, task{ID: id})
		}
	}
	return tasks(a.Entered), nil
}

// Pop implements [queueimpl.Queue].
func (q *queue) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	a, err := q.ask(ctx, request{Op: "pop", Queue: name, Count: count}, 0)
	if err == nil && len(a.Tasks) == 0 {
		err = queueimpl.ErrEmpty
	}
	return tasks(a.Tasks), err
}

// Ack implements [queueimpl.Acker].
func (q *ackedQueue) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	_, err := q.ask(ctx, request{Op: "ack", Queue: name, Task: &task{ID: t.ID, Score: t.Score, Attempt: t.Attempt, Receipt: t.Receipt}}, 0)
	return err
}

// State implements [queueimpl.Queue].
func (q *queue) State(ctx context.Context, name string) (queueimpl.State, error) {
	a, err := q.ask(ctx, request{Op: "state", Queue: name}, 0)
	return queueimpl.State{Waiting: tasks(a.Tasks), Claimed: tasks(a.Claimed)}, err
}

func tasks(ts []task) (all []queueimpl.Task) {
	for _, t := range ts {
		q := queueimpl.Task{ID: t.ID, Score: t.Score, Attempt: t.Attempt, Receipt: t.Receipt}
		if t.UntilMS > 0 {
			q.Until = time.UnixMicro(int64(t.UntilMS * 1000))
		}
		all = append(all, q)
	}
	return all
}

// generator is a client's handle of a system that generates numbers.
type generator struct {
	*client
	counter string
}

// Next implements [idimpl.Generator].
func (g *generator) Next(ctx context.Context, id string, _ lockimpl.Lock) (int64, error) {
	a, err := g.ask(ctx, request{Op: "next", Counter: g.counter, Request: id}, 0)
	return a.Number, err
}

// Last implements [idimpl.Generator].
func (g *generator) Last(ctx context.Context) (int64, error) {
	a, err := g.ask(ctx, request{Op: "last", Counter: g.counter}, 0)
	return a.Number, err
}
