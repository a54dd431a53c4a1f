package instance

import (
	"context"
	"time"
)

// Host starts servers: as children of this program, or in containers. A topology
// is built on either.
type Host interface {
	// Version is the redis-server's, as "7.0.15".
	Version() string
	// Describe says where servers of this host come from: "redis-server 7.0.15
	// found at /usr/bin/redis-server, started as a child".
	Describe() string
	// Ports reserves n ports that are free on 127.0.0.1, for servers of one
	// topology. A cluster's node also uses its port plus 10000.
	Ports(ctx context.Context, n int, cluster bool) ([]int, error)
	// Launch starts one server and waits until that server, and not another
	// process on its port, answers.
	Launch(ctx context.Context, s Settings) (Machine, error)
	// Close removes what the servers share, after all of them were stopped.
	Close()
}

// Settings are the settings of one server.
type Settings struct {
	Port int
	// Options are further settings of redis.conf, alternating names and values.
	Options []string
	// Sentinel makes the server a sentinel. Its configuration file, which it rewrites, begins with Lines.
	Sentinel bool
	Lines    []string
	// Persist keeps an append-only file, so that a kill -9 loses nothing.
	Persist bool
}

// Machine is one server that can be broken and healed. Its methods are used by one goroutine at a time, except for
// Exited and LastWords.
type Machine interface {
	// Addr is 127.0.0.1:port, the same for its whole life.
	Addr() string
	// PID is the server's process on this machine; 0 if it has none here.
	PID() int
	// Info returns the server's reply to INFO when it was started.
	Info() Info
	// Kill ends it as kill -9 does, and waits until it is gone.
	Kill() error
	// Start starts it again on its port, after Kill, and waits until it answers and has loaded its data. With empty, or
	// without persistence, it forgets its data, but not its identity in a cluster or for other sentinels.
	Start(ctx context.Context, empty bool) error
	// Freeze stops it as SIGSTOP does; Thaw lets it go on.
	Freeze() error
	Thaw() error
	// Jump sets how far its wall clock is ahead of the real time, or behind it.
	Jump(ahead time.Duration) error
	// Exited returns a channel that is closed when the present process is gone.
	Exited() <-chan struct{}
	LastWords() string
	// Stop ends it for good, in any state, and removes its files.
	Stop()
}
