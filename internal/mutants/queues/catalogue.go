package queues

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// The sound scripts of a queue whose consumers claim tasks. The record of a claimed task is
// attempt:due:receipt.
const (
	claimEnqueue = `
local due = score(now + tonumber(ARGV[1]))
local entered = {due}
for i = 3, #ARGV do
  local id = ARGV[i]
  local there = redis.call('ZSCORE', KEYS[1], id) or redis.call('ZSCORE', KEYS[2], id)
  if not there or ARGV[2] == '1' then
    redis.call('ZREM', KEYS[2], id)
    redis.call('HDEL', KEYS[3], id)
    redis.call('ZADD', KEYS[1], due, id)
    entered[#entered + 1] = id
  end
end
return entered
`
	claimPop = `
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do
  local due = string.match(redis.call('HGET', KEYS[3], id), '^%d+:([^:]+):')
  redis.call('ZREM', KEYS[2], id)
  redis.call('ZADD', KEYS[1], due, id)
end
local tasks = {}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do
  local id = due[i]
  local record = redis.call('HGET', KEYS[3], id)
  local attempt = (record and tonumber(string.match(record, '^(%d+)')) or 0) + 1
  local receipt = tostring(redis.call('INCR', KEYS[4]))
  redis.call('ZREM', KEYS[1], id)
  redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)
  redis.call('HSET', KEYS[3], id, attempt .. ':' .. due[i + 1] .. ':' .. receipt)
  for _, field in ipairs({id, due[i + 1], tostring(attempt), receipt}) do tasks[#tasks + 1] = field end
end
return tasks
`
	claimAck = `
local record = redis.call('HGET', KEYS[3], ARGV[1])
if not record or string.match(record, ':([^:]*)$') ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
`
	claimExtend = `
local record = redis.call('HGET', KEYS[3], ARGV[1])
if not record or string.match(record, ':([^:]*)$') ~= ARGV[2] then return 0 end
local till = redis.call('ZSCORE', KEYS[2], ARGV[1])
if not till or tonumber(till) * 1000000 <= now then return 0 end
redis.call('ZADD', KEYS[2], score(now + ARGV[3]), ARGV[1])
return 1
`
)

// lending makes a variant of a queue whose consumers claim tasks until a visibility timeout.
func lending(change func(*queueScripts)) queueimpl.Variant {
	s := queueScripts{enqueue: claimEnqueue, pop: claimPop, ack: claimAck, extend: claimExtend}
	if change != nil {
		change(&s)
	}
	return queueimpl.Variant{
		Promises: []variant.Property{variant.NoLostTask, variant.EffectOnce, variant.NotEarly, variant.InOrder, variant.OneEntryPerID, variant.Progress},
		Flaws: []variant.Flaw{
			{Property: variant.NoDuplicateDelivery, Fault: variant.Overrun, Why: "a task whose consumer is slow is handed out again"},
			{Property: variant.NoDuplicateDelivery, Fault: variant.Crash, Why: "a task whose consumer died is handed out again"},
		},
		AtLeastOnce: true,
		Needs:       variant.Needs{ServerClock: true},
		New:         func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return claims{newQueue(s, env, o)} },
	}
}

