package servers

import (
	"strconv"
	"time"
)

// instant is a point in time that is stored as a number of units.
type instant struct{ At, Unit time.Duration }

// instants returns the numbers in a text that can be points in time within the search: seconds,
// milliseconds, microseconds or nanoseconds since 1970. The search begins at epoch.
func instants(text string, epoch time.Duration) (all []instant) {
	for i := 0; i < len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		end := i
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		for digits, unit := range map[int]time.Duration{10: time.Second, 13: time.Millisecond, 16: time.Microsecond, 19: time.Nanosecond} {
			if end-i != digits {
				continue
			}
			n, err := strconv.ParseInt(text[i:end], 10, 64)
			if is := time.Duration(n)*unit - epoch; err == nil && is >= 0 && is <= Horizon {
				all = append(all, instant{is, max(unit, TickUnit)})
			}
		}
		i = end
	}
	return all
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// InstantsIn returns the points in time within the search that a text may hold.
func (s *Servers) InstantsIn(text string) []instant { return instants(text, s.epoch) }
