package container

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
	"oversell/internal/closed"
	"oversell/internal/errclass"
	"oversell/internal/servertest"
	"oversell/server/instance"
)

// needDocker skips a test where no Docker daemon answers, and makes sure that there is the image.
func needDocker(t *testing.T) client.APIClient {
	t.Helper()
	c, err := client.New(client.FromEnv)
	if err == nil {
		err = pingDocker(t.Context(), c)
	}
	if err != nil {
		servertest.Unable(t, err)
	}
	servertest.Image(t) // builds the image if it has to
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func mustHost(t *testing.T) *Host {
	t.Helper()
	h, err := New(t.Context(), servertest.Image(t))
	if err != nil {
		t.Fatalf("open a host for containers: %v", err)
	}
	t.Cleanup(h.Close)
	return h.(*Host)
}

func mustLaunch(t *testing.T, h instance.Host, s instance.Settings) instance.Machine {
	t.Helper()
	return mustLaunchAll(t, h, s)[0]
}

// mustLaunchAll launches servers at the same time, as topologies do.
func mustLaunchAll(t *testing.T, h instance.Host, all ...instance.Settings) []instance.Machine {
	t.Helper()
	machines, errs := make([]instance.Machine, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { machines[i], errs[i] = h.Launch(t.Context(), s) })
	}
	wg.Wait()
	for i, m := range machines {
		if errs[i] == nil {
			t.Cleanup(m.Stop)
		}
	}
	must(t, "launch servers", errors.Join(errs...))
	return machines
}

func mustPorts(t *testing.T, h instance.Host, n int, cluster bool) []int {
	t.Helper()
	ports, err := h.Ports(t.Context(), n, cluster)
	if err != nil {
		t.Fatalf("reserve %d ports: %v", n, err)
	}
	return ports
}

func adminOf(t *testing.T, m instance.Machine) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr: m.Addr(), MaxRetries: -1, ReadTimeout: time.Second, DialTimeout: time.Second, ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// labelled counts the containers with a label, whatever their state.
func labelled(t *testing.T, c client.APIClient, label string) int {
	t.Helper()
	list, err := c.ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	must(t, "list containers", err)
	return len(list.Items)
}

func TestContainerKillAndStart(t *testing.T) {
	docker := needDocker(t)
	t.Parallel()
	h := mustHost(t)
	ports := mustPorts(t, h, 2, false)
	both := mustLaunchAll(t, h, instance.Settings{Port: ports[0]}, instance.Settings{Port: ports[1], Persist: true})
	forgetful, keeping := both[0], both[1]
	if v := forgetful.Info().Version(); v == "unknown" || h.Version() != v || !strings.Contains(h.Describe(), v+" started in containers of the image "+servertest.Image(t)) {
		t.Errorf("INFO tells version %q, the host %q and %q", v, h.Version(), h.Describe())
	}
	if forgetful.PID() != 0 {
		t.Errorf("pid = %d, but the process belongs to the container", forgetful.PID())
	}

	for _, m := range []instance.Machine{forgetful, keeping} {
		c := adminOf(t, m)
		must(t, "SET", c.Set(t.Context(), "k", "v", 0).Err())
		must(t, "DEBUG is enabled", c.Do(t.Context(), "DEBUG", "SLEEP", "0").Err())
		first := m.Exited()
		if closed.Is(first) {
			t.Fatalf("%s counts as gone, but answers", m.Addr())
		}
		must(t, "kill", m.Kill())
		if !closed.Is(first) || !strings.Contains(m.LastWords(), "exit status 137") {
			t.Errorf("after kill: gone %v, last words %q", closed.Is(first), m.LastWords())
		}
		must(t, "kill again", m.Kill())
		if err := c.Ping(t.Context()).Err(); err == nil {
			t.Errorf("%s answers although it was killed", m.Addr())
		}
		must(t, "start", m.Start(t.Context(), false))
		if closed.Is(m.Exited()) {
			t.Errorf("%s counts as gone after its start: %s", m.Addr(), m.LastWords())
		}
		got, err := c.Get(t.Context(), "k").Result()
		if m == keeping && got != "v" || m == forgetful && !errors.Is(err, redis.Nil) {
			t.Errorf("persist %v: after kill and start GET answers %q, %v", m == keeping, got, err)
		}
	}
	servertest.WantError(t, keeping.Start(t.Context(), true), errclass.ErrEnvironment, "it runs")
	must(t, "kill", keeping.Kill())
	must(t, "start empty", keeping.Start(t.Context(), true))
	if err := adminOf(t, keeping).Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("started empty, it answers GET with %v", err)
	}

	_, err := h.Ports(t.Context(), 1, false)
	servertest.WantError(t, err, errclass.ErrEnvironment, "while servers run")
	_, err = h.Launch(t.Context(), instance.Settings{Port: 1})
	servertest.WantError(t, err, errclass.ErrEnvironment, "port 1 was not reserved")
	servertest.WantError(t, forgetful.Jump(time.Second), errclass.ErrUsage, "--target process")

	last := forgetful.Exited()
	forgetful.Stop()
	forgetful.Stop()
	if !closed.Is(last) {
		t.Error("a stopped server does not count as gone")
	}
	h.Close()
	if n := labelled(t, docker, hostLabel+"="+h.id); n != 0 {
		t.Errorf("%d containers are left after close", n)
	}
}

