package server

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/servertest"
	"oversell/server/instance"
	"oversell/server/topology"
)

// addressesOf returns the addresses of servers in the form in which a user gives them.
func addressesOf(tg *Target, numbers ...int) string {
	var all []string
	for _, n := range numbers {
		all = append(all, "redis://"+tg.Servers()[n-1].Addr)
	}
	return strings.Join(all, ",")
}

// TestTopologiesAtAddresses checks that a topology that already runs is found from some of its addresses, and is like one
// that oversell started, except that its servers cannot be stopped.
func TestTopologiesAtAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		topology string
		given    []int // servers whose addresses are given
		others   []int
		why      string
	}{
		{"replica", []int{1}, nil, "has 1 replica"},
		{"sentinel", []int{5}, []int{4, 5, 6}, `is the master "oversell" of the sentinel`},
		{"cluster", []int{4}, []int{1, 2, 5}, "in a cluster of 3 masters and 3 replicas"},
	} {
		t.Run(c.topology, func(t *testing.T) {
			t.Parallel()
			own := mustOpen(t, Spec{Target: "process", Topology: c.topology})
			if c.others != nil {
				sameServers(t, mustOpen(t, Spec{Target: addressesOf(own, c.others...), Topology: c.topology}), own)
			}
			tg := mustOpen(t, Spec{Target: addressesOf(own, c.given...), Topology: c.topology})
			if !strings.Contains(tg.Why, c.why) || tg.Kind != Address || tg.ServerVersion != own.ServerVersion {
				t.Errorf("kind %s, version %s, why: %s", tg.Kind, tg.ServerVersion, tg.Why)
			}
			sameServers(t, tg, own)
			noError(t, tg.AwaitHealthy(soon(t)))
			serves(t, tg, 0)
			n, err := tg.Sweep(t.Context(), "key:")
			if n != 20 || err != nil {
				t.Errorf("Sweep = %d, %v; want 20", n, err)
			}
			noError(t, tg.Can(t.Context(), CanAdminister))
			servertest.WantError(t, tg.Can(t.Context(), CanStop), ErrUsage, "needs a server that oversell started, --target process or container")
			servertest.WantError(t, tg.Kill(1), ErrUsage, "cannot be killed")
			if c.topology == "replica" {
				servertest.WantError(t, tg.Can(t.Context(), CanFailOver), ErrUsage, "are not promoted", "--target process or container")
				return
			}
			failsOverWhenTold(t, tg)
		})
	}
}

// frozen freezes a replica, and waits until the sentinel with the number 4 calls it down.
func frozen(t *testing.T, own *Target, replica int) {
	t.Helper()
	noError(t, own.Freeze(replica))
	servertest.Await(t, "the sentinel to call the replica down", func() bool {
		cmd := redis.NewMapStringStringSliceCmd(t.Context(), "sentinel", "replicas", topology.MasterName)
		noError(t, own.Admin(4).Process(t.Context(), cmd))
		return slices.ContainsFunc(cmd.Val(), func(e map[string]string) bool { return strings.Contains(e["flags"], "s_down") })
	})
}

// TestAServerThatWasGivenUpIsFound checks that a server is found if it answers again, though a sentinel still says that it does not.
func TestAServerThatWasGivenUpIsFound(t *testing.T) {
	t.Parallel()
	const replica = 2
	own := mustOpen(t, Spec{Target: "process", Topology: "sentinel"})
	frozen(t, own, replica)
	noError(t, own.Thaw(replica))
	sameServers(t, mustOpen(t, Spec{Target: addressesOf(own, 4), Topology: "sentinel"}), own)
}

func failsOverWhenTold(t *testing.T, tg *Target) {
	t.Helper()
	noError(t, tg.Can(t.Context(), CanFailOver))
	begin := time.Now()
	now, err := tg.Promote(soon(t), 1)
	noError(t, err)
	t.Logf("failed over to server %d after %v", now, time.Since(begin))
	noError(t, tg.AwaitHealthy(soon(t)))
	serves(t, tg, 0)
	if p, err := tg.Primary(t.Context(), 1); p != now || now == 1 || err != nil {
		t.Errorf("the primary is %d, %v; want %d", p, err, now)
	}
}

func sameServers(t *testing.T, got, want *Target) {
	t.Helper()
	describe := func(tg *Target) map[string]string {
		all := map[string]string{}
		for _, s := range tg.Servers() {
			of := ""
			if s.Of != 0 {
				of = tg.Servers()[s.Of-1].Addr
			}
			all[s.Addr] = fmt.Sprintf("%s of %s", s.Role, of)
		}
		return all
	}
	if g, w := fmt.Sprint(describe(got)), fmt.Sprint(describe(want)); g != w {
		t.Errorf("found    %s\nthere are %s", g, w)
	}
}

