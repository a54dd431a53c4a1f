package faults

import (
	"context"
	"time"

	"oversell/server"
	"oversell/variant"
)

// kindFailover replaces a dead primary by its replica. A primary that oversell did not start cannot be killed; there,
// sentinels or nodes of a cluster are told to fail over.
var kindFailover = Kind{
	Name: "failover", Level: OnServer, Restarts: true,
	Syntax:   "failover" + timedSyntax,
	Summary:  "the master dies as by kill -9, a replica is promoted, and the old master comes back as a replica (servers at an address: only a failover, which is undone after the run)",
	Takes:    []Part{TakesNode},
	Provokes: failoverProvokes,
	Replica:  true,
	Needs:    needsKeys(server.CanFailOver),
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		master := group(on.Target, on.Chosen)
		old, err := on.Target.Primary(ctx, master)
		if err != nil {
			return nil, err
		}
		if on.Target.Can(ctx, server.CanStop) != nil {
			if err := on.Target.Depose(ctx, master); err != nil {
				return nil, err
			}
			_, err := on.Target.Promote(ctx, master)
			on.replaced(err)
			return on.Target.AwaitHealthy, err
		}
		if err := on.Target.Kill(old); err != nil {
			return nil, err
		}
		_, err = on.Target.Promote(ctx, master)
		on.replaced(err)
		return func(ctx context.Context) error { return on.revive(ctx, old, false) }, err
	},
}

// replaced notes that a replica has taken the place of a master, unless that failed.
func (s Site) replaced(err error) {
	if err == nil {
		s.brought("masters replaced", 1)
	}
}

// failoverProvokes: the replica may lack the last writes, and commands in flight may have been executed without a
// reply.
func failoverProvokes(Fault, time.Duration) []variant.Fault {
	return []variant.Fault{variant.Failover, variant.DropReply}
}
