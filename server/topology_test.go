package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server/container"
	"oversell/server/instance"
)

// promotable lists the topologies in which a server can be promoted.
var promotable = []string{"replica", "sentinel", "cluster"}

// TestTopologies checks each topology: what it consists of, all actions that do no harm, and what is left at the end.
func TestTopologies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topology                            string
		nodes, masters, replicas, sentinels int
		each, all                           int // connections of 10 clients
	}{
		{"single", 1, 1, 0, 0, 10, 10},
		{"masters:3", 3, 3, 0, 0, 10, 30},
		{"replica", 1, 1, 1, 0, 10, 10},
		{"sentinel", 1, 1, 2, 3, 20, 30},
		{"cluster", 1, 3, 3, 0, 20, 40},
	} {
		t.Run(c.topology, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			tg := mustOpen(t, Spec{Target: "process", Topology: c.topology, Persist: true})
			t.Logf("up after %v: %s", time.Since(begin), tg.Why)
			noError(t, tg.AwaitHealthy(soon(t)))
			roles := rolesOf(t, tg)
			if roles[Master] != c.masters || roles[Replica] != c.replicas || roles[Sentinel] != c.sentinels || tg.Nodes() != c.nodes || len(tg.Addrs) != c.masters {
				t.Errorf("%d nodes, roles %v, masters on %v", tg.Nodes(), roles, tg.Addrs)
			}
			if each, all := tg.shape.Connections(10); each != c.each || all != c.all {
				t.Errorf("connections: %d each, %d in all; want %d and %d", each, all, c.each, c.all)
			}
			noError(t, tg.Fits(1))
			if tg.Topology != c.topology || tg.ServerVersion == "" || tg.Caveat != "" {
				t.Errorf("topology %q, version %q, caveat %q", tg.Topology, tg.ServerVersion, tg.Caveat)
			}
			for node := range tg.Nodes() {
				serves(t, tg, node)
			}
			followsTheRoute(t, tg)
			sweeps(t, tg)
			leavesNothingBehind(t, tg)
		})
	}
}

func rolesOf(t *testing.T, tg *Target) map[Role]int {
	t.Helper()
	roles := map[Role]int{}
	for i, s := range tg.Servers() {
		roles[s.Role]++
		if s.Number != i+1 || (s.Of != 0) != (s.Role == Replica) {
			t.Errorf("server at place %d: %+v", i, s)
		}
		if got := tg.Admin(s.Number).Options().Addr; got != s.Addr {
			t.Errorf("the administrator of server %d goes to %s, not to %s", s.Number, got, s.Addr)
		}
	}
	return roles
}

// serves checks that a client of a node can do what locks and queues need.
func serves(t *testing.T, tg *Target, node int) {
	t.Helper()
	c := tg.Client(node, ConnOptions{PoolSize: 3})
	defer c.Close()
	noError(t, Warm(t.Context(), 0, c))
	for i := range 20 {
		key := fmt.Sprintf("key:%d", i)
		noError(t, c.Set(t.Context(), key, i, 0).Err())
		got, err := c.Eval(t.Context(), `return redis.call("INCR", KEYS[1])`, []string{key}).Int()
		if got != i+1 || err != nil {
			t.Errorf("EVAL on %s = %d, %v; want %d", key, got, err, i+1)
		}
		cmds, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Incr(t.Context(), key)
			p.Get(t.Context(), key)
			return nil
		})
		if err != nil || cmds[1].(*redis.StringCmd).Val() != fmt.Sprint(i+2) {
			t.Errorf("pipeline on %s: %v, %v", key, cmds, err)
		}
	}
	publishes(t, c)
}

func publishes(t *testing.T, c redis.UniversalClient) {
	t.Helper()
	sub := c.Subscribe(t.Context(), "news")
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := sub.Receive(ctx); err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	noError(t, c.Publish(ctx, "news", "hello").Err())
	if m, err := sub.ReceiveMessage(ctx); err != nil || m.Payload != "hello" {
		t.Errorf("received %v, %v", m, err)
	}
}

