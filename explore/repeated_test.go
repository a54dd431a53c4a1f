package explore

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/queueimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// unique is a queue made of one list of ids. The script enqueue replies 0 if it did not add the id.
type unique struct {
	tired
	enqueue *redis.Script
}

var (
	byPosition = redis.NewScript(`if redis.call('LPOS', KEYS[1], ARGV[1]) then return 0 end
return redis.call('RPUSH', KEYS[1], ARGV[1])`)
	always = redis.NewScript(`return redis.call('RPUSH', KEYS[1], ARGV[1])`)
)

func (unique) Repeats() queueimpl.Repeat { return queueimpl.Ignored }

func (q unique) Enqueue(ctx context.Context, name string, ids ...string) (entered []queueimpl.Task, err error) {
	for _, id := range ids {
		n, err := q.enqueue.Run(ctx, q.rdb, []string{name}, id).Int()
		if err != nil {
			return entered, err
		}
		if n > 0 {
			entered = append(entered, queueimpl.Task{ID: id})
		}
	}
	return entered, nil
}

func (q unique) Pop(ctx context.Context, name string, _ int) ([]queueimpl.Task, error) {
	id, err := q.rdb.LPop(ctx, name).Result()
	if err == redis.Nil {
		err = queueimpl.ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	return []queueimpl.Task{{ID: id}}, nil
}

// TestRepeatedIDs checks that one entry for each id is searched with ids that are enqueued again, or is not said to hold.
func TestRepeatedIDs(t *testing.T) {
	queue, _ := scenarios.Find("queue")
	for _, tt := range []struct {
		name          string
		enqueue       *redis.Script
		tries         int
		verdict, says string
	}{
		{"each id once", byPosition, 2, reports.Pass, "also if an id is enqueued again"},
		{"each id as often as it comes", always, 2, reports.Violated, "task 0.1 stands twice in the queue"},
		{"one enqueue", always, 1, reports.Pass, "the producer enqueues only one id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Config{Bounds: reports.Bounds{Clients: 2, Tries: tt.tries}}
			c.Run = scenarios.Config{Scenario: queue, Queue: queueimpl.Variant{
				Name: "unique", Promises: []variant.Property{variant.OneEntryPerID, variant.NoLostTask},
				New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue {
					return unique{tired{env.Redis[0]}, tt.enqueue}
				},
			}}
			r, err := Run(t.Context(), c)
			if err != nil || r.Verdict != tt.verdict {
				t.Fatalf("%s: %s, %v; want %s", r.Verdict, r.Why, err, tt.verdict)
			}
			i := slices.IndexFunc(r.Properties, func(p reports.Property) bool { return p.Name == variant.OneEntryPerID })
			if p := r.Properties[i]; !strings.Contains(p.Why, tt.says) || p.Of != variant.Queue {
				t.Errorf("one entry for each id: %s: %s; want %q", p.Result, p.Why, tt.says)
			}
			if r.Verdict != reports.Violated {
				return
			}
			servers := []*redis.Options{opentest.Open(t, server.Spec{Target: "process"}).Options(0, server.ConnOptions{})}
			if p, err := Replay(t.Context(), c, r.Counterexample, servers); err != nil || p == nil || p.Name != variant.OneEntryPerID {
				t.Errorf("the schedule, on a real server: %v, %v; want that one-entry-per-id is broken", p, err)
			}
		})
	}
}

// TestOrderIsTried checks that the order of tasks holds if some were handed out while others waited that were due later.
func TestOrderIsTried(t *testing.T) {
	queue, _ := scenarios.Find("queue")
	v, _ := queueimpl.Find("zset-atomic")
	inOrder := history.Promise{Of: variant.Queue, Property: variant.InOrder}
	for advances, want := range map[int]string{0: reports.Inconclusive, 2: reports.Pass} {
		c := Config{Exhaustive: true, Look: []history.Promise{inOrder}, Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: advances}}
		c.Run = scenarios.Config{Scenario: queue, Queue: v}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != want {
			t.Errorf("with %d advances: %s: %s, %v; want %s", advances, r.Verdict, r.Why, err, want)
		}
	}
}

// TestUntriedPromises checks that promises of a queue do not hold if nothing in the search put them to the test: tasks without
// delays, and scores that are not times.
func TestUntriedPromises(t *testing.T) {
	queue, _ := scenarios.Find("queue")
	c := Config{Bounds: reports.Bounds{Clients: 2, Tries: 2, Advances: 1}}
	c.Run = scenarios.Config{Scenario: queue, Queue: queueimpl.Variant{
		Name: "unique", Promises: []variant.Property{variant.NotEarly, variant.InOrder},
		New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue { return unique{tired{env.Redis[0]}, always} },
	}}
	for _, alone := range []bool{true, false} {
		verdict := reports.Inconclusive
		if !alone {
			verdict = reports.Pass
			c.Run.Queue.Promises = append(c.Run.Queue.Promises, variant.NoDuplicateDelivery)
		}
		r, err := Run(t.Context(), c)
		if err != nil || r.Verdict != verdict {
			t.Fatalf("%s: %s, %v; want %s", r.Verdict, r.Why, err, verdict)
		}
		for _, p := range r.Properties {
			if want := p.Name == variant.NoDuplicateDelivery; (p.Result == reports.Holds) != want {
				t.Errorf("%s: %s (%s)", p.Name, p.Result, p.Why)
			}
		}
	}
}
