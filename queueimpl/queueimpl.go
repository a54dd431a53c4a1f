// Package queueimpl holds the task queues under test: the queue of the source documents with its flaws, its corrected
// forms, and a control.
//
// A queue holds tasks by name and by id, each with the time at which it is due.
// All of them implement [Queue]; each further ability is a small interface of its own ([Delayer], [Dequeuer], [Peeker],
// [Deduper], [Acker], ...), which a caller discovers by a type assertion. A queue that cannot delay has no method for
// it.
//
// There are two designs. A queue that removes a task when it hands it out delivers at most once, and a consumer that
// dies while it works on the task loses it. A queue that only lends the task, for a visibility timeout, and removes it
// when it is acknowledged, delivers at least once, so its consumers must be idempotent ([Variant.AtLeastOnce]).
//
// One queue is one file, with its scripts as .lua files beside it; [Variants]
// lists them all. A queue acts only through the [variant.Env] that it is given.
package queueimpl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/lockimpl"
	"oversell/variant"
)

// ErrEmpty answers a Pop: no task is due. Nothing changed.
var ErrEmpty = errors.New("no task is due")

// ErrLocked refuses a call: the queue's lock was not obtained, so nothing was read and nothing changed. It says nothing
// about tasks.
var ErrLocked = errors.New("queue is locked")

// ErrChanged refuses a Dequeue: no task with this id waits with this score. It was taken, or has been enqueued again.
// Nothing changed.
var ErrChanged = errors.New("task has changed")

// ErrLost refuses an Ack or an Extend: the task is not, or no longer, the
// caller's. Nothing changed.
var ErrLost = errors.New("claim is lost")

// ErrBadCall refuses an invalid call before any command is sent.
var ErrBadCall = errors.New("bad call")

// Task is a task as the queue handed it out. It is a plain value: a stale one can be used again, and must then be
// refused.
type Task struct {
	ID string
	// Score is when the task is due, in seconds since the epoch. It stays the
	// same through redeliveries, so ID and Score together name one entry.
	Score float64
	// Attempt counts the deliveries of this entry, this one included, from 1. It is 0 if there was no delivery or the
	// queue does not count.
	Attempt int
	// Receipt names the caller's claim on the task; empty if the queue removed the task when it handed it out.
	Receipt string
	// Until is the end of the visibility timeout promised to the caller: the start
	// of the call plus the timeout, by the caller's clock. Zero without a claim.
	Until time.Time
}

// State lists the tasks on the server.
type State struct {
	Waiting []Task // due or not, in order
	Claimed []Task // given to a consumer and not acknowledged; some may have run out
}

// Queue is one client's view of all queues of one kind, by name. It is used by
// one goroutine at a time. It may refuse some names and ids, such as long ones, with ErrBadCall.
//
// ErrEmpty, ErrLocked, ErrChanged, ErrLost and ErrBadCall are definite. Any other
// error leaves the outcome open: commands may have been, or may yet be, executed.
type Queue interface {
	// Enqueue enters tasks that are due at once. It returns those that it entered, each with its score, without ids
	// that it ignored because they were there already. With an error that leaves the outcome open, it returns those
	// that it may have entered, if it knows their scores. A queue that takes fewer ids in one call answers ErrBadCall.
	Enqueue(ctx context.Context, name string, ids ...string) (entered []Task, err error)
	// Pop returns up to count tasks that are due, or ErrEmpty. It may return fewer than are due.
	Pop(ctx context.Context, name string, count int) ([]Task, error)
	// State reads what the server holds, for the audit at the end of a run.
	State(ctx context.Context, name string) (State, error)
}

// Delayer is a queue with tasks that can be due later.
type Delayer interface {
	// EnqueueAfter is Enqueue of tasks that are due after this time. A queue may refuse a negative time, or treat it as
	// one that has passed.
	EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) (entered []Task, err error)
}

// Timed is a queue whose calls each take a timeout for the queue's lock, as in the documents. A timeout that is not
// positive is refused.
type Timed interface {
	// EnqueueWithin is EnqueueAfter that waits this long for the lock.
	EnqueueWithin(ctx context.Context, name string, timeout, after time.Duration, ids ...string) (entered []Task, err error)
	// DequeueWithin is like Dequeue, but waits up to timeout for the lock.
	DequeueWithin(ctx context.Context, name, id string, score float64, timeout time.Duration) error
	// PopWithin is Pop with a timeout; the queue documents how it uses it.
	PopWithin(ctx context.Context, name string, count int, timeout time.Duration) ([]Task, error)
}

