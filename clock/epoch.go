package clock

import "time"

// SearchEpoch is the time 0 of every search: a whole second, so that leases of whole seconds end on whole seconds. The hour
// with which it begins is the last of a day, a week, a month and a year. It is past, so a program that goes by another clock
// gives ends of leases beyond the end of the search's.
var SearchEpoch = time.Date(2023, 12, 31, 23, 0, 0, 0, time.UTC)