func TestWrongTopologiesAtAddressesAreRefused(t *testing.T) {
	t.Parallel()
	guard := mustOpen(t, Spec{Target: "process", Topology: "sentinel"})
	cluster := mustOpen(t, Spec{Target: "process", Topology: "cluster"})
	other := mustOpen(t, Spec{Target: "process", Topology: "cluster"})
	single, _ := servertest.Start(t)
	for _, c := range []struct {
		name   string
		spec   Spec
		class  error
		reason []string
	}{
		{"a sentinel", Spec{Target: addressesOf(guard, 4)}, ErrEnvironment, []string{"is a sentinel, which keeps no data", "run --topology sentinel"}},
		{"a node of a cluster", Spec{Target: addressesOf(cluster, 1)}, ErrEnvironment, []string{"is a node of a cluster", "run --topology cluster"}},
		{"a replica", Spec{Target: addressesOf(guard, 2)}, ErrEnvironment, []string{"is a replica", guard.Addrs[0], "--topology replica"}},
		{"a master without replicas", Spec{Target: "redis://" + single, Topology: "replica"}, ErrEnvironment, []string{"has no connected replica"}},
		{"a replica as the primary", Spec{Target: addressesOf(guard, 2), Topology: "replica"}, ErrEnvironment, []string{"is a replica"}},
		{"a server as a sentinel", Spec{Target: "redis://" + single, Topology: "sentinel"}, ErrEnvironment, []string{`is no sentinel (its redis_mode is "standalone")`}},
		{"a server as a cluster", Spec{Target: "redis://" + single, Topology: "cluster"}, ErrEnvironment, []string{"is no node of a cluster"}},
		{"a master that nobody knows", Spec{Target: addressesOf(guard, 4) + "?master=bob", Topology: "sentinel"}, ErrUsage, []string{`looks after oversell, not "bob"`}},
		{"two clusters", Spec{Target: addressesOf(cluster, 1) + "," + addressesOf(other, 1), Topology: "cluster"}, ErrUsage, []string{"belong to different clusters"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := openErr(t, c.spec)
			servertest.WantError(t, err, c.class, c.reason...)
			t.Log(err)
		})
	}
	noError(t, guard.group.Servers[3].Admin.Do(t.Context(), "sentinel", "monitor", "second", "127.0.0.1", 1, 2).Err())
	servertest.WantError(t, openErr(t, Spec{Target: addressesOf(guard, 4), Topology: "sentinel"}), ErrUsage, "looks after oversell, second: choose a master", "?master=NAME")
	tg := mustOpen(t, Spec{Target: addressesOf(guard, 4) + "?master=oversell", Topology: "sentinel"})
	if tg.Addrs[0] != guard.Addrs[0] {
		t.Errorf("found %v", tg.Addrs)
	}
}

// TestANeighbourElsewhereIsRefused checks that a running cluster whose nodes name servers on other machines is refused.
func TestANeighbourElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	e := instance.Endpoint{Host: "127.0.0.1", Addr: "127.0.0.1:1", Login: instance.Options("127.0.0.1:1", ConnOptions{})}
	_, err := e.Neighbours(t.Context(), false, []string{"192.0.2.1:6379"}, Master)
	servertest.WantError(t, err, ErrUsage, "127.0.0.1:1 names a server elsewhere: 192.0.2.1:6379 is not on this machine", "--allow-remote")
}

// TestAClientStaysOnThisMachine checks that a client does not later follow a cluster to another machine either.
func TestAClientStaysOnThisMachine(t *testing.T) {
	t.Parallel()
	tg := mustOpen(t, Spec{Target: "process"})
	dial := tg.Options(0, ConnOptions{}).Dialer
	_, err := dial(t.Context(), "tcp", "192.0.2.1:6379")
	servertest.WantError(t, err, ErrUsage, "192.0.2.1:6379 is not on this machine")
	conn, err := dial(t.Context(), "tcp", tg.Addrs[0])
	noError(t, err)
	conn.Close()
}

