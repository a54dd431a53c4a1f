package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"oversell/faults"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/variant"
)

// queue is the documents' task queue: one half of the clients enqueues tasks, the
// other takes them and works on them.
var queue = Scenario{
	Name:     "queue",
	Summary:  "a task queue: half of the clients enqueue tasks, the other half take them and work on them",
	Objects:  []variant.Object{variant.Queue, variant.Lock},
	Defaults: queueDefaults,
	Step: func(ctx context.Context, c *Client) bool {
		if c.produces() {
			return c.produce(ctx)
		}
		return c.consume(ctx, c.effect)
	},
	Audit: auditQueue,
}

// queueTasks is how many tasks are enqueued when nobody says otherwise, and
// quietTime how long after the last one consumers go on looking, beyond the
// delays and the visibility time-out, before they take it that all is done.
const (
	queueTasks = 1000
	quietTime  = 300 * time.Millisecond
)

func queueDefaults(c *Config) {
	if c.Duration == 0 {
		c.Ops = orDefault(c.Ops, queueTasks)
		c.cap()
	}
	if c.Queue.AtLeastOnce {
		c.QueueOptions.Visibility = orDefault(c.QueueOptions.Visibility, time.Second)
	}
}

// produces tells whether the client is one of the producers: every other one.
func (c *Client) produces() bool { return c.index%2 == 0 }

// produce enqueues one task, by chance later than now, or one that was enqueued before.
func (c *Client) produce(ctx context.Context) (done bool) {
	r := c.run
	if !r.takeStep() || r.engine.Stopping() {
		r.finished.Add(1)
		return true
	}
	id := strconv.FormatInt(r.orders.Add(1), 10)
	if c.chance(r.config.Repeat) && c.lastTask != "" {
		id = c.lastTask
	}
	c.lastTask = id
	c.enqueue(ctx, id)
	return false
}

func (c *Client) enqueue(ctx context.Context, id string) bool {
	op := c.begin(history.Enqueue, c.run.queue.key, history.Text(id))
	var entered []queueimpl.Task
	var err error
	if d, delays := c.queue.(queueimpl.Delayer); delays && c.run.config.Delay > 0 {
		after := time.Duration(c.Rand.Int64N(int64(c.run.config.Delay) + 1))
		entered, err = d.EnqueueAfter(ctx, c.run.queue.name, after, id)
	} else {
		entered, err = c.queue.Enqueue(ctx, c.run.queue.name, id)
	}
	switch {
	case err == nil && len(entered) == 0:
		err = errIgnored
	case err == nil:
		op.Until = c.run.due(entered[0].Score)
	}
	return c.record(op, err)
}

// errIgnored answers an id that is in the queue already: it stands.
var errIgnored = errors.New("task is in the queue already")

// due is a task's due time since the start of the run; 0 when it was due by then.
func (r *run) due(score float64) time.Duration {
	sec, frac := math.Modf(score)
	return max(0, r.log.Since(time.Unix(int64(sec), int64(frac*1e9))))
}

// consume takes one task and works on it.
func (c *Client) consume(ctx context.Context, work func(ctx context.Context, t queueimpl.Task) bool) (done bool) {
	tasks, request, err := c.pop(ctx)
	switch {
	case errors.Is(err, queueimpl.ErrLocked):
		c.Env.Wait(ctx, c.run.queue.name, c.run.config.Retry)
	case err != nil:
		if c.quiet() {
			return true
		}
		c.Env.Wait(ctx, c.run.queue.name, c.run.config.Retry)
	default:
		c.idle = time.Time{}
		c.Begin()
	}
	for _, t := range tasks {
		if c.chance(c.run.config.Die) {
			c.die(c.run.queue.key)
			return false
		}
		if work(ctx, t) {
			c.ack(ctx, t, request)
		}
	}
	return false
}

// quiet tells whether the producers have finished, and the client has found
// nothing for so long that nothing more can come.
func (c *Client) quiet() bool {
	if c.run.finished.Load() < int64((c.run.config.Clients+1)/2) {
		return false
	}
	if c.idle.IsZero() {
		c.idle = time.Now()
	}
	return time.Since(c.idle) > quietTime+c.run.config.Delay+c.run.config.QueueOptions.Visibility
}

