package queues

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// callMutants fail when a command of a call fails, when others act between its commands, or when there are many, long
// or old entries.
func callMutants() []Queue {
	lost := entry.Breaks(variant.NoLostTask)
	again := entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery)
	return []Queue{
		{entry.New("ack-forgets-error", "an ack that has no answer is reported as done", entry.Breaks(variant.EffectOnce), ""),
			wrapped(func(q claims) queueimpl.Queue { return forgetful{q} })},
		{entry.New("enqueue-believes-refusal", "an enqueue that the server answers with an error is reported as entered, since the server has answered", lost, ""),
			wrapped(func(q claims) queueimpl.Queue { return believer{q} })},
		{entry.New("ack-tidies-up", "an ack that finds the queue empty deletes its keys by a second command, and a task that was enqueued in between", lost, ""),
			wrapped(func(q claims) queueimpl.Queue { return tidy{q} })},
		{entry.New("extend-in-two-steps", "an extend looks whose claim it is, and prolongs the claim of whoever has the task by the next command", entry.Breaks(variant.EffectOnce, variant.NoLostTask), ""),
			wrapped(func(q claims) queueimpl.Queue { return looksFirst{q, " 'XX',"} })},
		{entry.New("claims-ended-by-list", "a pop lists the claims that have run out, and ends each by a command of its own, whoever has the task by then", again, ""),
			lending(func(s *queueScripts) { s.popBy = listThenEnd })},
		{entry.New("overwrite-in-two-steps", "an id that is enqueued again is removed by one command and entered by the next", lost, ""),
			lending(func(s *queueScripts) {
				s.enqueueBy = func(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
					return removeThenEnter(ctx, q, name, after, ids)
				}
			})},
		{entry.New("pop-setup-error-kept", "a client sends a PING before its first pop, and answers every pop with the error of that", entry.Breaks(variant.Progress, entry.Contract), ""),
			handing(func(s *queueScripts) {
				var asked sync.Map // the error by client
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					first, found := asked.Load(q)
					if !found {
						first = q.redis().Ping(ctx)
						asked.Store(q, first)
					}
					if err := first.(*redis.StatusCmd).Err(); err != nil {
						return nil, err
					}
					own := *q
					own.popBy = nil
					return own.take(ctx, name, "", count)
				}
			})},
		{entry.New("pop-puts-back", "a pop takes the first tasks out, and puts those back that are not due", lost, ""),
			handing(func(s *queueScripts) { s.popBy = takeThenPutBack })},
		{entry.New("queue-expires", "a queue expires an hour after the last enqueue", lost, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `return entered`, `redis.call('EXPIRE', KEYS[1], 3600)
return entered`)
			})},
		{entry.New("unique-for-five-minutes", "the mark that says that an id is there expires after five minutes", entry.Breaks(variant.OneEntryPerID), ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `not redis.call('ZSCORE', KEYS[1], ARGV[i])`, `not redis.call('GET', KEYS[3] .. ':' .. ARGV[i])`)
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, ARGV[i])`, `redis.call('ZADD', KEYS[1], due, ARGV[i])
    redis.call('SET', KEYS[3] .. ':' .. ARGV[i], 1, 'EX', 300)`)
				s.pop = entry.Changed(s.pop, `redis.call('ZREM', KEYS[1], due[i])`, `redis.call('ZREM', KEYS[1], due[i])
  redis.call('DEL', KEYS[3] .. ':' .. due[i])`)
			})},
		{entry.New("mark-of-name-and-id", "the key that says that an id is there is the queue's name, a slash and the id, so a task of one queue is taken for one of another", lost, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `not redis.call('ZSCORE', KEYS[1], ARGV[i])`, `redis.call('SET', KEYS[3] .. '/' .. ARGV[i], 1, 'NX')`)
				s.pop = entry.Changed(s.pop, `redis.call('ZREM', KEYS[1], due[i])`, `redis.call('ZREM', KEYS[1], due[i])
  redis.call('DEL', KEYS[3] .. '/' .. due[i])`)
			})},
		{entry.New("enqueue-unpacked", "an enqueue notes each id in a set, and then enters all by one command of the script, which takes no more than some thousands", lost, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local entered = {due}`, `local entered, fresh = {due}, {}`)
				s.enqueue = entry.Changed(s.enqueue, `not redis.call('ZSCORE', KEYS[1], ARGV[i])`, `redis.call('SADD', KEYS[3], ARGV[i]) == 1`)
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, ARGV[i])`, `fresh[#fresh + 1] = due
    fresh[#fresh + 1] = ARGV[i]`)
				s.enqueue = entry.Changed(s.enqueue, `return entered`, `if #fresh > 0 then redis.call('ZADD', KEYS[1], unpack(fresh)) end
return entered`)
				s.pop = entry.Changed(s.pop, `redis.call('ZREM', KEYS[1], due[i])`, `redis.call('ZREM', KEYS[1], due[i])
  redis.call('SREM', KEYS[3], due[i])`)
			})},
		{entry.New("next-due-remembered", "a consumer that finds only later tasks remembers when the first is due, and does not ask before", entry.Breaks(variant.Progress, variant.InOrder), ""),
			wrapped(func(q claims) queueimpl.Queue { return &expectant{claims: q} })},
		{entry.New("late-ack-forgets-id", "an ack removes the mark that says that an id is there before it looks at the receipt", entry.Breaks(variant.OneEntryPerID), ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id)`, `redis.call('SISMEMBER', KEYS[1] .. ':ids', id) == 1`)
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, id)`, `redis.call('ZADD', KEYS[1], due, id)
    redis.call('SADD', KEYS[1] .. ':ids', id)`)
				s.ack = `redis.call('SREM', KEYS[1] .. ':ids', ARGV[1])` + s.ack
			})},
		{entry.New("claims-unpacked", "a pop ends all claims that have run out by one command of the script, which takes no more than some thousands", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.pop = `
local late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))
if #late > 0 then redis.call('ZREM', KEYS[2], unpack(late)) end
for _, id in ipairs(late) do redis.call('ZADD', KEYS[1], string.match(redis.call('HGET', KEYS[3], id), '^%d+:([^:]+):'), id) end
` + claimPop
			})},
		{entry.New("scripts-by-hand", "a pop whose script the server has forgotten does the same by single commands", again, ""),
			lending(func(s *queueScripts) { s.popBy = popByHand })},
		{entry.New("stream-trimmed", "a stream is trimmed to ten thousand entries", lost, ""),
			newStream(func(s *stream) { s.maxLen = 10_000 })},
		{entry.New("stream-ids-of-producer", "an entry's id is the producer's time, so a producer with a clock that is behind another's is refused", lost, ""),
			newStream(func(s *stream) { s.ownIDs = true })},
		{entry.New("stream-drops-consumers", "a pop deletes consumers that have been idle for long, along with the entries that they had", lost, ""),
			newStream(func(s *stream) { s.drops = true })},
	}
}

