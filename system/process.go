package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/child"
	"oversell/internal/closed"
	"oversell/internal/phrase"
	"oversell/internal/printable"
	"oversell/variant"
)

// longestLine is the maximum length of a line from a process.
const longestLine = 1 << 20

// ending is how long a process may take to end after its input is closed.
const ending = 2 * time.Second

// drained is how long to read the remaining output of a process that has ended.
const drained = 100 * time.Millisecond

// process is a program that serves clients. Its methods are safe for concurrent use.
type process struct {
	system *System
	redis  []string
	port   int // for a service whose file uses {port}; otherwise 0
	// ready is closed when the process has answered init, or has failed.
	ready  chan struct{}
	child  *child.Process // nil if it could not be started
	stdout *os.File       // its output; nil for a service
	lines  chan []byte    // to be written
	stderr child.Tail

	mu        sync.Mutex
	clients   int              // attached, or with a reserved place
	kept      int              // places reserved for clients that have not called yet
	next      int64            // id of the next request
	waiting   map[int64]waiter // requests without an answer
	abandoned map[int64]bool   // requests that were given up; true: answered since
	failed    error            // why it no longer serves clients
	over      chan struct{}    // closed when failed is set
}

// waiter waits for the answer to a request.
type waiter struct {
	came chan answer
	op   string
}

// attach connects a client to the system.
func (s *System) attach(ctx context.Context, env variant.Env) (caller, error) {
	if s.service != nil {
		return s.visit(ctx, env)
	}
	p, err := s.join(ctx, env, (*process).start)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// join finds a process for a client, or makes begin start one, waits until it is ready, and releases the client's
// place when the client ends.
func (s *System) join(ctx context.Context, env variant.Env, begin func(*process, context.Context)) (*process, error) {
	p, first, err := s.place(urls(env), true)
	if err != nil {
		return nil, err
	}
	if err := s.settle(ctx, p, first, begin); err != nil {
		return nil, err
	}
	env.Go(func(ctx context.Context) {
		<-ctx.Done()
		s.detach(p)
	})
	return p, nil
}

// settle waits until the client's process is ready; its first client starts it. On failure the place is released.
func (s *System) settle(ctx context.Context, p *process, first bool, begin func(*process, context.Context)) error {
	if first {
		begin(p, ctx)
	}
	<-p.ready
	if err := p.why(); err != nil {
		s.detach(p)
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	return nil
}

// Prepare prepares a process for a client of a run, so that its start is not part of the load. If that fails, the
// client's first call tries again.
func (s *System) Prepare(ctx context.Context, env variant.Env) {
	begin := (*process).start
	switch {
	case s.service != nil && len(s.service.Start) == 0:
		return
	case s.service != nil:
		begin = (*process).serve
	}
	p, first, err := s.place(urls(env), false)
	if err != nil || s.settle(ctx, p, first, begin) != nil {
		return
	}
	p.mu.Lock()
	p.kept++
	p.mu.Unlock()
	env.Go(func(ctx context.Context) {
		<-ctx.Done()
		if p.takeKept() {
			s.detach(p)
		}
	})
}

// takeKept takes a reserved place of the process, if there is one.
func (p *process) takeKept() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == 0 {
		return false
	}
	p.kept--
	return true
}

// place takes a place at a process: a reserved one, with kept; otherwise a free one; otherwise at a new process,
// which the caller must start.
func (s *System) place(addresses []string, kept bool) (p *process, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return nil, false, s.failed
	}
	for _, p := range s.processes {
		if kept && !p.gone() && slices.Equal(p.redis, addresses) && p.takeKept() {
			return p, false, nil
		}
	}
	for _, p := range s.processes {
		if slices.Equal(p.redis, addresses) && p.admit(s.most()) {
			return p, false, nil
		}
	}
	p = &process{system: s, redis: addresses, clients: 1, ready: make(chan struct{}), lines: make(chan []byte, s.clients),
		waiting: map[int64]waiter{}, abandoned: map[int64]bool{}, over: make(chan struct{})}
	s.processes = append(s.processes, p)
	return p, true, nil
}

// most returns the maximum number of clients per process; a service serves all.
func (s *System) most() int {
	if s.service != nil {
		return mostClients
	}
	return s.clients
}

// admit adds a client unless the process is full or has failed.
func (p *process) admit(most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil || p.clients == most {
		return false
	}
	p.clients++
	return true
}

// detach releases a client's place, and ends a process without clients.
func (s *System) detach(p *process) {
	p.mu.Lock()
	p.clients--
	idle := p.clients == 0
	p.mu.Unlock()
	if idle {
		p.dismiss(errors.New("it no longer serves clients"))
		p.end()
	}
}

