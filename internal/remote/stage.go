package remote

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"oversell/internal/errclass"
	"oversell/internal/freeport"
	"oversell/internal/preload"
	"oversell/internal/workdir"
)

//go:embed shim/step.c
var source []byte

// Config says how to run a program.
type Config struct {
	// Command is the program and its arguments, Dir its working directory, and Env returns its environment for the
	// addresses of the servers.
	Command []string
	Dir     string
	Env     func(addresses []string) []string
	// Masters is the number of servers.
	Masters int
	// Epoch is the time of day at which a process begins.
	Epoch time.Time
	// Start is how long the program may take to begin to read its input, and a fork of it to report, in real time.
	Start time.Duration
	// Limit is how long a process may take for one step, in real time.
	Limit time.Duration
	// Unsteady: looks at monotonic clocks are not events. Such a clock shows real time.
	Unsteady bool
	// Warm prepares a process before its use.
	Warm func(*Process) error
}

// Stage runs the processes of one program. It is safe for concurrent use.
type Stage struct {
	config  Config
	library string
	dir     *workdir.Dir
	control net.Listener
	servers []net.Listener
	sources []*spawner
	over    chan struct{}
	running sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	next     int // source of the next process
	number   int64
	awaited  map[int64]*Process      // forked, and not yet here
	births   map[int64]chan *control // by the inode of the stdin of a program that was started
	arrivals map[int]arrival         // connections to servers, by port, whose process is not yet known
	owners   map[int]*Process        // of connections that have not arrived
}

type arrival struct {
	conn net.Conn
	node int
}

// sources is how many times a program is started if its processes are forked from it. Two starts differ in the random
// values drawn before the fork.
const sources = 2

// Open prepares to run a program. Errors are of class errclass.ErrEnvironment.
func Open(ctx context.Context, c Config) (s *Stage, err error) {
	s = &Stage{config: c, over: make(chan struct{}), awaited: map[int64]*Process{}, births: map[int64]chan *control{}, arrivals: map[int]arrival{}, owners: map[int]*Process{}}
	if s.library, err = preload.Library(ctx, "step", "the library that steps a program", source); err != nil {
		return nil, err
	}
	if s.dir, err = workdir.New(); err != nil {
		return nil, errclass.Environmentf("step a program: %w", err)
	}
	defer func() {
		if err != nil {
			s.Close()
			s, err = nil, errclass.Environmentf("step a program: %w", err)
		}
	}()
	if s.control, err = net.Listen("unix", filepath.Join(s.dir.Path, "control")); err != nil {
		return s, err
	}
	s.running.Go(func() { s.accept(s.control, s.greet) })
	for node := range c.Masters {
		l, err := freeport.ListenTCP(context.Background())
		if err != nil {
			return s, err
		}
		s.servers = append(s.servers, l)
		s.running.Go(func() {
			s.accept(l, func(c net.Conn) { s.arrive(c.RemoteAddr().(*net.TCPAddr).Port, arrival{c, node}) })
		})
	}
	for range sources {
		b := &spawner{stage: s, ready: make(chan made, 2)}
		s.sources = append(s.sources, b)
		s.running.Go(b.work)
	}
	return s, nil
}

// Addresses returns the addresses of the servers, host:port.
func (s *Stage) Addresses() (all []string) {
	for _, l := range s.servers {
		all = append(all, l.Addr().String())
	}
	return all
}

// Process returns a new process, or why there is none.
func (s *Stage) Process() (*Process, error) {
	s.mu.Lock()
	b := s.sources[s.next%len(s.sources)]
	s.next++
	s.mu.Unlock()
	select {
	case m := <-b.ready:
		return m.process, m.err
	case <-s.over:
		return nil, net.ErrClosed
	}
}

// Close ends all processes.
func (s *Stage) Close() {
	s.mu.Lock()
	known := s.closed
	s.closed = true
	s.mu.Unlock()
	if known {
		return
	}
	close(s.over)
	for _, l := range append([]net.Listener{s.control}, s.servers...) {
		if l != nil {
			_ = l.Close() // nothing is lost with it
		}
	}
	s.running.Wait()
	for _, a := range s.arrivals {
		_ = a.conn.Close()
	}
	s.dir.Remove()
}

// accept passes each connection to a goroutine of its own.
func (s *Stage) accept(l net.Listener, to func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed
		}
		go to(c)
	}
}

// greet reads the first line of a control connection, and passes the connection to the process that awaits it.
func (s *Stage) greet(conn net.Conn) {
	c := newControl(conn)
	what, a, b, err := c.hello()
	if err != nil {
		_ = conn.Close()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := s.awaited[a]; {
	case what == "ready":
		c.alone = b != 0
		select {
		case s.birthOf(a) <- c:
		default:
			_ = conn.Close()
		}
	case what == "child" && p != nil:
		p.born(c)
	case what == "lines" && p != nil:
		p.talks(conn, c.reader)
	default:
		_ = conn.Close()
	}
}

// birth returns the channel for the control connection of a started process.
func (s *Stage) birth(stdin int64) <-chan *control {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.birthOf(stdin)
}

// birthOf is birth for a caller that holds s.mu.
func (s *Stage) birthOf(stdin int64) chan *control {
	if s.births[stdin] == nil {
		s.births[stdin] = make(chan *control, 1)
	}
	return s.births[stdin]
}

// unborn forgets birth.
func (s *Stage) unborn(stdin int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.births, stdin)
}

// arrive notes a connection to a server; its process must claim it.
func (s *Stage) arrive(port int, a arrival) {
	s.mu.Lock()
	p := s.owners[port]
	delete(s.owners, port)
	if p == nil && !s.closed {
		s.arrivals[port] = a
	}
	s.mu.Unlock()
	if p != nil {
		p.connected(a)
	}
}

// owns notes that the connection from this port belongs to a process.
func (s *Stage) owns(port int, p *Process) {
	s.mu.Lock()
	a, here := s.arrivals[port]
	delete(s.arrivals, port)
	if !here {
		s.owners[port] = p
	}
	s.mu.Unlock()
	if here {
		p.connected(a)
	}
}

// reaches reports whether an address belongs to one of the servers.
func (s *Stage) reaches(host string, port int) bool {
	for _, l := range s.servers {
		a := l.Addr().(*net.TCPAddr)
		if ip := net.ParseIP(host); a.Port == port && ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return false
}

// environment returns the environment of the processes.
func (s *Stage) environment(stdin int64) []string {
	env := append(os.Environ(), s.config.Env(s.Addresses())...)
	steady := 1
	if s.config.Unsteady {
		steady = 0
	}
	return append(env, "LD_PRELOAD="+s.library, "OVERSELL_STEP_SOCKET="+filepath.Join(s.dir.Path, "control"),
		"OVERSELL_STEP_STDIN="+strconv.FormatInt(stdin, 10), "OVERSELL_STEP_EPOCH="+strconv.FormatInt(s.config.Epoch.UnixNano(), 10), fmt.Sprintf("OVERSELL_STEP_STEADY=%d", steady))
}
