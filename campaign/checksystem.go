package campaign

import (
	"context"
	"errors"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/mark"
	"oversell/server"
	"oversell/system"
	"oversell/variant"
)

// CheckSystem reads the file of a system, and tries each of its operations on a server.
func CheckSystem(ctx context.Context, path string, spec server.Spec) (findings []system.Finding, err error) {
	s, err := system.Read(path)
	if err != nil {
		return nil, err
	}
	if err := (&Options{Target: spec}).takes(s); err != nil && !spec.AllowRemote && !s.Local() {
		return nil, err
	}
	t, err := server.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	prefix := mark.New()
	clients := t.Clients(server.ConnOptions{PoolSize: 1, Timeout: 5 * time.Second})
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
		_, swept := t.Sweep(context.WithoutCancel(ctx), prefix)
		err = errors.Join(err, swept)
	}()
	var beside sync.WaitGroup
	defer beside.Wait()
	lasting, end := context.WithCancel(ctx)
	defer end()
	findings = s.Check(ctx, func() variant.Env {
		return variant.Env{Redis: clients, Addr: t.Addresses(), Clock: clock.Real{}, Go: func(f func(context.Context)) func(context.Context) error {
			beside.Go(func() { f(lasting) })
			return func(context.Context) error { return nil }
		}}
	}, prefix)
	return findings, nil
}
