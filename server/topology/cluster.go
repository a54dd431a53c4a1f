package topology

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
	"oversell/server/instance"
)

// Cluster is the shape of several masters that share the keys, each with replicas; the nodes elect one of these when
// they give up its master.
type Cluster struct {
	t        *Group
	commands sharedCommands

	mu sync.Mutex
	// former holds the server that served as each master, as last reported to a caller, by the number of the master.
	former map[int]*instance.Server
}

// NewCluster returns the shape of the cluster that the servers of t form.
func NewCluster(t *Group) *Cluster {
	c := &Cluster{t: t, former: map[int]*instance.Server{}}
	for _, m := range t.Masters {
		c.former[m.Number] = m
	}
	return c
}

// Nodes implements Shape: to a client, a cluster is one node.
func (c *Cluster) Nodes() int { return 1 }

// CanFailOver implements Shape.
func (c *Cluster) CanFailOver() error {
	for _, m := range c.t.Masters {
		if len(c.group(m)) < 2 {
			return errclass.Usagef("a failover needs a replica of each master, but server %d on %s has none", m.Number, m.Addr)
		}
	}
	return nil
}

// group returns the servers that keep the same keys as a master did at first.
func (c *Cluster) group(master *instance.Server) []*instance.Server {
	var all []*instance.Server
	for _, s := range c.t.Servers {
		if s == master || s.Of == master.Number {
			all = append(all, s)
		}
	}
	return all
}

const (
	slots = 16384
	// nodeTimeout is how long a node may be silent before a watchful node gives it up. The election then takes another
	// 0.5 to 1 s.
	nodeTimeout = 500 * time.Millisecond
	// patience is the same for patient nodes and sentinels.
	patience = 10 * time.Second
	// noMigration is more replicas than any master has: a master with more than the setting would give one to a master
	// that has lost its own.
	noMigration = 100
)

// clusterOptions make the nodes detect failures fast, and serve the keys with a master even while others have none.
func clusterOptions() []string {
	return append(replicationOptions(),
		"cluster-enabled", "yes",
		"cluster-announce-ip", "127.0.0.1",
		"cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
		"cluster-require-full-coverage", "no",
		"cluster-replica-validity-factor", "0", // however old its data are, a replica may become the master
		"cluster-migration-barrier", strconv.Itoa(noMigration),
	)
}

// Settle makes a cluster of the servers: it assigns the slots, introduces the nodes to each other, and attaches the
// replicas. It tells every node of every other node: gossip alone would take a second longer.
func (c *Cluster) Settle(ctx context.Context) error {
	for _, step := range []func(context.Context, *instance.Server) error{c.giveSlots, c.introduce, c.enlist} {
		for _, s := range c.t.Servers {
			if err := step(ctx, s); err != nil {
				return fmt.Errorf("server %d on %s: %w", s.Number, s.Addr, err)
			}
		}
	}
	return nil
}

// giveSlots gives a master its slots, before it knows any other node. The masters' epochs must differ; the nodes would
// correct equal ones only later.
func (c *Cluster) giveSlots(ctx context.Context, s *instance.Server) error {
	if s.Role != instance.Master {
		return nil
	}
	if err := s.Admin.Do(ctx, "cluster", "set-config-epoch", s.Number).Err(); err != nil {
		return err
	}
	n := len(c.t.Masters)
	first, last := slots*(s.Number-1)/n, slots*s.Number/n-1
	if instance.SinceVersion(s.Version, 7) {
		return s.Admin.Do(ctx, "cluster", "addslotsrange", first, last).Err()
	}
	return s.Admin.ClusterAddSlotsRange(ctx, first, last).Err() // which lists them all
}

// introduce makes a server meet those with higher numbers.
func (c *Cluster) introduce(ctx context.Context, s *instance.Server) error {
	for _, other := range c.t.Servers[s.Number:] {
		host, port, err := net.SplitHostPort(other.Addr)
		if err != nil {
			return err
		}
		if err := s.Admin.ClusterMeet(ctx, host, port).Err(); err != nil {
			return fmt.Errorf("meet server %d: %w", other.Number, err)
		}
	}
	return nil
}