// TestFailover loses a primary, first in one way and then in the other. It checks that another server takes over, that
// clients go on, directly and through proxies, and that the old primary comes back as a replica.
func TestFailover(t *testing.T) {
	t.Parallel()
	for _, topology := range promotable {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			testFailover(t, Spec{Target: "process", Topology: topology}, "killed", "frozen")
		})
	}
}

// TestFailoverInContainers runs the test of failover with servers in containers instead of child processes.
func TestFailoverInContainers(t *testing.T) {
	t.Parallel()
	needContainers(t)
	for _, topology := range promotable {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			testFailover(t, Spec{Target: "container", Topology: topology, Image: servertest.Image(t)}, "killed")
		})
	}
}

func testFailover(t *testing.T, spec Spec, ways ...string) {
	begin := time.Now()
	tg := mustOpen(t, spec)
	t.Logf("up after %v: %s", time.Since(begin), tg.Why)
	direct := tg.Client(0, ConnOptions{Timeout: time.Second})
	defer direct.Close()
	routeThroughProxies(t, tg, new(atomic.Int32))
	proxied := tg.Client(0, ConnOptions{Timeout: time.Second})
	defer proxied.Close()
	set := func(who string, c redis.UniversalClient) {
		t.Helper()
		servertest.Await(t, "a SET "+who, func() bool { return c.Set(t.Context(), "k", who, 0).Err() == nil })
	}
	set("directly", direct)
	master := ownerOf(t, tg, "k")
	for _, way := range ways {
		set("through proxies", proxied)
		noError(t, tg.AwaitHealthy(soon(t)))
		lost, now := failOver(t, tg, master, way)
		for who, c := range map[string]redis.UniversalClient{"directly": direct, "through proxies": proxied} {
			begin := time.Now()
			set(who, c)
			t.Logf("a client goes on %s after another %v", who, time.Since(begin))
			if got := tg.Admin(now).Get(t.Context(), "k").Val(); got != who {
				t.Errorf("%s: the new primary holds %q", who, got)
			}
		}
		now = bringBack(t, tg, master, lost, way)
		for _, c := range []redis.UniversalClient{direct, proxied} {
			noError(t, c.Incr(t.Context(), "n{k}").Err())
		}
		if got := tg.Admin(now).GetDel(t.Context(), "n{k}").Val(); got != "2" {
			t.Errorf("in the end the new primary counts %q; want 2", got)
		}
	}
}

// failOver kills or freezes the primary of a group, and waits until another server has taken over.
func failOver(t *testing.T, tg *Target, master int, way string) (lost, now int) {
	t.Helper()
	lost, err := tg.Primary(t.Context(), master)
	noError(t, err)
	lose := tg.Kill
	if way == "frozen" {
		lose = tg.Freeze
	}
	begin := time.Now()
	noError(t, lose(lost))
	now, err = tg.Promote(soon(t), master)
	noError(t, err)
	t.Logf("server %d was promoted %v after server %d was %s", now, time.Since(begin), lost, way)
	if p, err := tg.Primary(t.Context(), master); p != now || err != nil || now == lost {
		t.Errorf("the primary is %d, %v; promoted was %d", p, err, now)
	}
	return lost, now
}

// bringBack starts or thaws the former primary, waits until the servers are well again, and returns the number of the
// primary. That can be the former one: servers that get no CPU time for long enough elect another.
func bringBack(t *testing.T, tg *Target, master, lost int, way string) int {
	t.Helper()
	begin := time.Now()
	if way == "frozen" {
		noError(t, tg.Thaw(lost))
	} else {
		noError(t, tg.Start(t.Context(), lost, false))
	}
	noError(t, tg.AwaitHealthy(soon(t)))
	now, err := tg.Primary(t.Context(), master)
	noError(t, err)
	t.Logf("well again %v after server %d came back; server %d is the primary", time.Since(begin), lost, now)
	if role := tg.Admin(lost).Info(t.Context(), "replication").Val(); now != lost && !strings.Contains(role, "role:slave") {
		t.Errorf("the former primary: %s", role)
	}
	return now
}

