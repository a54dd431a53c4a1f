package queues

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// The scripts of letters: those of a queue that lends, with dead letters by due time in KEYS[6]. A pop gets the number of
// attempts as its third argument, and 0 means any number.
var (
	lettersEnqueue = entry.Changed(claimEnqueue, `redis.call('ZREM', KEYS[2], id)`, `redis.call('ZREM', KEYS[2], id) redis.call('ZREM', KEYS[6], id)`)
	lettersPop     = entry.Changed(claimPop, `  redis.call('ZADD', KEYS[1], due, id)
`, `  local attempt = string.match(redis.call('HGET', KEYS[3], id), '^%d+')
  if ARGV[3] ~= '0' and tonumber(attempt) >= tonumber(ARGV[3]) then
    redis.call('ZADD', KEYS[6], due, id)
  else
    redis.call('ZADD', KEYS[1], due, id)
  end
`)
	lettersAck = entry.Changed(claimAck, `redis.call('ZREM', KEYS[2], ARGV[1])`, `redis.call('ZREM', KEYS[2], ARGV[1]) redis.call('ZREM', KEYS[6], ARGV[1])`)
)

// letters is a queue that lends, and puts a task aside after its attempts.
type letters struct{ claims }

// burying makes a variant of letters with changed scripts.
func burying(change func(*queueScripts)) queueimpl.Variant {
	v := lending(nil)
	s := queueScripts{enqueue: lettersEnqueue, pop: lettersPop, ack: lettersAck, extend: claimExtend,
		keys: func(name string) []string { return append(queueKeys(name), "Dead:"+name) }}
	if change != nil {
		change(&s)
	}
	pop := s.pop
	s.popBy = func(ctx context.Context, q *queue, name string, count int) ([]queueimpl.Task, error) {
		return tasksIn(q.run(ctx, pop, name, count, q.o.Visibility.Microseconds(), q.o.MaxAttempts).StringSlice())
	}
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		return letters{claims{newQueue(s, env, o)}}
	}
	return v
}

// Dead implements queueimpl.DeadLetters.
func (q letters) Dead(ctx context.Context, name string) (all []queueimpl.Task, _ error) {
	if err := refuse(name == ""); err != nil {
		return nil, err
	}
	keys := q.keys(name)
	p := q.redis().TxPipeline()
	dead, records := p.ZRangeWithScores(ctx, keys[5], 0, -1), p.HGetAll(ctx, keys[2])
	if _, err := p.Exec(ctx); err != nil {
		return nil, fmt.Errorf("dead letters of %q: %w", name, err)
	}
	for _, m := range dead.Val() {
		t := queueimpl.Task{ID: m.Member.(string), Score: m.Score}
		fmt.Sscanf(records.Val()[t.ID], "%d:", &t.Attempt)
		all = append(all, t)
	}
	return all, nil
}

// buried makes a variant of letters in a wrapper.
func buried(wrap func(letters) queueimpl.Queue) queueimpl.Variant {
	v := burying(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return wrap(n(env, o).(letters)) }
	return v
}

type tellsLimit struct{ letters }

// Dead implements queueimpl.DeadLetters.
func (q tellsLimit) Dead(ctx context.Context, name string) ([]queueimpl.Task, error) {
	all, err := q.letters.Dead(ctx, name)
	for i := range all {
		all[i].Attempt = q.o.MaxAttempts
	}
	return all, err
}

type withdraws struct{ letters }

// Dequeue implements queueimpl.Dequeuer.
func (q withdraws) Dequeue(ctx context.Context, name, id string, score float64) error {
	if err := refuse(name == "" || id == ""); err != nil {
		return err
	}
	n, err := q.run(ctx, `
for _, key in ipairs({KEYS[1], KEYS[6]}) do
  local due = redis.call('ZSCORE', key, ARGV[1])
  if due and tonumber(due) == tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[3], ARGV[1])
    return redis.call('ZREM', key, ARGV[1])
  end
end
return 0`, name, id, strconv.FormatFloat(score, 'f', -1, 64)).Int()
	if err == nil && n == 0 {
		err = queueimpl.ErrChanged
	}
	return err
}

