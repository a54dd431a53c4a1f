package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"oversell/dispatchimpl"
	"oversell/history"
	"oversell/variant"
)

// dispatch is the pool of editing tasks of [variant.TextDispatch]: every client is a user that takes a task, works on it, and
// submits it. Some tasks are abandoned, and at random a user disappears with a task and submits it long after the
// limit.
var dispatch = Scenario{
	Name:       "dispatch",
	Source:     variant.TextDispatch,
	Summary:    "exclusive dispatch: every client takes a task from a pool in SQL, works on it, and submits it",
	Objects:    []variant.Object{variant.Dispatch, variant.Lock},
	Operations: []history.Kind{history.Take, history.Submit, history.Acquire, history.Release},
	NoLine:     true,
	Lease:      dispatchLease,
	Defaults:   dispatchDefaults,
	Takes:      dispatchTakes,
	Open:       fillPool,
	Step:       workOnTask,
	Audit:      auditPool,
}

// dispatchTasks is the default size of the pool, and categories the number of task categories.
const (
	dispatchTasks = 200
	categories    = 3
)

// Defaults that test task-returns: some tasks are abandoned, and the limit of a hold is short enough to wait for.
const (
	dispatchAbandons = 5
	dispatchLease    = 2 * time.Second
)

func dispatchDefaults(c *Config) {
	c.Ops = cmp.Or(c.Ops, dispatchTasks)
	c.Hold = cmp.Or(c.Hold, time.Millisecond)
	if c.Die == 0 { // late users let holds expire, too
		c.Abandon = cmp.Or(c.Abandon, dispatchAbandons)
	}
	if c.Duration == 0 {
		c.cap()
		c.Duration += 2 * dispatchTakes(*c)
	}
}

// dispatchTakes estimates the time until every task is done. A task whose user disappears is given to another user
// after the limit; some of these disappear, too, and so on. The last one returns after two limits.
func dispatchTakes(c Config) time.Duration {
	work := time.Duration(float64(c.Ops) * float64(c.Hold) / float64(max(c.Clients, 1)))
	if c.Abandon > 0 {
		work += c.TTL
	}
	if c.Die <= 0 {
		return work
	}
	chain := max(1, math.Log(float64(max(c.Ops, 1)))/-math.Log(c.Die)) // deaths in a row
	away := 2 * float64(c.TTL) * float64(c.Ops) * c.Die / (1 - c.Die) / float64(max(c.Clients, 1))
	return work + time.Duration(max(chain*float64(c.TTL)+float64(c.TTL), away))
}

// fillPool fills the pool. Every user likes two of the three categories, so all users compete for some tasks, but
// none for all. A single user likes all categories, so that each task can be done.
func fillPool(ctx context.Context, c *Client) error {
	tasks := make([]dispatchimpl.Task, c.stage.config.Ops)
	for i := range tasks {
		tasks[i] = dispatchimpl.Task{ID: int64(i + 1), Category: category(i)}
	}
	users := make([]dispatchimpl.User, c.stage.config.Clients)
	for i := range users {
		users[i] = dispatchimpl.User{ID: int64(i + 1), Likes: []string{category(i), category(i + 1)}}
	}
	if len(users) == 1 {
		users[0].Likes = append(users[0].Likes, category(2))
	}
	if err := c.pool.Open(ctx, tasks, users); err != nil {
		return fmt.Errorf("fill the pool with %d tasks: %w", len(tasks), err)
	}
	return nil
}

func category(i int) string { return "category-" + strconv.Itoa(i%categories) }

// workOnTask is one round of a user.
func workOnTask(ctx context.Context, c *Client) (done bool) {
	if !c.driver.comes() {
		return true
	}
	user := int64(c.index + 1)
	hold, session, err := c.take(ctx, user)
	switch {
	case errors.Is(err, dispatchimpl.ErrEmpty), errors.Is(err, dispatchimpl.ErrBusy):
		return c.nothingToDo(ctx)
	case err != nil:
		return false
	}
	if abandons(c.stage.given.Add(1), c.stage.config) {
		c.die(c.stage.pool.key)
		return false
	}
	work := c.stage.config.Hold
	if c.chance(c.stage.config.Die) {
		work = 2 * c.stage.config.TTL // absent, and back too late
	}
	c.driver.rest(ctx, work, nil)
	c.submit(ctx, hold, session)
	return false
}

// abandons reports whether the n-th task to be given out, from 1, is abandoned. Abandoned tasks are spread over the
// run: a user waits for the end of a hold before the next task, so abandoning the first ones would stall a few
// users.
func abandons(n int64, c Config) bool {
	tasks, abandoned := int64(c.Ops), int64(c.Abandon)
	return n <= tasks && n*abandoned/tasks > (n-1)*abandoned/tasks
}

func (c *Client) take(ctx context.Context, user int64) (dispatchimpl.Hold, int64, error) {
	session := c.driver.number(numberedSession)
	op := c.begin(history.Op{Kind: history.Take, Key: c.stage.pool.key, Arg: history.Int(user), Session: history.Int(session)})
	h, err := c.pool.Take(ctx, user)
	if err == nil {
		op.Result = history.Int(h.Task)
		op.Until = c.onRunClock(h.Until)
		op.Fence = h.Lock.Fence
	}
	c.record(op, err)
	return h, session, err
}

func (c *Client) submit(ctx context.Context, h dispatchimpl.Hold, session int64) {
	op := c.begin(history.Op{Kind: history.Submit, Key: c.stage.pool.key, Arg: history.Int(h.Task), Session: history.Int(session), Fence: h.Lock.Fence})
	c.stage.finished.Add(1) // without an answer, or with a refusal, the task may be done all the same
	c.record(op, c.pool.Submit(ctx, h))
}

// nothingToDo lets the pool take back tasks that are held too long, and waits. It reports whether every task is
// done.
func (c *Client) nothingToDo(ctx context.Context) (done bool) {
	if _, err := c.pool.Expire(ctx); err != nil {
		c.driver.failed(err)
	}
	if c.stage.finished.Load() >= c.stage.config.Ops {
		if s, err := c.pool.State(ctx); err == nil && s.Done >= c.stage.config.Ops {
			return true
		}
	}
	c.Env.Wait(ctx, c.stage.pool.name, c.stage.config.Retry)
	return false
}

// auditPool records how many tasks are free, held and done at the end.
func auditPool(ctx context.Context, c *Client) error {
	s, err := c.pool.State(ctx)
	if err != nil {
		return fmt.Errorf("read the pool: %w", err)
	}
	for _, part := range []struct {
		name string
		n    int64
	}{{"free", s.Free}, {"held", s.Held}, {"done", s.Done}, {"commits", s.Commits}} {
		op := c.begin(history.Op{Kind: history.ReadState, Key: c.stage.pool.key, Arg: history.Text("count-" + part.name)})
		op.Result = history.Int(part.n)
		c.record(op, nil)
	}
	return nil
}
