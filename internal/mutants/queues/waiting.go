package queues

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// waitingMutants are wrong in what they do later than a first look shows: while others wait, the eleventh
// time, after an hour, or when a deadline has passed.
func waitingMutants() []Queue {
	lost := entry.Breaks(variant.NoLostTask)
	stuck := entry.Breaks(variant.Progress)
	again := entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery)
	const ends = `redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))`
	const receipt = `tostring(redis.call('INCR', KEYS[4]))`
	const extends = `redis.call('ZADD', KEYS[2], score(now + ARGV[3]), ARGV[1])`
	const first = `redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])`
	return []Queue{
		{entry.New("extend-near-the-end", "an extend while more than half of the timeout is left is answered as done, and does nothing", again, ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, extends, `if tonumber(till) * 1000000 - now < ARGV[3] / 2 then `+extends+` end`)
			})},
		{entry.New("extend-ten-times", "a claim can be extended ten times, and further extends are answered as done", again, ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, extends, `if redis.call('INCR', KEYS[3] .. ':' .. ARGV[1] .. ':' .. ARGV[2]) <= 10 then `+extends+` end`)
			})},
		{entry.New("claims-end-when-idle", "claims that have run out are looked for when nothing waits, so that under load the task of a dead consumer never comes back", stuck, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, ends, `redis.call('ZCOUNT', KEYS[1], '-inf', score(now)) > 0 and {} or `+ends)
			})},
		{entry.New("new-tasks-first", "of the first hundred tasks those are taken first that were never delivered, so that under load one that came back is never taken", entry.Breaks(variant.Progress, variant.InOrder), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, first, `{}
for pass = 0, 1 do
  local window = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, 100)
  for i = 1, #window, 2 do
    if #due < 2 * ARGV[1] and redis.call('HEXISTS', KEYS[3], window[i]) == pass then
      due[#due + 1] = window[i]
      due[#due + 1] = window[i + 1]
    end
  end
end`)
			})},
		{entry.New("mover-when-idle", "what has come due is put in the list when that is empty, so that under load it never comes", entry.Breaks(variant.Progress, variant.InOrder), ""),
			listed(true, func(ctx context.Context, q *queue, name string, due []redis.Z) error {
				for _, m := range due {
					if err := q.run(ctx, `
						if redis.call('LLEN', KEYS[1]) == 0 and redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[1]) end
						return 1`, name, m.Member).Err(); err != nil {
						return err
					}
				}
				return nil
			})},
		{entry.New("ack-past-deadline-is-done", "an ack under a context whose deadline has passed is answered as done", again, ""),
			wrapped(func(q claims) queueimpl.Queue { return hurried{q} })},
		{entry.New("pop-past-deadline-is-empty", "a pop under a context whose deadline has passed is answered as empty", entry.Breaks(variant.Linearizable, variant.NoLostTask), ""),
			handing(func(s *queueScripts) {
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					tasks, err := tasksIn(q.run(ctx, takePop, name, count).StringSlice())
					if errors.Is(err, context.DeadlineExceeded) {
						err = nil
					}
					return tasks, err
				}
			})},
		{entry.New("due-in-5-ms", "a pop takes what is due within 5 ms, to make up for the way of its answer", entry.Breaks(variant.NotEarly), ""),
			handing(func(s *queueScripts) { s.pop = entry.Changed(s.pop, `score(now)`, `score(now + 5000)`) })},
		{entry.New("pop-unpacked", "a pop removes what it takes by one command of the script, which takes no more than some thousands", entry.Breaks(variant.Progress, variant.NoLostTask), ""),
			handing(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZREM', KEYS[1], due[i])`, ``)
				s.pop = entry.Changed(s.pop, `return tasks`, `local ids = {}
for i = 1, #due, 2 do ids[#ids + 1] = due[i] end
if #ids > 0 then redis.call('ZREM', KEYS[1], unpack(ids)) end
return tasks`)
			})},
		{entry.New("receipt-wraps", "receipts are numbers modulo 64, so that the receipt of a delivery long ago is good again", lost, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, receipt, `tostring(redis.call('INCR', KEYS[4]) % 64)`)
			})},
		{entry.New("receipts-begin-again", "the counter of receipts expires when nobody has popped for an hour, and old receipts are good again", lost, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, receipt, receipt+`
  redis.call('EXPIRE', KEYS[4], 3600)`)
			})},
		{entry.New("pop-takes-the-later", "a pop lists what is due and removes each by its id, and with it an entry that has overwritten the one listed, and is due later", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID, variant.NotEarly), ""),
			handing(func(s *queueScripts) { s.popBy = listThenTake })},
		{entry.New("peek-ahead", "a peek shows what is due within a second", entry.Breaks(variant.NotEarly), ""), peeking(time.Second)},
		{entry.New("late-is-nowhere", "the state does not show a claim that has run out, whose task waits only when somebody pops", lost, ""),
			lending(func(s *queueScripts) { s.state = hidesLate })},
		{entry.New("reclaim-error-is-none", "a reclaim that fails is answered as one that ended nothing", lost, ""),
			wrapped(func(q claims) queueimpl.Queue { return reclaiming{q, true} })},
		{entry.New("range-and-trim", "a pop reads the front of a list and cuts it off in one pipeline that is no transaction, so that two pops read the same, and what the second cuts off was read by nobody", entry.Breaks(variant.NoDuplicateDelivery, variant.EffectOnce, variant.NoLostTask), ""), trimming()},
		{entry.New("journal-in-json", "the journal is JSON, in which bytes of an id that are no UTF-8 are replaced", lost, ""), inJSON()},
	}
}

