package queues

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"oversell/internal/mutants/entry"
	"oversell/queueimpl"
	"oversell/variant"
)

// marked is one client of a queue made of a list of ids, and a set of the same ids, by which it ignores repeated ones. It delivers at
// most once.
type marked struct {
	env variant.Env
	// pop takes up to count ids.
	pop func(ctx context.Context, q marked, name string, count int) ([]string, error)
}

// markedMutants can leave an id in the set that is not in the list, or hand out the same id twice.
func markedMutants() []Queue {
	lost := entry.Breaks(variant.NoLostTask)
	return []Queue{
		{entry.New("mark-removed-first", "a pop reads the first ids, removes them from the set, and cuts as many off the list: of two at once, one cuts off ids that stay in the set", lost, ""),
			markedBy(func(ctx context.Context, q marked, name string, count int) ([]string, error) {
				ids, err := q.redis().LRange(ctx, "List:"+name, 0, int64(count)-1).Result()
				if err != nil || len(ids) == 0 {
					return nil, err
				}
				if err := q.redis().SRem(ctx, "Set:"+name, members(ids)...).Err(); err != nil {
					return nil, err
				}
				return q.redis().LPopCount(ctx, "List:"+name, len(ids)).Result()
			})},
		{entry.New("pop-after-settings", "a pop reads five settings, and the first ids, and cuts as many off the list, whoever has taken them", entry.Breaks(variant.NoLostTask, variant.NoDuplicateDelivery), ""),
			markedBy(func(ctx context.Context, q marked, name string, count int) ([]string, error) {
				for n := range 5 {
					if err := q.redis().HGet(ctx, "Settings:"+name, fmt.Sprint(n)).Err(); err != nil && err != redis.Nil {
						return nil, err
					}
				}
				ids, err := q.redis().LRange(ctx, "List:"+name, 0, int64(count)-1).Result()
				if err != nil || len(ids) == 0 {
					return nil, err
				}
				_, err = q.redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
					p.LTrim(ctx, "List:"+name, int64(len(ids)), -1)
					p.SRem(ctx, "Set:"+name, members(ids)...)
					return nil
				})
				return ids, err
			})},
	}
}

// soundMarked changes the list and the set in one script.
func soundMarked() []Queue {
	return []Queue{
		{entry.New("list-with-set", "a list, and a set of the ids in it, each changed by a script", nil, ""),
			markedBy(func(ctx context.Context, q marked, name string, count int) ([]string, error) {
				return redis.NewScript(`
					local ids = redis.call('LPOP', KEYS[1], ARGV[1])
					if not ids then return {} end
					for _, id in ipairs(ids) do redis.call('SREM', KEYS[2], id) end
					return ids`).Run(ctx, q.redis(), []string{"List:" + name, "Set:" + name}, count).StringSlice()
			})},
	}
}

func members(ids []string) (all []any) {
	for _, id := range ids {
		all = append(all, id)
	}
	return all
}

// markedBy makes a variant from a pop.
func markedBy(pop func(context.Context, marked, string, int) ([]string, error)) queueimpl.Variant {
	return queueimpl.Variant{
		Promises: []variant.Property{variant.NoLostTask, variant.NoDuplicateDelivery, variant.OneEntryPerID, variant.Progress},
		Flaws:    onceOnly,
		New:      func(env variant.Env, _ queueimpl.Options) queueimpl.Queue { return marked{env, pop} },
	}
}

func (q marked) redis() redis.UniversalClient { return q.env.Redis[0] }

// Repeats implements queueimpl.Deduper.
func (marked) Repeats() queueimpl.Repeat { return queueimpl.Ignored }

// Enqueue implements queueimpl.Queue.
func (q marked) Enqueue(ctx context.Context, name string, ids ...string) (tasks []queueimpl.Task, _ error) {
	if err := refuse(name == "" || empty(ids)); err != nil {
		return nil, err
	}
	entered, err := redis.NewScript(`
		local entered = {}
		for _, id in ipairs(ARGV) do
		  if redis.call('SADD', KEYS[2], id) == 1 then
		    redis.call('RPUSH', KEYS[1], id)
		    entered[#entered + 1] = id
		  end
		end
		return entered`).Run(ctx, q.redis(), []string{"List:" + name, "Set:" + name}, members(ids)...).StringSlice()
	for _, id := range entered {
		tasks = append(tasks, queueimpl.Task{ID: id})
	}
	return tasks, err
}

// Pop implements queueimpl.Queue.
func (q marked) Pop(ctx context.Context, name string, count int) (tasks []queueimpl.Task, _ error) {
	if err := refuse(name == "" || count < 1); err != nil {
		return nil, err
	}
	ids, err := q.pop(ctx, q, name, count)
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, queueimpl.ErrEmpty
	}
	for _, id := range ids {
		tasks = append(tasks, queueimpl.Task{ID: id})
	}
	return tasks, nil
}

// State implements queueimpl.Queue.
func (q marked) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	if err := refuse(name == ""); err != nil {
		return s, err
	}
	ids, err := q.redis().LRange(ctx, "List:"+name, 0, -1).Result()
	for _, id := range ids {
		s.Waiting = append(s.Waiting, queueimpl.Task{ID: id})
	}
	return s, err
}
