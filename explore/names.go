package explore

import (
	"fmt"
	"strconv"
	"strings"
)

// Names that a client makes up, tokens and numbers, say whose they are, in one
// letter at a fixed place, so that clients can be exchanged for one another: in
// what a client itself has seen, its own names bear the letter self, and so two
// clients that have seen the same have seen the same text. Elsewhere, the letter
// is the client's number.

// maxClients is how many clients names can tell apart.
const maxClients = 8

const (
	tokenPrefix  = "token"          // token0.1
	numberPrefix = "900719000"      // and the client's digit and six more: exact in a Lua number
	numberBase   = 9007190000000000 // with all of them 0
	numberOwner  = int64(1_000_000) // the weight of the client's digit
	self         = '9'
)

// tokenOf is the n-th token that a client makes, by itself.
func tokenOf(n int) string { return fmt.Sprintf("%s%c.%d", tokenPrefix, self, n) }

// numberOf is the n-th number of a client, by itself.
func numberOf(n int64) int64 { return numberBase + int64(self-'0')*numberOwner + n }

// owner is whose number n is, self being 9, and which of them; ok tells whether it is one of
// these names at all.
func owner(n int64) (client int, number int64, ok bool) {
	if n < numberBase || n >= numberBase+10*numberOwner {
		return 0, 0, false
	}
	n -= numberBase
	return int(n / numberOwner), n % numberOwner, true
}

// rename replaces the letter in every name in text.
func rename(text string, letter func(byte) byte) string {
	if !strings.Contains(text, tokenPrefix) && !strings.Contains(text, numberPrefix) {
		return text
	}
	b := []byte(text)
	each(text, func(at int) { b[at] = letter(b[at]) })
	return string(b)
}

// each calls found with the place of the letter in every name in text.
func each(text string, found func(at int)) {
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case len(rest) > len(tokenPrefix)+1 && rest[:len(tokenPrefix)] == tokenPrefix && isDigit(rest[len(tokenPrefix)]) && rest[len(tokenPrefix)+1] == '.':
			found(i + len(tokenPrefix))
			i += len(tokenPrefix)
		case len(rest) >= len(numberPrefix)+7 && rest[:len(numberPrefix)] == numberPrefix && isDigit(rest[len(numberPrefix)]):
			found(i + len(numberPrefix))
			i += len(numberPrefix) + 6
		}
	}
}

// tokensIn are the places of the letters of tokens in text.
func tokensIn(text string) (at []int) {
	each(text, func(i int) {
		if i >= len(tokenPrefix) && text[i-len(tokenPrefix):i] == tokenPrefix {
			at = append(at, i)
		}
	})
	return at
}

// tokenAt is the token whose letter is at this place.
func tokenAt(text string, at int) (name string, client, number int) {
	end := at + 2
	for end < len(text) && isDigit(text[end]) {
		end++
	}
	number, _ = strconv.Atoi(text[at+2 : end])
	return text[at-len(tokenPrefix) : end], int(text[at] - '0'), number
}

// replaceToken puts one token in the place of another of the same length.
func replaceToken(text, old, new string) string {
	if !strings.Contains(text, old) {
		return text
	}
	b := []byte(text)
	for _, at := range tokensIn(text) {
		if name, _, _ := tokenAt(text, at); name == old {
			copy(b[at-len(tokenPrefix):], new)
		}
	}
	return string(b)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// global is text, as client has it, in everybody's names.
func global(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == self {
			return byte('0' + client)
		}
		return c
	})
}

// local is text in the names of client.
func local(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == byte('0'+client) {
			return self
		}
		return c
	})
}

// foreign tells whether text holds a name of another client.
func foreign(text string) (yes bool) {
	each(text, func(at int) { yes = yes || text[at] != self })
	return yes
}

// readable is text for people: numbers as client.number.
func readable(text string) string {
	var b strings.Builder
	last := 0
	each(text, func(at int) {
		if at < len(numberPrefix) || text[at-len(numberPrefix):at] != numberPrefix {
			return
		}
		n, _ := strconv.Atoi(text[at+1 : at+7])
		b.WriteString(text[last : at-len(numberPrefix)])
		fmt.Fprintf(&b, "#%c.%d", text[at], n)
		last = at + 7
	})
	return b.String() + text[last:]
}
