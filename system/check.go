package system

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oversell/idimpl"
	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// Finding is the result of one call of [System.Check].
type Finding struct {
	// Tried describes the call.
	Tried string `json:"tried"`
	// Want and Got are the expected and the actual answer.
	Want string `json:"want"`
	Got  string `json:"got"`
	// OK reports whether they are the same.
	OK bool `json:"ok"`
	// Optional means that a run does not need the operation.
	Optional bool `json:"optional,omitempty"`
}

// checking is a check in progress.
type checking struct {
	ctx      context.Context
	system   *System
	env      func() variant.Env
	findings []Finding
}

// Check tries each operation of the system, with valid and invalid calls, and returns the findings. env creates the
// environment of a client. Names begin with prefix, to avoid collisions.
func (s *System) Check(ctx context.Context, env func() variant.Env, prefix string) []Finding {
	c := &checking{ctx: ctx, system: s, env: env}
	switch s.Object {
	case variant.Lock:
		c.lock(prefix + "lock")
	case variant.Sale:
		c.sale(prefix + "product")
	case variant.Queue:
		c.queue(prefix + "queue")
	case variant.IDs:
		c.ids(prefix + "counter")
	}
	return c.findings
}

// told describes a result.
func told(err error) string {
	if err == nil {
		return "ok"
	}
	for _, words := range refusals {
		for word, declared := range words {
			if errors.Is(err, declared) {
				return "refused: " + word
			}
		}
	}
	if errors.Is(err, stockimpl.ErrRepeated) {
		return "ok, repeated"
	}
	return phrase.OneLine(err.Error())
}

// expect records the result of a call; any of wanted is correct.
func (c *checking) expect(tried string, err error, wanted ...error) {
	c.found(finding(tried, err, wanted...))
}

// optional is like expect, for an operation that a run does not need.
func (c *checking) optional(tried string, err error, wanted ...error) {
	f := finding(tried, err, wanted...)
	f.Optional = true
	c.found(f)
}

// failed records a wrong value.
func (c *checking) failed(tried, want, got string) {
	c.found(Finding{Tried: tried, Want: want, Got: got, OK: want == got})
}

// found records a finding. Failures after the check was stopped do not count.
func (c *checking) found(f Finding) {
	if f.OK || c.ctx.Err() == nil {
		c.findings = append(c.findings, f)
	}
}

// finding returns the result of a call; any of wanted is correct.
func finding(tried string, err error, wanted ...error) Finding {
	f := Finding{Tried: tried, Want: told(wanted[0]), Got: told(err)}
	for _, w := range wanted {
		f.OK = f.OK || f.Got == told(w)
	}
	return f
}

// checkedLease is long enough for the calls of a check, and short enough to wait for.
const checkedLease = 2 * time.Second

func (c *checking) lock(key string) {
	v := c.system.Lock()
	one, other := v.New(c.env()), v.New(c.env())
	long := lockimpl.Options{TTL: time.Minute, RetryEvery: 10 * time.Millisecond}
	held, err := one.Acquire(c.ctx, key, long)
	c.expect("acquire a free lock", err, nil)
	if err != nil {
		return
	}
	if left := time.Until(held.Until); left > long.TTL || left < long.TTL/2 {
		c.failed("the validity of a lease of "+long.TTL.String(), "until_ms or valid_ms within it", left.Round(time.Millisecond).String())
	}
	_, err = other.Acquire(c.ctx, key, long)
	c.expect("acquire a lock that another client holds, without waiting", err, lockimpl.ErrHeld)
	_, err = one.Extend(c.ctx, held, long.TTL)
	c.optional("extend a lock that is held", err, nil)
	c.expect("release a lock that is held", one.Release(c.ctx, held), nil)
	c.expect("release it again", one.Release(c.ctx, held), lockimpl.ErrLost)
	next, err := other.Acquire(c.ctx, key, long)
	c.expect("acquire it after it was released", err, nil)
	c.expect("release it as the previous holder", one.Release(c.ctx, held), lockimpl.ErrLost)
	if err == nil {
		if v.Fences && next.Fence <= held.Fence {
			c.failed("the fencing token of the next grant", fmt.Sprintf("above %d", held.Fence), fmt.Sprint(next.Fence))
		}
		c.expect("release it as the holder", other.Release(c.ctx, next), nil)
	}
	c.waits(one, other, key, checkedLease)
}

