package queueimpl_test

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/queueimpl"
	"oversell/queueimpl/queuetest"
	"oversell/server"
	"oversell/server/opentest"
	"oversell/variant"
)

// TestConformance runs the suite on every queue: on a real Redis with the real clock, and on the emulation with a virtual
// clock.
func TestConformance(t *testing.T) {
	t.Run("redis", func(t *testing.T) {
		target := startRedis(t)
		conform(t, queueimpl.Variants, func(t *testing.T) queuetest.Bench {
			return queuetest.Bench{
				Env:   func() variant.Env { return world(t, target, clock.Real{}) },
				Queue: newName(),
			}
		})
	})
	t.Run("embedded", func(t *testing.T) {
		variants := queueimpl.Variants
		if os.Getenv("OVERSELL_LONG") != "1" {
			variants = slices.DeleteFunc(slices.Clone(variants), func(v queueimpl.Variant) bool { return v.Name != "reliable" }) // the test on a real server shows more
		}
		conform(t, variants, func(t *testing.T) queuetest.Bench {
			clk, target := startEmbedded(t)
			return queuetest.Bench{
				Env:   func() variant.Env { return world(t, target, clk) },
				Queue: newName(),
				Pass:  clk.Advance,
			}
		})
	})
}

func conform(t *testing.T, variants []queueimpl.Variant, open func(*testing.T) queuetest.Bench) {
	for _, v := range variants {
		t.Run(v.Name, func(t *testing.T) { queuetest.Run(t, v, open) })
	}
}

// startRedis starts a redis-server for this test.
func startRedis(t *testing.T) *server.Target {
	t.Helper()
	return opentest.Open(t, server.Spec{Target: "process"})
}

// startEmbedded starts an emulation whose clock the test moves.
func startEmbedded(t *testing.T) (*clock.Virtual, *server.Target) {
	t.Helper()
	clk := clock.NewVirtual(time.Unix(1_700_000_000, 123_456_000))
	s, err := server.OpenEmbedded(clk, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return clk, s
}

// connect returns a client with a single connection, which is already open.
func connect(t *testing.T, target *server.Target) *redis.Client {
	t.Helper()
	c := target.Client(0, server.ConnOptions{PoolSize: 1}).(*redis.Client)
	t.Cleanup(func() { c.Close() })
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// world returns the Env of one client. A client that waits for a lock tries again after a short sleep by the real clock.
func world(t *testing.T, target *server.Target, clk clock.Clock) variant.Env {
	t.Helper()
	return variant.Env{
		Redis: []redis.UniversalClient{connect(t, target)},
		Clock: clk,
		Token: rand.Text,
		Wait: func(ctx context.Context, _ string, atMost time.Duration) error {
			return clock.Real{}.Sleep(ctx, min(atMost, time.Millisecond))
		},
	}
}

// newName returns a new name for a queue.
func newName() string { return "{ov-" + rand.Text()[:6] + "}mail" }
