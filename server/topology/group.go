package topology

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/server/instance"
)

// Group is the servers of one target, and the routes of its clients to them. Its methods are safe for concurrent use.
type Group struct {
	// Servers are all servers, in the order of their numbers; masters are those that were masters at first.
	Servers, Masters []*instance.Server
	// given: oversell did not start the servers.
	given bool
	// LocalOnly: clients may be sent to addresses on this machine only.
	LocalOnly bool

	mu  sync.Mutex
	via func(addr string) string
}

// NewGroup numbers the servers and makes the clients for administrative commands.
func NewGroup(servers []*instance.Server, given bool) *Group {
	t := &Group{Servers: servers, given: given}
	for i, s := range servers {
		s.Number = i + 1
		s.Life.Store(new(instance.Life))
		s.ConnectAdmin()
		if s.Role == instance.Master {
			t.Masters = append(t.Masters, s)
		}
	}
	return t
}

// Route makes new connections go through via; nil: directly.
func (t *Group) Route(via func(addr string) string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.via = via
}

// Routed returns the argument of the last Route, nil at first.
func (t *Group) Routed() func(addr string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.via
}

// Data returns the servers with data.
func (t *Group) Data() []*instance.Server {
	return slices.DeleteFunc(slices.Clone(t.Servers), func(s *instance.Server) bool { return s.Role == instance.Sentinel })
}

// DialFunc opens the connections of a client.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Dialer returns a dial function for go-redis that connects to the server to which the group routes
// an address. If current, it connects to the present master instead of the address that it is
// given. Sentinels and nodes of a cluster may name other
// servers than they did at first: load must not follow them to another machine.
func (t *Group) Dialer(opts *redis.Options, o instance.ConnOptions, current func(ctx context.Context, addr string) (string, error)) DialFunc {
	open, via := redis.NewDialer(opts), t.Routed()
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

func (t *Group) allowed(ctx context.Context, addr string) error {
	if !t.LocalOnly || slices.ContainsFunc(t.Servers, func(s *instance.Server) bool { return s.Addr == addr }) {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return instance.AllLoopback(ctx, []instance.Endpoint{{Host: host, Addr: addr}})
}

// InfoAll asks every server that was not killed for INFO, all at once. The answers are in the order of the servers, nil
// for killed ones.
func (t *Group) InfoAll(ctx context.Context) ([]instance.Info, error) {
	answers, errs := make([]instance.Info, len(t.Servers)), make([]error, len(t.Servers))
	var wg sync.WaitGroup
	for i, s := range t.Servers {
		if s.Killed.Load() {
			continue
		}
		if errs[i] = s.Away(); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			if answers[i], errs[i] = s.Ask(ctx); errs[i] != nil {
				errs[i] = s.Silent(errs[i])
			}
		})
	}
	wg.Wait()
	return answers, cmp.Or(errs...)
}
