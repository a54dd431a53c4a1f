package checker

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oversell/history"
)

// count writes a number with thousands separators: 1,204.
func count[N ~int | ~int32 | ~int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// many writes a number with its noun: "1 grant", "1,204 grants".
func many[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case noun == "release or extension":
		noun = "releases and extensions"
	case strings.HasSuffix(noun, "y"):
		noun = noun[:len(noun)-1] + "ies"
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"):
		noun += "es"
	default:
		noun += "s"
	}
	return count(n) + " " + noun
}

// at writes a time of the run or a length of time: in milliseconds below ten
// seconds, in seconds from there on, always with three decimals.
func at(d time.Duration) string {
	if d == history.Forever {
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
	micro := (d + unit/2000) / (unit / 1000) // thousandths of the unit, rounded
	return fmt.Sprintf("%s%s.%03d %s", sign, count(int64(micro/1000)), int64(micro%1000), name)
}

func client(op *history.Op) string { return "client " + strconv.Itoa(int(op.Client)) }

// title is a key for readers: quoted, and without the run's prefix in braces.
func title(key history.Value) string {
	s := key.String()
	if i := strings.IndexByte(s, '{'); i >= 0 {
		if j := strings.IndexByte(s[i:], '}'); j >= 0 && len(s) > j+1 {
			s = s[:i] + s[i+j+1:]
		}
	}
	return strconv.Quote(s)
}

// via is how a lock was granted, if the lock tells it.
func via(op *history.Op) string {
	if op.Result == (history.Value{}) {
		return ""
	}
	return " by " + op.Result.String()
}
