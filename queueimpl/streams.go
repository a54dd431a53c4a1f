package queueimpl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// group is the consumer group; one queue has one kind of workers.
const group = "workers"

// streams is a Redis stream with a consumer group: XADD, XREADGROUP, XACK, and
// XAUTOCLAIM for entries whose consumer has been silent for the visibility
// timeout. Consumers must be idempotent, as with reliable.
//
// A stream only keeps entries in the order of their arrival. So this queue cannot delay, does not notice an id that is
// enqueued again, and cannot withdraw an id. A claim can only be taken over, not returned, so there is no Reclaim.
// There is no journal: the tasks of an unanswered pop are pending, and come back.
//
// The Score of an entry is its stream id, with the sequence number as microseconds, so that scores have the order of
// the stream.
type streams struct {
	base
	consumer string
	// cursor is where the next scan for silent consumers' entries continues.
	cursor map[string]string
}

func newStreams(env variant.Env, o Options) Queue {
	return &streams{base: newBase(env, o), cursor: map[string]string{}}
}

// Enqueue implements Queue.
func (q *streams) Enqueue(ctx context.Context, name string, ids ...string) ([]Task, error) {
	if err := cmp.Or(named(name), identified(ids...)); err != nil {
		return nil, failed("enqueue into", name, err)
	}
	added := make([]*redis.StringCmd, len(ids))
	_, err := q.rdb().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			added[i] = p.XAdd(ctx, &redis.XAddArgs{Stream: keyOf(name), Values: []string{"id", id}})
		}
		return nil
	})
	if err != nil {
		return nil, failed("enqueue into", name, err)
	}
	tasks := make([]Task, len(ids))
	for i, id := range ids {
		score, err := entryScore(added[i].Val())
		if err != nil {
			return nil, failed("enqueue into", name, err)
		}
		tasks[i] = Task{ID: id, Score: score}
	}
	return tasks, nil
}

// Pop implements Queue. Entries of silent consumers come first, then new ones.
func (q *streams) Pop(ctx context.Context, name string, count int) ([]Task, error) {
	if err := cmp.Or(named(name), counted(count)); err != nil {
		return nil, failed("pop from", name, err)
	}
	if q.consumer == "" {
		q.consumer = q.env.Token()
	}
	start := q.env.Clock.Now()
	tasks, err := q.pop(ctx, name, count)
	if err != nil && strings.HasPrefix(err.Error(), "NOGROUP") {
		if err = q.open(ctx, name); err == nil {
			tasks, err = q.pop(ctx, name, count)
		}
	}
	if err != nil {
		return nil, failed("pop from", name, err)
	}
	for i := range tasks {
		// The server counts whole milliseconds, and has truncated the delivery's time.
		tasks[i].Until = start.Add(q.o.Visibility - time.Millisecond)
	}
	return orEmpty(tasks)
}

// open makes the stream and its group. Another client may have done so already.
func (q *streams) open(ctx context.Context, name string) error {
	err := q.rdb().XGroupCreateMkStream(ctx, keyOf(name), group, "0").Err()
	if err != nil && strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil
	}
	return err
}

func (q *streams) pop(ctx context.Context, name string, count int) ([]Task, error) {
	tasks, err := q.takeOver(ctx, name, count)
	if err != nil || len(tasks) == count {
		return tasks, err
	}
	fresh, err := q.fresh(ctx, name, count-len(tasks))
	if err != nil {
		return nil, err
	}
	if tasks = append(tasks, fresh...); len(tasks) > 0 {
		return tasks, nil
	}
	// While there is work, it reads only one part of the pending entries. It answers ErrEmpty only after it has read
	// all of them.
	for q.cursor[name] = ""; ; {
		tasks, err := q.takeOver(ctx, name, count)
		if err != nil || len(tasks) > 0 || q.cursor[name] == "" {
			return tasks, err
		}
	}
}

