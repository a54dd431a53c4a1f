// Package say formats the parts of verdict sentences: numbers, times, clients and keys.
package say

import (
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"oversell/history"
	"oversell/internal/phrase"
)

// Thousands writes a number with thousands separators: 1,204.
func Thousands[N ~int | ~int32 | ~int64](n N) string { return humanize.Comma(int64(n)) }

// Count writes a number with its noun: "1 grant", "1,204 grants".
func Count[N ~int | ~int32 | ~int64](n N, noun string) string { return phrase.Count(n, noun) }

// Times writes how often: "once", "twice", "3 times".
func Times(n int64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return Thousands(n) + " times"
}

// At writes a time of the run or a duration.
func At(d time.Duration) string { return history.FormatTime(d) }

// Client names the client of an operation: "client 3".
func Client(op *history.Op) string { return "client " + strconv.Itoa(int(op.Client)) }

// Titled returns the name of an object, such as a lock, in a sentence: its key. In a history without keys there is one
// object of the kind, without a name: "the lock".
func Titled(thing string, key history.Value) string {
	if key == (history.Value{}) {
		return "the " + thing
	}
	return Title(key)
}

// Title returns a key for a sentence: quoted, and without the run's prefix in braces.
func Title(key history.Value) string {
	s := key.String()
	if i := strings.IndexByte(s, '{'); i >= 0 {
		if j := strings.IndexByte(s[i:], '}'); j >= 0 && len(s) > j+1 {
			s = s[:i] + s[i+j+1:]
		}
	}
	return strconv.Quote(s)
}

// Via returns how a lock was granted, if the lock tells it.
func Via(op *history.Op) string {
	if op.Result == (history.Value{}) {
		return ""
	}
	return " by " + op.Result.String()
}
