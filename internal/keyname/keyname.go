// Package keyname finds out by which keys a server keeps what has a name: a lock, a queue,
// a product.
package keyname

import (
	"context"
	"fmt"
	"slices"
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

// Collisions returns other names for which one of the keys, made in the same way, would be
// another of the keys. Of a queue "a" with the keys "Queue:a" and "Queue:a:claims", the
// name "a:claims" is one.
func Collisions(keys []string, name string) []string {
	var names []string
	for _, made := range keys {
		before, after, _ := strings.Cut(made, name)
		for _, key := range keys {
			rest, ok := strings.CutPrefix(key, before)
			if !ok {
				continue
			}
			if rest, ok = strings.CutSuffix(rest, after); ok && rest != name && rest != "" && !slices.Contains(names, rest) {
				names = append(names, rest)
			}
		}
	}
	return names
}

// Expire lets the keys of a name expire that would do so within a time.
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
