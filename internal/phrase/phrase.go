// Package phrase words what sentences everywhere are made of: how many there are of
// something, and a text on one line.
package phrase

import (
	"strings"
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

// plurals are those that are not made by the rules of package english.
var plurals = map[string]string{
	"entry into the critical section": "entries into the critical section",
	"number given out":                "numbers given out",
	"release or extension":            "releases and extensions",
	"search":                          "searches",
}

// Plural returns the plural of a noun.
func Plural(noun string) string { return english.PluralWord(2, noun, plurals[noun]) }

// OneLine is a text with single spaces for all its white space.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ShellWord returns a text as a shell takes it for one word.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+=:,@%", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