// ownerOf returns the number of the master that holds a key.
func ownerOf(t *testing.T, tg *Target, key string) int {
	t.Helper()
	for _, m := range tg.group.Masters {
		if m.Admin.Exists(t.Context(), key).Val() == 1 {
			return m.Number
		}
	}
	t.Fatalf("no master has %q", key)
	return 0
}

// TestSplitBrain checks that an old primary that is only cut off still answers the clients that are connected to it.
func TestSplitBrain(t *testing.T) {
	t.Parallel()
	for _, topology := range promotable {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := mustOpen(t, Spec{Target: "process", Topology: topology})
			c := tg.Client(0, ConnOptions{})
			defer c.Close()
			noError(t, c.Set(t.Context(), "lock", "nobody", 0).Err())
			noError(t, tg.AwaitHealthy(soon(t)))
			old := ownerOf(t, tg, "lock")
			cutReplicas(t, tg, old)
			noError(t, tg.Admin(old).Set(t.Context(), "lock", "A", 0).Err())
			noError(t, tg.Freeze(old))
			now, err := tg.Promote(soon(t), old)
			noError(t, err)
			noError(t, tg.Thaw(old))
			begin := time.Now()
			a, errA := tg.Admin(old).Get(t.Context(), "lock").Result()
			b, errB := tg.Admin(now).Get(t.Context(), "lock").Result()
			t.Logf("%v after the thaw server %d says %q, %v, and server %d says %q, %v", time.Since(begin), old, a, errA, now, b, errB)
			if b != "nobody" || errB != nil {
				t.Errorf("the new primary holds %q, %v", b, errB)
			}
			if topology != "cluster" { // in a cluster, the old primary learns of its successor at once
				time.Sleep(time.Second)
				still, err := tg.Admin(old).SetArgs(t.Context(), "lock", "B", redis.SetArgs{Get: true}).Result()
				if a != "A" || errA != nil || still != "A" || err != nil {
					t.Errorf("the old primary holds %q, %v, and a second later %q, %v", a, errA, still, err)
				}
			}
			noError(t, tg.Admin(old).Do(t.Context(), "ACL", "SETUSER", "default", "+@all").Err())
			noError(t, tg.AwaitHealthy(soon(t)))
			if got := tg.Admin(now).Get(t.Context(), "lock").Val(); got != "nobody" {
				t.Errorf("in the end the lock is %q", got)
			}
		})
	}
}

// cutReplicas stops the replication from a server to its replicas.
func cutReplicas(t *testing.T, tg *Target, master int) {
	t.Helper()
	admin := tg.Admin(master)
	noError(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-psync", "-sync", "-replconf").Err())
	noError(t, admin.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
}

func TestAwaitHealthyNoticesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, topology := range promotable {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := mustOpen(t, Spec{Target: "process", Topology: topology})
			replica := firstOf(tg, Replica)
			addr := tg.Servers()[replica-1].Addr

			noError(t, tg.Freeze(replica))
			wantUnhealthy(t, tg, fmt.Sprintf("server %d on %s is frozen", replica, addr))
			noError(t, tg.Thaw(replica))
			noError(t, tg.AwaitHealthy(soon(t)))

			of := tg.Servers()[replica-1].Of
			cutReplicas(t, tg, of)
			wantUnhealthy(t, tg, fmt.Sprintf("server %d on %s is not connected to its master, server %d", replica, addr, of))
			noError(t, tg.Admin(of).Do(t.Context(), "ACL", "SETUSER", "default", "+@all").Err())
			noError(t, tg.AwaitHealthy(soon(t)))

			noError(t, tg.Kill(replica))
			noError(t, tg.AwaitHealthy(soon(t))) // a server that was killed on purpose is not missed
		})
	}
}

func firstOf(tg *Target, r Role) int {
	for _, s := range tg.Servers() {
		if s.Role == r {
			return s.Number
		}
	}
	return 0
}

// soon returns a context that ends long before the test's own time limit.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// routeThroughProxies puts a proxy in front of every server.
func routeThroughProxies(t *testing.T, tg *Target, relayed *atomic.Int32) {
	t.Helper()
	proxies := map[string]string{}
	for _, s := range tg.Servers() {
		proxies[s.Addr] = relay(t, s.Addr, relayed)
	}
	tg.Route(func(addr string) string { return cmp.Or(proxies[addr], addr) })
}

