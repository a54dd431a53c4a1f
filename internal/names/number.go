package names

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
)

// Numbers that clients make up (order numbers, task ids) name their client with one digit, so
// that renaming a client is replacing a digit. They are exact as Lua numbers.
const (
	// NumberPrefix is how every such number begins, in text; the client's digit follows, and six
	// more.
	NumberPrefix = "900719000"
	numberBase   = 9007190000000000 // with all of these digits 0
	clientWeight = int64(1_000_000) // of the client's digit
	// ClientNumber is which of its numbers a client has for itself. No other of them comes so far.
	ClientNumber = int64(999_999)
	// MaxClients is how many clients can be told apart.
	MaxClients = 8
)

// Number returns the nth number of a client.
func Number(client int, n int64) int64 { return numberBase + int64(client)*clientWeight + n }

// OwnNumber returns the nth number of a client in its own names.
func OwnNumber(n int64) int64 { return Number(Self-'0', n) }

// NumberOwner returns the client of a number, which is Self-'0' for one in the client's own names,
// and which of that client's numbers it is. ok reports whether it is such a number at all.
func NumberOwner(n int64) (client int, number int64, ok bool) {
	if n < numberBase || n >= numberBase+10*clientWeight {
		return 0, 0, false
	}
	n -= numberBase
	return int(n / clientWeight), n % clientWeight, true
}

// numberWidth is the length of such a number in text, and of each of its other spellings.
const numberWidth = 16

// ScanNumbers calls found for every such number in text, with where it begins.
func ScanNumbers(text string, found func(begin int)) {
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

// otherNumber is another spelling of a number. As in a run, where one counter gives them out, the numbers of one
// client rise; but those of two are in the other order with odd seeds. Apart from that they look random.
func otherNumber(seed uint64, name string) string {
	n, _ := strconv.ParseInt(name, 10, 64)
	client, number, _ := NumberOwner(n)
	if seed%2 == 1 {
		client = Self - '0' - client
	}
	// There are places for ten clients, each as wide as all that they look like; none has 17 digits.
	const least, place = 1_000_000_000_000_000, 700_000_000
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
	by := int64(binary.BigEndian.Uint64(sum[:8])>>1) % place
	return strconv.FormatInt(least+(int64(client)*clientWeight+number)*place+by, 10)
}

// Number returns the n-th number that the run is given.
func (b *Book) Number(n int64) int64 {
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

// nobodies is how many clients have numbers, with nobody.
const nobodies = MaxClients + 1

// even is divided by all small numbers.
const even = 720720 << 4

// concreteNumber returns a number as a real one looks. Those of one client rise. By kind, clients take turns,
// rising or falling, or have a range each; and in the last two, which a program may divide by something, the rest is
// the same for all, or another for odd clients.
func (s Scheme) concreteNumber(client int, n int64) int64 {
	const least = 1_000_000 // nothing else that a program counts comes so far
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

// CanonicalNumber returns that of the book's scheme.
func (b *Book) CanonicalNumber(number int64) int64 { return b.scheme.CanonicalNumber(number) }

// CanonicalNumber is what a concrete number is called in canonical names; others are what they are.
func (s Scheme) CanonicalNumber(number int64) int64 {
	if s.Naming < Concrete {
		return number
	}
	for client := range nobodies {
		// Numbers of one client rise, so that one is found by halving.
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
