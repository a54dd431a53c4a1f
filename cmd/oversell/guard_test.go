package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/database"
	"oversell/database/databasetest"
	"oversell/internal/child"
	"oversell/internal/servertest"
	"oversell/server"
)

// somebodysServer starts a redis-server that does not belong to the program, with a password and settings of its own.
// With --replicaof in args it is a replica.
func somebodysServer(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	servertest.NeedServer(t)
	for range 5 { // another process may take the port
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := l.Addr().String()
		l.Close()
		_, port, _ := net.SplitHostPort(addr)
		redisServer, err := child.Start(exec.Command("redis-server", append([]string{
			"--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir(), "--requirepass", password, "--masterauth", password,
			"--maxmemory", "500mb", "--maxmemory-policy", "volatile-lfu", "--maxmemory-samples", "7", "--repl-diskless-sync-delay", "0",
		}, args...)...))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(redisServer.Kill)
		c := redis.NewClient(&redis.Options{Addr: addr, Password: password, MaxRetries: -1, ReadTimeout: 200 * time.Millisecond, ContextTimeoutEnabled: true})
		t.Cleanup(func() { c.Close() })
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if in, err := c.Info(t.Context(), "server").Result(); err == nil && strings.Contains(in, fmt.Sprintf("process_id:%d\r\n", redisServer.PID())) {
				return c
			}
		}
	}
	t.Fatal("redis-server did not start")
	return nil
}

const password = "correct-horse"

func urlOf(c *redis.Client) string { return "redis://:" + password + "@" + c.Options().Addr }

// stateOf returns what must not change: settings, data, and replication.
func stateOf(ctx context.Context, c *redis.Client) (map[string]string, error) {
	state, err := c.ConfigGet(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if state["key "+key], err = c.Dump(ctx, key).Result(); err != nil {
			return nil, err
		}
	}
	text, err := c.Info(ctx, "replication").Result()
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if slices.Contains([]string{"role", "master_host", "master_port", "connected_slaves"}, name) {
			state[name] = value
		}
	}
	return state, nil
}

// settled waits until a server answers, and returns its state.
func settled(t *testing.T, c *redis.Client) (state map[string]string) {
	t.Helper()
	servertest.Await(t, "the server answers", func() (ok bool) {
		var err error
		state, err = stateOf(t.Context(), c)
		return err == nil
	})
	return state
}

// wantState requires that a server is as it was, or is so soon: a replica takes a moment to connect again.
func wantState(t *testing.T, c *redis.Client, was map[string]string) {
	t.Helper()
	left := []string{"it does not answer"}
	for end := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is, err := stateOf(t.Context(), c); err == nil {
			left = different(was, is)
		}
	}
	if len(left) > 0 {
		t.Errorf("the server is not as it was: %s", strings.Join(left, "\n"))
	}
}

func different(was, is map[string]string) (names []string) {
	for name := range maps.Keys(was) {
		if is[name] != was[name] {
			names = append(names, fmt.Sprintf("%s: %.60q, was %.60q", name, is[name], was[name]))
		}
	}
	for name := range maps.Keys(is) {
		if _, known := was[name]; !known {
			names = append(names, name+" is new")
		}
	}
	slices.Sort(names)
	return names
}