// waits checks whether an acquisition waits for the holder. A run does not need that: a refused client tries again.
func (c *checking) waits(one, other lockimpl.Locker, key string, lease time.Duration) {
	short := lockimpl.Options{TTL: lease, Wait: 3 * lease, RetryEvery: 10 * time.Millisecond}
	if _, err := one.Acquire(c.ctx, key, short); err != nil {
		return
	}
	began := time.Now()
	last, err := other.Acquire(c.ctx, key, short)
	if errors.Is(err, lockimpl.ErrHeld) && time.Since(began) < lease/2 {
		c.optional("wait for a lock until wait_ms is over", err, nil)
		for errors.Is(err, lockimpl.ErrHeld) && time.Since(began) < 3*lease && c.ctx.Err() == nil {
			_ = c.env().Clock.Sleep(c.ctx, lease/20) // err is then that of a call
			last, err = other.Acquire(c.ctx, key, short)
		}
	}
	c.expect("acquire a lock whose lease of "+lease.String()+" has ended", err, nil)
	if err == nil {
		c.expect("release it", other.Release(c.ctx, last), nil)
	}
}

func (c *checking) sale(product string) {
	v := c.system.Sale()
	one, other := v.New(c.env(), product), v.New(c.env(), product)
	c.expect("open the sale of 3 pieces", one.Open(c.ctx, 3), nil)
	c.left(one, 3)
	_, err := one.Buy(c.ctx, stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
	c.expect("buy 1 piece", err, nil)
	c.left(other, 2)
	if slices.Contains(c.system.Promises, variant.OncePerOrder) {
		_, err = other.Buy(c.ctx, stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
		c.expect("send the same order again", err, stockimpl.ErrRepeated, nil)
		c.left(one, 2)
	}
	_, err = other.Buy(c.ctx, stockimpl.Order{ID: 2, Quantity: 2}, lockimpl.Lock{})
	c.expect("buy the 2 pieces that are left", err, nil)
	_, err = one.Buy(c.ctx, stockimpl.Order{ID: 3, Quantity: 1}, lockimpl.Lock{})
	c.expect("buy when nothing is left", err, stockimpl.ErrSoldOut)
	_, err = one.Refund(c.ctx, stockimpl.Order{ID: 1, Quantity: 1}, lockimpl.Lock{})
	c.optional("refund 1 piece (for runs with --refund)", err, nil)
}

func (c *checking) left(s stockimpl.Sale, want int64) {
	state, err := s.State(c.ctx)
	if err != nil {
		c.expect("ask what is left", err, nil)
		return
	}
	c.failed("ask what is left", fmt.Sprint(want), fmt.Sprint(state.Left))
}

func (c *checking) queue(name string) {
	v := c.system.Queue()
	one, other := v.New(c.env(), queueimpl.Options{}), v.New(c.env(), queueimpl.Options{})
	_, err := one.Enqueue(c.ctx, name, "a", "b")
	c.expect("enqueue two tasks", err, nil)
	c.holds(one, name, 2)
	for _, q := range []queueimpl.Queue{other, one} {
		ts, err := q.Pop(c.ctx, name, 1)
		c.expect("take a task", err, nil)
		if err == nil && len(ts) != 1 {
			c.failed("the number of tasks taken", "1", fmt.Sprint(len(ts)))
		}
		if acker, acks := q.(queueimpl.Acker); acks && len(ts) == 1 {
			c.expect("acknowledge it", acker.Ack(c.ctx, name, ts[0]), nil)
		}
	}
	_, err = one.Pop(c.ctx, name, 1)
	c.expect("take a task from an empty queue", err, queueimpl.ErrEmpty)
	c.holds(one, name, 0)
}

// holds checks the reported content of a queue.
func (c *checking) holds(q queueimpl.Queue, name string, want int) {
	state, err := q.State(c.ctx, name)
	c.expect("ask what the queue holds", err, nil)
	if err == nil {
		c.failed("the number of tasks in the queue", fmt.Sprint(want), fmt.Sprint(len(state.Waiting)+len(state.Claimed)))
	}
}

func (c *checking) ids(counter string) {
	v := c.system.IDs()
	gs := []idimpl.Generator{v.New(c.env(), counter), v.New(c.env(), counter)}
	var ns []int64
	for i, g := range gs {
		n, err := g.Next(c.ctx, fmt.Sprint("check-", i), lockimpl.Lock{})
		c.expect("take a number", err, nil)
		ns = append(ns, n)
	}
	if ns[0] == ns[1] {
		c.failed("the second number", fmt.Sprintf("another than %d", ns[0]), fmt.Sprint(ns[1]))
	}
	_, err := gs[0].Last(c.ctx)
	c.optional("ask for the highest number", err, nil)
}
