package queues

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// queue is one client of a queue made of scripts. Every script gets the keys: waiting
// tasks by due time, claims by their end, id -> record of those that are claimed, the
// last receipt, the journal.
type queue struct {
	env variant.Env
	o   queueimpl.Options
	me  string // the client's name, for those that have one
	queueScripts
}

// queueScripts are the parts of a queue that mutants change.
type queueScripts struct {
	// enqueue gets the delay in microseconds, 1 to overwrite, and the ids; it replies the
	// score and the ids that it entered.
	enqueue string
	// pop gets the count, the visibility in microseconds and the request; it replies id,
	// score, attempt and receipt for each task.
	pop string
	// ack gets the id and the receipt, extend the visibility, too; they reply 1 or 0.
	ack, extend string
	// keys names the keys of a queue.
	keys func(name string) []string
	// popBy replaces the script pop.
	popBy func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error)
	// enqueueBy replaces the script enqueue.
	enqueueBy func(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error)
	// state replaces the reading of the two sorted sets.
	state func(ctx context.Context, q *queue, name string) (queueimpl.State, error)
}

func queueKeys(name string) []string {
	return []string{"Queue:" + name, "Claims:" + name, "Tasks:" + name, "Receipt:" + name, "Journal:" + name}
}

func newQueue(s queueScripts, env variant.Env, o queueimpl.Options) *queue {
	if s.keys == nil {
		s.keys = queueKeys
	}
	if o.Visibility == 0 {
		o.Visibility = queueimpl.DefaultVisibility
	}
	return &queue{env: env, o: o, queueScripts: s}
}

func (q *queue) redis() redis.UniversalClient { return q.env.Redis[0] }

func (q *queue) run(ctx context.Context, text, name string, args ...any) *redis.Cmd {
	return redis.NewScript(entry.ClockLua+text).Run(ctx, q.redis(), q.keys(name), args...)
}

// now returns the server's time as a score.
func (q *queue) now(ctx context.Context) (string, error) {
	t, err := q.redis().Time(ctx).Result()
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000), err
}

// due reads what is due, up to count tasks.
func (q *queue) due(ctx context.Context, name string, count int) ([]redis.Z, error) {
	now, err := q.now(ctx)
	if err != nil {
		return nil, err
	}
	return q.redis().ZRangeByScoreWithScores(ctx, q.keys(name)[0], &redis.ZRangeBy{Min: "-inf", Max: now, Count: int64(count)}).Result()
}

// refuse returns ErrBadCall if bad is set.
func refuse(bad bool) error {
	if bad {
		return fmt.Errorf("%w: an argument is missing or out of range", queueimpl.ErrBadCall)
	}
	return nil
}

func empty(ids []string) bool {
	for _, id := range ids {
		if id == "" {
			return true
		}
	}
	return len(ids) == 0
}

// Enqueue implements queueimpl.Queue.
func (q *queue) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return q.enter(ctx, name, 0, ids)
}

func (q *queue) enter(ctx context.Context, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || empty(ids) || after < 0); err != nil {
		return nil, err
	}
	if q.enqueueBy != nil {
		return q.enqueueBy(ctx, q, name, after, ids)
	}
	overwrite := 0
	if q.o.Overwrite {
		overwrite = 1
	}
	args := []any{after.Microseconds(), overwrite}
	for _, id := range ids {
		args = append(args, id)
	}
	reply, err := q.run(ctx, q.enqueue, name, args...).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("enqueue into %q: %w", name, err)
	}
	return enteredAs(reply[0], reply[1:])
}

func enteredAs(score string, ids []string) (tasks []queueimpl.Task, err error) {
	due, err := strconv.ParseFloat(score, 64)
	for _, id := range ids {
		tasks = append(tasks, queueimpl.Task{ID: id, Score: due})
	}
	return tasks, err
}

// Pop implements queueimpl.Queue.
func (q *queue) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	return q.take(ctx, name, "", count)
}

func (q *queue) take(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	start := q.env.Clock.Now()
	var tasks []queueimpl.Task
	var err error
	if q.popBy != nil {
		tasks, err = q.popBy(ctx, q, name, count)
	} else {
		tasks, err = tasksIn(q.run(ctx, q.pop, name, count, q.o.Visibility.Microseconds(), request).StringSlice())
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("pop from %q: %w", name, err)
	case len(tasks) == 0:
		return nil, queueimpl.ErrEmpty
	}
	for i := range tasks {
		if tasks[i].Receipt != "" {
			tasks[i].Until = start.Add(q.o.Visibility)
		}
	}
	return tasks, nil
}