// TestSentinelsWithoutThePasswordOfTheirServers checks the common setup in which the servers want a password and the
// sentinels want none.
func TestSentinelsWithoutThePasswordOfTheirServers(t *testing.T) {
	t.Parallel()
	master, _ := servertest.Start(t, "--requirepass", "topsecret", "--masterauth", "topsecret")
	host, port, err := net.SplitHostPort(master)
	noError(t, err)
	servertest.Start(t, "--requirepass", "topsecret", "--masterauth", "topsecret", "--replicaof", host+" "+port)
	sentinel := mustOpen(t, Spec{Target: "process", Topology: "sentinel"}).group.Servers[3]
	for _, command := range [][]any{
		{"sentinel", "monitor", "mine", host, port, 1},
		{"sentinel", "set", "mine", "auth-pass", "topsecret"},
	} {
		noError(t, sentinel.Admin.Do(t.Context(), command...).Err())
	}
	servertest.Await(t, "the sentinel to find the replica", func() bool {
		text := sentinel.Admin.Info(t.Context(), "sentinel").Val()
		return strings.Contains(text, "name=mine,status=ok,address="+master+",slaves=1")
	})
	tg := mustOpen(t, Spec{Target: "redis://:topsecret@" + sentinel.Addr + "?master=mine", Topology: "sentinel"})
	c := tg.Client(0, ConnOptions{})
	defer c.Close()
	noError(t, c.Set(t.Context(), "k", "v", 0).Err())
	if text := tg.Why + fmt.Sprint(tg.Addrs); strings.Contains(text, "secret") {
		t.Errorf("a password is shown: %s", text)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	addr, _ := servertest.Start(t, "--user", "clerk", "on", ">pass", "~*", "+@all", "-@dangerous", "+info",
		"--user", "boss", "on", ">pass", "~*", "+@all", "--user", "deputy", "on", ">pass", "~*", "+@all", "-script|flush")
	open := func(user string) *Target { return mustOpen(t, Spec{Target: "redis://" + user + ":pass@" + addr}) }
	noError(t, open("boss").Can(t.Context(), CanAdminister))
	servertest.WantError(t, open("clerk").Can(t.Context(), CanAdminister), ErrUsage, "may not administer "+addr, "no permissions", "--target process or container")
	servertest.WantError(t, open("deputy").Can(t.Context(), CanAdminister), ErrUsage, "script|flush")
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	embedded := mustOpen(t, Spec{Target: "embedded"})
	process := mustOpen(t, Spec{Target: "process"})
	address := mustOpen(t, Spec{Target: "redis://" + process.Addrs[0]})
	for _, c := range []struct {
		name    string
		tg      *Target
		ability Ability
		reason  string // empty: the target has the ability
	}{
		{"embedded", embedded, CanStop, "--target process"},
		{"embedded", embedded, CanFailOver, "with --topology replica, sentinel or cluster"},
		{"embedded", embedded, CanJump, "--target process"},
		{"embedded", embedded, CanAdminister, "--target process"},
		{"process", process, CanStop, ""},
		{"process", process, CanFailOver, "use --topology replica, sentinel or cluster"},
		{"process", process, CanJump, "Spec.Clocks"},
		{"process", process, CanAdminister, ""},
		{"address", address, CanStop, "--target process or container"},
		{"address", address, CanJump, "--target process"},
		{"address", address, CanAdminister, ""},
		{"address", address, "fly", `unknown ability "fly"`},
	} {
		err := c.tg.Can(t.Context(), c.ability)
		switch {
		case c.reason == "" && err != nil:
			t.Errorf("%s cannot %s: %v", c.name, c.ability, err)
		case c.reason != "":
			servertest.WantError(t, err, ErrUsage, c.reason)
		}
	}
	servertest.WantError(t, process.Kill(2), ErrUsage, "there is no server 2: the target has 1")
	servertest.WantError(t, process.Jump(1, time.Hour), ErrUsage, "Spec.Clocks")
	_, err := process.Promote(t.Context(), 1)
	servertest.WantError(t, err, ErrUsage, "topology single does not have")
	noError(t, embedded.AwaitHealthy(soon(t)))
	if p, err := embedded.Primary(t.Context(), 1); p != 1 || err != nil {
		t.Errorf("the emulation's primary is %d, %v", p, err)
	}
}

// TestReinstatesBesideAServerThatIsDown checks that a server becomes the primary again although another one is down, which
// sentinels would prefer if it answered.
func TestReinstatesBesideAServerThatIsDown(t *testing.T) {
	t.Parallel()
	const down = 2
	own := mustOpen(t, Spec{Target: "process", Topology: "sentinel"})
	frozen(t, own, down)
	tg := mustOpen(t, Spec{Target: addressesOf(own, 4), Topology: "sentinel"})
	noError(t, tg.Depose(t.Context(), 1))
	_, err := tg.Promote(soon(t), 1)
	noError(t, err)
	noError(t, tg.Reinstate(soon(t)))
	if p, err := tg.Primary(t.Context(), 1); p != 1 || err != nil {
		t.Errorf("the primary is %d, %v; want 1", p, err)
	}
}
