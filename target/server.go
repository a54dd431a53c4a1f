package target

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is one server of a target: a machine of ours, an emulation, or somebody
// else's.
type server struct {
	Server
	// login holds credentials, database and TLS; nil when there are none.
	login *redis.Options
	// maxClients is the server's limit of connections; 0 if unknown.
	maxClients int
	// others is how many connections of others there were when it was opened.
	others  int
	version string
	// machine is nil unless we started the server and can break it.
	machine machine
	// stop is nil unless we started it.
	stop  func()
	admin *redis.Client

	// doing: one thing at a time is done to the machine. What was done to it last
	// can be read meanwhile.
	doing  sync.Mutex
	killed atomic.Bool
	frozen atomic.Bool
	life   atomic.Pointer[life]
}

// life is that of a server from a start to the next.
type life struct{ ended atomic.Bool } // by us

// up tells whether the server is neither killed nor frozen by us.
func (s *server) up() bool { return !s.killed.Load() && !s.frozen.Load() }

const (
	// adminPool: a pool whose dials failed that often looks only every second
	// whether the server is back. An administrator polls a dead server.
	adminPool  = 4096
	adminDials = 16
)

// connectAdmin makes the client for administrative commands. It does not connect yet.
func (s *server) connectAdmin() {
	opts := s.options(ConnOptions{PoolSize: adminPool})
	opts.MaxConcurrentDials = adminDials
	s.admin = redis.NewClient(opts)
}

// options are those of a client of this very server.
func (s *server) options(o ConnOptions) *redis.Options {
	opts := options(s.Addr, o)
	if s.login != nil {
		opts.Username, opts.Password = s.login.Username, s.login.Password
		opts.DB = s.login.DB
		if s.login.TLSConfig != nil {
			opts.TLSConfig = s.login.TLSConfig.Clone()
		}
	}
	return opts
}

// talkTimeout is how long a server may take to say how it is or to do as it is
// told. On a busy machine, a quarter of a second is sometimes not enough.
const talkTimeout = time.Second

// ask returns what INFO says. A server that still loads its data does not count
// as answering.
func (s *server) ask(ctx context.Context) (info, error) {
	var in info
	err := s.visit(ctx, func(ctx context.Context, c *redis.Client) (err error) {
		in, err = askWho(ctx, c)
		return err
	})
	return in, err
}

// visit talks to the server on a connection of its own, so that neither a pool's
// memory of failures nor a connection of a former life of the server gets in
// between. All of it may take talkTimeout.
func (s *server) visit(ctx context.Context, talk func(context.Context, *redis.Client) error) error {
	return s.visitFor(ctx, talkTimeout, talk)
}

func (s *server) visitFor(ctx context.Context, limit time.Duration, talk func(context.Context, *redis.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := dial(ctx, s.endpoint())
	if err != nil {
		return err
	}
	return converse(ctx, conn, s.login, talk)
}

func (s *server) endpoint() endpoint {
	login := s.login
	if login == nil {
		login = &redis.Options{}
	}
	return endpoint{addr: s.Addr, login: login}
}

func (s *server) kill() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if s.killed.Load() {
		return usagef("kill server %d on %s: it was killed before", s.Number, s.Addr)
	}
	life := s.life.Load()
	life.ended.Store(true) // before it dies: its death is expected from now on
	s.killed.Store(true)
	if err := s.machine.kill(); err != nil {
		life.ended.Store(false)
		s.killed.Store(false)
		return environmentf("kill server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.frozen.Store(false)
	return nil
}

func (s *server) start(ctx context.Context, empty bool) error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if !s.killed.Load() {
		return usagef("start server %d on %s: it runs; only a killed one can be started again", s.Number, s.Addr)
	}
	if err := s.machine.start(ctx, empty); err != nil {
		return environmentf("start server %d on %s again: %w", s.Number, s.Addr, err)
	}
	s.life.Store(new(life))
	s.killed.Store(false)
	return nil
}

func (s *server) freeze() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	switch {
	case s.killed.Load():
		return usagef("freeze server %d on %s: it was killed", s.Number, s.Addr)
	case s.frozen.Load():
		return usagef("freeze server %d on %s: it is frozen already", s.Number, s.Addr)
	}
	if err := s.machine.freeze(); err != nil {
		return environmentf("freeze server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.frozen.Store(true)
	return nil
}

func (s *server) thaw() error {
	s.doing.Lock()
	defer s.doing.Unlock()
	if !s.frozen.Load() {
		return nil // it runs, or was killed meanwhile
	}
	if err := s.machine.thaw(); err != nil {
		return environmentf("thaw server %d on %s: %w", s.Number, s.Addr, err)
	}
	s.frozen.Store(false)
	return nil
}

func (s *server) jump(ahead time.Duration) error {
	s.doing.Lock()
	defer s.doing.Unlock()
	return s.machine.jump(ahead)
}

// end stops what is ours for good.
func (s *server) end() {
	if s.admin != nil {
		_ = s.admin.Close()
	}
	s.doing.Lock()
	defer s.doing.Unlock()
	switch {
	case s.machine != nil:
		s.machine.stop()
	case s.stop != nil:
		s.stop()
	}
}
