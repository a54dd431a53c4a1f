package stockimpl_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"oversell/clock"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// startRedis starts a redis-server for this test and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: "process"}).Options(0, server.ConnOptions{}).Addr
}

// startMini starts a miniredis and returns it.
func startMini(t *testing.T) *miniredis.Miniredis {
	t.Helper()
	return miniredis.RunT(t)
}

// connect returns a client with a single connection.
func connect(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr:                     addr,
		PoolSize:                 1,
		MaxRetries:               -1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { c.Close() })
	return c
}

// world returns the Env of one client of the server at addr.
func world(t *testing.T, addr string) variant.Env {
	return variant.Env{
		Redis: []redis.UniversalClient{connect(t, addr)},
		Clock: clock.Real{},
		Token: rand.Text,
		Wait:  func(context.Context, string, time.Duration) error { return nil }, // waits are over at once
	}
}

// newProduct returns a new name for a product.
func newProduct() string { return "{ov-" + rand.Text()[:6] + "}phone" }
