// Package rules judges promises during a search, event by event, from the present state; package checker judges the
// same promises from whole histories.
//
// A search that merges states cannot keep their histories. So the part of the past that later judgements need belongs
// to the state ([Facts]). It is kept only for the promises looked for, and only as long as it can matter.
package rules

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"

	"oversell/history"
	"oversell/internal/phrase"
	"oversell/scenarios"
	"oversell/variant"
)

// Event is the call or the end of an operation of a client.
type Event struct {
	// End is false for the call and true for the end.
	End bool
	// Op is the operation; its outcome counts only at the end. Of its times only Until
	// is set, since the epoch.
	Op history.Op
}

// Breach is a promise that was broken.
type Breach struct {
	Of       variant.Object
	Property variant.Property
	// Why says in a sentence what happened.
	Why string
}

// Rules judges the events of a search. The order of events is total, even at one moment of
// virtual time: what ended in an earlier step ended before. A breach is reported as soon as it is
// certain. Rules does not change after [New], so it can be used concurrently.
type Rules struct {
	clients int
	stock   int64
	// quantity is the number of pieces of each order; 0: they differ.
	quantity int64
	refunds  bool         // buyers refund purchases
	within   bool         // the sale promises that it sells no more than the stock
	final    bool         // a buyer who has an answer does not send the order again
	renews   bool         // the lock renews leases in the background
	repeats  bool         // ids are enqueued again
	ordered  *atomic.Bool // see Ordered
	single   bool         // an effect is one command, and has not happened while it is under way
	replace  bool         // an id that is enqueued again replaces its entry

	lock struct {
		mutex, owner, fencing bool
		excludes              bool // fencing is judged, and the order of grants follows from mutual exclusion, too
	}
	sale struct{ oversell, undersell, once, fencing bool }
	ids  struct{ unique, order, gaps bool }
	task struct{ lost, delivered, effect, early, order, one bool }
}

// CanJudge reports whether a property can be judged on states. linearizable and fifo cannot: they
// need a whole history.
func CanJudge(of variant.Object, p variant.Property) bool {
	var r Rules
	return r.look(history.Promise{Of: of, Property: p}) != nil || of == variant.Lock && p == variant.Progress
}

// look returns the switch of a property; nil if it is not judged.
func (r *Rules) look(p history.Promise) *bool {
	return map[history.Promise]*bool{
		{Of: variant.Lock, Property: variant.MutualExclusion}:      &r.lock.mutex,
		{Of: variant.Lock, Property: variant.OwnerOnlyRelease}:     &r.lock.owner,
		{Of: variant.Lock, Property: variant.Fencing}:              &r.lock.fencing,
		{Of: variant.Sale, Property: variant.NoOversell}:           &r.sale.oversell,
		{Of: variant.Sale, Property: variant.NoUndersell}:          &r.sale.undersell,
		{Of: variant.Sale, Property: variant.OncePerOrder}:         &r.sale.once,
		{Of: variant.Sale, Property: variant.Fencing}:              &r.sale.fencing,
		{Of: variant.IDs, Property: variant.UniqueIDs}:             &r.ids.unique,
		{Of: variant.IDs, Property: variant.RealTimeOrder}:         &r.ids.order,
		{Of: variant.IDs, Property: variant.NoGaps}:                &r.ids.gaps,
		{Of: variant.Queue, Property: variant.NoLostTask}:          &r.task.lost,
		{Of: variant.Queue, Property: variant.NoDuplicateDelivery}: &r.task.delivered,
		{Of: variant.Queue, Property: variant.EffectOnce}:          &r.task.effect,
		{Of: variant.Queue, Property: variant.NotEarly}:            &r.task.early,
		{Of: variant.Queue, Property: variant.InOrder}:             &r.task.order,
		{Of: variant.Queue, Property: variant.OneEntryPerID}:       &r.task.one,
	}[p]
}

// New returns the rules for a search among these many clients of c, in which these
// properties are looked for.
func New(c scenarios.Config, clients int, looked []history.Promise) *Rules {
	r := &Rules{
		ordered: new(atomic.Bool),
		clients: clients, single: !c.Scenario.Uses(variant.Sale), stock: c.Stock, quantity: int64(c.Quantity), refunds: c.Refund > 0, repeats: c.Repeat > 0, renews: c.Lock.Renews,
		final:   c.Scenario.Uses(variant.Sale) && !c.Scenario.Uses(variant.Queue),
		replace: c.QueueOptions.Overwrite || slices.Contains(c.Queue.Promises, variant.OneEntryPerID),
	}
	for _, p := range looked {
		if on := r.look(p); on != nil {
			*on = true
		}
	}
	r.within = r.sale.oversell || slices.Contains(c.Sale.Promises, variant.NoOversell)
	r.lock.excludes = r.lock.fencing && (r.lock.mutex || slices.Contains(c.Lock.Promises, variant.MutualExclusion))
	return r
}

