package names

import (
	"fmt"
	"strconv"
	"strings"
)

// Names of a client (tokens, random values and numbers) contain its letter at a fixed place, so that clients can be
// exchanged. In the texts that a client itself has seen, its own names have the letter Self, so two clients with the
// same observations have seen the same text. Elsewhere, the letter is the client's number.

// rename replaces the letter in every name in text.
func rename(text string, letter func(byte) byte) string {
	if !strings.Contains(text, TokenPrefix) && !strings.Contains(text, NumberPrefix) && !strings.Contains(text, RandomPrefix) {
		return text
	}
	b := []byte(text)
	EachLetter(text, func(at int) { b[at] = letter(b[at]) })
	return string(b)
}

// EachLetter calls found with the place of the letter in every name in text.
func EachLetter(text string, found func(at int)) {
	Scan(text, func(_, letter, _ int) { found(letter) })
	for i := strings.Index(text, NumberPrefix); i >= 0 && i+len(NumberPrefix)+7 <= len(text); {
		if !isDigit(text[i+len(NumberPrefix)]) {
			i++
		} else {
			found(i + len(NumberPrefix))
			i += len(NumberPrefix) + 7
		}
		next := strings.Index(text[i:], NumberPrefix)
		if next < 0 {
			return
		}
		i += next
	}
}

// Secret is a token or a random value in a text.
type Secret struct {
	Name   string
	Letter int // its place in the name
	Client int // whose it is
	Number int // which of the client's
	Random bool
}

// SecretsIn returns the tokens and random values in text.
func SecretsIn(text string) (all []Secret) {
	Scan(text, func(begin, letter, end int) {
		s := Secret{Name: text[begin:end], Letter: letter - begin, Client: int(text[letter] - '0'), Random: text[begin:letter] == RandomPrefix}
		for _, c := range []byte(text[letter+2 : end]) {
			if isDigit(c) {
				s.Number = s.Number*10 + int(c-'0')
			}
		}
		all = append(all, s)
	})
	return all
}

// Replace replaces one name by another of the same length.
func Replace(text, old, new string) string {
	if !strings.Contains(text, old) {
		return text
	}
	b := []byte(text)
	Scan(text, func(begin, _, end int) {
		if text[begin:end] == old {
			copy(b[begin:], new)
		}
	})
	return string(b)
}

// Global returns client's text in global names.
func Global(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == Self {
			return byte('0' + client)
		}
		return c
	})
}

// Local is text in the names of client.
func Local(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == byte('0'+client) {
			return Self
		}
		return c
	})
}

// Foreign reports whether text holds a name of another client.
func Foreign(text string) (yes bool) {
	EachLetter(text, func(at int) { yes = yes || text[at] != Self })
	return yes
}

// Readable returns text in readable form: numbers as client.number, or as the client alone if it is the client's own
// number, and names without filler.
func Readable(text string) string {
	var b strings.Builder
	last := 0
	EachLetter(text, func(at int) {
		if at < len(NumberPrefix) || text[at-len(NumberPrefix):at] != NumberPrefix {
			return
		}
		n, _ := strconv.Atoi(text[at+1 : at+7])
		b.WriteString(text[last : at-len(NumberPrefix)])
		if fmt.Fprintf(&b, "#%c", text[at]); int64(n) != ClientNumber {
			fmt.Fprintf(&b, ".%d", n)
		}
		last = at + 7
	})
	return unfilled(b.String() + text[last:])
}