// letterMutants mishandle attempts and dead letters.
func letterMutants() []Queue {
	contract := entry.Breaks(entry.Contract)
	return []Queue{
		{entry.New("attempts-as-text", "the number of attempts is compared with its limit as text, so that 2 is more than 12", contract, ""),
			burying(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `tonumber(attempt) >= tonumber(ARGV[3])`, `attempt >= ARGV[3]`)
			})},
		{entry.New("attempts-for-ten-minutes", "attempts are counted in a key that expires after ten minutes, so that with longer claims a task is delivered again for ever", contract, ""),
			burying(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `(record and tonumber(string.match(record, '^(%d+)')) or 0) + 1`, `redis.call('INCR', 'Attempts:' .. redis.sha1hex(KEYS[3] .. '\n' .. id))
  redis.call('EXPIRE', 'Attempts:' .. redis.sha1hex(KEYS[3] .. '\n' .. id), 600)`)
				s.enqueue = entry.Changed(s.enqueue, `redis.call('HDEL', KEYS[3], id)`, `redis.call('HDEL', KEYS[3], id) redis.call('DEL', 'Attempts:' .. redis.sha1hex(KEYS[3] .. '\n' .. id))`)
			})},
		{entry.New("letter-of-any-consumer", "an ack of a dead letter asks for no receipt, so that one of an earlier consumer removes it", contract, ""),
			burying(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `if not record or`, `if not record or not redis.call('ZSCORE', KEYS[6], ARGV[1]) and`)
			})},
		{entry.New("letter-extended", "an extend of a dead letter by its last consumer succeeds, and its task comes back", contract, ""),
			burying(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `if not till or tonumber(till) * 1000000 <= now then return 0 end`, `if not redis.call('ZSCORE', KEYS[6], ARGV[1]) and (not till or tonumber(till) * 1000000 <= now) then return 0 end`)
			})},
		{entry.New("attempts-must-equal", "a task is put aside at exactly as many attempts as a client allows, so that one that had more is delivered for ever", contract, ""),
			burying(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `tonumber(attempt) >= tonumber(ARGV[3])`, `tonumber(attempt) == tonumber(ARGV[3])`)
			})},
		{entry.New("letter-tells-the-limit", "a dead letter is said to have had as many attempts as the client allows that reads it", contract, ""),
			buried(func(q letters) queueimpl.Queue { return tellsLimit{q} })},
		{entry.New("letter-withdrawn", "a dequeue also removes a dead letter with the score", entry.Breaks(variant.NoLostTask, entry.Contract), ""),
			buried(func(q letters) queueimpl.Queue { return withdraws{q} })},
		{entry.New("letter-once-only", "an id that was a dead letter before, and becomes one again, is dropped", entry.Breaks(variant.NoLostTask), ""),
			burying(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `    redis.call('ZADD', KEYS[6], due, id)`, `    if redis.call('SADD', KEYS[6] .. ':ever', id) == 1 then redis.call('ZADD', KEYS[6], due, id) else redis.call('HDEL', KEYS[3], id) end`)
			})},
	}
}

