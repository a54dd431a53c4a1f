package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"oversell/dispatchimpl"
	"oversell/history"
	"oversell/variant"
)

// dispatch is document 4's pool of editing tasks: every client is a user who
// takes a task, works on it, and submits it. By chance a user goes away with a
// task, and comes back to submit it when the limit is long over.
var dispatch = Scenario{
	Name:     "dispatch",
	Summary:  "exclusive dispatch: every client takes a task from a pool in SQL, works on it, and submits it",
	Objects:  []variant.Object{variant.Dispatch, variant.Lock},
	NoLine:   true,
	Defaults: dispatchDefaults,
	Open:     fillPool,
	Step:     workOnTask,
	Audit:    auditPool,
}

// dispatchTasks is how many tasks the pool has when nobody says otherwise, and
// categories of how many kinds they are.
const (
	dispatchTasks = 200
	categories    = 3
)

func dispatchDefaults(c *Config) {
	c.Ops = orDefault(c.Ops, dispatchTasks)
	c.Hold = orDefault(c.Hold, time.Millisecond)
	if c.Duration == 0 {
		c.cap()
	}
}

// fillPool opens the pool. Every user likes two of the three categories, so that
// all compete for some of the tasks and none for all.
func fillPool(ctx context.Context, c *Client) error {
	tasks := make([]dispatchimpl.Task, c.stage.config.Ops)
	for i := range tasks {
		tasks[i] = dispatchimpl.Task{ID: int64(i + 1), Category: category(i)}
	}
	users := make([]dispatchimpl.User, c.stage.config.Clients)
	for i := range users {
		users[i] = dispatchimpl.User{ID: int64(i + 1), Likes: []string{category(i), category(i + 1)}}
	}
	if err := c.pool.Open(ctx, tasks, users); err != nil {
		return fmt.Errorf("fill the pool with %d tasks: %w", len(tasks), err)
	}
	return nil
}

func category(i int) string { return "category-" + strconv.Itoa(i%categories) }

// workOnTask is one round of a user.
func workOnTask(ctx context.Context, c *Client) (done bool) {
	user := int64(c.index + 1)
	hold, session, err := c.take(ctx, user)
	switch {
	case errors.Is(err, dispatchimpl.ErrEmpty), errors.Is(err, dispatchimpl.ErrBusy):
		return c.nothingToDo(ctx)
	case err != nil:
		return false
	}
	work := c.stage.config.Hold
	if c.chance(c.stage.config.Die) {
		work = 2 * c.stage.config.TTL // gone, and back too late
	}
	c.around.rest(ctx, work, nil)
	c.submit(ctx, hold, session)
	return false
}

func (c *Client) take(ctx context.Context, user int64) (dispatchimpl.Hold, int64, error) {
	session := c.around.number(numberedSession)
	op := c.begin(history.Op{Kind: history.Take, Key: c.stage.pool.key, Arg: history.Int(user), Session: session})
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
	op := c.begin(history.Op{Kind: history.Submit, Key: c.stage.pool.key, Arg: history.Int(h.Task), Session: session, Fence: h.Lock.Fence})
	c.stage.finished.Add(1) // it may be done even if nobody hears of it
	err := c.pool.Submit(ctx, h)
	c.record(op, err)
	if outcome, _ := outcomeOf(err); outcome == history.Refused {
		c.stage.finished.Add(-1)
	}
}

// nothingToDo lets the pool take back what is held too long, and waits. It
// reports whether every task is done.
func (c *Client) nothingToDo(ctx context.Context) (done bool) {
	if _, err := c.pool.Expire(ctx); err != nil {
		c.around.failed(err)
	}
	if c.stage.finished.Load() >= c.stage.config.Ops {
		if s, err := c.pool.State(ctx); err == nil && s.Done >= c.stage.config.Ops {
			return true
		}
	}
	c.Env.Wait(ctx, c.stage.pool.name, c.stage.config.Retry)
	return false
}

// auditPool records how many tasks are free, held and done in the end.
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
