package explore

import "time"

// Epoch is the time 0 of every search: a whole second, so that leases of whole
// seconds come out even.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tickUnit is the resolution of the search's clock.
const tickUnit = time.Microsecond

// roundUp is d in whole units of the search's clock.
func roundUp(d time.Duration) time.Duration { return (d + tickUnit - 1) / tickUnit * tickUnit }

// horizon is how far the search's clock goes: past the end of the hour with which it begins. Keys that live longer
// never expire in a search.
const horizon = 70 * time.Minute
