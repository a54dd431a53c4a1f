package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
)

// MasterName is our sentinels' name for the group that they monitor.
const MasterName = "oversell"

// SentinelGroup is the shape of a primary with replicas and sentinels that replace it when
// it fails, and tell clients where the primary is.
type SentinelGroup struct {
	t    *Group
	Name string // of the primary and its replicas, for the sentinels
	// former is the primary as last reported to a caller: a promotion is over when
	// another server is the primary.
	former atomic.Pointer[instance.Server]
}

// NewWatched returns the shape of the servers of t, whose primary the sentinels call name.
func NewWatched(t *Group, name string) *SentinelGroup {
	g := &SentinelGroup{t: t, Name: name}
	g.former.Store(t.Masters[0])
	return g
}

// Nodes implements Shape.
func (g *SentinelGroup) Nodes() int { return 1 }

// sentinels returns the sentinels of the group.
func (g *SentinelGroup) sentinels() []*instance.Server {
	var all []*instance.Server
	for _, s := range g.t.Servers {
		if s.Role == instance.Sentinel {
			all = append(all, s)
		}
	}
	return all
}

// Options returns the options of a client that does not use the driver's support of sentinels: each new connection goes
// to the present primary.
func (g *SentinelGroup) Options(_ int, o instance.ConnOptions) *redis.Options {
	first := g.t.Masters[0]
	opts := first.Options(o)
	opts.Dialer = g.t.Dialer(opts, o, func(ctx context.Context, addr string) (string, error) {
		if addr != first.Addr {
			return addr, nil
		}
		s, err := g.Primary(ctx, first)
		if err != nil {
			return "", err
		}
		return s.Addr, nil
	})
	return opts
}

// Client returns the driver's own client for sentinels. It asks one for the primary whenever it opens a connection,
// listens there for a new primary, and then closes its connections to the old one.
func (g *SentinelGroup) Client(_ int, o instance.ConnOptions) redis.UniversalClient {
	opts := g.t.Masters[0].Options(o)
	f := failoverOptions(opts)
	f.MasterName = g.Name
	for _, s := range g.sentinels() {
		f.SentinelAddrs = append(f.SentinelAddrs, s.Addr)
		if s.Login != nil {
			f.SentinelUsername, f.SentinelPassword = s.Login.Username, s.Login.Password
		}
	}
	open := g.t.Dialer(opts, o, nil)
	f.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := open(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return calledBy(addr, conn), nil
	}
	return redis.NewFailoverClient(f)
}

// failoverOptions returns options for the driver's client for sentinels, which has its own type of options. The driver
// sets the fields that this type lacks as we do.
func failoverOptions(o *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
		PoolSize: o.PoolSize, MaxRetries: o.MaxRetries, DialerRetries: o.DialerRetries, DialTimeout: o.DialTimeout,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolTimeout: o.PoolTimeout, ConnMaxIdleTime: o.ConnMaxIdleTime, PipelinePoolSize: o.PipelinePoolSize,
		ReadBufferSize: o.ReadBufferSize, WriteBufferSize: o.WriteBufferSize,
		Protocol: o.Protocol, DisableIdentity: o.DisableIdentity,
	}
}

// sentinelConnections is how many connections a client opens besides those to the primary: to ask, and to listen.
const sentinelConnections = 2

// Connections assumes one connection for each client, as is usual.
func (g *SentinelGroup) Connections(n int) (each, all int) {
	return n * sentinelConnections, n * (1 + sentinelConnections)
}

// CanFailOver implements Shape.
func (g *SentinelGroup) CanFailOver() error {
	for _, s := range g.t.Servers {
		if s.Role == instance.Replica {
			return nil
		}
	}
	return errclass.Usagef("a failover needs a replica, but the sentinels know none of %s", g.t.Masters[0].Addr)
}

// Primary returns the server that most sentinels name.
func (g *SentinelGroup) Primary(ctx context.Context, _ *instance.Server) (*instance.Server, error) {
	addr, _, err := g.vote(ctx)
	if err != nil {
		return nil, err
	}
	return g.at(addr)
}

// at returns the server at an address.
func (g *SentinelGroup) at(addr string) (*instance.Server, error) {
	for _, s := range g.t.Servers {
		if s.Addr == addr {
			return s, nil
		}
	}
	return nil, fmt.Errorf("the sentinels name %s, which was no server of the target when it was opened", addr)
}

