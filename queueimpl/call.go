package queueimpl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// base holds the fields common to all queues. Each key contains the whole name, so that a hash tag in it keeps a
// queue's keys on one node of a cluster.
type base struct {
	env variant.Env
	o   Options
}

func newBase(env variant.Env, o Options) base { return base{env, o.withDefaults()} }

func (b base) rdb() redis.UniversalClient { return b.env.Redis[0] }

// keyOf returns the documents' key for a queue's name, and the name of its lock.
func keyOf(name string) string { return "Queue:" + name }

// LockName returns the name of the lock of a queue with [Variant.Locked].
func LockName(name string) string { return keyOf(name) }

// journalOf returns the hash of what each request took.
func journalOf(name string) string { return "Journal:" + keyOf(name) }

// failed wraps an error with what was attempted. It returns declared answers unchanged.
func failed(what, name string, err error) error {
	for _, declared := range []error{nil, ErrEmpty, ErrLocked, ErrChanged, ErrLost} {
		if errors.Is(err, declared) {
			return err
		}
	}
	return fmt.Errorf("%s queue %q: %w", what, name, err)
}

// badCall returns an ErrBadCall.
func badCall(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadCall}, args...)...)
}

func named(name string) error {
	if name == "" {
		return badCall("the name of a queue must not be empty")
	}
	return nil
}

func identified(ids ...string) error {
	if len(ids) == 0 {
		return badCall("no task ids")
	}
	for _, id := range ids {
		if id == "" {
			return badCall("a task id must not be empty")
		}
	}
	return nil
}

func notNegative(after time.Duration) error {
	if after < 0 {
		return badCall("a delay of %v", after)
	}
	return nil
}

func counted(count int) error {
	if count < 1 {
		return badCall("a count of %d tasks", count)
	}
	return nil
}

func finite(score float64) error {
	if math.IsNaN(score) || math.IsInf(score, 0) {
		return badCall("a score of %v", score)
	}
	return nil
}

func claimed(t Task) error {
	if t.Receipt == "" {
		return badCall("the task has no receipt")
	}
	return nil
}

// entered returns tasks with these ids and this score.
func entered(score float64, ids []string) []Task {
	tasks := make([]Task, len(ids))
	for i, id := range ids {
		tasks[i] = Task{ID: id, Score: score}
	}
	return tasks
}

// tasksOf returns members of a sorted set as tasks.
func tasksOf(members []redis.Z, attempt int) []Task {
	tasks := make([]Task, len(members))
	for i, m := range members {
		tasks[i] = Task{ID: fmt.Sprint(m.Member), Score: m.Score, Attempt: attempt}
	}
	return tasks
}

// orEmpty returns the answer of a Pop: ErrEmpty if there are no tasks.
func orEmpty(tasks []Task) ([]Task, error) {
	if len(tasks) == 0 {
		return nil, ErrEmpty
	}
	return tasks, nil
}

// waiting reads a sorted set of waiting tasks.
func (b base) waiting(ctx context.Context, name string) ([]Task, error) {
	members, err := b.rdb().ZRangeWithScores(ctx, keyOf(name), 0, -1).Result()
	return tasksOf(members, 0), err
}
