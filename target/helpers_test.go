package target

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"oversell/internal/child"
)

// needServer skips a test where there is no redis-server, unless everything is
// required, as in CI.
func needServer(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(serverName); err == nil {
		return
	}
	if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatalf("no %s on PATH, and OVERSELL_REQUIRE_ALL=1", serverName)
	}
	t.Skipf("no %s on PATH", serverName)
}

func mustOpen(t *testing.T, s Spec) *Target {
	t.Helper()
	if s.Target == "process" || strings.Contains(s.Target, "redis") {
		needServer(t)
	}
	tg, err := Open(t.Context(), s)
	if err != nil {
		t.Fatalf("open %v: %v", s, err)
	}
	closeLater(t, tg)
	return tg
}

func closeLater(t *testing.T, tg *Target) {
	t.Cleanup(func() {
		if err := tg.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// startServer is a redis-server with settings of the test's own.
func startServer(t *testing.T, args ...string) (addr string, c *child.Process) {
	t.Helper()
	needServer(t)
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	all := append([]string{"--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()}, args...)
	if !strings.Contains(strings.Join(args, " "), "--tls-port 0") {
		all = append(all, "--port", strconv.Itoa(port))
	} else {
		for i, a := range all {
			if a == "--tls-port" {
				all[i+1] = strconv.Itoa(port)
			}
		}
		all = append(all, "--port", "0")
	}
	c, err = child.Start(exec.Command(serverName, all...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	await(t, "a listener on "+addr, func() bool {
		if c.Gone() {
			t.Fatalf("redis-server %q: %s", all, reason(c.Output.String()))
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return addr, c
}

// await polls until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited 10s in vain for: %s", what)
		}
	}
}

// wantError checks class and text of an error.
func wantError(t *testing.T, err, class error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want one with %q", parts)
	}
	if !errors.Is(err, class) {
		t.Errorf("error %q is not of class %v", err, class)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not contain %q", err, p)
		}
	}
	if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %q has several lines or shows a password", err)
	}
}

// unable skips a test that this machine cannot run, and fails it where everything
// must run.
func unable(t *testing.T, err error) {
	t.Helper()
	if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatalf("OVERSELL_REQUIRE_ALL=1: %v", err)
	}
	t.Skip(err)
}