func TestContainerFreeze(t *testing.T) {
	needDocker(t)
	t.Parallel()
	h := mustHost(t)
	m := mustLaunch(t, h, instance.Settings{Port: mustPorts(t, h, 1, false)[0]})
	c := adminOf(t, m)
	must(t, "PING", c.Ping(t.Context()).Err())
	must(t, "freeze", m.Freeze())
	must(t, "freeze again", m.Freeze())
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := c.Ping(short).Err(); !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("a frozen server answers PING with %v; want silence", err)
	}
	if closed.Is(m.Exited()) {
		t.Error("a frozen server counts as gone")
	}
	must(t, "thaw", m.Thaw())
	must(t, "thaw again", m.Thaw())
	must(t, "PING", c.Ping(t.Context()).Err())

	must(t, "freeze", m.Freeze())
	must(t, "kill a frozen server", m.Kill())
	must(t, "start it", m.Start(t.Context(), false))
	must(t, "PING", adminOf(t, m).Ping(t.Context()).Err())
	must(t, "freeze", m.Freeze())
	m.Stop() // must not wait for a server that cannot answer
}

func isTimeout(err error) bool {
	var e interface{ Timeout() bool }
	return errors.As(err, &e) && e.Timeout()
}

func TestContainerThatEndsByItself(t *testing.T) {
	needDocker(t)
	t.Parallel()
	h := mustHost(t)
	ports := mustPorts(t, h, 2, false)
	m := mustLaunch(t, h, instance.Settings{Port: ports[0]})
	_ = adminOf(t, m).ShutdownNoSave(t.Context()).Err()
	servertest.Await(t, "the end of the server", func() bool { return closed.Is(m.Exited()) })
	if w := m.LastWords(); !strings.Contains(w, "exit status 0") || !strings.Contains(w, "bye bye") {
		t.Errorf("last words %q", w)
	}
	must(t, "start after its end", m.Start(t.Context(), false))

	_, err := h.Launch(t.Context(), instance.Settings{Port: ports[1], Options: []string{"maxmemory", "much"}})
	servertest.WantError(t, err, errclass.ErrEnvironment, "maxmemory", fmt.Sprint(ports[1]))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := h.Launch(ctx, instance.Settings{Port: ports[1]}); err == nil {
		t.Error("launch does not heed its context")
	}
}

