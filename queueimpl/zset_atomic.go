package queueimpl

import (
	"cmp"
	"context"
	"time"

	"oversell/variant"
)

// zset is the documents' sorted set with each change in one script, which the server runs without interruption, by the
// server's own clock. It has no Pop.
type zset struct{ base }

// Enqueue implements Queue.
func (q zset) Enqueue(ctx context.Context, name string, ids ...string) ([]Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

// EnqueueAfter implements Delayer.
func (q zset) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]Task, error) {
	if err := cmp.Or(named(name), identified(ids...), notNegative(after)); err != nil {
		return nil, failed("enqueue into", name, err)
	}
	tasks, err := q.enter(ctx, zsetEnqueueScript, []string{keyOf(name)}, after, ids)
	return tasks, failed("enqueue into", name, err)
}

// Repeats implements Deduper.
func (q zset) Repeats() Repeat { return q.o.repeats() }

// Dequeue implements Dequeuer.
func (q zset) Dequeue(ctx context.Context, name, id string, score float64) error {
	if err := cmp.Or(named(name), identified(id), finite(score)); err != nil {
		return failed("dequeue from", name, err)
	}
	return failed("dequeue from", name, q.did(ctx, ErrChanged, zsetDequeueScript, []string{keyOf(name)}, id, scoreArg(score)))
}

// Peek implements Peeker.
func (q zset) Peek(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("peek into", name, err)
	}
	tasks, err := q.list(ctx, zsetPeekScript, []string{keyOf(name)}, count)
	return tasks, failed("peek into", name, err)
}

// State implements Queue.
func (q zset) State(ctx context.Context, name string) (State, error) {
	if err := named(name); err != nil {
		return State{}, failed("state of", name, err)
	}
	tasks, err := q.waiting(ctx, name)
	return State{Waiting: tasks}, failed("state of", name, err)
}

// zsetAtomic also takes tasks out in one script, so it needs no lock. One of the documents' flaws remains: a task is
// lost if its consumer dies while it holds the task, or gets no reply; the journal shows these tasks.
type zsetAtomic struct{ zset }

func newZsetAtomic(env variant.Env, o Options) Queue { return zsetAtomic{zset{newBase(env, o)}} }

// Pop implements Queue.
func (q zsetAtomic) Pop(ctx context.Context, name string, count int) ([]Task, error) {
	return q.pop(ctx, name, "", count)
}

// PopAs implements Journaler.
func (q zsetAtomic) PopAs(ctx context.Context, name, request string, count int) ([]Task, error) {
	if err := requested(request); err != nil {
		return nil, failed("pop from", name, err)
	}
	return q.pop(ctx, name, request, count)
}

// Popped implements Journaler.
func (q zsetAtomic) Popped(ctx context.Context, name, request string) ([]Task, error) {
	return q.popped(ctx, name, request)
}

func (q zsetAtomic) pop(ctx context.Context, name, request string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("pop from", name, err)
	}
	tasks, err := q.list(ctx, zsetPopScript, []string{keyOf(name), journalOf(name)}, count, request)
	if err != nil {
		return nil, failed("pop from", name, err)
	}
	return orEmpty(tasks)
}
