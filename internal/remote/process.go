package remote

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"oversell/internal/printable"
)

// Kind is the kind of an event.
type Kind uint8

// The kinds of events.
const (
	// Line: it printed a line.
	Line Kind = iota
	// Commands: it sent commands on a connection, and waits for their replies.
	Commands
	// Look: it looks at a clock.
	Look
	// Sleep: it sleeps.
	Sleep
)

// Event is the next event of a process.
type Event struct {
	Kind Kind
	// Line is the printed line, without its end.
	Line []byte
	// Commands, Tx and Conn are the commands it sent, and on which connection: see [Conn.Answer].
	Commands [][]string
	Tx       bool
	Conn     *Conn
	// For is how long it sleeps.
	For time.Duration
	err error
}

// Process is a process of a program. Its methods are for one goroutine at a time, except Kill.
type Process struct {
	stage  *Stage
	from   *program
	own    bool // it is the program that was started
	here   chan struct{}
	events chan Event
	over   chan struct{} // closed by Kill

	control *control
	lines   io.WriteCloser

	mu      sync.Mutex
	process *os.Process
	closers []io.Closer
	dead    bool
	idle    bool         // it has nothing to do
	elapsed int64        // the last reading of its clocks
	broken  map[int]bool // whether a connection was broken, by its source port, until the process closes it
	scripts map[string]string
}

// longestLine is the longest line that is read.
const longestLine = 1 << 20

func newProcess(s *Stage, from *program) *Process {
	return &Process{stage: s, from: from, here: make(chan struct{}, 2), events: make(chan Event, 64), over: make(chan struct{}), scripts: map[string]string{}, idle: true, broken: map[int]bool{}}
}

// keep closes something with the process.
func (p *Process) keep(c io.Closer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		_ = c.Close()
		return
	}
	p.closers = append(p.closers, c)
}

// born notes the process's control connection.
func (p *Process) born(c *control) {
	p.mu.Lock()
	p.control = c
	if !p.own {
		p.process, _ = os.FindProcess(c.pid) // on Linux it is that process or an error later
	}
	p.mu.Unlock()
	p.keep(c.conn)
	go p.follow(c)
	p.here <- struct{}{}
}

// talks notes the connection of the process's stdin and stdout.
func (p *Process) talks(conn net.Conn, r *bufio.Reader) {
	p.keep(conn)
	p.lines = conn
	p.readLines(r)
	p.here <- struct{}{}
}

// send passes an event to the caller that steps the process.
func (p *Process) send(e Event) {
	select {
	case p.events <- e:
	case <-p.over:
	}
}

func (p *Process) fail(err error) { p.send(Event{err: err}) }

// readLines reads the output of the process.
func (p *Process) readLines(r *bufio.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), longestLine)
	go func() {
		for lines.Scan() {
			p.send(Event{Kind: Line, Line: []byte(lines.Text())})
		}
		if errors.Is(lines.Err(), bufio.ErrTooLong) {
			p.fail(fmt.Errorf("it printed a line of more than %d bytes", longestLine))
			return
		}
		p.fail(p.ended())
	}()
}

// ended returns the error that the process has closed its output, with its last line on stderr.
func (p *Process) ended() error {
	if p.own {
		select {
		case <-p.from.child.Exited():
			return p.from.ended()
		case <-time.After(lag):
			return errors.New("it closed its output")
		}
	}
	for waited := time.Duration(0); waited < lag; waited += lag / 50 {
		if last := p.from.lastLine(); last != "" {
			return fmt.Errorf("it ended: %s", last)
		}
		time.Sleep(lag / 50)
	}
	return errors.New("it ended, or closed its output")
}

// lag is how long after a process has closed its output its end and its stderr may take to become known.
const lag = 500 * time.Millisecond

