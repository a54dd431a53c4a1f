package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"oversell/clock"
	"oversell/internal/suitetest"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/server"
	"oversell/variant"
)

// run is one call of Run.
type run struct {
	lock   lockimpl.Variant
	server *server.Target
	seed   uint64
	able   abilities
	first  []string // locks whose holders died, taken when the server knew no scripts
	// scriptless is the result of late releases on a server that knew no scripts; refused is the result of acquires on
	// a server that was out of memory; forgotten is that of calls when the servers had forgotten all scripts and functions.
	scriptless, refused, forgotten error
	clients                        atomic.Int64 // how many were made
	healthy                        atomic.Int64 // for how long the machine and the servers have answered in time
	parent                         *run         // of a run on an emulation of its own: its time counts
	logf                           func(format string, args ...any)
	repeats                        atomic.Bool // all rules have ended, and those that could not be judged are tried again

	endsMu           sync.Mutex // guards what ends has found out
	ended, endsKnown bool
	endsAt           time.Time // when it found that out

	mu     sync.Mutex
	began  time.Time
	broken bool
	enough context.CancelFunc // ends what is still being tried
}

// breach is a broken promise.
type breach = lockfinding.Breach

func broken(p variant.Property, format string, args ...any) error {
	return lockfinding.Broken(p, format, args...)
}

func sameLock(format string, args ...any) error { return lockfinding.SameLock(format, args...) }

func unjudged(why string, err error) error { return lockfinding.Unjudged(why, err) }

func isUnjudged(err error) bool { return lockfinding.IsUnjudged(err) }

// errStillHeld says that the lock was still refused when a rule stopped waiting.
var errStillHeld = fmt.Errorf("it is still refused: %w", lockimpl.ErrHeld)

// A run that has found a broken promise ends enoughAfter after its start: other promises would take too long.
const enoughAfter = 20 * time.Second

// found ends the run, soon or at once, after a promise was found broken.
func (r *run) found(err error) {
	var b *breach
	if isUnjudged(err) || !errors.As(err, &b) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.Basis:
		r.enough()
	case !r.broken:
		time.AfterFunc(time.Until(r.began.Add(enoughAfter)), r.enough)
	}
	r.broken = true
}

// promises reports whether the lock makes a promise that is judged, and declares no flaw of it under these faults.
func (r *run) promises(p variant.Property, faults ...variant.Fault) bool {
	return slices.Contains(r.lock.Promises, p) && (p != variant.OwnerOnlyRelease || lockfinding.Exclusive(r.lock)) && !slices.ContainsFunc(r.lock.Flaws, func(f variant.Flaw) bool {
		return f.Property == p && (f.Fault == variant.NoFault || slices.Contains(faults, f.Fault))
	})
}

// rule checks one consequence of a promise.
type rule struct {
	property variant.Property
	faults   []variant.Fault // what the rule does to the lock
	name     string
	// needs, unless nil, says why the rule cannot be tried on a lock; empty: it can.
	needs func(*run) string
	check func(*bench) error
}

// check is a rule being checked.
type check struct {
	rule
	result chan error
}

// ruleLimit ends a rule if the lock does not answer. It is longer than any rule takes if all its waits end
// at their own limits.
const ruleLimit = 24 * time.Second

// start checks a rule on a name of its own, when this time has passed.
func (r *run) start(ctx context.Context, u rule, name string, after time.Duration) check {
	c := check{u, make(chan error, 1)}
	go func() {
		_ = clock.Real{}.Sleep(ctx, after)
		err := r.try(ctx, u, name)
		r.found(err)
		c.result <- err
	}()
	return c
}

// try checks a rule, and returns an error when the lock does not answer.
func (r *run) try(run context.Context, u rule, name string) error {
	ctx, cancel := context.WithTimeout(run, ruleLimit)
	defer cancel()
	return r.within(run, ctx, u, name)
}

