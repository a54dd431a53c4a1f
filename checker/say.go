package checker

import (
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"oversell/history"
	"oversell/internal/phrase"
)

// count writes a number with thousands separators: 1,204.
func count[N ~int | ~int32 | ~int64](n N) string { return humanize.Comma(int64(n)) }

// many writes a number with its noun: "1 grant", "1,204 grants".
func many[N ~int | ~int32 | ~int64](n N, noun string) string { return phrase.Count(n, noun) }

// at writes a time of the run or a length of time.
func at(d time.Duration) string { return history.Moment(d) }

func client(op *history.Op) string { return "client " + strconv.Itoa(int(op.Client)) }

// titled is the key of a thing for readers, such as a lock. In a history without keys there
// is one thing of the kind, which has no name: "the lock".
func titled(thing string, key history.Value) string {
	if key == (history.Value{}) {
		return "the " + thing
	}
	return title(key)
}

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
