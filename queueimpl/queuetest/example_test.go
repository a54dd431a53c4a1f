package queuetest_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/queueimpl"
	"oversell/queueimpl/queuetest"
	"oversell/variant"
)

// sorted is one client's view of a queue in a sorted set, whose tasks are removed as they are handed out. The suite needs no
// more than this.
type sorted struct{ env variant.Env }

func (s sorted) now() float64 { return float64(s.env.Clock.Now().UnixMicro()) / 1e6 }

func (s sorted) Enqueue(ctx context.Context, name string, ids ...string) (entered []queueimpl.Task, err error) {
	for _, id := range ids {
		score := s.now()
		added, err := s.env.Redis[0].ZAddNX(ctx, "queue:"+name, redis.Z{Score: score, Member: id}).Result()
		if err != nil {
			return entered, err // nobody knows whether the task entered
		}
		if added == 1 {
			entered = append(entered, queueimpl.Task{ID: id, Score: score})
		}
	}
	return entered, nil
}

func (s sorted) Pop(ctx context.Context, name string, count int) ([]queueimpl.Task, error) {
	if count < 1 {
		return nil, queueimpl.ErrBadCall
	}
	found, err := s.env.Redis[0].ZPopMin(ctx, "queue:"+name, int64(count)).Result()
	if err == nil && len(found) == 0 {
		err = queueimpl.ErrEmpty
	}
	return tasks(found), err
}

func (s sorted) State(ctx context.Context, name string) (queueimpl.State, error) {
	found, err := s.env.Redis[0].ZRangeWithScores(ctx, "queue:"+name, 0, -1).Result()
	return queueimpl.State{Waiting: tasks(found)}, err
}

func tasks(found []redis.Z) (all []queueimpl.Task) {
	for _, z := range found {
		all = append(all, queueimpl.Task{ID: z.Member.(string), Score: z.Score})
	}
	return all
}

// mine describes the queue. A task is lost if its consumer dies, or if the answer to the pop is lost; the flaws declare that.
var mine = queueimpl.Variant{
	Name:     "mine",
	Promises: []variant.Property{variant.NoLostTask, variant.NoDuplicateDelivery, variant.OneEntryPerID},
	Flaws: []variant.Flaw{
		{Property: variant.NoLostTask, Fault: variant.Crash, Why: "a consumer that dies takes its task along"},
		{Property: variant.NoLostTask, Fault: variant.DropReply, Why: "a task whose answer is lost is gone"},
		{Property: variant.NoLostTask, Fault: variant.LateRequest, Why: "a pop whose client gave up takes tasks all the same"},
	},
	New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue { return sorted{env} },
}

// The test of a queue belongs in a file whose name ends in _test.go.
func ExampleRun() {
	testMyQueue := func(t *testing.T) { // func TestMyQueue
		queuetest.Run(t, mine, queuetest.Auto(t))
	}
	_ = testMyQueue
}

// TestExample runs the suite on the example's queue.
func TestExample(t *testing.T) { queuetest.Run(t, mine, queuetest.Auto(t)) }

// TestExampleOnAnEmulation runs it where there is no redis-server.
func TestExampleOnAnEmulation(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	queuetest.Run(t, mine, queuetest.Auto(t))
}
