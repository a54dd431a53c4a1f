package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server/instance"
)

func TestTwoThousandConnections(t *testing.T) {
	const n = 2000
	tg := mustOpen(t, Spec{Target: "process"})
	if err := tg.Fits(n); err != nil {
		servertest.Unable(t, err)
	}
	before := heap()
	clients := make([]redis.UniversalClient, n)
	for i := range clients {
		clients[i] = tg.Client(0, ConnOptions{PoolSize: 1})
	}
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	begin := time.Now()
	if err := Warm(t.Context(), 1, clients...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d connections in %v, %d KiB each of our heap; the server holds %d KiB", n, time.Since(begin), (heap()-before)/n>>10, residentKiB(tg.PID(0)))
	begin = time.Now()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			if err := c.Incr(t.Context(), "n").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("a thundering start of all took %v", time.Since(begin))
	if got := clients[0].Get(t.Context(), "n").Val(); got != strconv.Itoa(n) {
		t.Errorf("%s increments arrived; want %d", got, n)
	}
	for i, c := range clients {
		if s := c.PoolStats(); s.TotalConns != 1 || s.Misses != 1 {
			t.Fatalf("client %d has %d connections after %d dials; want the one that was opened in advance", i, s.TotalConns, s.Misses)
		}
	}
}

func TestWarmFillsAPool(t *testing.T) {
	for _, kind := range []string{"embedded", "process"} {
		tg := mustOpen(t, Spec{Target: kind})
		c := tg.Client(0, ConnOptions{PoolSize: 200})
		defer c.Close()
		for _, n := range []int{50, 0, 1000} {
			if err := Warm(t.Context(), n, c); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			want := uint32(200)
			if n == 50 {
				want = 50
			}
			if s := c.PoolStats(); s.TotalConns != want || s.IdleConns != want {
				t.Errorf("%s, Warm(%d): %d connections, %d idle; want %d", kind, n, s.TotalConns, s.IdleConns, want)
			}
		}
	}
}

func TestWarmSaysWhatIsMissing(t *testing.T) {
	addr, _ := servertest.Start(t, "--maxclients", "20")
	tg := mustOpen(t, Spec{Target: "redis://" + addr})
	servertest.WantError(t, tg.Fits(21), ErrEnvironment, "accepts only 20")
	if err := tg.Fits(20); err != nil {
		t.Error(err)
	}
	c := tg.Client(0, ConnOptions{PoolSize: 40})
	defer c.Close()
	servertest.WantError(t, Warm(t.Context(), 0, c), ErrEnvironment, "accept", "no more clients", "maxclients")

	if limit := fileLimit(); limit > 0 {
		servertest.WantError(t, tg.Fits(limit), ErrEnvironment, "this process may have only "+strconv.Itoa(limit), "ulimit -n")
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": addr}})
	defer ring.Close()
	servertest.WantError(t, Warm(t.Context(), 0, ring), ErrUsage, "a *redis.Ring has no pool that is known here")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Warm(ctx, 0, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Warm with a cancelled context = %v", err)
	}
}

func TestWarmReportsTheFileLimit(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "process"})
	err := explainWarm(tg.Addrs[0], os.NewSyscallError("socket", syscall.EMFILE))
	servertest.WantError(t, err, ErrEnvironment, "may open only "+strconv.Itoa(fileLimit())+" files")
}

// TestTheDriverDoesNotRepeatCommands checks that a command that was sent but not answered is not sent again. A second
// client, with the driver's default setting, does so and shows that the test would notice.
func TestTheDriverDoesNotRepeatCommands(t *testing.T) {
	var incremented atomic.Int32
	addr, _ := listen(t, func(c net.Conn) {
		r := bufio.NewReader(c)
		for {
			line, err := r.ReadString('\n')
			switch word := strings.ToLower(strings.TrimSpace(line)); {
			case err != nil:
				return
			case word == "hello":
				fmt.Fprint(c, "-ERR unknown command\r\n") // like an old server
			case word == "incr":
				incremented.Add(1)
				c.Close()
				return
			}
		}
	})
	for _, retries := range []int{instance.Options(addr, ConnOptions{}).MaxRetries, 0} {
		incremented.Store(0)
		o := instance.Options(addr, ConnOptions{})
		o.MaxRetries = retries
		c := redis.NewClient(o)
		defer c.Close()
		if err := c.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("no error from a server that hung up")
		}
		if got := incremented.Load(); (got == 1) != (retries == -1) {
			t.Errorf("MaxRetries %d: the server executed the command %d times", retries, got)
		}
	}
}

// TestAFullPoolQueues checks that a command that waits for a connection of the pool waits until one is free, and gives up
// only at its deadline.
func TestAFullPoolQueues(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "embedded"})
	c := tg.Client(0, ConnOptions{PoolSize: 1, Timeout: 10 * time.Millisecond})
	defer c.Close()
	held := c.(*redis.Client).Conn()
	defer held.Close()
	if err := held.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := c.Ping(ctx).Err(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: %v", err)
	}
	answered := make(chan error)
	go func() { answered <- c.Ping(t.Context()).Err() }()
	servertest.Await(t, "the command to queue", func() bool { return c.PoolStats().PendingRequests > 0 })
	held.Close()
	if err := <-answered; err != nil {
		t.Errorf("after the connection came back: %v", err)
	}
}

func TestOptionsBelongToTheCaller(t *testing.T) {
	addr, _ := servertest.Start(t)
	tg := mustOpen(t, Spec{Target: "redis://" + addr + "/2"})
	tg.Options(0, ConnOptions{}).Addr = "127.0.0.1:1" // the address of a proxy, for example
	if o := tg.Options(0, ConnOptions{}); o.Addr != addr || o.DB != 2 {
		t.Errorf("options of the target were changed: %s, database %d", o.Addr, o.DB)
	}
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func residentKiB(pid int) int {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, _ := strconv.Atoi(strings.Fields(rest)[0])
	return kib
}
