package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/server"
	"oversell/variant"
)

// kindEvict makes a server evict the lock's key for lack of memory while a client
// holds the lock. Only keys with a time to live are evicted, those that expire soonest first; so another lock may be
// evicted as well, but no stock. A lock whose key has no expiry cannot be hit.
var kindEvict = Kind{
	Name: "evict", Level: OnServer, OfLock: true,
	Syntax:   "evict" + timedSyntax,
	Summary:  "a server drops the key of a held lock for lack of memory",
	Takes:    []Part{TakesNode},
	Provokes: func(Fault, time.Duration) []variant.Fault { return []variant.Fault{variant.Evict} },
	Needs:    needsKeys(server.CanAdminister, server.CanLose),
	Inject: func(ctx context.Context, _ Fault, on Site) (func(context.Context) error, error) {
		return nil, evict(ctx, on)
	},
}

// evict tries at each grant until it succeeds, because a lock may be released before it is hit.
func evict(ctx context.Context, on Site) error {
	if on.Key == "" {
		return errors.New("evict the lock's key: this run has no lock")
	}
	conn := on.admin().Conn() // one connection, because the buffers of each count as memory of the server
	defer conn.Close()
	before, err := memorySettings(ctx, conn)
	for err == nil {
		if err := on.Await(ctx); err != nil {
			return err
		}
		err = squeeze{conn, on.Key, before}.untilGone(ctx)
		switch {
		case err == nil:
			on.brought("keys of held locks dropped", 1)
			return nil
		case errors.Is(err, errReleased):
			err = nil
		}
	}
	return fmt.Errorf("evict %s from server %d: %w", on.Key, on.Chosen, err)
}

var (
	errReleased = errors.New("the lock is free")
	errNoLease  = errors.New("it has no lease, so it could only be evicted together with the stock")
)

// squeeze lowers a server's memory limit until a key is gone.
type squeeze struct {
	c      *redis.Conn
	key    string
	before map[string]string
}

// noLease is the driver's value for the reply -1 to PTTL.
const noLease = -1

// untilGone lowers the limit little at first, so that few other keys are evicted.
func (s squeeze) untilGone(ctx context.Context) error {
	if left, err := s.c.PTTL(ctx, s.key).Result(); err != nil {
		return err
	} else if left == noLease {
		return errNoLease
	}
	// The first use of a command takes memory for its statistics; so it is tried first with a limit that is not
	// reached.
	if _, err := s.press(ctx, math.MaxInt64); err != nil {
		return err
	}
	for less := int64(1); ; less *= 4 {
		used, err := s.counter(ctx, "memory", "used_memory")
		if err != nil {
			return err
		}
		less = min(less, used-1)
		if gone, err := s.press(ctx, used-less); gone || err != nil {
			return err
		}
	}
}

// press limits the memory during one command. All its commands are sent at once, so the server executes them together:
// no other client meets the limit, and the limit is lifted even if this process dies. It reports whether the key was
// evicted.
func (s squeeze) press(ctx context.Context, limit int64) (bool, error) {
	const evicted = "evicted_keys"
	from, err := s.counter(ctx, "stats", evicted)
	if err != nil {
		return false, err
	}
	p := s.c.Pipeline()
	had := p.Exists(ctx, s.key)
	_ = configure(ctx, p, "maxmemory-samples", "64", "maxmemory-policy", "volatile-ttl", "maxmemory", strconv.FormatInt(limit, 10))
	_ = restoreMemory(ctx, p, s.before) // memory is freed before a command is executed
	has := p.Exists(ctx, s.key)
	if _, err := p.Exec(ctx); err != nil {
		return false, err
	}
	if had.Val() == 0 {
		return false, errReleased
	}
	to, err := s.counter(ctx, "stats", evicted)
	return has.Val() == 0 && to > from, err
}

// counter reads a number from INFO.
func (s squeeze) counter(ctx context.Context, section, name string) (int64, error) {
	text, err := s.c.Info(ctx, section).Result()
	if err != nil {
		return 0, err
	}
	_, value, ok := strings.Cut(text, "\n"+name+":")
	value, _, _ = strings.Cut(value, "\r")
	n, err := strconv.ParseInt(value, 10, 64)
	if !ok || err != nil {
		return 0, cmp.Or(err, fmt.Errorf("INFO does not report %s", name))
	}
	return n, nil
}