// pop takes a task, and records one operation for each that it got.
func (c *Client) pop(ctx context.Context) ([]queueimpl.Task, int64, error) {
	request := c.run.requests.Add(1)
	op := c.begin(history.Pop, c.run.queue.key, history.Value{})
	op.Session = request
	var tasks []queueimpl.Task
	var err error
	if j, journals := c.queue.(queueimpl.Journaler); journals {
		tasks, err = j.PopAs(ctx, c.run.queue.name, strconv.FormatInt(request, 10), 1)
	} else {
		tasks, err = c.queue.Pop(ctx, c.run.queue.name, 1)
	}
	if err != nil {
		if outcome, _ := outcomeOf(err); outcome == history.Unknown {
			c.run.openPops.Store(request, struct{}{})
		}
		c.record(op, err)
		return nil, request, err
	}
	if c.dead() {
		c.run.openPops.Store(request, struct{}{})
		c.record(op, faults.ErrCrashed)
		return nil, request, faults.ErrCrashed
	}
	op.Return = c.rec.Now()
	for _, t := range tasks {
		op.Result, op.Amount = history.Text(t.ID), int32(t.Attempt)
		c.recordAt(op)
	}
	c.leave()
	return tasks, request, nil
}

// die ends the client with what it has in its hands; another takes its place.
func (c *Client) die(at history.Value) {
	op := c.begin(history.Fault, at, history.Text("crash"))
	c.record(op, nil)
	c.run.deaths.Add(1)
	c.become(c.Successor())
}

// effect works on a task: it counts it as done. Consumers of a queue that may
// deliver twice count each id once; the others rely on the queue.
func (c *Client) effect(ctx context.Context, t queueimpl.Task) bool {
	op := c.begin(history.Effect, c.run.queue.key, history.Text(t.ID))
	key := "Done:" + c.run.queue.name
	var err error
	if c.run.config.Queue.AtLeastOnce {
		var fresh bool
		if fresh, err = c.Env.Redis[0].HSetNX(ctx, key, t.ID, 1).Result(); err == nil && !fresh {
			err = errDone
		}
	} else {
		err = c.Env.Redis[0].HIncrBy(ctx, key, t.ID, 1).Err()
	}
	return c.record(op, err)
}

// errDone answers a consumer whose task had been done before.
var errDone = errors.New("task was done before")

// ack tells the queue that the task is done, if it wants to know.
func (c *Client) ack(ctx context.Context, t queueimpl.Task, request int64) {
	a, wants := c.queue.(queueimpl.Acker)
	if !wants {
		return
	}
	op := c.begin(history.Ack, c.run.queue.key, history.Text(t.ID))
	op.Session = request
	c.record(op, a.Ack(ctx, c.run.queue.name, t))
}

// auditQueue records what the queue still holds, and what the pops took of which
// no answer came.
func auditQueue(ctx context.Context, c *Client) error {
	r := c.run
	entries := int64(0)
	list := func(what string, session int64, tasks []queueimpl.Task) {
		for _, t := range tasks {
			op := c.begin(history.ReadState, r.queue.key, history.Text(what))
			op.Result, op.Session = history.Text(t.ID), session
			c.record(op, nil)
			entries++
		}
	}
	s, err := c.queue.State(ctx, r.queue.name)
	if err != nil {
		return fmt.Errorf("read what the queue holds: %w", err)
	}
	list("waiting", 0, s.Waiting)
	list("claimed", 0, s.Claimed)
	if d, has := c.queue.(queueimpl.DeadLetters); has {
		dead, err := d.Dead(ctx, r.queue.name)
		if err != nil {
			return fmt.Errorf("read the dead letters: %w", err)
		}
		list("dead", 0, dead)
	}
	if j, has := c.queue.(queueimpl.Journaler); has {
		r.openPops.Range(func(request, _ any) bool {
			n := request.(int64)
			var took []queueimpl.Task
			if took, err = j.Popped(ctx, r.queue.name, strconv.FormatInt(n, 10)); err == nil {
				list("popped", n, took)
			}
			return err == nil
		})
		if err != nil {
			return fmt.Errorf("read the journal of pops: %w", err)
		}
	}
	op := c.begin(history.ReadState, r.queue.key, history.Text("audit"))
	op.Result = history.Int(entries)
	c.record(op, nil)
	return nil
}

// recordedLocker records what a client does with the lock inside its queue.
type recordedLocker struct {
	c *Client
	lockimpl.Locker
	sessions map[string]int64 // of the locks held, by key
}

func (c *Client) recorded(l lockimpl.Locker) lockimpl.Locker {
	return &recordedLocker{c, l, map[string]int64{}}
}

func (l *recordedLocker) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	held, session, err := l.c.acquireOn(ctx, l.Locker, key, o)
	if err == nil {
		l.sessions[key] = session
	}
	return held, err
}

func (l *recordedLocker) Release(ctx context.Context, held lockimpl.Lock) error {
	return l.c.releaseOn(ctx, l.Locker, held, l.sessions[held.Key])
}
