package claims

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// spy is a driver hook that records the names of one client's commands.
type spy struct{ names []string }

// DialHook implements redis.Hook.
func (*spy) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		s.names = append(s.names, c.Name())
		return next(ctx, c)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cs []redis.Cmder) error {
		for _, c := range cs {
			s.names = append(s.names, c.Name())
		}
		return next(ctx, cs)
	}
}

// counter counts the commands that are sent on connections.
type counter struct{ bytes atomic.Int64 }

// counting makes the connections of a client counted ones.
func (n *counter) counting(o *redis.Options) *redis.Options {
	dial := o.Dialer
	if dial == nil {
		dial = redis.NewDialer(o)
	}
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return countedConn{c, n}, nil
	}
	return o
}

// countedConn is a connection that counts the bytes it sends.
type countedConn struct {
	net.Conn
	n *counter
}

func (c countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.n.bytes.Add(int64(n))
	return n, err
}
