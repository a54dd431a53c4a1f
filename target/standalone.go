package target

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// standalone is the shape of one server, or of several that know nothing of each
// other.
type standalone struct{ t *Target }

func (s *standalone) nodes() int { return len(s.t.masters) }

func (s *standalone) options(node int, o ConnOptions) *redis.Options {
	opts := s.t.masters[node].options(o)
	opts.Dialer = s.t.dialer(opts, o, nil)
	return opts
}

func (s *standalone) client(node int, o ConnOptions) redis.UniversalClient {
	return redis.NewClient(s.options(node, o))
}

func (s *standalone) connections(n int) (each, all int) { return n, n * s.nodes() }

func (s *standalone) canFailOver() error {
	if s.t.Kind == Embedded {
		return usagef("the in-memory emulation has no replicas to fail over to: use --target process or container, with --topology replica, sentinel or cluster")
	}
	return usagef("a failover needs a replica, which topology %s has not: use --topology replica, sentinel or cluster", s.t.Topology)
}

func (s *standalone) primary(_ context.Context, master *server) (*server, error) { return master, nil }

func (s *standalone) promote(context.Context, *server) (*server, error) {
	return nil, s.canFailOver()
}

func (s *standalone) revive(context.Context, *server) error { return nil }

func (s *standalone) become(context.Context, mood) error { return nil }

func (s *standalone) missing(ctx context.Context) error {
	_, err := s.t.roll(ctx)
	if err != nil {
		return err
	}
	for _, m := range s.t.masters {
		if m.killed.Load() {
			return m.isGone()
		}
	}
	return nil
}
