package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// This file finds the servers of a topology that runs already, from the address of
// one of them.

// neighbour is the endpoint of a server that another one told us of. The
// credentials are the same for all.
func (e endpoint) neighbour(addr string) (endpoint, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return endpoint{}, environmentf("%s names a server at %q, which is no address", e.addr, addr)
	}
	n := endpoint{host: host, addr: addr, login: e.loginFor(host)}
	return n, nil
}

// loginFor is a copy of the credentials for another host.
func (e endpoint) loginFor(host string) *redis.Options {
	login := *e.login
	if login.TLSConfig != nil {
		login.TLSConfig = login.TLSConfig.Clone()
		login.TLSConfig.ServerName = host
	}
	return &login
}

// knock is probe, but for the password: of servers and sentinels often only some
// want one. It returns the endpoint with the credentials that fit.
func knock(ctx context.Context, e endpoint) (endpoint, info, error) {
	in, err := probe(ctx, e)
	if errors.Is(err, errNoPassword) {
		e.login = e.loginFor(e.host)
		e.login.Username, e.login.Password = "", ""
		in, err = probe(ctx, e)
	}
	return e, in, err
}

// neighbours knocks at all addresses, which must be on this machine unless p allows
// others, and returns their servers.
func (e endpoint) neighbours(ctx context.Context, p plan, addrs []string, r Role) ([]*server, error) {
	all := make([]endpoint, len(addrs))
	for i, addr := range addrs {
		var err error
		if all[i], err = e.neighbour(addr); err != nil {
			return nil, err
		}
	}
	if !p.AllowRemote {
		if err := allLoopback(ctx, all); err != nil {
			return nil, fmt.Errorf("%s names a server elsewhere: %w", e.addr, err)
		}
	}
	return inParallel(len(all), func(i int) (*server, error) {
		e, in, err := knock(ctx, all[i])
		if err != nil {
			return nil, err
		}
		return e.server(in, r), checkLoaded(e.addr, in)
	})
}

// talk has a conversation with the server at an endpoint.
func talk(ctx context.Context, e endpoint, what string, say func(context.Context, *redis.Client) error) error {
	s := &server{Server: Server{Addr: e.addr}, login: e.login}
	if err := s.visitFor(ctx, probeTimeout, say); err != nil {
		return environmentf("ask %s for %s: %w", e.addr, what, err)
	}
	return nil
}

func openPairAt(ctx context.Context, p plan) (*Target, error) {
	e := p.endpoints[0]
	in, err := probe(ctx, e)
	if err == nil {
		err = checkMaster(e.addr, in)
	}
	if err != nil {
		return nil, err
	}
	replicas, err := e.neighbours(ctx, p, connectedReplicas(in), Replica)
	if err != nil {
		return nil, err
	}
	if len(replicas) == 0 {
		return nil, environmentf("%s has no connected replica: topology replica needs one", e.addr)
	}
	for _, r := range replicas {
		r.Of = 1
	}
	t := newTarget(Address, append([]*server{e.server(in, Master)}, replicas...))
	t.shape = newPair(t)
	t.Why = fmt.Sprintf("%s answers at the given address %s, and has %s", named(t.ServerVersion), e.addr, count(len(replicas), "replica"))
	return t, nil
}

