package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/guard"
)

// minPrefix prevents a Sweep that would match other programs' keys.
const minPrefix = 4

// Sweep removes only the keys whose names contain prefix, which marks the keys of one run, from every master, in the
// database that the address names. It returns how many it removed, even with an error. Keys made meanwhile may survive.
// A prefix shorter than 4 bytes is refused with [ErrUsage]. Servers that we started do not need it: their data ends
// with them.
func (t *Target) Sweep(ctx context.Context, prefix string) (int, error) {
	if len(prefix) < minPrefix {
		return 0, errclass.Usagef("remove the keys of a run: the prefix %q is too short to be distinguished from other keys", prefix)
	}
	removed := 0
	for _, m := range t.group.Masters {
		s, err := t.shape.Primary(ctx, m)
		if err != nil {
			return removed, errclass.Environmentf("remove the keys containing %q: find out which server serves as master %d: %w", prefix, m.Number, err)
		}
		n, err := sweepServer(ctx, s.Admin, prefix)
		removed += n
		if err != nil {
			return removed, errclass.Environmentf("remove the keys containing %q from %s: %w", prefix, s.Addr, err)
		}
	}
	t.unclaim(prefix)
	return removed, nil
}

// sweptAtOnce is how many keys are removed in one pipeline, which must be answered within the timeout of a command.
// The emulation ignores the COUNT of SCAN.
const sweptAtOnce = 100

// sweepTwice removes keys until it finds none twice in a row.
func (t *Target) sweepTwice(ctx context.Context, prefix string) error {
	return guard.SweepTwice(ctx, func(ctx context.Context) (int, error) { return t.Sweep(ctx, prefix) })
}

func sweepServer(ctx context.Context, c *redis.Client, prefix string) (removed int, err error) {
	cursor := uint64(0)
	for {
		var keys []string
		keys, cursor, err = c.Scan(ctx, cursor, "*"+escapeGlob(prefix)+"*", 1000).Result()
		if err != nil {
			return removed, fmt.Errorf("scan: %w", err)
		}
		own := keys[:0]
		for _, k := range keys {
			if strings.Contains(k, prefix) { // however the server interprets the pattern
				own = append(own, k)
			}
		}
		for some := range slices.Chunk(own, sweptAtOnce) {
			n, err := unlink(ctx, c, some)
			removed += n
			if err != nil {
				return removed, fmt.Errorf("unlink %d keys: %w", len(some), err)
			}
		}
		if cursor == 0 {
			return removed, nil
		}
	}
}

// unlink removes keys one by one, because a cluster refuses a command about keys
// from different slots.
func unlink(ctx context.Context, c *redis.Client, keys []string) (removed int, err error) {
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			p.Unlink(ctx, k)
		}
		return nil
	})
	for _, cmd := range cmds {
		removed += int(cmd.(*redis.IntCmd).Val())
	}
	return removed, err
}

// escapeGlob escapes a text for a pattern of Redis.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}