// TestServersOfOthersAreLeftAsTheyWere checks that the effects of server faults on a server at an address are undone,
// however the program ends, and that no key of the run is left.
func TestServersOfOthersAreLeftAsTheyWere(t *testing.T) {
	withoutMemory := func(ctx context.Context, c *redis.Client) bool {
		return c.ConfigGet(ctx, "maxmemory").Val()["maxmemory"] == "1"
	}
	readOnly := func(ctx context.Context, c *redis.Client) bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "role:slave")
	}
	paused := func(ctx context.Context, c *redis.Client) bool { return c.Ping(ctx).Err() != nil }
	begun := func(context.Context, *redis.Client) bool { return true }
	breaks := []struct {
		sentence string
		fired    func(context.Context, *redis.Client) bool
	}{
		{"oom for 60s", withoutMemory},
		{"read-only for 60s", readOnly},
		{"client-pause 60s", paused},
		{"oom for 50ms every 120ms", withoutMemory},
		{"read-only for 50ms every 120ms", readOnly},
		{"client-pause 50ms every 120ms", begun},
		{"client-kill every 50ms", begun},
		{"script-flush every 20ms", begun},
	}
	signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGINT}
	kills := 10
	if os.Getenv("OVERSELL_LONG") == "1" {
		kills = 200
	}
	random := rand.New(rand.NewPCG(7, 7))
	for i := range kills {
		broken, signal := breaks[i%len(breaks)], signals[(i+i/len(signals))%len(signals)]
		if kills < len(breaks)*len(signals) && i < 3 {
			signal = syscall.SIGKILL
		}
		sentence := broken.sentence
		later := time.Duration(random.IntN(400)) * time.Millisecond
		t.Run(fmt.Sprintf("%d %v %s", i+1, signal, sentence), func(t *testing.T) {
			t.Parallel()
			c := somebodysServer(t)
			ctx := t.Context()
			for n := range 20 {
				c.Set(ctx, "theirs"+strconv.Itoa(n), strings.Repeat("x", n), 0)
			}
			if i%4 == 3 { // with a replica
				host, port, _ := net.SplitHostPort(c.Options().Addr)
				r := somebodysServer(t, "--replicaof", host+" "+port)
				servertest.Await(t, "the replica is there", func() bool {
					return strings.Contains(r.Info(ctx, "replication").Val(), "master_link_status:up")
				})
			}
			was := settled(t, c)
			dir := filepath.Join(t.TempDir(), "runs")
			cmd, out := process(t, "run", "--target", urlOf(c), "--scenario", "mutex", "--lock", "lua-release", "--clients", "8", "--duration", "1h", "--fault", sentence, "--out", dir)
			if i%10 != 9 {
				servertest.Await(t, "the run has begun", func() bool {
					_, err := os.Stat(filepath.Join(dir, "01-mutex-lua-release", "history.bin"))
					return err == nil
				})
			}
			if i%10 != 9 {
				servertest.Await(t, "the fault has fired", func() bool { return broken.fired(ctx, c) })
			}
			time.Sleep(later) // signal at a random moment
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatalf("it ended before: %v\n%s", err, out)
			}
			begin := time.Now()
			awaitFamily(t, cmd)
			wantState(t, c, was)
			t.Logf("as it was after %v", time.Since(begin).Round(time.Millisecond))
			if _, err := os.Stat(dir); err != nil {
				return // the program was killed before it made the directory
			}
			for _, file := range under(t, dir) {
				if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte(password)) {
					t.Errorf("%s holds the password (%v)", file, err)
				}
			}
			if bytes.Contains(out.Bytes(), []byte(password)) {
				t.Errorf("it prints the password: %s", out)
			}
		})
	}
}

// TestClaimsLeaveServersOfOthersAsTheyWere checks the same of claims, which write keys besides those of their runs.
func TestClaimsLeaveServersOfOthersAsTheyWere(t *testing.T) {
	t.Parallel()
	c, ctx := somebodysServer(t), t.Context()
	c.Set(ctx, "theirs", "1", 0)
	was := settled(t, c)
	measure := func() *exec.Cmd {
		cmd, _ := process(t, "claims", "C5", "--target", urlOf(c), "--out", filepath.Join(t.TempDir(), "runs"))
		servertest.Await(t, "there are keys", func() bool { return len(c.Keys(ctx, "Lock:*").Val()) > 0 })
		return cmd
	}
	cmd := measure()
	cmd.Process.Kill()
	awaitFamily(t, cmd)
	wantState(t, c, was)

	killWithGuard(t, measure(), c)
	again := func(args ...string) string {
		code, _, said := cli(t, append([]string{"claims", "C14", "--quick", "--target", urlOf(c), "--out", filepath.Join(t.TempDir(), "runs")}, args...)...)
		if code == 2 || code == 5 {
			t.Errorf("exit %d: %s", code, said)
		}
		return said
	}
	if said := again(); strings.Count(said, "was killed, or") != 1 || !strings.Contains(said, "add --mend to remove the keys containing") {
		t.Errorf("keys that are left are told as %q", said)
	}
	if said := again("--mend"); strings.Count(said, "mended what a run that was killed had left: remove the keys containing") != 1 {
		t.Errorf("with --mend it says %q", said)
	}
	wantState(t, c, was)
}