// within is try with a limit on the rule, the end of ctx.
func (r *run) within(run, ctx context.Context, u rule, name string) error {
	start := r.lasted()
	b := &bench{ctx: ctx, run: r, name: name, ttl: r.able.lease, title: u.name, faults: u.faults, property: u.property}
	defer func() { go b.close() }()
	result := make(chan error, 1)
	go func() { result <- b.judged(b.checked(u.check)) }()
	var err error
	select {
	case err = <-result:
	case <-run.Done():
		r.logf("%s/%s: not judged, since other promises were found broken", u.property, u.name)
		return nil
	case <-time.After(ruleLimit + commandTimeout):
		if hung := b.underWay((*lockclient.Client).Hangs); hung != "" {
			p := u.property
			if r.promises(variant.Progress, u.faults...) {
				p = variant.Progress
			}
			return r.matters(u, broken(p, "the rule did not end in %v: %s", ruleLimit+commandTimeout, hung))
		}
	}
	if run.Err() != nil {
		return nil // it was cut short
	}
	var w *breach
	why, busy := fmt.Sprintf("it did not end in %v", ruleLimit), r.lasted()-start < ruleLimit*3/4
	switch errors.As(err, &w); {
	case isUnjudged(err), ctx.Err() == nil, w != nil && w.Sure:
	case w == nil && busy:
		err = unjudged(why, err)
	case w == nil:
		err = lockfinding.Slow(why, err)
	case busy:
		err = unjudged("the machine is too busy", err)
	case w.Property == variant.Progress || !w.Since.IsZero(): // something might have happened later
		err = lockfinding.Slow(why, err)
	}
	return r.matters(u, err)
}

// beat measures until ctx ends how long the machine and the servers answer in time. A promise that something happens is
// judged by that time.
func (r *run) beat(ctx context.Context) {
	const every = 10 * time.Millisecond
	conns := r.server.Clients(server.ConnOptions{})
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	last := time.Now()
	for ctx.Err() == nil {
		for _, c := range conns {
			_ = c.Ping(ctx).Err()
		}
		time.Sleep(every)
		now := time.Now()
		r.healthy.Add(int64(min(now.Sub(last), 2*every)))
		last = now
	}
}

// lasted returns the time by beat.
func (r *run) lasted() time.Duration {
	if r.parent != nil {
		return r.parent.lasted()
	}
	return time.Duration(r.healthy.Load())
}

// matters returns err unless it is about a promise that the lock does not make.
func (r *run) matters(u rule, err error) error {
	var b *breach
	if errors.As(err, &b) && b.Property != u.property && !r.promises(b.Property, u.faults...) {
		r.logf("%s/%s: not judged, since the lock does not promise %s: %v", u.property, u.name, b.Property, err)
		return nil
	}
	return err
}

// bench is the environment of one rule: any number of clients of one lock.
type bench struct {
	ctx      context.Context
	run      *run
	name     string
	ttl      time.Duration
	title    string // of the rule
	faults   []variant.Fault
	property variant.Property
	forgets  bool // a call that is tried meets a server that knows no scripts

	mu     sync.Mutex
	made   []*client
	closed lockclient.Call // the longest call of the clients that are closed
	doubts []doubt
	parts  []*bench // see with
	// panicked is the first panic of the lock's code.
	panicked error
}

// doubt is a time in which a lock may be held without any client knowing: an acquire or a release had no answer.
type doubt struct{ from, till time.Time }

// doubted notes a lease that may have been granted or released. from is when the call without an answer was made, or
// zero if refusals before it show nothing either.
func (b *bench) doubted(from time.Time, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doubts = append(b.doubts, doubt{from, time.Now().Add(ttl)})
}

// judged returns err, unless the lock was refused, or waited for in vain, while an earlier Acquire or Release without an
// answer may have left it held, because its lease is not over. A doubt does not excuse refusals for a long time before it.
func (b *bench) judged(err error) error {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		return unjudged("connections pile up on a busy machine", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var w *breach
	excused := func(d doubt) bool {
		return time.Now().Before(d.till) && (w.Since.IsZero() || d.from.Before(w.Since.Add(patience/2)))
	}
	if errors.As(err, &w) && w.Property == variant.Progress && (w.Refused || w.Waited) && slices.ContainsFunc(b.doubts, excused) {
		return unjudged("an earlier call had no answer, and the lease is not over", err)
	}
	return err
}

// with returns the bench under another name of a lock.
func (b *bench) with(name string) *bench {
	n := &bench{ctx: b.ctx, run: b.run, name: name, ttl: b.ttl, title: b.title, faults: b.faults, property: b.property, forgets: b.forgets}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.parts = append(b.parts, n)
	return n
}

// checked runs a check. It handles clients that fail to connect, and code of the lock that panics.
func (b *bench) checked(check func(*bench) error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p
		default:
			err = suitetest.Panicked("the lock", p)
		}
	}()
	err = check(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(b.panicked, err)
}

