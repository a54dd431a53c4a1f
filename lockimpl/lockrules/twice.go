package lockrules

import (
	"errors"
	"fmt"
	"time"

	"oversell/internal/phrase"
	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// Twice are cases in which a holder takes its own lock once more, extends or releases one of the two grants, and dies. Others
// are kept out until the later end of the grants that it still has, and then one of them gets the lock.
var Twice = func() (cases []Case) {
	for _, first := range []bool{true, false} {
		which := map[bool]string{true: "the first", false: "the second"}[first]
		for _, c := range []struct {
			name string
			twice
		}{
			{"extended for less", twice{extend: 1}},
			{"extended for longer", twice{extend: 4}},
			{"released", twice{release: true}},
			{"extended for longer and released", twice{extend: 4, release: true}},
			{"released, and the other extended", twice{release: true, extend: 4, other: true}},
		} {
			c.first = first
			cases = append(cases, Case{which + " of two grants is " + c.name, func(b Bench) error { return b.twice(c.twice) }})
		}
	}
	return append(cases,
		Case{"one of three grants is left", func(b Bench) error { return b.twice(twice{more: 1, release: true}) }},
		Case{"one of five grants is left", func(b Bench) error { return b.twice(twice{more: 3, release: true, first: true}) }},
		Case{"the shorter of two grants is left", func(b Bench) error { return b.twice(twice{leases: [2]int{1, 2}, release: true}) }},
		Case{"the longer of two grants is left", func(b Bench) error { return b.twice(twice{leases: [2]int{1, 2}, release: true, first: true}) }},
		Case{"the first of two grants is released twice", func(b Bench) error { return b.twice(twice{release: true, again: true, first: true}) }},
		Case{"the second of two grants is released twice", func(b Bench) error { return b.twice(twice{release: true, again: true}) }})
}()

// twice is what is done to one of two grants. Times are numbers of leases.
type twice struct {
	leases  [2]int // 0: 3 each, or 1 each if none is extended
	more    int    // how many further grants, for a lease each, the holder takes after the two, and releases at once
	first   bool   // to the first grant, and not to the second
	extend  int    // unless 0: for how long it is extended
	release bool
	again   bool // the same grant is released once more, which must have no effect; not tried if both grants have one token
	other   bool // what is extended is the other one, after the release
}

func (b Bench) twice(t twice) error {
	if t.extend > 0 && !b.Extends || b.Renews {
		return nil
	}
	for i := range t.leases {
		if t.leases[i] == 0 && t.extend > 0 {
			t.leases[i] = 3
		}
		t.leases[i] = max(t.leases[i], 1)
	}
	holder, err := b.client()
	if err != nil {
		return err
	}
	var grants [2]lockimpl.Lock
	for i, leases := range t.leases {
		if grants[i], err = holder.Take(b.Name, time.Duration(leases)*b.TTL, 0); err != nil {
			return nil // another rule's business
		}
	}
	if err := b.more(holder, t.more); err != nil {
		return nil // another rule's business
	}
	one, two := 1, 0 // the grant that it is done to, and the other
	if t.first {
		one, two = 0, 1
	}
	had := [2]bool{true, true} // which grants the holder still has
	longest := time.Duration(max(t.leases[0], t.leases[1])) * b.TTL
	extend := func(i int) error {
		by := time.Duration(t.extend) * b.TTL
		longest = max(longest, by)
		m, err := holder.Extend(grants[i], by)
		if errors.Is(err, lockimpl.ErrLost) && time.Until(holder.Until(grants[i])) > 0 {
			return lockfinding.Broken(variant.MutualExclusion, "a holder that has taken the lock twice extended one of the two grants%s, and was told %q before the end of its lease", map[bool]string{true: ", after a release of the other", false: ""}[t.other], err)
		}
		if err == nil {
			grants[i] = m
		}
		return err
	}
	if t.extend > 0 && !t.other {
		if err := extend(one); err != nil {
			return breachOnly(err)
		}
	}
	if t.release {
		had[one] = false
		if err := holder.Release(grants[one]); err != nil && !errors.Is(err, lockimpl.ErrLost) {
			return nil // it may not have arrived
		}
		if t.again && grants[one].Token == grants[two].Token {
			return nil
		}
		if t.again {
			_ = holder.Release(grants[one]) // it is lost
		}
	}
	if t.other {
		if err := extend(two); err != nil {
			return breachOnly(err)
		}
	}
	return b.leaves(holder, grants, had, longest, t)
}

// more has a holder take its lock more often, and release those grants.
func (b Bench) more(holder *lockclient.Client, n int) error {
	var grants []lockimpl.Lock
	for range n {
		l, err := holder.Take(b.Name, b.TTL, 0)
		if err != nil {
			return err
		}
		grants = append(grants, l)
	}
	for _, l := range grants {
		if err := holder.Release(l); err != nil && !errors.Is(err, lockimpl.ErrLost) {
			return err
		}
	}
	return nil
}

// leaves has the holder die, and expects that others get the lock when the last of the grants that it still had is over. longest is
// its longest lease, which began a moment ago.
func (b Bench) leaves(holder *lockclient.Client, grants [2]lockimpl.Lock, had [2]bool, longest time.Duration, t twice) error {
	var last lockimpl.Lock
	for i, l := range grants {
		if l.Until = holder.Until(l); had[i] && l.Until.After(last.Until) {
			last = l
		}
	}
	holder.Die()
	return b.next(last, longest, fmt.Sprintf("after its holder had taken the lock twice, %s, and died", t.describe(b)))
}

// describe returns the leases of the grants and the calls made on them, for a message.
func (t twice) describe(b Bench) string {
	which, other := "second", "first"
	if t.first {
		which, other = other, which
	}
	by := time.Duration(t.extend) * b.TTL
	s := fmt.Sprintf("for leases of %v and %v", time.Duration(t.leases[0])*b.TTL, time.Duration(t.leases[1])*b.TTL)
	if t.more > 0 {
		s += fmt.Sprintf(", then %s more and released those grants", phrase.Count(t.more, "time"))
	}
	if t.extend > 0 && !t.other {
		s += fmt.Sprintf(", extended the %s grant to %v", which, by)
	}
	if t.release {
		s += fmt.Sprintf(", released the %s grant", which)
	}
	if t.again {
		s += " twice"
	}
	if t.other {
		s += fmt.Sprintf(", extended the %s grant to %v", other, by)
	}
	return s
}

// breachOnly returns err if it is about a broken promise.
func breachOnly(err error) error {
	if errors.As(err, new(*lockfinding.Breach)) {
		return err
	}
	return nil
}
