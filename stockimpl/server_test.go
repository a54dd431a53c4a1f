package stockimpl_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"oversell/clock"
	"oversell/variant"
)

// startRedis starts a redis-server for this test and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
			t.Fatalf("OVERSELL_REQUIRE_ALL=1, and there is no redis-server: %v", err)
		}
		t.Skipf("no redis-server: %v", err)
	}
	for try := range 3 {
		addr, err := launch(t, program)
		if err == nil {
			return addr
		}
		t.Logf("redis-server, attempt %d: %v", try+1, err)
	}
	t.Fatal("redis-server did not start")
	return ""
}

// launch runs a redis-server on a free port until the test ends.
func launch(t *testing.T, program string) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr = l.Addr().String()
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()

	cmd := exec.Command(program, "--port", strconv.Itoa(port), "--save", "", "--appendonly", "no", "--bind", "127.0.0.1")
	cmd.Dir = t.TempDir()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var log strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if !strings.Contains(lines.Text(), "Ready to accept connections") {
			continue
		}
		go io.Copy(io.Discard, out)
		return addr, ours(t, addr, cmd.Process.Pid)
	}
	return "", fmt.Errorf("it ended before it was ready:\n%s", log.String())
}

// ours checks that the server that answers is the child process, not another server on the same port.
func ours(t *testing.T, addr string, pid int) error {
	c := connect(t, addr)
	if err := c.Ping(t.Context()).Err(); err != nil {
		return err
	}
	info, err := c.Info(t.Context(), "server").Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return fmt.Errorf("%s answers, but is not process %d", addr, pid)
	}
	return nil
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
