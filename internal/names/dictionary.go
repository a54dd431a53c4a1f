package names

import (
	"cmp"
	"slices"
	"strings"
)

// Value is the canonical name of a value that a program drew.
type Value struct {
	Name string
	// Width is the length of all its spellings; 0: they differ in length.
	Width int
}

// Dictionary holds the names of one run: the run's spelling of each canonical name. It belongs to one goroutine at a time.
type Dictionary struct {
	scheme Scheme
	seed   uint64 // 0: names are spelled as they are in the canonical text
	spelt  []spelling
	shown  []string // values of other clients, as they are drawn
	run    int      // among those that have drawn values
}

type spelling struct{ canonical, actual string }

// Dictionary returns a new dictionary for a run. With seed 0 the run's tokens are canonical already; other seeds mean other
// spellings, which concrete namings do not have.
func (s Scheme) Dictionary(seed uint64) *Dictionary {
	if s.Naming >= Concrete {
		seed = 0
	}
	return &Dictionary{scheme: s, seed: seed}
}

// Token returns the n-th token of the run.
func (b *Dictionary) Token(n int) string {
	name := b.scheme.Token(n)
	if b.seed == 0 {
		return name
	}
	return b.Actual(name)
}

// Plain reports whether the run's tokens are spelled as in the canonical text.
func (b *Dictionary) Plain() bool { return b.seed == 0 }

// bind notes a spelling.
func (b *Dictionary) bind(canonical, actual string) {
	b.spelt = append(b.spelt, spelling{canonical, actual})
	// The longest first: one name may be a prefix of another.
	slices.SortStableFunc(b.spelt, func(x, y spelling) int { return cmp.Compare(len(y.actual), len(x.actual)) })
}

// knows reports whether a canonical name has a spelling in this run.
func (b *Dictionary) knows(canonical string) bool {
	return slices.ContainsFunc(b.spelt, func(s spelling) bool { return s.canonical == canonical })
}

// Actual returns a canonical text in the names of the run.
func (b *Dictionary) Actual(text string) string {
	Scan(text, func(begin, letter, end int) {
		name := text[begin:end]
		if b.knows(name) {
			return
		}
		if text[begin:letter] == RandomPrefix && text[letter] != Self {
			if v := b.scheme.Seen.take(name, b.spelt); v != "" {
				b.bind(name, v)
				b.shown = append(b.shown[:len(b.shown):len(b.shown)], v)
				return
			}
		}
		if b.seed != 0 {
			b.bind(name, other(b.seed, name, letter-begin))
		}
	})
	if b.seed != 0 {
		scanNumbers(text, func(begin int) {
			if name := text[begin : begin+numberWidth]; !b.knows(name) {
				b.bind(name, otherNumber(b.seed, name))
			}
		})
	}
	return b.replace(text, func(s spelling) (from, to string) { return s.canonical, s.actual })
}

// Canonical returns a text of the run in canonical names.
func (b *Dictionary) Canonical(text string) string {
	return b.replace(text, func(s spelling) (from, to string) { return s.actual, s.canonical })
}

func (b *Dictionary) replace(text string, pair func(spelling) (from, to string)) string {
	if len(b.spelt) == 0 {
		return text
	}
	var out strings.Builder
	last := 0
	for i := 0; i < len(text); {
		long, by := "", ""
		for _, s := range b.spelt {
			if from, to := pair(s); len(from) > len(long) && strings.HasPrefix(text[i:], from) {
				long, by = from, to
			}
		}
		if long == "" {
			i++
			continue
		}
		out.WriteString(text[last:i])
		out.WriteString(by)
		i += len(long)
		last = i
	}
	if last == 0 {
		return text
	}
	return out.String() + text[last:]
}

// Reply is Actual for one reply or several in RESP2, whose lengths change with the
// names.
func (b *Dictionary) Reply(reply string) string {
	return MapReplies(reply, b.Actual)
}

// MapReplies applies f to the texts in replies in RESP2.
func MapReplies(reply string, f func(string) string) string {
	var out strings.Builder
	for reply != "" {
		line, rest, ok := strings.Cut(reply, "\r\n")
		if !ok || line == "" {
			return out.String() + reply // it is not one, and its reader says so
		}
		switch line[0] {
		case '+', '-', ':':
			line = line[:1] + f(line[1:])
		case '$':
			if size := number(line[1:]); size >= 0 && len(rest) >= size+2 {
				text := f(rest[:size])
				out.WriteString("$" + decimal(len(text)) + "\r\n" + text + "\r\n")
				reply = rest[size+2:]
				continue
			}
		}
		out.WriteString(line + "\r\n")
		reply = rest
	}
	return out.String()
}
