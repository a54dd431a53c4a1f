package queueclient

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/interrupt"
	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/variant"
)

// The rules interrupt a client at each command of a call, up to as many as the longest call has. These are the limits of that number.
const (
	leastCommands = 5
	mostCommands  = 10
)

// Measured makes each call on another queue, and returns the bench with the number of commands of the longest one.
func (b Bench) Measured(ctx context.Context) Bench {
	ctx, cancel := context.WithTimeout(ctx, Answer)
	defer cancel()
	most := make(chan int, 100)
	go func() {
		defer close(most)
		_ = suitetest.Caught("the queue", func() error { // a panic is for the rules to find
			c, line := b.Interrupted(ctx)
			practice := *c
			practice.Name += "-measured"
			practice.practise(ctx, func(call func()) {
				line.Plan(nil)
				call()
				most <- line.Sent()
			})
			return nil
		})
	}()
	measured := false
	for {
		select {
		case n, more := <-most:
			measured = measured || more
			if b.commands = min(max(b.commands, n), mostCommands); !more {
				b.unseen = measured && b.commands == 0
				return b
			}
		case <-ctx.Done(): // a call that does not end is for the rules to find, too
			return b
		}
	}
}

// Claim is the visibility timeout in these rules: long enough for a busy machine.
const Claim = 250 * time.Millisecond

// SetVisibility sets the visibility timeout of a queue to Claim.
func SetVisibility(o *queueimpl.Options) { o.Visibility = Claim }

// As returns the bench with what was measured on another one.
func (b Bench) As(measured Bench) Bench {
	b.commands, b.unseen = measured.commands, measured.unseen
	return b
}

// Interrupted makes a client with commands that can be dropped or delayed. It has made every call
// once, so that scripts are loaded.
func (b Bench) Interrupted(ctx context.Context, change ...func(*queueimpl.Options)) (*Client, *interrupt.Interceptor) {
	var o queueimpl.Options
	if b.Variant.AtLeastOnce {
		SetVisibility(&o)
	}
	for _, c := range change {
		c(&o)
	}
	b.interrupt()
	env, line := interrupt.Intercept(b.Env())
	line.TakeApart()
	c := &Client{Queue: b.Variant.New(env, o), Bench: b, Env: env, Name: b.Queue}
	practice := *c
	practice.Name += "-practice"
	practice.practise(ctx, func(call func()) { call() })
	return c, line
}

// Slow returns the bench with clients whose answers each come so late.
func (b Bench) Slow(by time.Duration) Bench {
	b.interrupt()
	quick := b.Env
	b.Env = func() variant.Env { return interrupt.Slow(quick(), by) }
	return b
}

// interrupt notes that the rule acts upon the commands of a client.
func (b Bench) interrupt() {
	if b.interrupts != nil {
		b.interrupts.Store(true)
	}
}

// Unseen returns an error if the rule has acted upon the commands of a client, and none is sent through Env.Redis.
func (b Bench) Unseen() error {
	if !b.unseen || b.interrupts == nil || !b.interrupts.Load() {
		return nil
	}
	return &suitetest.NotJudged{Why: "the queue sends no command through Env.Redis, so the suite cannot hold up or lose one: it does not see those of a client of the queue's own, at Env.Addr"}
}

// practise makes every call once, by way of do.
func (c *Client) practise(ctx context.Context, do func(call func())) {
	do(func() { _, _ = c.Enqueue(ctx, c.Name, "p", "q", "r") })
	if d, ok := c.Queue.(queueimpl.Dequeuer); ok {
		do(func() { _ = d.Dequeue(ctx, c.Name, "p", 1) })
	}
	if p, ok := c.Queue.(queueimpl.Peeker); ok {
		do(func() { _, _ = p.Peek(ctx, c.Name, 1) })
	}
	if j, ok := c.Queue.(queueimpl.Journaler); ok {
		do(func() { _, _ = j.PopAs(ctx, c.Name, c.Request("practice"), 1) })
		do(func() { _, _ = j.Popped(ctx, c.Name, c.Request("practice")) })
	}
	var tasks []queueimpl.Task
	do(func() { tasks, _ = c.Pop(ctx, c.Name, 2) })
	if len(tasks) > 0 {
		if x, ok := c.Queue.(queueimpl.Extender); ok {
			do(func() { _, _ = x.Extend(ctx, c.Name, tasks[0]) })
		}
		do(func() { _ = c.Done(ctx, tasks[:1]...) })
		_ = c.Done(ctx, tasks[1:]...)
	}
	if r, ok := c.Queue.(queueimpl.Reclaimer); ok {
		do(func() { _, _ = r.Reclaim(ctx, c.Name) })
	}
	do(func() { _, _ = c.Take(ctx, 1) })
	do(func() { _, _ = c.State(ctx, c.Name) })
}

