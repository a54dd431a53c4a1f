// Package guard undoes the changes of a program even if the program cannot, for example because it was killed.
//
// A program that changes something that outlives it, like the settings of another owner's server, starts a guard first:
// a second process of its own executable, in a session of its own, so that neither a kill -9 of the program nor a
// Ctrl-C on its terminal ends it. Before each change the program tells the guard how to undo it (a duty, see
// [Guard.Intend]), and when it has undone the change itself, it tells the guard. When the pipe between them closes, the
// guard undoes the rest and exits. It tries for at most [Patience].
//
//	program  hello       begin 1      (change)      end 1      EOF
//	guard           ok           ok            …          ok        (undo the rest)
//
// A [Keeper] interprets its duties. They are not passed on a command line, since they may contain passwords.
//
// A guard is an invocation of the same executable. Its main function must call [Serve] before anything else when
// [Asked] is true, and declare that with [With]. Without [With] there are no guards: all methods of a nil *Guard do
// nothing.
package guard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	// asked is the environment variable that makes an invocation a guard.
	asked = "OVERSELL_GUARD"
	// Patience is how long a guard tries to undo its program's changes before it gives up.
	Patience = time.Minute
	// answering is how long a guard may take to answer its program.
	answering = 10 * time.Second
	// leaving is how long a program waits at its end for its guard, which then goes on without it.
	leaving = 3 * time.Second
)

// Asked reports whether this process must be a guard: then main must call Serve.
func Asked() bool { return os.Getenv(asked) != "" }

type key struct{}

// With returns a context in which Start starts guards by this executable. The caller
// promises that the executable calls Serve.
func With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, true) }

// message is a line to a guard.
type message struct {
	Do   string          `json:"do"` // hello, begin, end or log
	ID   int64           `json:"id,omitempty"`
	Role string          `json:"role,omitempty"`
	Body json.RawMessage `json:"body,omitempty"`
}

// answer is a line from a guard, one for each message.
type answer struct {
	Error string `json:"error,omitempty"`
}

// Guard is a guard process, on the side of its program. Its methods are safe for concurrent
// use.
type Guard struct {
	cmd  *exec.Cmd
	to   io.WriteCloser
	from *bufio.Reader

	mu     sync.Mutex
	last   int64 // id of a duty
	lost   error // why it is no longer usable
	closed bool
}

// Start starts a guard with a keeper of this role, which gets hello. Without [With] it returns nil, which guards
// nothing. The guard lives until Close, or any end of the program.
func Start(ctx context.Context, role string, hello any) (*Guard, error) {
	if ctx.Value(key{}) == nil || Asked() {
		return nil, nil
	}
	g, err := launch()
	if err == nil {
		if _, err = g.say(message{Do: "hello", Role: role}, hello); err != nil {
			_ = g.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("start the guard process: %w", err)
	}
	return g, nil
}

func launch() (*Guard, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	g := &Guard{cmd: exec.Command(self, "guard")}
	g.cmd.Env = append(os.Environ(), asked+"=1")
	g.cmd.Dir = string(filepath.Separator)
	g.cmd.SysProcAttr = apart()
	if g.to, err = g.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	g.from = bufio.NewReader(out)
	return g, g.cmd.Start()
}

// Intend tells the guard of a duty before the change that it undoes; after an error the change must not be made. done
// reports that the change was undone. Until it is called, the guard will undo the change when the program has ended.
func (g *Guard) Intend(duty any) (done func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	id, err := g.say(message{Do: "begin"}, duty)
	if err != nil {
		return nil, fmt.Errorf("tell the guard process what to undo: %w", err)
	}
	return sync.OnceFunc(func() { _, _ = g.say(message{Do: "end", ID: id}, nil) }), nil
}

// Log sets the directory in which the guard reports what it had to undo, and what it could not.
func (g *Guard) Log(dir string) {
	if g == nil {
		return
	}
	if dir, err := filepath.Abs(dir); err == nil {
		_, _ = g.say(message{Do: "log"}, dir)
	}
}

// say sends a message and waits for the answer. It returns the message's id.
func (g *Guard) say(m message, body any) (id int64, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost != nil {
		return 0, g.lost
	}
	if m.Do == "begin" {
		g.last++
		m.ID = g.last
	}
	if m.Body, err = json.Marshal(body); err != nil {
		return 0, err
	}
	line, err := json.Marshal(m)
	if err != nil {
		return 0, err
	}
	a, err := g.exchange(append(line, '\n'))
	switch {
	case err != nil:
		g.lost = fmt.Errorf("it is gone: %w", err)
		return 0, g.lost
	case a.Error != "":
		return 0, errors.New(a.Error)
	}
	return m.ID, nil
}

func (g *Guard) exchange(line []byte) (a answer, err error) {
	if _, err := g.to.Write(line); err != nil {
		return a, err
	}
	late := time.AfterFunc(answering, func() { _ = g.cmd.Process.Kill() })
	defer late.Stop()
	text, err := g.from.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// Close makes the guard undo the remaining duties. It waits only a moment for that: the guard goes on without its
// program.
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed, g.lost = true, errors.New("it was closed")
	_ = g.to.Close()
	exited := make(chan error, 1)
	go func() { exited <- g.cmd.Wait() }()
	select {
	case err := <-exited:
		if err != nil {
			return fmt.Errorf("the guard process could not undo everything: %w", err)
		}
		return nil
	case <-time.After(leaving):
		return fmt.Errorf("the guard process %d has not undone everything yet; it goes on for at most %v", g.cmd.Process.Pid, Patience)
	}
}
