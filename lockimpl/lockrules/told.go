package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
	"oversell/wire"
)

// Told are cases about a lock that tells its holder of a loss, which it does once another client has it, and at no other
// time.
var Told = []Case{
	{"held", func(b Bench) error { return b.keptUntold(false) }},
	{"released in time", func(b Bench) error { return b.keptUntold(true) }},
	{"released, and answered late", Bench.releasedUntold},
	{"extended", Bench.extendedUntold},
	{"renewed after an answer was lost", Bench.renewedUntold},
	{"taken by another", func(b Bench) error { return b.takenIsTold(false) }},
	{"taken by another after an extend", func(b Bench) error { return b.takenIsTold(true) }},
	{"held beside one that is lost", Bench.othersUntold},
	{"lost, and taken again by the same client", Bench.takenAgainIsTold},
}

// lost returns the channel that the lock closes when l is lost, or nil.
func lost(c *lockclient.Client, l lockimpl.Lock) <-chan struct{} {
	if notifier, tells := c.Locker.(lockimpl.LossNotifier); tells {
		return notifier.Lost(l)
	}
	return nil
}

// untrue says that a lock does not keep to lockimpl.LossNotifier.
func untrue(format string, args ...any) error {
	return lockfinding.BrokenInterface("lockimpl.LossNotifier", variant.Progress, format, args...)
}

// keptUntold holds a lock, or releases it: in neither case is it lost.
func (b Bench) keptUntold(back bool) error {
	c, err := b.client()
	if err != nil {
		return err
	}
	l, err := c.Take(b.Name, b.TTL, 0)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a free lock was not granted: %v", err)
	}
	lost := lost(c, l)
	b.pass(b.TTL / 2)
	if time.Until(c.Until(l)) <= 0 {
		return lockfinding.Unjudged("the lease ended meanwhile", errors.New("a holder waited for half of its lease"))
	}
	select {
	case <-lost:
		return untrue("a holder was told that its lock is lost %v before the end of its lease, and nobody else had asked for it", time.Until(c.Until(l)).Round(time.Millisecond))
	default:
	}
	err = c.Release(l)
	if !back || err != nil || time.Until(c.Until(l)) <= 0 {
		return nil // other rules are about that
	}
	select {
	case <-lost:
		return untrue("a holder that had released its lock in time was told that it is lost")
	case <-time.After(2 * b.TTL):
	case <-b.Ctx.Done():
	}
	return nil
}

