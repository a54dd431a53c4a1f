package wire

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
)

// BenchmarkThroughput compares the rate of commands through the proxy with that of commands past it: GET and SET in turn
// on 50 connections. The ways alternate within one run, so that whatever else the machine does affects all of them. Every
// command is judged. The benchmark reports the rates and their ratio. copy-ratio is the ratio of a proxy that only
// copies, so the difference between the two ratios is the cost of the proxy's work.
func BenchmarkThroughput(b *testing.B) {
	for _, pipeline := range []int{1, 50} {
		b.Run(fmt.Sprintf("pipeline=%d", pipeline), func(b *testing.B) {
			addr, _ := servertest.Start(b)
			p := mustListen(b, Options{To: addr, Decide: passing})
			direct, proxied := newLoad(b, addr, pipeline), newLoad(b, p.Addr(), pipeline)
			copied := newLoad(b, copying(b, addr), pipeline)
			const round = 200 * time.Millisecond
			var past, through, copies float64
			n := 0
			for b.Loop() {
				past += direct.run(round)
				through += proxied.run(round)
				copies += copied.run(round)
				n++
			}
			b.ReportMetric(past/float64(n), "direct-ops/s")
			b.ReportMetric(through/float64(n), "proxied-ops/s")
			b.ReportMetric(through/past, "ratio")
			b.ReportMetric(copies/past, "copy-ratio")
		})
	}
}

// copying starts a proxy that only copies, and returns its address.
func copying(b *testing.B, to string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	pump := func(to, from net.Conn) {
		defer to.Close()
		buf := make([]byte, maxHeld)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			go pump(server, client)
			go pump(client, server)
		}
	}()
	return l.Addr().String()
}

// load is 50 clients that send commands without a pause.
type load struct {
	client   *redis.Client
	pipeline int
}

const loadClients = 50

func newLoad(b *testing.B, addr string, pipeline int) *load {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: loadClients, MinIdleConns: loadClients})
	b.Cleanup(func() { c.Close() })
	l := &load{client: c, pipeline: pipeline}
	l.run(50 * time.Millisecond) // opens the connections
	return l
}

// run sends commands for the duration d and returns commands per second.
func (l *load) run(d time.Duration) float64 {
	var wg sync.WaitGroup
	var commands atomic.Int64
	start := time.Now()
	for i := range loadClients {
		wg.Go(func() {
			key := fmt.Sprint("key:", i)
			n := 0
			for time.Since(start) < d {
				n += l.once(key, n)
			}
			commands.Add(int64(n))
		})
	}
	wg.Wait()
	return float64(commands.Load()) / time.Since(start).Seconds()
}

func (l *load) once(key string, n int) int {
	ctx := context.Background()
	if l.pipeline > 1 {
		l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range l.pipeline / 2 {
				p.Set(ctx, key, "value", 0)
				p.Get(ctx, key)
			}
			return nil
		})
		return l.pipeline
	}
	if n%2 == 0 {
		l.client.Set(ctx, key, "value", 0)
	} else {
		l.client.Get(ctx, key)
	}
	return 1
}