// dismiss stops the process from serving clients, and reports whether it served them before.
func (p *process) dismiss(err error) bool {
	p.mu.Lock()
	serves := p.failed == nil
	if serves {
		p.failed = err
		close(p.over)
	}
	p.mu.Unlock()
	p.system.forget(p)
	return serves
}

// End ends a run: when it returns, no process started for the run is left, even if clients still have places.
func (s *System) End() {
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.begun))
	s.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range left {
		all.Go(func() {
			<-p.ready
			p.dismiss(errors.New("the run is over"))
			p.end()
		})
	}
	all.Wait()
}

// launched adds a process to those that must end.
func (s *System) launched(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun == nil {
		s.begun = map[*process]bool{}
	}
	s.begun[p] = true
	s.served++
}

// ended removes it.
func (s *System) ended(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.begun, p)
}

// forget removes a process from the list, so that it serves only its current clients.
func (s *System) forget(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = slices.DeleteFunc(s.processes, func(q *process) bool { return q == p })
}

// end waits until the process, whose input is closed, has ended, and kills it if it does not. A service has no
// input and is asked to end by a signal.
func (p *process) end() {
	if p.child == nil {
		return
	}
	defer p.system.ended(p)
	if p.system.service != nil {
		p.child.StopAll(ending)
		return
	}
	defer p.stdout.Close() // child processes may hold the other end open
	select {
	case <-p.child.Exited():
	case <-time.After(ending):
	}
	p.child.KillAll()
}

// fail records that the process no longer serves clients, and counts the failure against the system. The first
// reason counts.
func (p *process) fail(err error) {
	if !p.dismiss(err) {
		return
	}
	s := p.system
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	switch {
	case s.failed != nil:
	case s.service != nil: // its stock is lost with it
		s.failed = fmt.Errorf("%s: %w", s.Name, err)
	case s.failures == mostFailures:
		s.failed = fmt.Errorf("%s: %d processes failed; the last: %w", s.Name, mostFailures, err)
	}
}

// Begin begins a run and resets failures.
func (s *System) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures, s.served, s.failed, s.asked = 0, 0, nil, nil
}

// Notes implements [scenarios.ExternalSystem].
func (s *System) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served < 2 {
		return nil
	}
	one := fmt.Sprintf("%d processes of %s served the clients", s.served, s.Name)
	if s.failures > 0 {
		one += fmt.Sprintf(", some of them in place of %d that failed", s.failures)
	}
	return []string{one + ": what a process keeps in its memory, the others do not have (see clients in docs/systems.md)"}
}

// Err explains why the current run starts no more processes; nil if it does.
func (s *System) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// urls returns the addresses of the servers as URLs.
func urls(env variant.Env) (all []string) {
	for i, addr := range env.Addr {
		u := url.URL{Scheme: "redis", Host: addr}
		if i < len(env.Redis) {
			if c, ok := env.Redis[i].(*redis.Client); ok {
				o := c.Options()
				if o.Password != "" {
					u.User = url.UserPassword(o.Username, o.Password)
				}
				if o.DB != 0 {
					u.Path = "/" + strconv.Itoa(o.DB)
				}
			}
		}
		all = append(all, u.String())
	}
	return all
}

// filled replaces {redis} and {port} in a text.
func (p *process) filled(text string) string {
	return strings.NewReplacer("{redis}", strings.Join(p.redis, ","), "{port}", strconv.Itoa(p.port)).Replace(text)
}

// start starts the process and sends init.
func (p *process) start(ctx context.Context) {
	defer close(p.ready)
	s := p.system
	if err := p.launch(); err != nil {
		p.fail(err)
		return
	}
	go p.read()
	go func() {
		<-p.child.Exited() // its children may hold its output open
		_ = p.stdout.SetReadDeadline(time.Now().Add(drained))
	}()
	limited, cancel := context.WithTimeoutCause(ctx, s.start, fmt.Errorf("no answer to init within %v", s.start))
	defer cancel()
	a, err := p.call(limited, request{Op: "init", Schema: Schema, Object: string(s.Object), Redis: p.redis})
	if err == nil && !a.OK {
		err = fmt.Errorf("it answered init with %q", a.Refused+a.Unknown)
	}
	if err != nil {
		p.fail(err)
		p.child.KillAll()
	}
}

// launch starts the program; p.lines is written to its input.
func (p *process) launch() error {
	cmd := p.command(p.system.command)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	defer in.Close()
	cmd.Stdout, p.stdout = in, out
	if p.child, err = child.Start(cmd); err != nil {
		return errors.Join(err, out.Close()) // and stdin is closed
	}
	p.system.launched(p)
	go p.write(stdin)
	return nil
}

// write writes requests until the process no longer serves clients. A process that does not read blocks it; clients
// still wait no longer than for an answer.
func (p *process) write(stdin io.WriteCloser) {
	defer stdin.Close()
	for {
		select {
		case line := <-p.lines:
			if _, err := stdin.Write(line); err != nil {
				return // the process has ended; its reader reports that
			}
		case <-p.over:
			return
		}
	}
}

