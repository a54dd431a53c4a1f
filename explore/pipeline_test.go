package explore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/lockimpl"
	"oversell/reports"
	"oversell/variant"
)

// TestPipelines checks that other clients come between the commands of a pipeline, and not between those of a transaction.
func TestPipelines(t *testing.T) {
	for _, tx := range []bool{false, true} {
		acquire := func(ctx context.Context, env variant.Env, o lockimpl.Options) (time.Time, string, error) {
			v, until := env.Token(), env.Clock.Now().Add(o.TTL)
			send := env.Redis[0].Pipelined
			if tx {
				send = env.Redis[0].TxPipelined
			}
			var before *redis.StringCmd
			_, err := send(ctx, func(p redis.Pipeliner) error {
				before = p.Get(ctx, lockKey)
				p.SetNX(ctx, lockKey, v, o.TTL)
				return nil
			})
			if errors.Is(err, redis.Nil) {
				return until, v, nil // nobody held it
			}
			return until, v, errors.Join(err, before.Err(), lockimpl.ErrHeld)
		}
		want := reports.Violated
		if tx {
			want = reports.Pass
		}
		r := mutexOf(t, func(env variant.Env) lockimpl.Locker {
			return &handmade{env: env, acquire: acquire, release: dropping(lockKey)}
		}, reports.Bounds{Clients: 2, Tries: 1, TimeMS: 60_000})
		if r.Verdict != want {
			t.Errorf("in a transaction: %t: the search ended in %s (%s); want %s", tx, r.Verdict, r.Why, want)
		}
	}
}
