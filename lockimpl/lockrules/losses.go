package lockrules

import (
	"bytes"
	"errors"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/wire"
)

// Losses are cases in which a client loses a lock that is renewed in the background: a renewal is held up until the lease is
// over and another client has the lock. The renewals of its other locks go on, and so do those of the same lock when it has
// taken it again.
var Losses = []Case{
	{"a lock that was taken before the one that is lost", func(b Bench) error {
		return b.renewed(5, "after its client had lost another lock, which it had taken later", func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
			kept, err := c.Take(name, 3*b.TTL, 0)
			if err != nil {
				return kept, err
			}
			return kept, b.loses(c, name+"-lost", false, func() error { return nil }, nil)
		})
	}},
	{"a lock that was taken after the one that is lost", func(b Bench) error {
		return b.renewed(5, "after its client had lost another lock, which it had taken before", func(c *lockclient.Client, name string) (kept lockimpl.Lock, err error) {
			return kept, b.loses(c, name+"-lost", false, func() (err error) { kept, err = c.Take(name, 3*b.TTL, 0); return err }, nil)
		})
	}},
	{"the lock that was lost, taken again", func(b Bench) error { return b.takenAgain(false, false) }},
	{"the lock that was lost to nobody, taken again", func(b Bench) error { return b.takenAgain(true, false) }},
	{"the lock that was lost, taken again, and a late release", func(b Bench) error { return b.takenAgain(false, true) }},
}

// takenAgain takes a lock again that its client has lost.
func (b Bench) takenAgain(toNobody, late bool) error {
	return b.renewed(3, "after its client had lost it and taken it again", func(c *lockclient.Client, name string) (lockimpl.Lock, error) {
		var first, l lockimpl.Lock
		err := b.loses(c, name, toNobody, func() error { return nil }, &first)
		if err == nil {
			l, err = c.Take(name, b.TTL, 0)
		}
		if err == nil && late {
			_ = c.Release(first) // it is lost
		}
		return l, err
	})
}

// loses has a client acquire a lock and then lose it, and calls meanwhile in between. Another client acquires the lock
// when the lease is over, and releases it at the end or, if toNobody, before the first client goes on. Unless lost is
// nil, loses stores the first client's lock in *lost.
func (b Bench) loses(c *lockclient.Client, name string, toNobody bool, meanwhile func() error, lost *lockimpl.Lock) error {
	other, err := b.client()
	if err != nil {
		return err
	}
	l, err := c.Take(name, b.TTL, 0)
	if err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	if lost != nil {
		*lost = l
	}
	over := make(chan struct{})
	s := c.StalledWhen(func(cmd wire.Command) bool { return mentions(cmd, name) }, func() {
		select {
		case <-over:
		case <-time.After(3 * b.TTL):
		case <-b.Ctx.Done():
		}
	})
	if s == nil {
		return errNoRenewal
	}
	m, err := other.TakeWithin(name, long, 2*b.TTL)
	if err == nil && toNobody {
		err = other.Release(m)
	}
	close(over)
	s.GoOn()
	if err != nil || !b.pass(b.TTL) { // by then it has noticed
		return errNoRenewal
	}
	if !toNobody {
		err = other.Release(m)
	}
	return err
}

// errNoRenewal says that the client has not lost the lock.
var errNoRenewal = errors.New("no renewal of the lock could be held up until it was lost")

// mentions reports whether a command has the name of a lock in an argument.
func mentions(cmd wire.Command, name string) bool {
	for _, arg := range cmd.Args {
		if bytes.Contains(arg, []byte(name)) {
			return true
		}
	}
	return false
}
