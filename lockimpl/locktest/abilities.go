package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oversell/internal/keyname"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/lockimpl/lockrules"
	"oversell/variant"
)

// abilities are the abilities of a lock that the suite has found. Rules skip what a lock cannot do, and the suite says
// so.
type abilities struct {
	// lease is the shortest lease in the rules.
	lease time.Duration
	// brief says that leases below a second are granted.
	brief bool
	// extends says that Extend is supported.
	extends bool
	// tells says that a release of a lock that is not held is answered with ErrLost.
	tells bool
	// waits says that Acquire keeps trying for Options.Wait.
	waits bool
	// reenters says that a holder that asks again is granted the lock again.
	reenters bool
	// draws says that the lock asks Env.Token for its tokens.
	draws bool
	// hashes says that scripts are sent by their hashes, by way of Env.Redis.
	hashes bool
	// loses says that the lock tells its holder when it is lost.
	loses bool
	// renewed says that the lock tells until when it has renewed a lease.
	renewed bool
	// reached says that the commands of the lock pass the suite's proxies.
	reached bool
	// commands is how many commands the longest call sends to one master.
	commands int
	// shares says that no key has the name of the lock, so that several locks may share one.
	shares bool
}

// The leases in the rules. A lock on several masters has a time limit for each of them
// that is a small part of its lease.
const (
	shortLease   = time.Second
	mastersLease = 2 * time.Second
	briefLease   = 400 * time.Millisecond
)

// probe finds out what the lock can do.
func (r *run) probe(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, ruleLimit)
	defer cancel()
	r.able.lease = shortLease
	if r.lock.Needs.Masters > 1 {
		r.able.lease = mastersLease
	}
	b := &bench{ctx: ctx, run: r, name: name, ttl: r.able.lease}
	defer func() { go b.close() }()
	result := make(chan error, 1)
	go func() { result <- b.checked(r.explore) }()
	select {
	case err := <-result:
		if slow := lockclient.Slowest([]*bench{b}); ctx.Err() != nil && slow != "" && !errors.As(err, new(*breach)) {
			return fmt.Errorf("the lock does not answer in time: %s, and the time of all that is tried at first is %v", slow, ruleLimit)
		}
		return err
	case <-time.After(ruleLimit + commandTimeout):
		return fmt.Errorf("the lock does not answer: %s", cmp.Or(b.stuck(), "no call is under way"))
	}
}

// explore tries each ability.
func (r *run) explore(b *bench) error {
	c, libraries := b.client(), b.calls().Libraries()
	for _, lease := range []time.Duration{b.ttl, long} {
		c := b.client()
		o := lockimpl.Options{TTL: lease, RetryEvery: pace}
		name := fmt.Sprintf("%s-for-%v", b.name, lease)
		l, err := c.Acquire(b.ctx, name, o)
		if err != nil && c.declines(name, o, err) {
			return fmt.Errorf("it answers a lease of %v with an error of its own, and the suite needs leases of %v and %v: %w", lease, b.ttl, long, err)
		}
		if err == nil {
			_ = c.Release(l)
		}
	}
	// The first of each kind of call meets a server that does not know the lock's scripts.
	c.forgetScripts()
	for _, extend := range []bool{false, true} {
		name := fmt.Sprintf("%s-first-%v", b.name, extend)
		first := b.client()
		l, err := first.Take(name, b.ttl, 0)
		if err == nil && extend {
			c.forgetScripts()
			_, _ = first.Extend(l, b.ttl)
		}
		first.Die()
		r.first = append(r.first, name)
		c.forgetScripts()
	}
	r.scriptless = b.releasesLateWithoutScripts()
	own := b.with(b.name + "-refused")
	r.refused = lockrules.OutOfMemory(own.calls())
	own.close()
	own = b.with(b.name + "-forgotten")
	r.forgotten = lockrules.Forgotten(own.calls(), libraries)
	own.close()
	c.Plan(nil)
	c.Hooked.Store(0)
	l, err := c.Take(b.name, long, 0)
	if err != nil {
		if r.promises(variant.Progress) {
			return broken(variant.Progress, "a free lock was not granted: %v", err)
		}
		return fmt.Errorf("a free lock was not granted: %w", err)
	}
	if err := b.grantsBeside(); err != nil {
		return err
	}
	if err := r.looksAt(c, l, b.name); err != nil {
		return err
	}
	able := &r.able
	granted := l
	able.extends = r.canExtend(c, &l)
	able.waits = r.canWait(b)
	able.reenters = r.canReenter(c, b.name)
	if able.reenters {
		r.logf("the lock is re-entrant: a holder that asks again is granted it again")
	}
	// What is wrong with the answer is for the rules to find out, unless it is of the extend.
	if err := lockrules.ExtendedWhole(granted, l, c.Release(l)); err != nil {
		return err
	}
	able.tells = r.canTell(b)
	b.mu.Lock()
	able.hashes = slices.ContainsFunc(b.made, func(c *client) bool { return c.Hashed.Load() })
	b.mu.Unlock()
	able.commands = lockclient.Longest(b.practised().Client, b.client().Client, b.name+"-commands", able.extends)
	able.brief = !r.lock.Needs.WholeSeconds && r.lock.Needs.Masters <= 1 && r.canBeBrief(b)
	return nil
}

// grantsBeside expects, if the lock promises progress, that a free lock is granted while another is held.
func (b *bench) grantsBeside() error {
	if !b.run.promises(variant.Progress) {
		return nil
	}
	other, beside := b.name+"-beside", b.client()
	m, err := beside.TakeWithin(other, b.ttl, 2*b.ttl)
	if err != nil {
		return sameLock("while %q was held, the free lock %q was not granted: %v; nothing else was tried, for the rules need names of their own", b.name, other, err)
	}
	_ = beside.Release(m)
	return nil
}