// killWithGuard kills a process and its guard, the guard first, and waits until the server has noticed.
func killWithGuard(t *testing.T, cmd *exec.Cmd, c *redis.Client) {
	t.Helper()
	for _, pid := range append(children(cmd.Process.Pid), strconv.Itoa(cmd.Process.Pid)) {
		n, _ := strconv.Atoi(pid)
		syscall.Kill(n, syscall.SIGKILL)
		servertest.Await(t, "it is dead", func() bool { return !alive(pid) })
	}
	cmd.Wait()
	servertest.Await(t, "the server has noticed", func() bool {
		list, err := c.ClientList(t.Context()).Result()
		return err == nil && !strings.Contains(list, "name=oversell-")
	})
}

// TestLeftoversAreToldAndMended checks that the leftovers of a run that was killed together with its guard are
// reported, and repaired on request, and that the keys of a live run are left alone.
func TestLeftoversAreToldAndMended(t *testing.T) {
	t.Parallel()
	c, ctx := somebodysServer(t), t.Context()
	c.Set(ctx, "theirs", "1", 0)
	was := settled(t, c)
	start := func(sentence string, fired func() bool) *exec.Cmd {
		cmd, _ := process(t, "run", "--target", urlOf(c), "--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--duration", "1h", "--fault", sentence, "--out", filepath.Join(t.TempDir(), "runs"))
		servertest.Await(t, "the fault has fired", fired)
		return cmd
	}
	again := func(args ...string) (int, string) {
		code, _, stderr := cli(t, append([]string{"run", "--target", urlOf(c), "--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--duration", "100ms", "--out", filepath.Join(t.TempDir(), "runs")}, args...)...)
		return code, stderr
	}
	for _, x := range []struct {
		sentence, told string
		fired          func() bool
	}{
		{"oom for 60s", "put back maxmemory", func() bool { return c.ConfigGet(ctx, "maxmemory").Val()["maxmemory"] == "1" }},
		{"read-only for 60s", "end the read-only state", func() bool { return strings.Contains(c.Info(ctx, "replication").Val(), "role:slave") }},
	} {
		cmd := start(x.sentence, x.fired)
		killWithGuard(t, cmd, c)
		if code, said := again(); code != 2 || !strings.Contains(said, x.told) || !strings.Contains(said, "--mend") || strings.Contains(said, password) || strings.Count(said, "\n") != 1 {
			t.Errorf("after %q a run exits with %d and says %q; want 2 and a line with %q and --mend", x.sentence, code, said, x.told)
		}
		if code, said := again("--mend"); code == 2 || code == 5 || !strings.Contains(said, "note: mended what a run that was killed had left: "+x.told) {
			t.Errorf("after %q, with --mend, it exits with %d and says %q", x.sentence, code, said)
		}
		is, err := stateOf(ctx, c)
		if left := different(was, is); err != nil || len(left) > 0 {
			t.Errorf("after %q, mended, the server is not as it was: %v %s", x.sentence, err, strings.Join(left, "\n"))
		}
	}
	// A live run goes on beside it, whose fault does not affect others.
	running := start("delay EVALSHA 1ms 1%", func() bool { return c.HLen(ctx, "oversell:undo").Val() > 0 })
	if code, said := again("--mend"); code == 2 || code == 5 || strings.Contains(said, "mended") {
		t.Errorf("beside a run that lives, it exits with %d and says %q", code, said)
	}
	if c.HLen(ctx, "oversell:undo").Val() == 0 {
		t.Error("the records of a run that lives are gone")
	}
	running.Process.Signal(syscall.SIGTERM)
	running.Wait()
	if is, err := stateOf(ctx, c); err != nil || len(different(was, is)) > 0 {
		t.Errorf("at the end: %v %s", err, strings.Join(different(was, is), "\n"))
	}
}

