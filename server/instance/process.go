package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"oversell/internal/child"
	"oversell/internal/errclass"
	"oversell/internal/freeport"
	"oversell/internal/workdir"
)

const (
	// ServerName is the program of a server.
	ServerName = "redis-server"
	// startTimeout is how long a server may take to answer; it usually takes 10 ms.
	startTimeout = 10 * time.Second
	// WantedClients is the limit of clients that we ask for; the server accepts fewer if its limit of open files is
	// lower.
	WantedClients = 20000
)

// ProcessHost starts servers of one binary as children of this program.
type ProcessHost struct {
	binary string
	number string // the version as the binary reports it, "7.0.15"
	// preload is the library that moves the clocks of the servers; empty: none.
	preload string
	Files   *workdir.Dir
	// FreePorts finds ports that are not in use. By the time a server binds one,
	// another process may have taken it.
	FreePorts func(n int, cluster bool) ([]int, error)
}

// NewProcessHost finds the binary and a place for the servers' files. With clocks
// the servers' clocks can be moved.
func NewProcessHost(ctx context.Context, clocks bool) (*ProcessHost, error) {
	binary, err := exec.LookPath(ServerName)
	if err != nil {
		return nil, errclass.Environmentf("no %s was found on PATH: install Redis, or give another --target (the help of the command lists them)", ServerName)
	}
	if binary, err = filepath.Abs(binary); err != nil {
		return nil, errclass.Environmentf("locate %s: %w", ServerName, err)
	}
	number, err := binaryVersion(ctx, binary)
	if err != nil {
		return nil, err
	}
	h := &ProcessHost{binary: binary, number: number, FreePorts: freeport.Several}
	if clocks {
		if h.preload, err = Shim(ctx); err != nil {
			return nil, err
		}
	}
	if h.Files, err = workdir.New(); err != nil {
		return nil, errclass.Environmentf("make a directory for the files of the servers: %w", err)
	}
	return h, nil
}

var versionText = regexp.MustCompile(`\bv=(\d+(?:\.\d+)*)`)

func binaryVersion(ctx context.Context, binary string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", errclass.Environmentf("ask %s for its version: %w", binary, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return "", errclass.Environmentf("ask %s for its version: it answers %q", binary, strings.TrimSpace(string(out)))
	}
	return string(m[1]), nil
}

// Version implements Host.
func (h *ProcessHost) Version() string { return h.number }

// Describe implements Host.
func (h *ProcessHost) Describe() string {
	return fmt.Sprintf("%s %s found at %s, started as a child", ServerName, h.number, h.binary)
}

// Ports implements Host.
func (h *ProcessHost) Ports(_ context.Context, n int, cluster bool) ([]int, error) {
	ports, err := h.FreePorts(n, cluster)
	if err != nil {
		return nil, errclass.Environmentf("find %d free ports on 127.0.0.1: %w", n, err)
	}
	return ports, nil
}

// Close implements Host.
func (h *ProcessHost) Close() { h.Files.Remove() }

// Launch implements Host.
func (h *ProcessHost) Launch(ctx context.Context, s Settings) (Machine, error) {
	m := &process{host: h, settings: s, dir: filepath.Join(h.Files.Path, strconv.Itoa(s.Port))}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, errclass.Environmentf("make a directory for the files of a server: %w", err)
	}
	if h.preload != "" {
		if err := m.Jump(0); err != nil {
			return nil, err
		}
	}
	if err := m.run(ctx); err != nil {
		_ = os.RemoveAll(m.dir)
		return nil, errclass.Environmentf("start %s on %s: %w", h.binary, m.Addr(), err)
	}
	return m, nil
}

// process is a server that runs as a child of this program.
type process struct {
	host     *ProcessHost
	settings Settings
	// dir holds the server's own files. It is the server's working directory.
	dir    string
	answer Info

	mu    sync.Mutex
	child *child.Process // the present one, or the last
}

func (p *process) now() *child.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child
}

func (p *process) Addr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.settings.Port))
}
func (p *process) PID() int                { return p.now().PID() }
func (p *process) Info() Info              { return p.answer }
func (p *process) Exited() <-chan struct{} { return p.now().Exited() }
func (p *process) LastWords() string       { return lastWords(p.now()) }

// run starts the child and waits until it answers.
func (p *process) run(ctx context.Context) error {
	args, err := p.arguments()
	if err != nil {
		return err
	}
	cmd := exec.Command(p.host.binary, args...)
	cmd.Env = p.environment()
	c, err := child.Start(cmd)
	if err != nil {
		return err
	}
	in, err := awaitReady(ctx, c, p.Addr())
	if err != nil {
		taken := c.Gone() && strings.Contains(c.Output.String(), "Address already in use")
		c.Stop(stopGrace)
		if taken {
			return &TakenPort{err}
		}
		return err
	}
	p.mu.Lock()
	p.child, p.answer = c, in
	p.mu.Unlock()
	return nil
}