// enlist makes a server a replica, as soon as it knows its master.
func (c *Cluster) enlist(ctx context.Context, s *instance.Server) error {
	if s.Role != instance.Replica {
		return nil
	}
	master, err := c.t.Servers[s.Of-1].Admin.ClusterMyID(ctx).Result()
	if err != nil {
		return err
	}
	return instance.Poll(ctx, func(ctx context.Context) error {
		if err := s.Admin.ClusterReplicate(ctx, master).Err(); err != nil {
			return fmt.Errorf("follow server %d: %w", s.Of, err)
		}
		return nil
	})
}

// SetDetection changes how long a node may be silent.
func (c *Cluster) SetDetection(ctx context.Context, m Detection) error {
	limit := nodeTimeout
	if m == Patient {
		limit = patience
	}
	return c.t.toAll(ctx, func(ctx context.Context, c *redis.Client) error {
		return c.ConfigSet(ctx, "cluster-node-timeout", strconv.FormatInt(limit.Milliseconds(), 10)).Err()
	}, instance.Master, instance.Replica)
}

// Revive does nothing: a node keeps its identity and its view of the cluster in a file.
func (c *Cluster) Revive(context.Context, *instance.Server) error { return nil }

// peer is one node's view of another, or of itself.
type peer struct {
	id     string
	flags  []string
	master string // the id of its master, "-" if none
	epoch  int
	linked bool
	slots  string // "0-5460", empty if it has none
}

func (m peer) is(flag string) bool { return slices.Contains(m.flags, flag) }

// serves reports whether the peer is a master that has keys.
func (m peer) serves() bool { return m.is("master") && m.slots != "" }

// firstSlot returns the lowest of its slots.
func (m peer) firstSlot() int {
	text, _, _ := strings.Cut(m.slots, " ")
	text, _, _ = strings.Cut(text, "-")
	n, _ := strconv.Atoi(text)
	return n
}

// view is a node's view of all nodes, by address.
type view map[string]peer

// parseView reads the answer to CLUSTER NODES, a member a line:
//
//	07c37dfeb235213a872192d90877d0cd55635b91 127.0.0.1:30004@31004,host slave e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 0 1426238317239 4 connected
func parseView(text string) view {
	v := view{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		addr, _, _ := strings.Cut(f[1], "@")
		epoch, _ := strconv.Atoi(f[6])
		m := peer{id: f[0], flags: strings.Split(f[2], ","), master: f[3], epoch: epoch, linked: f[7] == "connected", slots: strings.Join(f[8:], " ")}
		m.linked = m.linked || m.is("myself")
		v[addr] = m
	}
	return v
}

// views asks all servers that were not killed or frozen. Those that do not answer
// have a nil view and a reason.
func (c *Cluster) views(ctx context.Context) ([]view, []error) {
	views, errs := make([]view, len(c.t.Servers)), make([]error, len(c.t.Servers))
	var wg sync.WaitGroup
	for i, s := range c.t.Servers {
		if errs[i] = s.Away(); errs[i] != nil {
			continue
		}
		wg.Go(func() {
			errs[i] = s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
				text, err := c.ClusterNodes(ctx).Result()
				views[i] = parseView(text)
				return err
			})
			if errs[i] != nil {
				views[i], errs[i] = nil, s.Silent(errs[i])
			}
		})
	}
	wg.Wait()
	return views, errs
}

// Primary returns the server of a group that serves with the highest epoch known to any node: each election has a
// higher one than all before.
func (c *Cluster) Primary(ctx context.Context, master *instance.Server) (*instance.Server, error) {
	views, errs := c.views(ctx)
	if s := c.newest(master, views); s != nil {
		return s, nil
	}
	return nil, cmp.Or(cmp.Or(errs...), errors.New("no node names a master of these keys"))
}

func (c *Cluster) newest(master *instance.Server, views []view) *instance.Server {
	var best *instance.Server
	epoch := -1
	for _, s := range c.group(master) {
		for _, v := range views {
			if m := v[s.Addr]; m.serves() && m.epoch > epoch {
				best, epoch = s, m.epoch
			}
		}
	}
	return best
}