// LooksFor reports whether the promise is judged.
func (r *Rules) LooksFor(of variant.Object, p variant.Property) bool {
	on := r.look(history.Promise{Of: of, Property: p})
	return on != nil && *on
}

// Start returns the facts before the first event.
func (r *Rules) Start() Facts { return r.write(&past{people: make([]person, r.clients)}) }

// Observe judges events of a client at a time, in their order, and returns the facts after them and the first
// breach. Names in the events are the client's own. The call of a purchase carries its number of pieces and its token.
func (r *Rules) Observe(f Facts, client int, now time.Duration, events ...Event) (Facts, *Breach) {
	p := r.read(f)
	p.lapse(now)
	var first *Breach
	for i := range events {
		op := &events[i].Op
		var b *Breach
		if events[i].End {
			b = r.ended(p, client, op, p.leave(client, op.Kind), now)
		} else {
			b = r.called(p, client, op, now)
		}
		if first == nil {
			first = b
		}
		r.forget(p, now)
	}
	return r.write(p), first
}

// called enters an operation that begins. An earlier one of the same kind that never ended had no result.
func (r *Rules) called(p *past, client int, op *history.Op, now time.Duration) (b *Breach) {
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
		b = r.releases(p, client, op, &d, now)
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
		if r.task.lost || r.task.effect {
			d.what = labelOf(op.Arg, client)
		}
	}
	me.doing = append(me.doing, d)
	return b
}

// ended judges an operation that ended; d is what was noted at its call.
func (r *Rules) ended(p *past, client int, op *history.Op, d doing, now time.Duration) *Breach {
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

// TimePasses returns the facts at a later time.
func (r *Rules) TimePasses(f Facts, now time.Duration) Facts {
	p := r.read(f)
	p.lapse(now)
	r.forget(p, now)
	return r.write(p)
}

// Ends returns the ends of the leases that clients were promised and have not released.
func (r *Rules) Ends(f Facts) (all []time.Duration) {
	for _, me := range r.read(f).people {
		for _, h := range me.held {
			if h.inside && h.until > 0 && h.until != forever {
				all = append(all, h.until)
			}
		}
	}
	return all
}

// Lapses returns how many of those leases have ended by a time.
func (r *Rules) Lapses(f Facts, now time.Duration) (n uint8) {
	for _, until := range r.Ends(f) {
		if until <= now {
			n++
		}
	}
	return n
}

// Busy returns a bit set of the clients that have an operation under way, hold a lock or have
// taken a task. If there are none, or if they have died, the end can be judged.
func (r *Rules) Busy(f Facts) (mask uint16) {
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

// AtTheEnd judges what the scenario's audit reads when all clients have stopped. Those in the bit
// set dead died while they were busy; their operations under way have no answer.
func (r *Rules) AtTheEnd(f Facts, audit []history.Op, dead uint16) *Breach {
	p := r.read(f)
	if b := r.soldInTheEnd(p, audit); b != nil {
		return b
	}
	if b := r.numberedInTheEnd(p, audit); b != nil {
		return b
	}
	return r.queuedInTheEnd(p, audit, dead)
}

// Permute returns the facts with client i renamed to perm[i].
func (r *Rules) Permute(f Facts, perm []int) Facts {
	p := r.read(f)
	q := *p
	q.people = make([]person, len(p.people))
	for i := range p.people {
		q.people[perm[i]] = p.people[i]
	}
	q.relabel(perm)
	return r.write(&q)
}

// broken returns a breach.
func broken(of variant.Object, p variant.Property, format string, args ...any) *Breach {
	return &Breach{of, p, fmt.Sprintf(format, args...)}
}

// ms writes a time in milliseconds, as short as it goes.
func ms(d time.Duration) string {
	return humanize.Commaf(float64(d)/float64(time.Millisecond)) + " ms"
}

// pieces writes a number of pieces.
func pieces(n int64) string { return phrase.Count(n, "piece") }

// unanswered lists the promises that a search with one client decides, because the client repeats orders that had no
// answer. The others need clients that compete for the lock, for the last piece or for a number; and a queue needs one
// client that enqueues and one that takes.
var unanswered = []history.Promise{{Of: variant.Sale, Property: variant.OncePerOrder}, {Of: variant.Sale, Property: variant.NoUndersell}}

// TestedAlone reports whether a search with one client decides a promise, if the client repeats orders that had no answer.
func TestedAlone(p history.Promise) bool { return slices.Contains(unanswered, p) }

// JudgesTheEnd reports which of two facts the promises need at the end: whether the lock can then be obtained, and what
// the servers hold.
func JudgesTheEnd(look []history.Promise) (lock, books bool) {
	for _, p := range look {
		switch {
		case p.Of == variant.Lock && p.Property == variant.Progress:
			lock = true
		case slices.Contains(atTheEnd, p.Property):
			books = true
		}
	}
	return lock, books
}

// atTheEnd lists the properties that depend on what the servers hold at the end.
var atTheEnd = []variant.Property{variant.NoUndersell, variant.OncePerOrder, variant.NoGaps, variant.NoLostTask, variant.OneEntryPerID}