// lateMutants mishandle what few clients do late: an ack after a reclaim, an extend of what is done, a repeated id of a
// task that is not due.
func lateMutants() []Queue {
	twice, contract := entry.Breaks(variant.OneEntryPerID), entry.Breaks(entry.Contract)
	return []Queue{
		{entry.New("extend-of-what-is-done", "an extend looks whose claim it is, and writes the new end by the next command, though the task may be done by then; a pop then fails at a claim without a task", entry.Breaks(variant.NoLostTask, variant.Progress, entry.Contract), ""),
			wrapped(func(q claims) queueimpl.Queue { return looksFirst{claims: q} })},
		{entry.New("reclaim-voids-receipt", "a reclaim forgets the receipt of the claim that it ends, so that a late ack is lost and the task done twice", contract, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{q, false}, func(end string) string {
					return entry.Changed(end, `redis.call('ZREM', KEYS[2], id)`, `redis.call('ZREM', KEYS[2], id)
redis.call('HSET', KEYS[3], id, string.match(redis.call('HGET', KEYS[3], id), '^(.*:)[^:]*$') .. 'none')`)
				}}
			})},
		{entry.New("ack-of-the-batch", "an ack counts for all tasks of its pop that were handed out before it", entry.Breaks(variant.NoLostTask), ""),
			wrapped(func(q claims) queueimpl.Queue { return &batched{claims: q, acks: true} })},
		{entry.New("extend-of-the-batch", "an extend counts for all tasks of the last pop, so that one that nobody works on does not come back", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			wrapped(func(q claims) queueimpl.Queue { return &batched{claims: q} })},
		{entry.New("receipts-for-an-hour", "an ack more than an hour after the pop is told that the claim is lost", contract, ""),
			wrapped(func(q claims) queueimpl.Queue { return &hourly{q, map[string]time.Time{}} })},
		{entry.New("overdue-overlooked", "a pop looks at what became due within the last five minutes", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', score(now), 'WITHSCORES'`, `redis.call('ZRANGEBYSCORE', KEYS[1], score(now - 300000000), score(now), 'WITHSCORES'`)
			})},
		{entry.New("claims-by-pattern", "a pop finds the key of the claims by a pattern with the queue's name in it, so that the claims of a queue named a[b] never end", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`,
					`for _, id in ipairs(#redis.call('KEYS', KEYS[2]) == 0 and {} or redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', score(now))) do`)
			})},
		{entry.New("delayed-ids-by-line", "ids with a delay are kept in lines, and cut at the first one", entry.Breaks(variant.NoLostTask), ""),
			wrapped(func(q claims) queueimpl.Queue { return byLine{q} })},
		{entry.New("delayed-in-line", "tasks with a delay stand in a line, so that one that is due waits for those before it", entry.Breaks(variant.NoLostTask, variant.Progress), ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local entered = {due}`, `local entered = {due}
if tonumber(ARGV[1]) > 0 then
  local last = redis.call('GET', KEYS[5] .. ':line')
  if last and tonumber(last) > tonumber(due) then due = last end
  redis.call('SET', KEYS[5] .. ':line', due)
end`)
			})},
		{entry.New("delayed-is-an-attempt", "a task that was enqueued with a delay has the attempt of its move to the waiting ones", contract, ""),
			wrapped(func(q claims) queueimpl.Queue { return &countsMoves{q, map[string]bool{}} })},
		{entry.New("reclaim-ends-ten", "a reclaim ends ten claims at most", contract, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{q, false}, func(end string) string {
					return entry.Changed(end, `'-inf', score(now))`, `'-inf', score(now), 'LIMIT', 0, 10)`)
				}}
			})},
		{entry.New("reclaim-ends-a-thousand", "a reclaim ends a thousand claims at most", contract, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{q, false}, func(end string) string {
					return entry.Changed(end, `'-inf', score(now))`, `'-inf', score(now), 'LIMIT', 0, 1000)`)
				}}
			})},
		{entry.New("delay-cut-to-milliseconds", "a delay is cut to whole milliseconds", entry.Breaks(variant.NotEarly), ""),
			lending(func(s *queueScripts) {
				s.enqueueBy = func(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
					plain := *q
					plain.enqueueBy = nil
					return plain.enter(ctx, name, after.Truncate(time.Millisecond), ids)
				}
			})},
		{entry.New("journal-for-ten-minutes", "the journal expires ten minutes after the last request", contract, ""),
			journaling(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('HSET', KEYS[5], ARGV[3], cjson.encode(tasks))`, `redis.call('HSET', KEYS[5], ARGV[3], cjson.encode(tasks))
  redis.call('EXPIRE', KEYS[5], 600)`)
			})},
		{entry.New("reclaim-counts", "a reclaim counts an attempt, as a delivery does", contract, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{q, false}, func(end string) string {
					return entry.Changed(end, `redis.call('ZREM', KEYS[2], id)`, `redis.call('ZREM', KEYS[2], id)
local n, rest = string.match(redis.call('HGET', KEYS[3], id), '^(%d+)(:.*)$')
redis.call('HSET', KEYS[3], id, n + 1 .. rest)`)
				}}
			})},
		{entry.New("ack-forgets-request", "an ack deletes what the journal has of the task's request, and the request sent again takes other tasks", contract, ""),
			journaling(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `return 1`, `local request = redis.call('HGET', KEYS[5] .. ':of', ARGV[1])
if request then redis.call('HDEL', KEYS[5], request) end
return 1`)
			})},
		{entry.New("journal-of-present-claim", "a request sent again is told the present receipts of its tasks, which may be another consumer's", contract, ""),
			journaling(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `if text then return cjson.decode(text) end`, `if text then
    local had = cjson.decode(text)
    for i = 1, #had, 4 do
      local record = redis.call('HGET', KEYS[3], had[i])
      if record and redis.call('ZSCORE', KEYS[2], had[i]) then had[i + 2], had[i + 3] = string.match(record, '^(%d+):[^:]*:(.*)$') end
    end
    return had
  end`)
			})},
		{entry.New("journal-of-a-hundred", "the journal keeps the first hundred tasks of a request", contract, ""),
			journaling(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `redis.call('HSET', KEYS[5], ARGV[3], cjson.encode(tasks))`, `local kept = {}
  for i = 1, math.min(#tasks, 400) do kept[i] = tasks[i] end
  redis.call('HSET', KEYS[5], ARGV[3], cjson.encode(kept))`)
			})},
		{entry.New("requests-fold-case", "requests that differ in case are one", contract, ""),
			journaling(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `if ARGV[3] ~= '' then`, `ARGV[3] = string.lower(ARGV[3])
if ARGV[3] ~= '' then`)
			})},
		{entry.New("late-extend-voids-receipt", "an extend that comes too late forgets the receipt, so that the ack after it is lost", contract, ""),
			lending(func(s *queueScripts) {
				s.extend = entry.Changed(s.extend, `tonumber(till) * 1000000 <= now then return 0 end`, `tonumber(till) * 1000000 <= now then
  redis.call('HSET', KEYS[3], ARGV[1], string.match(record, '^(.*:)[^:]*$') .. 'none')
  return 0
end`)
			})},
		{entry.New("unique-among-due", "an enqueue looks for the id among tasks that are due or claimed, and overwrites one that is not due", twice, ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, `local there = redis.call('ZSCORE', KEYS[1], id) or`, `local there = redis.call('ZSCORE', KEYS[1], id)
  if there and tonumber(there) * 1000000 > now then there = false end
  there = there or`)
			})},
		{entry.New("unique-until-its-claim-ends", "the end of a claim frees its id, which can be enqueued again while the task waits", twice, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `  redis.call('ZADD', KEYS[1], due, id)
`, `  redis.call('ZADD', KEYS[1], due, id)
  redis.call('SADD', KEYS[5] .. ':free', id)
`)
				s.enqueue = entry.Changed(s.enqueue, `if not there or`, `if not there or redis.call('SREM', KEYS[5] .. ':free', id) == 1 or`)
			})},
		{entry.New("ids-by-crc32", "that an id is there is noted under a checksum of 32 bits, so that another id may be ignored", entry.Breaks(variant.NoLostTask, variant.OneEntryPerID), ""),
			lending(func(s *queueScripts) {
				s.enqueueBy = func(ctx context.Context, q *queue, name string, after time.Duration, ids []string) ([]queueimpl.Task, error) {
					var entered []queueimpl.Task
					plain := *q
					plain.enqueueBy = nil
					for _, id := range ids {
						key := fmt.Sprintf("%s:%08x", name, crc32.ChecksumIEEE([]byte(id)))
						holder, err := q.redis().HGet(ctx, "Checksums", key).Result()
						if err == nil && holder != id {
							if s, err := plain.State(ctx, name); err == nil && slices.ContainsFunc(slices.Concat(s.Waiting, s.Claimed), func(t queueimpl.Task) bool { return t.ID == holder }) {
								continue
							}
						}
						if err := q.redis().HSet(ctx, "Checksums", key, id).Err(); err != nil {
							return entered, err
						}
						in, err := plain.enter(ctx, name, after, []string{id})
						if err != nil {
							return entered, err
						}
						entered = append(entered, in...)
					}
					return entered, nil
				}
			})},
		{entry.New("lent-extend-from-answer", "the end of an extended claim is counted from when the answer is there, and the server counts from before", entry.Breaks(variant.EffectOnce, variant.NoDuplicateDelivery), ""),
			wrapped(func(q claims) queueimpl.Queue { return extendsFromAnswer{q} })},
		{entry.New("state-newest-first", "the state lists what waits from the latest to the first", contract, ""),
			lending(func(s *queueScripts) {
				s.state = func(ctx context.Context, q *queue, name string) (queueimpl.State, error) {
					plain := *q
					plain.state = nil
					got, err := plain.State(ctx, name)
					slices.Reverse(got.Waiting)
					return got, err
				}
			})},
		{entry.New("state-has-ends-of-claims", "the state tells the end of a claim as the score of its task", contract, ""),
			lending(func(s *queueScripts) {
				s.state = func(ctx context.Context, q *queue, name string) (queueimpl.State, error) {
					plain := *q
					plain.state = nil
					got, err := plain.State(ctx, name)
					for i := range got.Claimed {
						got.Claimed[i].Score += q.o.Visibility.Seconds()
					}
					return got, err
				}
			})},
		{entry.New("peek-before-the-mover", "a peek shows only tasks that were due when they were enqueued", contract, ""), peekingAtMoved()},
	}
}

