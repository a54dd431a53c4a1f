package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"oversell/clock"
	"oversell/internal/errclass"
	"oversell/internal/printable"
	"oversell/internal/remote"
	"oversell/variant"
)

// stepped connects a client to a process that a search steps.
type stepped struct {
	env     variant.Env
	session *Session
	// open and broken count the connections of the process: it may have to reconnect.
	open, broken int
	// sent means that the process's last action for its request was to send commands.
	sent bool
	// hidden marks, by its presence, that the process may have state that is not visible, so that executions cannot
	// be compared by the content of their objects.
	hidden chan struct{}
}

// Session is a client's conversation with a process of its own, which starts on first use and restarts in each
// execution. It is not safe for concurrent use.
type Session struct {
	system  *System
	process *remote.Process
	next    int64         // of the last request
	elapsed time.Duration // time since the epoch that the process saw last
}

func (s *System) step(env variant.Env) *stepped {
	w := &stepped{env: env, session: &Session{system: s}}
	if !s.stateless {
		w.hidden = make(chan struct{})
	}
	return w
}

// epoch is the start time of every search.
var epoch = clock.SearchEpoch

// CannotStep explains why a search cannot step the system; nil if it can.
func (s *System) CannotStep() error {
	switch {
	case s.service != nil:
		return errors.New("it is an HTTP service: a search steps only programs that speak JSON lines (command)")
	case s.Object == variant.IDs || s.Object == variant.Queue:
		return fmt.Errorf("it is a %s: a search steps only locks and sales", s.Object)
	}
	return nil
}

// Doubt explains why a search of the system that found no overlapping leases has proved nothing; nil if it has.
func (s *System) Doubt() error {
	if !s.blind.Load() {
		return nil
	}
	return errors.New("the program answers valid_ms without reading the time of day after its last command, so the end of the lease is unknown: answer until_ms, read the time of day before answering, or set monotonic: true if the runtime reads no monotonic clock by itself (see docs/systems.md)")
}

// Stateless reports whether the file declares that processes keep no state between requests.
func (s *System) Stateless() bool { return s.stateless }

// NotSearched returns sentences about what a search of the system leaves out.
func (s *System) NotSearched() []string {
	all := []string{
		"what a program does between requests, and what is executed of several commands sent at once after the connection has broken",
		"effects of clients of one process on each other: each client has a process of its own",
		"a seed that the program chooses for Python's random: the module is seeded anew in each execution",
	}
	if !s.monotonic {
		all = append(all, "what the program does by a monotonic clock, which shows it real time (see monotonic in docs/systems.md)")
	}
	return all
}

// on returns the stage of the searches, which is opened on first use.
func (s *System) on(masters int) (*remote.Stage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage != nil {
		return s.stage, nil
	}
	stage, err := remote.Open(context.Background(), remote.Config{
		Command: s.command, Dir: s.dir, Masters: masters, Epoch: epoch, Start: s.start, Limit: s.limit, Unsteady: !s.monotonic,
		Env: s.variables, Warm: s.initialize,
	})
	s.stage = stage
	return stage, err
}

// CloseSearches ends the processes of searches.
func (s *System) CloseSearches() {
	s.mu.Lock()
	stage := s.stage
	s.stage = nil
	s.mu.Unlock()
	if stage != nil {
		stage.Close()
	}
}

// variables returns the environment of the file, with the addresses of these servers.
func (s *System) variables(addresses []string) (env []string) {
	for name, value := range s.env {
		env = append(env, name+"="+strings.ReplaceAll(value, "{redis}", strings.Join(redisURLs(addresses), ",")))
	}
	return env
}

func redisURLs(addresses []string) (all []string) {
	for _, a := range addresses {
		all = append(all, "redis://"+a)
	}
	return all
}

// initialize sends init to a process.
func (s *System) initialize(p *remote.Process) error {
	r := request{ID: 1, Op: "init", Client: 1, Schema: Schema, Object: string(s.Object)}
	if err := write(p, r); err != nil {
		return err
	}
	for {
		e, err := p.Next()
		if err != nil {
			return err
		}
		switch e.Kind {
		case remote.Line:
			a, err := s.answerTo(r, e.Line)
			if err == nil && !a.OK {
				err = fmt.Errorf("it answered init with %q", a.Refused+a.Unknown)
			}
			p.Rest()
			return err
		case remote.Commands:
			return fmt.Errorf("it sends %.200q before the first operation: in a search, it may only set up connections (HELLO, AUTH, SELECT, …) before that", e.Commands)
		default:
			p.Tell(0) // no time passes
		}
	}
}

func write(p *remote.Process, r request) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := p.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("it takes no request: %w", err)
	}
	return nil
}

// answerTo parses the answer to a request. Any other output is an error.
func (s *System) answerTo(r request, line []byte) (answer, error) {
	id := r.ID
	a, err := parse(line)
	switch {
	case err != nil:
	case *a.ID < id && *a.ID > 0:
		err = fmt.Errorf("it answered request %d twice", *a.ID)
	case *a.ID != id:
		err = fmt.Errorf("it answered request %d, which it was never asked", *a.ID)
	default:
		err = s.check(r.Op, a)
	}
	if err != nil {
		return a, fmt.Errorf("%w: %s", err, printable.Word(short(string(line))))
	}
	return a, nil
}