// failed notes that a call of the lock panicked.
func (b *bench) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.panicked = cmp.Or(b.panicked, err)
}

// adopt keeps a client until the end.
func (b *bench) adopt(c *client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, c)
}

// close ends all clients.
func (b *bench) close() {
	b.mu.Lock()
	made := b.made
	b.closed, b.made = lockclient.SlowestOf(made), nil
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range made {
		wg.Go(c.Close)
	}
	wg.Wait()
}

// Slow describes the call that took the longest, of this bench and its parts.
func (b *bench) Slow() (what string, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return lockclient.SlowestOf([]lockclient.Call{b.closed, lockclient.SlowestOf(b.made), lockclient.SlowestOf(b.parts)}).Slow()
}

// stuck describes the calls that have not returned; it is empty if there are none.
func (b *bench) stuck() string { return b.underWay((*lockclient.Client).Stuck) }

// underWay joins what describe says of the clients.
func (b *bench) underWay(describe func(*lockclient.Client) string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, c := range b.made {
		all = append(all, describe(c.Client))
	}
	for _, p := range b.parts {
		all = append(all, p.underWay(describe))
	}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

func (b *bench) sleep(d time.Duration) { _ = clock.Real{}.Sleep(b.ctx, d) }

// after returns a channel that is closed when the machine and the servers have answered in time for that long.
func (b *bench) after(d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		for start := b.run.lasted(); b.run.lasted()-start < d && b.ctx.Err() == nil; {
			b.sleep(pace)
		}
	}()
	return over
}

// untilSent waits until a client has sent so many commands, which takes a while on a busy machine. It
// does not wait for a client whose commands the suite cannot count.
func (b *bench) untilSent(c *client, commands int) {
	for end := b.after(patience); b.run.able.reached && c.Sent() < commands && b.ctx.Err() == nil; {
		select {
		case <-end:
			return
		default:
			b.sleep(pace)
		}
	}
}

// sleepUntil waits for a moment.
func (b *bench) sleepUntil(t time.Time) { b.sleep(time.Until(t)) }

// together runs cases on benches of their own, some at a time, and returns the first
// that failed. A case that cannot be judged is tried again under another name.
func (b *bench) together(atOnce int, cases []part) error {
	const times = 3
	errs := make([]error, len(cases))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for n := range times {
				own := b.with(fmt.Sprintf("%s%s-%d", b.name, strings.Repeat("-again", n), i)) // names that resemble it are new as well
				err := own.judged(own.checked(c.check))
				own.close()
				if errs[i] = nil; err != nil {
					errs[i] = fmt.Errorf("%s: %w", c.name, err)
				}
				if !isUnjudged(err) || b.ctx.Err() != nil {
					break
				}
				b.run.logf("%s/%s: %v", b.property, c.name, err)
			}
		})
	}
	wg.Wait()
	var open, other error
	for _, err := range errs {
		switch {
		case err == nil || b.run.matters(rule{property: b.property, faults: b.faults, name: b.name}, err) == nil:
		case isUnjudged(err):
			open = err
		case errors.As(err, new(*breach)):
			return err // whatever else could not be tried
		case other == nil:
			other = err
		}
	}
	return cmp.Or(other, open)
}

// part is one of several cases of a rule.
type part struct {
	name  string
	check func(*bench) error
}

// often repeats a check that a busy machine may fail, but not three times in a row.
func (b *bench) often(check func(*bench) error) func(*bench) error {
	return func(b *bench) (err error) {
		for n := range 3 {
			own := b.with(fmt.Sprintf("%s-time-%d", b.name, n+1))
			err = check(own)
			own.close()
			if err == nil || isUnjudged(err) { // what could not be judged is repeated by together
				return err
			}
		}
		return err
	}
}

// long is a lease that does not run out during a rule.
const long = time.Minute

// blamed returns the promise that was broken first when a holder's lock is gone before the end of its lease.
// In a rule about calls by clients that do not hold the lock, one of these calls removed it; in any
// other rule, the lock was granted, or kept, wrongly.
func (b *bench) blamed() variant.Property {
	if b.property == variant.OwnerOnlyRelease {
		return variant.OwnerOnlyRelease
	}
	return variant.MutualExclusion
}

