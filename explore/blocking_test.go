package explore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// signalled is a lock whose waiters wait with BLPOP for a signal of the holder. A waiter that trusts the signal takes the lock
// without another look at it.
type signalled struct {
	env    variant.Env
	trusts bool
}

var signalRelease = redis.NewScript(`
	if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
	redis.call('DEL', KEYS[1])
	redis.call('LPUSH', KEYS[2], '1')
	redis.call('PEXPIRE', KEYS[2], 1000)
	return 1`)

func (s *signalled) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l := lockimpl.Lock{Key: key, Token: s.env.Token()}
	take := func(mode string) error {
		l.Until = s.env.Clock.Now().Add(o.TTL)
		err := s.env.Redis[0].SetArgs(ctx, key, l.Token, redis.SetArgs{Mode: mode, TTL: o.TTL}).Err()
		if errors.Is(err, redis.Nil) {
			err = lockimpl.ErrHeld
		}
		return err
	}
	err := take("NX")
	if !errors.Is(err, lockimpl.ErrHeld) {
		return l, err
	}
	if _, signal := s.env.Redis[0].BLPop(ctx, time.Second, key+":signal").Result(); errors.Is(signal, redis.Nil) {
		return l, lockimpl.ErrHeld
	} else if signal != nil {
		return l, signal
	}
	if s.trusts {
		return l, take("")
	}
	return l, take("NX")
}

func (s *signalled) Extend(context.Context, lockimpl.Lock, time.Duration) (lockimpl.Lock, error) {
	return lockimpl.Lock{}, lockimpl.ErrLost
}

func (s *signalled) Release(ctx context.Context, l lockimpl.Lock) error {
	n, err := signalRelease.Run(ctx, s.env.Redis[0], []string{l.Key, l.Key + ":signal"}, l.Token).Int()
	if err == nil && n == 0 {
		err = lockimpl.ErrLost
	}
	return err
}

// TestBlockingCommands checks that locks which wait at the server are searched: a sound one holds, and one whose waiters
// trust an old signal breaks.
func TestBlockingCommands(t *testing.T) {
	t.Parallel()
	mutex, _ := scenarios.Find("mutex")
	for _, trusts := range []bool{false, true} {
		c := Config{
			Exhaustive: true, Look: []history.Promise{{Of: variant.Lock, Property: variant.MutualExclusion}},
			Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1, Crashes: 1, TimeMS: 60_000},
			Run: scenarios.Config{Scenario: mutex, Hold: time.Millisecond, Lock: lockimpl.Variant{
				Name: "signalled", New: func(env variant.Env) lockimpl.Locker { return &signalled{env, trusts} },
			}},
		}
		r, err := Run(t.Context(), c)
		want := reports.Pass
		if trusts {
			want = reports.Violated
		}
		if err != nil || r.Verdict != want {
			t.Errorf("a lock whose waiters trust the signal (%t): %s, %s, %v; want %s", trusts, r.Verdict, r.Why, err, want)
			continue
		}
		if !trusts {
			continue
		}
		servers := []*redis.Options{opentest.Open(t, server.Spec{Target: "process"}).Options(0, server.ConnOptions{})}
		if p, err := Replay(t.Context(), c, r.Counterexample, servers); err != nil || p == nil || p.Name != variant.MutualExclusion {
			t.Errorf("the schedule, on a real server: %v, %v; want that mutual-exclusion is broken", p, err)
		}
	}
}

// readers is a queue on a stream, whose consumers wait for entries. One that acknowledges as it reads (NOACK), and deletes the
// entry, loses what a consumer had that died.
type readers struct {
	env   variant.Env
	noAck bool
}

func (q readers) Enqueue(ctx context.Context, name string, ids ...string) (entered []queueimpl.Task, err error) {
	for _, id := range ids {
		entered = append(entered, queueimpl.Task{ID: id})
		err = errors.Join(err, q.env.Redis[0].XAdd(ctx, &redis.XAddArgs{Stream: name, Values: []string{"id", id}}).Err())
	}
	return entered, err
}

func (q readers) Pop(ctx context.Context, name string, _ int) ([]queueimpl.Task, error) {
	rdb := q.env.Redis[0]
	if err := rdb.XGroupCreateMkStream(ctx, name, "g", "0").Err(); err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil, err
	}
	if !q.noAck { // what another consumer has had for too long comes first
		old, _, err := rdb.XAutoClaim(ctx, &redis.XAutoClaimArgs{Stream: name, Group: "g", Consumer: "c", MinIdle: time.Second, Start: "0", Count: 1}).Result()
		if err != nil || len(old) > 0 {
			return tasksOf(old), err
		}
	}
	read, err := rdb.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{name, ">"}, Count: 1, Block: 500 * time.Millisecond, NoAck: q.noAck}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, queueimpl.ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	tasks := tasksOf(read[0].Messages)
	if q.noAck {
		err = rdb.XDel(ctx, name, tasks[0].Receipt).Err()
	}
	return tasks, err
}

func tasksOf(entries []redis.XMessage) (tasks []queueimpl.Task) {
	for _, e := range entries {
		tasks = append(tasks, queueimpl.Task{ID: e.Values["id"].(string), Receipt: e.ID})
	}
	return tasks
}

func (q readers) Ack(ctx context.Context, name string, t queueimpl.Task) error {
	if q.noAck {
		return nil
	}
	n, err := q.env.Redis[0].XAck(ctx, name, "g", t.Receipt).Result()
	if err == nil && n == 0 {
		return queueimpl.ErrLost
	}
	return errors.Join(err, q.env.Redis[0].XDel(ctx, name, t.Receipt).Err())
}

func (q readers) State(ctx context.Context, name string) (s queueimpl.State, err error) {
	entries, err := q.env.Redis[0].XRange(ctx, name, "-", "+").Result()
	if err != nil {
		return s, err
	}
	s.Waiting = tasksOf(entries) // or claimed
	return s, nil
}

// TestBlockingReads checks that queues whose consumers wait for entries of a stream are searched.
func TestBlockingReads(t *testing.T) {
	t.Parallel()
	queue, _ := scenarios.Find("queue")
	for _, noAck := range []bool{false, true} {
		c := Config{
			Exhaustive: true, Look: []history.Promise{{Of: variant.Queue, Property: variant.NoLostTask}},
			Bounds: reports.Bounds{Clients: 2, Tries: 1, Advances: 1, Crashes: 1, TimeMS: 60_000},
			Run: scenarios.Config{Scenario: queue, Queue: queueimpl.Variant{
				Name: "readers", AtLeastOnce: true, New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue { return readers{env, noAck} },
			}},
		}
		r, err := Run(t.Context(), c)
		want := reports.Pass
		if noAck {
			want = reports.Violated
		}
		if err != nil || r.Verdict != want || r.Stats.Entered == 0 {
			t.Errorf("a queue that acknowledges as it reads (%t): %s, %s, %v, %d deliveries; want %s", noAck, r.Verdict, r.Why, err, r.Stats.Entered, want)
		}
	}
}