// followsTheRoute checks that every new connection goes where the route leads, and is announced, and that administrative
// clients and older clients are not affected.
func followsTheRoute(t *testing.T, tg *Target) {
	t.Helper()
	before := tg.Client(0, ConnOptions{})
	defer before.Close()
	var relayed, dialed atomic.Int32
	routeThroughProxies(t, tg, &relayed)
	noError(t, before.Set(t.Context(), "k", "v", 0).Err())
	noError(t, tg.Admin(1).Ping(t.Context()).Err())
	if n := relayed.Load(); n != 0 {
		t.Errorf("%d connections of an old client or an administrator went through a proxy", n)
	}
	c := tg.Client(0, ConnOptions{PoolSize: 2, Dialed: func(net.Conn) { dialed.Add(1) }})
	defer c.Close()
	noError(t, Warm(t.Context(), 0, c))
	if got, err := c.Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("through the proxy: %q, %v", got, err)
	}
	publishes(t, c)
	servertest.Await(t, "all connections to arrive", func() bool { return relayed.Load() == dialed.Load() && dialed.Load() > 2 })

	opts := tg.Options(0, ConnOptions{})
	if plain := redis.NewClient(opts); tg.Topology != "cluster" {
		defer plain.Close()
		noError(t, plain.Set(t.Context(), "k", "v", 0).Err())
	}
	tg.Route(nil)
}

// relay starts a proxy that counts its connections, and returns its address.
func relay(t *testing.T, to string, n *atomic.Int32) (addr string) {
	t.Helper()
	addr, _ = listen(t, func(client net.Conn) {
		n.Add(1)
		defer client.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			defer server.Close()
			_, _ = io.Copy(server, client)
		}()
		_, _ = io.Copy(client, server)
	})
	return addr
}

func sweeps(t *testing.T, tg *Target) {
	t.Helper()
	before := keys(t, tg)
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	for i := range 100 {
		noError(t, c.Set(t.Context(), fmt.Sprintf("Lock:run7:%d", i), 1, 0).Err())
		noError(t, c.Set(t.Context(), fmt.Sprintf("Lock:%d", i), 1, 0).Err())
	}
	n, err := tg.Sweep(t.Context(), "run7:")
	if n != 100 || err != nil {
		t.Errorf("Sweep = %d, %v; want 100", n, err)
	}
	if left := keys(t, tg) - before; left != 100 {
		t.Errorf("%d keys are left; want the 100 foreign ones", left)
	}
}

// keys returns the number of keys on all masters.
func keys(t *testing.T, tg *Target) (n int64) {
	t.Helper()
	for _, m := range tg.group.Masters {
		n += m.Admin.DBSize(t.Context()).Val()
	}
	return n
}

// leavesNothingBehind checks that Close ends all servers and removes all files, also when some servers are dead or frozen.
func leavesNothingBehind(t *testing.T, tg *Target) {
	t.Helper()
	files := tg.host.(*instance.ProcessHost).Files.Path
	noError(t, tg.Kill(1))
	if len(tg.group.Servers) > 1 {
		noError(t, tg.Freeze(2))
	}
	noError(t, tg.Close())
	for _, s := range tg.group.Servers {
		if pid := s.Machine.PID(); running(pid) {
			t.Errorf("server %d, process %d, still runs", s.Number, pid)
		}
	}
	if _, err := os.Stat(files); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", files, err)
	}
}

// TestUnexpectedDeath checks that the unexpected death of a server ends the target, whatever the topology.
func TestUnexpectedDeath(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"replica", "sentinel"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			servertest.NeedServer(t)
			tg, err := Open(t.Context(), Spec{Target: "process", Topology: topology})
			noError(t, err)
			defer tg.Close()
			last := tg.group.Servers[len(tg.group.Servers)-1]
			noError(t, last.Machine.Kill()) // without the target's knowledge
			<-tg.Done()
			servertest.WantError(t, tg.Err(), ErrEnvironment, "the server on "+last.Addr+" died: signal: killed")
			if err := tg.AwaitHealthy(t.Context()); err == nil {
				t.Error("a target that has ended is healthy")
			}
		})
	}
}

