package lockclient

import (
	"slices"
	"time"

	"oversell/lockimpl"
)

// Grain is how much earlier than by the client's clock a lease may end: a server may count in whole milliseconds, and
// round down both the start of the lease and the present time.
const Grain = time.Millisecond

// Looks returns the times at which to check whether a lease keeps others out: after the units to
// which an implementation might have capped or cut it, and at fractions of it.
func Looks(length time.Duration) (all []time.Duration) {
	for _, at := range []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	} {
		all = append(all, at+500*time.Millisecond)
	}
	all = append(all, length/4, length/2, length*9/10, length-1200*time.Millisecond, length-20*time.Millisecond, length-3*Grain)
	all = slices.DeleteFunc(all, func(at time.Duration) bool { return at <= 0 || at >= length })
	slices.Sort(all)
	return slices.Compact(all)
}

// SameGrant tells whether nothing but the name tells two grants apart, as with tokens that are counted
// for each name.
func SameGrant(one, two lockimpl.Lock) bool {
	if one.Token != "" || two.Token != "" {
		return one.Token == two.Token
	}
	return one.Fence == two.Fence && one.Fence != 0
}
