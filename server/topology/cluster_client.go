package topology

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server/instance"
)

const (
	// maxRedirects is how often a client follows a redirection, or repeats a command that a node refused without
	// executing it, because it is not a master, has none, or is still loading. Two are needed if both the client's and
	// the node's view of the cluster are out of date.
	maxRedirects = 2
	// slotsTimeout is how long a node may take to answer CLUSTER SLOTS; then the
	// next node is asked.
	slotsTimeout = 250 * time.Millisecond
)

// Options returns the options of a client of the first master that follows no redirections.
func (c *Cluster) Options(_ int, o instance.ConnOptions) *redis.Options {
	opts := c.t.Masters[0].Options(o)
	opts.Dialer = c.t.Dialer(opts, o, nil)
	return opts
}

// Client returns the driver's own client for clusters. Its connections prevent it from repeating a command with an
// unknown outcome; see noRetryConn.
func (c *Cluster) Client(_ int, o instance.ConnOptions) redis.UniversalClient {
	opts := c.t.Masters[0].Options(o)
	co := clusterClientOptions(opts)
	for _, s := range c.t.Servers {
		co.Addrs = append(co.Addrs, s.Addr)
	}
	open := c.t.Dialer(opts, o, nil)
	co.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := open(ctx, network, addr)
		if err != nil {
			return nil, finally(err)
		}
		return rewrap(conn, &noRetryConn{Conn: conn}), nil
	}
	client := redis.NewClusterClient(co)
	client.OnNewNode(func(node *redis.Client) { node.AddHook(&nodeHook{client, &c.commands}) })
	return client
}

// clusterClientOptions returns options for the driver's client for clusters, which has its own type of options.
func clusterClientOptions(o *redis.Options) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		MaxRedirects: maxRedirects,
		PoolSize:     o.PoolSize, MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, DialTimeout: o.DialTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolTimeout: o.PoolTimeout, ConnMaxIdleTime: o.ConnMaxIdleTime, PipelinePoolSize: o.PipelinePoolSize,
		ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize,
		Protocol: o.Protocol, DisableIdentity: o.DisableIdentity, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// Connections counts a pool for each master, and one more connection of each client to any node, to ask which node has
// which keys.
func (c *Cluster) Connections(n int) (each, all int) {
	return 2 * n, n * (len(c.t.Masters) + 1)
}

// nodeHook corrects what the driver's client for clusters does at each node.
type nodeHook struct {
	client   *redis.ClusterClient
	commands *sharedCommands
}

// DialHook asks again which node has which keys when a node cannot be reached. By itself the driver does so once a
// minute, and on a redirection.
func (h *nodeHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err != nil {
			h.client.ReloadState(ctx)
		}
		return conn, err
	}
}

// ProcessHook does the same when a node does not answer, and limits the time of that question, so that a frozen node
// does not block it. It asks for the list of commands once for all clients: each would spend milliseconds and a hundred
// kilobytes on it.
func (h *nodeHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd := cmd.(type) {
		case *redis.ClusterSlotsCmd:
			ctx, cancel := context.WithTimeout(ctx, slotsTimeout)
			defer cancel()
			return next(ctx, cmd)
		case *redis.CommandsInfoCmd:
			return h.commands.answer(ctx, cmd, next)
		}
		err := next(ctx, cmd)
		h.look(ctx, err)
		return err
	}
}

// ProcessPipelineHook is ProcessHook for pipelines.
func (h *nodeHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		h.look(ctx, err)
		return err
	}
}

func (h *nodeHook) look(ctx context.Context, err error) {
	if err != nil && !instance.IsReply(err) {
		h.client.ReloadState(ctx)
	}
}

// sharedCommands is a server's list of commands.
type sharedCommands struct {
	mu    sync.Mutex
	known map[string]*redis.CommandInfo
}

func (s *sharedCommands) answer(ctx context.Context, cmd *redis.CommandsInfoCmd, ask redis.ProcessHook) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		if err := ask(ctx, cmd); err != nil {
			return err
		}
		s.known = cmd.Val()
	}
	cmd.SetVal(s.known)
	return nil
}
