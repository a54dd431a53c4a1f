package explore

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"oversell/history"
	"oversell/scenarios"
	"oversell/variant"
)

// rules judge the operations of a search by what the variants promise: the same
// promises that the monitors of package checker judge in a history, step by step,
// and on the present state alone. What a judgement needs of the past are the
// facts; since they are a part of the state that is searched, they are kept only for
// the properties that are looked for, and only as long as they can matter.
//
// In a search the order of events is total, even at one moment of virtual time: what
// ended in an earlier step ended before. A breach is told when it is certain.
type rules struct {
	clients int
	stock   int64
	refunds bool // buyers give purchases back
	final   bool // a buyer who has an answer does not send the order again
	renews  bool // the lock renews leases in the background
	repeats bool // ids are enqueued again
	single  bool // an effect is one command, and has not happened while it is under way
	replace bool // and then their entry is replaced

	lock struct{ mutex, owner, fencing bool }
	sale struct{ oversell, undersell, once, fencing bool }
	ids  struct{ unique, order, gaps bool }
	task struct{ lost, delivered, effect, early, order, one bool }
}

// judged tells whether rules can judge the property in a search at all. An order that
// all answers fit, or that of a waiting line, is no matter of the present state.
func judged(of variant.Object, p variant.Property) bool {
	var r rules
	return r.look(history.Promise{Of: of, Property: p}) != nil || of == variant.Lock && p == variant.Progress
}

// look is the switch of a property; nil if it is not judged.
func (r *rules) look(p history.Promise) *bool {
	switch p.Of {
	case variant.Lock:
		switch p.Property {
		case variant.MutualExclusion:
			return &r.lock.mutex
		case variant.OwnerOnlyRelease:
			return &r.lock.owner
		case variant.Fencing:
			return &r.lock.fencing
		}
	case variant.Sale:
		switch p.Property {
		case variant.NoOversell:
			return &r.sale.oversell
		case variant.NoUndersell:
			return &r.sale.undersell
		case variant.OncePerOrder:
			return &r.sale.once
		case variant.Fencing:
			return &r.sale.fencing
		}
	case variant.IDs:
		switch p.Property {
		case variant.UniqueIDs:
			return &r.ids.unique
		case variant.RealTimeOrder:
			return &r.ids.order
		case variant.NoGaps:
			return &r.ids.gaps
		}
	case variant.Queue:
		switch p.Property {
		case variant.NoLostTask:
			return &r.task.lost
		case variant.NoDuplicateDelivery:
			return &r.task.delivered
		case variant.EffectOnce:
			return &r.task.effect
		case variant.NotEarly:
			return &r.task.early
		case variant.InOrder:
			return &r.task.order
		case variant.OneEntryPerID:
			return &r.task.one
		}
	}
	return nil
}

// newRules are the rules for a search among these many clients of c, in which these
// properties are looked for.
func newRules(c scenarios.Config, clients int, looked []history.Promise) *rules {
	r := &rules{
		clients: clients, single: !c.Scenario.Uses(variant.Sale), stock: c.Stock, refunds: c.Refund > 0, repeats: c.Repeat > 0, renews: c.Lock.Renews,
		final:   c.Scenario.Uses(variant.Sale) && !c.Scenario.Uses(variant.Queue),
		replace: c.QueueOptions.Overwrite || slices.Contains(c.Queue.Promises, variant.OneEntryPerID),
	}
	for _, p := range looked {
		if on := r.look(p); on != nil {
			*on = true
		}
	}
	return r
}

// start are the facts before anything happened.
func (r *rules) start() facts { return r.write(&past{people: make([]person, r.clients)}) }

// on judges an event of client, in its own names, at time now, and returns what is to
// be remembered then. The call of a purchase tells its pieces and its token.
func (r *rules) on(f facts, client int, e Event, now time.Duration) (facts, *breach) {
	p := r.read(f)
	p.lapse(now)
	op := &e.Op
	var b *breach
	if e.End {
		b = r.ended(p, client, op, p.leave(client, op.Kind), now)
	} else {
		b = r.called(p, client, op, now)
	}
	r.forget(p, now)
	return r.write(p), b
}

