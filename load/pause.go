package load

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// pauseKey is how a context carries a pause to the connections.
type pauseKey struct{}

// pause happens once.
type pause struct{ do func(context.Context) }

// PauseAfterFirst returns a context under which do runs after the first command
// has been answered, and before whoever sent it goes on: time that passes in the
// middle of a section, between a read and the write that follows from it.
func PauseAfterFirst(ctx context.Context, do func(context.Context)) context.Context {
	return context.WithValue(ctx, pauseKey{}, &pause{do})
}

// attending is the hook that every connection of an engine has: it counts the
// commands, and holds up who asked for that.
type attending struct{ *Engine }

func afterCommand(ctx context.Context) {
	if p, _ := ctx.Value(pauseKey{}).(*pause); p != nil && p.do != nil {
		do := p.do
		p.do = nil
		do(ctx)
	}
}

func (attending) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (a attending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := a.leaves()
		err := next(a.unlessStopped(ctx), cmd)
		a.trip(sent, err)
		a.sent(1, err)
		afterCommand(ctx)
		return err
	}
}

func (a attending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := a.leaves()
		err := next(a.unlessStopped(ctx), cmds)
		a.trip(sent, err)
		a.sent(len(cmds), err)
		afterCommand(ctx)
		return err
	}
}

// sent counts commands, unless the end of the run kept them back.
func (a attending) sent(n int, err error) {
	if !errors.Is(err, variant.ErrStopped) {
		a.commands.Add(int64(n))
	}
}