// held finds out whether a lock keeps a stranger out while its holder has time left.
func (b *bench) held(holder *client, l lockimpl.Lock, after string) error {
	stranger := b.client()
	m, err := stranger.Try(holder.Name(l), b.ttl)
	switch left := time.Until(holder.Until(l)); {
	case err != nil || left <= 0:
		return nil
	default:
		_ = stranger.Release(m)
		return broken(b.blamed(), "%s, another client got the lock %v before the end of the holder's lease", after, left.Round(time.Millisecond))
	}
}

// givesBack has the holder release its lock, which must be there while its lease has time left.
func (b *bench) givesBack(holder *client, l lockimpl.Lock, after string) error {
	for n := range 4 {
		err := holder.Release(l)
		left := time.Until(holder.Until(l)) // now, since the answer may have taken its time
		switch {
		case err == nil:
			return nil
		case errors.Is(err, lockimpl.ErrLost):
			if n > 0 || left <= 0 {
				return nil // the first release may have counted
			}
			return b.goneOrKept(holder, l, after)
		}
		b.sleep(pace)
	}
	b.doubted(time.Time{}, time.Until(holder.Until(l))) // it may never have arrived
	return nil
}

// goneOrKept judges a release that was answered with ErrLost before the end of the lease:
// the lock is gone, or it is still there and its owner cannot release it.
func (b *bench) goneOrKept(holder *client, l lockimpl.Lock, after string) error {
	stranger := b.client()
	m, err := stranger.Try(holder.Name(l), b.ttl)
	left := time.Until(holder.Until(l)).Round(time.Millisecond)
	if err == nil {
		_ = stranger.Release(m)
	}
	if left <= 0 {
		return unjudged("the lease ended meanwhile", broken(b.blamed(), "%s, the holder's release was answered with ErrLost", after))
	}
	if errors.Is(err, lockimpl.ErrHeld) && b.run.promises(variant.Progress, b.faults...) {
		return broken(variant.Progress, "%s, the holder's release was answered with ErrLost %v before the end of its lease, and others are still refused", after, left)
	}
	return broken(b.blamed(), "%s, the holder's own lock was gone %v before the end of its lease", after, left)
}

// intact checks that a holder still has its lock, and then has the holder extend it, if it can be, and release it.
func (b *bench) intact(holder *client, l lockimpl.Lock, after string) error {
	if err := b.held(holder, l, after); err != nil {
		return err
	}
	if b.run.able.extends {
		left := time.Until(holder.Until(l))
		m, err := holder.Extend(l, b.ttl)
		switch {
		case err == nil:
			l = m
		case !errors.Is(err, lockimpl.ErrLost) && time.Now().Add(b.ttl).Before(l.Until):
			l.Until = time.Now().Add(b.ttl) // it may have been carried out
		case errors.Is(err, lockimpl.ErrLost) && time.Until(holder.Until(l)) > 0:
			if err := b.extendsAlone(left); err != nil {
				return err
			}
			return broken(b.blamed(), "%s, the holder's extend was answered with ErrLost %v before the end of its lease", after, left.Round(time.Millisecond))
		}
	}
	return b.givesBack(holder, l, after)
}

// extendsAlone extends two locks whose leases have so much time left: one that nobody else has asked for, and one that another
// client was refused. If that is answered with ErrLost, too, what else the rule did is not the cause.
func (b *bench) extendsAlone(left time.Duration) error {
	for i, what := range []string{"a lock that nobody else had asked for", "a lock that another client had been refused"} {
		c, name := b.client(), fmt.Sprintf("%s-extended-%d", b.name, i)
		l, err := c.Take(name, left, 0)
		if err != nil {
			return nil
		}
		if i > 0 {
			_, _ = b.client().Try(name, b.ttl)
		}
		if _, err := c.Extend(l, b.ttl); errors.Is(err, lockimpl.ErrLost) && time.Until(c.Until(l)) > 0 {
			return broken(b.falseLoss(), "%s was extended to %v, with %v left, which was answered with ErrLost", what, b.ttl, left.Round(time.Second))
		}
	}
	return nil
}

// free checks that a lock is free: a new client acquires it and releases it.
func (b *bench) free(name string, within time.Duration, after string) error {
	c := b.client()
	l, err := c.Take(name, b.ttl, within)
	if err != nil {
		return broken(variant.Progress, "%s, nobody could take the lock: %v", after, err)
	}
	return b.givesBack(c, l, after)
}