// soundLate are sound, and unusual in what they do late.
func soundLate() []Queue {
	return []Queue{
		{entry.New("sound-letters", "as sound-claims, with dead letters", nil, ""), burying(nil)},
		{entry.New("sound-claims-journal", "as sound-claims, with a journal of what each request took", nil, ""), journaling(nil)},
		{entry.New("sound-claims-ties", "as sound-claims, and tasks with the same due time come in the order of a hash of their ids", nil, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `'WITHSCORES', 'LIMIT', 0, ARGV[1])`, `'WITHSCORES')
local pairs = {}
for i = 1, #due, 2 do pairs[#pairs + 1] = {due[i], due[i + 1], redis.sha1hex(due[i])} end
table.sort(pairs, function(a, b)
  if tonumber(a[2]) ~= tonumber(b[2]) then return tonumber(a[2]) < tonumber(b[2]) end
  return a[3] < b[3]
end)
due = {}
for i = 1, math.min(ARGV[1], #pairs) do
  due[#due + 1] = pairs[i][1]
  due[#due + 1] = pairs[i][2]
end`)
			})},
		{entry.New("sound-claims-plain-texts", "as sound-claims, and names and ids that are not 1 to 100 letters, digits, dashes or braces are bad calls, and so are calls with two ids", nil, ""),
			wrapped(func(q claims) queueimpl.Queue { return plainTexts{q} })},
	}
}

