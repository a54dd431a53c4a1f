package instance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
)

// Server is one Redis server of a target: one that we started, the emulation, or one that was running before.
type Server struct {
	Member
	// Login has the user, password, database number and TLS settings for the server; nil: none.
	Login *redis.Options
	// MaxClients is the server's limit of connections; 0 if unknown.
	MaxClients int
	// Others is how many connections of other clients there were when it was opened.
	Others  int
	Version string
	// Machine is nil unless we started the server and can break it.
	Machine Machine
	// Stop is nil unless we started it.
	Stop  func()
	Admin *redis.Client

	// doing serializes the actions on the machine. The last action can be read meanwhile.
	doing  sync.Mutex
	Killed atomic.Bool
	Frozen atomic.Bool
	Life   atomic.Pointer[Life]
}

// Life is a server's life from one start to the next.
type Life struct{ Ended atomic.Bool } // by us

// Up reports whether the server runs: no fault has killed or frozen it.
func (s *Server) Up() bool { return !s.Killed.Load() && !s.Frozen.Load() }

const (
	// adminPool: a pool whose dials failed that often checks only every second whether the server is back. The
	// administrative client polls dead servers.
	adminPool  = 4096
	adminDials = 16
)

// ConnectAdmin makes the client for administrative commands. It does not connect yet.
func (s *Server) ConnectAdmin() {
	opts := s.Options(ConnOptions{PoolSize: adminPool})
	opts.MaxConcurrentDials = adminDials
	s.Admin = redis.NewClient(opts)
}

// Options returns the options of a client of this server.
func (s *Server) Options(o ConnOptions) *redis.Options {
	opts := Options(s.Addr, o)
	if s.Login != nil {
		opts.Username, opts.Password = s.Login.Username, s.Login.Password
		opts.DB = s.Login.DB
		if s.Login.TLSConfig != nil {
			opts.TLSConfig = s.Login.TLSConfig.Clone()
		}
	}
	return opts
}

// TalkTimeout is how long a server may take to report its state or to follow an order. On a busy machine, a quarter of
// a second is sometimes not enough.
const TalkTimeout = time.Second

// Ask returns the reply to INFO. A server that still loads its data does not count as answering.
func (s *Server) Ask(ctx context.Context) (Info, error) {
	var in Info
	err := s.Visit(ctx, func(ctx context.Context, c *redis.Client) (err error) {
		in, err = askWho(ctx, c)
		return err
	})
	return in, err
}

// Visit talks to the server on a connection of its own, so that neither a pool's recorded failures nor a connection
// from before a restart interferes. All of it may take TalkTimeout.
func (s *Server) Visit(ctx context.Context, talk func(context.Context, *redis.Client) error) error {
	return s.VisitFor(ctx, TalkTimeout, talk)
}

// VisitFor is Visit with a limit other than TalkTimeout.
func (s *Server) VisitFor(ctx context.Context, limit time.Duration, talk func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := Dial(ctx, s.Endpoint())
	if err != nil {
		return err
	}
	return converse(ctx, conn, s.Login, talk)
}

// Endpoint returns the address of s and how to log in there.
func (s *Server) Endpoint() Endpoint {
	login := s.Login
	if login == nil {
		login = &redis.Options{}
	}
	return Endpoint{Addr: s.Addr, Login: login}
}

// Kill ends the server as kill -9 does. It fails with errclass.ErrUsage if the server was killed
// before. It is safe for concurrent use, as are Start, Freeze, Thaw and Jump.
func (s *Server) Kill() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if s.Killed.Load() {
		return errclass.Usagef("kill server %d on %s: it was killed before", s.Number, s.Addr)
	}
	life := s.Life.Load()
	life.Ended.Store(true) // before it dies: its death is expected from now on
	s.Killed.Store(true)
	if err := s.Machine.Kill(); err != nil {
		life.Ended.Store(false)
		s.Killed.Store(false)
		return errclass.Environmentf("kill server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.Frozen.Store(false)
	return nil
}

// Start starts a killed server on its port and waits until it answers; see Machine.Start for
// empty. It fails with errclass.ErrUsage if the server runs.
func (s *Server) Start(ctx context.Context, empty bool) error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if !s.Killed.Load() {
		return errclass.Usagef("start server %d on %s: it runs; only a killed one can be started again", s.Number, s.Addr)
	}
	if err := s.Machine.Start(ctx, empty); err != nil {
		return errclass.Environmentf("start server %d on %s again: %w", s.Number, s.Addr, err)
	}
	s.Life.Store(new(Life))
	s.Killed.Store(false)
	return nil
}

// Freeze stops the server as SIGSTOP does. It fails with errclass.ErrUsage if the server was
// killed or is frozen.
func (s *Server) Freeze() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	switch {
	case s.Killed.Load():
		return errclass.Usagef("freeze server %d on %s: it was killed", s.Number, s.Addr)
	case s.Frozen.Load():
		return errclass.Usagef("freeze server %d on %s: it is frozen already", s.Number, s.Addr)
	}
	if err := s.Machine.Freeze(); err != nil {
		return errclass.Environmentf("freeze server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.Frozen.Store(true)
	return nil
}

// Thaw lets a frozen server go on. It does nothing if the server is not frozen.
func (s *Server) Thaw() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if !s.Frozen.Load() {
		return nil // it runs, or was killed meanwhile
	}
	if err := s.Machine.Thaw(); err != nil {
		return errclass.Environmentf("thaw server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.Frozen.Store(false)
	return nil
}

// Jump sets how far the server's wall clock is ahead of the real time; negative: behind it.
func (s *Server) Jump(ahead time.Duration) error {
	s.doing.Lock()
	defer s.doing.Unlock()
	return s.Machine.Jump(ahead)
}

// end stops the server for good if it is ours.
func (s *Server) end() {
	if s.Admin != nil {
		_ = s.Admin.Close()
	}
	s.doing.Lock()
	defer s.doing.Unlock()
	switch {
	case s.Machine != nil:
		s.Machine.Stop()
	case s.Stop != nil:
		s.Stop()
	}
}
