package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file puts back who is the master, where a failover has changed that on servers of
// others.

// reinstater is a shape in which a chosen server can become the master of its group.
type reinstater interface {
	// reinstate does the next step towards that. It is nil when nothing is left to do.
	reinstate(ctx context.Context, u Undo, s *server) error
}

// replicaPriority is the setting by which sentinels choose a replica; they never choose
// one that has 0.
const replicaPriority = "replica-priority"

// Depose says that a replica is going to take the place of a master, before that: at an
// address, [Target.Reinstate] makes the former one the master again, or a guard process
// does, if this one ends before.
func (t *Target) Depose(ctx context.Context, master int) error {
	if t.Kind != Address {
		return nil
	}
	m, err := t.master(master)
	if err != nil {
		return err
	}
	t.mu.Lock()
	_, known := t.deposed[master]
	t.mu.Unlock()
	if known {
		return nil // and was the master before the first failover
	}
	now, err := t.shape.primary(ctx, m)
	if err != nil {
		return environmentf("find out which server serves as master %d: %w", master, err)
	}
	u := Undo{Server: now.Number, Master: true}
	if g, ok := t.shape.(*watched); ok {
		if u.Priorities, err = g.priorities(ctx); err != nil {
			return err
		}
	}
	done, err := t.Intend(u)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deposed == nil {
		t.deposed = map[int]deposed{}
	}
	t.deposed[master] = deposed{u, done}
	return nil
}

// deposed is how a master that was replaced gets back, and what to call then.
type deposed struct {
	undo Undo
	done func()
}

// Reinstate has every server be a master again that was one before the failovers that
// Depose was told of. It takes as long as sentinels need to make the former master a
// replica, which is up to half a minute.
func (t *Target) Reinstate(ctx context.Context) error {
	t.mu.Lock()
	all := t.deposed
	t.deposed = nil
	t.mu.Unlock()
	var errs []error
	for _, d := range all {
		err := poll(ctx, func(ctx context.Context) error { return t.reinstate(ctx, d.undo) })
		if err != nil {
			s := t.servers[d.undo.Server-1]
			errs = append(errs, environmentf("make server %d on %s the master again: %w", s.Number, s.Addr, err))
			continue // a guard process goes on
		}
		d.done()
	}
	return errors.Join(errs...)
}

func (t *Target) reinstate(ctx context.Context, u Undo) error {
	r, ok := t.shape.(reinstater)
	if !ok {
		return usagef("topology %s has nobody to make a server the master again", t.Topology)
	}
	return r.reinstate(ctx, u, t.servers[u.Server-1])
}

// taking is how long a server that was told to become the master may take, before it is
// told again.
const taking = 1500 * time.Millisecond

// serves tells whether the server says that it is a master.
func (s *server) serves(ctx context.Context) error {
	in, err := s.ask(ctx)
	switch {
	case err != nil:
		return s.silent(err)
	case in["role"] != "master":
		return fmt.Errorf("the role of server %d on %s is %s", s.Number, s.Addr, in["role"])
	}
	return nil
}

func (c *cluster) reinstate(ctx context.Context, _ Undo, s *server) error {
	master := s
	if s.Of != 0 {
		master = c.t.servers[s.Of-1]
	}
	arrived := func(ctx context.Context) error {
		now, err := c.primary(ctx, master)
		if err == nil && now != s {
			err = fmt.Errorf("server %d on %s serves", now.Number, now.Addr)
		}
		return err
	}
	if arrived(ctx) != nil {
		err := s.visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.ClusterFailover(ctx).Err() })
		if err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, taking)
		defer cancel()
		if err := poll(limited, arrived); err != nil {
			return err
		}
	}
	return s.serves(ctx)
}

// priorities are those of all servers, by their numbers, where the sentinels have a
// choice of replicas.
func (g *watched) priorities(ctx context.Context) (map[int]string, error) {
	was := map[int]string{}
	for _, s := range g.t.data() {
		settings, err := s.admin.ConfigGet(ctx, replicaPriority).Result()
		if err != nil && len(g.t.data()) > 2 {
			return nil, environmentf("ask server %d on %s for its %s: %w", s.Number, s.Addr, replicaPriority, err)
		}
		was[s.Number] = settings[replicaPriority]
	}
	if len(was) <= 2 {
		return nil, nil
	}
	return was, nil
}

func (g *watched) reinstate(ctx context.Context, u Undo, s *server) error {
	arrived := func(ctx context.Context) error {
		now, err := g.primary(ctx, nil)
		if err == nil && now != s {
			err = fmt.Errorf("server %d on %s serves", now.Number, now.Addr)
		}
		return err
	}
	if arrived(ctx) != nil {
		if err := g.replace(ctx, u, s); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, taking)
		defer cancel()
		if err := poll(limited, arrived); err != nil {
			return err
		}
	}
	if err := s.serves(ctx); err != nil {
		return err
	}
	return g.prefer(ctx, u.Priorities, nil)
}

// replace has a sentinel begin to make a server the primary.
func (g *watched) replace(ctx context.Context, u Undo, s *server) error {
	if err := g.prefer(ctx, u.Priorities, s); err != nil {
		return err
	}
	err := errors.New("no sentinel answers")
	for _, sentinel := range g.sentinels() {
		err = sentinel.visit(ctx, func(ctx context.Context, c *redis.Client) error { return g.elect(ctx, c, s) })
		if err == nil {
			return nil
		}
	}
	return err
}

// prefer leaves the sentinels one replica to choose, or gives all servers the priorities
// that they had if it is nil. Sentinels have the servers write what they are told to their
// files; there, too, the priorities must be as they were.
func (g *watched) prefer(ctx context.Context, was map[int]string, only *server) error {
	for number, priority := range was {
		s := g.t.servers[number-1]
		if only != nil && s != only {
			priority = "0"
		}
		err := s.visit(ctx, func(ctx context.Context, c *redis.Client) error {
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

// elect has a sentinel make a server the primary, if that is the only one that it would
// choose.
func (g *watched) elect(ctx context.Context, sentinel *redis.Client, s *server) error {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "sentinel", "replicas", g.name)
	if err := sentinel.Process(ctx, cmd); err != nil {
		return err
	}
	fit := false
	for _, e := range cmd.Val() {
		switch addr := net.JoinHostPort(e["ip"], e["port"]); {
		case addr == s.Addr:
			fit = e["flags"] == "slave" && e["role-reported"] == "slave" && e["master-link-status"] == "ok" && e["slave-priority"] != "0"
		case e["slave-priority"] != "0":
			return fmt.Errorf("the sentinels would rather choose %s", addr)
		}
	}
	if !fit {
		return fmt.Errorf("to the sentinels, server %d on %s is no replica yet", s.Number, s.Addr)
	}
	return sentinel.Do(ctx, "sentinel", "failover", g.name).Err()
}
