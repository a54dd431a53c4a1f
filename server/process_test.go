package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"oversell/internal/freeport"
	"oversell/internal/servertest"
	"oversell/server/instance"
	"oversell/server/topology"
)

// asParent is the environment variable that makes the test binary open a process target, print the server's pid and wait
// to be killed; see TestServerDiesWithItsParent.
const asParent = "OVERSELL_TEST_AS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		tg, err := Open(context.Background(), Spec{Target: "process"})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(tg.PID(0))
		select {}
	}
	os.Exit(m.Run())
}

func TestProcessIsOurs(t *testing.T) {
	begin := time.Now()
	tg := mustOpen(t, Spec{Target: "process"})
	t.Logf("one server after %v", time.Since(begin))
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	text, err := c.Info(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	in := instance.ParseInfo(text)
	if in.Number("process_id") != tg.PID(0) {
		t.Errorf("INFO says process %s; ours is %d", in["process_id"], tg.PID(0))
	}
	if tg.ServerVersion != in["redis_version"] || !strings.Contains(tg.Why, tg.ServerVersion) || !strings.Contains(tg.Why, tg.Addrs[0]) {
		t.Errorf("version %q of %s; why: %s", tg.ServerVersion, in["redis_version"], tg.Why)
	}
	if tg.Kind != Process || tg.Topology != "single" || tg.Nodes() != 1 || tg.Caveat != "" {
		t.Errorf("unexpected: %+v", tg)
	}
	if group, err := syscall.Getpgid(tg.PID(0)); group != tg.PID(0) {
		t.Errorf("the server is in process group %d (%v), where Ctrl-C would hit it", group, err)
	}
	if err := c.Do(t.Context(), "DEBUG", "SLEEP", "0").Err(); err != nil {
		t.Errorf("DEBUG is needed by faults: %v", err)
	}
	if !strings.HasPrefix(tg.Why, "redis-server") {
		t.Error(tg.Why)
	}
}

func TestFiveMasters(t *testing.T) {
	begin := time.Now()
	tg := mustOpen(t, Spec{Target: "process", Topology: "masters:5"})
	t.Logf("five servers after %v", time.Since(begin))
	seen := map[string]bool{}
	clients := tg.Clients(ConnOptions{})
	for i, c := range clients {
		defer c.Close()
		if err := c.Set(t.Context(), "node", i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		seen[tg.Addrs[i]] = true
	}
	for i, c := range clients {
		if got := c.Get(t.Context(), "node").Val(); got != strconv.Itoa(i) {
			t.Errorf("node %d holds %q: the masters are not independent", i, got)
		}
	}
	if len(seen) != 5 || tg.Nodes() != 5 || tg.Topology != "masters:5" || !strings.Contains(tg.Why, "5 times, on") {
		t.Errorf("unexpected: %+v", tg)
	}
}

func TestCloseStopsTheServerAndLeavesNoFiles(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "process"})
	pid, files := tg.PID(0), tg.host.(*instance.ProcessHost).Files.Path
	if _, err := os.Stat(files); err != nil {
		t.Error(err)
	}
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := tg.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d still exists: %v", pid, err)
	}
	select {
	case <-tg.Done():
	default:
		t.Error("Done is still open")
	}
	if _, err := os.Stat(files); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files are left in %s: %v", files, err)
	}
}

func TestCloseEndsAFrozenServer(t *testing.T) {
	tg := mustOpen(t, Spec{Target: "process"})
	if err := syscall.Kill(tg.PID(0), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := tg.Close(); err != nil {
		t.Error(err)
	}
}

func TestADeadServerIsNoticed(t *testing.T) {
	servertest.NeedServer(t)
	tg, err := Open(t.Context(), Spec{Target: "process", Topology: "masters:2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := tg.Err(); err != nil {
		t.Errorf("a living target reports %v", err)
	}
	if err := syscall.Kill(tg.PID(1), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-tg.Done()
	servertest.WantError(t, tg.Err(), ErrEnvironment, "the server on "+tg.Addrs[1]+" died: signal: killed")
	servertest.WantError(t, tg.Close(), ErrEnvironment, "died")
}

// listen listens on a free port and serves each connection with f.
func listen(t *testing.T, f func(net.Conn)) (addr string, port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go f(c)
		}
	}()
	return l.Addr().String(), l.Addr().(*net.TCPAddr).Port
}

func pong(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		if _, err := r.ReadString('\n'); err != nil {
			return
		}
		fmt.Fprint(c, "+PONG\r\n")
	}
}

// TestAPortThatIsTakenIsNotOurs checks that a target does not mistake another server on the port for its own: its own
// exits because the port is taken, while the other one answers PING.
func TestAPortThatIsTakenIsNotOurs(t *testing.T) {
	redisAddr, foreign := servertest.Start(t)
	_, redisPort := splitPort(t, redisAddr)
	_, pongPort := listen(t, pong)
	h := mustProcessHost(t)
	taken := []int{redisPort, pongPort}
	h.FreePorts = func(n int, cluster bool) ([]int, error) {
		if len(taken) == 0 {
			return freeport.Several(n, cluster)
		}
		p := taken[:1]
		taken = taken[1:]
		return p, nil
	}
	tg, err := openOwn(t.Context(), h, Process, plan{shape: topology.Independent, masters: 1})
	if err != nil {
		t.Fatal(err)
	}
	closeLater(t, tg)
	if tg.PID(0) == foreign.PID() || tg.Addrs[0] == redisAddr || len(taken) != 0 {
		t.Errorf("took the server of somebody else: %+v", tg)
	}
	if foreign.Gone() {
		t.Error("the other server was stopped")
	}
}

func TestAPortThatStaysTakenIsAnError(t *testing.T) {
	_, port := listen(t, pong)
	h := mustProcessHost(t)
	tries := 0
	h.FreePorts = func(int, bool) ([]int, error) { tries++; return []int{port}, nil }
	_, err := openOwn(t.Context(), h, Process, plan{shape: topology.Independent, masters: 1})
	servertest.WantError(t, err, ErrEnvironment, "Address already in use")
	if tries != topology.StartAttempts {
		t.Errorf("%d attempts; want %d", tries, topology.StartAttempts)
	}
}

func TestNoServerOnPath(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Open(t.Context(), Spec{Target: "process"})
	servertest.WantError(t, err, ErrEnvironment, "no redis-server was found on PATH")
	tg := mustOpen(t, Spec{Target: "auto"})
	if tg.Kind != Embedded || !strings.Contains(tg.Why, "no redis-server was found") {
		t.Errorf("auto chose %s: %s", tg.Kind, tg.Why)
	}
}

func TestAutoTakesTheServer(t *testing.T) {
	servertest.NeedServer(t)
	if tg := mustOpen(t, Spec{}); tg.Kind != Process {
		t.Errorf("auto chose %s: %s", tg.Kind, tg.Why)
	}
}

func TestServerDiesWithItsParent(t *testing.T) {
	servertest.NeedServer(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	defer parent.Wait()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		_ = parent.Process.Kill()
		t.Fatalf("the parent says %q", line)
	}
	if !running(pid) {
		t.Errorf("process %d does not run", pid)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	servertest.Await(t, fmt.Sprintf("the end of process %d", pid), func() bool { return !running(pid) })
}

// running reports whether a process runs. A zombie does not: an orphan may have no parent that waits for it.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func mustProcessHost(t *testing.T) *instance.ProcessHost {
	t.Helper()
	servertest.NeedServer(t)
	h, err := instance.NewProcessHost(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func splitPort(t *testing.T, addr string) (host string, port int) {
	t.Helper()
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err = strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
