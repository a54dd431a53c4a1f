// Package interrupt acts on single commands of one client: it holds it up before a
// command, loses a request or an answer, or lets the client die there.
//
// It does so by a hook on the Redis clients in a [variant.Env], so it needs no proxy and
// no connection of its own, and does not reach code that brings its own Redis client.
package interrupt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/rediscmd"
	"oversell/variant"
)

// ErrLost is the error of a command whose request or answer was lost.
var ErrLost = errors.New("connection lost")

// ErrRefused is the answer of a server that executed nothing.
var ErrRefused = Refusal("LOADING Redis is loading the dataset in memory")

// Refusals are errors with which a server answers a command that it does not execute. They are
// about the server or the client's rights, never about the data. What completes the sentence "the server answered
// that …".
var Refusals = []struct {
	What string
	Err  error
}{
	{"it is out of memory", Refusal("OOM command not allowed when used memory > 'maxmemory'.")},
	{"it is a replica", Refusal("READONLY You can't write against a read only replica.")},
	{"it loads its data", ErrRefused},
	{"it runs a script", Refusal("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")},
	{"keys are being moved", Refusal("TRYAGAIN Multiple keys request during rehashing of slot")},
	{"the key is elsewhere", Refusal("MOVED 3999 127.0.0.1:6381")},
	{"the cluster is down", Refusal("CLUSTERDOWN The cluster is down")},
	{"its master is down", Refusal("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")},
	{"it cannot save its data", Refusal("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.")},
	{"too few replicas are there", Refusal("NOREPLICAS Not enough good replicas to write.")},
	{"the client has not logged in", Refusal("NOAUTH Authentication required.")},
	{"the client has no right to the command", Refusal("NOPERM this user has no permissions to run the 'evalsha' command")},
	{"it has too many clients", Refusal("ERR max number of clients reached")},
}

// Losses are errors that a client gets if a command has no answer. They are about its connection, never about the data. What completes
// the sentence "it was not answered, since …".
var Losses = []struct {
	What string
	Err  error
}{
	{"the server closed the connection", io.EOF},
	{"the connection was reset", &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}},
	{"the time was over", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}},
	{"the connection was closed", &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}},
}

// Action is what happens to a command.
type Action int

// The actions.
const (
	Pass        Action = iota
	LoseRequest        // the server never sees the command
	LoseReply          // the server executes it, and the client learns nothing, or that its context ended
	Refuse             // the server answers with an error, and executes nothing
)

// refusal is an error with which a server answers.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError implements redis.Error.
func (r refusal) RedisError() {}

// Refusal returns the error of a server that answers with this text.
func Refusal(text string) error { return refusal(text) }

var errNoScript = Refusal(rediscmd.ScriptMissing)

// Ending is a context that ends when it is told to, by a cancellation or because its deadline passes.
type Ending struct {
	context.Context
	mu   sync.Mutex
	by   time.Time // its deadline, if it has one
	err  error     // after its end
	done chan struct{}
}

// NewEnding returns a context within parent. If it has a deadline, that is far away until the context
// ends.
func NewEnding(parent context.Context, deadline bool) *Ending {
	e := &Ending{Context: parent, done: make(chan struct{})}
	if deadline {
		e.by = time.Now().Add(time.Minute)
	}
	context.AfterFunc(parent, func() { e.end(parent.Err()) })
	return e
}

// End ends the context: as a passed deadline does if it has one, or else as a cancellation.
func (e *Ending) End() {
	e.mu.Lock()
	err := context.Canceled
	if !e.by.IsZero() {
		e.by, err = time.Now(), context.DeadlineExceeded
	}
	e.mu.Unlock()
	e.end(err)
}

func (e *Ending) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
		close(e.done)
	}
}

// Deadline implements context.Context.
func (e *Ending) Deadline() (time.Time, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by.IsZero() {
		return e.Context.Deadline()
	}
	return e.by, true
}

// Done implements context.Context.
func (e *Ending) Done() <-chan struct{} { return e.done }

// Err implements context.Context.
func (e *Ending) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Interceptor is one client's way to its servers.
type Interceptor struct {
	mu   sync.Mutex
	n    int // commands since the last plan; a pipeline is one
	act  func(nth int) Action
	dead bool
	name string // of the last command
	// lost and refused are the errors of commands that suffer LoseRequest or LoseReply, and Refuse.
	lost, refused error
	// apart says that the commands of a pipeline count one by one.
	apart bool
	// forgetful says that the server knows no script but those in known, by their hashes.
	forgetful bool
	known     map[string]bool
}