func TestTheClientForClusters(t *testing.T) {
	t.Parallel()
	tg := mustOpen(t, Spec{Target: "process", Topology: "cluster"})
	t.Run("does not repeat commands", func(t *testing.T) { repeatsNothing(t, tg) })
	t.Run("keeps its subscription", func(t *testing.T) { keepsItsSubscription(t, tg) })
}

// repeatsNothing checks that no command is sent again when a server dies in the middle of it: nobody knows whether it was
// executed. By default, go-redis's client for clusters would send it again.
func repeatsNothing(t *testing.T, tg *Target) {
	var incremented atomic.Int32
	proxies := map[string]string{}
	for _, s := range tg.Servers() {
		proxies[s.Addr] = executeAndHangUp(t, s.Addr, &incremented)
	}
	tg.Route(func(addr string) string { return cmp.Or(proxies[addr], addr) })
	defer tg.Route(nil)
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	noError(t, c.Set(t.Context(), "n", 0, 0).Err())
	for name, send := range map[string]func() error{
		"command":  func() error { return c.Incr(t.Context(), "n").Err() },
		"pipeline": func() error { _, err := c.Pipelined(t.Context(), incr); return err },
		"transaction": func() error {
			_, err := c.TxPipelined(t.Context(), incr)
			return err
		},
	} {
		incremented.Store(0)
		err := send()
		if err == nil || !strings.Contains(err.Error(), "closed the connection") {
			t.Errorf("%s: error %v from a server that hung up", name, err)
		}
		if n := incremented.Load(); n != 1 {
			t.Errorf("%s: it was sent %d times", name, n)
		}
	}
}

func incr(p redis.Pipeliner) error { return p.Incr(context.Background(), "n").Err() }

// executeAndHangUp starts a proxy that counts INCR and then hangs up, like a server that dies before it replies, and
// returns its address.
func executeAndHangUp(t *testing.T, to string, incremented *atomic.Int32) (addr string) {
	t.Helper()
	addr, _ = listen(t, func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(client, server) }()
		buf := make([]byte, 4096)
		for {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if strings.Contains(string(buf[:n]), "incr") {
				incremented.Add(1)
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	return addr
}

// keepsItsSubscription checks that a subscription on a cluster survives a wait that times out.
func keepsItsSubscription(t *testing.T, tg *Target) {
	var dialed atomic.Int32
	c := tg.Client(0, ConnOptions{Dialed: func(net.Conn) { dialed.Add(1) }})
	defer c.Close()
	sub := c.Subscribe(t.Context(), "news")
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := dialed.Load()
	for range 3 {
		_, err := sub.ReceiveTimeout(t.Context(), 10*time.Millisecond)
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("waiting in vain = %v; want a timeout", err)
		}
	}
	if n := dialed.Load() - before; n != 0 {
		t.Errorf("%d connections were opened anew", n)
	}
}

// needContainers skips a test where no Docker daemon answers.
func needContainers(t *testing.T) {
	t.Helper()
	h, err := container.New(t.Context(), servertest.Image(t))
	if err != nil {
		servertest.Unable(t, err)
	}
	h.Close()
}

// TestContainerTarget opens topologies in containers in the way that users do.
func TestContainerTarget(t *testing.T) {
	needContainers(t)
	t.Parallel()
	for _, topology := range []string{"replica", "sentinel", "cluster"} {
		t.Run(topology, func(t *testing.T) {
			t.Parallel()
			tg := mustOpen(t, Spec{Target: string(Container), Image: servertest.Image(t), Topology: topology})
			primary, err := tg.Primary(t.Context(), 1) // on a busy machine not always server 1
			noError(t, err)
			noError(t, tg.Kill(primary))
			if tg.Can(t.Context(), CanFailOver) == nil {
				_, err := tg.Promote(soon(t), 1)
				noError(t, err)
			}
			noError(t, tg.Start(t.Context(), primary, false))
			noError(t, tg.AwaitHealthy(t.Context()))
			if err := tg.Can(t.Context(), CanJump); err == nil {
				t.Error("the clocks of containers can jump")
			}
		})
	}
}
