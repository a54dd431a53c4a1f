package mux

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
)

var releaseScript = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// cycle takes a lock of its own, reads and writes, and releases: four commands.
func cycle(ctx context.Context, c redis.UniversalClient, key string) error {
	c.SetArgs(ctx, "l"+key, key, redis.SetArgs{Mode: "NX", TTL: 10 * time.Second})
	c.Get(ctx, "d"+key)
	c.Set(ctx, "d"+key, 1, 0)
	return releaseScript.Run(ctx, c, []string{"l" + key}, key).Err()
}

// BenchmarkCycle compares, on keys that are spread, what drives many clients. commands/s is
// what each reaches, and "x redis-benchmark" is that as a multiple of redis-benchmark -c 50
// with GET in the same session.
func BenchmarkCycle(b *testing.B) {
	addr := startFor(b)
	base := redisBenchmark(b, addr)
	for _, clients := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("mux/%d", clients), func(b *testing.B) {
			m := start(b, Options{Workers: 2}, addr)
			measure(b, base, func(left *atomic.Int64) {
				run(b, m, clients, func(i int, w *Worker) { cycles(b, w.Context(), w.Redis()[0], i, left) })
			})
		})
		b.Run(fmt.Sprintf("goroutine/%d", clients), func(b *testing.B) {
			c := dial(100, addr)()[0]
			defer c.Close()
			measure(b, base, func(left *atomic.Int64) { goroutines(b, clients, c, left) })
		})
		b.Run(fmt.Sprintf("autopipeline/%d", clients), func(b *testing.B) {
			c := dial(100, addr)()[0].(*redis.Client)
			defer c.Close()
			auto, err := c.AutoPipeline()
			if err != nil {
				b.Fatal(err)
			}
			measure(b, base, func(left *atomic.Int64) {
				goroutinesOn(b, clients, func(ctx context.Context, key string) error { return autoCycle(ctx, auto, key) }, left)
			})
		})
	}
}

// startFor starts a redis-server for a benchmark.
func startFor(b *testing.B) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(addr)
	server, err := child.Start(exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", b.TempDir()))
	if err != nil {
		b.Skip(err)
	}
	b.Cleanup(server.Kill)
	c := dial(1, addr)()[0]
	defer c.Close()
	for deadline := time.Now().Add(10 * time.Second); c.Ping(context.Background()).Err() != nil; {
		if time.Now().After(deadline) {
			b.Fatalf("redis-server does not answer: %s", server.Output.String())
		}
	}
	return addr
}

// autoCycle is cycle by what go-redis calls an AutoPipeliner.
func autoCycle(ctx context.Context, c *redis.AutoPipeliner, key string) error {
	c.SetArgs(ctx, "l"+key, key, redis.SetArgs{Mode: "NX", TTL: 10 * time.Second})
	c.Get(ctx, "d"+key)
	c.Set(ctx, "d"+key, 1, 0)
	return releaseScript.Run(ctx, c, []string{"l" + key}, key).Err()
}

// measure runs b.N cycles.
func measure(b *testing.B, base float64, work func(left *atomic.Int64)) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began := time.Now()
	work(&left)
	rate := 4 * float64(b.N) / time.Since(began).Seconds()
	b.ReportMetric(rate, "commands/s")
	if base > 0 {
		b.ReportMetric(rate/base, "x_redis-benchmark")
	}
}

func cycles(b *testing.B, ctx context.Context, c redis.UniversalClient, i int, left *atomic.Int64) {
	for key := strconv.Itoa(i); left.Add(-1) >= 0; {
		if err := cycle(ctx, c, key); err != nil {
			b.Error(err)
			return
		}
	}
}

func goroutines(b *testing.B, clients int, c redis.UniversalClient, left *atomic.Int64) {
	goroutinesOn(b, clients, func(ctx context.Context, key string) error { return cycle(ctx, c, key) }, left)
}

func goroutinesOn(b *testing.B, clients int, once func(ctx context.Context, key string) error, left *atomic.Int64) {
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for key := strconv.Itoa(i); left.Add(-1) >= 0; {
				if err := once(context.Background(), key); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

var perSecond = regexp.MustCompile(`([0-9.]+) requests per second`)

// redisBenchmark is how many GETs a second redis-benchmark reaches with 50 connections; 0 if
// it is not installed.
func redisBenchmark(b *testing.B, addr string) float64 {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	out, err := exec.Command("redis-benchmark", "-h", host, "-p", port, "-c", "50", "-n", "200000", "-t", "get", "-q").Output()
	if err != nil {
		b.Logf("redis-benchmark: %v", err)
		return 0
	}
	all := perSecond.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		b.Fatalf("redis-benchmark said %q", out)
	}
	rate, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}
