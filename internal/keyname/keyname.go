// Package keyname finds the keys of a named object on a server: a lock, a queue, a product.
package keyname

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Of lists the keys that contain a name.
func Of(ctx context.Context, rdb redis.UniversalClient, name string) ([]string, error) {
	var found []string
	scan := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for scan.Next(ctx) {
		if strings.Contains(scan.Val(), name) {
			found = append(found, scan.Val())
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("look for the keys of %q: %w", name, err)
	}
	return found, nil
}

// Collisions returns the names of other objects that would share a key with this one, if their keys are made in the
// same way: "a:claims" for a queue "a" with the keys "Queue:a" and "Queue:a:claims". In the results, name is replaced
// by as. Such keys are common and such names are rare, so the suites do not try these names, but report them with
// [Remark].
func Collisions(keys []string, name, as string) []string {
	var names []string
	for _, made := range keys {
		before, after, _ := strings.Cut(made, name)
		for _, key := range keys {
			rest, ok := strings.CutPrefix(key, before)
			if !ok {
				continue
			}
			rest, ok = strings.CutSuffix(rest, after)
			other := strings.Replace(rest, name, as, 1)
			if ok && rest != name && rest != "" && !slices.Contains(names, other) {
				names = append(names, other)
			}
		}
	}
	return names
}

// Remark says that some names would share a key with a name, and were not tried.
func Remark(kind, name string, others []string) string {
	return fmt.Sprintf("the %s %q would share a key with each of %q, since a key is the name and what stands before or after it; such names were not tried: do not use them, or set the name off in all keys by a sign that no name has", kind, name, others)
}

// Expire expires the keys of a name that would expire within a time.
func Expire(ctx context.Context, rdb redis.UniversalClient, name string, within time.Duration) error {
	keys, err := Of(ctx, rdb, name)
	if err != nil {
		return err
	}
	for _, key := range keys {
		ttl, err := rdb.PTTL(ctx, key).Result()
		if err != nil {
			return fmt.Errorf("time to live of %q: %w", key, err)
		}
		if ttl <= 0 || ttl > within {
			continue
		}
		if err := rdb.Del(ctx, key).Err(); err != nil {
			return fmt.Errorf("remove %q: %w", key, err)
		}
	}
	return nil
}

// Age moves into the past the scores of sorted sets of a name that are times near now, in seconds, milliseconds or
// microseconds.
func Age(ctx context.Context, rdb redis.UniversalClient, name string, by time.Duration) error {
	const near = 400 * 24 * time.Hour
	keys, err := Of(ctx, rdb, name)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if kind, err := rdb.Type(ctx, key).Result(); err != nil {
			return fmt.Errorf("type of %q: %w", key, err)
		} else if kind != "zset" {
			continue
		}
		members, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		if err != nil {
			return fmt.Errorf("members of %q: %w", key, err)
		}
		for _, m := range members {
			for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
				now := float64(time.Now().UnixMicro()) / (float64(unit) / float64(time.Microsecond))
				if math.Abs(m.Score-now) > float64(near)/float64(unit) {
					continue
				}
				if err := rdb.ZIncrBy(ctx, key, -float64(by)/float64(unit), m.Member.(string)).Err(); err != nil {
					return fmt.Errorf("age a member of %q: %w", key, err)
				}
				break
			}
		}
	}
	return nil
}

// Place is where a server holds a number: as a value, or in a hash.
type Place struct{ key, field string }

// Numbers are all whole numbers that a server holds.
func Numbers(ctx context.Context, rdb redis.UniversalClient) (map[Place]int64, error) {
	keys, err := Of(ctx, rdb, "")
	if err != nil {
		return nil, err
	}
	all := map[Place]int64{}
	for _, key := range keys {
		if n, err := rdb.Get(ctx, key).Int64(); err == nil {
			all[Place{key, ""}] = n
		}
		fields, _ := rdb.HGetAll(ctx, key).Result() // an error: it is no hash
		for field, v := range fields {
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				all[Place{key, field}] = n
			}
		}
	}
	return all, nil
}

// Set replaces the number.
func (p Place) Set(ctx context.Context, rdb redis.UniversalClient, n int64) error {
	if p.field != "" {
		return rdb.HSet(ctx, p.key, p.field, n).Err()
	}
	return rdb.Set(ctx, p.key, n, redis.KeepTTL).Err()
}
