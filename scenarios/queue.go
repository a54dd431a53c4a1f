package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/variant"
)

// queue is the documents' task queue: one half of the clients enqueues tasks, the other half pops them and works on
// them.
var queue = Scenario{
	Name:       "queue",
	Source:     variant.TextListing,
	Summary:    "a task queue: half of the clients enqueue tasks, the other half take them and work on them",
	Objects:    []variant.Object{variant.Queue, variant.Lock},
	Operations: []history.Kind{history.Enqueue, history.Pop, history.Effect, history.Ack, history.Acquire, history.Release},
	Defaults:   queueDefaults,
	Step: func(ctx context.Context, c *Client) bool {
		if c.produces() {
			return c.produce(ctx)
		}
		return c.consume(ctx, c.effect)
	},
	Audit: auditQueue,
}

// queueTasks is the default number of tasks. quietTime is how long consumers look for further tasks after the last
// one, beyond the delays and the visibility timeout, before they conclude that all tasks are done.
const (
	queueTasks = 1000
	quietTime  = 300 * time.Millisecond
)

// By default some tasks are delayed and some ids are repeated, if the queue promises something about these: a
// promise that was not tested does not pass.
const (
	queueDelay  = 50 * time.Millisecond
	queueRepeat = 0.1
)

func queueDefaults(c *Config) {
	if _, delays := c.Queue.Sample().(queueimpl.Delayer); delays {
		c.Delay = cmp.Or(c.Delay, queueDelay)
	}
	if slices.Contains(c.Queue.Promises, variant.OneEntryPerID) {
		c.Repeat = cmp.Or(c.Repeat, queueRepeat)
	}
	if c.Duration == 0 {
		c.Ops = cmp.Or(c.Ops, queueTasks)
		c.cap()
	}
	if c.Queue.AtLeastOnce {
		c.QueueOptions.Visibility = cmp.Or(c.QueueOptions.Visibility, time.Second)
	}
}

// produces reports whether the client is a producer: every other one is.
func (c *Client) produces() bool { return c.index%2 == 0 }

// produce enqueues a task. At random it enqueues several with one call, puts the previous id in place of the first one,
// and withdraws the first task that the queue added.
func (c *Client) produce(ctx context.Context) (done bool) {
	if !c.driver.takeStep() || c.driver.enough() {
		c.stage.finished.Add(1)
		return true
	}
	ids := make([]string, 1+c.upTo(c.stage.batch()-1))
	for i := range ids {
		ids[i] = strconv.FormatInt(c.driver.number(numberedOrder), 10)
	}
	if c.chance(c.stage.config.Repeat) && c.lastTask != "" {
		ids[0] = c.lastTask
	}
	c.lastTask = ids[0]
	if task, in := c.enqueue(ctx, ids...); in && c.chance(c.stage.config.Withdraw) {
		c.withdraw(ctx, task)
	}
	return false
}

// upTo returns a random number from 0 to most.
func (c *Client) upTo(most int) int {
	if most <= 0 {
		return 0
	}
	return c.Rand.IntN(most + 1)
}

// enqueue enqueues tasks with one call, and records one operation for each. It returns the first that was added, if
// any.
func (c *Client) enqueue(ctx context.Context, ids ...string) (first queueimpl.Task, in bool) {
	op := c.begin(history.Op{Kind: history.Enqueue, Key: c.stage.queue.key, Arg: history.Text(ids[0])})
	if len(ids) > 1 {
		op.Session = history.Int(c.driver.number(numberedRequest))
	}
	ctx = c.Trying(ctx)
	var entered []queueimpl.Task
	var err error
	if d, delays := c.queue.(queueimpl.Delayer); delays && c.stage.config.Delay > 0 {
		after := time.Duration(c.Rand.Int64N(int64(c.stage.config.Delay) + 1))
		entered, err = d.EnqueueAfter(ctx, c.stage.queue.name, after, ids...)
	} else {
		entered, err = c.queue.Enqueue(ctx, c.stage.queue.name, ids...)
	}
	ops, errs := make([]history.Op, len(ids)), make([]error, len(ids))
	for i, id := range ids {
		ops[i], errs[i] = op, err
		ops[i].Arg = history.Text(id)
		at := slices.IndexFunc(entered, func(t queueimpl.Task) bool { return t.ID == id })
		switch {
		case err == nil && at < 0:
			errs[i] = errIgnored
		case at >= 0: // also without an answer, if the client set the score
			ops[i].Until = c.due(entered[at].Score)
		}
	}
	if ok := c.recordAll(ops, errs); !ok || len(entered) == 0 {
		return queueimpl.Task{}, false
	}
	return entered[0], true
}