// fresh reads entries that were not yet delivered to any consumer.
func (q *streams) fresh(ctx context.Context, name string, count int) ([]Task, error) {
	read, err := q.rdb().XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: q.consumer, Streams: []string{keyOf(name), ">"}, Count: int64(count),
		Block: -1, // without BLOCK
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var tasks []Task
	for _, stream := range read {
		for _, m := range stream.Messages {
			t, err := q.taskOf(m, 1)
			if err != nil {
				return nil, err
			}
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

// takeOver reads the next part of the pending entries, and takes over those of silent consumers. It moves the cursor,
// which is empty after the last part.
func (q *streams) takeOver(ctx context.Context, name string, count int) ([]Task, error) {
	from := q.cursor[name]
	if from == "" {
		from = "0-0"
	}
	late, next, err := q.rdb().XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: keyOf(name), Group: group, Consumer: q.consumer, MinIdle: q.o.Visibility, Start: from, Count: int64(count),
	}).Result()
	if err != nil {
		return nil, err
	}
	if q.cursor[name] = next; next == "0-0" {
		q.cursor[name] = ""
	}
	var tasks []Task
	for _, m := range late {
		attempt, err := q.attempt(ctx, name, m.ID)
		if err != nil {
			return nil, err
		}
		if attempt == 0 {
			continue // taken over from us meanwhile
		}
		t, err := q.taskOf(m, attempt)
		if err != nil {
			return nil, err
		}
		if q.o.MaxAttempts > 0 && attempt > q.o.MaxAttempts {
			if err := q.bury(ctx, name, m.ID, t.ID, attempt-1); err != nil { // taking it over counted as a delivery
				return nil, err
			}
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks, nil
}

// attempt returns the delivery count of an entry that is ours, else 0.
func (q *streams) attempt(ctx context.Context, name, entry string) (int, error) {
	pending, err := q.rdb().XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: keyOf(name), Group: group, Start: entry, End: entry, Count: 1, Consumer: q.consumer,
	}).Result()
	if err != nil || len(pending) == 0 {
		return 0, err
	}
	return int(pending[0].RetryCount), nil
}

// bury makes an entry a dead letter, after a number of deliveries. It is not an error if the entry is no longer ours.
func (q *streams) bury(ctx context.Context, name, entry, id string, deliveries int) error {
	return q.did(ctx, nil, streamsBuryScript, []string{keyOf(name), "Dead:" + keyOf(name)},
		group, entry, q.consumer, id, deliveries)
}

// Ack implements Acker.
func (q *streams) Ack(ctx context.Context, name string, t Task) error {
	if err := cmp.Or(named(name), identified(t.ID), claimed(t)); err != nil {
		return failed("ack in", name, err)
	}
	entry, delivery, consumer, err := claimIn(t.Receipt)
	if err != nil {
		return failed("ack in", name, err)
	}
	return failed("ack in", name, q.did(ctx, ErrLost, streamsAckScript, []string{keyOf(name)}, group, entry, consumer, delivery))
}

// State implements Queue. All is read at one instant.
func (q *streams) State(ctx context.Context, name string) (State, error) {
	if err := named(name); err != nil {
		return State{}, failed("state of", name, err)
	}
	var all *redis.XMessageSliceCmd
	var pending *redis.XPendingExtCmd
	_, _ = q.rdb().TxPipelined(ctx, func(p redis.Pipeliner) error { // each command holds its error
		all = p.XRange(ctx, keyOf(name), "-", "+")
		pending = p.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: keyOf(name), Group: group, Start: "-", End: "+", Count: math.MaxInt32})
		return nil
	})
	if err := all.Err(); err != nil {
		return State{}, failed("state of", name, err)
	}
	// Without a group there was no pop yet.
	if err := pending.Err(); err != nil && !strings.HasPrefix(err.Error(), "NOGROUP") {
		return State{}, failed("state of", name, err)
	}
	deliveries := map[string]redis.XPendingExt{}
	for _, p := range pending.Val() {
		deliveries[p.ID] = p
	}
	var s State
	for _, m := range all.Val() {
		p, given := deliveries[m.ID]
		t, err := taskOf(m, p.Consumer, int(p.RetryCount))
		if err != nil {
			return State{}, failed("state of", name, err)
		}
		if given {
			s.Claimed = append(s.Claimed, t)
		} else {
			t.Receipt = ""
			s.Waiting = append(s.Waiting, t)
		}
	}
	return s, nil
}

// Dead implements DeadLetters.
func (q *streams) Dead(ctx context.Context, name string) ([]Task, error) {
	if err := named(name); err != nil {
		return nil, failed("dead letters of", name, err)
	}
	letters, err := q.rdb().XRange(ctx, "Dead:"+keyOf(name), "-", "+").Result()
	if err != nil {
		return nil, failed("dead letters of", name, err)
	}
	tasks := make([]Task, len(letters))
	for i, m := range letters {
		score, err := entryScore(text(m, "entry"))
		if err == nil {
			tasks[i] = Task{ID: text(m, "id"), Score: score}
			tasks[i].Attempt, err = strconv.Atoi(text(m, "attempts"))
		}
		if err != nil {
			return nil, failed("dead letters of", name, err)
		}
	}
	return tasks, nil
}

func (q *streams) taskOf(m redis.XMessage, attempt int) (Task, error) {
	return taskOf(m, q.consumer, attempt)
}

// taskOf returns an entry as a task, claimed by this consumer.
func taskOf(m redis.XMessage, consumer string, attempt int) (Task, error) {
	score, err := entryScore(m.ID)
	if err != nil {
		return Task{}, err
	}
	return Task{ID: text(m, "id"), Score: score, Attempt: attempt, Receipt: fmt.Sprintf("%s/%d/%s", m.ID, attempt, consumer)}, nil
}

// claimIn reads a receipt.
func claimIn(receipt string) (entry string, delivery int, consumer string, err error) {
	entry, rest, _ := strings.Cut(receipt, "/")
	count, consumer, _ := strings.Cut(rest, "/")
	delivery, err = strconv.Atoi(count)
	if err != nil || consumer == "" {
		return "", 0, "", badCall("the receipt %q", receipt)
	}
	return entry, delivery, consumer, nil
}

func text(m redis.XMessage, field string) string {
	s, _ := m.Values[field].(string)
	return s
}

// entryScore turns a stream id, milliseconds-sequence, into seconds.
func entryScore(entry string) (float64, error) {
	ms, seq, _ := strings.Cut(entry, "-")
	m, err := strconv.ParseInt(ms, 10, 64)
	n, err2 := strconv.ParseInt(seq, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("%q is no id of a stream: %w", entry, err)
	}
	return float64(m*int64(time.Second/time.Millisecond)+n) / 1e6, nil
}
