//go:build linux

package instance

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
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
	"oversell/internal/errclass"
	"oversell/internal/freeport"
	"oversell/internal/servertest"
)

// startShimmed starts a server whose clock is moved by writing to the file offset.
func startShimmed(t *testing.T, args ...string) (c *redis.Client, offset string) {
	t.Helper()
	servertest.NeedServer(t)
	lib := mustShim(t)
	offset = filepath.Join(t.TempDir(), "offset")
	if err := writeOffset(offset, 0); err != nil {
		t.Fatal(err)
	}
	port, err := freeport.One()
	if err != nil {
		t.Fatal(err)
	}
	all := append([]string{"LD_PRELOAD=" + lib, offsetFileVar + "=" + offset, ServerName,
		"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", t.TempDir()}, args...)
	server, err := child.Start(exec.Command("env", all...))
	if err != nil {
		servertest.Unable(t, err)
	}
	t.Cleanup(func() {
		if server.Gone() {
			t.Errorf("the server with the shim died: %s", lastWords(server))
		}
		server.Kill()
	})
	c = redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	t.Cleanup(func() { c.Close() })
	servertest.Await(t, "an answer of the server with the shim", func() bool {
		return server.Gone() || c.Ping(t.Context()).Err() == nil
	})
	if server.Gone() {
		t.Fatalf("the server did not start: %s", lastWords(server))
	}
	return c, offset
}

func mustShim(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
	lib, err := Shim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func jump(t *testing.T, offset string, ahead time.Duration) {
	t.Helper()
	if err := writeOffset(offset, ahead); err != nil {
		t.Fatal(err)
	}
}

// wantAhead checks how far a server's clock is ahead, within a tolerance.
func wantAhead(t *testing.T, c *redis.Client, want time.Duration) {
	t.Helper()
	before := time.Now()
	got, err := c.Time(t.Context()).Result()
	after := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	if early, late := before.Add(want-time.Millisecond), after.Add(want+time.Millisecond); got.Before(early) || got.After(late) {
		t.Errorf("TIME says %v; want it between %v and %v", got, early, late)
	}
}

func TestAServersClockJumpsAtOnceAndBack(t *testing.T) {
	c, offset := startShimmed(t)
	for _, ahead := range []time.Duration{0, time.Minute, -time.Hour, 1500 * time.Millisecond, -999999999, 1000000001, 24 * 365 * time.Hour, 0} {
		jump(t, offset, ahead)
		wantAhead(t, c, ahead)
		script, err := c.Eval(t.Context(), "return redis.call('TIME')[1]", nil).Int64()
		if diff := script - time.Now().Add(ahead).Unix(); err != nil || diff < -1 || diff > 1 {
			t.Errorf("%v ahead: TIME in a script is %d s off (%v)", ahead, diff, err)
		}
	}
}

func TestAKeyExpiresByTheServersClock(t *testing.T) {
	c, offset := startShimmed(t)
	ctx := t.Context()
	if err := c.Set(ctx, "lease", "a", 10*time.Second).Err(); err != nil {
		t.Fatal(err)
	}
	jump(t, offset, 8*time.Second)
	if left := c.PTTL(ctx, "lease").Val(); left < time.Second || left > 2*time.Second {
		t.Errorf("8 s ahead, of a lease of 10 s there are left %v; want 1 s to 2 s", left)
	}
	jump(t, offset, 11*time.Second)
	if v, err := c.Get(ctx, "lease").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("11 s ahead, a key that lives 10 s is %q, %v", v, err)
	}
	if ok, err := c.SetNX(ctx, "lease", "b", 10*time.Second).Result(); !ok || err != nil {
		t.Errorf("SET NX after the jump: %v, %v", ok, err)
	}
	jump(t, offset, 0)
	if left := c.PTTL(ctx, "lease").Val(); left < 20*time.Second || left > 21*time.Second {
		t.Errorf("back 11 s, a lease of 10 s has left %v; want 20 s to 21 s", left)
	}
}