// releasedUntold delays the answer to a command of a release for most of the lease. A renewal that is sent meanwhile is told that the
// lock is gone. Lost must not be closed for that: the holder has released the lock.
func (b Bench) releasedUntold() error {
	const tries = 3 // a renewal that was under way may be the command that is held up
	for try := range tries {
		for n := 1; n <= 2; n++ {
			own := b
			own.Name = fmt.Sprintf("%s-%d-%d", b.Name, try, n)
			if err := own.releasedSlowly(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// releasedSlowly is releasedUntold for the answer to the n-th command of the release.
func (b Bench) releasedSlowly(n int) error {
	c, l, err := b.practisedHolder(b.TTL)
	if err != nil {
		return err
	}
	lost := lost(c, l)
	c.ArmAction(n, wire.Action{Verb: wire.HalfOpen, Direction: wire.Replies, After: b.TTL - b.TTL/4})
	err = c.Release(l)
	c.Plan(nil)
	if err != nil || time.Until(c.Until(l)) <= 0 {
		return nil // other rules are about that
	}
	select {
	case <-lost:
		return untrue("a holder released its lock in time, which was answered with success, though late: it was told that the lock is lost")
	case <-time.After(b.TTL / 2):
	case <-b.Ctx.Done():
	}
	return nil
}

// extendedUntold extends a lock, and looks when the lease that was granted first is over.
func (b Bench) extendedUntold() error {
	if !b.Extends {
		return nil
	}
	c, other, l, err := b.heldByOne(b.TTL)
	if err != nil {
		return err
	}
	m, err := c.Extend(l, 4*b.TTL)
	if err != nil {
		return nil
	}
	lost := lost(c, m)
	if !b.pass(2 * b.TTL) {
		return nil
	}
	told := false
	select {
	case <-lost:
		told = true
	default:
	}
	if _, err := other.Try(b.Name, b.TTL); !errors.Is(err, lockimpl.ErrHeld) || !told || c.Release(m) != nil {
		return nil
	}
	return untrue("a lease of %v was extended to %v, and %v later its holder was told that the lock is lost; others were still refused, and the holder released it", b.TTL, 4*b.TTL, 2*b.TTL)
}

// renewedUntold loses the answer to one renewal. The next ones succeed: a holder that keeps the lock, and can release it, has
// not lost it.
func (b Bench) renewedUntold() error {
	if !b.Renews {
		return nil
	}
	c, other, l, err := b.heldByOne(b.TTL)
	if err != nil {
		return err
	}
	lost := lost(c, l)
	b.pass(b.TTL) // by then its script is loaded
	c.Arm(1, wire.DropReply)
	if !b.pass(2 * b.TTL) {
		return nil
	}
	told := false
	select {
	case <-lost:
		told = true
	default:
	}
	if _, err := other.Try(b.Name, b.TTL); !errors.Is(err, lockimpl.ErrHeld) || !told || c.Release(l) != nil {
		return nil
	}
	return untrue("the answer to one renewal was lost, and its holder was told that the lock is lost; %v later others were still refused, and the holder released it", 2*b.TTL)
}

// takenIsTold cuts a holder off from the server, perhaps after an extend, until another client has the lock. When its requests are
// answered again it has had every chance to know, at the latest by an extend that is answered with ErrLost. A holder that asks only
// then is told as well.
func (b Bench) takenIsTold(extended bool) error {
	if extended && !b.Extends {
		return nil
	}
	c, other, err := b.two()
	if err != nil {
		return err
	}
	l, err := c.Take(b.Name, b.TTL, 0)
	if err != nil {
		return lockfinding.Broken(variant.Progress, "a free lock was not granted: %v", err)
	}
	if extended {
		if l, err = c.Extend(l, b.TTL); err != nil {
			return nil // another rule's business
		}
	}
	asked := lost(c, l)
	c.Freeze()
	if _, err := other.Take(b.Name, long, 2*b.TTL); err != nil {
		return lockfinding.Broken(variant.Progress, "with the holder cut off, nobody could take the lock when the lease had run out: %v", err)
	}
	c.Thaw()
	told := func(within time.Duration) bool {
		select {
		case <-asked:
			return true
		case <-time.After(within):
		case <-b.Ctx.Done():
		}
		return false
	}
	if told(2 * b.TTL) {
		return b.toldAgain(c, l)
	}
	if b.Extends && !b.Renews {
		if _, err := c.Extend(l, b.TTL); !errors.Is(err, lockimpl.ErrLost) {
			return nil // other rules are about that
		}
	}
	if told(b.TTL) {
		return b.toldAgain(c, l)
	}
	if b.Ctx.Err() != nil {
		return nil
	}
	return lockfinding.Broken(variant.MutualExclusion, "a holder that had been cut off was not told that its lock is lost, %v after another client was granted the lock and the holder could reach the server again", 3*b.TTL)
}

// toldAgain asks for the channel of a lock whose holder was told that it is lost. It must be closed: a holder that looks before each
// step asks each time.
func (b Bench) toldAgain(c *lockclient.Client, l lockimpl.Lock) error {
	again := lost(c, l)
	select {
	case <-again:
		return nil
	default:
	}
	what := "another channel, which is open"
	if again == nil {
		what = "nil"
	}
	return untrue("a holder was told that its lock is lost: its channel was closed. When the holder called Lost again, it got %s: want a closed channel", what)
}

// othersUntold has a client lose one of its locks. The lock that it had taken before, and one that it takes later, are not lost.
func (b Bench) othersUntold() error {
	c, other, kept, err := b.heldByOne(long)
	if err != nil {
		return err
	}
	before := lost(c, kept)
	if !b.losesOne(c, other, b.Name+"-lost") {
		return nil
	}
	later, err := c.Take(b.Name+"-later", long, 0)
	if err != nil {
		return nil
	}
	after := lost(c, later)
	b.pass(b.TTL / 4)
	for _, held := range []struct {
		which string
		l     lockimpl.Lock
		all   []<-chan struct{}
	}{{"had taken before", kept, []<-chan struct{}{before, lost(c, kept)}}, {"took later", later, []<-chan struct{}{after}}} {
		told := false
		for _, closed := range held.all {
			select {
			case <-closed:
				told = true
			default:
			}
		}
		if told && c.Release(held.l) == nil {
			return untrue("a client lost one of its locks, and was told that another, which it %s, is lost; it released that lock, which was answered with success", held.which)
		}
	}
	_ = c.Release(kept)
	_ = c.Release(later)
	return nil
}

// takenAgainIsTold has a client lose a lock, and acquire the same name again. What the lock tells of the first grant is not what it tells of
// the second.
func (b Bench) takenAgainIsTold() error {
	c, other, err := b.two()
	if err != nil {
		return err
	}
	first, err := b.losesAndKnows(c, other)
	if err != nil {
		return err
	}
	before := time.Now()
	l, err := c.Take(b.Name, 4*b.TTL, b.TTL)
	if err != nil || lockclient.SameGrant(first, l) {
		return errElsewhere
	}
	const what = "a client lost a lock, which another client held meanwhile, and acquired the same name again"
	if channel := lost(c, first); channel != nil && !b.awaits(channel, b.TTL) {
		return untrue("%s: the channel that Lost returns for the first grant was open: want a closed channel", what)
	}
	if r, renews := c.Locker.(lockimpl.Renewer); renews {
		if end := c.Until(r.Renewed(first)); end.After(before.Add(b.TTL / 4)) {
			return lockfinding.BrokenInterface("lockimpl.Renewer", variant.Progress, "%s: Renewed said of the first grant that its lease ends %v after the second grant was asked for: want an end before that", what, end.Sub(before).Round(time.Millisecond))
		}
	}
	_ = c.Release(l)
	return nil
}

// losesAndKnows has a client lose a lock to another client, which releases it when the first has noticed. It returns the lock that is lost.
func (b Bench) losesAndKnows(c, other *lockclient.Client) (l lockimpl.Lock, err error) {
	if b.Renews {
		if err := b.loses(c, b.Name, false, func() error { return nil }, &l); err != nil {
			return l, errElsewhere
		}
		return l, nil
	}
	if l, err = b.held(c, b.TTL); err != nil {
		return l, err
	}
	m, err := other.Take(b.Name, long, b.TTL)
	if err == nil && b.Extends {
		if _, lost := c.Extend(l, b.TTL); !errors.Is(lost, lockimpl.ErrLost) {
			return l, errElsewhere
		}
	}
	if err != nil || other.Release(m) != nil {
		return l, errElsewhere
	}
	return l, nil
}

// losesOne has a client lose a lock to another client, and notice it. It reports false if that did not happen.
func (b Bench) losesOne(c, other *lockclient.Client, name string) bool {
	if b.Renews {
		return b.loses(c, name, false, func() error { return nil }, nil) == nil
	}
	l, err := c.Take(name, b.TTL, 0)
	if err != nil {
		return false
	}
	if _, err := other.TakeWithin(name, long, 3*b.TTL); err != nil {
		return false
	}
	if b.Extends {
		_, err = c.Extend(l, b.TTL)
	} else {
		err = c.Release(l)
	}
	return errors.Is(err, lockimpl.ErrLost)
}