// TestContainersSeeEachOther checks what a topology needs: the servers know each other by the addresses that clients use,
// and give clients these addresses.
func TestContainersSeeEachOther(t *testing.T) {
	needDocker(t)
	t.Parallel()
	h := mustHost(t)
	ports := slices.Concat(mustPorts(t, h, 1, false), mustPorts(t, h, 2, false)) // on purpose in two calls
	master := mustLaunch(t, h, instance.Settings{Port: ports[0], Options: []string{"repl-diskless-sync-delay", "0"}})
	replica := mustLaunch(t, h, instance.Settings{Port: ports[1], Options: []string{"replicaof", fmt.Sprintf("127.0.0.1 %d", ports[0])}})
	sentinel := mustLaunch(t, h, instance.Settings{Port: ports[2], Sentinel: true, Lines: []string{
		fmt.Sprintf("sentinel monitor mymaster 127.0.0.1 %d 1", ports[0]),
		"sentinel down-after-milliseconds mymaster 300",
		"sentinel failover-timeout mymaster 2000", // the first attempt can fail on a busy machine
	}})
	servertest.Await(t, "the replica to be known to the master", func() bool {
		text, _ := adminOf(t, master).Info(t.Context(), "replication").Result()
		return strings.Contains(text, fmt.Sprintf("slave0:ip=127.0.0.1,port=%d,state=online", ports[1]))
	})
	s := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
	t.Cleanup(func() { _ = s.Close() })
	servertest.Await(t, "the sentinel to know the replica", func() bool {
		known, _ := s.Replicas(t.Context(), "mymaster").Result()
		return len(known) == 1 && known[0]["name"] == replica.Addr()
	})
	must(t, "kill the sentinel", sentinel.Kill())
	must(t, "start it", sentinel.Start(t.Context(), false))
	must(t, "kill the master", master.Kill())
	servertest.Await(t, "the failover", func() bool {
		at, _ := s.GetMasterAddrByName(t.Context(), "mymaster").Result()
		return len(at) == 2 && at[1] == fmt.Sprint(ports[1])
	})
}

func TestContainerCluster(t *testing.T) {
	needDocker(t)
	t.Parallel()
	h := mustHost(t)
	ports := mustPorts(t, h, 3, true)
	var all []instance.Settings
	for _, p := range ports {
		all = append(all, instance.Settings{Port: p, Options: []string{"cluster-enabled", "yes"}})
	}
	nodes := mustLaunchAll(t, h, all...)
	slots := [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}}
	for i, n := range nodes {
		c := adminOf(t, n)
		must(t, "add slots", c.ClusterAddSlotsRange(t.Context(), slots[i][0], slots[i][1]).Err())
		must(t, "meet", c.ClusterMeet(t.Context(), "127.0.0.1", fmt.Sprint(ports[0])).Err())
	}
	ready := func(m instance.Machine) func() bool {
		return func() bool {
			text, _ := adminOf(t, m).ClusterInfo(t.Context()).Result()
			return strings.Contains(text, "cluster_state:ok") && strings.Contains(text, "cluster_known_nodes:3")
		}
	}
	servertest.Await(t, "the cluster", func() bool { return ready(nodes[0])() && ready(nodes[2])() })
	shards, err := adminOf(t, nodes[2]).ClusterShards(t.Context()).Result()
	must(t, "CLUSTER SHARDS", err)
	for _, s := range shards {
		at := loopback(int(s.Nodes[0].Port))
		if s.Nodes[0].IP != "127.0.0.1" || !slices.ContainsFunc(nodes, func(m instance.Machine) bool { return m.Addr() == at }) {
			t.Errorf("the cluster tells clients of %+v; its nodes are at %v", s.Nodes[0], ports)
		}
	}
	id := adminOf(t, nodes[1]).ClusterMyID(t.Context()).Val()
	must(t, "kill", nodes[1].Kill())
	must(t, "start empty", nodes[1].Start(t.Context(), true))
	if now := adminOf(t, nodes[1]).ClusterMyID(t.Context()).Val(); now != id {
		t.Errorf("a node that forgot its data is %s now, but was %s", now, id)
	}
	servertest.Await(t, "the cluster again", ready(nodes[1]))
}

// helperVariable is set in the environment of a process that opens a host, starts a server and waits.
const helperVariable = "OVERSELL_CONTAINER_HELPER"

// TestContainerHelper is not a test: TestContainerSweep runs it as a separate process.
func TestContainerHelper(t *testing.T) {
	if os.Getenv(helperVariable) == "" {
		return
	}
	h := mustHost(t)
	m := mustLaunch(t, h, instance.Settings{Port: mustPorts(t, h, 1, false)[0]})
	must(t, "freeze", m.Freeze())
	fmt.Println("host", h.id)
	time.Sleep(time.Minute)
}

