package servers

import "time"

// Epoch is the time 0 of every search: a whole second, so that leases of whole
// seconds come out even.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TickUnit is the resolution of the search's clock.
const TickUnit = time.Microsecond

// RoundUp is d in whole units of the search's clock.
func RoundUp(d time.Duration) time.Duration { return (d + TickUnit - 1) / TickUnit * TickUnit }

// Horizon is how far the search's clock goes: past the end of the hour with which it begins. Keys that live longer
// never expire in a search.
const Horizon = 70 * time.Minute
