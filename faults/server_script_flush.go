package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/server"
	"oversell/variant"
)

// kindScriptFlush makes servers forget the scripts that clients call by their hash.
// Clients get NOSCRIPT and send the script again.
var kindScriptFlush = Kind{
	Name: "script-flush", Level: OnServer,
	Syntax:   "script-flush" + timedSyntax,
	Summary:  "all servers, or one, forget the scripts that were loaded",
	Takes:    []Part{TakesNode},
	Provokes: func(Fault, time.Duration) []variant.Fault { return nil },
	Needs:    needsKeys(),
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		var errs []error
		done, counted, scripts := false, true, int64(0)
		for _, s := range on.Target.Servers() {
			if s.Role == server.Sentinel || f.Where.Node != 0 && f.Where.Node != s.Number {
				continue
			}
			on.Chosen = s.Number
			n, known := on.statistic(ctx, "memory", ":", "number_of_cached_scripts:")
			scripts, counted = scripts+n, counted && known
			err := on.admin().ScriptFlush(ctx).Err()
			if err != nil {
				errs = append(errs, fmt.Errorf("flush the scripts of server %d: %w", s.Number, err))
			}
			done = done || err == nil
		}
		if done { // others may be down by another fault
			if on.brought("scripts forgotten", scripts); counted && scripts == 0 {
				on.vain("no server had a script loaded")
			}
			return nil, nil
		}
		return nil, errors.Join(errs...)
	},
}