// reclaims is a queue whose Reclaim has another script.
type reclaims struct {
	reclaiming
	change func(script string) string
}

// Reclaim implements queueimpl.Reclaimer.
func (q reclaims) Reclaim(ctx context.Context, name string) (int, error) {
	if err := refuse(name == ""); err != nil {
		return 0, err
	}
	return q.run(ctx, q.change(reclaimAll), name).Int()
}

type extendsFromAnswer struct{ claims }

// Extend implements queueimpl.Extender.
func (q extendsFromAnswer) Extend(ctx context.Context, name string, t queueimpl.Task) (queueimpl.Task, error) {
	t, err := q.claims.Extend(ctx, name, t)
	if err == nil {
		t.Until = q.env.Clock.Now().Add(q.o.Visibility)
	}
	return t, err
}

// journaling makes a variant of a queue that lends and has a journal, which forgets requests whose task is done if
// forgets is set.
func journaling(flaw func(*queueScripts)) queueimpl.Variant {
	v := lending(func(s *queueScripts) {
		s.pop = entry.Changed(`if ARGV[3] ~= '' then
  local text = redis.call('HGET', KEYS[5], ARGV[3])
  if text then return cjson.decode(text) end
end
`+s.pop, `return tasks
`, `if ARGV[3] ~= '' and #tasks > 0 then
  redis.call('HSET', KEYS[5], ARGV[3], cjson.encode(tasks))
  redis.call('HSET', KEYS[5] .. ':of', tasks[1], ARGV[3])
end
return tasks
`)
		if flaw != nil {
			flaw(s)
		}
	})
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		q := n(env, o).(claims)
		return lentJournal{q, journaled(q)}
	}
	return v
}

type lentJournal struct {
	claims
	journal journaled
}

// PopAs implements queueimpl.Journaler. Of a request that is sent again, Until is the end of the present claim.
func (q lentJournal) PopAs(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	start := q.env.Clock.Now()
	tasks, err := q.journal.PopAs(ctx, name, request, count)
	for i := range tasks {
		t := &tasks[i]
		left, err := q.run(ctx, `
local record, till = redis.call('HGET', KEYS[3], ARGV[1]), redis.call('ZSCORE', KEYS[2], ARGV[1])
if not record or not till or string.match(record, ':([^:]*)$') ~= ARGV[2] then return 0 end
return math.max(0, tonumber(till) * 1000000 - now)`, name, t.ID, t.Receipt).Int64()
		if err != nil {
			return nil, err
		}
		if t.Until = (time.Time{}); left > 0 {
			t.Until = start.Add(time.Duration(left) * time.Microsecond)
		}
	}
	return tasks, err
}

// Popped implements queueimpl.Journaler.
func (q lentJournal) Popped(ctx context.Context, name, request string) ([]queueimpl.Task, error) {
	return q.journal.Popped(ctx, name, request)
}

// peekingAtMoved makes a variant of a queue whose peek shows only tasks that were due when they were enqueued.
func peekingAtMoved() queueimpl.Variant {
	v := handing(func(s *queueScripts) {
		s.enqueue = entry.Changed(s.enqueue, `return entered`, `if ARGV[1] == '0' then for i = 2, #entered do redis.call('SADD', KEYS[5], entered[i]) end end
return entered`)
	})
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
		return peeksMoved{peeks{n(env, o).(taken), 0}}
	}
	return v
}