// Other makes another client with the same timeout.
func (b Bench) Other() *Client {
	if b.Variant.AtLeastOnce {
		return b.Client(SetVisibility)
	}
	return b.Client()
}

// Passes lets a time pass.
func (b Bench) Passes(ctx context.Context, d time.Duration) {
	if b.Pass != nil {
		b.Pass(d)
		return
	}
	_ = clock.Real{}.Sleep(ctx, d)
}

// Lateness is how late a claim may end, for example by a reaper that looks twice a second.
// PatienceForClaims is how long after the end of its claim a task may be missing before it counts
// as lost.
const (
	Lateness          = 700 * time.Millisecond
	PatienceForClaims = 4 * Lateness
)

// Settled returns all deliveries until nothing came for longer than a claim lasts, each
// acknowledged. While the server holds something it is waited for longer.
func (c *Client) Settled(ctx context.Context) (map[string]int, error) {
	got := map[string]int{}
	idle := time.Duration(0)
	for {
		if idle >= Claim*3/2 {
			s, err := c.State(ctx, c.Name)
			if err != nil {
				return got, suitetest.Broken(TheInterface, "state answered %q", err)
			}
			if len(s.Waiting)+len(s.Claimed) == 0 || idle >= PatienceForClaims {
				return got, nil
			}
		}
		tasks, err := c.Take(ctx, 1)
		if err != nil {
			return got, err
		}
		for _, t := range tasks {
			got[t.ID]++
			if err := c.Done(ctx, t); err != nil {
				return got, err
			}
		}
		switch {
		case len(tasks) > 0:
			idle = 0
		case !c.Bench.Variant.AtLeastOnce:
			return got, nil
		default:
			c.Bench.Passes(ctx, Claim/10)
			idle += Claim / 10
		}
	}
}

// InTurn reports whether a pop hands out the first of several tasks.
func (b Bench) InTurn(ctx context.Context) (bool, error) {
	c := b.Client()
	c.Name += "-in-turn"
	for _, id := range []string{"a", "b", "c"} {
		if _, err := c.Enter(ctx, TheInterface, id); err != nil {
			return false, err
		}
	}
	got, err := c.Take(ctx, 1)
	return err == nil && len(got) > 0 && got[0].ID == "a", nil
}

// Loses tells whether a flaw takes a promise back under a fault.
func Loses(v queueimpl.Variant, p variant.Property, faults ...variant.Fault) bool {
	return !Keeps(v, p) || slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && slices.Contains(faults, f.Fault)
	})
}

// Each runs a case for every step and action, on a queue of its own, side by side on a
// real clock.
func (b Bench) Each(ctx context.Context, actions []interrupt.Action, check func(ctx context.Context, b Bench, n int, a interrupt.Action) error) error {
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	for n := 1; n <= max(b.commands, leastCommands); n++ {
		for _, a := range actions {
			own := b
			own.Queue = fmt.Sprintf("%s-%d-%d", b.Queue, n, a)
			try := func() {
				if err := check(ctx, own, n, a); err != nil {
					mu.Lock()
					defer mu.Unlock()
					if first == nil {
						first = fmt.Errorf("at command %d%s: %w", n, said[a], err)
					}
				}
			}
			if b.Pass != nil {
				try()
			} else {
				wg.Go(try)
			}
		}
	}
	wg.Wait()
	return first
}

