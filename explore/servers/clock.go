package servers

import (
	"time"

	"oversell/clock"
)

// Epoch is [clock.SearchEpoch].
var Epoch = clock.SearchEpoch

// TickUnit is the resolution of the search's clock.
const TickUnit = time.Microsecond

// RoundUp rounds d up to whole units of the search's clock.
func RoundUp(d time.Duration) time.Duration { return (d + TickUnit - 1) / TickUnit * TickUnit }

// Horizon is the end of the search's clock: past the end of the hour with which it begins. Keys that live longer
// never expire in a search.
const Horizon = 70 * time.Minute
