package topology

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/internal/phrase"
	"oversell/server/instance"
)

// This file finds the servers of a running topology, from the address of one of them.

// Found is a running topology.
type Found struct {
	Group *Group
	Shape Shape
	// Why says what was found at which address.
	Why string
}

// FindPair finds the replicas of the primary at an address.
func FindPair(ctx context.Context, e instance.Endpoint, remote bool) (f Found, err error) {
	in, err := instance.Probe(ctx, e)
	if err == nil {
		err = instance.CheckMaster(e.Addr, in)
	}
	if err != nil {
		return f, err
	}
	replicas, err := e.Neighbours(ctx, remote, connectedReplicas(in), instance.Replica)
	if err != nil {
		return f, err
	}
	if len(replicas) == 0 {
		return f, errclass.Environmentf("%s has no connected replica: topology replica needs one", e.Addr)
	}
	for _, r := range replicas {
		r.Of = 1
	}
	f.Group = NewGroup(append([]*instance.Server{e.Server(in, instance.Master)}, replicas...), true)
	f.Shape = NewPair(f.Group)
	f.Why = fmt.Sprintf("%s answers at the given address %s, and has %s", instance.Named(instance.Versions(f.Group.Servers)), e.Addr, phrase.Count(len(replicas), "replica"))
	return f, nil
}

// connectedReplicas returns the addresses in lines like
//
//	slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1
func connectedReplicas(master instance.Info) []string {
	var addrs []string
	for i := range master.Number("connected_slaves") {
		fields := instance.Info{}
		for f := range strings.SplitSeq(master[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(f, "=")
			fields[name] = value
		}
		if fields["state"] == "online" {
			addrs = append(addrs, net.JoinHostPort(fields["ip"], fields["port"]))
		}
	}
	return addrs
}

// FindWatched finds the servers that sentinels monitor, and the other sentinels, from the addresses of some. master is
// the name of the master; empty if they monitor only one.
func FindWatched(ctx context.Context, sentinels []instance.Endpoint, master string, remote bool) (f Found, err error) {
	first := sentinels[0]
	data := first // the credentials of the sentinels and of the servers may differ
	var given []string
	for _, e := range sentinels {
		e, in, err := instance.ProbeOptionalPassword(ctx, e.WithoutDB())
		if err == nil {
			err = instance.CheckMode(e.Addr, in, "sentinel", "sentinel")
		}
		if err != nil {
			return f, err
		}
		if e.Addr == first.Addr {
			first = e
		}
		given = append(given, e.Addr)
	}
	name, err := chooseMaster(ctx, first, master)
	if err != nil {
		return f, err
	}
	g, err := guarding(ctx, first, name)
	if err != nil {
		return f, err
	}
	for _, s := range g.sentinels {
		if !slices.Contains(given, s) {
			given = append(given, s)
		}
	}
	return assembleWatched(ctx, remote, data, first, g, given)
}

// chooseMaster returns the name of the master that the sentinel monitors.
func chooseMaster(ctx context.Context, sentinel instance.Endpoint, wanted string) (string, error) {
	var names []string
	err := instance.Talk(ctx, sentinel, "its masters", func(ctx context.Context, c *redis.Client) error {
		cmd := redis.NewMapStringStringSliceCmd(ctx, "sentinel", "masters")
		err := c.Process(ctx, cmd)
		for _, m := range cmd.Val() {
			names = append(names, m["name"])
		}
		return err
	})
	slices.Sort(names)
	switch {
	case err != nil:
		return "", err
	case wanted != "" && !slices.Contains(names, wanted):
		return "", errclass.Usagef("the sentinel %s looks after %s, not %q", sentinel.Addr, listed(names), wanted)
	case wanted != "":
		return wanted, nil
	case len(names) != 1:
		return "", errclass.Usagef("the sentinel %s looks after %s: choose a master, as in redis://%s?master=NAME", sentinel.Addr, listed(names), sentinel.Addr)
	}
	return names[0], nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no master"
	}
	return strings.Join(names, ", ")
}

// guardedServers holds the addresses of servers that belong together.
type guardedServers struct {
	name                string
	master              string
	replicas, sentinels []string
}

// reappearing is how long to wait for a sentinel to notice that a server which it calls down answers again. On a busy machine, a
// sentinel may call a server down that is not.
const reappearing = 2 * time.Second

// guarding asks a sentinel for the servers of a master's group. It omits servers that the sentinel calls down, after it has waited
// for them.
func guarding(ctx context.Context, sentinel instance.Endpoint, name string) (guardedServers, error) {
	limited, cancel := context.WithTimeout(ctx, reappearing)
	defer cancel()
	var g guardedServers
	var failed error
	_ = instance.Poll(limited, func(ctx context.Context) error {
		down := 0
		g = guardedServers{name: name}
		failed = instance.Talk(ctx, sentinel, "its servers", func(ctx context.Context, c *redis.Client) error {
			at, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", name).StringSlice()
			if err != nil {
				return err
			}
			g.master = net.JoinHostPort(at[0], at[1])
			for list, addrs := range map[string]*[]string{"replicas": &g.replicas, "sentinels": &g.sentinels} {
				n := 0
				if *addrs, n, err = living(ctx, c, list, name); err != nil {
					return err
				}
				down += n
			}
			return nil
		})
		if failed == nil && down > 0 {
			return fmt.Errorf("the sentinel calls %s down", phrase.Count(down, "server"))
		}
		return nil
	})
	return g, failed
}

