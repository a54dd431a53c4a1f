package lockrules

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"oversell/lockimpl"
	"oversell/variant"
)

// pack has one goroutine that renews all locks of its client. It has one of several flaws, or none.
type pack struct {
	careless
	flaw string

	mu      sync.Mutex
	running bool
	held    []lockimpl.Lock
	leases  map[string]time.Duration // by token
	known   map[string]bool          // names
}

func (p *pack) Acquire(ctx context.Context, key string, o lockimpl.Options) (lockimpl.Lock, error) {
	l, err := p.careless.Acquire(ctx, key, o)
	if err != nil {
		return l, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flaw == "names" && p.known[key] {
		return l, nil // it is renewed
	}
	p.known[key] = true
	p.held, p.leases[l.Token] = append(p.held, l), o.TTL
	if !p.running {
		p.running = true
		p.env.Go(p.renew)
	}
	return l, nil
}

func (p *pack) renew(ctx context.Context) {
	for p.env.Clock.Sleep(ctx, 50*time.Millisecond) == nil {
		p.mu.Lock()
		held := slices.Clone(p.held)
		p.mu.Unlock()
		for _, l := range held {
			p.mu.Lock()
			lease := p.leases[l.Token]
			p.mu.Unlock()
			if lease == 0 {
				continue
			}
			if _, err := p.careless.Extend(ctx, l, lease); errors.Is(err, lockimpl.ErrLost) {
				if p.flaw == "stops" {
					return
				}
				p.forget(l)
			}
		}
	}
}

func (p *pack) forget(l lockimpl.Lock) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, l.Token)
	p.held = slices.DeleteFunc(p.held, func(h lockimpl.Lock) bool { return h.Token == l.Token })
}

func (p *pack) Release(ctx context.Context, l lockimpl.Lock) error {
	p.forget(l)
	p.mu.Lock()
	delete(p.known, l.Key)
	p.mu.Unlock()
	return p.careless.Release(ctx, l)
}

// TestLosses checks that a lock is caught whose renewals end when its client has lost a lock.
func TestLosses(t *testing.T) {
	t.Parallel()
	packs := func(flaw string) func(variant.Env) lockimpl.Locker {
		return func(e variant.Env) lockimpl.Locker {
			return &pack{careless: careless{e}, flaw: flaw, leases: map[string]time.Duration{}, known: map[string]bool{}}
		}
	}
	catches(t, Losses, []trial{
		{name: "one for all", lock: packs(""), renews: true},
		{name: "one for all stops", lock: packs("stops"), renews: true, caught: []int{0, 1, 2, 3, 4}},
		{name: "known by their names", lock: packs("names"), renews: true, caught: []int{2, 3, 4}},
	})
}