// read reads answers until the process ends or prints something else.
func (p *process) read() {
	lines := bufio.NewScanner(p.stdout)
	lines.Buffer(make([]byte, 0, 4<<10), longestLine)
	for lines.Scan() {
		if err := p.take(lines.Bytes()); err != nil {
			p.fail(fmt.Errorf("%w: %s", err, printable.Word(short(lines.Text()))))
			p.child.KillAll()
			return
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		p.fail(fmt.Errorf("it printed a line of more than %d bytes", longestLine))
		p.child.KillAll()
	default:
		p.fail(p.ended())
		p.child.KillAll()
	}
}

// short returns the beginning of a line.
func short(line string) string {
	const most = 200
	if len(line) > most {
		return line[:most] + "…"
	}
	return line
}

// endError means that a process ended by itself.
type endError struct {
	how     string
	printed []string // last lines of stderr
}

// Error describes how it ended, with its last line.
func (e *endError) Error() string {
	s := "it ended" + e.how
	if n := len(e.printed); n > 0 {
		s += ": " + e.printed[n-1]
	}
	return s
}

// mostPrinted is how many of a process's last lines are reported.
const mostPrinted = 10

// ended returns how the process ended, with its last output on stderr.
func (p *process) ended() error {
	e := &endError{}
	select {
	case <-p.child.Exited():
		if err := p.child.Err(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			e.how = " with " + err.Error()
		}
	case <-time.After(ending):
	}
	for line := range strings.Lines(p.stderr.String()) {
		if line = phrase.OneLine(short(line)); line != "" {
			e.printed = append(e.printed, printable.Text(line))
		}
	}
	e.printed = e.printed[max(0, len(e.printed)-mostPrinted):]
	return e
}

// parse parses an answer.
func parse(line []byte) (a answer, err error) {
	read, err := document(line)
	if err == nil {
		err = named(read, answerNames)
	}
	if err == nil {
		err = a.read(line)
	}
	if err != nil {
		return a, fmt.Errorf("it printed a line that is not an answer (%v)", err)
	}
	if a.ID == nil {
		return a, errors.New("it printed an answer without an id")
	}
	a.given = map[string]bool{}
	for name, v := range read.(map[string]any) {
		a.given[name] = v != nil
	}
	return a, nil
}

// take passes an answer to the waiting call.
func (p *process) take(line []byte) error {
	a, err := parse(line)
	if err != nil {
		return err
	}
	a.came = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.waiting[*a.ID].came != nil:
		w := p.waiting[*a.ID]
		w.came <- a // the channel has capacity 1
		delete(p.waiting, *a.ID)
		return p.system.check(w.op, a)
	}
	came, asked := p.abandoned[*a.ID]
	switch {
	case asked && !came:
		p.abandoned[*a.ID] = true
		return nil
	case *a.ID > 0 && *a.ID <= p.next:
		return fmt.Errorf("it answered request %d twice", *a.ID)
	}
	return fmt.Errorf("it answered request %d, which it was never asked", *a.ID)
}

// call sends a request and waits for its answer.
func (p *process) call(ctx context.Context, r request) (answer, error) {
	came := make(chan answer, 1)
	p.mu.Lock()
	if p.failed != nil {
		p.mu.Unlock()
		return answer{}, p.err(r)
	}
	p.next++
	r.ID = p.next
	p.waiting[r.ID] = waiter{came, r.Op}
	p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return answer{}, fmt.Errorf("%s of %s: %w", r.Op, p.system.Name, err)
	}
	select {
	case p.lines <- append(line, '\n'):
	case <-p.over:
	case <-ctx.Done():
	}
	select {
	case a := <-came:
		if err := p.system.check(r.Op, a); err != nil {
			return answer{}, fmt.Errorf("%s of %s: %w", r.Op, p.system.Name, err)
		}
		return a, nil
	case <-p.over:
		select {
		case a := <-came: // the answer came before the process ended
			if p.system.check(r.Op, a) == nil {
				return a, nil
			}
		default:
		}
		return answer{}, p.err(r)
	case <-ctx.Done():
		p.mu.Lock()
		delete(p.waiting, r.ID)
		p.abandoned[r.ID] = false
		p.mu.Unlock()
		return answer{}, fmt.Errorf("%s of %s: %w", r.Op, p.system.Name, context.Cause(ctx))
	}
}

func (p *process) err(r request) error {
	return fmt.Errorf("%s of %s: the process failed: %w", r.Op, p.system.Name, p.why())
}

// why returns why the process no longer serves clients; nil if it still does.
func (p *process) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// gone implements caller.
func (p *process) gone() bool { return closed.Is(p.over) }
