package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"oversell/internal/errclass"
	"oversell/server/container"
	"oversell/server/instance"
	"oversell/server/topology"
)

// settleTimeout is how long the servers of a topology may take to know each other; a cluster usually takes 2 s.
const settleTimeout = 20 * time.Second

func openProcess(ctx context.Context, p plan) (*Target, error) {
	h, err := instance.NewProcessHost(ctx, p.Clocks)
	if err != nil {
		return nil, err
	}
	t, err := openOwn(ctx, h, Process, p)
	if err != nil {
		return nil, err
	}
	t.clocks = p.Clocks
	return t, nil
}

func openContainer(ctx context.Context, p plan) (*Target, error) {
	h, err := container.New(ctx, p.image())
	if err != nil {
		return nil, err
	}
	return openOwn(ctx, h, Container, p)
}

// openOwn starts the servers of a topology on a host, which the target then owns, and waits until they work together.
func openOwn(ctx context.Context, h instance.Host, kind Kind, p plan) (*Target, error) {
	servers, err := topology.LaunchAll(ctx, h, topology.Wanted{Shape: p.shape, Masters: p.masters, Persist: p.Persist})
	if err != nil {
		h.Close()
		return nil, err
	}
	t := newTarget(kind, topology.NewGroup(servers, false))
	t.host = h
	t.alarmed.Store(true) // as they are configured
	t.shape = newShape(t, p.shape, topology.MasterName)
	t.Why = h.Describe() + " on " + strings.Join(t.Addrs, ", ")
	if len(servers) > 1 {
		t.Why = fmt.Sprintf("%s, %d times, on %s", h.Describe(), len(servers), strings.Join(t.Addrs, ", "))
	}
	if err := t.settle(ctx); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// newShape returns the behaviour of a topology. master is the sentinels' name for the primary.
func newShape(t *Target, name topology.ShapeName, master string) topology.Shape {
	switch name {
	case topology.Replicated:
		return topology.NewPair(t.group)
	case topology.Guarded:
		return topology.NewWatched(t.group, master)
	case topology.Clustered:
		return topology.NewCluster(t.group)
	}
	return &standalone{t}
}

// settler is a shape whose servers must be introduced to each other.
type settler interface {
	Settle(ctx context.Context) error
}

func (t *Target) settle(ctx context.Context) error {
	s, ok := t.shape.(settler)
	if !ok {
		return nil // each has answered, and they are independent
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := s.Settle(ctx); err != nil {
		return errclass.Environmentf("set up the topology: %w", err)
	}
	return t.AwaitHealthy(ctx)
}
