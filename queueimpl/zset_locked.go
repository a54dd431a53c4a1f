package queueimpl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/variant"
)

// zsetLocked is the queue of [variant.TextListing]: a sorted set of task ids by due time,
// in which every change is several commands under a lock. The clock is the
// client's own.
//
// It is only as good as its lock. One flaw no lock can fix: Pop removes what it hands out, so a consumer that dies
// loses its tasks.
//
// As in the documents, the answer to the unlocking is ignored, and an error in between returns at once and leaves the
// lock to its lease.
//
// This differs from the listing in one place. If the lock is held, the listing logs and returns false; but its logging
// line reads "Logger:get(…)" with one colon, which PHP parses as a label and a call of a function "get" that does not
// exist. So the printed code ends the request with a fatal error there. This queue returns ErrLocked.
type zsetLocked struct {
	base
	lock lockimpl.Locker
}

func newZsetLocked(env variant.Env, o Options) Queue {
	b := newBase(env, o)
	return &zsetLocked{base: b, lock: b.o.Lock(env)}
}

// printedLock returns the documents' own lock.
func printedLock(env variant.Env) lockimpl.Locker {
	v, ok := lockimpl.Find("php-lock-printed")
	if !ok {
		panic("queueimpl: no lock php-lock-printed")
	}
	return v.New(env)
}

// under runs section under the queue's lock, for which it waits this long.
func (q *zsetLocked) under(ctx context.Context, name string, wait time.Duration, section func(key string) error) error {
	o := q.o.LockOptions
	o.Wait = wait
	l, err := q.lock.Acquire(ctx, keyOf(name), o)
	if errors.Is(err, lockimpl.ErrHeld) {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	if err != nil {
		return err
	}
	answer := section(keyOf(name))
	if answer != nil && !errors.Is(answer, ErrChanged) && !errors.Is(answer, ErrEmpty) {
		return answer
	}
	if err := q.lock.Release(ctx, l); err != nil && !errors.Is(err, lockimpl.ErrLost) {
		return err
	}
	return answer
}

// phpEmpty is PHP's empty(), which counts "0" as empty.
func phpEmpty(s string) bool { return s == "" || s == "0" }

// named refuses what the documents' code refuses.
func (q *zsetLocked) named(name string) error {
	if phpEmpty(name) {
		return badCall("the name of a queue must not be empty, nor %q, which PHP takes for empty", "0")
	}
	return nil
}

func (q *zsetLocked) identified(id string) error {
	if phpEmpty(id) {
		return badCall("a task id must not be empty, nor %q, which PHP takes for empty", "0")
	}
	return nil
}

// patient refuses a timeout that is not positive, as the documents do.
func patient(timeout time.Duration) error {
	if timeout <= 0 {
		return badCall("a timeout of %v: it must be above zero", timeout)
	}
	return nil
}

// listed refuses the ids that the documents' code refuses: no list, and a single id that PHP counts as empty. The
// documents' code does not check a list of several, so an empty id in it enters the queue.
func (q *zsetLocked) listed(ids []string) error {
	switch len(ids) {
	case 0:
		return badCall("no task ids")
	case 1:
		return q.identified(ids[0])
	}
	return nil
}

// now returns the client's clock as a score.
func (q *zsetLocked) now(after time.Duration) float64 {
	return float64(q.env.Clock.Now().UnixMicro()+after.Microseconds()) / 1e6
}

// Enqueue is the documents' enqueue(name, ids, timeout).
func (q *zsetLocked) Enqueue(ctx context.Context, name string, ids ...string) ([]Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

// EnqueueAfter is the documents' enqueue(name, ids, timeout, after), with the options'
// timeout.
func (q *zsetLocked) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]Task, error) {
	return q.EnqueueWithin(ctx, name, q.o.LockOptions.Wait, after, ids...)
}