// Stalls is Each for rules that hold a client up.
func (b Bench) Stalls(ctx context.Context, check func(ctx context.Context, b Bench, n int) error) error {
	return b.Each(ctx, []interrupt.Action{interrupt.Pass}, func(ctx context.Context, b Bench, n int, _ interrupt.Action) error { return check(ctx, b, n) })
}

var said = map[interrupt.Action]string{interrupt.Pass: "", interrupt.LoseRequest: " (not executed)", interrupt.LoseReply: " (executed, not answered)", interrupt.Refuse: " (refused by the server)"}

// BothWays are the ways in which a command has no answer.
var BothWays = []interrupt.Action{interrupt.LoseRequest, interrupt.LoseReply}

// Keeps tells whether a queue makes a promise and keeps it when nothing is done to
// it, its clients are kept apart, and no id is enqueued again.
func Keeps(v queueimpl.Variant, p variant.Property) bool {
	return slices.Contains(v.Promises, p) && !slices.ContainsFunc(v.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && f.Fault == variant.NoFault && f.Under == ""
	})
}

// Can reports whether the queue implements the optional interface T.
func Can[T any](v queueimpl.Variant) bool {
	_, ok := v.Sample().(T)
	return ok
}

// Lends reports whether consumers acknowledge tasks, and a task that is not acknowledged is delivered again.
func Lends(v queueimpl.Variant) bool { return v.AtLeastOnce && Can[queueimpl.Acker](v) }

// DueIn returns how long from now a task is due that was just enqueued with a delay. It is up to a second longer than the
// delay if the task's score says so: a queue may round up to whole seconds.
func DueIn(c *Client, t queueimpl.Task, after time.Duration) time.Duration {
	const rounded = time.Second
	said := time.Duration(math.Round((t.Score-float64(c.Env.Clock.Now().UnixMicro())/1e6)*1e6)) * time.Microsecond
	return max(after, min(said, after+rounded))
}

// PassesUntilDue waits, and a little longer, until tasks are due that were just enqueued with a delay.
func (c *Client) PassesUntilDue(ctx context.Context, in []queueimpl.Task, after time.Duration) {
	wait := after
	for _, t := range in {
		wait = max(wait, DueIn(c, t, after))
	}
	c.Bench.Passes(ctx, wait+20*time.Millisecond)
}

// Order checks that tasks of a queue that promises an order come in the order in which they were enqueued. Tasks of one
// call, or with the same due time, may come in any order. The zero value knows no tasks.
type Order struct {
	calls int
	of    map[string]entered // by id
	last  string
}

// entered is when a task was enqueued: by which call, and with which score.
type entered struct {
	call  int
	score float64
}

// Entered notes the tasks that one call enqueued.
func (o *Order) Entered(tasks []queueimpl.Task) {
	if o.of == nil {
		o.of = map[string]entered{}
	}
	o.calls++
	for _, t := range tasks {
		o.of[t.ID] = entered{o.calls, t.Score}
	}
}

// Next checks the next tasks that were delivered.
func (o *Order) Next(b Bench, tasks []queueimpl.Task) error {
	for _, t := range tasks {
		this, before := o.of[t.ID], o.of[o.last]
		if o.last != "" && this.call < before.call && (this.score < before.score || this.score == 0) && Keeps(b.Variant, variant.InOrder) {
			return suitetest.Broken(variant.InOrder, "%q (%f) was delivered after %q (%f), which was enqueued later", t.ID, this.score, o.last, before.score)
		}
		o.last = t.ID
	}
	return nil
}

// Sorted returns an error unless the tasks are ordered by due time. Tasks with the same due time may come in any order.
func Sorted(tasks []queueimpl.Task) error {
	for i := 1; i < len(tasks); i++ {
		p, t := tasks[i-1], tasks[i]
		if t.Score < p.Score {
			return suitetest.Broken(variant.InOrder, "%q (%f) was delivered after %q (%f)", t.ID, t.Score, p.ID, p.Score)
		}
	}
	return nil
}
