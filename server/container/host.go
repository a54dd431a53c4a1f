// Package container starts Redis servers in containers, for package server.
package container

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"oversell/internal/errclass"
	"oversell/internal/freeport"
	"oversell/internal/phrase"
	"oversell/server/instance"
)

// Servers in containers. Each has a container of its own, so that each can be
// killed and frozen alone. All of them live in the network of one further
// container, the holder, which does nothing but publish their ports on 127.0.0.1
// with the same numbers inside and outside. So an address means the same to a server, to another server and to a
// client, as replication, sentinels and clusters need: they tell clients where to go. The ports outlast any server, so
// a restart keeps them.
//
// Clients reach a container through Docker's proxy. It accepts connections even if the server is dead, and then closes
// them: "connection refused" of a child is "connection reset" or an end of file here.

const (
	// officialImage is the image that users have; see [DefaultImage].
	officialImage = "redis:7"
	// localImage is the image that "make image" builds.
	localImage = "oversell-redis:local"
	// hostLabel marks the containers of one host.
	hostLabel = "oversell.host"
	// dockerTimeout is how long the Docker daemon may take to answer.
	dockerTimeout = 5 * time.Second
	// pullTimeout is how long an image may take to arrive.
	pullTimeout = 5 * time.Minute
	// cleanTimeout is how long the removal of containers may take. The caller's context does not bound it: they must be
	// removed after Ctrl-C, too.
	cleanTimeout = time.Minute
)

// DefaultImage returns the default image of servers in containers.
func DefaultImage() string { return cmp.Or(os.Getenv("REDIS_IMAGE"), officialImage) }

// Host starts servers in containers. Its methods are safe for concurrent
// use.
type Host struct {
	image  string
	engine string // Docker's version, "20.10.24"
	id     string
	owner  string
	docker *testcontainers.DockerProvider

	mu       sync.Mutex
	redis    string // "" until it is known
	reserved []int
	holder   testcontainers.Container
	machines int
}

// New checks that a Docker daemon on this machine has the image, or can get it. It also removes the containers of
// killed programs. Errors are of class [errclass.ErrEnvironment].
func New(ctx context.Context, image string) (instance.Host, error) {
	docker, engine, err := connectDocker(ctx)
	if err != nil {
		return nil, err
	}
	sweepContainers(ctx, docker.Client())
	h := &Host{image: image, engine: engine, id: rand.Text(), owner: ownLabel(), docker: docker}
	if h.redis, err = findImage(ctx, docker.Client(), image); err != nil {
		_ = docker.Close()
		return nil, err
	}
	return h, nil
}

// connectDocker asks the daemon itself before the library looks for one, because the library is slow and remembers a
// failure for ever.
func connectDocker(ctx context.Context) (*testcontainers.DockerProvider, string, error) {
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, "", errclass.Environmentf("connect to Docker: %s", inOneLine(err))
	}
	defer c.Close()
	err = onThisMachine(c.DaemonHost())
	if err == nil {
		err = pingDocker(ctx, c)
	}
	if err != nil && !elsewhere(c.DaemonHost()) {
		return nil, "", err
	}
	prepareLibrary(ctx, c)
	docker, libraryErr := testcontainers.NewDockerProvider(
		testcontainers.WithLogger(log.NewNoopLogger()), testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge))
	if libraryErr != nil {
		return nil, "", cmp.Or(err, errclass.Environmentf("connect to Docker: %s", inOneLine(libraryErr)))
	}
	if err := onThisMachine(docker.Client().DaemonHost()); err != nil {
		_ = docker.Close()
		return nil, "", err
	}
	v, err := docker.Client().ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		_ = docker.Close()
		return nil, "", errclass.Environmentf("ask Docker at %s for its version: %s", docker.Client().DaemonHost(), inOneLine(err))
	}
	return docker, v.Version, nil
}