// withdraw dequeues a task by its id and score.
func (c *Client) withdraw(ctx context.Context, t queueimpl.Task) {
	d := c.queue.(queueimpl.Dequeuer) // otherwise the run was refused
	op := c.begin(history.Op{Kind: history.Dequeue, Key: c.stage.queue.key, Arg: history.Text(t.ID)})
	c.record(op, d.Dequeue(ctx, c.stage.queue.name, t.ID, t.Score))
}

// peek looks at the tasks that are due, and records one operation for each task returned.
func (c *Client) peek(ctx context.Context) {
	p := c.queue.(queueimpl.Peeker) // otherwise the run was refused
	op := c.begin(history.Op{Kind: history.Peek, Key: c.stage.queue.key, Session: history.Int(c.driver.number(numberedRequest))})
	tasks, err := p.Peek(ctx, c.stage.queue.name, c.stage.batch())
	if err == nil && len(tasks) == 0 {
		err = queueimpl.ErrEmpty
	}
	ops, errs := []history.Op{op}, []error{err}
	for i, t := range tasks {
		if i > 0 {
			ops, errs = append(ops, op), append(errs, nil)
		}
		ops[i].Result = history.Text(t.ID)
	}
	c.recordAll(ops, errs)
}

// errIgnored is the result for an id that is in the queue already and stays as it is.
var errIgnored = errors.New("task is in the queue already")

// due returns a task's due time since the start of the run; 0 if it was due before. Redis keeps a score as a float64,
// which holds a time of today to a quarter of a microsecond.
func (c *Client) due(score float64) time.Duration {
	return max(0, c.driver.at(time.UnixMicro(int64(math.Round(score*1e6)))))
}

// consume takes one task and works on it.
func (c *Client) consume(ctx context.Context, work func(ctx context.Context, t queueimpl.Task) bool) (done bool) {
	if c.chance(c.stage.config.Peek) {
		c.peek(ctx)
	}
	tasks, request, err := c.pop(ctx)
	switch {
	case errors.Is(err, queueimpl.ErrLocked):
		c.Env.Wait(ctx, c.stage.queue.name, c.stage.config.Retry)
	case err != nil:
		if c.driver.quiet(c) {
			return true
		}
		c.Env.Wait(ctx, c.stage.queue.name, c.stage.config.Retry)
	default:
		c.idle = time.Time{}
		c.Begin()
	}
	for _, t := range tasks {
		if c.chance(c.stage.config.Die) {
			c.die(c.stage.queue.key)
			return false
		}
		if work(ctx, t) {
			c.ack(ctx, t, request)
		}
	}
	return false
}

// pop takes a task, or up to a batch of them, and records one operation for each.
func (c *Client) pop(ctx context.Context) ([]queueimpl.Task, int64, error) {
	request := c.driver.number(numberedRequest)
	op := c.begin(history.Op{Kind: history.Pop, Key: c.stage.queue.key, Session: history.Int(request)})
	ctx = c.Trying(ctx)
	var tasks []queueimpl.Task
	var err error
	if j, journals := c.queue.(queueimpl.Journaler); journals {
		tasks, err = j.PopAs(ctx, c.stage.queue.name, strconv.FormatInt(request, 10), c.stage.batch())
	} else {
		tasks, err = c.queue.Pop(ctx, c.stage.queue.name, c.stage.batch())
	}
	if err != nil {
		c.recordPop(op, request, err)
		return nil, request, err
	}
	if c.dead() {
		c.recordPop(op, request, faults.ErrCrashed)
		return nil, request, faults.ErrCrashed
	}
	op.Return = c.driver.now()
	for _, t := range tasks {
		op.Result, op.Amount = history.Text(t.ID), int32(t.Attempt)
		c.recordAt(op)
	}
	c.leave()
	return tasks, request, nil
}

