package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"oversell/internal/child"
	"oversell/internal/closed"
	"oversell/internal/errclass"
	"oversell/server/instance"
)

const (
	// containerStartTimeout is how long a server may take to answer, once its container runs; it usually takes 20 ms.
	containerStartTimeout = 20 * time.Second
	// controlTimeout is how long Docker may take for an action on a container.
	controlTimeout = 20 * time.Second
	// watchAttempts is how often Docker may fail to report on a container before the container counts as gone.
	watchAttempts = 5
)

// machine is a server in a container.
type machine struct {
	host      *Host
	port      int
	container testcontainers.Container
	docker    client.APIClient

	answer instance.Info
	frozen bool
	// stopped is closed when the server is not watched any more.
	stopped chan struct{}

	mu    sync.Mutex
	gone  chan struct{}
	words string // set when gone is closed
	watch sync.WaitGroup
}

func (m *machine) Addr() string { return loopback(m.port) }

// PID returns 0: the process is the container's, and Docker may keep its containers in
// a virtual machine.
func (m *machine) PID() int { return 0 }

func (m *machine) Info() instance.Info { return m.answer }

func (m *machine) id() string { return m.container.GetContainerID() }

// run starts the container and waits until the server in it answers.
func (m *machine) run(ctx context.Context) error {
	if err := m.container.Start(ctx); err != nil {
		return errors.New(inOneLine(err))
	}
	m.frozen = false
	gone := make(chan struct{})
	m.mu.Lock()
	m.gone, m.words = gone, ""
	m.mu.Unlock()
	m.watch.Go(func() { m.watchOver(gone) })
	return m.awaitReady(ctx, gone)
}

// watchOver closes gone when the process in the container is gone.
func (m *machine) watchOver(gone chan struct{}) {
	words := m.awaitExit()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.words = words
	close(gone)
}

// awaitExit returns how the server ended.
func (m *machine) awaitExit() string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for attempt := 1; ; attempt++ {
		w := m.docker.ContainerWait(ctx, m.id(), client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
		select {
		case r := <-w.Result:
			return fmt.Sprintf("exit status %d (container %.12s; its last line: %s)", r.StatusCode, m.id(), m.lastLine())
		case err := <-w.Error:
			switch {
			case errdefs.IsNotFound(err):
				return fmt.Sprintf("its container %.12s was removed", m.id())
			case attempt == watchAttempts:
				return fmt.Sprintf("Docker does not tell about its container %.12s any more: %s", m.id(), inOneLine(err))
			}
			time.Sleep(time.Duration(attempt) * 100 * time.Millisecond)
		case <-m.stopped: // and Docker could not end it
			return fmt.Sprintf("its container %.12s was given up", m.id())
		}
	}
}

// lastLine returns the server's own explanation.
func (m *machine) lastLine() string {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	logs, err := m.docker.ContainerLogs(ctx, m.id(), client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true, Tail: "20"})
	if err != nil {
		return "unknown"
	}
	defer logs.Close()
	var output child.Tail
	_, _ = stdcopy.StdCopy(&output, &output, logs)
	return instance.Reason(output.String())
}

// awaitReady waits until the server answers and has loaded its data. It is process 1 of its container, and the port
// leads only to the container's network.
func (m *machine) awaitReady(ctx context.Context, gone <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, containerStartTimeout, fmt.Errorf("it did not answer within %v", containerStartTimeout))
	defer cancel()
	poll := time.NewTicker(3 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		select {
		case <-gone:
			return errors.New(m.LastWords())
		case <-ctx.Done():
			if last != nil && ctx.Err() == context.DeadlineExceeded {
				return fmt.Errorf("%w (%s)", context.Cause(ctx), inOneLine(last))
			}
			return context.Cause(ctx)
		case <-poll.C:
		}
		in, err := instance.AskInfo(ctx, m.Addr())
		switch {
		case err != nil:
			last = err
		case in.Number("process_id") != 1 || in.Number("tcp_port") != m.port:
			last = fmt.Errorf("process %s on port %s answers there", in["process_id"], in["tcp_port"])
		case in["loading"] != "1":
			m.answer = in
			return nil
		}
	}
}

func (m *machine) Exited() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

func (m *machine) LastWords() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.words
}

func (m *machine) isGone() bool { return closed.Is(m.Exited()) }

// Kill works on a frozen server as well: Docker lets it go on only to die.
func (m *machine) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	_, err := m.docker.ContainerKill(ctx, m.id(), client.ContainerKillOptions{Signal: "SIGKILL"})
	if err != nil && !errdefs.IsConflict(err) && !errdefs.IsNotFound(err) { // these mean that it is gone
		return m.failed("kill", err)
	}
	select {
	case <-m.Exited():
		return nil
	case <-ctx.Done():
		return m.failed("kill", fmt.Errorf("it is still there after %v", controlTimeout))
	}
}

func (m *machine) Start(ctx context.Context, empty bool) error {
	if !m.isGone() {
		return m.failed("start", errors.New("it runs; only a killed one can be started again"))
	}
	if empty {
		// A stopped container cannot run rm, but files can be copied into it.
		if err := m.container.CopyToContainer(ctx, nil, forgetMark, 0o600); err != nil {
			return m.failed("empty", err)
		}
	}
	if err := m.run(ctx); err != nil {
		_ = m.Kill() // it may run without answering
		return m.failed("start", err)
	}
	return nil
}

func (m *machine) Freeze() error {
	if m.frozen && !m.isGone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	if _, err := m.docker.ContainerPause(ctx, m.id(), client.ContainerPauseOptions{}); err != nil {
		return m.failed("freeze", err)
	}
	m.frozen = true
	return nil
}

func (m *machine) Thaw() error {
	if !m.frozen || m.isGone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
	defer cancel()
	if _, err := m.docker.ContainerUnpause(ctx, m.id(), client.ContainerUnpauseOptions{}); err != nil {
		return m.failed("thaw", err)
	}
	m.frozen = false
	return nil
}

// Jump is refused: a container has the clock of the machine.
func (m *machine) Jump(time.Duration) error {
	return errclass.Usagef("move the clock of %s: a container shares the clock of its machine; clock jumps need --target process", m.Addr())
}

func (m *machine) failed(what string, err error) error {
	return errclass.Environmentf("%s the server on %s in the container %.12s: %s", what, m.Addr(), m.id(), inOneLine(err))
}

func (m *machine) Stop() {
	if closed.Is(m.stopped) {
		return
	}
	m.host.remove(m.container)
	close(m.stopped)
	m.watch.Wait()
	m.host.leave()
}
