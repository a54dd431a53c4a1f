package topology

import (
	"context"
	"errors"
	"fmt"

	"oversell/server/instance"
)

// StartAttempts is how often ports are tried, since other processes take ports, too.
const StartAttempts = 5

// Wanted is a topology to build.
type Wanted struct {
	Shape   ShapeName
	Masters int  // of independent servers
	Persist bool // the servers keep an append-only file
}

// LaunchAll starts the servers, and starts again on other ports if another process took one first.
func LaunchAll(ctx context.Context, h instance.Host, w Wanted) ([]*instance.Server, error) {
	for attempt := 1; ; attempt++ {
		servers, err := launchOnce(ctx, h, w)
		if err == nil || attempt == StartAttempts || !errors.As(err, new(*instance.TakenPort)) {
			return servers, err
		}
	}
}

// launchOnce starts masters first, so that replicas find them, then replicas,
// then sentinels.
func launchOnce(ctx context.Context, h instance.Host, w Wanted) ([]*instance.Server, error) {
	b := blueprint{shape: w.Shape, members: Members(w.Shape, w.Masters), persist: w.Persist, version: h.Version()}
	var err error
	if b.ports, err = h.Ports(ctx, len(b.members), w.Shape == Clustered); err != nil {
		return nil, err
	}
	var all []*instance.Server
	for _, role := range []instance.Role{instance.Master, instance.Replica, instance.Sentinel} {
		first := len(all)
		some, err := instance.OpenAll(b.count(role), func(i int) (*instance.Server, error) { return launch(ctx, h, b, first+i) })
		if err != nil {
			instance.EndAll(all)
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func launch(ctx context.Context, h instance.Host, b blueprint, i int) (*instance.Server, error) {
	m, err := h.Launch(ctx, b.settings(i))
	if err != nil {
		return nil, err
	}
	s := &instance.Server{Member: b.members[i], Machine: m, Version: m.Info().Version(), MaxClients: m.Info().Number("maxclients")}
	s.Addr = m.Addr()
	return s, nil
}

// blueprint is a topology before it is built.
type blueprint struct {
	shape   ShapeName
	members []instance.Member // in the order of their numbers
	ports   []int
	persist bool
	version string // of the server, "" if unknown
}

func (b blueprint) count(r instance.Role) (n int) {
	for _, m := range b.members {
		if m.Role == r {
			n++
		}
	}
	return n
}

// Members lists the servers of a topology: masters first, then replicas, then
// sentinels.
func Members(shape ShapeName, masters int) []instance.Member {
	var all []instance.Member
	add := func(r instance.Role, of ...int) {
		for _, of := range of {
			all = append(all, instance.Member{Number: len(all) + 1, Role: r, Of: of})
		}
	}
	switch shape {
	case Replicated:
		add(instance.Master, 0)
		add(instance.Replica, 1)
	case Guarded:
		add(instance.Master, 0)
		add(instance.Replica, 1, 1)
		add(instance.Sentinel, 0, 0, 0)
	case Clustered:
		add(instance.Master, 0, 0, 0)
		add(instance.Replica, 1, 2, 3)
	default:
		add(instance.Master, make([]int, masters)...)
	}
	return all
}

// settings returns the settings of server i.
func (b blueprint) settings(i int) instance.Settings {
	s := instance.Settings{Port: b.ports[i], Persist: b.persist}
	switch b.shape {
	case Clustered:
		s.Options = clusterOptions()
	case Replicated, Guarded:
		s.Options = replicationOptions()
		if b.members[i].Role == instance.Sentinel {
			s = instance.Settings{Port: b.ports[i], Sentinel: true, Lines: b.sentinelLines(i)}
		} else if of := b.members[i].Of; of != 0 && b.shape == Guarded {
			s.Options = append(s.Options, "replicaof", fmt.Sprintf("127.0.0.1 %d", b.ports[of-1]))
		}
	}
	return s
}

// replicationOptions make a replica get its first copy at once: by default its master waits 5 s for more replicas.
func replicationOptions() []string {
	return []string{"repl-diskless-sync", "yes", "repl-diskless-sync-delay", "0"}
}
