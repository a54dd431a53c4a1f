// Package system makes variants of systems that are not written in Go or run elsewhere: a lock, a sale, a queue or
// an id generator behind a process that speaks JSON lines, or a sale behind an HTTP service. A file describes the
// system (see [Read]); docs/systems.md explains the file and the protocol.
//
// A system is a variant like any other: its operations are recorded and judged, and its file lists its promises.
// Only answers that the protocol declares are definite. A process that ends, prints something else or answers twice
// is stopped, and its unanswered requests have an unknown outcome; another process serves later requests.
package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"oversell/idimpl"
	"oversell/internal/remote"
	"oversell/lockimpl"
	"oversell/queueimpl"
	"oversell/stockimpl"
	"oversell/variant"
)

// System is a system described by a file. It is safe for concurrent use.
type System struct {
	// Path is the path of the system's file.
	Path string
	// Name is its name in reports.
	Name string
	// Object is the kind of object that the system is.
	Object variant.Object
	// Summary describes in one line how it works.
	Summary string
	// Promises are the promises that it is judged by.
	Promises []variant.Property
	// Fences means that it is a lock that grants fencing tokens.
	Fences bool
	// Acks means that it is a queue that delivers a task again unless it is acknowledged.
	Acks bool

	command   []string
	clients   int           // per process
	limit     time.Duration // for one answer, beyond the wait that the call allows
	start     time.Duration // until the program is ready
	env       map[string]string
	stateless bool // a process keeps no state between requests
	monotonic bool // a search also controls monotonic clocks
	service   *service
	http      *http.Client // for a service
	dir       string       // directory of the file; processes run there
	source    string       // the file's name

	made  atomic.Int64 // clients created
	blind atomic.Bool  // in a search, a lease counted from a time at which the clock was not read

	mu        sync.Mutex
	stage     *remote.Stage // of a search
	processes []*process
	begun     map[*process]bool // started and perhaps still running
	failures  int
	served    int                // processes started in this run
	failed    error              // why no more processes are started
	asked     map[string]answers // by operation
}

// Lock returns the variant of a system that is a lock.
func (s *System) Lock() lockimpl.Variant {
	return lockimpl.Variant{Name: s.Name, Source: s.source, Summary: s.Summary, Promises: s.Promises, Needs: variant.Needs{AllMasters: true}, Fences: s.Fences,
		New: func(env variant.Env) lockimpl.Locker { return &lock{s.client(env)} }}
}

// Sale returns the variant of a system that is a sale.
func (s *System) Sale() stockimpl.Variant {
	return stockimpl.Variant{Name: s.Name, Source: s.source, Summary: s.Summary, Promises: s.Promises, Needs: variant.Needs{AllMasters: true},
		New: func(env variant.Env, product string) stockimpl.Sale { return &sale{s.client(env), product} }}
}

// Queue returns the variant of a system that is a queue.
func (s *System) Queue() queueimpl.Variant {
	return queueimpl.Variant{Name: s.Name, Source: s.source, Summary: s.Summary, Promises: s.Promises, Needs: variant.Needs{AllMasters: true}, AtLeastOnce: s.Acks,
		New: func(env variant.Env, _ queueimpl.Options) queueimpl.Queue {
			if s.Acks {
				return &ackedQueue{queue{s.client(env)}}
			}
			return &queue{s.client(env)}
		}}
}

// IDs returns the variant of a system that generates numbers.
func (s *System) IDs() idimpl.Variant {
	return idimpl.Variant{Name: s.Name, Source: s.source, Summary: s.Summary, Promises: s.Promises, Needs: variant.Needs{AllMasters: true},
		New: func(env variant.Env, counter string) idimpl.Generator { return &generator{s.client(env), counter} }}
}

// errAnswer is the error for an answer that is not part of the protocol.
var errAnswer = errors.New("the answer is not part of the protocol")

// lacking matches an answer that the program lacks an operation, so that nothing was done.
var lacking = regexp.MustCompile(`(?i)\bnot (implemented|supported)\b`)

// lackError is the error for an operation that a program lacks.
type lackError string

func (e lackError) Error() string        { return string(e) }
func (e lackError) Is(target error) bool { return target == errors.ErrUnsupported }

// mostFailures is how many processes of a run may fail before no more are started.
const mostFailures = 20

// client connects one client to the system. It is not safe for concurrent use.
type client struct {
	way    caller
	system *System
	number int64 // among the system's clients, from 1; in a search it has 16 digits
	env    variant.Env
}

// caller is one client's process or service.
type caller interface {
	// call sends a request and returns the answer, or an error that leaves the outcome unknown.
	call(ctx context.Context, r request) (answer, error)
	// gone reports whether it no longer serves clients, so that the client needs another one.
	gone() bool
}

func (s *System) client(env variant.Env) *client {
	if env.Step != nil {
		return &client{system: s, number: env.Step.Client(), env: env, way: s.step(env)}
	}
	return &client{system: s, number: s.made.Add(1), env: env}
}

// Start starts the system for a client and ends it again. The error explains why the system does not serve clients,
// followed by the last output of a program; it joins one error per line.
func (s *System) Start(ctx context.Context, env variant.Env) error {
	_, err := s.attach(ctx, env)
	e := (*endError)(nil)
	if err == nil || ctx.Err() != nil || !errors.As(err, &e) || len(e.printed) < 2 {
		return err
	}
	parts := []error{fmt.Errorf("start %s: it ended%s; its last output is", s.Name, e.how)}
	for _, line := range e.printed {
		parts = append(parts, errors.New(line))
	}
	return errors.Join(parts...)
}

// call sends a request to the system. wait is how long the operation itself may take. After the process has failed,
// the next call is not sent; its outcome is unknown, like that of unanswered calls, so that the history shows the
// failure. Later calls use another process.
func (c *client) call(ctx context.Context, r request, wait time.Duration) (answer, error) {
	if c.way == nil {
		way, err := c.system.attach(ctx, c.env)
		if err != nil {
			return answer{}, err
		}
		c.way = way
	}
	if c.env.Step == nil {
		limited, cancel := context.WithTimeoutCause(ctx, wait+c.system.limit, fmt.Errorf("no answer to %s within %v", r.Op, wait+c.system.limit))
		defer cancel()
		ctx = limited
	}
	r.Client = c.number
	a, err := c.way.call(ctx, r)
	if err != nil && c.way.gone() {
		c.way = nil
	}
	switch {
	case err != nil || a.Unknown == "":
	case lacking.MatchString(a.Unknown):
		err = lackError(fmt.Sprintf("%s: %s", c.system.Name, a.Unknown))
	default:
		err = fmt.Errorf("%s: %s", c.system.Name, a.Unknown)
	}
	return a, err
}
