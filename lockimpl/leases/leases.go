// Package leases lists lengths of leases, and extensions of them, with which package locktest tests a lock: those that change
// if a lock cuts or rounds leases, caps them, or adds them up.
package leases

import (
	"slices"
	"time"
)

const day = 24 * time.Hour

// Odd are lengths that change if a lock truncates or rounds leases to seconds, to tenths, or to hundredths.
var Odd = []time.Duration{1500 * time.Millisecond, 1300 * time.Millisecond, 1237 * time.Millisecond}

// broken are lengths with a fraction of a second: some have a fraction of a millisecond, some end a few milliseconds after
// whole seconds, and some are long, so that a lock may keep them in whole seconds or minutes.
var broken = []time.Duration{
	time.Second / 3, 10 * time.Second / 3, 1050 * time.Millisecond, 1007 * time.Millisecond, 12*time.Second + 5*time.Millisecond,
	107*time.Second + 930*time.Millisecond, 29*time.Minute + 31*time.Second + 870*time.Millisecond, 23*time.Hour + 59*time.Minute + 987*time.Millisecond, 40*day + 11*time.Second + 137*time.Millisecond, 6*time.Hour + 47*time.Second + 910*time.Millisecond, 3*day + 59*time.Second + 890*time.Millisecond,
	1999 * time.Millisecond, 2499 * time.Millisecond, 618 * time.Millisecond,
}

// Lease is the course of one lease.
type Lease struct {
	TTL        time.Duration
	Extensions []Extension
}

// Extension is one extension: the time after which it is made, and the lease that is asked for.
type Extension struct{ After, By time.Duration }

// Long returns leases that are too long to test on the real clock, and short ones for a lock that takes leases which are no
// whole seconds (brief). Some are extended if the lock can be (extends).
func Long(brief, extends bool) []Lease {
	all := []Lease{
		{TTL: 15 * time.Second}, {TTL: 45 * time.Second}, {TTL: 11 * time.Minute}, {TTL: 100 * time.Minute}, {TTL: 26 * time.Hour}, {TTL: 40 * day}, {TTL: 60 * day},
		{TTL: 107 * time.Second}, {TTL: 29*time.Minute + 31*time.Second}, {TTL: 6*time.Hour + 47*time.Second}, {TTL: 3*day + 59*time.Second}, // no whole minutes, hours or days
	}
	if brief {
		for _, ttl := range slices.Concat(Odd, broken) {
			all = append(all, Lease{TTL: ttl})
			if extends {
				all = append(all, Lease{time.Second, []Extension{{700 * time.Millisecond, ttl}}})
			}
		}
	}
	if extends {
		all = append(all, extended...)
	}
	return all
}

var extended = []Lease{
	{15 * time.Second, []Extension{{10 * time.Second, 15 * time.Second}}},
	{10 * time.Second, []Extension{{5 * time.Second, time.Minute}}},
	{10 * time.Second, []Extension{{time.Second, 10 * time.Second}, {90 * time.Millisecond, 10 * time.Second}}},
	{20 * time.Second, []Extension{{time.Second, 20 * time.Second}, {9 * time.Millisecond, 20 * time.Second}, {0, 20 * time.Second}}},
	{100 * time.Second, []Extension{{97 * time.Second, 100 * time.Second}, {99500 * time.Millisecond, 20 * time.Second}}}, // late
	{time.Minute, []Extension{{20 * time.Second, 20 * time.Second}}},                                                      // it ends sooner than before
	{26 * time.Hour, []Extension{{time.Minute, 20 * time.Second}}},
	{10 * time.Minute, []Extension{{time.Minute, 2*time.Hour + 59*time.Second}, {time.Hour, 3*day + 59*time.Minute}}},
	{20 * time.Second, []Extension{{15 * time.Second, 20 * time.Second}, {15 * time.Second, 20 * time.Second}, {15 * time.Second, 30 * time.Second}, {25 * time.Second, 20 * time.Second}}},
	{2 * time.Hour, slices.Repeat([]Extension{{time.Hour, 2 * time.Hour}}, 12)},
	{10 * time.Second, slices.Repeat([]Extension{{5 * time.Second, 10 * time.Second}}, 300)},
	// Together they are longer than an hour, a day, and a month: what is not extended with the lease is over.
	{10 * time.Minute, slices.Repeat([]Extension{{9 * time.Minute, 10 * time.Minute}}, 8)},
	{4 * time.Hour, slices.Repeat([]Extension{{3 * time.Hour, 4 * time.Hour}}, 9)},
	{8 * day, slices.Repeat([]Extension{{7 * day, 8 * day}}, 6)},
}
