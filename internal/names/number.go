package names

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// Numbers that clients make up (order numbers, task ids) name their client with one digit, so that renaming a client
// replaces a digit. They are exact as Lua numbers.
const (
	// NumberPrefix begins every such number, in text; the client's digit follows, and six more.
	NumberPrefix = "900719000"
	numberBase   = 9007190000000000 // with all of these digits 0
	clientWeight = int64(1_000_000) // of the client's digit
	// ClientNumber is the index of the number that stands for the client itself. Its other numbers stay below.
	ClientNumber = int64(999_999)
	// MaxClients is how many clients can be distinguished.
	MaxClients = 8
)

// Number returns the nth number of a client.
func Number(client int, n int64) int64 { return numberBase + int64(client)*clientWeight + n }

// OwnNumber returns the nth number of a client in its own names.
func OwnNumber(n int64) int64 { return Number(Self-'0', n) }

// NumberOwner returns the client of a number, which is Self-'0' in the client's own names, and its index among that
// client's numbers. ok reports whether it is such a number.
func NumberOwner(n int64) (client int, number int64, ok bool) {
	if n < numberBase || n >= numberBase+10*clientWeight {
		return 0, 0, false
	}
	n -= numberBase
	return int(n / clientWeight), n % clientWeight, true
}

// numberWidth is the length of such a number in text, and of each of its other spellings.
const numberWidth = 16

// scanNumbers calls found for every such number in text, with its position.
func scanNumbers(text string, found func(begin int)) {
	for i := 0; ; {
		next := strings.Index(text[i:], NumberPrefix)
		if next < 0 || i+next+numberWidth > len(text) {
			return
		}
		if i += next; !allDigits(text[i : i+numberWidth]) {
			i++
			continue
		}
		found(i)
		i += numberWidth
	}
}

// otherNumber returns another spelling of a number. The numbers of one client rise, as in a run, where one counter
// gives them out; but those of two clients are in the other order with odd seeds. Otherwise they look random.
func otherNumber(seed uint64, name string) string {
	n, _ := strconv.ParseInt(name, 10, 64)
	client, number, _ := NumberOwner(n)
	if seed%2 == 1 {
		client = Self - '0' - client
	}
	// There are ranges for ten clients, each as wide as all spellings; no number has 17 digits.
	const least, place = 1_000_000_000_000_000, 700_000_000
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
	by := int64(binary.BigEndian.Uint64(sum[:8])>>1) % place
	return strconv.FormatInt(least+(int64(client)*clientWeight+number)*place+by, 10)
}

// Number returns the n-th number of the run.
func (b *Dictionary) Number(n int64) int64 {
	if s := b.scheme; s.Naming >= Concrete {
		return s.concreteNumber(s.Client, n)
	}
	own := OwnNumber(n)
	if b.seed == 0 {
		return own
	}
	other, _ := strconv.ParseInt(b.Actual(strconv.FormatInt(own, 10)), 10, 64)
	return other
}

// mostNumbers is how many concrete numbers a client has; the last is its [ClientNumber].
const mostNumbers = 1 << 8

// nobodies is how many clients have numbers, including Nobody.
const nobodies = MaxClients + 1

// even is divided by all small numbers.
const even = 720720 << 4

// concreteNumber returns a number that looks like a real one. Those of one client rise. Depending on the naming,
// clients alternate, rising or falling, or have a range each; in the last two namings, for programs that divide
// numbers, the remainder is the same for all clients, or different for odd ones.
func (s Scheme) concreteNumber(client int, n int64) int64 {
	const least = 1_000_000 // no other count of a program gets so high
	if n == ClientNumber {
		n = mostNumbers
	}
	place, down := int64(client), int64(nobodies-1-client)
	switch s.Naming - Concrete {
	case 0:
		return least + (n-1)*nobodies + place
	case 1:
		return least + (n-1)*nobodies + down
	case 2:
		return least*(place+2) + n
	case 3:
		return least*(down+2) + n
	case 4:
		return even * (1 + down*mostNumbers + n)
	}
	return even*(1+place*mostNumbers+n) + place%2
}

// CanonicalNumber returns the canonical number by the book's scheme.
func (b *Dictionary) CanonicalNumber(number int64) int64 { return b.scheme.CanonicalNumber(number) }

// CanonicalNumber returns the canonical name of a concrete number, and other numbers unchanged.
func (s Scheme) CanonicalNumber(number int64) int64 {
	if s.Naming < Concrete {
		return number
	}
	for client := range nobodies {
		// Numbers of one client rise, so a binary search finds one.
		low, high := int64(1), int64(mostNumbers)
		for low < high {
			if middle := (low + high) / 2; s.concreteNumber(client, middle) < number {
				low = middle + 1
			} else {
				high = middle
			}
		}
		if s.concreteNumber(client, low) != number {
			continue
		}
		if low == mostNumbers {
			low = ClientNumber
		}
		if client == s.Client {
			return OwnNumber(low)
		}
		return Number(client, low)
	}
	return number
}
