package queues

import (
	"context"
	"time"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// severalMutants are wrong only after several calls for one task, such as a third delivery, or the end of a dead letter.
func severalMutants() []Queue {
	lost, contract := entry.Breaks(variant.NoLostTask), entry.Breaks(entry.Contract)
	early := entry.Breaks(entry.Contract, variant.EffectOnce, variant.NoDuplicateDelivery)
	const (
		claim  = `redis.call('ZADD', KEYS[2], score(now + ARGV[2]), id)`
		enters = `redis.call('ZADD', KEYS[1], due, id)`
		loops  = `  local there = `
	)
	return []Queue{
		{entry.New("third-claim-is-half", "the third delivery of a task is claimed for half the timeout", early, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, claim, `redis.call('ZADD', KEYS[2], score(now + (attempt > 2 and ARGV[2] / 2 or ARGV[2])), id)`)
			})},
		{entry.New("claim-under-request-is-half", "a pop under a request claims for half the timeout", early, ""),
			journaling(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, claim, `redis.call('ZADD', KEYS[2], score(now + (ARGV[3] ~= '' and ARGV[2] / 2 or ARGV[2])), id)`)
			})},
		{entry.New("repeated-request-promises", "a request that is sent again is told a whole timeout, and its claims end as before", contract, ""), promising()},
		{entry.New("attempt-of-the-first", "a task that is handed out behind one that was delivered before is told the attempt of that one", contract, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, `  local receipt =`, `  if #tasks > 0 and tonumber(tasks[#tasks - 1]) > attempt then attempt = tonumber(tasks[#tasks - 1]) end
  local receipt =`)
			})},
		{entry.New("late-ack-by-due-time", "an ack of a task that waits again removes all that wait with its due time", lost, ""),
			lending(func(s *queueScripts) {
				s.ack = entry.Changed(s.ack, `redis.call('ZREM', KEYS[1], ARGV[1])`, `local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
if due then redis.call('ZREMRANGEBYSCORE', KEYS[1], due, due) end`)
			})},
		{entry.New("overwrite-by-due-time", "an overwritten id takes with it all that waited with its due time", lost, ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, enters, `local old = redis.call('ZSCORE', KEYS[1], id)
    if old and old ~= due then redis.call('ZREMRANGEBYSCORE', KEYS[1], old, old) end
    `+enters)
			})},
		{entry.New("overwrite-gives-receipt-back", "an id that is overwritten while it is claimed gives its receipt back, and the next claim gets it", contract, ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, loops, `  if ARGV[2] == '1' and redis.call('ZSCORE', KEYS[2], id) then redis.call('DECR', KEYS[4]) end
`+loops)
			})},
		{entry.New("overwrite-of-returned-keeps-due", "an id that was delivered, waits again, and is overwritten keeps its due time", entry.Breaks(variant.OneEntryPerID, variant.NotEarly), ""),
			lending(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, loops, `  local kept = redis.call('HEXISTS', KEYS[3], id) == 1 and redis.call('ZSCORE', KEYS[1], id)
`+loops)
				s.enqueue = entry.Changed(s.enqueue, enters, `redis.call('ZADD', KEYS[1], kept or due, id)`)
			})},
		{entry.New("letter-due-at-once", "a dead letter's id that is enqueued with a delay is due at once", entry.Breaks(variant.NotEarly), ""),
			burying(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, loops, `  local dead = redis.call('ZSCORE', KEYS[6], id)
`+loops)
				s.enqueue = entry.Changed(s.enqueue, enters, `redis.call('ZADD', KEYS[1], dead and score(now) or due, id)`)
			})},
		{entry.New("letter-waits-too", "a dead letter's id that is enqueued again waits, and is a dead letter, too", contract, ""),
			burying(func(s *queueScripts) {
				s.enqueue = entry.Changed(s.enqueue, ` redis.call('ZREM', KEYS[6], id)`, ``)
			})},
		{entry.New("reclaim-3-ms-early", "a reclaim ends claims 3 ms early", early, ""),
			wrapped(func(q claims) queueimpl.Queue {
				return reclaims{reclaiming{q, false}, func(end string) string { return entry.Changed(end, `score(now)`, `score(now + 3000)`) }}
			})},
		{entry.New("extend-by-timeout-of-pop", "an extend starts the timeout of the client that popped, and tells that of the client that extends", early, ""),
			lending(func(s *queueScripts) {
				s.pop = entry.Changed(s.pop, claim, claim+`
  redis.call('HSET', KEYS[5], id, ARGV[2])`)
				s.extend = entry.Changed(s.extend, `ARGV[3]`, `redis.call('HGET', KEYS[5], ARGV[1])`)
			})},
		{entry.New("timeout-for-delay", "an enqueue with a timeout for the lock takes that for the delay", entry.Breaks(variant.NotEarly, variant.NoLostTask, variant.Progress, entry.Contract), ""), timed()},
	}
}

// promising makes a variant of a queue with a journal that tells a whole timeout to a request that is sent again.
func promising() queueimpl.Variant {
	v := journaling(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return promises{n(env, o).(lentJournal)} }
	return v
}

type promises struct{ lentJournal }

// PopAs implements queueimpl.Journaler.
func (q promises) PopAs(ctx context.Context, name, request string, count int) ([]queueimpl.Task, error) {
	return q.journal.PopAs(ctx, name, request, count)
}

// timed makes a variant whose calls take a timeout, and take one for the other.
func timed() queueimpl.Variant {
	v := handing(nil)
	n := v.New
	v.New = func(env variant.Env, o queueimpl.Options) queueimpl.Queue { return timeouts{n(env, o).(taken)} }
	return v
}

type timeouts struct{ taken }

// EnqueueWithin implements queueimpl.Timed.
func (q timeouts) EnqueueWithin(ctx context.Context, name string, timeout, _ time.Duration, ids ...string) ([]queueimpl.Task, error) {
	if err := refuse(timeout <= 0); err != nil {
		return nil, err
	}
	return q.EnqueueAfter(ctx, name, timeout, ids...)
}

// DequeueWithin implements queueimpl.Timed. It finds no task with any score.
func (q timeouts) DequeueWithin(_ context.Context, name, id string, _ float64, timeout time.Duration) error {
	if err := refuse(timeout <= 0 || name == "" || id == ""); err != nil {
		return err
	}
	return queueimpl.ErrChanged
}

// PopWithin implements queueimpl.Timed.
func (q timeouts) PopWithin(ctx context.Context, name string, count int, timeout time.Duration) ([]queueimpl.Task, error) {
	if err := refuse(timeout <= 0); err != nil {
		return nil, err
	}
	return q.Pop(ctx, name, count)
}