func TestContainerSweep(t *testing.T) {
	docker := needDocker(t)
	t.Parallel()
	living := mustHost(t)
	mustPorts(t, living, 1, false)

	cmd := exec.Command(os.Args[0], "-test.run=^TestContainerHelper$")
	cmd.Env = append(os.Environ(), helperVariable+"=1", "REDIS_IMAGE="+servertest.Image(t))
	var words child.Tail
	cmd.Stderr = &words
	out, err := cmd.StdoutPipe()
	must(t, "pipe", err)
	must(t, "start a helper", cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	id := ""
	for lines := bufio.NewScanner(out); id == "" && lines.Scan(); {
		id = strings.TrimPrefix(lines.Text(), "host ")
		if id == lines.Text() {
			t.Fatalf("the helper says %q", id)
		}
	}
	dead := hostLabel + "=" + id
	if n := labelled(t, docker, dead); n != 2 {
		t.Fatalf("the helper has %d containers; want a holder and a server", n)
	}
	mustHost(t)
	if n := labelled(t, docker, dead); n != 2 {
		t.Fatalf("%d of 2 containers of a living process are left by a new host", n)
	}
	must(t, "kill -9 the helper", cmd.Process.Kill())
	_ = cmd.Wait()
	if words.String() != "" {
		t.Errorf("the library writes to stderr: %q", words.String())
	}

	mustHost(t)
	if n := labelled(t, docker, dead); n != 0 {
		t.Errorf("%d containers of a dead process are left by a new host", n)
	}
	if n := labelled(t, docker, hostLabel+"="+living.id); n != 1 {
		t.Errorf("%d of 1 containers of this process are left by a new host", n)
	}
}

func TestContainerOwner(t *testing.T) {
	gone := exec.Command(os.Args[0], "-test.run=^$")
	must(t, "run a process", gone.Run())
	start, err := processStart(os.Getpid())
	must(t, "tell when we were started", err)
	here := thisMachine()
	for label, want := range map[string]bool{
		ownLabel(): false,
		fmt.Sprintf("%s/%d/%s", here, gone.Process.Pid, start):     true,
		fmt.Sprintf("%s/%d/%s", here, os.Getpid(), start+"0"):      true, // a later process with the same id
		fmt.Sprintf("%s/%d/%s", here, os.Getpid(), "unknown"):      false,
		fmt.Sprintf("elsewhere/%d/%s", gone.Process.Pid, start):    false,
		fmt.Sprintf("%s/%s/%s", here, "a process", start):          false,
		fmt.Sprintf("x/%s/%d/%s", here, gone.Process.Pid, "12345"): false,
		"":  false,
		"/": false,
	} {
		if got := orphaned(label); got != want {
			t.Errorf("orphaned(%q) = %v; want %v", label, got, want)
		}
	}
}

func TestContainerErrors(t *testing.T) {
	quickly := func(t *testing.T, image, class string, parts ...string) {
		t.Helper()
		begin := time.Now()
		_, err := New(t.Context(), image)
		servertest.WantError(t, err, errclass.ErrEnvironment, parts...)
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("%s: it took %v to find out", class, d)
		}
	}
	t.Run("no daemon", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
		quickly(t, servertest.Image(t), "refused", "no Docker daemon answers at tcp://127.0.0.1:1")
		t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
		quickly(t, servertest.Image(t), "no socket", "no Docker daemon answers at unix:///nonexistent/docker.sock")
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
		quickly(t, servertest.Image(t), "elsewhere", "tcp://192.0.2.1:2375 is not on this machine")
	})
	t.Run("nonsense", func(t *testing.T) {
		t.Setenv("DOCKER_HOST", "nonsense")
		quickly(t, servertest.Image(t), "nonsense", "connect to Docker", "nonsense")
	})
	t.Run("no image", func(t *testing.T) {
		needDocker(t)
		_, err := New(t.Context(), "localhost:1/oversell-none:0")
		servertest.WantError(t, err, errclass.ErrEnvironment, "Docker has no image localhost:1/oversell-none:0 and cannot pull it", "docker pull redis:7", "make image", "REDIS_IMAGE="+localImage)
	})
	t.Run("not a Redis", func(t *testing.T) {
		docker := needDocker(t)
		h := mustHost(t)
		port := mustPorts(t, h, 1, false)[0]
		h.image = "localhost:1/oversell-none:0"
		_, err := h.Launch(t.Context(), instance.Settings{Port: port})
		servertest.WantError(t, err, errclass.ErrEnvironment, "create a container of the image localhost:1/oversell-none:0")
		removeLabelled(t.Context(), docker, hostLabel+"="+h.id, func(s container.Summary) bool { return true })
		h.image = servertest.Image(t)
		_, err = h.Launch(t.Context(), instance.Settings{Port: port})
		servertest.WantError(t, err, errclass.ErrEnvironment, "start redis-server on 127.0.0.1") // the container that holds its network was removed
	})
}
