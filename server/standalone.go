package server

import (
	"context"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
	"oversell/server/topology"
)

// standalone is the shape of one server, or of several independent ones.
type standalone struct{ t *Target }

func (s *standalone) Nodes() int { return len(s.t.group.Masters) }

func (s *standalone) Options(node int, o ConnOptions) *redis.Options {
	opts := s.t.group.Masters[node].Options(o)
	opts.Dialer = s.t.group.Dialer(opts, o, nil)
	return opts
}

func (s *standalone) Client(node int, o ConnOptions) redis.UniversalClient {
	return redis.NewClient(s.Options(node, o))
}

func (s *standalone) Connections(n int) (each, all int) { return n, n * s.Nodes() }

func (s *standalone) CanFailOver() error { return noReplica(s.t.Kind, s.t.Topology) }

// noReplica says why independent masters cannot fail over.
func noReplica(kind Kind, topology string) error {
	if kind == Embedded {
		return errclass.Usagef("the in-memory emulation has no replicas to fail over to: use --target process or container, with --topology replica, sentinel or cluster")
	}
	return errclass.Usagef("a failover needs a replica, which topology %s does not have: use --topology replica, sentinel or cluster", topology)
}

func (s *standalone) Primary(_ context.Context, master *instance.Server) (*instance.Server, error) {
	return master, nil
}

func (s *standalone) Promote(context.Context, *instance.Server) (*instance.Server, error) {
	return nil, s.CanFailOver()
}

func (s *standalone) Revive(context.Context, *instance.Server) error { return nil }

func (s *standalone) SetDetection(context.Context, topology.Detection) error { return nil }

func (s *standalone) CheckHealth(ctx context.Context) error {
	_, err := s.t.group.InfoAll(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.t.group.Masters {
		if m.Killed.Load() {
			return m.KilledError()
		}
	}
	return nil
}
