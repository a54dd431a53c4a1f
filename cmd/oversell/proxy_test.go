package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/reports"
	"oversell/server"
	"oversell/server/opentest"
)

// proxy is a running oversell proxy in front of a redis-server of its own.
type proxy struct {
	addr   string
	server *redis.Client // connected directly, not through the proxy
	stop   context.CancelFunc
	lines  *bufio.Scanner
	code   chan int
}

func startProxy(t *testing.T, args ...string) *proxy {
	t.Helper()
	servertest.NeedServer(t)
	redisServer := opentest.Open(t, server.Spec{Target: string(server.Process)})
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	out, in := io.Pipe()
	p := &proxy{server: client(t, redisServer.Addrs[0]), stop: stop, lines: bufio.NewScanner(out), code: make(chan int, 1)}
	go func() {
		var stderr strings.Builder
		code := execute(ctx, append([]string{"proxy", "--to", redisServer.Addrs[0]}, args...), in, &stderr)
		fmt.Fprint(in, stderr.String())
		in.Close()
		p.code <- code
	}()
	first := p.line(t)
	m := regexp.MustCompile(`^listening on (127\.0\.0\.1:\d+) for \S+, seed \d+; Ctrl-C ends it$`).FindStringSubmatch(first)
	if m == nil {
		t.Fatalf("the proxy says %q", first)
	}
	p.addr = m[1]
	return p
}

func (p *proxy) line(t *testing.T) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the proxy says nothing more: %v", p.lines.Err())
	}
	return p.lines.Text()
}

// end stops the proxy and returns its remaining output and its exit code.
func (p *proxy) end(t *testing.T) (rest []string, code int) {
	t.Helper()
	p.stop()
	for p.lines.Scan() {
		rest = append(rest, p.lines.Text())
	}
	return rest, <-p.code
}

