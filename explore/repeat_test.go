package explore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"oversell/explore/clients"
	"oversell/history"
	"oversell/lockimpl"
	"oversell/reports"
	"oversell/scenarios"
	"oversell/variant"
)

// TestRareChoice checks that a small search, which needs few executions, notices what one execution in some hundred does.
func TestRareChoice(t *testing.T) {
	mutex, _ := scenarios.Find("mutex")
	var executions atomic.Int64
	s := Config{Bounds: reports.Bounds{Clients: 2, Tries: 1, TimeMS: 60_000}, Look: []history.Promise{{Of: variant.Lock, Property: ownerP}}}
	s.Run = scenarios.Config{Scenario: mutex, Lock: lockimpl.Variant{Name: "handmade", New: func(env variant.Env) lockimpl.Locker {
		rare := executions.Add(1)%400 == 0
		return &handmade{env: env, acquire: granting(lockKey, fromStart), release: func(ctx context.Context, env variant.Env, l lockimpl.Lock) error {
			if rare {
				return deleting(lockKey)(ctx, env, l)
			}
			return dropping(lockKey)(ctx, env, l)
		}}
	}}}
	if r, err := Run(t.Context(), s); !errors.Is(err, clients.ErrNondeterministic) {
		t.Errorf("the search ended in %s (%s), %v after %d executions; want %v", r.Verdict, r.Why, err, executions.Load(), clients.ErrNondeterministic)
	}
}
