package target

import (
	"context"
	"time"
)

// host starts servers: as children of this program, or in containers. A topology
// is built on either.
type host interface {
	// version is the redis-server's, as "7.0.15".
	version() string
	// describe says where servers of this host come from: "redis-server 7.0.15
	// found at /usr/bin/redis-server, started as a child".
	describe() string
	// ports reserves n ports that are free on 127.0.0.1, for servers of one
	// topology. A cluster's node also uses its port plus 10000.
	ports(ctx context.Context, n int, cluster bool) ([]int, error)
	// launch starts one server and waits until it, and nobody else, answers.
	launch(ctx context.Context, s settings) (machine, error)
	// close removes what the servers share, after all of them were stopped.
	close()
}

// settings are those of one server.
type settings struct {
	port int
	// options are further settings of redis.conf, name and value by turns.
	options []string
	// sentinel says that the server is one. It is started with a configuration
	// file, which it rewrites, that holds these lines.
	sentinel bool
	lines    []string
	// persist keeps an append-only file, so that a kill -9 loses nothing.
	persist bool
}

// machine is one server that can be broken and mended. Its methods are used by one
// goroutine at a time, except for exited and lastWords.
type machine interface {
	// addr is 127.0.0.1:port, the same for its whole life.
	addr() string
	// pid is the server's process on this machine; 0 if it has none here.
	pid() int
	// info is what the server answered to INFO when it was started.
	info() info
	// kill ends it as kill -9 does, and waits until it is gone.
	kill() error
	// start starts it again on its port, after kill, and waits until it answers
	// and has loaded its data. With empty, or if it is not to persist, it forgets
	// its data, but not who it is in a cluster or for other sentinels.
	start(ctx context.Context, empty bool) error
	// freeze stops it as SIGSTOP does; thaw lets it go on.
	freeze() error
	thaw() error
	// jump sets how far its wall clock is ahead of the real time, or behind it.
	jump(ahead time.Duration) error
	// exited is closed when the present process is gone.
	exited() <-chan struct{}
	lastWords() string
	// stop ends it for good, whatever state it is in, and removes its files.
	stop()
}