// TestTooFewConnectionsAreToldBefore checks that too few file descriptors, or a server that accepts too few clients,
// are reported before the run.
func TestTooFewConnectionsAreToldBefore(t *testing.T) {
	t.Parallel()
	c := somebodysServer(t, "--maxclients", "30")
	dir := filepath.Join(t.TempDir(), "runs")
	code, _, said := cli(t, "run", "--target", urlOf(c), "--lock", "lua-release", "--clients", "64", "--out", dir)
	if code != 5 || !strings.Contains(said, "maxclients") || !strings.Contains(said, "--pool") {
		t.Errorf("64 clients of a server that takes 30: exit %d, %q", code, said)
	}
	cmd := exec.Command("sh", "-c", `ulimit -n 300; exec "$0" "$@"`, os.Args[0], "run", "--target", "process", "--lock", "lua-release", "--clients", "2000", "--out", dir+"2")
	cmd.Env = append(os.Environ(), asOversell+"=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 5 || !strings.Contains(string(out), "ulimit -n 2067") {
		t.Errorf("2000 clients with 300 files: %v, %q", err, out)
	}
}

// TestDatabasesOfOthersAreLeftAsTheyWere checks that the tables of a run are dropped, however the program ends.
// Leftovers of a run that was killed together with its guard are reported and repaired; tables of a live run are left
// alone.
func TestDatabasesOfOthersAreLeftAsTheyWere(t *testing.T) {
	servertest.NeedServer(t)
	for _, kind := range databasetest.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dsn := databases.DSN(t, kind)
			if kind == databasetest.SQLite {
				dsn = "sqlite:" + filepath.Join(t.TempDir(), "theirs.db")
			}
			db, err := database.Open(t.Context(), database.Spec{DSN: dsn})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Dialect.CreateTable(t.Context(), db.DB, "theirs", "id BIGINT PRIMARY KEY"); err != nil {
				t.Fatal(err)
			}
			tables := func() string {
				var names []string
				servertest.Await(t, "the tables are listed", func() bool {
					names, err = db.Dialect.Tables(t.Context(), db.DB)
					return err == nil
				})
				slices.Sort(names)
				return strings.Join(names, " ")
			}
			start := func() *exec.Cmd {
				cmd, _ := process(t, "run", "--target", "embedded", "--sql", dsn, "--scenario", "dispatch", "--lock", "lua-release", "--clients", "4", "--ops", "2000", "--hold", "100ms", "--duration", "1h", "--out", "runs")
				servertest.Await(t, "there are tables", func() bool { return strings.Contains(tables(), "pool") })
				return cmd
			}
			again := func(args ...string) string {
				cmd, out := process(t, append([]string{"run", "--target", "embedded", "--sql", dsn, "--scenario", "dispatch", "--lock", "lua-release", "--clients", "4", "--ops", "40", "--out", "runs"}, args...)...)
				awaitFamily(t, cmd)
				if code := cmd.ProcessState.ExitCode(); code == 2 || code == 5 || strings.Contains(out.String(), password) {
					t.Errorf("exit %d: %s", code, out)
				}
				return out.String()
			}
			for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				cmd := start()
				cmd.Process.Signal(signal)
				awaitFamily(t, cmd)
				if left := tables(); left != "theirs" {
					t.Errorf("after %v there are the tables %s; want theirs", signal, left)
				}
				log, err := os.ReadFile(filepath.Join(cmd.Dir, "runs", "01-dispatch-lua-release-dispatch-locked", "guard.log"))
				if signal == syscall.SIGKILL && (err != nil || !strings.Contains(string(log), "drop the tables") || strings.Contains(string(log), password)) {
					t.Errorf("the guard tells %q, %v", log, err)
				}
			}
			cmd := start()
			for _, pid := range family(cmd) { // freeze all first, so that the guard cannot act before it is killed
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGSTOP)
			}
			for _, pid := range family(cmd) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
			awaitFamily(t, cmd)
			if kind == databasetest.SQLite {
				if said := again(); !strings.Contains(said, "may still be in progress") {
					t.Errorf("tables that are left are told as %q", said)
				}
				return
			}
			if said := again(); !strings.Contains(said, "add --mend to drop the tables containing") {
				t.Errorf("tables that are left are told as %q", said)
			}
			living := start()
			if said := again("--mend"); strings.Count(said, "mended what a run that was killed had left: drop the tables containing") != 1 {
				t.Errorf("with --mend it says %q", said)
			}
			if left := tables(); !strings.Contains(left, "pool") {
				t.Errorf("beside a run that lives there are the tables %s afterwards", left)
			}
			living.Process.Signal(syscall.SIGTERM)
			awaitFamily(t, living)
			if left := tables(); left != "theirs" {
				t.Errorf("at the end there are the tables %s; want theirs", left)
			}
		})
	}
}