// Intercept returns env with redis clients whose commands pass through an Interceptor, and the Interceptor.
func Intercept(env variant.Env) (variant.Env, *Interceptor) {
	l := &Interceptor{lost: ErrLost, refused: ErrRefused}
	own := make([]redis.UniversalClient, len(env.Redis))
	for i, c := range env.Redis {
		if one, ok := c.(*redis.Client); ok {
			c = one.WithTimeout(one.Options().ReadTimeout) // the way to share a pool, with hooks of its own
		}
		c.AddHook(hook{l})
		own[i] = c
	}
	env.Redis = own
	return env, l
}

// Plan sets the actions on the commands from now on, counted from 1; nil: none. The
// function may block, which holds the client up before the command.
func (l *Interceptor) Plan(act func(nth int) Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n, l.act = 0, act
}

// Arm has the n-th command from now on suffer.
func (l *Interceptor) Arm(n int, a Action) {
	l.Plan(func(nth int) Action {
		if nth == n {
			return a
		}
		return Pass
	})
}

// Errors sets the error of a command whose request or answer is lost, and the error with which
// the server answers a command that it refuses.
func (l *Interceptor) Errors(lost, refused error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.refused = lost, refused
}

// Outage makes commands of a call fail with an error: the Nth and the next five, or only the Nth. Later commands succeed, so
// that a client that retries comes to an end.
type Outage struct {
	Answer error
	Nth    int
	Only   bool
}

// Outages returns outages that begin at the first command, and at the second.
func Outages(answer error) []Outage {
	return []Outage{{answer, 1, false}, {answer, 1, true}, {answer, 2, false}, {answer, 2, true}}
}

func (o Outage) String() string {
	if o.Only {
		return fmt.Sprintf("command %d was answered %q", o.Nth, o.Answer)
	}
	return fmt.Sprintf("command %d and the next ones were answered %q", o.Nth, o.Answer)
}

// On starts the outage.
func (o Outage) On(l *Interceptor) {
	l.Errors(o.Answer, o.Answer)
	l.Plan(func(nth int) Action {
		if nth == o.Nth || nth > o.Nth && nth < o.Nth+6 && !o.Only {
			return Refuse
		}
		return Pass
	})
}

// TakeApart counts each command of a pipeline that is not a transaction: a server may execute
// commands of other clients between them.
func (l *Interceptor) TakeApart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apart = true
}

// ForgetScripts makes the server look to this client as if it had forgotten its scripts: it answers
// the EVALSHA of each with NOSCRIPT until the client sends it by EVAL or SCRIPT LOAD. Other clients
// do not notice.
func (l *Interceptor) ForgetScripts() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetful, l.known = true, map[string]bool{}
}

// Command names the last command that was about to be sent.
func (l *Interceptor) Command() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

// errors returns what Errors set.
func (l *Interceptor) errors() (lost, refused error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost, l.refused
}

// Sent is how many commands were sent since the last plan.
func (l *Interceptor) Sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// Die ends the client: nothing that it does from now on arrives.
func (l *Interceptor) Die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = true
}

// DiesAt runs a call of a client that dies at its n-th command, which suffers a. It reports
// whether the call has so many commands.
func (l *Interceptor) DiesAt(n int, a Action, call func()) bool {
	l.Plan(func(nth int) Action {
		switch {
		case nth < n:
			return Pass
		case nth == n:
			return a
		}
		return LoseRequest
	})
	call()
	there := l.Sent() >= n
	l.Die()
	return there
}

// decide counts the next command, or pipeline, and returns the action on it.
func (l *Interceptor) decide(cmds ...redis.Cmder) Action {
	l.mu.Lock()
	l.n++
	l.name = ""
	for i, cmd := range cmds {
		if i > 0 {
			l.name += ", "
		}
		l.name += strings.ToUpper(cmd.Name())
	}
	n, act, dead := l.n, l.act, l.dead
	l.mu.Unlock()
	switch {
	case dead:
		return LoseRequest
	case act == nil:
		return Pass
	}
	return act(n)
}

// Stall is a client held up before a command.
type Stall struct {
	l      *Interceptor
	resume chan struct{}
	done   chan struct{}
	once   sync.Once
}

// Stalled starts a call and holds it up before its n-th command. It is nil, and the call
// has returned, if the call has fewer commands.
func (l *Interceptor) Stalled(ctx context.Context, n int, call func()) *Stall {
	return l.StalledBefore(ctx, n, Pass, call)
}

