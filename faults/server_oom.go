package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"oversell/server"
)

// kindOOM leaves a server without memory: it refuses commands that need more. Others still work: reads, DEL, EXPIRE.
var kindOOM = Kind{
	Name: "oom", Level: OnServer,
	Syntax:   "oom for D" + timedSyntax,
	Summary:  "a server is out of memory for D, and refuses commands that may use more (OOM)",
	Takes:    []Part{TakesNode, TakesFor},
	Requires: []Part{TakesFor},
	Provokes: refusalProvokes,
	Needs:    needsKeys(server.CanAdminister),
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		c := on.admin()
		before, err := memorySettings(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("take the memory of server %d: %w", on.Chosen, err)
		}
		change := []string{"maxmemory-policy", "noeviction", "maxmemory", noMemory}
		healed, err := on.Target.Intend(server.Undo{Server: on.Chosen, Settings: memoryUndo(before, change)})
		if err != nil {
			return nil, err
		}
		told := on.refusals(ctx, "OOM", "no command that needs memory arrived")
		heal := func(ctx context.Context) error {
			err := on.insist(ctx, func(ctx context.Context) error { return restoreMemory(ctx, c, before) })
			if err != nil {
				return err
			}
			healed()
			told(ctx)
			return on.settle(ctx, on.Chosen)
		}
		return heal, configure(ctx, c, change...)
	},
}

// memoryUndo returns the settings to restore, with their changed values. The limit comes first, as in restoreMemory.
func memoryUndo(before map[string]string, change []string) (settings []server.Setting) {
	for _, name := range memorySettingNames {
		s := server.Setting{Name: name, Was: before[name]}
		if i := slices.Index(change, name); i >= 0 {
			s.Set = change[i+1]
		}
		settings = append(settings, s)
	}
	return settings
}

// noMemory is a limit that is always exceeded; 0 would be none.
const noMemory = "1"

// memorySettings returns the present settings, which the fault restores when it is healed. It returns an error while a
// fault oom is in force: its settings must not be taken for the original ones.
func memorySettings(ctx context.Context, c redis.Cmdable) (map[string]string, error) {
	now, err := settings(ctx, c, "maxmemory*")
	if err != nil {
		return nil, err
	}
	if now["maxmemory"] == noMemory {
		return nil, errors.New("another fault has already taken its memory")
	}
	return now, nil
}

var memorySettingNames = []string{"maxmemory", "maxmemory-policy", "maxmemory-samples"}

// restoreMemory restores the settings. The limit comes first: while a low limit is in force, a restored policy could
// evict keys.
func restoreMemory(ctx context.Context, c redis.Cmdable, before map[string]string) error {
	var pairs []string
	for _, name := range memorySettingNames {
		pairs = append(pairs, name, before[name])
	}
	return configure(ctx, c, pairs...)
}
