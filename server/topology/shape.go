package topology

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server/instance"
)

// Shape is the behaviour that differs between the topologies once their servers run.
type Shape interface {
	// Nodes returns the number of independent masters.
	Nodes() int
	// Options and Client are those of a node; see Target.Options and Client.
	Options(node int, o instance.ConnOptions) *redis.Options
	Client(node int, o instance.ConnOptions) redis.UniversalClient
	// Connections returns how many connections are open at most to any server when a node's clients have n, and how
	// many to all servers together.
	Connections(n int) (each, all int)
	// CanFailOver says why a failover is impossible.
	CanFailOver() error
	// Primary and Promote are as in Target, for a server that was a master.
	Primary(ctx context.Context, master *instance.Server) (*instance.Server, error)
	Promote(ctx context.Context, master *instance.Server) (*instance.Server, error)
	// Revive puts a restarted server into its place.
	Revive(ctx context.Context, s *instance.Server) error
	// SetDetection tells the sentinels or cluster nodes how soon to give up a silent
	// server. It may fail for some of them.
	SetDetection(ctx context.Context, m Detection) error
	// CheckHealth returns the reason why the servers are not healthy yet, as
	// AwaitHealthy defines it; nil if they are.
	CheckHealth(ctx context.Context) error
}

// placeTimeout is how long a server that was just started may take to follow an order.
const placeTimeout = 10 * time.Second

// Place calls Revive until it succeeds or placeTimeout has passed.
func Place(ctx context.Context, shape Shape, s *instance.Server) error {
	ctx, cancel := context.WithTimeout(ctx, placeTimeout)
	defer cancel()
	return instance.Poll(ctx, func(ctx context.Context) error { return shape.Revive(ctx, s) })
}

// ShapeName is a topology without its numbers.
type ShapeName string

const (
	Independent ShapeName = "masters"  // one or several
	Replicated  ShapeName = "replica"  // a master with replicas
	Guarded     ShapeName = "sentinel" // the same with sentinels
	Clustered   ShapeName = "cluster"  // several masters that share the keys
)
