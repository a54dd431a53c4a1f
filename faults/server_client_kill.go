package faults

import (
	"context"
	"fmt"
	"time"

	"oversell/server"
	"oversell/variant"
)

// kindClientKill has a server close all connections of clients at once.
var kindClientKill = Kind{
	Name: "client-kill", Level: OnServer,
	Syntax:   "client-kill" + timedSyntax,
	Summary:  "a server closes the connections of all its clients",
	Takes:    []Part{TakesNode},
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.DropReply} },
	Needs:    needsKeys(server.CanAdminister),
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		n, err := on.admin().ClientKillByFilter(ctx, "TYPE", "normal").Result()
		switch {
		case err != nil:
			return nil, fmt.Errorf("close the connections of clients of server %d: %w", on.Chosen, err)
		case n == 0:
			return nil, fmt.Errorf("close the connections of clients of server %d: no client is connected", on.Chosen)
		}
		on.brought("connections closed", n)
		return nil, nil
	},
}
