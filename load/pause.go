package load

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"oversell/variant"
)

// pauseKey is the context key of a pause.
type pauseKey struct{}

// pause runs do once.
type pause struct{ do func(context.Context) }

// PauseAfterFirst returns a context under which do runs after the reply to the first command, before its sender
// continues: it stands for time in the middle of a section, between a read and the write that depends on it.
func PauseAfterFirst(ctx context.Context, do func(context.Context)) context.Context {
	return context.WithValue(ctx, pauseKey{}, &pause{do})
}

// attending is the hook of every connection of an engine: it counts commands, and runs requested pauses.
type attending struct{ *Engine }

func afterCommand(ctx context.Context) {
	if p, _ := ctx.Value(pauseKey{}).(*pause); p != nil && p.do != nil {
		do := p.do
		p.do = nil
		do(ctx)
	}
}

func (a attending) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return calm(conn, a.config.Inject == nil), nil
	}
}

func (a attending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		sent := a.sentAt()
		err := next(a.unlessStopped(ctx), cmd)
		a.trip(sent, err)
		a.sent(1-greeting(cmd), err)
		afterCommand(ctx)
		return err
	}
}

func (a attending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := a.sentAt()
		err := next(a.unlessStopped(ctx), cmds)
		a.trip(sent, err)
		a.sent(len(cmds)-countHandshake(cmds), err)
		afterCommand(ctx)
		return err
	}
}

// countHandshake counts the commands that the driver sends on a connection before its client's own: a connection that was
// opened before the load has sent them, too.
func countHandshake(cmds []redis.Cmder) (n int) {
	for _, c := range cmds {
		n += greeting(c)
	}
	return n
}

// greeting returns 1 for a command with which go-redis opens a connection, and 0 for any other.
func greeting(c redis.Cmder) int {
	if c == nil {
		return 0
	}
	switch c.Name() { // in lower case
	case "hello", "auth", "select", "client":
		return 1
	}
	return 0
}

// sent counts commands, unless the end of the run prevented them.
func (a attending) sent(n int, err error) {
	if !errors.Is(err, variant.ErrStopped) {
		a.commands.Add(int64(n))
	}
}