// vote asks all sentinels for the primary. It returns the address with most votes, and their number.
func (g *SentinelGroup) vote(ctx context.Context) (addr string, votes int, err error) {
	all := g.sentinels()
	named, errs := make([]string, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		if errs[i] = s.Away(); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			if named[i], errs[i] = g.ask(ctx, s); errs[i] != nil {
				errs[i] = s.Silent(errs[i])
			}
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, a := range named {
		if a == "" {
			continue
		}
		if count[a]++; count[a] > votes {
			addr, votes = a, count[a]
		}
	}
	if votes == 0 {
		return "", 0, cmp.Or(cmp.Or(errs...), fmt.Errorf("no sentinel knows %q", g.Name))
	}
	return addr, votes, nil
}

// ask asks one sentinel for the address of the primary.
func (g *SentinelGroup) ask(ctx context.Context, sentinel *instance.Server) (addr string, err error) {
	err = sentinel.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
		at, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", g.Name).StringSlice()
		if err == nil && len(at) == 2 {
			addr = net.JoinHostPort(at[0], at[1])
		}
		return err
	})
	return addr, err
}

// Promote waits for a new primary; at an address it first asks for one.
func (g *SentinelGroup) Promote(ctx context.Context, _ *instance.Server) (*instance.Server, error) {
	if g.t.given {
		if err := g.demand(ctx); err != nil {
			return nil, err
		}
	}
	var s *instance.Server
	err := instance.Poll(ctx, func(ctx context.Context) (err error) {
		s, err = g.successor(ctx)
		return err
	})
	if err == nil {
		g.former.Store(s)
	}
	return s, err
}

// demand makes a sentinel replace the primary, though it is healthy.
func (g *SentinelGroup) demand(ctx context.Context) error {
	now, err := g.Primary(ctx, nil)
	if err != nil {
		return err
	}
	g.former.Store(now)
	for _, s := range g.sentinels() {
		err = s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
			return c.Do(ctx, "sentinel", "failover", g.Name).Err()
		})
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("no sentinel starts a failover: %w", err)
}

// successor returns the primary on which most sentinels agree and that serves as one, if it is not the former one.
func (g *SentinelGroup) successor(ctx context.Context) (*instance.Server, error) {
	addr, votes, err := g.vote(ctx)
	if err != nil {
		return nil, err
	}
	s, err := g.at(addr)
	switch {
	case err != nil:
		return nil, err
	case s == g.former.Load():
		return nil, fmt.Errorf("the sentinels have not replaced server %d on %s", s.Number, s.Addr)
	case votes*2 <= len(g.sentinels()):
		return nil, errors.New("the sentinels do not agree yet on a new master")
	case !s.Up():
		return nil, fmt.Errorf("the sentinels name server %d on %s, which does not run", s.Number, s.Addr)
	}
	in, err := s.Ask(ctx)
	if err != nil {
		return nil, s.Silent(err)
	}
	if in["role"] != "master" {
		return nil, fmt.Errorf("server %d on %s was chosen, but its role is %s", s.Number, s.Addr, in["role"])
	}
	return s, nil
}

// Settle does nothing: the configuration of the servers is complete.
func (g *SentinelGroup) Settle(ctx context.Context) error {
	for _, s := range g.sentinels() {
		if err := Place(ctx, g, s); err != nil {
			return err
		}
	}
	return nil
}

// hurry makes a sentinel poll more often. By default it asks servers every 10 s for their role, and does nothing for 30
// s after it was frozen itself. Sentinels before 7.0 have no such setting.
//
// The ping period affects two other times more than pings, which are sent as often as downAfter requires. A sentinel
// connects to a new primary only after one such period, and gives it up after downAfter: if that were shorter, each
// failover would cause the next. And it does not promote a replica from which it has not heard for five periods, while
// it asks replicas once a second during a failover.
var hurry = []any{
	"sentinel", "debug", "ping-period", pingPeriod.Milliseconds(), "ask-period", 100, "info-period", 200, "tilt-period", 1000,
}

const pingPeriod = 300 * time.Millisecond

// Revive hurries a sentinel that was started. The sentinels tell other servers what to do.
func (g *SentinelGroup) Revive(ctx context.Context, s *instance.Server) error {
	if s.Role != instance.Sentinel {
		return nil
	}
	err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.Do(ctx, hurry...).Err() })
	if err != nil && !instance.IsReply(err) {
		return s.Silent(err)
	}
	return nil
}

// CheckHealth implements Shape.
func (g *SentinelGroup) CheckHealth(ctx context.Context) error {
	answers, err := g.t.InfoAll(ctx)
	if err != nil {
		return err
	}
	addr, votes, err := g.vote(ctx)
	if err != nil {
		return err
	}
	primary, err := g.at(addr)
	if err != nil {
		return err
	}
	if err := g.t.follow(ctx, primary, g.t.Servers, answers); err != nil {
		return err
	}
	alive := 0
	for _, s := range g.sentinels() {
		if s.Killed.Load() {
			continue
		}
		alive++
		if err := g.checkSentinel(ctx, s, primary); err != nil {
			return err
		}
	}
	if votes < alive {
		return errors.New("the sentinels name different masters")
	}
	g.former.Store(primary)
	return nil
}