// Promote implements Shape. It waits until the nodes have elected another server than the present
// one; in a cluster that oversell did not start, it asks a replica to begin.
func (c *Cluster) Promote(ctx context.Context, master *instance.Server) (*instance.Server, error) {
	if c.t.given {
		if err := c.demand(ctx, master); err != nil {
			return nil, err
		}
	}
	var s *instance.Server
	err := instance.Poll(ctx, func(ctx context.Context) (err error) {
		s, err = c.successor(ctx, master)
		return err
	})
	if err == nil {
		c.remember(master, s)
	}
	return s, err
}

func (c *Cluster) remember(master, s *instance.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.former[master.Number] = s
}

// demand makes a replica take its master's place, though the master is healthy.
func (c *Cluster) demand(ctx context.Context, master *instance.Server) error {
	now, err := c.Primary(ctx, master)
	if err != nil {
		return err
	}
	c.remember(master, now)
	err = errors.New("it has no replica")
	for _, s := range c.group(master) {
		if s == now {
			continue
		}
		err = s.Visit(ctx, func(ctx context.Context, c *redis.Client) error { return c.ClusterFailover(ctx).Err() })
		if err == nil {
			return nil
		}
	}
	return err
}

// successor returns the primary of a group if it is not the former one and knows that it is the primary.
func (c *Cluster) successor(ctx context.Context, master *instance.Server) (*instance.Server, error) {
	views, errs := c.views(ctx)
	s := c.newest(master, views)
	c.mu.Lock()
	former := c.former[master.Number]
	c.mu.Unlock()
	switch {
	case s == nil:
		return nil, cmp.Or(cmp.Or(errs...), errors.New("no node names a master"))
	case s == former:
		return nil, fmt.Errorf("the nodes have not replaced server %d on %s", s.Number, s.Addr)
	case !views[s.Number-1][s.Addr].serves():
		return nil, fmt.Errorf("server %d on %s was elected, but does not serve yet", s.Number, s.Addr)
	}
	return s, nil
}

// CheckHealth implements Shape.
func (c *Cluster) CheckHealth(ctx context.Context) error {
	answers, err := c.t.InfoAll(ctx)
	if err != nil {
		return err
	}
	views, errs := c.views(ctx)
	for i, err := range errs {
		if err != nil && !c.t.Servers[i].Killed.Load() {
			return err
		}
	}
	now := map[*instance.Server]*instance.Server{} // which server serves, and as which master
	for _, m := range c.t.Masters {
		s := c.newest(m, views)
		if s == nil {
			return fmt.Errorf("nobody serves the keys of server %d on %s", m.Number, m.Addr)
		}
		now[s] = m
		if err := c.t.follow(ctx, s, c.group(m), answers); err != nil {
			return err
		}
	}
	for i, v := range views {
		if err := c.agrees(c.t.Servers[i], v, now); err != nil {
			return err
		}
	}
	if err := c.working(ctx); err != nil {
		return err
	}
	for s, m := range now {
		c.remember(m, s)
	}
	return nil
}

// agrees compares a node's view of the others with the servers that should serve now.
func (c *Cluster) agrees(node *instance.Server, v view, now map[*instance.Server]*instance.Server) error {
	if v == nil {
		return nil // it was killed
	}
	for _, s := range c.t.Servers {
		if s.Killed.Load() {
			continue
		}
		m, known := v[s.Addr]
		says := strings.Join(m.flags, ",")
		serves := now[s] != nil
		switch {
		case !known:
			says = "unknown"
		case !m.linked:
			says += ", not connected"
		case m.serves() == serves && m.is("slave") != serves && !m.is("fail") && !m.is("fail?") && !m.is("handshake"):
			continue
		}
		return fmt.Errorf("server %d on %s says of server %d on %s: %s", node.Number, node.Addr, s.Number, s.Addr, says)
	}
	return nil
}

// working reports a node that does not serve, because it has not heard from most masters for some time, or since it was
// started.
func (c *Cluster) working(ctx context.Context) error {
	for _, s := range c.t.Servers {
		if s.Killed.Load() {
			continue
		}
		var state instance.Info
		err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) error {
			text, err := c.ClusterInfo(ctx).Result()
			state = instance.ParseInfo(text)
			return err
		})
		if err != nil {
			return s.Silent(err)
		}
		if state["cluster_state"] != "ok" {
			return fmt.Errorf("server %d on %s does not serve yet: its cluster_state is %s", s.Number, s.Addr, state["cluster_state"])
		}
	}
	return nil
}
