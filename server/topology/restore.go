package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
)

// Reinstater is a shape in which a chosen server can become the master of its group.
type Reinstater interface {
	// Reinstate takes the next step towards that. It returns nil when nothing is left to do.
	Reinstate(ctx context.Context, s *instance.Server, priorities map[int]string) error
}

// replicaPriority is the setting by which sentinels choose a replica; they never choose one with 0.
const replicaPriority = "replica-priority"

// taking is how long a server that was told to become the master may take before it is told again.
const taking = 1500 * time.Millisecond

// servesAsMaster returns an error unless a server says that it is a master.
func servesAsMaster(ctx context.Context, s *instance.Server) error {
	in, err := s.Ask(ctx)
	switch {
	case err != nil:
		return s.Silent(err)
	case in["role"] != "master":
		return fmt.Errorf("the role of server %d on %s is %s", s.Number, s.Addr, in["role"])
	}
	return nil
}

// Reinstate makes s the master of its slots again, and waits until the nodes agree.
func (c *Cluster) Reinstate(ctx context.Context, s *instance.Server, _ map[int]string) error {
	master := s
	if s.Of != 0 {
		master = c.t.Servers[s.Of-1]
	}
	primary := func(ctx context.Context) (*instance.Server, error) { return c.Primary(ctx, master) }
	err := handOver(ctx, s, primary, func() error {
		return s.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.ClusterFailover(ctx).Err() })
	})
	if err != nil {
		return err
	}
	return servesAsMaster(ctx, s)
}

// handOver begins to make s the primary, unless it is, and waits until it has come to that.
func handOver(ctx context.Context, s *instance.Server, primary func(context.Context) (*instance.Server, error), begin func() error) error {
	arrived := func(ctx context.Context) error {
		now, err := primary(ctx)
		if err == nil && now != s {
			err = fmt.Errorf("server %d on %s serves", now.Number, now.Addr)
		}
		return err
	}
	if arrived(ctx) == nil {
		return nil
	}
	if err := begin(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, taking)
	defer cancel()
	return instance.Poll(limited, arrived)
}

// Priorities returns the priorities of all servers, by their numbers, if the sentinels have a choice of replicas.
func (g *SentinelGroup) Priorities(ctx context.Context) (map[int]string, error) {
	was := map[int]string{}
	for _, s := range g.t.Data() {
		settings, err := s.Admin.ConfigGet(ctx, replicaPriority).Result()
		if err != nil && len(g.t.Data()) > 2 {
			return nil, errclass.Environmentf("ask server %d on %s for its %s: %w", s.Number, s.Addr, replicaPriority, err)
		}
		was[s.Number] = settings[replicaPriority]
	}
	if len(was) <= 2 {
		return nil, nil
	}
	return was, nil
}

// Reinstate makes s the primary again by a failover of the sentinels, for which it makes all other servers ineligible;
// priorities are those to set afterwards, by number of the server.
func (g *SentinelGroup) Reinstate(ctx context.Context, s *instance.Server, priorities map[int]string) error {
	primary := func(ctx context.Context) (*instance.Server, error) { return g.Primary(ctx, nil) }
	if err := handOver(ctx, s, primary, func() error { return g.replace(ctx, s, priorities) }); err != nil {
		return err
	}
	if err := servesAsMaster(ctx, s); err != nil {
		return err
	}
	return g.prefer(ctx, priorities, nil)
}

// replace makes a sentinel begin to make a server the primary.
func (g *SentinelGroup) replace(ctx context.Context, s *instance.Server, priorities map[int]string) error {
	if err := g.prefer(ctx, priorities, s); err != nil {
		return err
	}
	err := errors.New("no sentinel answers")
	for _, sentinel := range g.sentinels() {
		err = sentinel.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return g.elect(ctx, c, s) })
		if err == nil {
			return nil
		}
	}
	return err
}

// prefer leaves the sentinels one replica to choose or, if it is nil, restores all priorities. Sentinels make the
// servers rewrite their configuration files; the priorities must be restored there, too.
func (g *SentinelGroup) prefer(ctx context.Context, was map[int]string, only *instance.Server) error {
	for number, priority := range was {
		s := g.t.Servers[number-1]
		if only != nil && s != only {
			priority = "0"
		}
		err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
			now, err := c.ConfigGet(ctx, replicaPriority).Result()
			if err == nil && now[replicaPriority] != priority {
				err = c.ConfigSet(ctx, replicaPriority, priority).Err()
			}
			if err == nil && only == nil {
				_ = c.ConfigRewrite(ctx).Err() // it may have no file
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("set the %s of server %d on %s: %w", replicaPriority, s.Number, s.Addr, err)
		}
	}
	return nil
}

// elect makes a sentinel make a server the primary, if it would choose no other.
func (g *SentinelGroup) elect(ctx context.Context, sentinel *redis.Client, s *instance.Server) error {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "sentinel", "replicas", g.Name)
	if err := sentinel.Process(ctx, cmd); err != nil {
		return err
	}
	fit := false
	for _, e := range cmd.Val() {
		switch addr := net.JoinHostPort(e["ip"], e["port"]); {
		case addr == s.Addr:
			fit = e["flags"] == "slave" && e["role-reported"] == "slave" && e["master-link-status"] == "ok" && e["slave-priority"] != "0"
		case e["slave-priority"] != "0" && !isDown(e): // they choose no server that is down
			return fmt.Errorf("the sentinels would rather choose %s", addr)
		}
	}
	if !fit {
		return fmt.Errorf("to the sentinels, server %d on %s is no replica yet", s.Number, s.Addr)
	}
	return sentinel.Do(ctx, "sentinel", "failover", g.Name).Err()
}