// StalledBefore is Stalled for a command that suffers a when the client goes on.
func (l *Interceptor) StalledBefore(ctx context.Context, n int, a Action, call func()) *Stall {
	return l.stalled(ctx, n, func(nth int) Action {
		if nth == n {
			return a
		}
		return Pass
	}, call)
}

// StalledAfter is Stalled when an earlier command, the one with the number first, has suffered a.
func (l *Interceptor) StalledAfter(ctx context.Context, first int, a Action, n int, call func()) *Stall {
	return l.stalled(ctx, n, func(nth int) Action {
		if nth == first {
			return a
		}
		return Pass
	}, call)
}

func (l *Interceptor) stalled(ctx context.Context, n int, act func(nth int) Action, call func()) *Stall {
	s := &Stall{l: l, resume: make(chan struct{}), done: make(chan struct{})}
	reached := make(chan struct{})
	l.Plan(func(nth int) Action {
		if nth == n {
			close(reached)
			select {
			case <-s.resume:
			case <-ctx.Done():
			}
		}
		return act(nth)
	})
	go func() { call(); close(s.done) }()
	select {
	case <-reached:
		return s
	case <-s.done:
		l.Plan(nil)
		return nil
	}
}

// GoOn lets the client go on, and returns when its call has.
func (s *Stall) GoOn() {
	s.once.Do(func() { close(s.resume) })
	<-s.done
	s.l.Plan(nil)
}

// unknown reports whether the command runs a script that the server has forgotten.
func (l *Interceptor) unknown(cmd redis.Cmder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	args := cmd.Args()
	if !l.forgetful || len(args) < 2 {
		return false
	}
	text := args[1]
	switch strings.ToLower(cmd.Name()) {
	case "evalsha", "evalsha_ro":
		return !l.known[fmt.Sprint(text)]
	case "script":
		if len(args) < 3 {
			return false
		}
		text = args[2]
		fallthrough
	case "eval", "eval_ro":
		l.known[rediscmd.SHA1(fmt.Sprint(text))] = true
	}
	return false
}

// hook passes commands through a line.
type hook struct{ l *Interceptor }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		action := h.l.decide(cmd)
		lost, refused := h.l.errors()
		if err := ctx.Err(); err != nil {
			lost = err
		}
		switch action {
		case LoseReply:
			_ = next(context.WithoutCancel(ctx), cmd)
			fallthrough
		case LoseRequest:
			cmd.SetErr(lost)
			return lost
		case Refuse:
			cmd.SetErr(refused)
			return refused
		}
		if h.l.unknown(cmd) {
			cmd.SetErr(errNoScript)
			return errNoScript
		}
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if h.l.takesApart(cmds) {
			return h.oneByOne(ctx, cmds, next)
		}
		action := h.l.decide(cmds...)
		err, refused := h.l.errors()
		if over := ctx.Err(); over != nil {
			err = over
		}
		switch action {
		case Refuse:
			err = refused
		case LoseReply:
			_ = next(context.WithoutCancel(ctx), cmds)
		case LoseRequest:
		default:
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}

// takesApart reports whether the commands of a pipeline count one by one.
func (l *Interceptor) takesApart(cmds []redis.Cmder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.apart && len(cmds) > 1 && !strings.EqualFold(cmds[0].Name(), "multi")
}

// oneByOne sends the commands of a pipeline. Behind one without an answer the connection is gone.
func (h hook) oneByOne(ctx context.Context, cmds []redis.Cmder, next redis.ProcessPipelineHook) (first error) {
	for i, cmd := range cmds {
		action := h.l.decide(cmd)
		err, refused := h.l.errors()
		switch action {
		case Refuse:
			cmd.SetErr(refused)
		case LoseReply, LoseRequest:
			if action == LoseReply {
				_ = next(ctx, []redis.Cmder{cmd})
			}
			for _, rest := range cmds[i:] {
				rest.SetErr(err)
			}
			return cmp.Or(first, err)
		default:
			_ = next(ctx, []redis.Cmder{cmd})
		}
		first = cmp.Or(first, cmd.Err())
	}
	return first
}

// Slow returns the world of a client that gets each answer later by this time.
func Slow(env variant.Env, by time.Duration) variant.Env {
	env, _ = Intercept(env)
	for _, c := range env.Redis {
		c.AddHook(slow{by})
	}
	return env
}

// slow holds up answers.
type slow struct{ by time.Duration }

func (slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		time.Sleep(s.by)
		return err
	}
}

func (s slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		time.Sleep(s.by)
		return err
	}
}