// elsewhere reports whether a daemon that does not answer at the usual place may answer at another one that the library
// knows, like that of a daemon without root.
func elsewhere(usual string) bool {
	u, err := url.Parse(usual)
	if err != nil || os.Getenv(client.EnvOverrideHost) != "" {
		return false
	}
	_, err = os.Stat(u.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// onThisMachine refuses a daemon on another one: its 127.0.0.1 is not ours.
func onThisMachine(daemon string) error {
	u, err := url.Parse(daemon)
	if err != nil || u.Hostname() == "" || u.Hostname() == "localhost" {
		return nil // a socket or a pipe
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsLoopback() {
		return nil
	}
	return errclass.Environmentf("the Docker daemon at %s is not on this machine: servers in its containers would not be reachable at 127.0.0.1", daemon)
}

func pingDocker(ctx context.Context, c *client.Client) error {
	short, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	_, err := c.Ping(short, client.PingOptions{})
	const advice = "start Docker, or use the target process, embedded or an address"
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errclass.Environmentf("connect to Docker at %s: %w", c.DaemonHost(), context.Cause(ctx))
	case client.IsErrConnectionFailed(err), short.Err() != nil:
		return errclass.Environmentf("no Docker daemon answers at %s: %s", c.DaemonHost(), advice)
	}
	return errclass.Environmentf("no Docker daemon answers at %s (%s): %s", c.DaemonHost(), inOneLine(err), advice)
}

// libraryPrepared guards state that is the library's, not ours: its default
// logger, which nothing else guards.
var libraryPrepared sync.Once

// prepareLibrary makes the settings of testcontainers that are possible only through its globals and the environment,
// before its first use. It keeps the user's settings.
func prepareLibrary(ctx context.Context, c *client.Client) {
	libraryPrepared.Do(func() {
		log.SetDefault(log.NewNoopLogger()) // it would log each step to stderr
		if _, err := os.Stat("/.dockerenv"); err == nil {
			setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1") // it would try the gateway
		}
		// Its reaper removes containers at once after a kill -9 of this program; we do at the next start. But it needs
		// an image of its own, which a host without a registry cannot get.
		//lint:ignore SA1019 nothing else tells which image this version of the library needs
		if _, err := c.ImageInspect(ctx, testcontainers.ReaperDefaultImage); err != nil {
			setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
		}
	})
}

func setDefault(name, value string) {
	if os.Getenv(name) == "" {
		_ = os.Setenv(name, value)
	}
}

// findImage makes sure that Docker has the image, and returns the version of Redis
// that the image says it contains, or "".
func findImage(ctx context.Context, c client.APIClient, image string) (string, error) {
	in, err := c.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		if err := pullImage(ctx, c, image); err != nil {
			return "", err
		}
		in, err = c.ImageInspect(ctx, image)
	}
	if err != nil {
		return "", errclass.Environmentf("look for the image %s: %s", image, inOneLine(err))
	}
	if in.Config != nil {
		for _, e := range in.Config.Env {
			if v, ok := strings.CutPrefix(e, "REDIS_VERSION="); ok {
				return v, nil
			}
		}
	}
	return "", nil
}

// pullImage tries once. The library would try for 15 minutes.
func pullImage(ctx context.Context, c client.APIClient, image string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pullTimeout, fmt.Errorf("it did not arrive within %v", pullTimeout))
	defer cancel()
	progress, err := c.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		defer progress.Close()
		err = progress.Wait(ctx)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errclass.Environmentf("Docker has no image %s and cannot pull it (%s): run docker pull %s where there is a registry, or make image and set REDIS_IMAGE=%s",
		image, inOneLine(err), officialImage, localImage)
}

// inOneLine returns a message of a daemon or the library as one line.
func inOneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	return phrase.OneLine(text)
}

// Version returns the version in the image, until a server has been asked.
func (h *Host) Version() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.redis
}