// looksAt notes what the lock uses, by a client's first grant, of the lock with this name.
func (r *run) looksAt(c *client, l lockimpl.Lock, name string) error {
	able := &r.able
	able.draws = c.TokensRequested() > 0
	able.reached = c.Sent() > 0
	if able.reached {
		keys, err := keyname.Of(c.Ctx, c.Env.Redis[0], name)
		able.shares = err == nil && len(keys) == 0
	}
	_, able.renewed = c.Locker.(lockimpl.Renewer)
	if notifier, tells := c.Locker.(lockimpl.LossNotifier); tells {
		able.loses = notifier.Lost(l) != nil
	}
	switch {
	case !able.reached && c.Hooked.Load() == 0:
		return errors.New("the lock was granted without a command to a server of the suite; build it with the clients in Env.Redis, or connect it to Env.Addr")
	case c.Hooked.Load() == 0:
		r.logf("the lock uses a Redis client of its own, which reaches the server by Env.Addr")
	}
	if slices.Contains(r.lock.Promises, variant.OwnerOnlyRelease) && !lockfinding.Exclusive(r.lock) {
		r.logf("owner-only-release was not judged: %s", lockfinding.Shared)
	}
	if !able.draws {
		r.logf("the lock does not ask Env.Token for its tokens: tokens that resemble each other were not tried")
	}
	return nil
}

// releasesLateWithoutScripts has earlier holders release when another has the lock and the server has forgotten all
// scripts, as after a restart: a release that then loads its script must still check the owner of the lock. It reports
// only what no other rule does.
func (b *bench) releasesLateWithoutScripts() error {
	for _, over := range []bool{false, true} {
		if over && b.run.lock.Renews {
			continue // its lease does not run out while it lives
		}
		own := b.with(fmt.Sprintf("%s-scriptless-%v", b.name, over))
		own.property = variant.OwnerOnlyRelease
		err := own.releaseLateWithoutScripts(over)
		own.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// releaseLateWithoutScripts lets the first holder's lease run out if over, and has it released otherwise.
func (b *bench) releaseLateWithoutScripts(over bool) error {
	ttl := long
	if over {
		ttl = b.ttl
	}
	owner, old, err := b.holder(ttl)
	if err != nil {
		return nil
	}
	if !over && owner.Release(old) != nil {
		return nil
	}
	next := b.client()
	l, err := next.Take(b.name, long, 2*b.ttl)
	if err != nil {
		return nil
	}
	owner.forgetScripts()
	_ = owner.Release(old)
	return b.intact(next, l, "after a late release by an earlier holder, on a server that knew no scripts, as after a restart")
}

// forgetScripts has the servers forget all scripts. It must not run beside a rule, whose commands are counted.
func (c *client) forgetScripts() {
	for _, rdb := range c.Env.Redis {
		_ = rdb.ScriptFlush(c.b.ctx).Err()
	}
}

// canExtend reports whether the lock supports Extend. If it does not, Extend returns errors.ErrUnsupported, or fails each
// time with an error of the lock's own before any command is sent. If the lock is extended, canExtend updates *l.
func (r *run) canExtend(c *client, l *lockimpl.Lock) bool {
	counts := func() int64 { return int64(c.Sent()) + c.Hooked.Load() }
	before, own := counts(), true
	var err error
	for range 5 {
		var m lockimpl.Lock
		if m, err = c.Extend(*l, long); err == nil {
			*l = m
			return true
		}
		if text := strings.ToLower(err.Error()); errors.Is(err, errors.ErrUnsupported) || strings.Contains(text, "support") || strings.Contains(text, "implement") {
			r.logf("the lock does not extend (%v): rules about extending were skipped", err)
			return false
		}
		own = own && !errors.Is(err, lockimpl.ErrLost) && !errors.Is(err, context.DeadlineExceeded)
		c.b.sleep(pace)
	}
	if own && before > 0 && counts() == before {
		r.logf("Extend is answered with an error, and sends nothing (%v): the lock does not extend, and rules about extending were skipped", err)
		return false
	}
	return true // what is wrong with it is for the rules to find out
}

func (r *run) canWait(b *bench) bool {
	c := b.client()
	for _, wait := range []time.Duration{300 * time.Millisecond, 1100 * time.Millisecond} { // some wait for whole seconds
		start := time.Now()
		_, err := c.Acquire(b.ctx, b.name, lockimpl.Options{TTL: b.ttl, Wait: wait, RetryEvery: pace})
		took := time.Since(start)
		if err == nil || took >= wait/2 {
			return true
		}
		r.logf("Acquire returned after %v (%v) though Options.Wait is %v: the lock does not wait, so the suite tries again for it", took.Round(time.Millisecond), err, wait)
	}
	return false
}

// canReenter asks again for a lock that the client holds, and releases that grant.
func (r *run) canReenter(c *client, name string) bool {
	l, err := c.Try(name, long)
	if err != nil {
		return false
	}
	_ = c.Release(l)
	return true
}

func (r *run) canTell(b *bench) bool {
	c := b.client()
	l, err := c.Take(b.name+"-twice", long, 0)
	if err != nil {
		return true
	}
	_ = c.Release(l)
	if err := c.Release(l); err == nil {
		r.logf("a second Release of the same lock was answered with success: the lock does not tell that it is lost, so only the effects of late calls were judged")
		return false
	}
	return true
}

func (r *run) canBeBrief(b *bench) bool {
	c := b.client()
	var err error
	for range 3 {
		var l lockimpl.Lock
		if l, err = c.Try(b.name+"-brief", briefLease); err == nil {
			_ = c.Release(l)
			return true
		}
	}
	r.logf("a lease of %v was not granted (%v): leases are whole seconds", briefLease, err)
	return false
}