// called enters an operation that begins. One of the same kind that never ended came
// to nothing.
func (r *rules) called(p *past, client int, op *history.Op, now time.Duration) (b *breach) {
	me := &p.people[client]
	if i := me.at(op.Kind); i >= 0 {
		me.doing = me.doing[:i]
	}
	d := doing{kind: op.Kind, inner: me.queueing()}
	switch op.Kind {
	case history.Acquire:
		if r.lock.fencing {
			d.floor = highest(p.grants[d.inner])
		}
	case history.Release:
		b = r.releases(p, client, op, d.inner, now)
	case history.Buy:
		r.buys(p, client, op, &d)
	case history.Refund:
		r.refund(p, op, &d)
	case history.NextID:
		r.asks(p, client, op, &d)
	case history.Enqueue:
		r.enqueues(p, client, op, &d)
	case history.Dequeue:
		r.dequeues(p, client, op)
	case history.Effect:
		if r.task.lost {
			d.what = labelOf(op.Arg, client)
		}
	}
	me.doing = append(me.doing, d)
	return b
}

// ended judges an operation that ended; d is what was noted at its call.
func (r *rules) ended(p *past, client int, op *history.Op, d doing, now time.Duration) *breach {
	switch op.Kind {
	case history.Acquire:
		return r.granted(p, client, op, &d, now)
	case history.Extend:
		return r.extended(p, client, op, &d, now)
	case history.Buy:
		return r.bought(p, client, op, &d)
	case history.Refund:
		return r.refunded(p, client, op, &d)
	case history.NextID:
		return r.numbered(p, client, op, &d)
	case history.Enqueue:
		return r.enqueued(p, client, op, &d)
	case history.Pop:
		return r.popped(p, client, op, now)
	case history.Effect:
		return r.affected(p, client, op)
	}
	return nil
}

// passed forgets what has ended at time now.
func (r *rules) passed(f facts, now time.Duration) facts {
	p := r.read(f)
	p.lapse(now)
	r.forget(p, now)
	return r.write(p)
}

// untils are the ends of the leases that clients inside were promised, if they are needed.
func (r *rules) untils(f facts) (all []time.Duration) {
	for _, me := range r.read(f).people {
		for _, h := range me.held {
			if h.inside && h.until > 0 && h.until != forever {
				all = append(all, h.until)
			}
		}
	}
	return all
}

// lapses is how many of them have ended at time now.
func (r *rules) lapses(f facts, now time.Duration) (n uint8) {
	for _, until := range r.untils(f) {
		n += flag(until <= now)
	}
	return n
}

// busy are the clients, a bit each, that are in the middle of something: with an
// operation under way, inside a section, or with a task in their hands. When nobody
// is, or those who are have died, the end can be judged.
func (r *rules) busy(f facts) (mask uint16) {
	p := r.read(f)
	for i := range p.people {
		if me := &p.people[i]; len(me.doing) > 0 || me.held[0].inside || me.held[1].inside {
			mask |= 1 << i
		}
	}
	for i := range p.tasks {
		mask |= uint16(p.tasks[i].hands)
	}
	return mask
}

// inside are the clients, a bit each, that were granted a lock and have not yet called
// its release, whether their lease has ended or not.
func (r *rules) inside(f facts) (mask uint16) {
	for i, me := range r.read(f).people {
		if me.held[0].inside || me.held[1].inside {
			mask |= 1 << i
		}
	}
	return mask
}

// doing is the kind of the operation that client has under way, of several the
// innermost.
func (r *rules) doing(f facts, client int) history.Kind {
	if d := r.read(f).people[client].doing; len(d) > 0 {
		return d[len(d)-1].kind
	}
	return history.NoKind
}

// end judges what the servers hold, as the scenario's audit reads it, when everybody
// has stopped for good: the clients in dead in the middle of something. What was under
// way then has no answer.
func (r *rules) end(f facts, audit []history.Op, dead uint16) *breach {
	p := r.read(f)
	if b := r.soldInTheEnd(p, audit); b != nil {
		return b
	}
	if b := r.numberedInTheEnd(p, audit); b != nil {
		return b
	}
	return r.queuedInTheEnd(p, audit, dead)
}

// permute are the facts with client i called perm[i].
func (r *rules) permute(f facts, perm []int) facts {
	p := r.read(f)
	q := *p
	q.people = make([]person, len(p.people))
	for i := range p.people {
		q.people[perm[i]] = p.people[i]
	}
	q.relabel(perm)
	return r.write(&q)
}

// broken is a breach.
func broken(of variant.Object, p variant.Property, format string, args ...any) *breach {
	return &breach{of, p, fmt.Sprintf(format, args...)}
}

// ms writes a time in milliseconds, as short as it goes.
func ms(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " ms"
}

// pieces writes a number of pieces.
func pieces(n int64) string {
	if n == 1 {
		return "1 piece"
	}
	return strconv.FormatInt(n, 10) + " pieces"
}