type peeksMoved struct{ peeks }

// Peek implements queueimpl.Peeker.
func (q peeksMoved) Peek(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	all, err := q.peeks.Peek(ctx, name, count)
	if err != nil {
		return nil, err
	}
	moved, err := q.redis().SMembersMap(ctx, q.keys(name)[4]).Result()
	return slices.DeleteFunc(all, func(t queueimpl.Task) bool { _, there := moved[t.ID]; return !there }), err
}

// plainTexts refuses most names and ids.
type plainTexts struct{ claims }

var plainText = regexp.MustCompile(`^[A-Za-z0-9{}-]{1,100}$`)

// Enqueue implements queueimpl.Queue.
func (q plainTexts) Enqueue(ctx context.Context, name string, ids ...string) ([]queueimpl.Task, error) {
	return q.EnqueueAfter(ctx, name, 0, ids...)
}

// EnqueueAfter implements queueimpl.Delayer.
func (q plainTexts) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	if !plainText.MatchString(name) || len(ids) > 1 || slices.ContainsFunc(ids, func(id string) bool { return !plainText.MatchString(id) }) {
		return nil, errors.Join(queueimpl.ErrBadCall, errors.New("plain names and ids only, one at a time"))
	}
	return q.claims.EnqueueAfter(ctx, name, after, ids...)
}

// batched is a client whose calls for one task of a pop are for others, too.
type batched struct {
	claims
	acks   bool
	popped []queueimpl.Task
}

// Pop implements queueimpl.Queue.
func (q *batched) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := q.claims.Pop(ctx, name, count)
	if len(tasks) > 0 {
		q.popped = tasks
	}
	return tasks, err
}

// Ack implements queueimpl.Acker.
func (q *batched) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if nth := slices.IndexFunc(q.popped, func(p queueimpl.Task) bool { return p.ID == t.ID }); q.acks && nth > 0 {
		for _, p := range q.popped[:nth] {
			_ = q.claims.Ack(ctx, name, p)
		}
	}
	return q.claims.Ack(ctx, name, t)
}

// Extend implements queueimpl.Extender.
func (q *batched) Extend(ctx context.Context, name string, t queueimpl.Task) (queueimpl.Task, error) {
	for _, p := range q.popped {
		if !q.acks && p.ID != t.ID {
			_, _ = q.claims.Extend(ctx, name, p)
		}
	}
	return q.claims.Extend(ctx, name, t)
}

// hourly is a client that keeps its receipts for an hour.
type hourly struct {
	claims
	popped map[string]time.Time // by id
}

// Pop implements queueimpl.Queue.
func (q *hourly) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := q.claims.Pop(ctx, name, count)
	for _, t := range tasks {
		q.popped[t.ID] = q.env.Clock.Now()
	}
	return tasks, err
}

// Ack implements queueimpl.Acker.
func (q *hourly) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if at, found := q.popped[t.ID]; found && q.env.Clock.Now().Sub(at) > time.Hour {
		return queueimpl.ErrLost
	}
	return q.claims.Ack(ctx, name, t)
}

type byLine struct{ claims }

// EnqueueAfter implements queueimpl.Delayer.
func (q byLine) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	cut := slices.Clone(ids)
	for i, id := range cut {
		cut[i], _, _ = strings.Cut(id, "\n")
	}
	tasks, err := q.claims.EnqueueAfter(ctx, name, after, cut...)
	for i := range tasks {
		if nth := slices.Index(cut, tasks[i].ID); nth >= 0 {
			tasks[i].ID = ids[nth]
		}
	}
	return tasks, err
}

// countsMoves is a client that counts the move of a delayed task to the waiting ones as a delivery.
type countsMoves struct {
	claims
	delayed map[string]bool
}

// EnqueueAfter implements queueimpl.Delayer.
func (q *countsMoves) EnqueueAfter(ctx context.Context, name string, after time.Duration, ids ...string) ([]queueimpl.Task, error) {
	for _, id := range ids {
		q.delayed[id] = true
	}
	return q.claims.EnqueueAfter(ctx, name, after, ids...)
}

// Pop implements queueimpl.Queue.
func (q *countsMoves) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	tasks, err := q.claims.Pop(ctx, name, count)
	for i := range tasks {
		if q.delayed[tasks[i].ID] {
			tasks[i].Attempt++
		}
	}
	return tasks, err
}