// client returns a client with one connection that never retries.
func client(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: 1, DisableIdentity: true, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestProxyLosesAReply(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--fault", "drop-reply DECR nth 2", "--fault", "drop-request key never:* always", "--seed", "7")
	c := client(t, p.addr)
	for i, want := range []bool{true, false, true} {
		if err := c.DecrBy(t.Context(), "stock", 1).Err(); (err == nil) != want {
			t.Errorf("DECRBY %d: %v; it should succeed: %v", i, err, want)
		}
	}
	if left, err := p.server.Get(t.Context(), "stock").Int(); left != -3 || err != nil {
		t.Errorf("the stock is %d, %v; want all three taken", left, err)
	}
	if line := p.line(t); !regexp.MustCompile(`^ +\d+\.\d{3}s  drop-reply DECR nth 2: connection \d+, DECRBY stock$`).MatchString(line) {
		t.Errorf("the injection is told as %q", line)
	}
	rest, code := p.end(t)
	want := []string{"drop-reply DECR nth 2: fired once", "drop-request key never:* always: never fired"}
	if strings.Join(rest, "\n") != strings.Join(want, "\n") || code != reports.ExitInconclusive {
		t.Errorf("it ends with %d and says\n%s\nwant 3 and\n%s", code, strings.Join(rest, "\n"), strings.Join(want, "\n"))
	}
}

// TestProxyStrikesSeveral checks that several kinds of faults on the wire affect a real client.
func TestProxyStrikesSeveral(t *testing.T) {
	t.Parallel()
	p := startProxy(t,
		"--fault", "drop-request SET key a once", "--fault", "reset after SET key b once", "--fault", "late SET key c 50ms once",
		"--fault", "delay SET key d 50ms once", "--fault", "trickle GET key d 1ms once", "--fault", "reset SET key f once")
	c := client(t, p.addr)
	for _, step := range []struct {
		key           string
		fails, counts bool
	}{
		{"a", true, false}, {"b", true, true}, {"c", true, true}, {"d", false, true}, {"e", false, true}, {"f", true, false},
	} {
		err := c.Set(t.Context(), step.key, 1, time.Minute).Err()
		if (err != nil) != step.fails {
			t.Errorf("SET %s: %v; it should fail: %v", step.key, err, step.fails)
		}
		if step.key == "c" {
			servertest.Await(t, "the late SET has arrived", func() bool { return p.server.Exists(t.Context(), "c").Val() == 1 })
		}
		if n := p.server.Exists(t.Context(), step.key).Val(); (n == 1) != step.counts {
			t.Errorf("SET %s counts: %v, having failed with %v; want %v", step.key, n == 1, err, step.counts)
		}
	}
	if v, err := c.Get(t.Context(), "d").Result(); v != "1" || err != nil {
		t.Errorf("a reply that trickles is %q, %v", v, err)
	}
	for range 6 {
		p.line(t)
	}
	if rest, code := p.end(t); code != reports.ExitPass || len(rest) != 6 {
		t.Errorf("it ends with %d and says %q; want 0 and six counts", code, rest)
	}
}

func TestProxyCuts(t *testing.T) {
	t.Parallel()
	p := startProxy(t, "--fault", "cut for 200ms at 300ms", "--fault", "cut requests for 10ms at 1ms")
	c := client(t, p.addr)
	ok, slowest := 0, time.Duration(0)
	for end := time.Now().Add(700 * time.Millisecond); time.Now().Before(end); {
		began := time.Now()
		if err := c.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		ok, slowest = ok+1, max(slowest, time.Since(began))
	}
	if slowest < 150*time.Millisecond || ok < 10 {
		t.Errorf("of %d pings the slowest took %v; want one to wait for the end of the cut", ok, slowest)
	}
	first, second := p.line(t), p.line(t)
	if !strings.HasSuffix(first, "s  cut requests for 10ms at 1ms") || !strings.HasSuffix(second, "s  cut for 200ms at 300ms") {
		t.Errorf("the cuts are told as %q and %q", first, second)
	}
	if rest, code := p.end(t); code != reports.ExitPass {
		t.Errorf("it ends with %d and says %q", code, rest)
	}
}

func TestProxyWithoutFaultsPassesEverything(t *testing.T) {
	t.Parallel()
	p := startProxy(t)
	c := client(t, p.addr)
	big := strings.Repeat("x", 1<<20)
	if err := c.Set(t.Context(), "big", big, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "big").Result(); got != big || err != nil {
		t.Errorf("a megabyte comes back as %d bytes, %v", len(got), err)
	}
	if rest, code := p.end(t); code != reports.ExitPass || len(rest) != 0 {
		t.Errorf("it ends with %d and says %q", code, rest)
	}
}

func TestProxyRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--fault", "drop-rply DECR"}, reports.ExitUsage, `"drop-rply" (at position 1) is not a fault: did you mean drop-reply`},
		{[]string{"--fault", "crash 1%"}, reports.ExitUsage, "it hits a client, and a proxy injects faults on the wire: delay, drop-request,"},
		{[]string{"--fault", "failover"}, reports.ExitUsage, "it hits a server, and a proxy"},
		{[]string{"--fault", "delay holder 1s"}, reports.ExitUsage, "does not know who is a holder"},
		{[]string{"--fault", "delay in buy 1s"}, reports.ExitUsage, "leave out in buy"},
		{[]string{"--fault", "delay client 2 1s"}, reports.ExitUsage, "who client 2 is"},
		{[]string{"--fault", "delay node 2 1s"}, reports.ExitUsage, "has one server"},
		{[]string{"--to", "192.0.2.1:6379"}, reports.ExitUsage, "--allow-remote"},
		{[]string{"--to", "127.0.0.1"}, reports.ExitUsage, `--to "127.0.0.1" must be like 127.0.0.1:6379`},
		{[]string{"--to", "redis://127.0.0.1:6379"}, reports.ExitUsage, "must be host:port"},
		{[]string{"--listen", ":7000"}, reports.ExitUsage, "opens the server to other machines"},
		{[]string{"--listen", "0.0.0.0:7000"}, reports.ExitUsage, "--allow-remote"},
		{[]string{"--listen", taken.Addr().String()}, reports.ExitEnvironment, "address already in use"},
		{[]string{"more"}, reports.ExitUsage, "more"},
	} {
		code, stdout, stderr := cli(t, append([]string{"proxy"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("%q exits with %d and says %q, %q; want %d and one line that says %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}
