package rules

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"oversell/history"
	"oversell/internal/phrase"
	"oversell/variant"
)

// forever is the end of a lease that was promised without one.
const forever = time.Duration(math.MaxInt64)

// leaseEnd returns the end of the lease that op promises.
func leaseEnd(op *history.Op) time.Duration {
	if op.Until <= 0 {
		return forever
	}
	return op.Until
}

// holder returns the first client, other than this one, that is inside with its lease not
// over; -1 if there is none. The lease counts even if the client has crashed.
func (p *past) holder(lock, but int) int {
	for i := range p.people {
		if h := p.people[i].held[lock]; i != but && h.inside && h.until > 0 {
			return i
		}
	}
	return -1
}

func (p *past) heldUntil(client, lock int) string { return lasting(p.people[client].held[lock].until) }

func lasting(end time.Duration) string {
	if end != forever {
		return "until " + ms(end)
	}
	return "without end"
}

// granted judges an Acquire that ended: mutual exclusion, while another client's lease lasts, and rising tokens. A lost
// answer puts no client inside.
func (r *Rules) granted(p *past, client int, op *history.Op, d *doing, now time.Duration) (b *Breach) {
	if op.Outcome != history.OK {
		return nil
	}
	until := leaseEnd(op)
	if until <= now {
		until = 0 // nothing was promised
	}
	p.people[client].held[d.inner] = hold{true, until}
	if o := p.holder(d.inner, client); r.lock.mutex && until > 0 && o >= 0 {
		by := ""
		if _, number := op.Result.Num(); !number && op.Result.String() != "" {
			by = " (by " + op.Result.String() + ")"
		}
		b = broken(variant.Lock, variant.MutualExclusion, "client %d was granted the lock%s while client %d held it %s", client, by, o, p.heldUntil(o, d.inner))
	}
	if !r.lock.fencing {
		return b
	}
	if op.Fence <= 0 {
		if b == nil {
			b = broken(variant.Lock, variant.Fencing, "client %d was granted the lock with the fencing token %d: tokens begin with 1", client, op.Fence)
		}
		return b
	}
	grants := &p.grants[d.inner]
	holder := p.holder(d.inner, client)
	switch {
	case b != nil:
	case op.Fence <= d.floor:
		b = broken(variant.Lock, variant.Fencing, "client %d was granted the lock with the token %d, though %d had been granted before it asked", client, op.Fence, d.floor)
	case slices.Contains(*grants, op.Fence):
		b = broken(variant.Lock, variant.Fencing, "client %d was granted the lock with the token %d, which had been granted before", client, op.Fence)
	case r.lock.excludes && leaseEnd(op) > now && op.Fence < highest(*grants):
		// If granted first, it would have held the lock at the other grant, and until now.
		b = broken(variant.Lock, variant.Fencing, "client %d was granted the lock with the token %d, though %d was granted while it waited", client, op.Fence, highest(*grants))
	case r.lock.excludes && until == 0 && holder >= 0 && op.Fence > highest(*grants):
		// The late grant can write, and the holder no more.
		b = broken(variant.Lock, variant.Fencing, "client %d was granted the lock with the token %d when its lease had run out, while client %d held the lock %s with a lower token",
			client, op.Fence, holder, p.heldUntil(holder, d.inner))
	}
	if i, found := slices.BinarySearch(*grants, op.Fence); !found {
		*grants = slices.Insert(*grants, i, op.Fence)
	}
	return b
}

// extended moves the end of a lease. A lease that was over begins anew, and no other client may hold the lock. A client
// that gets the answer "lost" does not hold it.
//
// The monitor does not blame a grant during an Extend that is then refused. Here it is a breach at once: the lease was
// promised until its end.
func (r *Rules) extended(p *past, client int, op *history.Op, d *doing, now time.Duration) *Breach {
	h := &p.people[client].held[d.inner]
	switch {
	case !h.inside:
	case op.Outcome == history.Refused && op.Reason == history.Lost:
		h.until = 0
	case op.Outcome == history.OK && h.until > 0:
		h.until = max(h.until, leaseEnd(op))
	case op.Outcome == history.OK && leaseEnd(op) > now:
		h.until = leaseEnd(op)
		if o := p.holder(d.inner, client); r.lock.mutex && o >= 0 {
			return broken(variant.Lock, variant.MutualExclusion, "client %d extended its lease on the lock, which was over, while client %d held it %s",
				client, o, p.heldUntil(o, d.inner))
		}
	}
	return nil
}

