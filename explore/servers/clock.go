package servers

import "time"

// Epoch is the time 0 of every search: a whole second, so that leases of whole seconds end on whole seconds. The hour with
// which it begins is the last of a day, a week, a month and a year.
var Epoch = time.Date(2028, 12, 31, 23, 0, 0, 0, time.UTC)

// TickUnit is the resolution of the search's clock.
const TickUnit = time.Microsecond

// RoundUp rounds d up to whole units of the search's clock.
func RoundUp(d time.Duration) time.Duration { return (d + TickUnit - 1) / TickUnit * TickUnit }

// Horizon is the end of the search's clock: past the end of the hour with which it begins. Keys that live longer
// never expire in a search.
const Horizon = 70 * time.Minute
