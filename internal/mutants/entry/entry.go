// Package entry describes the entries of the catalogue in package mutants.
package entry

import (
	"strconv"
	"strings"

	"oversell/variant"
)

// Entry describes an implementation.
type Entry struct {
	Name string
	// Mechanism describes the fault in a sentence; for a sound one, the unusual part.
	Mechanism string
	// Breaks are the promises, or Contract, of which a suite should name one; none for a sound one.
	Breaks []variant.Property
	// Source is the thread in which the bug was published, or the home of the library; empty if the mutant is ours. The
	// code is always ours.
	Source string
}

// Contract stands for the promises that every implementation makes: what the interface says.
const Contract variant.Property = "contract"

// New returns an entry.
func New(name, mechanism string, breaks []variant.Property, source string) Entry {
	return Entry{Name: name, Mechanism: mechanism, Breaks: breaks, Source: source}
}

// Sound reports whether it has no fault.
func (e Entry) Sound() bool { return len(e.Breaks) == 0 }

// Breaks makes Entry.Breaks.
func Breaks(ps ...variant.Property) []variant.Property { return ps }

// Changed returns text with from replaced by to. It panics unless from occurs exactly once.
func Changed(text, from, to string) string {
	if strings.Count(text, from) != 1 {
		panic("the passage to change does not stand in the text once: " + from)
	}
	return strings.Replace(text, from, to, 1)
}

// AsNumber writes a name that is a number as JSON does: different names may come out the same.
func AsNumber(name string) string {
	f, err := strconv.ParseFloat(name, 64)
	if err != nil {
		return name
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// ClockLua is put before a script. It defines now, in microseconds, and score, which formats a time
// as a score in seconds.
const ClockLua = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local function score(us) return string.format('%d.%06d', math.floor(us / 1000000), us % 1000000) end
`