// TakenPort says why a server did not start on this port; it may start on another.
type TakenPort struct{ error }

// Unwrap returns the reason, for errors.Is and errors.As.
func (p *TakenPort) Unwrap() error { return p.error }

// arguments returns the command line. A sentinel gets a configuration file.
func (p *process) arguments() ([]string, error) {
	common := []string{
		"port", strconv.Itoa(p.settings.Port), "bind", "127.0.0.1",
		"daemonize", "no", "logfile", "", "pidfile", "", "dir", p.dir,
		"maxclients", strconv.Itoa(WantedClients), "tcp-backlog", "4096",
	}
	if p.settings.Sentinel {
		file := filepath.Join(p.dir, "sentinel.conf")
		return []string{file, "--sentinel"}, writeConfig(file, common, p.settings.Lines)
	}
	own := []string{"save", "", "appendonly", "no"}
	if p.settings.Persist {
		// The file is written before each answer, and written data survives a kill -9. With "everysec" and a busy disk
		// the server would answer before it writes, for up to 2 seconds.
		own = []string{"save", "", "appendonly", "yes", "appendfsync", "no"}
	}
	if SinceVersion(p.host.number, 7) {
		own = append(own, "enable-debug-command", "yes") // older ones always have DEBUG
	}
	var args []string
	all := append(append(common, own...), p.settings.Options...)
	for i := 0; i+1 < len(all); i += 2 {
		args = append(args, "--"+all[i], all[i+1])
	}
	return args, nil
}

// writeConfig writes a configuration file, unless the server has one already, in which it keeps its state.
func writeConfig(file string, options, lines []string) error {
	if _, err := os.Stat(file); err == nil {
		return nil
	}
	var text strings.Builder
	for i := 0; i+1 < len(options); i += 2 {
		fmt.Fprintf(&text, "%s %q\n", options[i], options[i+1])
	}
	for _, line := range lines {
		fmt.Fprintln(&text, line)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// environment returns nil (our environment) unless the server's clock can be moved.
func (p *process) environment() []string {
	if p.host.preload == "" {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+p.host.preload, offsetFileVar+"="+p.offsetFile())
}

func (p *process) offsetFile() string { return filepath.Join(p.dir, "clock") }

func (p *process) Jump(ahead time.Duration) error { return writeOffset(p.offsetFile(), ahead) }

func (p *process) Kill() error {
	p.now().Kill()
	return nil
}

func (p *process) Start(ctx context.Context, empty bool) error {
	if empty || !p.settings.Persist {
		if err := p.forget(); err != nil {
			return err
		}
	}
	return p.run(ctx)
}

// forget removes the server's data, including a replica's file with its master's data. A cluster's node keeps its
// identity.
func (p *process) forget() error {
	data, err := filepath.Glob(filepath.Join(p.dir, "*.rdb"))
	for _, more := range []string{"appendonlydir", "appendonly.aof"} { // since 7.0, and before
		data = append(data, filepath.Join(p.dir, more))
	}
	for _, d := range data {
		err = errors.Join(err, os.RemoveAll(d))
	}
	return err
}

func (p *process) Freeze() error { return p.now().Freeze() }
func (p *process) Thaw() error   { return p.now().Thaw() }

func (p *process) Stop() {
	_ = p.Kill() // it has nothing to save
	_ = os.RemoveAll(p.dir)
}

// awaitReady waits until the child itself answers. It does not take another server on that port for the child.
func awaitReady(ctx context.Context, c *child.Process, addr string) (Info, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not answer within %v", startTimeout))
	defer cancel()
	other := ""
	for pause := time.Millisecond; ; pause = min(pause*5/4, lastPoll) {
		select {
		case <-c.Exited():
			return nil, fmt.Errorf("%s", Reason(c.Output.String()))
		case <-ctx.Done():
			return nil, fmt.Errorf("%w%s", context.Cause(ctx), other)
		case <-time.After(pause):
		}
		in, err := AskInfo(ctx, addr)
		switch {
		case err != nil:
		case in.Number("process_id") == c.PID():
			return in, nil
		default:
			other = fmt.Sprintf(" (process %s answers there, but ours is %d)", in["process_id"], c.PID())
		}
	}
}

// SinceVersion reports whether a version, as "7.0.15", is at least this major one.
func SinceVersion(version string, major int) bool {
	text, _, _ := strings.Cut(strings.TrimPrefix(version, "valkey "), ".")
	n, err := strconv.Atoi(text)
	return err == nil && n >= major
}
