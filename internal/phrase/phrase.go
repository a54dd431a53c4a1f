// Package phrase formats parts of sentences: a number with its noun, the error of a clock, and a text on one line.
package phrase

import (
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
)

// Count returns a number and its noun: "1 grant", "1,204 grants".
func Count[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n != 1 {
		noun = Plural(noun)
	}
	return humanize.Comma(int64(n)) + " " + noun
}

// plurals are the plurals that do not follow the rules of package english.
var plurals = map[string]string{
	"entry into the critical section": "entries into the critical section",
	"number given out":                "numbers given out",
	"release or extension":            "releases and extensions",
	"search":                          "searches",
}

// Plural returns the plural of a noun.
func Plural(noun string) string { return english.PluralWord(2, noun, plurals[noun]) }

// Were is "was" for one thing and "were" for any other number.
func Were(n int64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// Clock says whether a clock that is ahead by so much is right: "1h0m0s ahead", "1h0m0s behind" or "right".
func Clock(ahead time.Duration) string {
	switch {
	case ahead > 0:
		return ahead.String() + " ahead"
	case ahead < 0:
		return (-ahead).String() + " behind"
	}
	return "right"
}

// OneLine returns a text with each run of white space replaced by one space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ShellWord quotes a text so that a shell takes it for one word.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+=:,@%", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
