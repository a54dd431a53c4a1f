package load

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// relay is a hook that calls another hook, which can be replaced: for redis clients that cannot be cloned, such as
// a cluster's, when another client takes them over.
type relay struct{ to atomic.Pointer[redis.Hook] }

func (r *relay) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *relay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if hook := r.to.Load(); hook != nil {
			return (*hook).ProcessHook(next)(ctx, cmd)
		}
		return next(ctx, cmd)
	}
}

func (r *relay) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if hook := r.to.Load(); hook != nil {
			return (*hook).ProcessPipelineHook(next)(ctx, cmds)
		}
		return next(ctx, cmds)
	}
}