// Repeat says what happens to an id that is enqueued while it is in the queue.
type Repeat string

// The rules for repeated ids.
const (
	Ignored     Repeat = "ignored"     // the earlier entry stays
	Overwritten Repeat = "overwritten" // the later one replaces it
)

// Deduper is a queue that keeps one entry per id.
type Deduper interface {
	// Repeats returns the rule that this queue follows, by [Options.Overwrite].
	Repeats() Repeat
}

// Dequeuer is a queue from which a waiting task can be withdrawn.
type Dequeuer interface {
	// Dequeue removes the task if it waits with exactly this score; otherwise it returns ErrChanged.
	Dequeue(ctx context.Context, name, id string, score float64) error
}

// Peeker is a queue that shows due tasks without changing anything.
type Peeker interface {
	// Peek returns up to count tasks that are due; having none is not an error.
	Peek(ctx context.Context, name string, count int) ([]Task, error)
}

// Acker is a queue that keeps its tasks until they are acknowledged.
type Acker interface {
	// Ack says that the task is done: it is removed and never delivered again. The ack counts even after the visibility
	// timeout, unless the task has been handed out or enqueued again: then Ack returns ErrLost. A Pop or Reclaim that
	// puts the task back for others leaves the receipt valid until one of them has it. The last consumer of a
	// dead letter may still acknowledge it, which removes the letter; or Ack returns ErrLost, and the letter stays.
	Ack(ctx context.Context, name string, t Task) error
}

// Extender is a queue whose claims can be prolonged.
type Extender interface {
	// Extend starts the visibility timeout again and returns the task with its
	// new Until. For a claim that has run out it returns ErrLost.
	Extend(ctx context.Context, name string, t Task) (Task, error)
}

// Reclaimer is a queue that can return tasks with an expired claim without handing them out. Its Pop also returns them.
type Reclaimer interface {
	// Reclaim returns them all, and reports how many claims it ended, including those of tasks that became dead
	// letters.
	Reclaim(ctx context.Context, name string) (n int, err error)
}

// DeadLetters is a queue that puts a task aside after [Options.MaxAttempts]
// deliveries without an Ack.
type DeadLetters interface {
	// Dead returns the tasks put aside, Attempt being the deliveries that each had.
	Dead(ctx context.Context, name string) ([]Task, error)
}

// Journaler is a queue that records the tasks of each pop, so that a pop whose reply was lost can be settled at the end
// of a run.
type Journaler interface {
	// PopAs is Pop under a request id, unique to this call. The same request sent
	// again gets the same tasks, and takes no others.
	PopAs(ctx context.Context, name, request string, count int) ([]Task, error)
	// Popped returns the tasks that the request took; none if it has taken none so far.
	Popped(ctx context.Context, name, request string) ([]Task, error)
}

// DefaultVisibility is the visibility timeout unless [Options] say otherwise.
const DefaultVisibility = 30 * time.Second

// Options say how to make a queue. The zero value takes the defaults.
type Options struct {
	// Lock makes the lock that guards a queue with [Variant.Locked]; nil means the
	// printed one.
	Lock func(variant.Env) lockimpl.Locker
	// LockOptions say how it is acquired. Zero fields mean the documents' lease of 15 s and wait of 10 s, and a new
	// attempt every 100 ms. Pop never waits.
	LockOptions lockimpl.Options
	// Overwrite lets an id that is enqueued again replace its earlier entry.
	Overwrite bool
	// Visibility is how long a consumer has for a task; 0 means DefaultVisibility.
	// The server counts in whole milliseconds.
	Visibility time.Duration
	// MaxAttempts is the number of deliveries without an Ack after which a task becomes a dead letter; 0 means never.
	MaxAttempts int
}

func (o Options) withDefaults() Options {
	if o.Lock == nil {
		o.Lock = printedLock
	}
	if o.LockOptions.TTL == 0 {
		o.LockOptions.TTL = 15 * time.Second
	}
	if o.LockOptions.Wait == 0 {
		o.LockOptions.Wait = 10 * time.Second
	}
	if o.LockOptions.RetryEvery == 0 {
		o.LockOptions.RetryEvery = 100 * time.Millisecond
	}
	if o.Visibility == 0 {
		o.Visibility = DefaultVisibility
	}
	return o
}

