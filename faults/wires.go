package faults

import (
	"context"
	"errors"
	"slices"
	"sync"

	"oversell/server"
	"oversell/wire"
)

// wires are the proxies before a target's servers.
type wires struct {
	proxies map[int]*wire.Proxy // by number of the server

	mu      sync.Mutex
	cuts    []*Fault                 // in force
	pending map[connection][]ordered // ordered, and not yet in effect
}

// ordered is a fault's action on a command.
type ordered struct {
	by        *armed
	name, key string
	action    wire.Action
	// client is the client that sent the command, from 1, or 0 if it is unknown, and state what it was doing then. The
	// action may take effect much later.
	client int
	state  State
}

// connection is a connection of a proxy.
type connection struct {
	node int
	conn int64
}

// interpose puts a proxy before every server, if a fault of the wire wants it.
func (in *Injector) interpose(ctx context.Context) error {
	cuts := slices.ContainsFunc(in.timed, func(s *armed) bool { return s.fault.Kind.Cuts })
	if len(in.onWire) == 0 && !cuts {
		return nil
	}
	in.proxies, in.pending = map[int]*wire.Proxy{}, map[connection][]ordered{}
	via := map[string]string{}
	for _, s := range in.o.Target.Servers() {
		if s.Role == server.Sentinel {
			continue
		}
		p, err := wire.Listen(ctx, wire.Options{To: s.Addr,
			Decide: func(c wire.Command) wire.Action { return in.judge(s.Number, c) },
			Fired:  func(c wire.Command, a wire.Action) { in.tookEffect(s.Number, c, a) },
		})
		if err != nil {
			return err
		}
		in.proxies[s.Number] = p
		via[s.Addr] = p.Addr()
	}
	in.o.Target.Route(func(addr string) string {
		if proxy, known := via[addr]; known {
			return proxy
		}
		return addr
	})
	return nil
}

// cut stops the traffic between the clients and one server or all of them. The injection has no effect if nothing is
// sent before it is healed.
func (in *Injector) cut(f Fault, on Site) (at string, heal func(context.Context) error, err error) {
	at = "every node"
	if f.Where.Node != 0 {
		at = "node " + itoa(f.Where.Node)
	}
	in.wires.mu.Lock()
	defer in.wires.mu.Unlock()
	mine := &f
	before := in.arrived(f)
	in.cuts = append(in.cuts, mine)
	in.sever()
	return at, func(context.Context) error {
		in.wires.mu.Lock()
		defer in.wires.mu.Unlock()
		if held := in.arrived(f) - before; held > 0 {
			on.Brought("bytes held up", held)
		} else {
			on.Vain("nothing was sent that way meanwhile")
		}
		in.cuts = slices.DeleteFunc(in.cuts, func(c *Fault) bool { return c == mine })
		in.sever()
		return nil
	}, nil
}

// arrived returns how many bytes the proxies have received that a cut would hold.
func (in *Injector) arrived(f Fault) (bytes int64) {
	for number, p := range in.proxies {
		if f.Where.Node != 0 && f.Where.Node != number {
			continue
		}
		s := p.Stats()
		if f.Where.Direction != wire.Replies {
			bytes += s.RequestBytes
		}
		if f.Where.Direction != wire.Requests {
			bytes += s.ReplyBytes
		}
	}
	return bytes
}

// sever brings the proxies in line with the cuts that are in force. The caller
// holds wires.mu.
func (in *Injector) sever() {
	for number, p := range in.proxies {
		p.Restore()
		for _, c := range in.cuts {
			if c.Where.Node == 0 || c.Where.Node == number {
				p.Cut(c.Where.Direction)
			}
		}
	}
}

// unplug ends the proxies.
func (in *Injector) unplug() error {
	in.wires.mu.Lock()
	proxies := in.proxies
	in.proxies = nil
	in.wires.mu.Unlock()
	var errs []error
	for _, p := range proxies {
		errs = append(errs, p.Close())
	}
	if len(proxies) > 0 {
		in.o.Target.Route(nil)
	}
	return errors.Join(errs...)
}

// severAll breaks every connection through the proxies.
func (in *Injector) severAll() {
	in.wires.mu.Lock()
	defer in.wires.mu.Unlock()
	for _, p := range in.proxies {
		p.Sever()
	}
}

// judge returns the action for a command on its way to a server.
func (in *Injector) judge(node int, c wire.Command) wire.Action {
	if !in.active.Load() {
		return wire.Action{}
	}
	for _, s := range in.onWire {
		p := in.pointOnWire(s, node, c)
		if s.fault.Where.matches(p) && s.trigger.fires(in.now()) {
			in.wires.mu.Lock()
			defer in.wires.mu.Unlock()
			at := connection{node, c.Conn}
			o := ordered{by: s, name: c.Name, key: c.Key, action: s.fault.Kind.Rule(s.fault), client: p.client, state: p.state}
			in.pending[at] = append(in.pending[at], o)
			s.ordered.Add(1)
			return o.action
		}
	}
	return wire.Action{}
}

// pointOnWire returns what is known of a command on the wire. The fault's rule decides on which side of it the fault
// fires.
func (in *Injector) pointOnWire(s *armed, node int, c wire.Command) point {
	p := point{moment: s.fault.Where.Moment, names: namesOnWire(c), key: c.Key, node: node}
	if client := in.who(c.Client); client != nil {
		p.client, p.state, p.during = client.id, client.stateNow(), client.doingNow()
	}
	return p
}

// tookEffect counts an action that judge ordered when it has happened.
func (in *Injector) tookEffect(node int, c wire.Command, a wire.Action) {
	at := connection{node, c.Conn}
	in.wires.mu.Lock()
	i := slices.IndexFunc(in.pending[at], func(o ordered) bool { return o.name == c.Name && o.key == c.Key && o.action == a })
	if i < 0 {
		in.wires.mu.Unlock()
		return
	}
	o := in.pending[at][i]
	in.pending[at] = in.pending[at][i+1:] // the earlier actions had no effect
	in.wires.mu.Unlock()
	now := in.now()
	in.calm.Store(int64(now + afterShock))
	h := hit{at: "node " + itoa(node) + ", " + c.Name, client: o.client, state: o.state, from: now, to: now, until: now}
	if o.client != 0 {
		h.at = "client " + itoa(o.client) + ", " + c.Name
	} else {
		o.by.unknown.Add(1)
	}
	o.by.brought(effectOf(a.Verb), 1)
	in.injected(o.by, h)
}

// effectOf names the effect of an action on a command.
func effectOf(v wire.Verb) string {
	switch v {
	case wire.DropRequest, wire.Reset:
		return "requests lost"
	case wire.DropReply, wire.ResetAfter:
		return "answers lost"
	case wire.Late:
		return "commands executed after their clients gave up"
	case wire.HalfOpen:
		return "connections gone silent"
	}
	return "commands held up"
}