// prolonged takes a lock whose holder has died, when its lease is over. If no client can, late calls by an earlier
// holder have prolonged the lease: without them it ends.
func (b *bench) prolonged(name string, within time.Duration, after string) error {
	return b.itsOwn(b.free(name, within, after))
}

// itsOwn names the promise that was broken first when the lease of a holder does not end
// after an earlier holder's late call: progress, if a lease does not end without such a call either.
func (b *bench) itsOwn(err error) error {
	var w *breach
	if !errors.As(err, &w) || w.Property != variant.Progress {
		return err
	}
	switch ends, known := b.run.ends(b); {
	case !known:
		return unjudged("it was not found out whether a lease ends without a late call", err)
	case !ends:
		return err
	}
	return broken(variant.OwnerOnlyRelease, "%v: the earlier holder prolonged a lease that was not its own", err)
}

// ends finds out whether the lock can be taken when its holder has died and the lease is over. It also tries a holder that had waited
// for the lock of a dead one. The answer is unknown if a client gets an error other than ErrHeld. If the lock could be taken, ends
// tries again when some leases have passed, since other rules may have changed the servers.
func (r *run) ends(b *bench) (ends, known bool) {
	r.endsMu.Lock()
	defer r.endsMu.Unlock()
	if r.endsKnown && (!r.ended || time.Since(r.endsAt) < 4*b.ttl) {
		return r.ended, true
	}
	own := b.with(b.name + "-control")
	defer own.close()
	err := own.checked(func(b *bench) error {
		holder, l, err := b.abandoned(b.ttl)
		for range 2 {
			if err != nil {
				return err
			}
			end := holder.Until(l)
			holder = b.client()
			l, err = holder.Take(b.name, b.ttl, time.Until(end))
			l.Until = holder.Until(l)
			holder.Die()
		}
		return err
	})
	var u *lockclient.Ungranted
	refused := errors.As(err, &u) && u.Sure && errors.Is(err, lockimpl.ErrHeld)
	r.ended, r.endsKnown, r.endsAt = err == nil, err == nil || refused, time.Now()
	return r.ended, r.endsKnown
}

// holder returns a new client that holds the lock.
func (b *bench) holder(ttl time.Duration, changes ...change) (*client, lockimpl.Lock, error) {
	return b.takes(b.client(changes...), ttl)
}

// practisedHolder is a holder that has sent every kind of command before.
func (b *bench) practisedHolder(ttl time.Duration) (*client, lockimpl.Lock, error) {
	return b.takes(b.practised(), ttl)
}

// takes has a client take the lock, which is free.
func (b *bench) takes(c *client, ttl time.Duration) (*client, lockimpl.Lock, error) {
	l, err := c.Take(b.name, ttl, 0)
	if err != nil {
		return c, l, broken(variant.Progress, "a free lock was not granted: %v", err)
	}
	return c, l, nil
}

// abandoned returns a lock with a dead holder and a lease that runs out.
func (b *bench) abandoned(ttl time.Duration) (*client, lockimpl.Lock, error) {
	c, l, err := b.holder(ttl)
	if err == nil {
		l.Until = c.Until(l)
		c.Die()
	}
	return c, l, err
}

// next waits for the lease of a holder to run out and takes the lock, which must not be granted before.
func (b *bench) next(holder *client, l lockimpl.Lock, within, ttl time.Duration, what string, changes ...change) (*client, lockimpl.Lock, error) {
	c := b.client(changes...)
	m, err := c.Take(holder.Name(l), ttl, within)
	if err != nil {
		return c, m, broken(variant.Progress, "%s, nobody could take the lock after the lease had run out: %v", what, err)
	}
	if left := time.Until(holder.Until(l)); left > 0 {
		return c, m, broken(variant.MutualExclusion, "%s, a second client got the lock %v before the end of the first one's lease", what, left.Round(100*time.Microsecond))
	}
	return c, m, nil
}

// isLate expects that a lock that reports losses answers ErrLost to an action of a client that has lost it.
func (b *bench) isLate(what string, err error) error {
	if err == nil && b.run.able.tells {
		return broken(variant.OwnerOnlyRelease, "%s was answered with success; want ErrLost", what)
	}
	return nil
}
