// Package entry says what an entry of the catalogue in package mutants is.
package entry

import (
	"strings"

	"oversell/variant"
)

// Entry says what an implementation is.
type Entry struct {
	Name string
	// Mechanism is what is wrong, in a sentence; of a sound one, what is unusual.
	Mechanism string
	// Breaks are the promises of which a suite should name one; none for a sound one.
	Breaks []variant.Property
	// Source is the thread in which the bug, or the home of the library, was published;
	// empty if the mutant is ours. The code is ours always.
	Source string
}

// New returns an entry.
func New(name, mechanism string, breaks []variant.Property, source string) Entry {
	return Entry{Name: name, Mechanism: mechanism, Breaks: breaks, Source: source}
}

// Sound reports whether nothing is wrong with it.
func (e Entry) Sound() bool { return len(e.Breaks) == 0 }

// Breaks makes Entry.Breaks.
func Breaks(ps ...variant.Property) []variant.Property { return ps }

// Changed returns a text with one passage replaced, which must stand in it once.
func Changed(text, from, to string) string {
	if strings.Count(text, from) != 1 {
		panic("the passage to change does not stand in the text once: " + from)
	}
	return strings.Replace(text, from, to, 1)
}
