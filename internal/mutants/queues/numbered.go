package queues

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// numbered is one client of a queue: a list of what waits, and a sorted set of what consumers have claimed.
type numbered struct {
	env variant.Env
	o   queueimpl.Options
	numberedScripts
}

// numberedScripts are the scripts of a queue. Each gets these keys: the list of waiting entries, the sorted set of claimed entries by
// the end of their claims, the receipt of each claimed entry, the set of the waiting ids, the counter of entries, and the id of each
// entry.
type numberedScripts struct {
	// ARGV is the id. It replies 0 if the id is in the queue already.
	enqueue string
	// ARGV is the receipt, and the visibility timeout in microseconds. It replies the entry and its id.
	pop string
	// ARGV is the entry and the receipt. It replies 0 if the entry is not claimed with this receipt.
	ack string
}

// byNumber numbers the entries, so that an id may wait again while a consumer has an earlier entry of it. It is sound.
var byNumber = numberedScripts{
	enqueue: `
		if redis.call('SADD', KEYS[4], ARGV[1]) == 0 then return 0 end
		local n = redis.call('INCR', KEYS[5])
		redis.call('HSET', KEYS[6], n, ARGV[1])
		return redis.call('LPUSH', KEYS[1], n)`,
	pop: `
		local n = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)[1]
		if not n then
		  n = redis.call('RPOP', KEYS[1])
		  if not n then return false end
		  redis.call('SREM', KEYS[4], redis.call('HGET', KEYS[6], n))
		end
		redis.call('ZADD', KEYS[2], now + ARGV[2], n)
		redis.call('HSET', KEYS[3], n, ARGV[1])
		return {n, redis.call('HGET', KEYS[6], n)}`,
	ack: `
		if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
		redis.call('HDEL', KEYS[3], ARGV[1])
		redis.call('HDEL', KEYS[6], ARGV[1])
		return redis.call('ZREM', KEYS[2], ARGV[1])`,
}

// byID uses the ids as entries. Unless it is changed, it is sound.
func byID(change func(*numberedScripts)) numberedScripts {
	s := numberedScripts{
		enqueue: `
			if redis.call('LPOS', KEYS[1], ARGV[1]) or redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
			return redis.call('LPUSH', KEYS[1], ARGV[1])`,
		pop: `
			local id = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)[1] or redis.call('RPOP', KEYS[1])
			if not id then return false end
			redis.call('ZADD', KEYS[2], now + ARGV[2], id)
			redis.call('HSET', KEYS[3], id, ARGV[1])
			return {id, id}`,
		ack: `
			if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
			redis.call('HDEL', KEYS[3], ARGV[1])
			return redis.call('ZREM', KEYS[2], ARGV[1])`,
	}
	if change != nil {
		change(&s)
	}
	return s
}

// numberedMutants confuse two entries with the same id, or miss an entry.
func numberedMutants() []Queue {
	return []Queue{
		{entry.New("ack-removes-what-waits", "the id of a task that a client has can be enqueued again, and the ack of that task removes the new entry as well", entry.Breaks(variant.NoLostTask), ""),
			numberedBy(byID(func(s *numberedScripts) {
				s.enqueue = entry.Changed(s.enqueue, ` or redis.call('ZSCORE', KEYS[2], ARGV[1])`, ``)
				s.ack = entry.Changed(s.ack, `return redis.call('ZREM'`, `redis.call('LREM', KEYS[1], 0, ARGV[1])
			return redis.call('ZREM'`)
			}))},
		{entry.New("repeats-among-the-newest", "an enqueue looks for the id among the newest thousand only", entry.Breaks(variant.OneEntryPerID), ""),
			numberedBy(byID(func(s *numberedScripts) {
				s.enqueue = entry.Changed(s.enqueue, `redis.call('LPOS', KEYS[1], ARGV[1])`, `redis.call('LPOS', KEYS[1], ARGV[1], 'MAXLEN', 1000)`)
			}))},
	}
}

