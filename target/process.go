package target

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	serverName = "redis-server"
	// startTimeout is how long a server may take until it answers; 10 ms are
	// usual.
	startTimeout = 10 * time.Second
	// startAttempts is how many ports are tried, as others take ports, too.
	startAttempts = 5
	// wantedClients is what we ask a server to accept; it takes less if its limit
	// of open files is lower.
	wantedClients = 20000
)

// launcher starts servers of one binary.
type launcher struct {
	binary  string
	version string // as the binary reports it, "7.0.15"
	// freePort finds a port that nobody uses. By the time the server asks for it,
	// somebody may.
	freePort func() (int, error)
}

func openProcess(ctx context.Context, p plan) (*Target, error) {
	l, err := newLauncher(ctx)
	if err != nil {
		return nil, err
	}
	return l.open(ctx, p.masters)
}

func newLauncher(ctx context.Context) (*launcher, error) {
	binary, err := exec.LookPath(serverName)
	if err != nil {
		return nil, environmentf("no %s was found on PATH: install Redis, or use the target embedded or an address", serverName)
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, environmentf("locate %s: %w", serverName, err)
	}
	version, err := binaryVersion(ctx, binary)
	if err != nil {
		return nil, err
	}
	return &launcher{binary: binary, version: version, freePort: freePort}, nil
}

var versionText = regexp.MustCompile(`\bv=(\d+(?:\.\d+)*)`)

func binaryVersion(ctx context.Context, binary string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", environmentf("ask %s for its version: %w", binary, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return "", environmentf("ask %s for its version: it answers %q", binary, strings.TrimSpace(string(out)))
	}
	return string(m[1]), nil
}

// open starts n servers at once.
func (l *launcher) open(ctx context.Context, n int) (*Target, error) {
	versions := make([]string, n)
	nodes, err := inParallel(n, func(i int) (*node, error) {
		c, addr, in, err := l.start(ctx)
		if err != nil {
			return nil, err
		}
		versions[i] = in.version()
		return &node{addr: addr, maxClients: in.number("maxclients"), child: c, stop: c.stop}, nil
	})
	if err != nil {
		return nil, err
	}
	t := newTarget(Process, nodes)
	t.ServerVersion = joinVersions(versions)
	if n == 1 {
		t.Why = fmt.Sprintf("%s %s found at %s, started as a child on %s", serverName, l.version, l.binary, t.Addrs[0])
	} else {
		t.Why = fmt.Sprintf("%s %s found at %s, started %d times as a child on %s", serverName, l.version, l.binary, n, strings.Join(t.Addrs, ", "))
	}
	return t, nil
}

// start starts one server on a port of our choice and waits until it, and
// nobody else, answers there.
func (l *launcher) start(ctx context.Context) (*child, string, info, error) {
	for attempt := 1; ; attempt++ {
		port, err := l.freePort()
		if err != nil {
			return nil, "", nil, environmentf("find a free port on 127.0.0.1: %w", err)
		}
		c, err := startChild(l.binary, l.args(port)...)
		if err != nil {
			return nil, "", nil, environmentf("start %s: %w", l.binary, err)
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		in, err := c.awaitReady(ctx, addr)
		if err == nil {
			return c, addr, in, nil
		}
		portTaken := c.gone() && strings.Contains(c.output.String(), "Address already in use")
		c.stop()
		if !portTaken || attempt == startAttempts {
			return nil, "", nil, environmentf("start %s on %s: %w", l.binary, addr, err)
		}
	}
}

// args configures a server that keeps everything in memory.
func (l *launcher) args(port int) []string {
	args := []string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--daemonize", "no", "--logfile", "", "--pidfile", "",
		"--save", "", "--appendonly", "no",
		// At its start a server loads the file of this name in this folder. There
		// must be none, and least of all the user's own dump.rdb.
		"--dir", os.TempDir(), "--dbfilename", "oversell-" + rand.Text() + ".rdb",
		"--maxclients", strconv.Itoa(wantedClients), "--tcp-backlog", "4096",
	}
	if major, _, _ := strings.Cut(l.version, "."); len(major) > 1 || major >= "7" {
		args = append(args, "--enable-debug-command", "yes") // older ones have DEBUG anyway
	}
	return args
}

// awaitReady waits until the child itself answers. Something else on that port
// is not taken for it, whatever it says.
func (c *child) awaitReady(ctx context.Context, addr string) (info, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not answer within %v", startTimeout))
	defer cancel()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	other := ""
	for {
		select {
		case <-c.exited:
			return nil, fmt.Errorf("%s", c.output.reason())
		case <-ctx.Done():
			return nil, fmt.Errorf("%w%s", context.Cause(ctx), other)
		case <-poll.C:
		}
		in, err := askInfo(ctx, addr)
		switch {
		case err != nil:
		case in.number("process_id") == c.pid():
			return in, nil
		default:
			other = fmt.Sprintf(" (process %s answers there, but ours is %d)", in["process_id"], c.pid())
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
