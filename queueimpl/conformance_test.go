package queueimpl_test

import (
	"crypto/rand"
	"os"
	"slices"
	"testing"

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
				Env:   func() variant.Env { return opentest.Env(t, target, clock.Real{}) },
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
			clk, target := opentest.Virtual(t)
			return queuetest.Bench{
				Env:   func() variant.Env { return opentest.Env(t, target, clk) },
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

// connect returns a client with a single connection, which is open.
func connect(t *testing.T, target *server.Target) *redis.Client {
	t.Helper()
	return opentest.Env(t, target, clock.Real{}).Redis[0].(*redis.Client)
}

// newName returns a new name for a queue.
func newName() string { return "{ov-" + rand.Text()[:6] + "}mail" }
