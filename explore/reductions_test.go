package explore

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// scripted is a lock, given by its parts.
type scripted struct {
	acquire func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (granted bool, err error)
	release func(ctx context.Context, r redis.UniversalClient, v string) error
	// releases replaces release in a lock that remembers the value it set.
	releases func(ctx context.Context, s *actor, r redis.UniversalClient) error
}

// actor is a client's view of a scripted lock. Its memory is the round, its own value and what hidden captures. The
// functions of the lock are not part of its memory: see stage.
type actor struct {
	env    variant.Env
	round  int
	own    string
	hidden func() bool
	plays  *stage
}

// stage refers to a scripted lock by number, so that a search that inspects a client's memory sees only the number.
type stage struct{ number int }

var (
	stages   []scripted
	stagesMu sync.Mutex
)

func onStage(s scripted) *stage {
	stagesMu.Lock()
	defer stagesMu.Unlock()
	stages = append(stages, s)
	return &stage{len(stages) - 1}
}

func (s *stage) script() scripted {
	stagesMu.Lock()
	defer stagesMu.Unlock()
	return stages[s.number]
}

func (s *actor) Acquire(ctx context.Context, name string, o lockimpl.Options) (lockimpl.Lock, error) {
	start := s.env.Clock.Now()
	v := s.env.Token()
	granted, err := s.plays.script().acquire(ctx, s, s.env.Redis[0], v)
	s.round++
	switch {
	case err != nil:
		return lockimpl.Lock{}, err
	case !granted:
		return lockimpl.Lock{}, lockimpl.ErrHeld
	}
	return lockimpl.Lock{Key: name, Token: v, Until: start.Add(o.TTL)}, nil
}

func (s *actor) Extend(_ context.Context, l lockimpl.Lock, _ time.Duration) (lockimpl.Lock, error) {
	return l, lockimpl.ErrLost
}

func (s *actor) Release(ctx context.Context, l lockimpl.Lock) error {
	if releases := s.plays.script().releases; releases != nil {
		return releases(ctx, s, s.env.Redis[0])
	}
	release := s.plays.script().release
	if release == nil {
		return nil
	}
	return release(ctx, s.env.Redis[0], l.Token)
}

// locked returns the configuration of a search of a scripted lock, by default for mutual exclusion.
func locked(b reports.Bounds, s scripted, look ...variant.Property) Config {
	mutex, _ := scenarios.Find("mutex")
	if b.TimeMS == 0 {
		b.TimeMS = 60_000 // on a busy machine, under the race detector
	}
	on := onStage(s)
	c := Config{Bounds: b, Exhaustive: true, Run: scenarios.Config{Scenario: mutex, TTL: time.Second, Wait: time.Second, Lock: lockimpl.Variant{Name: "scripted", New: func(env variant.Env) lockimpl.Locker {
		return &actor{env: env, plays: on}
	}}}}
	if look == nil {
		look = []variant.Property{variant.MutualExclusion}
	}
	for _, p := range look {
		c.Look = append(c.Look, history.Promise{Of: variant.Lock, Property: p})
	}
	return c
}

const lockKey = "Lock:order"

// get sends GET and returns the value, or "" for a key that does not exist.
func get(ctx context.Context, r redis.UniversalClient, key string) (string, error) {
	v, err := r.Get(ctx, key).Result()
	if err == redis.Nil {
		err = nil
	}
	return v, err
}

// treacherous are locks that tell situations apart that a wrong reduction might treat as the same.
var treacherous = map[string]struct {
	bounds reports.Bounds
	lock   scripted
	want   string
}{
	// A client remembers, in the middle of a round, the token of another that has forgotten it.
	"a dead token that another remembers": {
		reports.Bounds{Clients: 2, Tries: 2},
		scripted{
			acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
				cmd := redis.NewIntCmd(ctx, "setnx", lockKey, v)
				_ = r.Process(ctx, cmd)
				if cmd.Err() != nil || cmd.Val() == 1 {
					return cmd.Val() == 1, cmd.Err()
				}
				now, err := get(ctx, r, lockKey)
				if err != nil {
					return false, err
				}
				before, err := get(ctx, r, noteKey)
				if err != nil || before != "" {
					return false, err
				}
				freed, err := get(ctx, r, noteKey)
				if err != nil || freed != now {
					return false, err
				}
				if err := r.Del(ctx, lockKey).Err(); err != nil {
					return false, err
				}
				return true, r.Set(ctx, lockKey, v, 0).Err()
			},
			release: func(ctx context.Context, r redis.UniversalClient, v string) error {
				return r.Set(ctx, noteKey, v, 0).Err()
			},
		},
		reports.Violated,
	},
	// Two tokens that no client remembers are still two different tokens.
	"two dead tokens": {
		reports.Bounds{Clients: 2, Tries: 2},
		scripted{
			acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
				if s.round == 0 {
					first, err := r.SetNX(ctx, "a", v, 0).Result()
					if err == nil && !first {
						err = r.Set(ctx, "b", v, 0).Err()
					}
					return false, err
				}
				n, err := redis.NewScript(`if redis.call('get', 'a') == redis.call('get', 'b') then redis.call('set', KEYS[1], ARGV[1]) return 1 end
					return redis.call('setnx', KEYS[1], ARGV[1])`).Run(ctx, r, []string{lockKey}, v).Int64()
				return n == 1, err
			},
			release: func(ctx context.Context, r redis.UniversalClient, v string) error {
				return scriptDrop.Run(ctx, r, []string{lockKey}, v).Err()
			},
		},
		reports.Pass,
	},
	// Members with equal scores are sorted by name, so the reply shows which client is which.
	"the order of names": {
		reports.Bounds{Clients: 2, Tries: 1},
		scripted{acquire: func(ctx context.Context, _ *actor, r redis.UniversalClient, v string) (bool, error) {
			if err := r.ZAdd(ctx, "line", redis.Z{Score: 1, Member: v}).Err(); err != nil {
				return false, err
			}
			last, err := r.ZRange(ctx, "line", -1, -1).Result()
			return err == nil && last[0] == v, err
		}},
		reports.Violated,
	},
	// A function remembers something that a search cannot see.
	"hidden memory": {
		reports.Bounds{Clients: 2, Tries: 2},
		scripted{acquire: func(ctx context.Context, s *actor, r redis.UniversalClient, v string) (bool, error) {
			if s.hidden != nil && s.hidden() {
				return true, nil
			}
			set, err := r.SetNX(ctx, lockKey, v, 0).Result()
			s.hidden = func() bool { return set }
			return set, err
		}, release: func(ctx context.Context, r redis.UniversalClient, v string) error {
			return r.Del(ctx, lockKey).Err()
		}},
		reports.Violated,
	},
}

func TestTreacherousLocks(t *testing.T) {
	for name, c := range treacherous {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := locked(c.bounds, c.lock)
			n, finished := naive(t, config, 100*naiveLimit)
			if !finished || n.verdict != c.want {
				t.Fatalf("naively: %+v", n)
			}
			for _, config.Plain = range []bool{true, false} {
				r, err := Run(t.Context(), config)
				if err != nil {
					t.Errorf("plain %t: %v", config.Plain, err)
				} else if o := outcomeOf(r); !n.fits(o) {
					t.Errorf("plain %t: %+v (%s), naively %+v", config.Plain, o, r.Why, n)
				}
			}
		})
	}
}