// TestAServerWorksOnAfterAJumpBack checks that a server still removes expired keys by itself after its clock was set back
// by an hour: it wakes up by the monotonic clock, which does not jump.
func TestAServerWorksOnAfterAJumpBack(t *testing.T) {
	c, offset := startShimmed(t)
	jump(t, offset, -time.Hour)
	if err := c.Set(t.Context(), "k", "v", 10*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	servertest.Await(t, "the end of a key that nobody reads", func() bool { return c.DBSize(t.Context()).Val() == 0 })
}

// TestAServerBearsJumpsUnderLoad lets the clock jump to and fro under load, with keys that expire, scripts that read the
// time, snapshots in forked processes and an append-only file. The server must neither die nor answer nonsense.
func TestAServerBearsJumpsUnderLoad(t *testing.T) {
	c, offset := startShimmed(t, "--appendonly", "yes", "--io-threads", "2", "--active-expire-effort", "10")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	commands := make([]int, 4)
	for i := range commands {
		wg.Go(func() { commands[i] = timedLoad(ctx, t, c, i) })
	}
	jumps := 0
	for ; ctx.Err() == nil; jumps++ {
		jump(t, offset, time.Duration(jumps%7-3)*37*time.Second)
		if jumps%50 == 0 {
			_ = c.BgSave(ctx).Err() // refused while another one is under way
		}
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	jump(t, offset, 0)
	wantAhead(t, c, 0)
	servertest.Await(t, "the end of the last snapshot", func() bool {
		return strings.Contains(c.Info(t.Context(), "persistence").Val(), "rdb_bgsave_in_progress:0")
	})
	if in := ParseInfo(c.Info(t.Context(), "persistence").Val()); in["rdb_last_bgsave_status"] != "ok" || in["rdb_last_save_time"] == "0" {
		t.Errorf("snapshots under the shim: %v", in)
	}
	t.Logf("%d jumps under %v commands", jumps, commands)
}

// timedLoad sends commands that depend on the time until ctx ends, and counts them.
func timedLoad(ctx context.Context, t *testing.T, c *redis.Client, client int) (n int) {
	for ; ctx.Err() == nil; n += 3 {
		key := fmt.Sprintf("key-%d-%d", client, n%1000)
		errs := []error{
			c.Set(ctx, key, n, time.Duration(1+n%100)*time.Millisecond).Err(),
			c.Eval(ctx, "redis.call('PEXPIRE', KEYS[1], 5) return redis.call('TIME')", []string{key}).Err(),
			c.PTTL(ctx, key).Err(),
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, redis.Nil) && ctx.Err() == nil {
				t.Errorf("under jumps: %v", err)
				return n
			}
		}
	}
	return n
}

func TestTheShimIsCompiledOnceAndWhole(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	paths, errs := make([]string, 4), make([]error, 4)
	var wg sync.WaitGroup
	for i := range paths {
		wg.Go(func() { paths[i], errs[i] = Shim(t.Context()) })
	}
	wg.Wait()
	if _, err := exec.LookPath("cc"); err != nil {
		servertest.Unable(t, err)
	}
	for i := range paths {
		if errs[i] != nil || paths[i] != paths[0] {
			t.Fatalf("shim = %q, %v; the first is %q", paths[i], errs[i], paths[0])
		}
	}
	files, err := os.ReadDir(filepath.Dir(paths[0]))
	if err != nil || len(files) != 1 {
		t.Errorf("left in the cache: %v (%v)", files, err)
	}
	t.Setenv("PATH", t.TempDir())
	if again, err := Shim(t.Context()); again != paths[0] || err != nil {
		t.Errorf("a second time without a compiler: %q, %v", again, err)
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	_, err := Shim(t.Context())
	servertest.WantError(t, err, errclass.ErrEnvironment, "compile the library that moves a server's clock: no C compiler was found on PATH (cc)")
}

func TestACompilerThatFailsIsQuoted(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "cc"), []byte("#!/bin/sh\necho dlfcn.h: no such file\necho more\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("PATH", bin)
	_, err := Shim(t.Context())
	servertest.WantError(t, err, errclass.ErrEnvironment, "exit status 1: dlfcn.h: no such file")
	if left, _ := filepath.Glob(filepath.Join(cache, "oversell", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTheShimWithoutACacheDirectory checks that, without a cache directory, the shim is built in the directory for temporary files,
// but never taken from a directory to which others can write.
func TestTheShimWithoutACacheDirectory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	t.Setenv("TMPDIR", t.TempDir())
	lib := mustShim(t)
	dir := filepath.Dir(lib)
	if filepath.Dir(dir) != os.TempDir() {
		t.Fatalf("the library is %q", lib)
	}
	if again, err := Shim(t.Context()); again != lib || err != nil {
		t.Errorf("a second time: %q, %v", again, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Shim(t.Context())
	servertest.WantError(t, err, errclass.ErrEnvironment, dir+" is not a directory that only we can write to")
}

// TestNoOffsetFileNoServer checks that a program does not start without its offset file: it would show the right time, and
// nobody would notice.
func TestNoOffsetFileNoServer(t *testing.T) {
	lib := mustShim(t)
	c, err := child.Start(exec.Command("env", "LD_PRELOAD="+lib, offsetFileVar+"="+filepath.Join(t.TempDir(), "none"), "true"))
	if err != nil {
		servertest.Unable(t, err)
	}
	<-c.Exited()
	if got, want := Reason(c.Output.String()), "clock shim: OVERSELL_CLOCK_OFFSET_FILE: No such file or directory"; got != want {
		t.Errorf("it says %q; want %q", got, want)
	}
}

func TestAnOffsetThatCannotBeWritten(t *testing.T) {
	err := writeOffset(filepath.Join(t.TempDir(), "none", "offset"), time.Second)
	servertest.WantError(t, err, errclass.ErrEnvironment, "set a server's clock: ", syscall.ENOENT.Error())
}
