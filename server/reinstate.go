package server

import (
	"context"
	"errors"

	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// This file restores the original master on servers that are not ours, if a failover has
// changed it.

// Depose announces that a replica will replace a master: at an address, [Target.Reinstate] makes the former one the
// master again, or a guard process does if this one ends before.
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
	now, err := t.shape.Primary(ctx, m)
	if err != nil {
		return errclass.Environmentf("find out which server serves as master %d: %w", master, err)
	}
	u := Undo{Server: now.Number, Master: true}
	if g, ok := t.shape.(*topology.SentinelGroup); ok {
		if u.Priorities, err = g.Priorities(ctx); err != nil {
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

// deposed says how to restore a master that was replaced, and what to call then.
type deposed struct {
	undo Undo
	done func()
}

// Reinstate restores every server that was a master before the failovers announced to Depose. It takes as long as
// sentinels need to make the former master a replica: up to half a minute.
func (t *Target) Reinstate(ctx context.Context) error {
	t.mu.Lock()
	all := t.deposed
	t.deposed = nil
	t.mu.Unlock()
	var errs []error
	for _, d := range all {
		err := instance.Poll(ctx, func(ctx context.Context) error { return t.reinstate(ctx, d.undo) })
		if err != nil {
			s := t.group.Servers[d.undo.Server-1]
			errs = append(errs, errclass.Environmentf("make server %d on %s the master again: %w", s.Number, s.Addr, err))
			continue // a guard process goes on
		}
		d.done()
	}
	return errors.Join(errs...)
}

func (t *Target) reinstate(ctx context.Context, u Undo) error {
	r, ok := t.shape.(topology.Reinstater)
	if !ok {
		return errclass.Usagef("topology %s has no sentinels or nodes to make a server the master again", t.Topology)
	}
	return r.Reinstate(ctx, t.group.Servers[u.Server-1], u.Priorities)
}