// Describe implements instance.Host.
func (h *Host) Describe() string {
	return phrase.OneLine(fmt.Sprintf("%s %s started in containers of the image %s, by Docker %s", instance.ServerName, h.Version(), h.image, h.engine))
}

// holderAttempts is how often ports are chosen, since other processes choose ports, too.
const holderAttempts = 5

// Ports reserves the ports for good by publishing them at once. All ports of a
// host must be reserved before its first server is launched, best in one go.
func (h *Host) Ports(ctx context.Context, n int, cluster bool) ([]int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.machines > 0 {
		return nil, errclass.Environmentf("reserve %d ports: the ports of containers cannot be added to while servers run", n)
	}
	for attempt := 1; ; attempt++ {
		picked, err := freeport.Several(n, cluster)
		if err != nil {
			return nil, errclass.Environmentf("find %d free ports on 127.0.0.1: %w", n, err)
		}
		all := slices.Concat(h.reserved, picked)
		h.dropHolder()
		h.holder, err = h.startHolder(ctx, all)
		switch {
		case err == nil:
			h.reserved = all
			return picked, nil
		case !publishedByOthers(err) || attempt == holderAttempts:
			return nil, errclass.Environmentf("publish %d ports on 127.0.0.1 with Docker: %s", n, inOneLine(err))
		}
	}
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// publishedByOthers reports whether another process took a port while we were about
// to publish it.
func publishedByOthers(err error) bool {
	for _, text := range []string{"port is already allocated", "address already in use", "ports are not available"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// startHolder starts the container that publishes the ports.
func (h *Host) startHolder(ctx context.Context, ports []int) (testcontainers.Container, error) {
	bindings := network.PortMap{}
	req := h.request("sleep", "2147483647")
	for _, p := range ports {
		port, ok := network.PortFrom(uint16(p), network.TCP)
		if !ok {
			return nil, fmt.Errorf("%d is no port", p)
		}
		req.ExposedPorts = append(req.ExposedPorts, port.String())
		bindings[port] = []network.PortBinding{{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(p)}}
	}
	req.HostConfigModifier = func(c *container.HostConfig) { c.PortBindings = bindings }
	holder, err := h.docker.CreateContainer(ctx, req)
	if err == nil {
		err = holder.Start(ctx)
	}
	if err != nil {
		h.remove(holder)
		return nil, err
	}
	return holder, nil
}

// request returns the request for a container that we recognize as ours. It has a map of its own: the library adds to
// it.
func (h *Host) request(entrypoint ...string) testcontainers.ContainerRequest {
	return testcontainers.ContainerRequest{
		Image:      h.image,
		Entrypoint: entrypoint,
		Labels:     map[string]string{ownerLabel: h.owner, hostLabel: h.id},
	}
}

// Launch starts a server in a container of its own. s.port must be one of those
// that were reserved.
func (h *Host) Launch(ctx context.Context, s instance.Settings) (instance.Machine, error) {
	holder, err := h.join(s.Port)
	if err != nil {
		return nil, err
	}
	c, err := h.docker.CreateContainer(ctx, h.serverRequest(s, holder.GetContainerID()))
	if err != nil {
		h.remove(c)
		h.leave()
		return nil, errclass.Environmentf("create a container of the image %s: %s", h.image, inOneLine(err))
	}
	m := &machine{host: h, port: s.Port, container: c, docker: h.docker.Client(), stopped: make(chan struct{})}
	if err := m.run(ctx); err != nil {
		m.Stop()
		return nil, errclass.Environmentf("start redis-server on %s in a container of the image %s: %w", m.Addr(), h.image, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.redis = m.Info().Version()
	return m, nil
}

// join and leave count the servers in the network of the holder.
func (h *Host) join(port int) (testcontainers.Container, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holder == nil || !slices.Contains(h.reserved, port) {
		return nil, errclass.Environmentf("start redis-server in a container: port %d was not reserved", port)
	}
	h.machines++
	return h.holder, nil
}

func (h *Host) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.machines--
}

// serverRequest returns the request for a container that shares the network of the holder.
func (h *Host) serverRequest(s instance.Settings, holder string) testcontainers.ContainerRequest {
	req := h.request("sh", "-c", startScript, instance.ServerName)
	if s.Sentinel {
		req.Env = map[string]string{sentinelVariable: strings.Join(sentinelLines(s), "\n")}
	} else {
		req.Cmd = serverArgs(s)
	}
	req.HostConfigModifier = func(c *container.HostConfig) {
		c.NetworkMode = container.NetworkMode("container:" + holder)
		// The server is to be the container's process 1 even where the daemon
		// would put an init of its own before it.
		c.Init = new(bool)
	}
	return req
}

const sentinelVariable = "OVERSELL_SENTINEL"

// forgetMark is a file that makes the next start forget the data.
const forgetMark = "/oversell-forget"

// startScript becomes the server. It runs at each start of the container.
//
// A replica keeps the data from its master in a dump, which must not be loaded without persistence; with persistence,
// the data is not in a dump. A node of a cluster and a sentinel keep their identity even if they forget their data.
// Redis before 7 always has DEBUG.
const startScript = `
cd /data || exit 1
if [ -e ` + forgetMark + ` ]; then rm -rf appendonlydir appendonly.aof ` + forgetMark + `; fi
rm -f ./*.rdb
if [ -n "$` + sentinelVariable + `" ]; then
	[ -e sentinel.conf ] || printf '%s\n' "$` + sentinelVariable + `" >sentinel.conf || exit 1
	exec redis-server sentinel.conf --sentinel
fi
case "$(redis-server --version)" in
*v=[1-6].*) ;;
*) set -- "$@" --enable-debug-command yes ;;
esac
exec redis-server "$@"
`

// serverArgs configures a server. Later settings override: the topology's the usual ones, and the container's both.
func serverArgs(s instance.Settings) []string {
	keep := "no"
	if s.Persist {
		keep = "yes"
	}
	args := []string{
		"--save", "", "--appendonly", keep, "--appendfsync", "no",
		"--maxclients", strconv.Itoa(instance.WantedClients), "--tcp-backlog", "4096",
		"--replica-announce-ip", "127.0.0.1",
	}
	for i := 0; i+1 < len(s.Options); i += 2 {
		args = append(args, "--"+s.Options[i], s.Options[i+1])
	}
	return append(args,
		"--port", strconv.Itoa(s.Port), "--daemonize", "no", "--logfile", "", "--dir", "/data",
		// Clients come from outside the network of the container.
		"--bind", "0.0.0.0", "--protected-mode", "no")
}

func sentinelLines(s instance.Settings) []string {
	return append(slices.Clone(s.Lines),
		"port "+strconv.Itoa(s.Port), "daemonize no", `logfile ""`, "dir /data",
		"bind 0.0.0.0", "protected-mode no", "sentinel announce-ip 127.0.0.1")
}

// remove removes a container in any state, and its volumes. It may be nil.
func (h *Host) remove(c testcontainers.Container) {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	removeContainer(ctx, h.docker.Client(), c.GetContainerID())
}

// removeContainer returns when the container is gone, or cannot be removed. If
// another client is already removing it, Docker says so at once: then remove waits
// until it is gone.
func removeContainer(ctx context.Context, c client.APIClient, id string) {
	_ = instance.Poll(ctx, func(context.Context) error {
		_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsConflict(err) && ctx.Err() == nil {
			return err
		}
		return nil
	})
}

func (h *Host) dropHolder() {
	h.remove(h.holder)
	h.holder = nil
}

// Close removes all containers of the host, including those that are unknown to us because the context ended while
// Docker created them.
func (h *Host) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.holder = nil
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	removeLabelled(ctx, h.docker.Client(), hostLabel+"="+h.id, func(container.Summary) bool { return true })
	_ = h.docker.Close()
}
