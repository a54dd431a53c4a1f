package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"

	"github.com/redis/go-redis/v9"

	"oversell/internal/errclass"
)

// concurrentDials is how many connections Warm opens at a time: more would overflow a server's accept queue.
const concurrentDials = 64

// filesInReserve is how many files a program has open besides its connections.
const filesInReserve = 64

// Warm opens connections of each client, so that a measured load includes no dialling: as many as its pool holds, or
// perClient if that is fewer (0 means all). Two hundred clients with a pool of ten thus get 2,000. It opens a bounded
// number at a time and returns when all of them have answered. A client of a cluster has a pool for each master. An
// error is of class [ErrEnvironment], or [ErrUsage] for clients that have no pool of their own, and leaves the clients
// usable. The clients must not be in use meanwhile.
func Warm(ctx context.Context, perClient int, clients ...redis.UniversalClient) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, concurrentDials)
	var wg sync.WaitGroup
	for _, c := range clients {
		warm := func(ctx context.Context, client *redis.Client) error { return warmOne(ctx, client, perClient, slots) }
		switch c := c.(type) {
		case *redis.Client:
			wg.Go(func() { cancelOn(warm(ctx, c), cancel) })
		case *redis.ClusterClient:
			wg.Go(func() { cancelOn(explainCluster(c.ForEachMaster(ctx, warm)), cancel) })
		default:
			cancel(errclass.Usagef("open connections in advance: a %T has no pool that is known here", c))
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

func cancelOn(err error, cancel context.CancelCauseFunc) {
	if err != nil {
		cancel(err)
	}
}

// explainCluster explains errors that occur before those of warmOne.
func explainCluster(err error) error {
	if err == nil || errors.Is(err, ErrEnvironment) || errors.Is(err, context.Canceled) {
		return err
	}
	return errclass.Environmentf("open connections to the cluster: find out who has which keys: %w", err)
}

// warmOne takes n connections out of the pool, which makes the pool open them,
// and gives them back together: if one came back early, the pool would hand out
// that one again.
func warmOne(ctx context.Context, client *redis.Client, n int, slots chan struct{}) error {
	if size := client.Options().PoolSize; n <= 0 || n > size {
		n = size
	}
	conns, errs := make([]*redis.Conn, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			errs[i] = context.Cause(ctx)
			continue
		}
		conns[i] = client.Conn()
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = conns[i].Ping(ctx).Err()
		})
	}
	wg.Wait()
	for _, c := range conns {
		if c != nil {
			_ = c.Close() // back to the pool
		}
	}
	for _, err := range errs {
		if err != nil {
			return explainWarm(client.Options().Addr, err)
		}
	}
	return nil
}

// failoverAddr is the driver's name for the address of a client that asks sentinels for it.
const failoverAddr = "FailoverClient"

func explainWarm(addr string, err error) error {
	if addr == failoverAddr {
		addr = "the master that the sentinels name"
	}
	switch {
	case errors.Is(err, ErrEnvironment), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.EMFILE):
		return errclass.Environmentf("open connections to %s: this process may open only %d files; raise the limit with ulimit -n", addr, fileLimit())
	case strings.Contains(err.Error(), "max number of clients reached"):
		return errclass.Environmentf("open connections to %s: the server accepts no more clients (its maxclients is reached)", addr)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errclass.Environmentf("open connections to %s: the server closes them at once; it may accept no more clients (its maxclients)", addr)
	}
	return errclass.Environmentf("open connections to %s: %w", addr, err)
}

// Fits returns an error of class [ErrEnvironment] if perNode connections to each master are more than this process may
// open or than a server accepts. Call it before [Warm]: it names the limit and the need, while the operating system
// only refuses.
func (t *Target) Fits(perNode int) error {
	each, all := t.shape.Connections(perNode)
	need := all
	if t.Kind == Embedded {
		need *= 2 // both ends are ours
	}
	if t.group.Routed() != nil {
		need *= 3 // and both ends of a proxy
	}
	need += filesInReserve
	if limit := fileLimit(); limit > 0 && need > limit {
		return errclass.Environmentf("%d connections need about %d open files, but this process may have only %d; raise the limit with ulimit -n %d, or share connections with --pool", all, need, limit, need)
	}
	for _, s := range t.group.Servers {
		if s.MaxClients > 0 && each > s.MaxClients-s.Others {
			return errclass.Environmentf("%d connections were asked for, but the server on %s accepts only %d (its maxclients), of which others have %d; raise it with CONFIG SET maxclients, or share connections with --pool",
				each, s.Addr, s.MaxClients, s.Others)
		}
	}
	return nil
}
