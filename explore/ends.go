package explore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"oversell/explore/clients"
	"oversell/explore/rules"
	"oversell/explore/servers"
	"oversell/explore/table"
	"oversell/history"
	"oversell/internal/coro"
	"oversell/internal/names"
	"oversell/scenarios"
)

// ends judges a state as the last one: whether the lock can still be obtained, and what the servers
// hold. Clients that are busy in that state have crashed. So crashes need no transitions of their own: a crashed client
// is never resumed.
type ends struct {
	config  scenarios.Config
	rules   *rules.Rules
	servers *servers.Servers
	facts   *table.Interner[rules.Facts]
	options coro.Options
	// lock and books say what to look for.
	lock, books bool

	// opened is the state of the servers before any client has done anything.
	opened uint32
	once   sync.Once
	never  error // see useless
	// unknown is the error about something that the new client sends and the model of Redis does
	// not know. The search goes on, since its clients may never send it: they may not wait for the
	// lock.
	unknown atomic.Pointer[error]

	judged *table.Memo[ending, *rules.Breach]
	stuck  *table.Memo[serversAt, refusal]
	audits *table.Memo[audited, audit]
	failed func(error)
}

type ending struct {
	servers, facts, now uint32
}

type serversAt struct{ servers, now uint32 }

// refusal says whether a new client does not obtain the lock, and with which error, unless the lock is held.
type refusal struct {
	stuck bool
	why   error
	after uint32 // the servers when the new client has given up
}

// audited is the number of a state of the servers.
type audited uint32

type audit struct {
	ops []history.Op
}

func (e *ends) prepare() {
	e.judged = table.NewMemo(e.judge)
	e.stuck = table.NewMemo(e.cannotBeTaken)
	e.audits = table.NewMemo(e.read)
}

func (e *ends) judge(k ending) *rules.Breach {
	f := e.facts.Get(k.facts)
	dead := e.rules.Busy(f)
	if e.books {
		if b := e.rules.AtTheEnd(f, e.audits.Of(audited(k.servers)).ops, dead); b != nil {
			return b
		}
	}
	if !e.lock {
		return nil
	}
	if is := e.stuck.Of(serversAt{k.servers, k.now}); is.stuck {
		return e.rules.Stuck(f, dead, e.config.Patience(), e.held(k.servers)+e.renewed(k.servers, is.after), is.why)
	}
	return nil
}

// read runs the scenario's audit on the servers.
func (e *ends) read(servers audited) (a audit) {
	var failed error
	events, _, err := alone{e.servers, e.options, time.Hour, time.Hour}.run(uint32(servers), 0, clients.Administrator(e.config, e.servers.Names.DictionaryOfNobody(), func(ctx context.Context, c *scenarios.Client) error {
		return c.Audit(ctx)
	}, &failed))
	if err = errors.Join(err, failed); err != nil {
		e.failed(err)
		return a
	}
	for _, ev := range events {
		if ev.End {
			a.ops = append(a.ops, ev.Op)
		}
	}
	return a
}

// cannotBeTaken reports whether a new client fails to obtain the lock within a lease and a grace. It
// must succeed both if it waits for the next expiry before it tries again, and if it tries at every
// interval: one attempt may leave something behind that blocks the next.
func (e *ends) cannotBeTaken(k serversAt) refusal {
	wait := e.config.Patience()
	for _, every := range []time.Duration{2 * wait, max(e.config.Retry, servers.TickUnit)} {
		p := e.probe(k, wait, every)
		switch {
		case p.why != nil && e.useless() != nil:
			return refusal{} // it fails whatever the clients did
		case !p.got:
			return refusal{true, p.why, p.after}
		case !p.waited:
			return refusal{} // the other check would give the same
		}
	}
	return refusal{}
}

// probe has a new client try for the lock.
func (e *ends) probe(k serversAt, wait, every time.Duration) (p probed) {
	p.waited = true
	_, after, err := alone{e.servers, e.options, 2 * wait, every}.run(k.servers, time.Duration(k.now)*servers.TickUnit, probe(e.config, wait, &p))
	p.after = after
	switch {
	case errors.Is(err, servers.ErrUnknown):
		e.unknown.CompareAndSwap(nil, &err)
		p.got, p.waited = true, false
	case err != nil && !errors.Is(err, errImpatient):
		e.failed(err)
		p.got, p.waited = true, false
	}
	return p
}

// useless returns why a new client does not obtain the lock even on fresh servers, other than that it is held; nil if
// it does. Such a client says nothing about progress later.
func (e *ends) useless() error {
	e.once.Do(func() {
		wait := e.config.Patience()
		e.never = e.probe(serversAt{servers: e.opened}, wait, 2*wait).why
	})
	return e.never
}

// held describes the values of the lock's keys.
func (e *ends) held(servers uint32) string {
	var all string
	for _, n := range e.servers.Nodes(servers) {
		for _, key := range e.servers.LockKeys {
			v, left, exists := n.Value(key)
			if !exists {
				continue
			}
			if all != "" {
				all += " | "
			}
			all += names.Readable(v)
			if left >= 0 {
				all += " for another " + left.String()
			} else {
				all += " without an expiry"
			}
		}
	}
	return all
}

// renewed says that the attempts of a new client have moved the expiry of the lock's key, which would have come meanwhile.
func (e *ends) renewed(before, after uint32) string {
	wait := e.config.Patience()
	for i, n := range e.servers.Nodes(before) {
		for _, key := range e.servers.LockKeys {
			_, was, exists := n.Value(key)
			_, left, remains := e.servers.Nodes(after)[i].Value(key)
			if exists && remains && 0 <= was && was <= wait && left >= 0 {
				return ", and when the new client gives up, for another " + left.String() + ": its attempts moved the expiry"
			}
		}
	}
	return ""
}

func (k ending) Hash() uint64 { return table.Spread(table.Pair(k.servers, k.facts), uint64(k.now)) }

func (k serversAt) Hash() uint64 { return table.Spread(table.Pair(k.servers, k.now), 3) }

func (k audited) Hash() uint64 { return table.Spread(uint64(k), 1) }