// wrapped makes a variant from a queue that lends, with some calls replaced.
func wrapped(change func(claims) queueimpl.Queue) queueimpl.Variant {
	v := lending(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return change(n(env, o).(claims)) }
	return v
}

type forgetful struct{ claims }

// Ack implements queueimpl.Acker.
func (q forgetful) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	err := q.claims.Ack(ctx, name, t)
	if errors.Is(err, queueimpl.ErrLost) || errors.Is(err, queueimpl.ErrBadCall) {
		return err
	}
	return nil
}

type believer struct{ claims }

// Enqueue implements queueimpl.Queue.
func (q believer) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	in, err := q.claims.Enqueue(ctx, name, ids...)
	if answer := redis.Error(nil); errors.As(err, &answer) {
		return enteredAs(strconv.FormatInt(q.env.Clock.Now().Unix(), 10), ids)
	}
	return in, err
}

type tidy struct{ claims }

// Ack implements queueimpl.Acker.
func (q tidy) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if err := q.claims.Ack(ctx, name, t); err != nil {
		return err
	}
	if s, err := q.State(ctx, name); err == nil && len(s.Waiting)+len(s.Claimed) == 0 {
		q.redis().Del(ctx, q.keys(name)[:3]...)
	}
	return nil
}

// looksFirst extends a claim in two steps. only restricts the second one to claims that are there.
type looksFirst struct {
	claims
	only string
}

// Extend implements queueimpl.Extender.
func (q looksFirst) Extend(ctx context.Context, name string, t queueimpl.Task) (queueimpl.Task, error) {
	start := q.env.Clock.Now()
	look := entry.Changed(claimExtend, `redis.call('ZADD', KEYS[2], score(now + ARGV[3]), ARGV[1])`, ``)
	if err := q.with(ctx, look, name, t); err != nil {
		return t, err
	}
	t.Until = start.Add(q.o.Visibility)
	return t, q.run(ctx, `return redis.call('ZADD', KEYS[2],`+q.only+` score(now + ARGV[2]), ARGV[1])`, name, t.ID, q.o.Visibility.Microseconds()).Err()
}

func listThenEnd(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	now, err := q.now(ctx)
	if err != nil {
		return nil, err
	}
	late, err := q.redis().ZRangeByScore(ctx, q.keys(name)[1], &redis.ZRangeBy{Min: "-inf", Max: now}).Result()
	if err != nil {
		return nil, err
	}
	for _, id := range late {
		if err := q.run(ctx, `
			local record = redis.call('HGET', KEYS[3], ARGV[1])
			if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then redis.call('ZADD', KEYS[1], string.match(record, '^%d+:([^:]+):'), ARGV[1]) end
			return 1`, name, id).Err(); err != nil {
			return nil, err
		}
	}
	return tasksIn(q.run(ctx, claimPop, name, count, q.o.Visibility.Microseconds(), "").StringSlice())
}

