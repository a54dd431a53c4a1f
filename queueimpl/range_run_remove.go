package queueimpl

import (
	"cmp"
	"context"

	"oversell/variant"
)

// rangeRunRemove reads the tasks that are due, lets the consumer run them, and removes them afterwards: a consumer that
// dies loses nothing. But until the removal the next reader gets the same task.
type rangeRunRemove struct{ zset }

func newRangeRunRemove(env variant.Env, o Options) Queue {
	return rangeRunRemove{zset{newBase(env, o)}}
}

// Pop reads and removes nothing. The receipt is the id: the removal needs nothing else.
func (q rangeRunRemove) Pop(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("pop from", name, err)
	}
	tasks, err := q.list(ctx, zsetPeekScript, []string{keyOf(name)}, count)
	if err != nil {
		return nil, failed("pop from", name, err)
	}
	for i := range tasks {
		tasks[i].Receipt = tasks[i].ID
	}
	return orEmpty(tasks)
}

// Ack removes the task by its id alone.
func (q rangeRunRemove) Ack(ctx context.Context, name string, t Task) error {
	if err := cmp.Or(named(name), identified(t.ID), claimed(t)); err != nil {
		return failed("ack in", name, err)
	}
	n, err := q.rdb().ZRem(ctx, keyOf(name), t.ID).Result()
	if err == nil && n == 0 {
		return ErrLost
	}
	return failed("ack in", name, err)
}