func soundNumbered() []Queue {
	return []Queue{
		{entry.New("numbered-entries", "the id of a task that a client has can be enqueued again: entries are numbers", nil, ""), numberedBy(byNumber)},
		{entry.New("list-of-ids", "an id is ignored while its task waits or a client has it", nil, ""), numberedBy(byID(nil))},
	}
}

func numberedBy(s numberedScripts) queueimpl.Variant {
	return queueimpl.Variant{
		Promises:    []variant.Property{variant.NoLostTask, variant.EffectOnce, variant.OneEntryPerID, variant.Progress},
		AtLeastOnce: true,
		Needs:       variant.Needs{ServerClock: true},
		New: func(env variant.Env, o queueimpl.Options) queueimpl.Queue {
			if o.Visibility == 0 {
				o.Visibility = queueimpl.DefaultVisibility
			}
			return &numbered{env: env, o: o, numberedScripts: s}
		},
	}
}

func (q *numbered) run(ctx context.Context, text, name string, args ...any) *redis.Cmd {
	keys := []string{"List:" + name, "Claims:" + name, "Receipts:" + name, "Ids:" + name, "Last:" + name, "Entries:" + name}
	return redis.NewScript(entry.ClockLua+text).Run(ctx, q.env.Redis[0], keys, args...)
}

// Repeats implements queueimpl.Deduper.
func (*numbered) Repeats() queueimpl.Repeat { return queueimpl.Ignored }

// Enqueue implements queueimpl.Queue.
func (q *numbered) Enqueue(ctx context.Context, name string, ids ...string) (tasks []queueimpl.Task, _ error) {
	if err := refuse(name == "" || empty(ids)); err != nil {
		return nil, err
	}
	for _, id := range ids {
		n, err := q.run(ctx, q.enqueue, name, id).Int()
		if err != nil {
			return tasks, err
		}
		if n > 0 {
			tasks = append(tasks, queueimpl.Task{ID: id})
		}
	}
	return tasks, nil
}

// Pop implements queueimpl.Queue. It hands out one task.
func (q *numbered) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	start, receipt := q.env.Clock.Now(), q.env.Token()
	got, err := q.run(ctx, q.pop, name, receipt, q.o.Visibility.Microseconds()).StringSlice()
	if errors.Is(err, redis.Nil) {
		return nil, queueimpl.ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	return []queueimpl.Task{{ID: got[1], Receipt: got[0] + " " + receipt, Until: start.Add(q.o.Visibility)}}, nil
}

// Ack implements queueimpl.Acker.
func (q *numbered) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if err := refuse(name == "" || t.ID == "" || t.Receipt == ""); err != nil {
		return err
	}
	last := len(t.Receipt) - 1
	for last > 0 && t.Receipt[last] != ' ' {
		last--
	}
	n, err := q.run(ctx, q.ack, name, t.Receipt[:last], t.Receipt[last+1:]).Int()
	if err == nil && n == 0 {
		err = queueimpl.ErrLost
	}
	return err
}

// State implements queueimpl.Queue.
func (q *numbered) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	if err := refuse(name == ""); err != nil {
		return s, err
	}
	p := q.env.Redis[0].TxPipeline()
	waiting, claimed := p.LRange(ctx, "List:"+name, 0, -1), p.ZRange(ctx, "Claims:"+name, 0, -1)
	ids := p.HGetAll(ctx, "Entries:"+name)
	if _, err := p.Exec(ctx); err != nil {
		return s, err
	}
	of := func(entries []string) (tasks []queueimpl.Task) {
		for _, e := range entries {
			if id, is := ids.Val()[e]; is {
				e = id
			}
			tasks = append(tasks, queueimpl.Task{ID: e})
		}
		return tasks
	}
	return queueimpl.State{Waiting: of(waiting.Val()), Claimed: of(claimed.Val())}, nil
}