func removeThenEnter(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
	args := []any{after.Microseconds(), 0}
	for _, id := range ids {
		args = append(args, id)
		if !q.o.Overwrite {
			continue
		}
		if err := q.run(ctx, `
			redis.call('ZREM', KEYS[1], ARGV[1])
			redis.call('ZREM', KEYS[2], ARGV[1])
			return redis.call('HDEL', KEYS[3], ARGV[1])`, name, id).Err(); err != nil {
			return nil, err
		}
	}
	reply, err := q.run(ctx, claimEnqueue, name, args...).StringSlice()
	if err != nil {
		return nil, err
	}
	return enteredAs(reply[0], reply[1:])
}

func takeThenPutBack(ctx context.Context, q *queue, name string, count int) (tasks []queueimpl.Task, _ error) {
	now, err := q.now(ctx)
	if err != nil {
		return nil, err
	}
	first, err := q.redis().ZPopMin(ctx, q.keys(name)[0], int64(count)).Result()
	if err != nil {
		return nil, err
	}
	for _, m := range first {
		if fmt.Sprintf("%.6f", m.Score) > now {
			if err := q.redis().ZAdd(ctx, q.keys(name)[0], m).Err(); err != nil {
				return nil, err
			}
			continue
		}
		tasks = append(tasks, queueimpl.Task{ID: m.Member.(string), Score: m.Score, Attempt: 1})
	}
	return tasks, nil
}

func popByHand(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	args := []any{count, q.o.Visibility.Microseconds(), ""}
	script := redis.NewScript(entry.ClockLua + claimPop)
	tasks, err := tasksIn(script.EvalSha(ctx, q.redis(), q.keys(name), args...).StringSlice())
	if !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return tasks, err
	}
	if err := script.Load(ctx, q.redis()).Err(); err != nil {
		return nil, err
	}
	due, err := q.due(ctx, name, count)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	var reply []string
	for _, m := range due {
		if err := q.redis().ZRem(ctx, q.keys(name)[0], m.Member).Err(); err != nil {
			return nil, err
		}
		reply = append(reply, m.Member.(string), strconv.FormatFloat(m.Score, 'f', 6, 64))
	}
	return q.claim(ctx, name, reply)
}

// soundCalls are unusual, and keep their promises.
func soundCalls() []Queue {
	return []Queue{
		{entry.New("sound-claims-no-scores", "as sound-claims, and Task.Score is 0 everywhere", nil, ""),
			wrapped(func(q claims) queueimpl.Queue { return scoreless{q} })},
		{entry.New("sound-claims-strict-ids", "as sound-claims, and ids that are not printable ASCII of up to 512 characters are bad calls", nil, ""),
			wrapped(func(q claims) queueimpl.Queue { return strictIDs{q} })},
		{entry.New("sound-claims-longer", "as sound-claims, and the server keeps each claim for a millisecond longer", nil, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `score(now + ARGV[2])`, `score(now + ARGV[2] + 1000)`)
				s.extend = entry.Changed(s.extend, `score(now + ARGV[3])`, `score(now + ARGV[3] + 1000)`)
			})},
	}
}

// expectant does not ask the server again before the due time of the first task that it has seen.
type expectant struct {
	claims
	next time.Time
}

// Pop implements queueimpl.Queue.
func (q *expectant) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if q.env.Clock.Now().Before(q.next) {
		return nil, queueimpl.ErrEmpty
	}
	tasks, err := q.claims.Pop(ctx, name, count)
	if errors.Is(err, queueimpl.ErrEmpty) {
		if first := q.redis().ZRangeWithScores(ctx, q.keys(name)[0], 0, 0).Val(); len(first) > 0 {
			q.next = time.UnixMicro(int64(first[0].Score * 1e6))
		}
	}
	return tasks, err
}

type scoreless struct{ claims }

func unscored(tasks []queueimpl.Task, err error) ([]queueimpl.Task, error) {
	for i := range tasks {
		tasks[i].Score = 0
	}
	return tasks, err
}

// Enqueue implements queueimpl.Queue.
func (q scoreless) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return unscored(q.claims.Enqueue(ctx, name, ids...))
}

// EnqueueAfter implements queueimpl.Delayer.
func (q scoreless) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	return unscored(q.claims.EnqueueAfter(ctx, name, after, ids...))
}

// Pop implements queueimpl.Queue.
func (q scoreless) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	return unscored(q.claims.Pop(ctx, name, count))
}

// State implements queueimpl.Queue.
func (q scoreless) State(ctx context.Context, name string) (queueimpl.State, error) {
	s, err := q.claims.State(ctx, name)
	_, _ = unscored(s.Waiting, nil)
	_, _ = unscored(s.Claimed, nil)
	return s, err
}

type strictIDs struct{ claims }

// Enqueue implements queueimpl.Queue.
func (q strictIDs) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

// EnqueueAfter implements queueimpl.Delayer.
func (q strictIDs) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	for _, id := range ids {
		for i := range len(id) {
			if err := refuse(len(id) > 512 || id[i] < ' ' || id[i] > '~'); err != nil {
				return nil, err
			}
		}
	}
	return q.enter(ctx, name, after, ids)
}
