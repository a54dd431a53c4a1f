package target

import (
	"context"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ConnOptions is what a run may choose about its connections. The zero value is
// one connection and 5 seconds.
type ConnOptions struct {
	// PoolSize is the largest number of connections of one client; 0 means 1.
	PoolSize int
	// Timeout bounds each write of a command and each wait for its reply; 0
	// means 5 seconds. A deadline of the context cuts it shorter.
	Timeout time.Duration
	// Dialed, unless nil, is called with every new connection of the client, so
	// that the caller can tell which connections belong to which client. That
	// includes the connections on which a client asks sentinels or nodes of a
	// cluster where to go. It may be called by several goroutines at once.
	Dialed func(net.Conn)
}

const (
	defaultTimeout = 5 * time.Second
	// waitForConnection is how long a command may queue for a connection of its
	// pool: practically as long as its context allows.
	waitForConnection = time.Hour
	bufferSize        = 4 << 10
)

// Options are the settings with which every client of this program talks to a
// master. It is the only place that states them, and hands out a fresh copy, so
// that a caller can put a proxy's address into it. It contains the password:
// never print it. It panics if there is no such node.
//
// Where the address is that of the first primary, new connections lead to whoever
// is the primary then. On a cluster they lead to its first master, which answers
// for its share of the keys only.
//
// An error on the wire leaves the outcome of its command unknown: the server may
// have executed it, may do so later, or never.
func (t *Target) Options(node int, o ConnOptions) *redis.Options { return t.shape.options(node, o) }

func options(addr string, o ConnOptions) *redis.Options {
	if o.PoolSize <= 0 {
		o.PoolSize = 1
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &redis.Options{
		Addr:     addr,
		PoolSize: o.PoolSize,

		// The driver would send a command again after an error on the wire (3
		// times by default). Whatever had reached the server would be applied
		// twice, and the history would not show it.
		MaxRetries: -1,
		// The same for dialling, 5 times with pauses of 100 ms by default. Note
		// that a pool whose dials failed PoolSize times in a row hands out that
		// error at once, and looks only every second whether the server is back.
		DialerRetries: 1,
		DialTimeout:   5 * time.Second,
		// Without it, the deadline of a context does not cut short the wait for a
		// reply. A mere cancellation never does: only its deadline counts.
		ContextTimeoutEnabled: true,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		// Waiting for a shared connection is queueing and belongs to the latency.
		// By default it fails after ReadTimeout plus a second.
		PoolTimeout: waitForConnection,
		// Connections that a run opened before it began are kept to its end; by
		// default the driver drops those idle for half an hour.
		ConnMaxIdleTime: -1,
		// By default pipelines and transactions have a second pool of up to 10
		// connections with 256 KiB of buffers each, which Warm cannot open.
		PipelinePoolSize: -1,
		// 32 KiB each by default: 128 MB for 2,000 connections.
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,
		// RESP2 has all that locks need and spares the look for push messages
		// before each reply, which RESP3 brings along.
		Protocol: 2,
		// CLIENT SETINFO costs a round trip per connection, and the emulation
		// does not know it.
		DisableIdentity: true,
		// For managed services that move; needs RESP3 and one more round trip.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Client makes a client of one node, with the settings of [Target.Options], that
// finds its way on the target's topology; see the package comment. It does not
// connect yet; see [Warm]. The caller closes it.
func (t *Target) Client(node int, o ConnOptions) redis.UniversalClient {
	return t.shape.client(node, o)
}

// Clients makes one client for each node. The caller closes them.
func (t *Target) Clients(o ConnOptions) []redis.UniversalClient {
	all := make([]redis.UniversalClient, t.Nodes())
	for i := range all {
		all[i] = t.Client(i, o)
	}
	return all
}

// dialer opens connections as the driver would, but to where the target's route
// leads. With current, the server that serves now stands for those at the
// addresses that are asked for. Sentinels and nodes of a cluster may name other
// servers than they did at first: load must not follow them to another machine.
func (t *Target) dialer(opts *redis.Options, o ConnOptions, current func(ctx context.Context, addr string) (string, error)) DialFunc {
	open, via := redis.NewDialer(opts), t.route()
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if current != nil {
			var err error
			if addr, err = current(ctx, addr); err != nil {
				return nil, err
			}
		}
		if err := t.allowed(ctx, addr); err != nil {
			return nil, err
		}
		if via != nil {
			addr = via(addr)
		}
		conn, err := open(ctx, network, addr)
		if err == nil && o.Dialed != nil {
			o.Dialed(conn)
		}
		return conn, err
	}
}

func (t *Target) allowed(ctx context.Context, addr string) error {
	if !t.localOnly || slices.ContainsFunc(t.servers, func(s *server) bool { return s.Addr == addr }) {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return allLoopback(ctx, []endpoint{{host: host, addr: addr}})
}
