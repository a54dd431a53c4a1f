package explore

import (
	"fmt"
	"strconv"
	"strings"

	"oversell/internal/names"
)

// Names that a client makes up, tokens, random values and numbers, say whose they are,
// in one letter at a fixed place, so that clients can be exchanged for one another: in
// what a client itself has seen, its own names bear the letter Self, and so two
// clients that have seen the same have seen the same text. Elsewhere, the letter
// is the client's number. Tokens and random values are those of package names.

// rename replaces the letter in every name in text.
func rename(text string, letter func(byte) byte) string {
	if !strings.Contains(text, names.TokenPrefix) && !strings.Contains(text, names.NumberPrefix) && !strings.Contains(text, names.RandomPrefix) {
		return text
	}
	b := []byte(text)
	each(text, func(at int) { b[at] = letter(b[at]) })
	return string(b)
}

// each calls found with the place of the letter in every name in text.
func each(text string, found func(at int)) {
	names.Scan(text, func(_, letter, _ int) { found(letter) })
	for i := strings.Index(text, names.NumberPrefix); i >= 0 && i+len(names.NumberPrefix)+7 <= len(text); {
		if !isDigitN(text[i+len(names.NumberPrefix)]) {
			i++
		} else {
			found(i + len(names.NumberPrefix))
			i += len(names.NumberPrefix) + 7
		}
		next := strings.Index(text[i:], names.NumberPrefix)
		if next < 0 {
			return
		}
		i += next
	}
}

// secret is a token or a random value in a text.
type secret struct {
	name   string
	letter int // its place in the name
	client int
	number int
	random bool
}

// secretsIn are the tokens and random values in text.
func secretsIn(text string) (all []secret) {
	names.Scan(text, func(begin, letter, end int) {
		s := secret{name: text[begin:end], letter: letter - begin, client: int(text[letter] - '0'), random: text[begin:letter] == names.RandomPrefix}
		for _, c := range []byte(text[letter+2 : end]) {
			if isDigitN(c) {
				s.number = s.number*10 + int(c-'0')
			}
		}
		all = append(all, s)
	})
	return all
}

// replaceName puts one name in the place of another of the same length.
func replaceName(text, old, new string) string {
	if !strings.Contains(text, old) {
		return text
	}
	b := []byte(text)
	names.Scan(text, func(begin, _, end int) {
		if text[begin:end] == old {
			copy(b[begin:], new)
		}
	})
	return string(b)
}

// global is text, as client has it, in everybody's names.
func global(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == names.Self {
			return byte('0' + client)
		}
		return c
	})
}

// local is text in the names of client.
func local(text string, client int) string {
	return rename(text, func(c byte) byte {
		if c == byte('0'+client) {
			return names.Self
		}
		return c
	})
}

// foreign tells whether text holds a name of another client.
func foreign(text string) (yes bool) {
	each(text, func(at int) { yes = yes || text[at] != names.Self })
	return yes
}

// readable is text for people: numbers as client.number, or as the client alone if they are its own, and names without filler.
func readable(text string) string {
	var b strings.Builder
	last := 0
	each(text, func(at int) {
		if at < len(names.NumberPrefix) || text[at-len(names.NumberPrefix):at] != names.NumberPrefix {
			return
		}
		n, _ := strconv.Atoi(text[at+1 : at+7])
		b.WriteString(text[last : at-len(names.NumberPrefix)])
		if fmt.Fprintf(&b, "#%c", text[at]); int64(n) != names.ClientNumber {
			fmt.Fprintf(&b, ".%d", n)
		}
		last = at + 7
	})
	return names.Readable(b.String() + text[last:])
}

func isDigitN(c byte) bool { return c >= '0' && c <= '9' }
