package faults

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"oversell/wire"
)

// ProxyOptions say where a proxy stands and what it does. Such a proxy works alone, for clients in any language: it
// sees connections and commands, but does not know a client's operation.
type ProxyOptions struct {
	// Listen is where clients connect to, host:port, and To where the server is.
	Listen, To string
	// Faults are those that [ForProxy] allows.
	Faults []Fault
	// Seed fixes every random choice.
	Seed uint64
	// Injected is called with every injection. Calls are sequential.
	Injected func(ProxyInjection)
}

// ProxyInjection is one time that a fault fired in a proxy.
type ProxyInjection struct {
	Fault Fault
	// At is when, since the proxy began to listen.
	At time.Duration
	// Conn is the number of the connection, and Command and Key those of the command; zero for a cut, which hits all
	// connections.
	Conn         int64
	Command, Key string
}

// ForProxy returns nil if a proxy can carry out a fault by itself.
func ForProxy(f Fault) error {
	switch w := f.Where; {
	case f.Kind.Level != OnWire:
		return fmt.Errorf("fault %q: it hits a %s, and a proxy injects faults on the wire: %s", f.Text, f.Kind.Level, kindsOn(OnWire))
	case w.State != AnyState:
		return fmt.Errorf("fault %q: a proxy does not know who is a %s: leave that out", f.Text, w.State)
	case w.During != "":
		return fmt.Errorf("fault %q: a proxy does not know what a client is about: leave out in %s", f.Text, w.During)
	case w.Client != 0:
		return fmt.Errorf("fault %q: a proxy does not know who client %d is: leave that out", f.Text, w.Client)
	case w.Node > 1:
		return fmt.Errorf("fault %q: a proxy has one server: leave out node %d", f.Text, w.Node)
	}
	return nil
}

// kindsOn names the kinds of a level.
func kindsOn(l Level) string {
	var names []string
	for _, k := range Kinds {
		if k.Level == l {
			names = append(names, k.Name)
		}
	}
	return joined(names)
}

func joined(names []string) string {
	last := len(names) - 1
	s := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == last:
			s += " and "
		default:
			s += ", "
		}
		s += n
	}
	return s
}

// Proxy is a proxy that carries out faults by itself. Close ends it.
type Proxy struct {
	o       ProxyOptions
	wire    *wire.Proxy
	began   time.Time
	rules   []*rule
	stop    chan struct{} // closed by Close
	closed  sync.Once
	running sync.WaitGroup

	mu      sync.Mutex
	pending []*pending
	cuts    []*rule // in force
}

// rule is a fault with its trigger and its count.
type rule struct {
	fault   Fault
	trigger *trigger
	fired   atomic.Int64
}

// pending counts actions that were ordered and have not yet taken effect.
type pending struct {
	rule      *rule
	conn      int64
	name, key string
	action    wire.Action
}

// ListenProxy starts a proxy. ctx bounds the start only.
func ListenProxy(ctx context.Context, o ProxyOptions) (*Proxy, error) {
	p := &Proxy{o: o, began: time.Now(), stop: make(chan struct{})}
	for i, f := range o.Faults {
		if err := ForProxy(f); err != nil {
			return nil, err
		}
		p.rules = append(p.rules, &rule{fault: f, trigger: newTrigger(f.When, o.Seed+uint64(i)*0x9e3779b97f4a7c15)})
	}
	var err error
	if p.wire, err = wire.Listen(ctx, wire.Options{Listen: o.Listen, To: o.To, Decide: p.judge, Fired: p.tookEffect}); err != nil {
		return nil, err
	}
	for _, r := range p.rules {
		if r.fault.Kind.Cuts {
			p.running.Go(func() { p.follow(r) })
		}
	}
	return p, nil
}

// Addr returns where the proxy listens.
func (p *Proxy) Addr() string { return p.wire.Addr() }

// Close ends the proxy and its connections. Further calls do nothing.
func (p *Proxy) Close() error {
	p.closed.Do(func() { close(p.stop) })
	p.running.Wait()
	return p.wire.Close()
}

// Counts returns how often each fault fired, in the given order.
func (p *Proxy) Counts() []Count {
	counts := make([]Count, len(p.rules))
	for i, r := range p.rules {
		counts[i] = Count{Fault: r.fault, Fired: r.fired.Load()}
	}
	return counts
}

func (p *Proxy) now() time.Duration { return time.Since(p.began) }

// judge returns the action for a command. If several faults match, the first one
// acts.
func (p *Proxy) judge(c wire.Command) wire.Action {
	at := point{names: namesOnWire(c), key: c.Key, node: 1}
	for _, r := range p.rules {
		if r.fault.Kind.Cuts {
			continue
		}
		at.moment = r.fault.Where.Moment // the rule handles it
		if !r.fault.Where.matches(at) || !r.trigger.fires(p.now()) {
			continue
		}
		action := r.fault.Kind.Rule(r.fault)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pending = append(p.pending, &pending{r, c.Conn, c.Name, c.Key, action})
		return action
	}
	return wire.Action{}
}

// tookEffect counts an action that judge ordered, once it has happened. An action
// that never happens, because the server or the client disconnected first, is not
// an injection.
func (p *Proxy) tookEffect(c wire.Command, a wire.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.pending, func(o *pending) bool {
		return o.conn == c.Conn && o.name == c.Name && o.key == c.Key && o.action == a
	})
	if i < 0 {
		return
	}
	r := p.pending[i].rule
	p.pending = slices.Delete(p.pending, i, i+1)
	p.injected(r, ProxyInjection{Fault: r.fault, At: p.now(), Conn: c.Conn, Command: c.Name, Key: c.Key})
}

// injected counts an injection and reports it. The caller holds p.mu.
func (p *Proxy) injected(r *rule, s ProxyInjection) {
	r.fired.Add(1)
	if p.o.Injected != nil {
		p.o.Injected(s)
	}
}

// follow cuts the wire at the times of a fault.
func (p *Proxy) follow(r *rule) {
	w := r.fault.When
	for n := 0; w.Times == 0 || int64(n) < w.Times; n++ {
		at, more := w.schedule(n)
		if !more || !p.sleep(at-p.now()) {
			return
		}
		p.cut(r)
		if r.fault.When.ForGood || !p.sleep(r.fault.When.For) {
			return
		}
		p.restore(r)
	}
}

func (p *Proxy) cut(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wire.Cut(r.fault.Where.Direction)
	p.cuts = append(p.cuts, r)
	p.injected(r, ProxyInjection{Fault: r.fault, At: p.now()})
}

// restore ends one cut, and leaves the others in force.
func (p *Proxy) restore(r *rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wire.Restore()
	p.cuts = slices.DeleteFunc(p.cuts, func(o *rule) bool { return o == r })
	for _, other := range p.cuts {
		p.wire.Cut(other.fault.Where.Direction)
	}
}

// sleep returns false when the proxy was closed before the time was over.
func (p *Proxy) sleep(d time.Duration) bool {
	t := time.NewTimer(max(0, d))
	defer t.Stop()
	select {
	case <-p.stop:
		return false
	case <-t.C:
		return true
	}
}