// repeats returns the rule for repeated ids.
func (o Options) repeats() Repeat {
	if o.Overwrite {
		return Overwritten
	}
	return Ignored
}

// Variant describes a queue under test.
type Variant struct {
	Name, Source, Summary string
	// Promises are what its authors claim; a broken one fails a run.
	Promises []variant.Property
	// Flaws are its known ways to break promises; checks must catch them.
	Flaws []variant.Flaw
	Needs variant.Needs
	// Locked says that every change is made under a lock, made by Options.Lock and named "Queue:" and the queue's name.
	// The queue is only as good as that lock.
	Locked bool
	// AtLeastOnce says that a task is delivered again if its consumer does not answer in time, and that consumers must
	// be idempotent by task id: that is their part of the promise effect-once. Consumers of the other queues rely on
	// the queue.
	AtLeastOnce bool
	// TakesAnything says that the queue accepts empty ids within a list and negative delays. Other queues refuse them.
	TakesAnything bool
	// Control marks a queue that is wrong on purpose.
	Control bool
	// New makes one client's Queue. It must not use the network.
	New func(variant.Env, Options) Queue
}

// Described returns what is known of the variant.
func (v Variant) Described() variant.Described {
	return variant.Described{Name: v.Name, Source: v.Source, Summary: v.Summary, Control: v.Control, Promises: v.Promises, Flaws: v.Flaws, Needs: v.Needs}
}

// Sample returns a Queue for type assertions that find out what the queue can do. Its Env leads nowhere, but New may
// read it; do not call its methods.
func (v Variant) Sample(change ...func(*Options)) Queue {
	env := variant.Env{Clock: clock.Real{}, Token: func() string { return "sample" }}
	for range max(v.Needs.Masters, 1) {
		env.Redis, env.Addr = append(env.Redis, redis.NewClient(&redis.Options{Addr: nowhere})), append(env.Addr, nowhere)
	}
	var o Options
	for _, c := range change {
		c(&o)
	}
	return v.New(env, o)
}

// nowhere is an address without a listener. A Redis client connects at its first
// command.
const nowhere = "127.0.0.1:0"

// Can lists the queue's abilities beyond [Queue], in words for reports.
func (v Variant) Can() []string {
	q := v.Sample()
	var can []string
	for _, c := range []struct {
		name string
		ok   bool
	}{
		{"delay", is[Delayer](q)},
		{"time-out-per-call", is[Timed](q)},
		{"dedupe", is[Deduper](q)},
		{"dequeue", is[Dequeuer](q)},
		{"peek", is[Peeker](q)},
		{"ack", is[Acker](q)},
		{"extend", is[Extender](q)},
		{"reclaim", is[Reclaimer](q)},
		{"dead-letters", is[DeadLetters](q)},
		{"journal", is[Journaler](q)},
	} {
		if c.ok {
			can = append(can, c.name)
		}
	}
	return can
}

func is[T any](q Queue) bool {
	_, ok := q.(T)
	return ok
}

// Accepts returns an ErrBadCall for an invalid option, or one that this queue would have to ignore.
func (v Variant) Accepts(o Options) error {
	q := v.Sample()
	l := o.LockOptions
	for _, bad := range []struct {
		is  bool
		why string
	}{
		{o.Lock != nil && !v.Locked, "it takes no lock"},
		{l != (lockimpl.Options{}) && !v.Locked, "it takes no lock"},
		{l.TTL < 0 || l.Wait < 0 || l.RetryEvery < 0 || l.MaxTries < 0, "the lock's times and tries must not be negative"},
		{o.Overwrite && !is[Deduper](q), "it keeps several entries per id, so none is overwritten"},
		{o.Visibility != 0 && !v.AtLeastOnce, "it has no visibility timeout"},
		{o.Visibility != 0 && o.Visibility < time.Millisecond, "a visibility timeout must be at least a millisecond"},
		{o.MaxAttempts < 0, "a number of attempts must not be negative"},
		{o.MaxAttempts > 0 && !is[DeadLetters](q), "it has no dead letters"},
	} {
		if bad.is {
			return fmt.Errorf("queue %s: %w: %s", v.Name, ErrBadCall, bad.why)
		}
	}
	return nil
}