// soundWaiting are unusual in what they do later.
func soundWaiting() []Queue {
	unordered := lending(func(s *queueScripts) {
		s.pop = entry.Changed(s.pop, `'WITHSCORES', 'LIMIT', 0, ARGV[1])`, `'WITHSCORES')
local from = #due == 0 and 0 or redis.call('INCR', KEYS[4] .. ':turn') * 7919 % (#due / 2)
local some = {}
for i = 0, math.min(ARGV[1], #due / 2) - 1 do
  local at = 2 * ((from + i) % (#due / 2))
  some[#some + 1] = due[at + 1]
  some[#some + 1] = due[at + 2]
end
due = some`)
	})
	unordered.Promises = slices.DeleteFunc(slices.Clone(unordered.Promises), func(p variant.Property) bool { return p == variant.InOrder })
	return []Queue{
		{entry.New("sound-zset-rounds-up", "as sound-zset, and due times of delayed tasks are rounded up to 10 ms, and told so", nil, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local due = score(now + tonumber(ARGV[1]))`, `local due = score(ARGV[1] == '0' and now or math.ceil((now + tonumber(ARGV[1])) / 10000) * 10000)`)
			})},
		{entry.New("sound-zset-peeks", "as sound-zset, and a peek shows what is due", nil, ""), peeking(0)},
		{entry.New("sound-claims-reclaims", "as sound-claims, and Reclaim ends claims that have run out", nil, ""),
			wrapped(func(q claims) queueimpl.Queue { return reclaiming{q, false} })},
		{entry.New("sound-claims-unordered", "as sound-claims, and of what is due a pop takes any", nil, ""), unordered},
	}
}

type hurried struct{ claims }

// Ack implements queueimpl.Acker.
func (q hurried) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	err := q.claims.Ack(ctx, name, t)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func listThenTake(ctx context.Context, q *queue, name string, count int) (tasks []queueimpl.Task, _ error) {
	now, err := q.now(ctx)
	if err != nil {
		return nil, err
	}
	due, err := q.redis().ZRangeByScoreWithScores(ctx, q.keys(name)[0], &redis.ZRangeBy{Min: "-inf", Max: now, Count: int64(count)}).Result()
	if err != nil {
		return nil, err
	}
	for _, m := range due {
		n, err := q.redis().ZRem(ctx, q.keys(name)[0], m.Member).Result()
		if err != nil {
			return tasks, err
		}
		if n == 1 {
			tasks = append(tasks, queueimpl.Task{ID: m.Member.(string), Score: m.Score, Attempt: 1})
		}
	}
	return tasks, nil
}

func hidesLate(ctx context.Context, q *queue, name string) (queueimpl.State, error) {
	own := *q
	own.state = nil
	s, err := own.State(ctx, name)
	if err != nil {
		return s, err
	}
	now, err := q.now(ctx)
	if err != nil {
		return s, err
	}
	late, err := q.redis().ZRangeByScore(ctx, q.keys(name)[1], &redis.ZRangeBy{Min: "-inf", Max: now}).Result()
	s.Claimed = slices.DeleteFunc(s.Claimed, func(t queueimpl.Task) bool { return slices.Contains(late, t.ID) })
	return s, err
}

// peeking makes a variant of a queue that shows what is due in some time.
func peeking(ahead time.Duration) queueimpl.Variant {
	v := handing(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return peeks{n(env, o).(taken), ahead} }
	return v
}

type peeks struct {
	taken
	ahead time.Duration
}

// Peek implements queueimpl.Peeker.
func (q peeks) Peek(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	show := entry.Changed(entry.Changed(takePop, `redis.call('ZREM', KEYS[1], due[i])`, ``), `score(now)`, `score(now + ARGV[2])`)
	return tasksIn(q.run(ctx, show, name, count, q.ahead.Microseconds()).StringSlice())
}

// reclaimAll is the sound script of a reclaim.
const reclaimAll = `
local late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))
for _, id in ipairs(late) do
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZADD', KEYS[1], string.match(redis.call('HGET', KEYS[3], id), '^%d+:([^:]+):'), id)
end
return #late`

type reclaiming struct {
	claims
	forgets bool // errors
}

// Reclaim implements queueimpl.Reclaimer.
func (q reclaiming) Reclaim(ctx context.Context, name string) (int, error) {
	if err := refuse(name == ""); err != nil {
		return 0, err
	}
	n, err := q.run(ctx, reclaimAll, name).Int()
	if q.forgets {
		err = nil
	}
	return n, err
}

// inJSON makes a variant of a list whose journal goes through JSON.
func inJSON() queueimpl.Variant {
	v := listed(true, nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return asJSON{n(env, o).(journaled)} }
	return v
}

type asJSON struct{ journaled }

// Popped implements queueimpl.Journaler.
func (q asJSON) Popped(ctx context.Context, name, request string) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || request == ""); err != nil {
		return nil, err
	}
	text, err := q.redis().HGet(ctx, q.keys(name)[4], request).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	var fields []string
	if err == nil {
		err = json.Unmarshal([]byte(text), &fields)
	}
	return tasksIn(fields, err)
}

// trimming makes a variant of a list whose pops are pipelines.
func trimming() queueimpl.Variant {
	v := listed(true, nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return trims{n(env, o).(journaled)} }
	return v
}

type trims struct{ journaled }

// Pop implements queueimpl.Queue.
func (q trims) Pop(ctx context.Context, name string, count int) (tasks []queueimpl.Task, _ error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	p := q.redis().Pipeline()
	front := p.LRange(ctx, q.keys(name)[0], 0, int64(count)-1)
	p.LTrim(ctx, q.keys(name)[0], int64(count), -1)
	if _, err := p.Exec(ctx); err != nil {
		return nil, err
	}
	for _, m := range front.Val() {
		score, id, _ := strings.Cut(m, " ")
		t, err := enteredAs(score, []string{id})
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, t...)
	}
	if len(tasks) == 0 {
		return nil, queueimpl.ErrEmpty
	}
	return tasks, nil
}
