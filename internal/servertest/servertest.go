// Package servertest gives tests Redis servers, and decides what tests do without one.
package servertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oversell/internal/child"
	"oversell/internal/freeport"
)

const serverName = "redis-server"

// NeedServer skips a test if there is no redis-server, unless everything is required, as in CI.
func NeedServer(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(serverName); err == nil {
		return
	}
	if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatalf("no %s on PATH, and OVERSELL_REQUIRE_ALL=1", serverName)
	}
	t.Skipf("no %s on PATH", serverName)
}

// Start starts a redis-server with settings of the test's own, until the test ends.
func Start(t testing.TB, args ...string) (addr string, c *child.Process) {
	t.Helper()
	NeedServer(t)
	port, err := freeport.One()
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
	Await(t, "a listener on "+addr, func() bool {
		if c.Gone() {
			t.Fatalf("redis-server %q: %s", all, c.Output.String())
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return addr, c
}

// Await polls until a condition holds.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited a minute in vain for: %s", what)
		}
	}
}

// WantError checks class and text of an error.
func WantError(t *testing.T, err, class error, parts ...string) {
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
	for _, bad := range []string{"\n", "secret", "correct-horse"} { // the passwords of the tests
		if strings.Contains(err.Error(), bad) {
			t.Errorf("error %q contains %q", err, bad)
		}
	}
}

// Unable skips a test that this machine cannot run, and fails it if everything must run.
func Unable(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("OVERSELL_REQUIRE_ALL") == "1" {
		t.Fatalf("OVERSELL_REQUIRE_ALL=1: %v", err)
	}
	t.Skip(err)
}

// Python returns the path of the interpreter that python3 starts, or skips the test. With pyenv, python3 is a shell script
// that takes five times as long to start as the interpreter itself.
func Python(t testing.TB) string {
	t.Helper()
	path, err := python()
	if err != nil {
		Unable(t, err)
	}
	return path
}

var python = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(path)), err
})

// Image returns the image that the tests use: the one that REDIS_IMAGE names, or else one built from the module's
// directory image.
func Image(t *testing.T) string {
	t.Helper()
	if image := os.Getenv("REDIS_IMAGE"); image != "" {
		return image
	}
	if err := BuildImage(); err != nil {
		Unable(t, err)
	}
	return localImage
}

const localImage = "oversell-redis:local"

// BuildImage builds the default image of the tests.
var BuildImage = sync.OnceValue(func() error {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	out, err := exec.Command(filepath.Join(strings.TrimSpace(string(dir)), "image", "build.sh"), localImage).CombinedOutput()
	if err != nil {
		return fmt.Errorf("image/build.sh: %w: %s", err, out)
	}
	return nil
})
