package faults

import (
	"context"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"oversell/server"
)

// kindReadOnly makes a master a replica for a time: it keeps its data, answers
// reads, and refuses writes. Clients see the same when their connections lead to a
// primary that was demoted.
var kindReadOnly = Kind{
	Name: "read-only", Level: OnServer,
	Syntax:   "read-only for D" + timedSyntax,
	Summary:  "a server refuses writes for D, as a replica does (READONLY), and keeps its data",
	Takes:    []Part{TakesNode, TakesFor},
	Requires: []Part{TakesFor},
	Provokes: refusalProvokes,
	Needs:    needsReadOnly,
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		c := on.admin()
		told := on.refusals(ctx, "READONLY", "no command that writes arrived")
		before, err := on.Target.Following(ctx, on.Chosen)
		if err != nil {
			return nil, err
		}
		healed, err := on.Target.Intend(server.Undo{Server: on.Chosen, ReadOnly: true, Follows: before})
		if err != nil {
			return nil, err
		}
		heal := func(ctx context.Context) error {
			err := on.insist(ctx, func(ctx context.Context) error { return c.ReplicaOf(ctx, "NO", "ONE").Err() })
			if err != nil {
				return fmt.Errorf("make server %d a master again: %w", on.Chosen, err)
			}
			if before != "" {
				err = follow(ctx, c, before)
			}
			if err != nil {
				return err
			}
			healed()
			told(ctx)
			return on.settle(ctx, on.Chosen)
		}
		return heal, follow(ctx, c, server.Nobody)
	},
}

// follow makes a server a replica of another.
func follow(ctx context.Context, c *redis.Client, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		err = c.ReplicaOf(ctx, host, port).Err()
	}
	if err != nil {
		return fmt.Errorf("make %s follow %s: %w", c.Options().Addr, addr, err)
	}
	return nil
}

var needsReadOnlyServer = needsKeys(server.CanAdminister)

func needsReadOnly(ctx context.Context, f Fault, t *server.Target) error {
	if clustered(t) {
		return refusef("a cluster decides itself which of its nodes is a replica: use topology single, masters:N, replica or sentinel")
	}
	return needsReadOnlyServer(ctx, f, t)
}
