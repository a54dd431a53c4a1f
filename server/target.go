package server

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"

	"oversell/clock"
	"oversell/internal/errclass"
	"oversell/internal/guard"
	"oversell/server/instance"
	"oversell/server/topology"
)

// Target is one Redis: a server, several independent masters, or servers that can replace each other. Its exported
// fields are set by [Open] and do not change. Its methods are safe for concurrent use.
type Target struct {
	Kind Kind
	// Topology is single, masters:N, replica, sentinel or cluster.
	Topology string
	// Why says in one sentence what was chosen and why.
	Why string
	// ServerVersion is the server's version, like "7.0.15"; different versions of several masters are separated by
	// commas.
	ServerVersion string
	// Caveat is what every report about this target must state; often empty.
	Caveat string
	// Notes are further facts for the user: leftovers of killed runs that were found or repaired.
	Notes []string
	// Addrs are the addresses of those servers that were masters when the target
	// was opened, host:port, without credentials.
	Addrs []string

	group    *topology.Group
	shape    topology.Shape
	host     instance.Host // nil unless the servers are ours
	clocks   bool          // the servers' clocks can be moved
	done     chan struct{}
	watchers sync.WaitGroup
	alarmed  atomic.Bool  // the sentinels or cluster nodes are not Patient
	guard    *guard.Guard // nil if oversell started the servers

	mu      sync.Mutex
	closing bool
	err     error
	claims  map[string]func() // by the prefix of the keys
	deposed map[int]deposed   // by the number of the master
}

// Open finds or starts the Redis that spec asks for and checks that it answers and is what spec says. ctx bounds the
// opening only. On an error, of class [ErrUsage] or [ErrEnvironment], nothing is left running.
func Open(ctx context.Context, spec Spec) (*Target, error) {
	p, err := spec.plan(ctx)
	if err != nil {
		return nil, err
	}
	var t *Target
	switch p.kind {
	case Address:
		t, err = openGiven(ctx, p)
	case Embedded:
		t, err = openEmbedded(clock.Real{}, p.masters, "the in-memory emulation was asked for")
	case Process:
		t, err = openProcess(ctx, p)
	case Container:
		t, err = openContainer(ctx, p)
	default:
		t, err = openAuto(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	t.Topology = p.topology
	t.group.LocalOnly = !p.AllowRemote
	return t, nil
}

func openAuto(ctx context.Context, p plan) (*Target, error) {
	if _, err := exec.LookPath(instance.ServerName); err == nil {
		return openProcess(ctx, p)
	}
	if err := p.checkEmbedded(); err != nil {
		return nil, errclass.Environmentf("no %s was found on PATH, and %w", instance.ServerName, err)
	}
	return openEmbedded(clock.Real{}, p.masters, "no "+instance.ServerName+" was found on PATH, so the in-memory emulation is used")
}

// newTarget makes a target of its servers, and watches those that are ours.
func newTarget(kind Kind, g *topology.Group) *Target {
	t := &Target{Kind: kind, group: g, done: make(chan struct{})}
	for _, m := range g.Masters {
		t.Addrs = append(t.Addrs, m.Addr)
	}
	t.ServerVersion = instance.Versions(g.Servers)
	for _, s := range g.Servers {
		t.watch(s)
	}
	return t
}

// watch ends the target when a server of ours dies that was not killed on purpose.
func (t *Target) watch(s *instance.Server) {
	if s.Machine == nil {
		return
	}
	exited, life := s.Machine.Exited(), s.Life.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return // and Close waits for those who watch
	}
	t.watchers.Go(func() {
		<-exited
		if !life.Ended.Load() {
			t.end(errclass.Environmentf("the server on %s died: %s", s.Addr, s.Machine.LastWords()))
		}
	})
}

// end closes Done, and keeps err unless Close was called.
func (t *Target) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing || t.err != nil {
		return
	}
	t.err = err
	close(t.done)
}

// Done returns a channel that is closed when the target is gone: because Close was called, or because a server that we
// started died. Err tells which.
func (t *Target) Done() <-chan struct{} { return t.done }

// Err returns nil while the target is well and after an orderly Close; otherwise it says which server died, with class
// [ErrEnvironment]. Only servers that we started are watched, and a Kill does not count.
func (t *Target) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close stops what Open started, including killed and frozen servers, and waits until it is gone. It does not stop
// other servers, nor close the clients it made, which belong to their owners. Further calls do nothing. If a server had
// died before, Close reports that.
func (t *Target) Close() error {
	t.mu.Lock()
	first := !t.closing
	t.closing = true
	if first && t.err == nil {
		close(t.done)
	}
	t.mu.Unlock()
	if first {
		unguarded := t.guard.Close()
		instance.EndAll(t.group.Servers)
		t.watchers.Wait()
		if t.host != nil {
			t.host.Close()
		}
		if unguarded != nil {
			return errclass.Environmentf("leave %s as it was: %w", t.Addrs[0], unguarded)
		}
	}
	t.watchers.Wait()
	return t.Err()
}

// Nodes returns the number of independent masters, at least 1. A master with
// replicas counts as one, and so does a cluster.
func (t *Target) Nodes() int { return t.shape.Nodes() }

// PID returns the process id of the server that was this master when the target was opened, if we started it as a
// child; otherwise 0. It panics if there is no such node.
func (t *Target) PID(node int) int {
	if m := t.group.Masters[node].Machine; m != nil {
		return m.PID()
	}
	return 0
}
