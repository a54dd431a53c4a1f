package queueimpl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// reclaimBatch bounds how many claims one step of a script ends, so that no step blocks the server for long.
const reclaimBatch = 16

// reliable lends tasks. A claim lasts for the visibility timeout, by the server's
// clock, and has a receipt of its own; the task is removed when the claim's holder
// acknowledges it, and waits again with its old due time when the claim has run
// out. After MaxAttempts deliveries it becomes a dead letter; enqueueing the id again revives it.
//
// An id is in the queue from its Enqueue to its Ack. Enqueueing it again meanwhile is ignored or, as an option,
// replaces the task: then the present claim is lost.
//
// A task is delivered again when its consumer has died, and also when it was only slow. So consumers must be idempotent
// by task id.
type reliable struct{ base }

func newReliable(env variant.Env, o Options) Queue { return reliable{newBase(env, o)} }

// keys returns the keys that all scripts get; see reliable_common.lua.
func (q reliable) keys(name string) []string {
	key := keyOf(name)
	return []string{key, "Claimed:" + key, "Tasks:" + key, "Dead:" + key, "Receipt:" + key, journalOf(name)}
}

// Enqueue implements Queue.
func (q reliable) Enqueue(ctx context.Context, name string, ids ...string) ([]Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

// EnqueueAfter implements Delayer.
func (q reliable) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]Task, error) {
	if err := cmp.Or(named(name), identified(ids...), notNegative(after)); err != nil {
		return nil, failed("enqueue into", name, err)
	}
	tasks, err := q.enter(ctx, reliableEnqueueScript, q.keys(name), after, ids)
	return tasks, failed("enqueue into", name, err)
}

// Repeats implements Deduper.
func (q reliable) Repeats() Repeat { return q.o.repeats() }

// Dequeue implements Dequeuer. For a claimed task it returns ErrChanged.
func (q reliable) Dequeue(ctx context.Context, name, id string, score float64) error {
	if err := cmp.Or(named(name), identified(id), finite(score)); err != nil {
		return failed("dequeue from", name, err)
	}
	return failed("dequeue from", name, q.did(ctx, ErrChanged, reliableDequeueScript, q.keys(name), id, scoreArg(score)))
}

// Pop implements Queue.
func (q reliable) Pop(ctx context.Context, name string, count int) ([]Task, error) {
	return q.pop(ctx, name, "", count)
}

// PopAs implements Journaler. A request that is sent again does not prolong the claims: Until tells when the present ones end, and is
// zero for a task whose claim is over.
func (q reliable) PopAs(ctx context.Context, name, request string, count int) ([]Task, error) {
	if err := requested(request); err != nil {
		return nil, failed("pop from", name, err)
	}
	return q.pop(ctx, name, request, count)
}

// Popped implements Journaler.
func (q reliable) Popped(ctx context.Context, name, request string) ([]Task, error) {
	return q.popped(ctx, name, request)
}

func (q reliable) pop(ctx context.Context, name, request string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("pop from", name, err)
	}
	start := q.env.Clock.Now()
	reply, err := reliablePopScript.Run(ctx, q.rdb(), q.keys(name),
		count, q.o.Visibility.Microseconds(), q.o.MaxAttempts, reclaimBatch, request).StringSlice()
	var tasks []Task
	if err == nil {
		tasks, err = q.lasting(reply, start)
	}
	if err != nil {
		return nil, failed("pop from", name, err)
	}
	return orEmpty(tasks)
}

// lasting reads the reply of the script that pops: the fields of each task, and for how many microseconds from start its claim lasts.
func (q reliable) lasting(reply []string, start time.Time) (tasks []Task, _ error) {
	for each := range slices.Chunk(reply, fields+1) {
		if len(each) <= fields {
			return nil, fmt.Errorf("a script replied %q: want a list of tasks", reply)
		}
		some, err := q.tasksIn(each[:fields], start)
		if err != nil {
			return nil, err
		}
		left, err := strconv.ParseInt(each[fields], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("a script replied that a claim lasts for %q microseconds", each[fields])
		}
		if some[0].Until = (time.Time{}); left > 0 {
			some[0].Until = start.Add(time.Duration(left) * time.Microsecond)
		}
		tasks = append(tasks, some...)
	}
	return tasks, nil
}

