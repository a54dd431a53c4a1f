package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oversell/target"
	"oversell/variant"
)

// kindScriptFlush makes servers forget the scripts that clients call by their hash.
// Clients are told so (NOSCRIPT) and send the script again.
var kindScriptFlush = Kind{
	Name: "script-flush", Level: OnServer,
	Syntax:   "script-flush" + timedSyntax,
	Summary:  "all servers, or one, forget the scripts that were loaded",
	Takes:    []Part{TakesNode},
	Provokes: func(Fault, time.Duration) []variant.Fault { return nil },
	Needs:    needsKeys(),
	Inject: func(ctx context.Context, f Fault, on Site) (func(context.Context) error, error) {
		var errs []error
		done := false
		for _, s := range on.Target.Servers() {
			if s.Role == target.Sentinel || f.Where.Node != 0 && f.Where.Node != s.Number {
				continue
			}
			err := on.Target.Admin(s.Number).ScriptFlush(ctx).Err()
			if err != nil {
				errs = append(errs, fmt.Errorf("flush the scripts of server %d: %w", s.Number, err))
			}
			done = done || err == nil
		}
		if done { // others may be down, by another fault
			return nil, nil
		}
		return nil, errors.Join(errs...)
	},
}
