package queuerules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"oversell/internal/suitetest"
	"oversell/queueimpl"
	"oversell/queueimpl/queueclient"
)

// Ended makes every call with a context that has ended, each on a queue of its own. A call may ignore the context and
// be carried out: then its success must be true. An error leaves the outcome open. The call must not return a refusal.
func Ended(ctx context.Context, b queueclient.Bench) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	late, end := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer end()
	for i, over := range []struct {
		ctx  context.Context
		when string
	}{{over, "under a cancelled context"}, {late, "under a context whose deadline has passed"}} {
		for n, call := range endedCalls {
			own := b
			own.Queue = fmt.Sprintf("%s-%d-%d", b.Queue, i, n)
			if err := ended(ctx, own, over.ctx, over.when, call); err != nil {
				return err
			}
		}
	}
	return nil
}

// endedCall is a call, and what it does to a queue in which "a" waits.
type endedCall struct {
	name string
	do   func(ctx context.Context, q *endedQueue) (made []queueimpl.Task, err error)
	on   func(queueimpl.Variant) bool // nil: every queue
	// enters and takes are the ids that it adds and hands out; acks says that the claimed task is done.
	enters, takes string
	acks          bool
	// shows says that it returns the tasks that it handed out, or would.
	shows bool
}

// endedQueue is a queue with the tasks "had", which was popped, and "a", which waits.
type endedQueue struct {
	*queueclient.Client
	had, left queueimpl.Task
}

var endedCalls = []endedCall{
	{name: "enqueue", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) { return q.Enqueue(ctx, q.Name, "b") }, enters: "b"},
	{name: "pop", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) { return q.Pop(ctx, q.Name, 1) }, takes: "a", shows: true},
	{name: "state", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		s, err := q.State(ctx, q.Name)
		return s.Waiting, err
	}, shows: true},
	{name: "enqueue with a delay", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return q.Queue.(queueimpl.Delayer).EnqueueAfter(ctx, q.Name, time.Hour, "b")
	}, on: queueclient.Can[queueimpl.Delayer], enters: "b"},
	{name: "dequeue", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return nil, q.Queue.(queueimpl.Dequeuer).Dequeue(ctx, q.Name, q.left.ID, q.left.Score)
	}, on: queueclient.Can[queueimpl.Dequeuer], takes: "a"},
	{name: "peek", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return q.Queue.(queueimpl.Peeker).Peek(ctx, q.Name, 1)
	}, on: queueclient.Can[queueimpl.Peeker], shows: true},
	{name: "ack", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return nil, q.Queue.(queueimpl.Acker).Ack(ctx, q.Name, q.had)
	}, on: queueclient.Lends, acks: true},
	{name: "extend", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		_, err := q.Queue.(queueimpl.Extender).Extend(ctx, q.Name, q.had)
		return nil, err
	}, on: func(v queueimpl.Variant) bool { return queueclient.Lends(v) && queueclient.Can[queueimpl.Extender](v) }},
	{name: "reclaim", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		_, err := q.Queue.(queueimpl.Reclaimer).Reclaim(ctx, q.Name)
		return nil, err
	}, on: queueclient.Can[queueimpl.Reclaimer]},
	{name: "a look at dead letters", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return q.Queue.(queueimpl.DeadLetters).Dead(ctx, q.Name)
	}, on: queueclient.Can[queueimpl.DeadLetters]},
	{name: "pop under a request", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return q.Queue.(queueimpl.Journaler).PopAs(ctx, q.Name, q.Request(0), 1)
	}, on: queueclient.Can[queueimpl.Journaler], takes: "a", shows: true},
	{name: "a look into the journal", do: func(ctx context.Context, q *endedQueue) ([]queueimpl.Task, error) {
		return q.Queue.(queueimpl.Journaler).Popped(ctx, q.Name, q.Request(0))
	}, on: queueclient.Can[queueimpl.Journaler]},
}

// ended makes one call under a context that is over.
func ended(ctx context.Context, b queueclient.Bench, over context.Context, when string, call endedCall) error {
	if call.on != nil && !call.on(b.Variant) {
		return nil
	}
	q, err := endedOn(ctx, b)
	if err != nil || q == nil {
		return err
	}
	b.Calls("%s %s", call.name, when)
	made, err := call.do(over, q)
	if d := queueclient.DeclaredAs(err); d != nil {
		return suitetest.Broken(queueclient.TheInterface, "%s %s answered %q, a declared answer; want success or another error", call.name, when, err)
	}
	before, after := [2][]string{{q.left.ID}, {}}, [2][]string{{q.left.ID}, {}} // waiting and claimed
	if queueclient.Lends(b.Variant) {
		before[1] = []string{q.had.ID}
		if !call.acks {
			after[1] = []string{q.had.ID}
		}
	}
	if call.enters != "" {
		after[0] = append(after[0], call.enters)
	}
	if call.takes != "" {
		after[0] = nil
		if call.shows && queueclient.Lends(b.Variant) {
			after[1] = append(after[1], q.left.ID)
		}
	}
	if err != nil && q.ExpectState(ctx, queueclient.TheInterface, before[0], before[1]) == nil {
		return nil
	}
	if err := q.ExpectState(ctx, queueclient.TheInterface, after[0], after[1]); err != nil {
		return fmt.Errorf("%s %s: %w", call.name, when, err)
	}
	want := []string{}
	switch {
	case call.shows:
		want = []string{q.left.ID}
	case call.enters != "":
		want = []string{call.enters}
	}
	if got := queueclient.IDsOf(made); err == nil && !slices.Equal(got, want) {
		return suitetest.Broken(queueclient.TheInterface, "%s %s answered success with %q; want %q, or an error", call.name, when, got, want)
	}
	return nil
}

// endedOn makes a queue in which one task was popped and one waits. It is nil if no task was popped.
func endedOn(ctx context.Context, b queueclient.Bench) (*endedQueue, error) {
	q := &endedQueue{Client: b.Client(long)}
	in, err := q.Enter(ctx, queueclient.TheInterface, "had", "a")
	if err != nil {
		return nil, err
	}
	had, err := q.All(ctx, 1, 1)
	if err != nil || len(had) != 1 {
		return nil, err
	}
	q.had, q.left = had[0], in[1]
	if had[0].ID == in[1].ID { // it has no order
		q.left = in[0]
	}
	if !queueclient.Lends(b.Variant) {
		err = q.Done(ctx, had...)
	}
	return q, err
}