// Ack implements Acker.
func (q reliable) Ack(ctx context.Context, name string, t Task) error {
	if err := cmp.Or(named(name), identified(t.ID), claimed(t)); err != nil {
		return failed("ack in", name, err)
	}
	return failed("ack in", name, q.did(ctx, ErrLost, reliableAckScript, q.keys(name), t.ID, t.Receipt))
}

// Extend implements Extender.
func (q reliable) Extend(ctx context.Context, name string, t Task) (Task, error) {
	if err := cmp.Or(named(name), identified(t.ID), claimed(t)); err != nil {
		return t, failed("extend in", name, err)
	}
	start := q.env.Clock.Now()
	err := q.did(ctx, ErrLost, reliableExtendScript, q.keys(name), t.ID, t.Receipt, q.o.Visibility.Microseconds())
	if err != nil {
		return t, failed("extend in", name, err)
	}
	t.Until = start.Add(q.o.Visibility)
	return t, nil
}

// Reclaim implements Reclaimer.
func (q reliable) Reclaim(ctx context.Context, name string) (n int, err error) {
	if err := named(name); err != nil {
		return 0, failed("reclaim in", name, err)
	}
	for {
		ended, err := reliableReclaimScript.Run(ctx, q.rdb(), q.keys(name), reclaimBatch, q.o.MaxAttempts).Int()
		if err != nil {
			return n, failed("reclaim in", name, err)
		}
		n += ended
		if ended < reclaimBatch {
			return n, nil
		}
	}
}

// Peek implements Peeker. It shows waiting tasks: a task whose claim has run out waits again when a Pop or a Reclaim
// has ended the claim.
func (q reliable) Peek(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("peek into", name, err)
	}
	tasks, err := q.list(ctx, zsetPeekScript, []string{keyOf(name)}, count)
	for i := range tasks {
		tasks[i].Attempt = 0
	}
	return tasks, failed("peek into", name, err)
}

// State implements Queue. It reads everything at one instant.
func (q reliable) State(ctx context.Context, name string) (State, error) {
	if err := named(name); err != nil {
		return State{}, failed("state of", name, err)
	}
	sets, err := q.read(ctx, name, 0, 1)
	if err != nil {
		return State{}, failed("state of", name, err)
	}
	return State{Waiting: sets[0], Claimed: sets[1]}, nil
}

// Dead implements DeadLetters.
func (q reliable) Dead(ctx context.Context, name string) ([]Task, error) {
	if err := named(name); err != nil {
		return nil, failed("dead letters of", name, err)
	}
	sets, err := q.read(ctx, name, 3)
	if err != nil {
		return nil, failed("dead letters of", name, err)
	}
	return sets[0], nil
}

// read reads some of the sorted sets, numbered as in keys, with the records of their tasks' deliveries, in one
// transaction.
func (q reliable) read(ctx context.Context, name string, numbers ...int) ([][]Task, error) {
	keys := q.keys(name)
	members := make([]*redis.ZSliceCmd, len(numbers))
	var known *redis.MapStringStringCmd
	_, err := q.rdb().TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i, n := range numbers {
			members[i] = p.ZRangeWithScores(ctx, keys[n], 0, -1)
		}
		known = p.HGetAll(ctx, keys[2])
		return nil
	})
	if err != nil {
		return nil, err
	}
	sets := make([][]Task, len(numbers))
	for i := range numbers {
		sets[i] = tasksOf(members[i].Val(), 0)
		for j := range sets[i] {
			if err := delivered(&sets[i][j], known.Val()[sets[i][j].ID]); err != nil {
				return nil, err
			}
		}
	}
	return sets, nil
}

// delivered completes a task from "attempts:receipt:due"; the text is empty if the task was never delivered.
func delivered(t *Task, text string) error {
	if text == "" {
		return nil
	}
	attempts, rest, _ := strings.Cut(text, ":")
	receipt, due, ok := strings.Cut(rest, ":")
	if !ok {
		return fmt.Errorf("task %q has the record %q", t.ID, text)
	}
	n, err := strconv.Atoi(attempts)
	score, err2 := strconv.ParseFloat(due, 64)
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("task %q has the record %q: %w", t.ID, text, err)
	}
	t.Attempt, t.Receipt, t.Score = n, receipt, score
	return nil
}