// tasksIn reads id, score, attempt and receipt of each.
func tasksIn(reply []string, err error) (tasks []queueimpl.Task, _ error) {
	for i := 0; err == nil && i+3 < len(reply); i += 4 {
		t := queueimpl.Task{ID: reply[i], Receipt: reply[i+3]}
		if t.Score, err = strconv.ParseFloat(reply[i+1], 64); err == nil {
			t.Attempt, err = strconv.Atoi(reply[i+2])
		}
		tasks = append(tasks, t)
	}
	return tasks, err
}

// State implements queueimpl.Queue.
func (q *queue) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	if err := refuse(name == ""); err != nil {
		return s, err
	}
	if q.state != nil {
		return q.state(ctx, q, name)
	}
	keys := q.keys(name)
	p := q.redis().TxPipeline()
	waiting, claimed := p.ZRangeWithScores(ctx, keys[0], 0, -1), p.ZRangeWithScores(ctx, keys[1], 0, -1)
	records := p.HGetAll(ctx, keys[2])
	if _, err := p.Exec(ctx); err != nil {
		return s, fmt.Errorf("state of %q: %w", name, err)
	}
	for _, m := range waiting.Val() {
		s.Waiting = append(s.Waiting, queueimpl.Task{ID: m.Member.(string), Score: m.Score})
	}
	for _, m := range claimed.Val() {
		t := queueimpl.Task{ID: m.Member.(string)}
		fmt.Sscanf(records.Val()[t.ID], "%d:%f", &t.Attempt, &t.Score)
		s.Claimed = append(s.Claimed, t)
	}
	return s, nil
}

// claims is a queue whose consumers claim tasks and acknowledge them.
type claims struct{ *queue }

// EnqueueAfter implements queueimpl.Delayer.
func (q claims) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	return q.enter(ctx, name, after, ids)
}

// Repeats implements queueimpl.Deduper.
func (q claims) Repeats() queueimpl.Repeat { return repeats(q.o) }

func repeats(o queueimpl.Options) queueimpl.Repeat {
	if o.Overwrite {
		return queueimpl.Overwritten
	}
	return queueimpl.Ignored
}

// Ack implements queueimpl.Acker.
func (q claims) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	return q.with(ctx, q.ack, name, t)
}

// Extend implements queueimpl.Extender.
func (q claims) Extend(ctx context.Context, name string, t queueimpl.Task) (queueimpl.Task, error) {
	start := q.env.Clock.Now()
	err := q.with(ctx, q.extend, name, t)
	if err == nil {
		t.Until = start.Add(q.o.Visibility)
	}
	return t, err
}

func (q claims) with(ctx context.Context, text, name string, t queueimpl.Task) error {
	if err := refuse(name == "" || t.ID == "" || t.Receipt == ""); err != nil {
		return err
	}
	n, err := q.run(ctx, text, name, t.ID, t.Receipt, q.o.Visibility.Microseconds()).Int()
	switch {
	case err != nil:
		return fmt.Errorf("claim in %q: %w", name, err)
	case n == 0:
		return queueimpl.ErrLost
	}
	return nil
}

// taken is a queue that removes tasks when it hands them out.
type taken struct{ *queue }

// EnqueueAfter implements queueimpl.Delayer.
func (q taken) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	return q.enter(ctx, name, after, ids)
}

// Repeats implements queueimpl.Deduper.
func (q taken) Repeats() queueimpl.Repeat { return repeats(q.o) }

// journaled is a plain list with a journal of what each request took.
type journaled struct{ *queue }

// PopAs implements queueimpl.Journaler.
func (q journaled) PopAs(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	if err := refuse(request == ""); err != nil {
		return nil, err
	}
	return q.take(ctx, name, request, count)
}

// Popped implements queueimpl.Journaler.
func (q journaled) Popped(ctx context.Context, name, request string) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || request == ""); err != nil {
		return nil, err
	}
	return tasksIn(q.run(ctx, `
		local text = redis.call('HGET', KEYS[5], ARGV[1])
		return text and cjson.decode(text) or {}`, name, request).StringSlice())
}
