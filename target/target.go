package target

import (
	"context"
	"os/exec"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"oversell/clock"
)

// Target is one Redis, or several independent masters. Its exported fields are
// set by [Open] and do not change. Its methods are safe for concurrent use.
type Target struct {
	Kind Kind
	// Topology is single or masters:N.
	Topology string
	// Why says in one sentence what was chosen and why.
	Why string
	// ServerVersion is what the server calls itself, like "7.0.15"; different
	// versions of several masters are separated by commas.
	ServerVersion string
	// Caveat is what a report about this target must not conceal; often empty.
	Caveat string
	// Addrs are the addresses of the masters, host:port, without credentials.
	Addrs []string

	nodes []*node
	done  chan struct{}
	watch sync.WaitGroup

	mu      sync.Mutex
	closing bool
	err     error
}

// node is one master.
type node struct {
	addr string
	// login holds credentials, database and TLS; nil when there are none.
	login *redis.Options
	// maxClients is the server's limit of connections; 0 if unknown.
	maxClients int
	// child is nil unless we started it as a process.
	child *child
	// stop is nil unless we started it.
	stop func()
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
		t, err = openAddresses(ctx, p)
	case Embedded:
		t, err = openEmbedded(clock.Real{}, p.masters, "the in-memory emulation was asked for")
	case Process:
		t, err = openProcess(ctx, p)
	default:
		t, err = openAuto(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	t.Topology = p.topology
	return t, nil
}

func openAuto(ctx context.Context, p plan) (*Target, error) {
	if _, err := exec.LookPath(serverName); err != nil {
		return openEmbedded(clock.Real{}, p.masters, "no "+serverName+" was found on PATH, so the in-memory emulation is used")
	}
	return openProcess(ctx, p)
}

// newTarget assembles a target from its nodes and watches over the children
// among them.
func newTarget(kind Kind, nodes []*node) *Target {
	t := &Target{Kind: kind, nodes: nodes, done: make(chan struct{})}
	for _, n := range nodes {
		t.Addrs = append(t.Addrs, n.addr)
	}
	for _, n := range nodes {
		if n.child == nil {
			continue
		}
		t.watch.Go(func() {
			<-n.child.exited
			t.end(environmentf("the server on %s died: %s", n.addr, n.child.lastWords()))
		})
	}
	return t
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
// started are watched.
func (t *Target) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Close stops what Open started and waits until it is gone. It leaves other
// servers alone, and the clients it handed out, too: those are their owners'.
// Further calls do nothing. If a server had died before, Close reports that.
func (t *Target) Close() error {
	t.mu.Lock()
	first := !t.closing
	t.closing = true
	if first && t.err == nil {
		close(t.done)
	}
	t.mu.Unlock()
	if first {
		stopAll(t.nodes)
	}
	t.watch.Wait()
	return t.Err()
}

func stopAll(nodes []*node) {
	var wg sync.WaitGroup
	for _, n := range nodes {
		if n != nil && n.stop != nil {
			wg.Go(n.stop)
		}
	}
	wg.Wait()
}

// Nodes is the number of independent masters, at least 1.
func (t *Target) Nodes() int { return len(t.nodes) }

// PID is the process id of a master that we started as a child, otherwise 0.
// It panics if there is no such node.
func (t *Target) PID(node int) int {
	if c := t.nodes[node].child; c != nil {
		return c.pid()
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

// inParallel opens n nodes at once. If one fails, it stops the others.
func inParallel(n int, open func(i int) (*node, error)) ([]*node, error) {
	nodes, errs := make([]*node, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { nodes[i], errs[i] = open(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			stopAll(nodes)
			return nil, err // the first is explanation enough, and one line
		}
	}
	return nodes, nil
}