// claimMutants mishandle tasks that are lent.
func claimMutants() []Queue {
	lost := entry.Breaks(variant.NoLostTask)
	again := entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery, variant.NoLostTask)
	return []Queue{
		{entry.New("claim-never-ends", "the tasks of a dead consumer are handed to no other", entry.Breaks(variant.NoLostTask, variant.Progress), "https://github.com/sibidharan/zealphp/issues/231"),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now)))`, `ipairs({})`)
			})},
		{entry.New("claim-16-times", "a task that was handed out 16 times is dropped, though no limit was set", lost, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`, `if attempt < 16 then redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id) end`)
			})},
		{entry.New("claim-from-due-time", "a claim lasts from the task's due time, so one that is popped late is handed out again at once", again, "https://github.com/celery/kombu/issues/337"),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`, `redis.call('ZADD', KEYS[2], score(due[i + 1] * 1000000 + ARGV[2]), id)`)
			})},
		{entry.New("claim-in-two-steps", "a task is taken out by one command and claimed by the next, between which its consumer can die", lost, "https://github.com/rq/rq/issues/1716"),
			lending(func(s *queueScripts) { s.popBy = popThenClaim })},
		{entry.New("claim-in-whole-seconds", "the visibility timeout is rounded up to whole seconds", entry.Breaks(variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`, `redis.call('ZADD', KEYS[2], score(now + math.max(1, math.ceil(ARGV[2] / 1000000)) * 1000000), id)`)
			})},
		{entry.New("claim-without-end", "a task becomes active by one command and gets the end of its claim by the next; only those with an end are looked through", lost, "https://github.com/hibiken/asynq/issues/1144"),
			lending(func(s *queueScripts) { s.popBy = activeThenEnd })},
		{entry.New("claim-unmarked-is-stalled", "a consumer marks its active task by a second command, and what is active without a mark is handed out again", again, "https://github.com/OptimalBits/bull/pull/359"),
			lending(func(s *queueScripts) { s.popBy = moveThenMark })},
		{entry.New("claim-joined-text", "claims are kept as id and due time joined by a colon, and what is cut at the first colon comes back", lost, "https://github.com/hibiken/asynq/pull/1140"),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZADD', KEYS[1], due, id)`, `redis.call('ZADD', KEYS[1], due, string.match(id .. ':' .. due, '^[^:]*'))`)
			})},
		{entry.New("claim-batch-of-eight", "a pop ends all claims that have run out, and only the first eight of their tasks come back", lost, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `  redis.call('ZREM', KEYS[2], id)
  redis.call('ZADD', KEYS[1], due, id)`, `  redis.call('ZREM', KEYS[2], id)
  if _ <= 8 then redis.call('ZADD', KEYS[1], due, id) end`)
			})},
		{entry.New("claim-scan-stops", "claims are looked through in the order in which they began, up to the first that goes on, so an extended one keeps later ones from coming back", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`, `
					local began = {}
					for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do began[#began + 1] = id end
					local function receipt(id) return tonumber(string.match(redis.call('HGET', KEYS[3], id), ':([^:]*)$')) end
					table.sort(began, function(a, b) return receipt(a) < receipt(b) end)
					for _, id in ipairs(began) do
					if tonumber(redis.call('ZSCORE', KEYS[2], id)) * 1000000 > now then break end`)
			})},
		{entry.New("ack-by-id", "an ack does not check whose claim it is, so a slow consumer's ack removes a task that was handed to another, or enqueued again", entry.Breaks(variant.NoLostTask, variant.EffectOnce), "https://github.com/OptimalBits/bull/issues/308"),
			lending(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `if not record or string.match(record, ':([^:]*)$') ~= ARGV[2] then return 0 end`, `if not record then return 0 end`)
			})},
		{entry.New("ack-leaves-id", "an ack leaves the id among those that are there, so it can never be enqueued again", entry.Breaks(variant.NoLostTask, variant.Progress), "https://github.com/zoolutions/sidekiq-unique-jobs/issues/412"),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZSCORE', KEYS[2], id)`, `redis.call('HEXISTS', KEYS[3], id) == 1`)
				s.ack = entry.Changed(s.ack, `redis.call('HDEL', KEYS[3], ARGV[1])`, `redis.call('HSET', KEYS[3], ARGV[1], '1:0:done')`)
			})},
		{entry.New("ack-leaves-waiting", "an ack that comes after the claim ended, and before the task was handed out, leaves it waiting", entry.Breaks(variant.EffectOnce, variant.NoLostTask), ""),
			lending(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `redis.call('ZREM', KEYS[1], ARGV[1])`, ``)
			})},
		{entry.New("extend-of-others", "an extend does not check whose claim it is", entry.Breaks(variant.NoLostTask, variant.EffectOnce), ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `if not record or string.match(record, ':([^:]*)$') ~= ARGV[2] then return 0 end`, ``)
			})},
		{entry.New("overwrite-only-later", "an id that is enqueued again keeps its due time if that is the later one", entry.Breaks(variant.OneEntryPerID), ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, id)`, `redis.call('ZADD', KEYS[1], 'GT', due, id)`)
			})},
		{entry.New("receipt-per-client", "the receipt is the client's own name, so that its ack of an earlier entry fits a later one", lost, ""),
			lending(func(s *queueScripts) {
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					if q.me == "" {
						q.me = q.env.Token()
					}
					named := entry.Changed(claimPop, `tostring(redis.call('INCR', KEYS[4]))`, `ARGV[3]`)
					return tasksIn(q.run(ctx, named, name, count, q.o.Visibility.Microseconds(), q.me).StringSlice())
				}
			})},
		{entry.New("repeat-resets-attempts", "an id that is enqueued while a consumer has it is ignored, and its attempts begin again", entry.Breaks(variant.OneEntryPerID), ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `  if not there or ARGV[2] == '1' then`, `
  local record = redis.call('HGET', KEYS[3], id)
  if record then redis.call('HSET', KEYS[3], id, (string.gsub(record, '^%d+', '0'))) end
  if not there or ARGV[2] == '1' then`)
			})},
		{entry.New("extend-resets-attempts", "an extend restarts the attempts, so that a poison task is never put aside", entry.Breaks(variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `return 1`, `redis.call('HSET', KEYS[3], ARGV[1], (string.gsub(record, '^%d+', '0')))
return 1`)
			})},
		{entry.New("extend-sums-up", "each extend adds the timeout to the end of the claim, so that a consumer that extends often and dies keeps its task for long", entry.Breaks(variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `score(now + ARGV[3])`, `score(tonumber(till) * 1000000 + ARGV[3])`)
			})},
		{entry.New("extend-after-end", "a claim that has run out can be extended as long as nobody took the task", entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery), ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, ` or tonumber(till) * 1000000 <= now`, ``)
			})},
		{entry.New("claim-scan-of-ten", "of the claims, the ten with the first ids are looked at, so that others do not end while those go on", entry.Breaks(variant.Progress, variant.NoLostTask), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`, `
					local page = redis.call('ZRANGE', KEYS[2], 0, -1)
					table.sort(page)
					for i, id in ipairs(page) do
					if i > 10 then break end
					if tonumber(redis.call('ZSCORE', KEYS[2], id)) * 1000000 <= now then`)
				s.pop = entry.Changed(s.pop, `  redis.call('ZADD', KEYS[1], due, id)
end`, `  redis.call('ZADD', KEYS[1], due, id)
end end`)
			})},
		{entry.New("claim-scan-of-first-hundred", "of the claims, the hundred that were made first are looked at, so that others do not end while those are extended", entry.Breaks(variant.Progress, variant.NoLostTask), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`, `
					local page, receipts = redis.call('ZRANGE', KEYS[2], 0, -1), {}
					for _, id in ipairs(page) do receipts[id] = tonumber(string.match(redis.call('HGET', KEYS[3], id), ':([^:]*)$')) end
					table.sort(page, function(a, b) return receipts[a] < receipts[b] end)
					for i, id in ipairs(page) do
					if i > 100 then break end
					if tonumber(redis.call('ZSCORE', KEYS[2], id)) * 1000000 <= now then`)
				s.pop = entry.Changed(s.pop, `  redis.call('ZADD', KEYS[1], due, id)
end`, `  redis.call('ZADD', KEYS[1], due, id)
end end`)
			})},
		{entry.New("claim-from-answer", "the end of a claim is counted from when the answer is there, and the server counts from before", entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery), ""), countsFromAnswer()},
		{entry.New("receipt-per-task", "the receipt is the id and the attempt, and enqueueing again begins at the first attempt, so an old ack fits the new entry", entry.Breaks(variant.NoLostTask, variant.EffectOnce), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `tostring(redis.call('INCR', KEYS[4]))`, `'attempt-' .. attempt`)
			})},
	}
}

// popThenClaim takes tasks out and then claims them.
func popThenClaim(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	back := entry.Changed(claimPop, `'LIMIT', 0, ARGV[1])`, `'LIMIT', 0, 0)`)
	if err := q.run(ctx, back, name, count, 0, "").Err(); err != nil {
		return nil, err
	}
	reply, err := q.run(ctx, `
		local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
		for i = 1, #due, 2 do redis.call('ZREM', KEYS[1], due[i]) end
		return due`, name, count).StringSlice()
	if err != nil || len(reply) == 0 {
		return nil, err
	}
	return q.claim(ctx, name, reply)
}

// claim claims tasks, given as id and score.
func (q *queue) claim(ctx context.Context, name string, due []string) ([]queueimpl.Task, error) {
	args := []any{q.o.Visibility.Microseconds()}
	for _, d := range due {
		args = append(args, d)
	}
	return tasksIn(q.run(ctx, `
		local tasks = {}
		for i = 2, #ARGV, 2 do
		  local id = ARGV[i]
		  local record = redis.call('HGET', KEYS[3], id)
		  local attempt = (record and tonumber(string.match(record, '^(%d+)')) or 0) + 1
		  local receipt = tostring(redis.call('INCR', KEYS[4]))
		  redis.call('ZADD', KEYS[2], score(now + ARGV[1]), id)
		  redis.call('HSET', KEYS[3], id, attempt .. ':' .. ARGV[i + 1] .. ':' .. receipt)
		  for _, field in ipairs({id, ARGV[i + 1], tostring(attempt), receipt}) do tasks[#tasks + 1] = field end
		end
		return tasks`, name, args...).StringSlice())
}

// activeThenEnd writes a far end first, which means none, and then the true one.
func activeThenEnd(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	active := entry.Changed(claimPop, `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`, `redis.call('ZADD', KEYS[2], '+inf', id)`)
	return popThenEnd(ctx, q, active, name, count)
}

// moveThenMark makes a task active with an expired claim, and marks it afterwards.
func moveThenMark(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	move := entry.Changed(claimPop, `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`, `redis.call('ZADD', KEYS[2], score(now), id)`)
	return popThenEnd(ctx, q, move, name, count)
}

// popThenEnd pops, and writes the ends of the claims by a second command.
func popThenEnd(ctx context.Context, q *queue, pop, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := tasksIn(q.run(ctx, pop, name, count, 0, "").StringSlice())
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	args := []any{q.o.Visibility.Microseconds()}
	for _, t := range tasks {
		args = append(args, t.ID)
	}
	return tasks, q.run(ctx, `
		for i = 2, #ARGV do redis.call('ZADD', KEYS[2], 'XX', score(now + ARGV[1]), ARGV[i]) end
		return 1`, name, args...).Err()
}

// The sound scripts of a queue that removes tasks when it hands them out.
const (
	takeEnqueue = `
local due = score(now + tonumber(ARGV[1]))
local entered = {due}
for i = 3, #ARGV do
  if ARGV[2] == '1' or not redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], due, ARGV[i])
    entered[#entered + 1] = ARGV[i]
  end
end
return entered
`
	takePop = `
local tasks = {}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])
for i = 1, #due, 2 do
  redis.call('ZREM', KEYS[1], due[i])
  for _, field in ipairs({due[i], due[i + 1], '1', ''}) do tasks[#tasks + 1] = field end
end
return tasks
`
)

// handing makes a variant from a queue that removes tasks when it hands them out.
func handing(change func(*queueScripts)) queueimpl.Variant {
	s := queueScripts{enqueue: takeEnqueue, pop: takePop}
	if change != nil {
		change(&s)
	}
	return queueimpl.Variant{
		Promises: []variant.Property{variant.NoLostTask, variant.NoDuplicateDelivery, variant.EffectOnce, variant.NotEarly, variant.InOrder, variant.OneEntryPerID, variant.Progress},
		Flaws:    onceOnly,
		Needs:    variant.Needs{ServerClock: true},
		New:      func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return taken{newQueue(s, env, o)} },
	}
}

// onceOnly lists the flaws of every queue that removes tasks when it hands them out.
var onceOnly = []variant.Flaw{
	{Property: variant.NoLostTask, Fault: variant.Crash, Why: "a consumer that dies takes its task along"},
	{Property: variant.NoLostTask, Fault: variant.DropReply, Why: "a task whose reply is lost is gone"},
}

// takeMutants are wrong about which tasks are due, or in taking them.
func takeMutants() []Queue {
	twice := entry.Breaks(variant.NoDuplicateDelivery, variant.EffectOnce)
	early := entry.Breaks(variant.NotEarly)
	return []Queue{
		{entry.New("pop-drops-what-it-has", "a pop takes its tasks one by one, and an error at one of them loses those before it", entry.Breaks(variant.NoLostTask), ""),
			handing(func(s *queueScripts) {
				s.popBy = func(ctx context.Context, q *queue, name string, count int) (tasks []queueimpl.Task, err error) {
					for range count {
						t, err := tasksIn(q.run(ctx, takePop, name, 1).StringSlice())
						if err != nil {
							return nil, err
						}
						tasks = append(tasks, t...)
					}
					return tasks, nil
				}
			})},
		{entry.New("ids-marked-as-there", "the ids that are there are marked in a set, from which a pop removes them by a second command, which a consumer that dies never sends", entry.Breaks(variant.NoLostTask), ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(takeEnqueue, `not redis.call('ZSCORE', KEYS[1], ARGV[i])`, `redis.call('SADD', KEYS[3], ARGV[i]) == 1`)
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					tasks, err := tasksIn(q.run(ctx, takePop, name, count).StringSlice())
					for _, t := range tasks {
						if err == nil {
							err = q.redis().SRem(ctx, q.keys(name)[2], t.ID).Err()
						}
					}
					return tasks, err
				}
			})},
		{entry.New("pop-in-two-steps", "a pop reads what is due and removes it by a second command, without a look whether it was there", twice, ""),
			handing(func(s *queueScripts) {
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					due, err := q.due(ctx, name, count)
					if err != nil || len(due) == 0 {
						return nil, err
					}
					var tasks []queueimpl.Task
					var ids []any
					for _, m := range due {
						ids = append(ids, m.Member)
						tasks = append(tasks, queueimpl.Task{ID: m.Member.(string), Score: m.Score, Attempt: 1})
					}
					return tasks, q.redis().ZRem(ctx, q.keys(name)[0], ids...).Err()
				}
			})},
		{entry.New("pop-removes-one-more", "a pop removes one task more than it hands out", entry.Breaks(variant.NoLostTask), ""),
			handing(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `return tasks`, `if #due == 2 * ARGV[1] and #due > 2 then redis.call('ZPOPMIN', KEYS[1]) end return tasks`)
			})},
		{entry.New("due-in-whole-seconds", "due times are cut to whole seconds, so a delayed task comes early", early, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local due = score(now + tonumber(ARGV[1]))`, `local due = score(math.floor((now + tonumber(ARGV[1])) / 1000000) * 1000000)`)
			})},
		{entry.New("delay-capped", "delays of more than a quarter of an hour are cut to that, as a broker's maximum", early, ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local due = score(now + tonumber(ARGV[1]))`, `local due = score(now + math.min(tonumber(ARGV[1]), 900000000))`)
			})},
		{entry.New("due-by-client-clock", "a consumer decides by its own clock what is due", early, ""),
			handing(func(s *queueScripts) {
				s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
					mine := entry.Changed(takePop, `score(now)`, `score(tonumber(ARGV[2]))`)
					return tasksIn(q.run(ctx, mine, name, count, q.env.Clock.Now().UnixMicro()).StringSlice())
				}
			})},
		{entry.New("due-50-ms-early", "a task is handed out up to 50 ms before it is due", early, ""),
			handing(func(s *queueScripts) { s.pop = entry.Changed(s.pop, `score(now)`, `score(now + 50000)`) })},
		{entry.New("only-first-is-due", "a pop looks whether the first task is due, and takes as many as it was asked for", early, ""),
			handing(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `local due = `, `if #redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'LIMIT', 0, 1) == 0 then return tasks end
local due = `)
				s.pop = entry.Changed(s.pop, `redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES', 'LIMIT', 0, ARGV[1])`, `redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')`)
			})},
		{entry.New("last-in-first-out", "of tasks that are due the latest comes first", entry.Breaks(variant.InOrder), ""),
			handing(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), `, `redis.call('ZREVRANGEBYSCORE', KEYS[1], score(now), '-inf', `)
			})},
		{entry.New("ids-joined-by-comma", "the ids of a call are joined by commas on their way, and an id that has one becomes two", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID), ""),
			handing(func(s *queueScripts) {
				s.enqueueBy = func(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
					args := []any{after.Microseconds(), 0}
					for _, id := range strings.Split(strings.Join(ids, ","), ",") {
						args = append(args, id)
					}
					reply, err := q.run(ctx, takeEnqueue, name, args...).StringSlice()
					if err != nil {
						return nil, err
					}
					return enteredAs(reply[0], reply[1:])
				}
			})},
		{entry.New("ids-cut-at-hash", "what follows a # in an id is read as a count of attempts", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID), ""),
			handing(func(s *queueScripts) {
				s.pop = entry.Changed(takePop, `ipairs({due[i], `, `ipairs({string.match(due[i], '^[^#]*'), `)
			})},
		{entry.New("ids-trimmed", "spaces and newlines round an id are removed", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID), ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `redis.call('ZADD', KEYS[1], due, ARGV[i])`, `redis.call('ZADD', KEYS[1], due, string.match(ARGV[i], '^%s*(.-)%s*$'))`)
			})},
		{entry.New("queue-names-as-numbers", "a queue's name that is a number is read as one", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID), ""),
			handing(func(s *queueScripts) {
				s.keys = func(name string) []string { return queueKeys(entry.AsNumber(name)) }
			})},
		{entry.New("sound-suffixed-keys", "the keys of a queue are its name and a suffix: the suite says which names would share a key", nil, ""),
			lending(func(s *queueScripts) {
				s.keys = func(name string) []string {
					return []string{"Queue:" + name, "Queue:" + name + ":claims", "Tasks:" + name, "Receipt:" + name, "Journal:" + name}
				}
			})},
		{entry.New("repeat-resets-due-time", "an id that is enqueued again is answered as ignored, and gets the new due time", entry.Breaks(variant.OneEntryPerID, variant.NotEarly, variant.InOrder), ""),
			handing(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `for i = 3, #ARGV do`, `for i = 3, #ARGV do
					redis.call('ZADD', KEYS[1], 'XX', due, ARGV[i])`)
			})},
	}
}

// listMutants keep due tasks in a list, and others in a sorted set.
func listMutants() []Queue {
	return []Queue{
		{entry.New("mover-removes-first", "what has come due is removed from the delayed tasks and then put in the list, between which the mover can die; and it comes behind what was put there later", entry.Breaks(variant.NoLostTask, variant.InOrder), ""),
			listed(true, func(ctx context.Context, q *queue, name string, due []redis.Z) error {
				for _, m := range due {
					if n, err := q.redis().ZRem(ctx, "Delayed:"+name, m.Member).Result(); n == 0 || err != nil {
						return err
					}
					if err := q.redis().RPush(ctx, "List:"+name, m.Member).Err(); err != nil {
						return err
					}
				}
				return nil
			})},
		{entry.New("mover-pushes-first", "what has come due is put in the list and then removed from the delayed tasks, and two movers both put it there; and it comes behind what was put there later", entry.Breaks(variant.NoDuplicateDelivery, variant.EffectOnce, variant.InOrder), ""),
			listed(true, func(ctx context.Context, q *queue, name string, due []redis.Z) error {
				for _, m := range due {
					if err := q.redis().RPush(ctx, "List:"+name, m.Member).Err(); err != nil {
						return err
					}
					if err := q.redis().ZRem(ctx, "Delayed:"+name, m.Member).Err(); err != nil {
						return err
					}
				}
				return nil
			})},
		{entry.New("list-pops-wrong-end", "the list is filled and emptied at the same end", entry.Breaks(variant.InOrder), ""), listed(false, nil)},
	}
}

// listed makes a variant from a list. An element is the score, a space and the id. move moves due tasks from the sorted
// set to the list; the sound one is a script.
func listed(fromLeft bool, move func(ctx context.Context, q *queue, name string, due []redis.Z) error) queueimpl.Variant {
	pop := `redis.call('LPOP', KEYS[1])`
	if !fromLeft {
		pop = `redis.call('RPOP', KEYS[1])`
	}
	s := queueScripts{
		keys: func(name string) []string {
			return []string{"List:" + name, "Delayed:" + name, "Tasks:" + name, "Receipt:" + name, "Journal:" + name}
		},
		enqueue: `
			local due = score(now + tonumber(ARGV[1]))
			local entered = {due}
			for i = 3, #ARGV do
			  if tonumber(ARGV[1]) > 0 then
			    redis.call('ZADD', KEYS[2], due, due .. ' ' .. ARGV[i])
			  else
			    redis.call('RPUSH', KEYS[1], due .. ' ' .. ARGV[i])
			  end
			  entered[#entered + 1] = ARGV[i]
			end
			return entered`,
		state: func(ctx context.Context, q *queue, name string) (s queueimpl.State, err error) {
			p := q.redis().TxPipeline()
			list, delayed := p.LRange(ctx, q.keys(name)[0], 0, -1), p.ZRange(ctx, q.keys(name)[1], 0, -1)
			if _, err := p.Exec(ctx); err != nil {
				return s, err
			}
			for _, text := range append(list.Val(), delayed.Val()...) {
				score, id, _ := strings.Cut(text, " ")
				t, err := enteredAs(score, []string{id})
				if err != nil {
					return s, err
				}
				s.Waiting = append(s.Waiting, t...)
			}
			return s, nil
		},
	}
	const moveScript = `
		for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do
		  redis.call('ZREM', KEYS[2], m)
		  redis.call('RPUSH', KEYS[1], m)
		end
	`
	popScript := `
		local request, tasks = ARGV[3], {}
		local was = request ~= '' and redis.call('HGET', KEYS[5], request)
		if was then return cjson.decode(was) end
		for _ = 1, tonumber(ARGV[1]) do
		  local m = ` + pop + `
		  if not m then break end
		  local at = string.find(m, ' ', 1, true)
		  for _, field in ipairs({string.sub(m, at + 1), string.sub(m, 1, at - 1), '1', ''}) do tasks[#tasks + 1] = field end
		end
		if request ~= '' and #tasks > 0 then redis.call('HSET', KEYS[5], request, cjson.encode(tasks)) end
		return tasks`
	s.pop = moveScript + popScript
	v := queueimpl.Variant{
		Promises: []variant.Property{variant.NoLostTask, variant.NoDuplicateDelivery, variant.EffectOnce, variant.InOrder, variant.Progress},
		Flaws:    onceOnly,
		Needs:    variant.Needs{ServerClock: true},
		New:      func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return journaled{newQueue(s, env, o)} },
	}
	if move == nil {
		return v
	}
	s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
		now, err := q.now(ctx)
		if err != nil {
			return nil, err
		}
		due, err := q.redis().ZRangeByScoreWithScores(ctx, q.keys(name)[1], &redis.ZRangeBy{Min: "-inf", Max: now, Count: 100}).Result()
		if err == nil {
			err = move(ctx, q, name, due)
		}
		if err != nil {
			return nil, err
		}
		return tasksIn(q.run(ctx, popScript, name, count, 0, "").StringSlice())
	}
	v.Promises = append(v.Promises, variant.NotEarly)
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return delayedList{newQueue(s, env, o)} }
	return v
}

// delayedList is a list of due tasks with a sorted set of the others.
type delayedList struct{ *queue }

// EnqueueAfter implements queueimpl.Delayer.
func (q delayedList) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	return q.enter(ctx, name, after, ids)
}

// stream is a queue in a stream with a consumer group. It does not count deliveries.
type stream struct {
	*queue
	consumer string // with the number of the pop, so that a receipt names one delivery
	pops     int
	opened   map[string]bool
	returns  bool // whether pending entries are taken over
	ackFirst bool
	maxLen   int64 // to which the stream is trimmed
	ownIDs   bool  // whether an entry's id is the producer's time
	drops    bool  // whether consumers that are idle for long are deleted
}

func newStream(change func(*stream)) queueimpl.Variant {
	return queueimpl.Variant{
		Promises:    []variant.Property{variant.NoLostTask, variant.EffectOnce, variant.InOrder, variant.Progress},
		AtLeastOnce: true,
		Flaws: []variant.Flaw{
			{Property: variant.NoDuplicateDelivery, Fault: variant.Overrun, Why: "a task whose consumer is slow is handed out again"},
			{Property: variant.OneEntryPerID, Fault: variant.NoFault, Under: variant.WithRepeats, Why: "a stream does not look at ids"},
		},
		Needs: variant.Needs{ServerClock: true},
		New: func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			s := &stream{queue: newQueue(queueScripts{}, env, o), opened: map[string]bool{}, returns: true}
			if change != nil {
				change(s)
			}
			s.popBy = s.popStream
			s.enqueueBy = s.add
			s.state = s.read
			return s
		},
	}
}

const group = "workers"

func (s *stream) key(name string) string { return "Stream:" + name }

func (s *stream) add(ctx context.Context, q *queue, name string, _ time.Duration, ids []string) (tasks []queueimpl.Task, err error) {
	for _, id := range ids {
		args := redis.XAddArgs{Stream: s.key(name), Values: []string{"id", id}, MaxLen: s.maxLen}
		if s.ownIDs {
			args.ID = fmt.Sprintf("%d-*", q.env.Clock.Now().UnixMilli())
		}
		entry, err := q.redis().XAdd(ctx, &args).Result()
		if err != nil {
			return tasks, err
		}
		tasks = append(tasks, queueimpl.Task{ID: id, Score: entryScore(entry)})
	}
	return tasks, nil
}

// entryScore returns the time in a stream id in seconds, with its sequence number counted as
// microseconds.
func entryScore(entry string) float64 {
	var ms, n int64
	fmt.Sscanf(entry, "%d-%d", &ms, &n)
	return float64(ms*1000+n) / 1e6
}

func (s *stream) popStream(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
	if !s.opened[name] {
		err := q.redis().XGroupCreateMkStream(ctx, s.key(name), group, "0").Err()
		if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
			return nil, err
		}
		s.opened[name] = true
	}
	if s.consumer == "" {
		s.consumer = q.env.Token()
	}
	s.pops++
	consumer := s.consumer + "." + strconv.Itoa(s.pops)
	var messages []redis.XMessage
	for from := "0-0"; s.returns; {
		late, next, err := q.redis().XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: s.key(name), Group: group, Consumer: consumer, MinIdle: q.o.Visibility, Start: from, Count: int64(count),
		}).Result()
		if err != nil {
			return nil, err
		}
		if messages = late; len(late) > 0 || next == "0-0" {
			break
		}
		from = next
	}
	if len(messages) == 0 {
		read, err := q.redis().XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: consumer, Streams: []string{s.key(name), ">"}, Count: int64(count), Block: -1,
		}).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, err
		}
		for _, r := range read {
			messages = append(messages, r.Messages...)
		}
	}
	if s.drops {
		all, _ := q.redis().XInfoConsumers(ctx, s.key(name), group).Result()
		for _, c := range all {
			if c.Idle > 3*q.o.Visibility {
				q.redis().XGroupDelConsumer(ctx, s.key(name), group, c.Name)
			}
		}
	}
	var tasks []queueimpl.Task
	for _, m := range messages {
		id, _ := m.Values["id"].(string)
		tasks = append(tasks, queueimpl.Task{ID: id, Score: entryScore(m.ID), Receipt: m.ID + "/" + consumer})
		if s.ackFirst {
			if err := q.redis().XAck(ctx, s.key(name), group, m.ID).Err(); err != nil {
				return nil, err
			}
		}
	}
	return tasks, nil
}

var streamAck = redis.NewScript(`
	local p = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)
	if #p == 0 or p[1][2] ~= ARGV[3] then return 0 end
	redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
	return redis.call('XDEL', KEYS[1], ARGV[2])`)

// Ack implements queueimpl.Acker.
func (s *stream) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if err := refuse(name == "" || t.ID == "" || t.Receipt == ""); err != nil {
		return err
	}
	entry, consumer, _ := strings.Cut(t.Receipt, "/")
	if s.ackFirst {
		n, err := s.redis().XDel(ctx, s.key(name), entry).Result()
		if err == nil && n == 0 {
			return queueimpl.ErrLost
		}
		return err
	}
	n, err := streamAck.Run(ctx, s.redis(), []string{s.key(name)}, group, entry, consumer).Int()
	if err == nil && n == 0 {
		return queueimpl.ErrLost
	}
	return err
}

func (s *stream) read(ctx context.Context, q *queue, name string) (state queueimpl.State, err error) {
	p := q.redis().TxPipeline()
	all := p.XRange(ctx, s.key(name), "-", "+")
	pending := p.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: s.key(name), Group: group, Start: "-", End: "+", Count: 1 << 30})
	_, _ = p.Exec(ctx) // each command holds its error
	if err := all.Err(); err != nil {
		return state, err
	}
	if err := pending.Err(); err != nil && !strings.HasPrefix(err.Error(), "NOGROUP") {
		return state, err
	}
	given := map[string]bool{}
	for _, e := range pending.Val() {
		given[e.ID] = true
	}
	for _, m := range all.Val() {
		id, _ := m.Values["id"].(string)
		t := queueimpl.Task{ID: id, Score: entryScore(m.ID)}
		if given[m.ID] {
			state.Claimed = append(state.Claimed, t)
		} else {
			state.Waiting = append(state.Waiting, t)
		}
	}
	return state, nil
}

// streamMutants use a stream wrongly.
func streamMutants() []Queue {
	return []Queue{
		{entry.New("stream-new-only", "only entries that no consumer was given are read", entry.Breaks(variant.NoLostTask, variant.Progress), "https://github.com/cssbruno/GoWDK/issues/197"),
			newStream(func(s *stream) { s.returns = false })},
		{entry.New("stream-ack-first", "entries are acknowledged as they are read", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			newStream(func(s *stream) { s.ackFirst = true })},
	}
}

// soundQueues keep their promises.
func soundQueues() []Queue {
	return []Queue{
		{entry.New("sound-claims", "tasks are lent until an end and removed by an ack", nil, ""), lending(nil)},
		{entry.New("sound-claims-ignore", "as sound-claims, and Options.Overwrite is not heeded", nil, ""), ignoring()},
		{entry.New("sound-claims-one-by-one", "as sound-claims, and a pop hands out one task, however many are asked for", nil, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `'LIMIT', 0, ARGV[1])`, `'LIMIT', 0, 1)`)
			})},
		{entry.New("sound-claims-hashed", "as sound-claims, and the keys hold a hash of the queue's name", nil, ""),
			lending(func(s *queueScripts) {
				s.keys = func(name string) []string {
					sum := sha256.Sum256([]byte(name))
					return queueKeys(hex.EncodeToString(sum[:]))
				}
			})},
		{entry.New("sound-claims-seldom-ended", "as sound-claims, and claims that have run out are ended twice a second at most", nil, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`, `
					local late = {}
					if redis.call('SET', KEYS[5] .. ':ended', 1, 'NX', 'PX', 500) then late = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now)) end
					for _, id in ipairs(late) do`)
			})},
		{entry.New("sound-claims-far-away", "as sound-claims, on a server from which an answer takes 5 ms", nil, ""), farAway(lending(nil), 5*time.Millisecond)},
		{entry.New("sound-zset", "a sorted set by due time, each change in one script", nil, ""), handing(nil)},
		{entry.New("sound-list", "a list with a journal of what each request took", nil, ""), listed(true, nil)},
		{entry.New("sound-stream", "a stream with acks, which does not count deliveries", nil, ""), newStream(nil)},
	}
}