// releases ends a hold at the call of its release. Only the release shows a renewal in the background: a client that
// was granted the lock meanwhile and still holds it is detected only then; one that has released it by then is never
// detected.
//
// If two hold the lock, d says so: which of the two has it is not known.
func (r *Rules) releases(p *past, client int, op *history.Op, d *doing, now time.Duration) *Breach {
	lock := d.inner
	h := &p.people[client].held[lock]
	was := *h
	*h = hold{}
	if r.lock.owner && was.inside && was.until > 0 && p.holder(lock, client) >= 0 {
		d.floor = 1
	}
	if o := p.holder(lock, client); r.lock.mutex && r.renews && was.inside && was.until == 0 && op.Until > now && o >= 0 {
		return broken(variant.Lock, variant.MutualExclusion, "client %d held the lock, renewed until %s, while client %d held it %s", client, ms(op.Until), o, p.heldUntil(o, lock))
	}
	return nil
}

// Holder is a client that holds a lock.
type Holder struct {
	Client int
	Until  time.Duration // a lease without an end lasts longer than any search
	// Doubtful: the client whose operation might touch the lock held it as well, and its lease was not over; or that is not known.
	Doubtful bool
}

// JudgesOwners reports whether operations of this kind may touch only their own client's lock.
func (r *Rules) JudgesOwners(kind history.Kind) bool {
	return r.lock.owner && (kind == history.Release || kind == history.Extend)
}

// Endangered returns the holders whose lock may not be touched by a command that an operation of this kind of a client
// has sent: all others. If the client has given up by then, it is not known which of two locks the command concerns,
// and usually there is one.
func (r *Rules) Endangered(f Facts, client int, kind history.Kind, now time.Duration) (all []Holder) {
	if !r.JudgesOwners(kind) {
		return nil
	}
	p := r.read(f)
	p.lapse(now)
	me := &p.people[client]
	for lock := range 2 {
		i := me.at(kind)
		if i >= 0 && me.doing[i].inner != lock {
			continue
		}
		own := me.held[lock]
		// In the background, it is no longer known which locks the client held.
		doubtful := own.inside && own.until > 0 || i < 0 || kind == history.Release && me.doing[i].floor > 0
		for other := range p.people {
			if h := p.people[other].held[lock]; other != client && h.inside && h.until > 0 {
				all = append(all, Holder{other, h.until, doubtful})
			}
		}
	}
	return all
}

// Touched returns the breach of a client whose operation of this kind changed the lock of a holder.
func (r *Rules) Touched(h Holder, client int, kind history.Kind) *Breach {
	verb := "release deleted or changed"
	if kind == history.Extend {
		verb = "extension changed"
	}
	return broken(variant.Lock, variant.OwnerOnlyRelease, "client %d's %s the lock of client %d, which held it %s", client, verb, h.Client, lasting(h.Until))
}

// forgetGrants keeps the largest token, and those that a later grant might repeat.
func (r *Rules) forgetGrants(p *past) {
	for lock := range p.grants {
		least := highest(p.grants[lock])
		for _, me := range p.people {
			if i := me.at(history.Acquire); i >= 0 && me.doing[i].inner == lock {
				least = min(least, me.doing[i].floor+1)
			}
		}
		p.grants[lock] = slices.DeleteFunc(p.grants[lock], func(n int64) bool { return n < least })
	}
}

// highest returns the last of a sorted list; 0 if there is none.
func highest(l []int64) int64 {
	if len(l) == 0 {
		return 0
	}
	return l[len(l)-1]
}

// Stuck returns the breach of progress when a client that asked for the lock for so long has not obtained it. held
// describes the value of its key; it is empty if there is none. refused is the error of its last try, unless that says
// that the lock is held.
func (r *Rules) Stuck(f Facts, dead uint16, long time.Duration, held string, refused error) *Breach {
	p := r.read(f)
	var died []string
	for rest := dead; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros16(rest)
		me := &p.people[i]
		where := "with a task in its hands"
		switch {
		case len(me.doing) > 0:
			where = "in its " + me.doing[len(me.doing)-1].kind.String()
		case me.held[0].inside || me.held[1].inside:
			where = "in its section"
		}
		died = append(died, fmt.Sprintf("client %d died %s", i, where))
	}
	why := "a new client that asks for " + long.String() + ", a lease and a grace, does not obtain the lock"
	if len(died) > 0 {
		why = strings.Join(died, ", ") + ", and " + why
	}
	if held != "" {
		why += ": its key holds " + held
	}
	if refused != nil {
		why += ", and it gets the error " + phrase.OneLine(refused.Error())
	}
	return &Breach{variant.Lock, variant.Progress, why}
}
