package instance

import (
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ConnOptions are the settings that a run may choose for its connections. The zero value is one connection and 5
// seconds.
type ConnOptions struct {
	// PoolSize is the largest number of connections of one client; 0 means 1.
	PoolSize int
	// Timeout bounds each write of a command and each wait for its reply; 0
	// means 5 seconds. A deadline of the context cuts it shorter.
	Timeout time.Duration
	// Dialed, unless nil, is called with every new connection of the client, so
	// that the caller can tell which connections belong to which client. That
	// includes the connections on which a client asks sentinels or nodes of a
	// cluster where to go. It may be called by several goroutines at once.
	Dialed func(net.Conn)
}

const (
	defaultTimeout = 5 * time.Second
	// waitForConnection is how long a command may wait for a connection of its pool: in practice as long as its context
	// allows.
	waitForConnection = time.Hour
	bufferSize        = 4 << 10
)

// Options returns the settings with which every client of this program talks to a
// server. It is the only place that sets them, and returns a fresh copy.
func Options(addr string, o ConnOptions) *redis.Options {
	if o.PoolSize <= 0 {
		o.PoolSize = 1
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	return &redis.Options{
		Addr:     addr,
		PoolSize: o.PoolSize,

		// The driver would send a command again after an error on the wire (3 times by default). A command that had
		// reached the server would be applied twice, and the history would not show it.
		MaxRetries: -1,
		// The same for dialling, 5 times with pauses of 100 ms by default. A pool whose dials failed PoolSize times in
		// a row returns that error at once, and checks only every second whether the server is back.
		DialerRetries: 1,
		DialTimeout:   5 * time.Second,
		// Without it, the deadline of a context does not cut short the wait for a
		// reply. A mere cancellation never does: only its deadline counts.
		ContextTimeoutEnabled: true,
		ReadTimeout:           o.Timeout,
		WriteTimeout:          o.Timeout,
		// Waiting for a shared connection is queueing and belongs to the latency.
		// By default it fails after ReadTimeout plus a second.
		PoolTimeout: waitForConnection,
		// Connections that a run opened before it began are kept to its end; by
		// default the driver drops those idle for half an hour.
		ConnMaxIdleTime: -1,
		// By default pipelines and transactions have a second pool of up to 10
		// connections with 256 KiB of buffers each, which Warm cannot open.
		PipelinePoolSize: -1,
		// 32 KiB each by default: 128 MB for 2,000 connections.
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,
		// RESP2 has all that locks need and avoids RESP3's check for push messages before each reply.
		Protocol: 2,
		// CLIENT SETINFO costs a round trip per connection, and the emulation
		// does not know it.
		DisableIdentity: true,
		// For managed services that move; needs RESP3 and one more round trip.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
