package target

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// startAttempts is how often ports are tried, as others take ports, too.
	startAttempts = 5
	// settleTimeout is how long the servers of a topology may take to know each
	// other; 2 s are usual for a cluster.
	settleTimeout = 20 * time.Second
)

func openProcess(ctx context.Context, p plan) (*Target, error) {
	h, err := newProcessHost(ctx, p.Clocks)
	if err != nil {
		return nil, err
	}
	t, err := openOwn(ctx, h, Process, p)
	if err != nil {
		return nil, err
	}
	t.clocks = p.Clocks
	return t, nil
}

func openContainer(ctx context.Context, p plan) (*Target, error) {
	h, err := newContainerHost(ctx, p.image())
	if err != nil {
		return nil, err
	}
	return openOwn(ctx, h, Container, p)
}

// openOwn starts the servers of a topology on a host, which the target owns from
// now on, and waits until they work together.
func openOwn(ctx context.Context, h host, kind Kind, p plan) (*Target, error) {
	servers, err := launchAll(ctx, h, p)
	if err != nil {
		h.close()
		return nil, err
	}
	t := newTarget(kind, servers)
	t.host = h
	t.alarmed.Store(true) // as they are configured
	t.shape = newShape(t, p.shape)
	t.Why = h.describe() + " on " + strings.Join(t.Addrs, ", ")
	if len(servers) > 1 {
		t.Why = fmt.Sprintf("%s, %d times, on %s", h.describe(), len(servers), strings.Join(t.Addrs, ", "))
	}
	if err := t.settle(ctx); err != nil {
		_ = t.Close()
		return nil, err
	}
	return t, nil
}

// newShape gives a target the behaviour of its topology.
func newShape(t *Target, name shapeName) shape {
	switch name {
	case replicated:
		return newPair(t)
	case guarded:
		return newGuard(t, masterName)
	case clustered:
		return newCluster(t)
	}
	return &standalone{t}
}

// settler is a shape whose servers must be introduced to each other.
type settler interface {
	settle(ctx context.Context) error
}

func (t *Target) settle(ctx context.Context) error {
	s, ok := t.shape.(settler)
	if !ok {
		return nil // each was waited for, and they have nothing to do with each other
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if err := s.settle(ctx); err != nil {
		return environmentf("set up the topology: %w", err)
	}
	return t.AwaitHealthy(ctx)
}

// launchAll starts the servers, again from the beginning on other ports if others
// were faster to take one.
func launchAll(ctx context.Context, h host, p plan) ([]*server, error) {
	for attempt := 1; ; attempt++ {
		servers, err := launchOnce(ctx, h, p)
		if err == nil || attempt == startAttempts || !errors.As(err, new(*takenPort)) {
			return servers, err
		}
	}
}

// launchOnce starts masters first, so that replicas find them, then replicas,
// then sentinels.
func launchOnce(ctx context.Context, h host, p plan) ([]*server, error) {
	b := blueprint{shape: p.shape, members: members(p.shape, p.masters), persist: p.Persist, version: h.version()}
	var err error
	if b.ports, err = h.ports(ctx, len(b.members), p.shape == clustered); err != nil {
		return nil, err
	}
	var all []*server
	for _, role := range []Role{Master, Replica, Sentinel} {
		first := len(all)
		some, err := inParallel(b.count(role), func(i int) (*server, error) { return launch(ctx, h, b, first+i) })
		if err != nil {
			endAll(all)
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func launch(ctx context.Context, h host, b blueprint, i int) (*server, error) {
	m, err := h.launch(ctx, b.settings(i))
	if err != nil {
		return nil, err
	}
	s := &server{Server: b.members[i], machine: m, version: m.info().version(), maxClients: m.info().number("maxclients")}
	s.Addr = m.addr()
	return s, nil
}

// blueprint is a topology before it is built.
type blueprint struct {
	shape   shapeName
	members []Server // in the order of their numbers
	ports   []int
	persist bool
	version string // of the server, "" if unknown
}

func (b blueprint) count(r Role) (n int) {
	for _, m := range b.members {
		if m.Role == r {
			n++
		}
	}
	return n
}

// members lists the servers of a topology: masters first, then replicas, then
// sentinels.
func members(shape shapeName, masters int) []Server {
	var all []Server
	add := func(r Role, of ...int) {
		for _, of := range of {
			all = append(all, Server{Number: len(all) + 1, Role: r, Of: of})
		}
	}
	switch shape {
	case replicated:
		add(Master, 0)
		add(Replica, 1)
	case guarded:
		add(Master, 0)
		add(Replica, 1, 1)
		add(Sentinel, 0, 0, 0)
	case clustered:
		add(Master, 0, 0, 0)
		add(Replica, 1, 2, 3)
	default:
		add(Master, make([]int, masters)...)
	}
	return all
}

// settings of the server at place i.
func (b blueprint) settings(i int) settings {
	s := settings{port: b.ports[i], persist: b.persist}
	switch b.shape {
	case clustered:
		s.options = clusterOptions()
	case replicated, guarded:
		s.options = replicationOptions()
		if b.members[i].Role == Sentinel {
			s = settings{port: b.ports[i], sentinel: true, lines: b.sentinelLines(i)}
		} else if of := b.members[i].Of; of != 0 && b.shape == guarded {
			s.options = append(s.options, "replicaof", fmt.Sprintf("127.0.0.1 %d", b.ports[of-1]))
		}
	}
	return s
}

// replicationOptions have a replica get its first copy at once: by default its
// master waits 5 s for more replicas to ask.
func replicationOptions() []string {
	return []string{"repl-diskless-sync", "yes", "repl-diskless-sync-delay", "0"}
}
