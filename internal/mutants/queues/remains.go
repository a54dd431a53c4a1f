package queues

import (
	"context"
	"slices"
	"strconv"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// remainsMutants have calls with effects that show weeks later, in other calls, or in answers that were given before.
func remainsMutants() []Queue {
	lost, contract := entry.Breaks(variant.NoLostTask), entry.Breaks(entry.Contract)
	const expires = `redis.call('EXPIRE', KEYS[1], 86400) `
	return []Queue{
		{entry.New("dequeue-expires", "a withdrawal has all waiting tasks expire after a day", lost, ""),
			wrapped(func(q claims) queueimpl.Queue { return withdrawing{q, expires, "0"} })},
		{entry.New("reclaim-expires", "a reclaim has all waiting tasks expire after a day", lost, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{claims: q}, func(script string) string { return entry.Changed(script, `return #late`, expires+`return #late`) }}
			})},
		{entry.New("extend-expires", "an extend has what is known of the tasks expire after 30 days", entry.Breaks(entry.Contract, variant.EffectOnce, variant.NoLostTask), ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `redis.call('ZADD', KEYS[2], score(now + ARGV[3]), ARGV[1])`, `redis.call('ZADD', KEYS[2], score(now + ARGV[3]), ARGV[1])
redis.call('EXPIRE', KEYS[3], 30 * 86400)`)
			})},
		{entry.New("ack-within-a-day", "an ack more than a day after the end of its claim is refused, though nobody has taken the task", contract, ""),
			lending(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `redis.call('ZREM', KEYS[1], ARGV[1])`, `local till = redis.call('ZSCORE', KEYS[2], ARGV[1])
if till and tonumber(till) * 1000000 < now - 86400000000 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])`)
			})},
		{entry.New("refused-ack-marks", "an ack that is refused marks the task, whose holder cannot extend it any more", contract, ""),
			lending(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `~= ARGV[2] then return 0 end`, `~= ARGV[2] then redis.call('HSET', KEYS[5], ARGV[1], 1) return 0 end`)
				s.extend = `if redis.call('HEXISTS', KEYS[5], ARGV[1]) == 1 then return 0 end` + s.extend
			})},
		{entry.New("pop-into-one-slice", "all pops of a client answer with the same memory", contract, ""),
			wrapped(func(q claims) queueimpl.Queue { return &oneSlice{claims: q} })},
		{entry.New("counter-among-tasks", "the counter of receipts is a field of the hash of the tasks, which an id can have as its name", lost, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('INCR', KEYS[4])`, `redis.call('HINCRBY', KEYS[3], 'seq', 1)`)
			})},
		{entry.New("attempts-of-a-byte", "the number of attempts is kept in a byte", contract, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `local receipt =`, `attempt = attempt % 256
  local receipt =`)
			})},
		{entry.New("count-of-16-bits", "the number of tasks that a pop asks for is kept in 16 bits", entry.Breaks(variant.Progress), ""),
			wrapped(func(q claims) queueimpl.Queue { return count16{q} })},
		{entry.New("third-peek-counts", "every third look at a task counts as a delivery", contract, ""),
			wrapped(func(q claims) queueimpl.Queue { return &countedPeeks{claims: q} })},
		{entry.New("dequeue-nearly", "a withdrawal takes scores for equal that differ by less than 50 µs", contract, ""),
			wrapped(func(q claims) queueimpl.Queue { return withdrawing{q, "", "0.00005"} })},
		{entry.New("far-delays-apart", "tasks with a delay of more than an hour are in a set of their own, in which an enqueue does not look for the id", entry.Breaks(variant.OneEntryPerID), ""),
			lending(farApart)},
		{entry.New("empty-remembered", "a client that was told that nothing is due answers so for another 30 ms", entry.Breaks(variant.Progress), ""),
			wrapped(func(q claims) queueimpl.Queue { return &remembersEmpty{claims: q} })},
		{entry.New("sound-claims-withdraws", "as sound-claims, and a task that waits can be withdrawn", nil, ""),
			wrapped(func(q claims) queueimpl.Queue { return withdrawing{q, "", "0"} })},
	}
}

// withdrawing can withdraw tasks whose score differs by no more than within, and does more then.
type withdrawing struct {
	claims
	more, within string
}

// Dequeue implements queueimpl.Dequeuer.
func (q withdrawing) Dequeue(ctx context.Context, name, id string, score float64) error {
	if err := refuse(name == "" || id == ""); err != nil {
		return err
	}
	n, err := q.run(ctx, `
local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not due or math.abs(tonumber(due) - tonumber(ARGV[2])) > tonumber(ARGV[3]) then return 0 end
redis.call('HDEL', KEYS[3], ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
`+q.more+`return 1`, name, id, strconv.FormatFloat(score, 'f', -1, 64), q.within).Int()
	if err == nil && n == 0 {
		err = queueimpl.ErrChanged
	}
	return err
}

type oneSlice struct {
	claims
	tasks []queueimpl.Task
}

// Pop implements queueimpl.Queue.
func (q *oneSlice) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	got, err := q.claims.Pop(ctx, name, count)
	if err != nil {
		return got, err
	}
	q.tasks = append(q.tasks[:0], got...)
	return q.tasks, nil
}

type count16 struct{ claims }

// Pop implements queueimpl.Queue.
func (q count16) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if count > 0 && int16(count) <= 0 {
		return nil, queueimpl.ErrEmpty
	}
	return q.claims.Pop(ctx, name, count)
}

type countedPeeks struct {
	claims
	peeks int
}

// Peek implements queueimpl.Peeker.
func (q *countedPeeks) Peek(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	q.peeks++
	counts := "0"
	if q.peeks%3 == 0 {
		counts = "1"
	}
	return tasksIn(q.run(ctx, `
local tasks = {}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do
  if ARGV[2] == '1' then redis.call('HSET', KEYS[3], due[i], '1:' .. due[i + 1] .. ':none') end
  for _, field in ipairs({due[i], due[i + 1], '0', ''}) do tasks[#tasks + 1] = field end
end
return tasks`, name, count, counts).StringSlice())
}

// farApart changes a queue that lends: tasks that are due in more than an hour are in KEYS[5], until a pop finds them due.
func farApart(s *queueScripts) {
	s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, id)`, `redis.call('ZADD', KEYS[tonumber(ARGV[1]) > 3600000000 and 5 or 1], due, id)`)
	s.pop = `
local far = redis.call('ZRANGEBYSCORE', KEYS[5], '-inf', score(now), 'WITHSCORES')
for i = 1, #far, 2 do
  redis.call('ZREM', KEYS[5], far[i])
  redis.call('ZADD', KEYS[1], far[i + 1], far[i])
end
` + s.pop
	s.state = func(ctx context.Context, q *queue, name string) (queueimpl.State, error) {
		near := *q
		near.state = nil
		all, err := near.State(ctx, name)
		if err != nil {
			return all, err
		}
		far, err := q.redis().ZRangeWithScores(ctx, q.keys(name)[4], 0, -1).Result()
		for _, m := range far {
			all.Waiting = append(all.Waiting, queueimpl.Task{ID: m.Member.(string), Score: m.Score})
		}
		slices.SortStableFunc(all.Waiting, func(a, b queueimpl.Task) int { return int(a.Score*1e3) - int(b.Score*1e3) })
		return all, err
	}
}

type remembersEmpty struct {
	claims
	empty map[string]time.Time // by name
}

// Pop implements queueimpl.Queue.
func (q *remembersEmpty) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	now := q.env.Clock.Now()
	if at, known := q.empty[name]; known && now.Sub(at) < 30*time.Millisecond {
		return nil, queueimpl.ErrEmpty
	}
	got, err := q.claims.Pop(ctx, name, count)
	if err == queueimpl.ErrEmpty {
		if q.empty == nil {
			q.empty = map[string]time.Time{}
		}
		q.empty[name] = now
	}
	return got, err
}