// checkSentinel returns what a sentinel finds wrong.
func (g *SentinelGroup) checkSentinel(ctx context.Context, sentinel, primary *instance.Server) error {
	flags, err := g.view(ctx, sentinel)
	if err != nil {
		return sentinel.Silent(err)
	}
	for _, s := range g.t.Servers {
		want := "slave"
		switch {
		case s == sentinel || s.Killed.Load(): // its view of a dead server does not matter
			continue
		case s == primary:
			want = "master"
		case s.Role == instance.Sentinel:
			want = "sentinel"
		}
		if got := flags[s.Addr]; got == "" {
			return fmt.Errorf("sentinel %d on %s does not know server %d on %s", sentinel.Number, sentinel.Addr, s.Number, s.Addr)
		} else if got != want {
			return fmt.Errorf("sentinel %d on %s says of server %d on %s: %s", sentinel.Number, sentinel.Addr, s.Number, s.Addr, got)
		}
	}
	return nil
}

// view returns a sentinel's flags for every server, by address: "master", "slave" or "sentinel", and its faults, as in
// "slave,s_down".
func (g *SentinelGroup) view(ctx context.Context, sentinel *instance.Server) (flags map[string]string, err error) {
	flags = map[string]string{}
	err = sentinel.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
		master := redis.NewMapStringStringCmd(ctx, "sentinel", "master", g.Name)
		replicas := redis.NewMapStringStringSliceCmd(ctx, "sentinel", "replicas", g.Name)
		others := redis.NewMapStringStringSliceCmd(ctx, "sentinel", "sentinels", g.Name)
		for _, cmd := range []redis.Cmder{master, replicas, others} {
			if err := c.Process(ctx, cmd); err != nil {
				return err
			}
		}
		for _, e := range slices.Concat([]map[string]string{master.Val()}, replicas.Val(), others.Val()) {
			flags[net.JoinHostPort(e["ip"], e["port"])] = e["flags"]
		}
		return nil
	})
	return flags, err
}

// sentinelLines returns the configuration of a sentinel. It lists all other servers: discovery would take seconds.
func (b blueprint) sentinelLines(i int) []string {
	lines := []string{
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", MasterName, b.ports[0], quorum),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", MasterName, downAfter(b.version).Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s %d", MasterName, failoverTimeout.Milliseconds()),
		fmt.Sprintf("sentinel parallel-syncs %s %d", MasterName, b.count(instance.Replica)),
		"sentinel myid " + sentinelID(b.ports[i]),
	}
	for j, m := range b.members {
		switch {
		case m.Role == instance.Replica:
			lines = append(lines, fmt.Sprintf("sentinel known-replica %s 127.0.0.1 %d", MasterName, b.ports[j]))
		case m.Role == instance.Sentinel && j != i:
			lines = append(lines, fmt.Sprintf("sentinel known-sentinel %s 127.0.0.1 %d %s", MasterName, b.ports[j], sentinelID(b.ports[j])))
		}
	}
	return lines
}

// downAfter returns how long a server may be silent before a watchful sentinel gives it
// up. It is longer than a sentinel needs to connect to a new primary: its ping period, and up to 100 ms until its next
// check. See hurry.
func downAfter(version string) time.Duration {
	if version != "" && !instance.SinceVersion(version, 7) {
		return 1500 * time.Millisecond // the ping period is 1 s
	}
	return 500 * time.Millisecond
}

// SetDetection changes how long a server may be silent, and how fast a former primary is
// corrected.
func (g *SentinelGroup) SetDetection(ctx context.Context, m Detection) error {
	limit, greet := downAfter(g.t.Masters[0].Version), greeting
	switch m {
	case Patient:
		limit = patience
	case Mending:
		greet = hastyGreeting
	}
	return g.t.toAll(ctx, func(ctx context.Context, c *redis.Client) error {
		err := c.Do(ctx, "sentinel", "debug", "publish-period", greet.Milliseconds()).Err()
		if err != nil && !instance.IsReply(err) {
			return err
		}
		return c.Do(ctx, "sentinel", "set", g.Name, "down-after-milliseconds", limit.Milliseconds()).Err()
	}, instance.Sentinel)
}

const (
	quorum = 2
	// failoverTimeout is the time after which sentinels give up an attempt to replace the primary, and half of the time
	// until the next attempt.
	failoverTimeout = 2 * time.Second
	// greeting is the period of the sentinels' hello messages, at its default. After four of them they correct a former
	// primary that came back.
	greeting      = 2 * time.Second
	hastyGreeting = 250 * time.Millisecond
)

// sentinelID returns a name that no other sentinel of the topology has.
func sentinelID(port int) string { return fmt.Sprintf("%040x", port) }