// gone implements caller: a failed process ends the search.
func (w *stepped) gone() bool { return false }

// fail ends the search.
func (w *stepped) fail(r request, err error) {
	if !errors.Is(err, errclass.ErrEnvironment) {
		err = fmt.Errorf("%s: %s: %w", w.session.system.Name, r.Op, err)
	}
	w.env.Step.Fail(err)
}

// call implements caller. The process's actions go through the search.
func (w *stepped) call(ctx context.Context, r request) (answer, error) {
	if w.session.process == nil {
		w.begin(r)
	}
	w.session.next++
	w.sent = false
	r.ID = w.session.next
	if err := write(w.session.process, r); err != nil {
		w.failWith(r, err)
	}
	began := time.Time{}
	for range mostEvents {
		var e remote.Event
		var err error
		w.env.Step.Await(func() { e, err = w.session.process.Next() })
		if err != nil {
			w.fail(r, err)
		}
		// The request counts as sent, or as read, when the process does the first thing that others can observe.
		first := began.IsZero() && r.TTLMS > 0
		if first {
			began = w.env.Clock.Now()
			w.session.elapsed = began.Sub(epoch)
		}
		switch {
		case e.Kind == remote.Line:
			a, err := w.answered(r, e.Line)
			a.began = began
			return a, err
		case e.Kind == remote.Look && first:
			w.session.process.Tell(w.session.elapsed)
		default:
			w.does(ctx, e)
		}
	}
	w.fail(r, fmt.Errorf("it read clocks and sent commands %d times without an answer: it must wait by a sleep that the search sees, such as nanosleep", mostEvents))
	return answer{}, nil // unreachable
}

// mostEvents is the maximum number of actions of a process per request.
const mostEvents = 1000

// failWith is like fail, for a process that takes no requests: its last action explains why.
func (w *stepped) failWith(r request, err error) {
	w.env.Step.Await(func() {
		for {
			if _, why := w.session.process.Next(); why != nil {
				err = why
				return
			}
		}
	})
	w.fail(r, err)
}

// begin starts a new process.
func (w *stepped) begin(r request) {
	var err error
	w.env.Step.Await(func() {
		var stage *remote.Stage
		if stage, err = w.session.system.on(len(w.env.Redis)); err == nil {
			w.session.process, err = stage.Process()
		}
	})
	if err != nil {
		w.fail(r, err)
	}
	w.env.Step.AtEnd(w.session.process.Kill)
	w.session.next = 1 // init
}

// does performs an action of the process.
func (w *stepped) does(ctx context.Context, e remote.Event) {
	w.sent = e.Kind == remote.Commands
	switch e.Kind {
	case remote.Commands:
		replies, answered := w.env.Step.Send(variant.Sent{Node: e.Conn.Node, Conn: e.Conn, Commands: e.Commands, Tx: e.Tx})
		if answered {
			e.Conn.Answer(replies)
		} else {
			e.Conn.Break()
		}
	case remote.Sleep:
		_ = w.env.Clock.Sleep(ctx, e.For) // ctx does not end
		w.look()
	case remote.Look:
		w.look()
	}
}

// look shows the current time to the process.
func (w *stepped) look() {
	w.session.elapsed = w.env.Clock.Now().Sub(epoch)
	w.session.process.Tell(w.session.elapsed)
}

// answered parses the answer.
func (w *stepped) answered(r request, line []byte) (answer, error) {
	a, err := w.session.system.answerTo(r, line)
	w.session.process.Rest()
	w.open, w.broken = w.session.process.Connections()
	if err == nil && a.UntilMS > 0 {
		err = w.credible(a, r)
	}
	if err != nil {
		w.fail(r, err)
	}
	if a.OK && a.UntilMS <= 0 && a.ValidMS > 0 {
		a.came, a.exact = w.written(), true
		if w.sent && !w.session.system.monotonic {
			w.session.system.blind.Store(true)
		}
	}
	return a, nil
}

// written returns when the process wrote its answer, from which valid_ms counts: when it last read the clock, if
// that was its last action, otherwise now. If its readings of monotonic clocks are not visible, it may have read
// one since its last command, and subtracted the time of that command. Then written returns the earliest possible
// time: violations found with it also occur with a later one, but a proof says nothing (see [System.Doubt]).
func (w *stepped) written() time.Time {
	if w.sent && w.session.system.monotonic {
		return w.env.Clock.Now()
	}
	return epoch.Add(w.session.elapsed)
}

// credible refuses the end of a lease that is not by the clock of the search.
func (w *stepped) credible(a answer, r request) error {
	until, most := a.until(time.Time{}, 0), epoch.Add(w.session.elapsed+time.Duration(r.TTLMS)*time.Millisecond+24*time.Hour)
	if until.Before(epoch) || until.After(most) {
		return fmt.Errorf("it answered that the lease ends at %s, which must be between %s and %s by the clock of the search: it does not read its clock through the shared C library",
			until.UTC().Format(time.DateTime), epoch.Format(time.DateTime), most.UTC().Format(time.DateTime))
	}
	return nil
}