// EnqueueWithin is the documents' enqueue(name, ids, timeout, after). after may be
// negative: such a task comes before the tasks that are due now.
func (q *zsetLocked) EnqueueWithin(ctx context.Context, name string, timeout, after time.Duration, ids ...string) ([]Task, error) {
	if err := cmp.Or(q.named(name), q.listed(ids), patient(timeout)); err != nil {
		return nil, failed("enqueue into", name, err)
	}
	var score float64
	var in []string
	err := q.under(ctx, name, timeout, func(key string) error {
		score = q.now(after)
		for _, id := range ids {
			added, err := q.add(ctx, key, score, id)
			if added || err != nil { // without an answer it may have entered, with this score
				in = append(in, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return entered(score, in), failed("enqueue into", name, err)
}

// add sends ZSCORE, and ZADD if the id is not there; or, as in the documents' prose, always ZADD.
func (q *zsetLocked) add(ctx context.Context, key string, score float64, id string) (bool, error) {
	if !q.o.Overwrite {
		err := q.rdb().ZScore(ctx, key, id).Err()
		if !errors.Is(err, redis.Nil) {
			return false, err
		}
	}
	err := q.rdb().ZAdd(ctx, key, redis.Z{Score: score, Member: id}).Err()
	return err == nil, err
}

// Repeats implements Deduper.
func (q *zsetLocked) Repeats() Repeat { return q.o.repeats() }

// Dequeue is the documents' dequeue(name, id, score, timeout), with the options' timeout.
func (q *zsetLocked) Dequeue(ctx context.Context, name, id string, score float64) error {
	return q.DequeueWithin(ctx, name, id, score, q.o.LockOptions.Wait)
}

// DequeueWithin is the documents' dequeue(name, id, score, timeout). A score of zero is refused, since PHP counts it as
// empty.
func (q *zsetLocked) DequeueWithin(ctx context.Context, name, id string, score float64, timeout time.Duration) error {
	err := cmp.Or(q.named(name), q.identified(id), finite(score), patient(timeout))
	if err == nil && score == 0 {
		err = badCall("a score of 0, which PHP takes for empty")
	}
	if err != nil {
		return failed("dequeue from", name, err)
	}
	return failed("dequeue from", name, q.under(ctx, name, timeout, func(key string) error {
		current, err := q.rdb().ZScore(ctx, key, id).Result()
		switch {
		case errors.Is(err, redis.Nil):
			return ErrChanged
		case err != nil:
			return err
		case current != score:
			return ErrChanged
		}
		n, err := q.rdb().ZRem(ctx, key, id).Result()
		if err == nil && n == 0 {
			return ErrChanged
		}
		return err
	}))
}

// PopWithin is the documents' pop(name, count, timeout), which ignores its timeout.
func (q *zsetLocked) PopWithin(ctx context.Context, name string, count int, _ time.Duration) ([]Task, error) {
	return q.Pop(ctx, name, count)
}

// Pop is the documents' pop(name, count, timeout): one attempt at the lock, since
// the timeout is not passed on; the range; and a ZREM for each, its answer ignored.
func (q *zsetLocked) Pop(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(q.named(name), counted(count)); err != nil {
		return nil, failed("pop from", name, err)
	}
	var tasks []Task
	err := q.under(ctx, name, 0, func(key string) error {
		due, err := q.due(ctx, key, count)
		if err != nil {
			return err
		}
		for _, t := range due {
			if err := q.rdb().ZRem(ctx, key, t.ID).Err(); err != nil {
				return err
			}
		}
		tasks, err = orEmpty(due)
		return err
	})
	if err != nil {
		return nil, failed("pop from", name, err)
	}
	return tasks, nil
}

// Peek is the documents' peek(name, count): Pop's range without the lock.
func (q *zsetLocked) Peek(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(q.named(name), counted(count)); err != nil {
		return nil, failed("peek into", name, err)
	}
	tasks, err := q.due(ctx, keyOf(name), count)
	return tasks, failed("peek into", name, err)
}

// due sends ZRANGEBYSCORE itself. The driver's methods for it are deprecated, or send another command than the
// documents print.
func (q *zsetLocked) due(ctx context.Context, key string, count int) ([]Task, error) {
	now := strconv.FormatFloat(q.now(0), 'f', -1, 64)
	cmd := redis.NewZSliceCmd(ctx, "zrangebyscore", key, "-inf", now, "withscores", "limit", 0, count)
	_ = q.rdb().Process(ctx, cmd) // the command holds its error
	members, err := cmd.Result()
	return tasksOf(members, 1), err
}

// State implements Queue.
func (q *zsetLocked) State(ctx context.Context, name string) (State, error) {
	if err := q.named(name); err != nil {
		return State{}, failed("state of", name, err)
	}
	tasks, err := q.waiting(ctx, name)
	return State{Waiting: tasks}, failed("state of", name, err)
}