// living returns the addresses of the servers that a sentinel does not call down, and the number of those that it does.
func living(ctx context.Context, c *redis.Client, list, name string) (addrs []string, down int, _ error) {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "sentinel", list, name)
	err := c.Process(ctx, cmd)
	for _, e := range cmd.Val() {
		if isDown(e) {
			down++
		} else {
			addrs = append(addrs, net.JoinHostPort(e["ip"], e["port"]))
		}
	}
	return addrs, down, err
}

// isDown reports whether a sentinel calls a server down.
func isDown(said map[string]string) bool { return strings.Contains(said["flags"], "down") }

func assembleWatched(ctx context.Context, remote bool, data, sentinel instance.Endpoint, g guardedServers, sentinels []string) (f Found, err error) {
	var all []*instance.Server
	for _, part := range []struct {
		via   instance.Endpoint
		addrs []string
		role  instance.Role
	}{{data, []string{g.master}, instance.Master}, {data, g.replicas, instance.Replica}, {sentinel, sentinels, instance.Sentinel}} {
		some, err := part.via.Neighbours(ctx, remote, part.addrs, part.role)
		if err != nil {
			return f, err
		}
		all = append(all, some...)
	}
	for _, s := range all {
		if s.Role == instance.Replica {
			s.Of = 1
		}
	}
	f.Group = NewGroup(all, true)
	f.Shape = NewWatched(f.Group, g.name)
	f.Why = fmt.Sprintf("%s on %s is the master %q of the sentinel at the given address %s, with %s and %s",
		instance.Named(instance.Versions(all)), g.master, g.name, sentinel.Addr, phrase.Count(len(g.replicas), "replica"), phrase.Count(len(sentinels), "sentinel"))
	return f, nil
}

// FindCluster finds the nodes of a cluster from the addresses of some.
func FindCluster(ctx context.Context, nodes []instance.Endpoint, remote bool) (f Found, err error) {
	first := nodes[0]
	var v view
	for i, e := range nodes {
		in, err := instance.Probe(ctx, e)
		if err == nil {
			err = instance.CheckMode(e.Addr, in, "cluster", "node of a cluster")
		}
		if err != nil {
			return f, err
		}
		own, err := clusterAt(ctx, e)
		if err != nil {
			return f, err
		}
		if i == 0 {
			v = own
		} else if !v.overlaps(own) {
			return f, errclass.Usagef("%s and %s belong to different clusters", first.Addr, e.Addr)
		}
	}
	return assembleCluster(ctx, remote, first, v)
}

// clusterAt asks a node for all others, and refuses a cluster that does not serve all keys.
func clusterAt(ctx context.Context, e instance.Endpoint) (v view, err error) {
	var state instance.Info
	err = instance.Talk(ctx, e, "its cluster", func(ctx context.Context, c *redis.Client) error {
		text, err := c.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		state = instance.ParseInfo(text)
		text, err = c.ClusterNodes(ctx).Result()
		v = parseView(text)
		return err
	})
	if err == nil && (state["cluster_state"] != "ok" || state.Number("cluster_slots_assigned") != slots) {
		err = errclass.Environmentf("the cluster of %s does not serve all keys: its cluster_state is %s, and %s of %d slots have a master",
			e.Addr, state["cluster_state"], state["cluster_slots_assigned"], slots)
	}
	return v.reachedAt(e.Addr), err
}

// reachedAt fills in the address of the node that answered, if it does not know its own.
func (v view) reachedAt(addr string) view {
	for at, m := range v {
		if host, _, err := net.SplitHostPort(at); m.is("myself") && (err != nil || host == "") {
			delete(v, at)
			v[addr] = m
		}
	}
	return v
}

// overlaps reports whether two views have a node in common.
func (v view) overlaps(other view) bool {
	for _, m := range v {
		for _, o := range other {
			if m.id == o.id {
				return true
			}
		}
	}
	return false
}

func assembleCluster(ctx context.Context, remote bool, first instance.Endpoint, v view) (f Found, err error) {
	var masters, replicas []string
	for addr, m := range v {
		switch {
		case m.is("fail"), m.is("noaddr"), m.is("handshake"):
		case m.serves():
			masters = append(masters, addr)
		case m.is("slave"):
			replicas = append(replicas, addr)
		}
	}
	slices.SortFunc(masters, func(a, b string) int { return v[a].firstSlot() - v[b].firstSlot() })
	slices.Sort(replicas)
	all, err := first.Neighbours(ctx, remote, masters, instance.Master)
	if err != nil {
		return f, err
	}
	more, err := first.Neighbours(ctx, remote, replicas, instance.Replica)
	if err != nil {
		return f, err
	}
	for _, r := range more {
		r.Of = 1 + slices.IndexFunc(masters, func(m string) bool { return v[m].id == v[r.Addr].master })
	}
	f.Group = NewGroup(append(all, more...), true)
	f.Shape = NewCluster(f.Group)
	f.Why = fmt.Sprintf("%s answers at the given address %s, in a cluster of %s and %s", instance.Named(instance.Versions(f.Group.Servers)), first.Addr,
		phrase.Count(len(masters), "master"), phrase.Count(len(replicas), "replica"))
	return f, nil
}