// follow reads the requests of the library in the process.
func (p *Process) follow(c *control) {
	for {
		line, err := c.reader.ReadString('\n')
		if err != nil {
			return // it has ended, which readLines notices
		}
		var host string
		var n int64
		switch word, rest, _ := strings.Cut(strings.TrimSpace(line), " "); word {
		case "clock":
			p.asked(Event{Kind: Look})
		case "sleep":
			_, _ = fmt.Sscan(rest, &n)
			p.asked(Event{Kind: Sleep, For: time.Duration(n)})
		case "to":
			_, _ = fmt.Sscan(rest, &host, &n)
			allowed := p.stage.reaches(host, int(n))
			if !allowed {
				p.fail(fmt.Errorf("it connects to %s, which is none of the servers that it was given", net.JoinHostPort(printable.Text(host), fmt.Sprint(n))))
			}
			_ = c.tell(map[bool]int64{true: 1}[allowed])
		case "unix":
			p.fail(fmt.Errorf("it connects to the socket %s, which is none of the servers that it was given", printable.Word(rest)))
			_ = c.tell(0)
		case "starts":
			p.fail(errStarts)
			_ = c.tell(0)
		case "from":
			_, _ = fmt.Sscan(rest, &n)
			p.hold(int(n), false)
			p.stage.owns(int(n), p)
			_ = c.tell(0)
		case "gone":
			_, _ = fmt.Sscan(rest, &n)
			p.mu.Lock()
			delete(p.broken, int(n))
			p.mu.Unlock()
			_ = c.tell(0)
		}
	}
}

// asked passes on a request for the time. While the process has nothing to do, no time passes.
func (p *Process) asked(e Event) {
	p.mu.Lock()
	idle, elapsed := p.idle, p.elapsed
	p.mu.Unlock()
	if idle && e.Kind == Look {
		_ = p.control.tell(elapsed)
		return
	}
	if idle {
		e = Event{err: errBeside}
	}
	p.send(e)
}

// errStarts is the error of a program that starts another one.
var errStarts = errors.New("it starts other programs, which a search cannot step")

// errBeside is the error of a process that acts by itself.
var errBeside = errors.New("it sleeps or sends commands while it is asked nothing, as a thread of its own does: that cannot be stepped")

// hold notes a connection.
func (p *Process) hold(port int, broken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken[port] = broken
}

// Connections counts the connections that the process has not closed: how many work, and how many were broken.
func (p *Process) Connections() (open, broken int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, is := range p.broken {
		if is {
			broken++
		} else {
			open++
		}
	}
	return open, broken
}

// connected takes over a connection to a server.
func (p *Process) connected(a arrival) {
	p.keep(a.conn)
	c := &Conn{process: p, conn: a.conn, Node: a.node, answers: make(chan string)}
	go c.serve()
}

// Write sends a line to the process. From then on it has something to do, until Rest.
func (p *Process) Write(line []byte) error {
	p.mu.Lock()
	p.idle = false
	p.mu.Unlock()
	_, err := p.lines.Write(line)
	return err
}

// Rest says that the process has nothing to do until the next Write.
func (p *Process) Rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = true
}

// Next returns the next event of the process, or why there are no more.
func (p *Process) Next() (Event, error) {
	limit := time.NewTimer(p.stage.config.Limit)
	defer limit.Stop()
	for {
		select {
		case e := <-p.events:
			if e.Conn != nil && e.Conn.broken() {
				continue // it was sent before the connection was
			}
			return e, e.err
		case <-p.over:
			return Event{}, net.ErrClosed
		case <-p.stage.over:
			return Event{}, net.ErrClosed
		case <-limit.C:
			return Event{}, fmt.Errorf("it did nothing for %v", p.stage.config.Limit)
		}
	}
}

// Tell answers a Look or a Sleep with the time since the epoch.
func (p *Process) Tell(elapsed time.Duration) {
	p.mu.Lock()
	p.elapsed = int64(elapsed)
	p.mu.Unlock()
	_ = p.control.tell(int64(elapsed)) // a process that has ended is noticed by Next
}

// Kill ends the process. It may be called more than once, and of a nil Process.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return
	}
	p.dead = true
	close(p.over)
	for _, c := range p.closers {
		_ = c.Close()
	}
	if p.process != nil {
		_ = p.process.Kill() // it may have ended
		_ = p.process.Release()
	}
	if p.own {
		go p.from.end()
	}
}

// control is the connection of the library in a process.
type control struct {
	conn   net.Conn
	reader *bufio.Reader
	pid    int
	alone  bool // the program can be forked
}

func newControl(c net.Conn) *control { return &control{conn: c, reader: bufio.NewReader(c)} }

// hello reads the first line.
func (c *control) hello() (what string, of, alone int64, err error) {
	line, err := c.reader.ReadString('\n')
	if err != nil {
		return "", 0, 0, err
	}
	_, err = fmt.Sscan(line, &what, &of, &alone, &c.pid)
	return what, of, alone, err
}

// tell sends an answer.
func (c *control) tell(n int64) error {
	_, err := c.conn.Write(binary.NativeEndian.AppendUint64(nil, uint64(n)))
	return err
}
