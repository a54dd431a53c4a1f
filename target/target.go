package target

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
	"oversell/internal/guard"
)

// Target is one Redis: a server, several independent masters, or servers that
// stand in for each other. Its exported fields are set by [Open] and do not
// change. Its methods are safe for concurrent use.
type Target struct {
	Kind Kind
	// Topology is single, masters:N, replica, sentinel or cluster.
	Topology string
	// Why says in one sentence what was chosen and why.
	Why string
	// ServerVersion is what the server calls itself, like "7.0.15"; different
	// versions of several masters are separated by commas.
	ServerVersion string
	// Caveat is what a report about this target must not conceal; often empty.
	Caveat string
	// Notes are what a user should know besides: what was found, and mended, of runs
	// that were killed.
	Notes []string
	// Addrs are the addresses of those servers that were masters when the target
	// was opened, host:port, without credentials.
	Addrs []string

	// servers are all, in the order of their numbers, and masters those that were
	// masters at first.
	servers, masters []*server
	shape            shape
	host             host // nil unless the servers are ours
	clocks           bool // the servers' clocks can be moved
	localOnly        bool // clients may be sent to addresses on this machine only
	done             chan struct{}
	watchers         sync.WaitGroup
	alarmed          atomic.Bool  // those who look after the servers are not patient
	guard            *guard.Guard // nil unless the servers are somebody else's

	mu      sync.Mutex
	closing bool
	err     error
	via     func(addr string) string
	claims  map[string]func() // by the prefix of the keys
	deposed map[int]deposed   // by the number of the master
}

// shape is what differs between the topologies once their servers run.
type shape interface {
	// nodes is the number of independent masters.
	nodes() int
	// options and client are those of a node; see Target.Options and Client.
	options(node int, o ConnOptions) *redis.Options
	client(node int, o ConnOptions) redis.UniversalClient
	// connections is how many connections are open, at most, to any server when
	// a node's clients have n, and how many to all servers together.
	connections(n int) (each, all int)
	// canFailOver says what keeps a failover from happening.
	canFailOver() error
	// primary and promote are as in Target, for a server that was a master.
	primary(ctx context.Context, master *server) (*server, error)
	promote(ctx context.Context, master *server) (*server, error)
	// revive puts a server into its place that was started again.
	revive(ctx context.Context, s *server) error
	// become tells those who look after the servers. It may fail for some of them.
	become(ctx context.Context, m mood) error
	// missing says what is not yet as AwaitHealthy wants it, nil if nothing.
	missing(ctx context.Context) error
}

// Open finds or starts the Redis that spec asks for and makes sure that it
// answers and is what it should be. ctx bounds the opening only. On an error,
// of class [ErrUsage] or [ErrEnvironment], nothing is left running.
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
	t.localOnly = !p.AllowRemote
	return t, nil
}

func openAuto(ctx context.Context, p plan) (*Target, error) {
	if _, err := exec.LookPath(serverName); err == nil {
		return openProcess(ctx, p)
	}
	if err := p.checkEmbedded(); err != nil {
		return nil, environmentf("no %s was found on PATH, and %w", serverName, err)
	}
	return openEmbedded(clock.Real{}, p.masters, "no "+serverName+" was found on PATH, so the in-memory emulation is used")
}

// newTarget makes a target of its servers, which are numbered here, and watches
// over those that are ours.
func newTarget(kind Kind, servers []*server) *Target {
	t := &Target{Kind: kind, servers: servers, done: make(chan struct{})}
	var versions []string
	for i, s := range servers {
		s.Number = i + 1
		s.life.Store(new(life))
		s.connectAdmin()
		if s.Role == Master {
			t.masters = append(t.masters, s)
			t.Addrs = append(t.Addrs, s.Addr)
			versions = append(versions, s.version)
		}
	}
	t.ServerVersion = joinVersions(versions)
	for _, s := range servers {
		t.watch(s)
	}
	return t
}

// watch ends the target when a server of ours dies that nobody killed.
func (t *Target) watch(s *server) {
	if s.machine == nil {
		return
	}
	exited, life := s.machine.exited(), s.life.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return // and Close waits for those who watch
	}
	t.watchers.Go(func() {
		<-exited
		if !life.ended.Load() {
			t.end(environmentf("the server on %s died: %s", s.Addr, s.machine.lastWords()))
		}
	})
}

// end closes Done, and keeps err if this is not our own doing.
func (t *Target) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing || t.err != nil {
		return
	}
	t.err = err
	close(t.done)
}

// Done is closed when the target is gone: because Close was called, or because
// a server that we started died. Err tells which.
func (t *Target) Done() <-chan struct{} { return t.done }

// Err is nil while the target is well and after an orderly Close, and says which
// server died otherwise, with class [ErrEnvironment]. Only servers that we
// started are watched, and not for what Kill does to them.
func (t *Target) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close stops what Open started, killed and frozen servers included, and waits
// until it is gone. It leaves other servers alone, and the clients it handed out,
// too: those are their owners'. Further calls do nothing. If a server had died
// before, Close reports that.
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
		endAll(t.servers)
		t.watchers.Wait()
		if t.host != nil {
			t.host.close()
		}
		if unguarded != nil {
			return environmentf("leave %s as it was: %w", t.Addrs[0], unguarded)
		}
	}
	t.watchers.Wait()
	return t.Err()
}

func endAll(servers []*server) {
	var wg sync.WaitGroup
	for _, s := range servers {
		if s != nil {
			wg.Go(s.end)
		}
	}
	wg.Wait()
}

// Nodes is the number of independent masters, at least 1. A primary with
// replicas counts as one, and so does a cluster.
func (t *Target) Nodes() int { return t.shape.nodes() }

// PID is the process id of what was a master when the target was opened, if we
// started it as a child, otherwise 0. It panics if there is no such node.
func (t *Target) PID(node int) int {
	if m := t.masters[node].machine; m != nil {
		return m.pid()
	}
	return 0
}

// joinVersions names the version once if all masters agree.
func joinVersions(versions []string) string {
	for _, v := range versions {
		if v != versions[0] {
			return strings.Join(versions, ", ")
		}
	}
	return versions[0]
}

// inParallel opens n servers at once. If one fails, it stops the others.
func inParallel(n int, open func(i int) (*server, error)) ([]*server, error) {
	servers, errs := make([]*server, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { servers[i], errs[i] = open(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			endAll(servers)
			return nil, err // the first is explanation enough, and one line
		}
	}
	return servers, nil
}