// recordPop records a pop that returned no task. One without an answer may have taken as many tasks as it asked
// for, so it is recorded as that many operations.
func (c *Client) recordPop(op history.Op, request int64, err error) {
	n := 1
	if outcome, _ := outcomeOf(err); outcome == history.Unknown {
		c.stage.openPops.Store(request, struct{}{})
		n = c.stage.batch()
	}
	ops, errs := make([]history.Op, n), make([]error, n)
	for i := range ops {
		ops[i], errs[i] = op, err
	}
	c.recordAll(ops, errs)
}

// batch is the maximum number of tasks per call.
func (s *runObjects) batch() int { return max(s.config.Batch, 1) }

// die ends the client with its current task or number; another client replaces it.
func (c *Client) die(at history.Value) {
	op := c.begin(history.Op{Kind: history.Fault, Key: at, Arg: history.Text("crash")})
	c.record(op, nil)
	c.become(c.Successor())
}

// effect has the effect of a task: it counts the task as done. Consumers of a queue that may deliver a task twice count
// each id once; the others rely on the queue.
func (c *Client) effect(ctx context.Context, t queueimpl.Task) bool {
	op := c.taskEffect(t)
	key := "Done:" + c.stage.queue.name
	var err error
	if c.stage.config.Queue.AtLeastOnce {
		var fresh bool
		if fresh, err = c.Env.Redis[0].HSetNX(ctx, key, t.ID, 1).Result(); err == nil && !fresh {
			err = errDone
		}
	} else {
		err = c.Env.Redis[0].HIncrBy(ctx, key, t.ID, 1).Err()
	}
	return c.record(op, err)
}

// ack acknowledges a task, if the queue has acknowledgements.
func (c *Client) ack(ctx context.Context, t queueimpl.Task, request int64) {
	a, wants := c.queue.(queueimpl.Acker)
	if !wants {
		return
	}
	op := c.begin(history.Op{Kind: history.Ack, Key: c.stage.queue.key, Arg: history.Text(t.ID), Session: history.Int(request)})
	c.record(op, a.Ack(ctx, c.stage.queue.name, t))
}

// auditQueue records what the queue still holds, and the tasks taken by pops without an answer.
func auditQueue(ctx context.Context, c *Client) error {
	q := c.stage.queue
	entries := int64(0)
	list := func(what string, session int64, tasks []queueimpl.Task) {
		for _, t := range tasks {
			op := c.begin(history.Op{Kind: history.ReadState, Key: q.key, Arg: history.Text(what), Session: history.Int(session)})
			op.Result = history.Text(t.ID)
			c.record(op, nil)
			entries++
		}
	}
	s, err := c.queue.State(ctx, q.name)
	if err != nil {
		return fmt.Errorf("read what the queue holds: %w", err)
	}
	list("waiting", 0, s.Waiting)
	list("claimed", 0, s.Claimed)
	if d, has := c.queue.(queueimpl.DeadLetters); has {
		dead, err := d.Dead(ctx, q.name)
		if err != nil {
			return fmt.Errorf("read the dead letters: %w", err)
		}
		list("dead", 0, dead)
	}
	if j, has := c.queue.(queueimpl.Journaler); has {
		c.stage.openPops.Range(func(request, _ any) bool {
			n := request.(int64)
			var took []queueimpl.Task
			if took, err = j.Popped(ctx, q.name, strconv.FormatInt(n, 10)); err == nil {
				list("popped", n, took)
			}
			return err == nil
		})
		if err != nil {
			return fmt.Errorf("read the journal of pops: %w", err)
		}
	}
	op := c.begin(history.Op{Kind: history.ReadState, Key: q.key, Arg: history.Text("audit")})
	op.Result = history.Int(entries)
	c.record(op, nil)
	return nil
}

// recordedLocker records the lock operations of a client inside its queue.
type recordedLocker struct {
	c *Client
	lockimpl.Locker
}

func (c *Client) recorded(l lockimpl.Locker) lockimpl.Locker {
	c.inner = map[string]int64{}
	return &recordedLocker{c, l}
}

func (l *recordedLocker) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	held, session, err := l.c.acquireOn(ctx, l.Locker, key, o)
	if err == nil {
		l.c.inner[key] = session
	}
	return held, err
}

func (l *recordedLocker) Release(ctx context.Context, held lockimpl.Lock) error {
	return l.c.releaseOn(ctx, l.Locker, held.Key, held, l.c.inner[held.Key])
}
