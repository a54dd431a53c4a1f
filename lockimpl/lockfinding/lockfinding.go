// Package lockfinding describes what a conformance suite found out about a lock: a promise that was broken, or
// something that could not be judged. It also has the wording of reports about it.
package lockfinding

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"oversell/lockimpl"
	"oversell/lockimpl/lockclient"
	"oversell/variant"
)

// Breach is a broken promise.
type Breach struct {
	Property variant.Property
	// Interface, unless empty, is what the lock implements and does not keep to. Property is the promise
	// with which that is judged.
	Interface string
	Basis     bool // without it, nothing else can be judged
	Refused   bool // some client was answered with ErrHeld
	Waited    bool // some client waited until its time was over
	// Since is the time from which on a client asked for a lock and was not granted it; zero: it is not
	// known.
	Since time.Time
	Sure  bool // that was for as long as it takes on a machine that answers in time
	text  string
}

func (b *Breach) Error() string { return b.text }

// Broken reports that a promise was not kept, which need not be the one that the rule
// was made for.
func Broken(p variant.Property, format string, args ...any) error { return breachOf(p, format, args) }

// SameLock reports that a lock was refused because another name is held. The rules need
// names of their own.
func SameLock(format string, args ...any) error {
	b := breachOf(variant.Progress, format, args)
	b.Basis = true
	return b
}

// BrokenInterface reports that a lock does not keep to an interface that it implements.
func BrokenInterface(iface string, p variant.Property, format string, args ...any) error {
	b := breachOf(p, format, args)
	b.Interface = iface
	return b
}

func breachOf(p variant.Property, format string, args []any) *Breach {
	b := &Breach{Property: p, text: fmt.Sprintf(format, args...)}
	for _, a := range args {
		err, ok := a.(error)
		if !ok {
			continue
		}
		var u *lockclient.Ungranted
		var w *Breach
		switch {
		case errors.As(err, &w):
			b.Refused, b.Waited, b.Since, b.Sure = w.Refused, w.Waited, w.Since, w.Sure
		case errors.As(err, &u):
			late := errors.Is(u.Last, context.DeadlineExceeded) || errors.Is(u.Last, os.ErrDeadlineExceeded)
			b.Waited, b.Since, b.Sure = late, u.Since, u.Sure
		}
		b.Refused = b.Refused || errors.Is(err, lockimpl.ErrHeld)
	}
	return b
}

// unjudged is the result of a rule that could not be judged: nil, or a promise that may be broken.
type unjudged struct {
	why  string
	err  error
	slow bool // the machine and the servers answered in time
}

func (u *unjudged) Error() string {
	if u.err == nil {
		return "not judged, since " + u.why
	}
	return fmt.Sprintf("not judged, since %s: %v", u.why, u.err)
}

func (u *unjudged) Unwrap() error { return u.err }

// Unjudged reports that something could not be judged, and why. err is nil, or what may be a broken promise.
func Unjudged(why string, err error) error { return &unjudged{why, err, false} }

// Slow is Unjudged on a machine and with servers that answered in time: the lock takes too long.
func Slow(why string, err error) error { return &unjudged{why, err, true} }

// IsUnjudged tells whether an error says that something could not be judged.
func IsUnjudged(err error) bool {
	var u *unjudged
	return errors.As(err, &u)
}

// OnlyBusy reports whether a rule could not be judged only because the machine was too busy. It is false if the
// promise may be broken: a client was refused, or the promise is not progress.
func OnlyBusy(err error) bool {
	var w *Breach
	return IsUnjudged(err) && (!errors.As(err, &w) || w.Property == variant.Progress && !w.Refused)
}

// Told returns the sentence about an error: a broken promise, or the reason why a rule was not tried. when describes
// the circumstances in which it was found.
func Told(lock string, err error, when string) string {
	var b *Breach
	var u *unjudged
	switch {
	case errors.As(err, &u) && u.slow:
		return fmt.Sprintf("inconclusive: a rule about lock %s was %v; no promise was found broken in several attempts. The machine and the servers answered in time, so the calls of the lock take too long", lock, err)
	case IsUnjudged(err):
		return fmt.Sprintf("inconclusive: a rule about lock %s was %v; no promise was found broken in several attempts. Run the test again, on a less busy machine", lock, err)
	case errors.As(err, &b) && b.Interface != "":
		return fmt.Sprintf("lock %s implements %s, but does not keep to it%s (judged with %s): %v", lock, b.Interface, when, b.Property, err)
	case errors.As(err, &b):
		return fmt.Sprintf("lock %s promises %s, but%s: %v", lock, b.Property, when, err)
	}
	return fmt.Sprintf("lock %s could not be tried%s: %v", lock, when, err)
}

// Shared says why owner-only-release is not judged for a lock that promises no mutual exclusion.
const Shared = "a lock that does not promise mutual-exclusion may have several holders, so the effect of a release on another holder is not known"

// Exclusive reports whether a lock has one holder at a time: whether it promises mutual exclusion, whatever its flaws.
func Exclusive(lock lockimpl.Variant) bool {
	return slices.Contains(lock.Promises, variant.MutualExclusion)
}
