package mux

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/cputime"
	"oversell/internal/servertest"
)

var releaseScript = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

// cycle acquires a lock of its own, reads, writes, and releases: four commands.
func cycle(ctx context.Context, c redis.UniversalClient, key string) error {
	c.SetArgs(ctx, "l"+key, key, redis.SetArgs{Mode: "NX", TTL: 10 * time.Second})
	c.Get(ctx, "d"+key)
	c.Set(ctx, "d"+key, 1, 0)
	return releaseScript.Run(ctx, c, []string{"l" + key}, key).Err()
}

// BenchmarkCycle compares ways of driving many clients, on keys that are spread. commands/s is the rate of each;
// "x_redis-benchmark" is that rate as a multiple of redis-benchmark -c 50 with the same four commands in the same
// session; "client-cpu-us/command" is the processor time of the client's side, and "service-p99-ms" how long a command took
// from its call to its reply, for 99 of 100 commands.
func BenchmarkCycle(b *testing.B) {
	addr, _ := servertest.Start(b)
	idle := memory() // the stacks of clients that have ended are kept
	var base float64
	for _, pipeline := range []int{1, 16} {
		b.Run(fmt.Sprintf("redis-benchmark/50-connections-pipeline-%d", pipeline), func(b *testing.B) {
			rate, cpu := redisBenchmark(b, addr, pipeline)
			if pipeline == 1 {
				base = rate
			}
			b.ReportMetric(0, "ns/op") // it has its own length
			tell(b, rate, base, cpu)
		})
	}
	for _, clients := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("mux/%d", clients), func(b *testing.B) {
			m := start(b, Options{Workers: 2}, addr)
			var most atomic.Uint64
			measure(b, base, func(left *atomic.Int64) {
				run(b, m, clients, func(i int, w *Worker) {
					cycles(b, w.Context(), w.Redis()[0], i, left)
					if most.Load() == 0 { // nearly all others are still there
						most.CompareAndSwap(0, memory())
					}
				})
			})
			b.ReportMetric(float64(most.Load()-idle)/1024/float64(clients), "KiB/client")
			p50, p99 := m.Widths()
			b.ReportMetric(float64(p50)/1e6, "service-p50-ms")
			b.ReportMetric(float64(p99)/1e6, "service-p99-ms")
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

// autoCycle is cycle on go-redis's AutoPipeliner.
func autoCycle(ctx context.Context, c *redis.AutoPipeliner, key string) error {
	c.SetArgs(ctx, "l"+key, key, redis.SetArgs{Mode: "NX", TTL: 10 * time.Second})
	c.Get(ctx, "d"+key)
	c.Set(ctx, "d"+key, 1, 0)
	return releaseScript.Run(ctx, c, []string{"l" + key}, key).Err()
}

// memory returns the memory of objects, garbage among them, and of stacks.
func memory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() + s[1].Value.Uint64()
}

// measure runs b.N cycles and reports their rate and cost.
func measure(b *testing.B, base float64, work func(left *atomic.Int64)) {
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	began, cpu := time.Now(), cputime.Own()
	work(&left)
	commands := 4 * float64(b.N)
	used := cputime.Own() - cpu
	tell(b, commands/time.Since(began).Seconds(), base, used.Seconds()/commands)
}

// tell reports the commands per second, and the processor time of one in microseconds.
func tell(b *testing.B, rate, base, cpu float64) {
	b.ReportMetric(rate, "commands/s")
	b.ReportMetric(cpu*1e6, "client-cpu-us/command")
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

// redisBenchmark returns how many commands of the cycle redis-benchmark executes in a second with 50 connections, one
// kind after the other, and its processor time for one command in seconds.
func redisBenchmark(b *testing.B, addr string, pipeline int) (rate, cpu float64) {
	const each = 100_000
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	c := dial(1, addr)()[0]
	defer c.Close()
	sha, err := releaseScript.Load(context.Background(), c).Result()
	if err != nil {
		b.Fatal(err)
	}
	before, seconds := cputime.Children(), 0.0
	kinds := [][]string{
		{"SET", "l__rand_int__", "x", "NX", "PX", "10000"}, {"GET", "d__rand_int__"}, {"SET", "d__rand_int__", "1"},
		{"EVALSHA", sha, "1", "l__rand_int__", "x"},
	}
	for _, kind := range kinds {
		args := append([]string{"-h", host, "-p", port, "-c", "50", "-r", "10000", "-n", strconv.Itoa(each), "-P", strconv.Itoa(pipeline), "-q"}, kind...)
		out, err := exec.Command("redis-benchmark", args...).Output()
		if err != nil {
			b.Skipf("redis-benchmark: %v", err)
		}
		all := perSecond.FindAllSubmatch(out, -1)
		if len(all) == 0 {
			b.Fatalf("redis-benchmark said %q", out)
		}
		n, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
		if err != nil {
			b.Fatal(err)
		}
		seconds += each / n
	}
	commands := float64(each * len(kinds))
	return commands / seconds, (cputime.Children() - before).Seconds() / commands
}
