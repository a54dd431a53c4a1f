package campaign

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oversell/clock"
	"oversell/internal/mark"
	"oversell/server"
	"oversell/system"
	"oversell/variant"
)

// ReadSystem reads the file of a system to be checked.
func ReadSystem(path string, spec server.Spec) (*system.System, error) {
	s, err := system.Read(path)
	if err != nil {
		return nil, err
	}
	if !s.Local() && !spec.AllowRemote {
		return nil, fmt.Errorf("%s: %w", path, errFar)
	}
	return s, nil
}

// CheckSystem tries each operation of a system on a server. When ctx ends, it returns the findings so far.
func CheckSystem(ctx context.Context, s *system.System, spec server.Spec) (findings []system.Finding, err error) {
	t, err := server.Open(ctx, spec)
	if err != nil {
		return nil, Unstopped(ctx, err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	prefix := mark.New()
	defer func() {
		_, swept := t.Sweep(context.WithoutCancel(ctx), prefix)
		err = errors.Join(err, swept)
	}()
	if err := lend(ctx, t, func(env func() variant.Env) error { return s.Start(ctx, env()) }); err != nil {
		return nil, Unstopped(ctx, err)
	}
	err = lend(ctx, t, func(env func() variant.Env) error {
		findings = s.Check(ctx, env, prefix)
		return nil
	})
	return findings, err
}

// lend calls f with clients of a target, which are closed when f returns.
func lend(ctx context.Context, t *server.Target, f func(env func() variant.Env) error) (err error) {
	clients := t.Clients(server.ConnOptions{PoolSize: 1, Timeout: 5 * time.Second})
	defer func() {
		for _, c := range clients {
			err = errors.Join(err, c.Close())
		}
	}()
	var beside sync.WaitGroup
	defer beside.Wait()
	lasting, end := context.WithCancel(ctx)
	defer end()
	return f(func() variant.Env {
		return variant.Env{Redis: clients, Addr: t.Addresses(), Clock: clock.Real{}, Go: func(f func(context.Context)) func(context.Context) error {
			beside.Go(func() { f(lasting) })
			return func(context.Context) error { return nil }
		}}
	})
}
