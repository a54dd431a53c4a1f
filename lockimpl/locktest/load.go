package locktest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockload"
	"oversell/variant"
)

// troubled returns a load with every fault of clients.
func (r *run) troubled(lasts time.Duration) lockload.Plan {
	lease := r.able.lease
	if r.able.brief {
		lease = briefLease
	}
	return lockload.Trouble(lease, lasts)
}

// load runs a plan and returns the broken promises. It repeats the plan once if the clients made no progress because
// the machine or the servers were too busy; a second failure is not judged: the rules judge the same promise. It also repeats a
// plan in which clients were not served in the order of arrival; see foundTwice.
func (r *run) load(ctx context.Context, p lockload.Plan, name string) []error {
	broken, vain := r.loadOnce(ctx, p, name)
	if vain != nil {
		broken, vain = r.loadOnce(ctx, p, name+"-again")
	}
	if vain != nil {
		r.logf("the load %s was not judged, since the machine is too busy: %v", p.Name, vain)
	}
	broken, once := foundTwice(variant.FIFO, broken, func() []error {
		again, _ := r.loadOnce(ctx, p, name+"-twice")
		return again
	})
	if once != nil {
		r.logf("the load %s: found once, and not again when it was repeated: a client that a busy machine holds up may lose its place in the line: %v", p.Name, once)
	}
	return broken
}

// foundTwice returns what was found, without what breaks a promise only in the first of two tries. once is what was left out. try makes
// the second one, if the first broke the promise.
func foundTwice(p variant.Property, found []error, try func() []error) (kept []error, once error) {
	is := func(err error) bool {
		var b *breach
		return errors.As(err, &b) && b.Property == p
	}
	at := slices.IndexFunc(found, is)
	if at < 0 || slices.ContainsFunc(try(), is) {
		return found, nil
	}
	once = found[at]
	return slices.DeleteFunc(found, is), once
}

// loadOnce makes one attempt. vain says why the clients made no progress while not even the suite's own commands were
// answered in time.
func (r *run) loadOnce(ctx context.Context, p lockload.Plan, name string) (found []error, vain error) {
	b := &bench{ctx: ctx, run: r, name: name, ttl: p.Lease}
	defer b.close()
	p = p.On(name)
	judged := slices.DeleteFunc(slices.Clone(r.lock.Promises), func(of variant.Property) bool {
		return !r.promises(of, p.Faults...) || p.Troubled && (of == variant.Progress || of == variant.FIFO)
	})
	t := lockload.New(lockload.Config{
		Ctx: ctx, Lock: r.lock, Seed: r.seed, Promises: judged, Extends: r.able.extends, Tells: r.able.tells, Reenters: r.able.reenters,
		Client: func() (*lockclient.Client, error) {
			c, err := b.newClient()
			if err != nil {
				return nil, err
			}
			return c.Client, nil
		},
	}, p)
	began, healthy := time.Now(), r.lasted()
	err := b.checked(func(b *bench) error { return b.underLoad(t, p) })
	switch {
	case ctx.Err() != nil:
		r.logf("the load %s was not judged, since other promises were found broken", p.Name)
		return nil, nil
	case err != nil && r.lasted()-healthy < time.Since(began)*3/4:
		return nil, err
	case err != nil:
		return []error{err}, nil
	}
	for _, f := range t.Judge(patience) {
		found = append(found, broken(f.Property, "%s", f.Text))
	}
	return found, nil
}

// underLoad ends when all clients have, or when their calls do not return.
func (b *bench) underLoad(t *lockload.Traffic, p lockload.Plan) error {
	done := make(chan struct{})
	go func() { defer close(done); t.Run() }()
	limit := p.Lasts + 2*p.Lease + patience
	select {
	case <-done:
	case <-b.ctx.Done():
		return nil
	case <-time.After(limit):
		return broken(variant.Progress, "a load of %v did not end in %v: %s", p.Lasts, limit, cmp.Or(b.stuck(), "no call is under way"))
	}
	if n, last := t.Granted(); n == 0 {
		return broken(variant.Progress, "nobody obtained the lock, the last error was: %v", last)
	}
	b.mu.Lock()
	for _, c := range b.made {
		c.Die()
	}
	b.mu.Unlock()
	if !b.run.promises(variant.Progress, p.Faults...) {
		return nil
	}
	for _, name := range p.Locks {
		if err := b.free(name, 2*p.Lease, "after the load"); err != nil {
			return err
		}
	}
	return nil
}