// TestMastersOfOthersAreMastersAgain checks that, after a failover, the servers get back their roles and settings,
// however the program ends.
func TestMastersOfOthersAreMastersAgain(t *testing.T) {
	servertest.NeedServer(t)
	for _, topology := range []string{"sentinel"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			own, err := server.Open(ctx, server.Spec{Target: "process", Topology: topology})
			if err != nil {
				t.Fatal(err)
			}
			defer own.Close()
			was := map[int]map[string]string{}
			url := "redis://" + own.Addrs[0]
			for _, s := range own.Servers() {
				if s.Role != server.Sentinel {
					was[s.Number] = settled(t, own.Admin(s.Number))
					continue
				}
				url = "redis://" + s.Addr
				// Sentinels make a former primary a replica after four hello messages.
				if err := own.Admin(s.Number).Do(ctx, "sentinel", "debug", "publish-period", 250).Err(); err != nil {
					t.Skip(err) // before Redis 7 that would take minutes
				}
			}
			start := func() *exec.Cmd {
				cmd, _ := process(t, "run", "--target", url, "--topology", topology, "--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--duration", "1h", "--fault", "failover node 1 at 100ms", "--out", "runs")
				servertest.Await(t, "another server is the master", func() bool {
					return strings.Contains(own.Admin(1).Info(ctx, "replication").Val(), "role:slave")
				})
				return cmd
			}
			asBefore := func() {
				t.Helper()
				for n, state := range was {
					wantState(t, own.Admin(n), state)
				}
			}
			for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				cmd := start()
				cmd.Process.Signal(signal)
				awaitFamily(t, cmd)
				asBefore()
			}
			cmd := start()
			for _, pid := range family(cmd) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGSTOP)
			}
			for _, pid := range family(cmd) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
			awaitFamily(t, cmd)
			again := func(args ...string) string {
				_, _, said := cli(t, append([]string{"run", "--target", url, "--topology", topology, "--scenario", "mutex", "--lock", "lua-release", "--clients", "4", "--duration", "100ms", "--out", filepath.Join(t.TempDir(), "runs")}, args...)...)
				return said
			}
			master := "restore the role of master of " + own.Addrs[0]
			servertest.Await(t, "the servers are well again", func() bool { return own.AwaitHealthy(ctx) == nil })
			if said := again(); !strings.Contains(said, "add --mend to "+master) {
				t.Errorf("it says %q", said)
			}
			if said := again("--mend"); !strings.Contains(said, "mended what a run that was killed had left: "+master) {
				t.Errorf("with --mend it says %q", said)
			}
			asBefore()
		})
	}
}
