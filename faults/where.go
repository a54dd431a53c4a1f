package faults

import (
	"slices"
	"unicode/utf8"
)

// point describes one side of a command, as the faults see it.
type point struct {
	moment Moment
	// names are the names that the command answers to, its own first; see
	// commands.go.
	names []string
	// key is its first key; empty if it has none.
	key string
	// during are the client's operations under way, the innermost first.
	during []string
	state  State
	// client and node are 0 if they are not known.
	client, node int
	// first says that this is the first command answered since the grant.
	first bool
}

// matches reports whether a fault that is narrowed to w may fire at p.
func (w Where) matches(p point) bool {
	return (w.Moment == AnyMoment || w.Moment == p.moment) &&
		(w.State == AnyState || w.State == p.state) &&
		(w.Client == 0 || w.Client == p.client) &&
		(w.Node == 0 || w.Node == p.node) &&
		(!w.First || p.first) &&
		(w.Command == "" || slices.Contains(p.names, w.Command)) &&
		(w.During == "" || slices.Contains(p.during, w.During)) &&
		(w.Key == "" || like(w.Key, p.key))
}

// matchesGrant reports whether a fault that is narrowed to w may hit a holder that
// is not at a command: w asks for a holder, and for no property of a command.
func (w Where) matchesGrant(p point) bool {
	return w.State == Holding && w.Moment == AnyMoment && w.Command == "" && w.Key == "" && w.Node == 0 && w.First == p.first &&
		(w.Client == 0 || w.Client == p.client) &&
		(w.During == "" || slices.Contains(p.during, w.During))
}

// like reports whether text matches pattern, in which * stands for any text and ? for any one character. Nothing else
// is special: keys often have brackets.
func like(pattern, text string) bool {
	p, t := 0, 0
	star, from := -1, 0 // the last * and the end of the text that it matches
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			t += width(text[t:])
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			from += width(text[from:])
			p, t = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// width returns the number of bytes of the first character.
func width(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
