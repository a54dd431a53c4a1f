package faults

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseError says which word of a sentence is wrong, and why.
type ParseError struct {
	Sentence string
	// Offset is where the word begins and Length its length, both in bytes.
	Offset, Length int
	Message        string
}

// Error returns one line.
func (e *ParseError) Error() string {
	if e.Length == 0 {
		return fmt.Sprintf("fault %q %s", e.Sentence, e.Message)
	}
	return fmt.Sprintf("fault %q: %q (at position %d) %s", e.Sentence, e.word(), 1+utf8.RuneCountInString(e.Sentence[:e.Offset]), e.Message)
}

func (e *ParseError) word() string { return e.Sentence[e.Offset : e.Offset+e.Length] }

// word is a word of a sentence, and where it stands.
type word struct {
	text   string
	offset int
}

// is reports whether the word is one of those given, ignoring case.
func (w word) is(words ...string) bool {
	return slices.ContainsFunc(words, func(s string) bool { return strings.EqualFold(w.text, s) })
}

func (w word) lower() string { return strings.ToLower(w.text) }

// wordsOf splits a sentence at white space.
func wordsOf(sentence string) (words []word) {
	start := -1
	for i, r := range sentence {
		switch space := unicode.IsSpace(r); {
		case space && start >= 0:
			words = append(words, word{sentence[start:i], start})
			start = -1
		case !space && start < 0:
			start = i
		}
	}
	if start >= 0 {
		words = append(words, word{sentence[start:], start})
	}
	return words
}

// plain returns the sentence with single spaces.
func plain(words []word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	return strings.Join(texts, " ")
}

// reader hands out the words of a sentence.
type reader struct {
	sentence string
	words    []word
	next     int
}

// fillers are allowed between the parts, so that a sentence reads well.
var fillers = []string{"a", "an", "of", "on", "the", "then"}

// take returns the next word that is not a filler.
func (r *reader) take() (word, bool) {
	for {
		w, ok := r.raw()
		if !ok || !w.is(fillers...) {
			return w, ok
		}
	}
}

// raw returns the next word, whatever it is.
func (r *reader) raw() (word, bool) {
	if r.next == len(r.words) {
		return word{}, false
	}
	r.next++
	return r.words[r.next-1], true
}

// errorAt returns the error about a word.
func (r *reader) errorAt(w word, format string, args ...any) error {
	return &ParseError{r.sentence, w.offset, len(w.text), fmt.Sprintf(format, args...)}
}