// countsFromAnswer promises consumers a later end of their claims than the server's.
func countsFromAnswer() queueimpl.Variant {
	v := lending(nil)
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		return fromAnswer{claims{newQueue(queueScripts{enqueue: claimEnqueue, pop: claimPop, ack: claimAck, extend: claimExtend}, env, o)}}
	}
	return v
}

type fromAnswer struct{ claims }

// Pop implements queueimpl.Queue.
func (q fromAnswer) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := q.claims.Pop(ctx, name, count)
	for i := range tasks {
		tasks[i].Until = q.env.Clock.Now().Add(q.o.Visibility)
	}
	return tasks, err
}

// farAway returns a variant whose clients send every command only after a delay.
func farAway(v queueimpl.Variant, by time.Duration) queueimpl.Variant {
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		for _, c := range env.Redis {
			c.AddHook(distance{by})
		}
		return n(env, o)
	}
	return v
}

// distance delays commands before they are sent.
type distance struct{ by time.Duration }

func (distance) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d distance) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		time.Sleep(d.by)
		return next(ctx, cmd)
	}
}

func (d distance) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		time.Sleep(d.by)
		return next(ctx, cmds)
	}
}

// ignoring returns a queue that ignores repeated ids, whatever its options say, and says so.
func ignoring() queueimpl.Variant {
	v := lending(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		o.Overwrite = false
		return n(env, o)
	}
	return v
}
