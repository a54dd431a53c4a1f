package clock

import "time"

// SearchEpoch is the time 0 of every search: a whole second, so that leases of whole seconds end on whole seconds. The hour
// with which it begins is the last of a day, a week, a month and a year. It lies in the past: if a program computes the
// end of a lease from another clock, such as the real one, that end is after the end of the search.
var SearchEpoch = time.Date(2023, 12, 31, 23, 0, 0, 0, time.UTC)