// connectedReplicas are the addresses in lines like
//
//	slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1
func connectedReplicas(master info) []string {
	var addrs []string
	for i := range master.number("connected_slaves") {
		fields := info{}
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

func openGuardAt(ctx context.Context, p plan) (*Target, error) {
	first := p.endpoints[0]
	data := first // the credentials of the sentinels and of the servers may differ
	var given []string
	for _, e := range p.endpoints {
		e, in, err := knock(ctx, e.withoutDB())
		if err == nil {
			err = checkMode(e.addr, in, "sentinel", "sentinel")
		}
		if err != nil {
			return nil, err
		}
		if e.addr == first.addr {
			first = e
		}
		given = append(given, e.addr)
	}
	name, err := chooseMaster(ctx, first, p.master)
	if err != nil {
		return nil, err
	}
	g, err := guarding(ctx, first, name)
	if err != nil {
		return nil, err
	}
	for _, s := range g.sentinels {
		if !slices.Contains(given, s) {
			given = append(given, s)
		}
	}
	return assembleGuard(ctx, p, data, first, g, given)
}

// withoutDB is for sentinels, which have no databases.
func (e endpoint) withoutDB() endpoint {
	e.login = e.loginFor(e.host)
	e.login.DB = 0
	return e
}

// chooseMaster is the name of the master that the sentinel looks after.
func chooseMaster(ctx context.Context, sentinel endpoint, wanted string) (string, error) {
	var names []string
	err := talk(ctx, sentinel, "its masters", func(ctx context.Context, c *redis.Client) error {
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
		return "", usagef("the sentinel %s looks after %s, not %q", sentinel.addr, listed(names), wanted)
	case wanted != "":
		return wanted, nil
	case len(names) != 1:
		return "", usagef("the sentinel %s looks after %s: choose a master, as in redis://%s?master=NAME", sentinel.addr, listed(names), sentinel.addr)
	}
	return names[0], nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "no master"
	}
	return strings.Join(names, ", ")
}

// guardedServers are the addresses of servers that belong together.
type guardedServers struct {
	name                string
	master              string
	replicas, sentinels []string
}

// guarding asks a sentinel for the servers around a master. Those that it has given
// up are left out.
func guarding(ctx context.Context, sentinel endpoint, name string) (guardedServers, error) {
	g := guardedServers{name: name}
	err := talk(ctx, sentinel, "its servers", func(ctx context.Context, c *redis.Client) error {
		at, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", name).StringSlice()
		if err != nil {
			return err
		}
		g.master = net.JoinHostPort(at[0], at[1])
		if g.replicas, err = living(ctx, c, "replicas", name); err != nil {
			return err
		}
		g.sentinels, err = living(ctx, c, "sentinels", name)
		return err
	})
	return g, err
}

func living(ctx context.Context, c *redis.Client, list, name string) ([]string, error) {
	cmd := redis.NewMapStringStringSliceCmd(ctx, "sentinel", list, name)
	err := c.Process(ctx, cmd)
	var addrs []string
	for _, e := range cmd.Val() {
		if !strings.Contains(e["flags"], "down") {
			addrs = append(addrs, net.JoinHostPort(e["ip"], e["port"]))
		}
	}
	return addrs, err
}

func assembleGuard(ctx context.Context, p plan, data, sentinel endpoint, g guardedServers, sentinels []string) (*Target, error) {
	var all []*server
	for _, part := range []struct {
		via   endpoint
		addrs []string
		role  Role
	}{{data, []string{g.master}, Master}, {data, g.replicas, Replica}, {sentinel, sentinels, Sentinel}} {
		some, err := part.via.neighbours(ctx, p, part.addrs, part.role)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, s := range all {
		if s.Role == Replica {
			s.Of = 1
		}
	}
	t := newTarget(Address, all)
	t.shape = newGuard(t, g.name)
	t.Why = fmt.Sprintf("%s on %s is the master %q of the sentinel at the given address %s, with %s and %s",
		named(t.ServerVersion), g.master, g.name, sentinel.addr, count(len(g.replicas), "replica"), count(len(sentinels), "sentinel"))
	return t, nil
}

// count is a number of things: "1 replica", "2 replicas".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func openClusterAt(ctx context.Context, p plan) (*Target, error) {
	first := p.endpoints[0]
	var v view
	for i, e := range p.endpoints {
		in, err := probe(ctx, e)
		if err == nil {
			err = checkMode(e.addr, in, "cluster", "node of a cluster")
		}
		if err != nil {
			return nil, err
		}
		own, err := clusterAt(ctx, e)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			v = own
		} else if !v.overlaps(own) {
			return nil, usagef("%s and %s belong to different clusters", first.addr, e.addr)
		}
	}
	return assembleCluster(ctx, p, first, v)
}

// clusterAt asks a node for all others, and refuses a cluster that does not work.
func clusterAt(ctx context.Context, e endpoint) (v view, err error) {
	var state info
	err = talk(ctx, e, "its cluster", func(ctx context.Context, c *redis.Client) error {
		text, err := c.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		state = parseInfo(text)
		text, err = c.ClusterNodes(ctx).Result()
		v = parseView(text)
		return err
	})
	if err == nil && (state["cluster_state"] != "ok" || state.number("cluster_slots_assigned") != slots) {
		err = environmentf("the cluster of %s does not serve all keys: its cluster_state is %s, and %s of %d slots have a master",
			e.addr, state["cluster_state"], state["cluster_slots_assigned"], slots)
	}
	return v.reachedAt(e.addr), err
}

// reachedAt gives the node that was asked the address at which it was, if it does
// not know its own.
func (v view) reachedAt(addr string) view {
	for at, m := range v {
		if host, _, err := net.SplitHostPort(at); m.is("myself") && (err != nil || host == "") {
			delete(v, at)
			v[addr] = m
		}
	}
	return v
}

// overlaps tells whether two views have a node in common.
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

func assembleCluster(ctx context.Context, p plan, first endpoint, v view) (*Target, error) {
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
	all, err := first.neighbours(ctx, p, masters, Master)
	if err != nil {
		return nil, err
	}
	more, err := first.neighbours(ctx, p, replicas, Replica)
	if err != nil {
		return nil, err
	}
	for _, r := range more {
		r.Of = 1 + slices.IndexFunc(masters, func(m string) bool { return v[m].id == v[r.Addr].master })
	}
	t := newTarget(Address, append(all, more...))
	t.shape = newCluster(t)
	t.Why = fmt.Sprintf("%s answers at the given address %s, in a cluster of %s and %s", named(t.ServerVersion), first.addr,
		count(len(masters), "master"), count(len(replicas), "replica"))
	return t, nil
}
