package history

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"
)

// FormatTime writes a time of a run or a duration, as in all sentences about histories:
// in milliseconds below ten seconds, in seconds from there on, always with three decimals.
func FormatTime(d time.Duration) string {
	if d == Forever {
		return "the end of time"
	}
	unit, name := time.Millisecond, "ms"
	if d >= 10*time.Second || d <= -10*time.Second {
		unit, name = time.Second, "s"
	}
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	thousandths := (d + unit/2000) / (unit / 1000) // rounded
	return fmt.Sprintf("%s%s.%03d %s", sign, humanize.Comma(int64(thousandths/1000)), int64(thousandths%1000), name)
}

// group writes a number with a comma between thousands.
func group(n int) string { return humanize.Comma(int64(n)) }
