package lockrules

import (
	"errors"

	"oversell/lockimpl"
	"oversell/lockimpl/lockfinding"
	"oversell/variant"
)

// ExtendedWhole judges the release of an extended lock, inside its lease: the lock that Extend returned must be what Release needs.
// released is the answer to the release.
func ExtendedWhole(granted, extended lockimpl.Lock, released error) error {
	if !errors.Is(released, lockimpl.ErrLost) {
		return nil
	}
	for _, part := range []struct {
		name          string
		before, after string
	}{{"Token", granted.Token, extended.Token}, {"Key", granted.Key, extended.Key}} {
		if part.before != "" && part.after == "" {
			return lockfinding.BrokenInterface("lockimpl.Locker", variant.Progress, "Acquire returned a lock with Lock.%s %q, Extend returned it without, and its release was answered with %q: want the lock with its new Until", part.name, part.before, released)
		}
	}
	return nil
}
