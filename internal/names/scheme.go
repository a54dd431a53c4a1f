package names

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"hash/fnv"
	"strconv"
	"strings"
)

// Canonical names contain the letter of their owner at a fixed place, so that clients can be exchanged: token0.1 is the
// second token of client 0, random0.1 the second value that it drew. In a client's own texts the letter is Self.
const (
	TokenPrefix  = "token"
	RandomPrefix = "random"
	Self         = '9'
	filler       = '~' // makes a name as long as its spelling is
)

// Width is how long real tokens are: 128 bits in hexadecimal.
const Width = 32

// Naming is a kind of canonical names.
type Naming int

// The namings. From Concrete on, names look like those of a run under load and do not show their owners: so each client
// has its own names, and clients cannot be exchanged.
const (
	Short    Naming = iota // token0.1
	Wide                   // the same, as long as a real token
	Concrete               // the first of several
)

// Namings is the number of all namings.
//
// The concrete ones have both orders of any two names: by client and then by number, falling or rising, and by number
// and then by client. In one the names have a common beginning, in another a common end; the last two have no order: in
// one the low bits of usual hashes of all names are equal, and in the other those of odd clients' names differ from
// those of even ones'.
const Namings = Concrete + 6

// Scheme defines the names of one client.
type Scheme struct {
	Naming Naming
	// Client is the client's number, which only matters if the naming is concrete.
	Client int
	// Seen are values that runs have drawn; nil: they are not kept.
	Seen *Seen
}

// Token returns the n-th token of the client, from 0.
func (s Scheme) Token(n int) string {
	switch {
	case s.Naming >= Concrete:
		return s.concrete(TokenPrefix, n, Width)
	case s.Naming == Wide:
		return padded(TokenPrefix, n, Width)
	}
	return padded(TokenPrefix, n, 0)
}

// leastWidth is the least length of a value's name.
const leastWidth = 12

// random returns the n-th value that the client draws; width is the length of all its spellings, 0 if they differ in
// length.
func (s Scheme) random(n, width int) Value {
	name := padded(RandomPrefix, n, max(width, leastWidth))
	if s.Naming >= Concrete {
		name = s.concrete(RandomPrefix, n, max(width, leastWidth))
	}
	return Value{name, width}
}

func padded(prefix string, n, width int) string {
	name := prefix + string(rune(Self)) + "." + strconv.Itoa(n)
	return name + strings.Repeat(string(rune(filler)), max(width-len(name), 0))
}

// concrete returns a name that looks like a real one.
func (s Scheme) concrete(prefix string, n, width int) string {
	const most, step = 100, 50
	kind := s.Naming - Concrete
	client := s.Client
	rank := client*most + n%most
	if kind == 2 || kind == 3 {
		rank = n%most*10 + client
	}
	sum := digits(width, byte(kind), prefix, client, n)
	rank = rank*step + int(sum[width-1])%step
	if kind%2 == 1 {
		rank = 1<<16 - 1 - rank
	}
	place := hex.EncodeToString(binary.BigEndian.AppendUint16(nil, uint16(rank)))
	switch alike := digits(8, byte(kind), "", 0, 0); kind {
	case 0, 1:
		return (place + sum)[:width]
	case 2:
		return (alike + place + sum)[:width]
	case 3:
		return (place + sum)[:max(width-len(alike), 4)] + alike[:min(len(alike), width-4)]
	}
	low := byte(0)
	if kind == 5 && client%2 == 1 {
		low = allLow
	}
	for again := 0; ; again++ {
		if name := digits(width, byte(kind), prefix+strconv.Itoa(again), client, n); lowBits(name) == low {
			return name
		}
	}
}

// allLow is lowBits with all bits set.
const allLow = 1<<7 - 1

// lowBits returns the low bits of the first and the last bytes of usual hashes of a name, on which a program may
// branch.
func lowBits(name string) (bits byte) {
	text := []byte(name)
	one, two, five := sha1.Sum(text), sha256.Sum256(text), md5.Sum(text)
	short := fnv.New32a()
	_, _ = short.Write(text)
	for i, b := range []byte{one[0], one[len(one)-1], two[0], two[len(two)-1], five[len(five)-1], byte(crc32.ChecksumIEEE(text)), byte(short.Sum32())} {
		bits |= b & 1 << i
	}
	return bits
}

// digits returns n digits that look random.
func digits(n int, kind byte, prefix string, client, number int) string {
	text := ""
	for i := 0; len(text) < n; i++ {
		sum := sha256.Sum256(append([]byte{kind, byte(client), byte(number), byte(number >> 8), byte(i)}, prefix...))
		text += hex.EncodeToString(sum[:])
	}
	return text[:n]
}

// Scan calls found for every canonical name in text, with its beginning, its end and the place of its letter.
func Scan(text string, found func(begin, letter, end int)) {
	for i := 0; i < len(text); i++ {
		var prefix string
		switch text[i] {
		case TokenPrefix[0]:
			prefix = TokenPrefix
		case RandomPrefix[0]:
			prefix = RandomPrefix
		default:
			continue
		}
		letter := i + len(prefix)
		if letter+2 >= len(text) || text[i:letter] != prefix || !isDigit(text[letter]) || text[letter+1] != '.' || !isDigit(text[letter+2]) {
			continue
		}
		end := letter + 2
		for end < len(text) && isDigit(text[end]) {
			end++
		}
		for end < len(text) && text[end] == filler {
			end++
		}
		found(i, letter, end)
		i = end - 1
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// unfilled returns text without the filler of its names.
func unfilled(text string) string {
	if !strings.ContainsRune(text, filler) {
		return text
	}
	var b strings.Builder
	last := 0
	Scan(text, func(begin, _, end int) {
		b.WriteString(text[last:begin])
		b.WriteString(strings.TrimRight(text[begin:end], string(rune(filler))))
		last = end
	})
	return b.String() + text[last:]
}

// Others is how many spellings a program is shown besides the canonical one: consecutive seeds of [Other]. Two are
// enough to show any dependence on the order of names, even of their beginnings alone, which are alike in canonical
// names.
const Others = 2

// Other returns another spelling of the names in a text, one for each seed. With odd seeds any two names are in the
// other order, and with even ones in the same, but decided by their beginnings; tokens have the length of real ones,
// and the rest looks random. For numbers see otherNumber.
func Other(seed uint64, text string) string {
	return otherNumbers(seed, otherNames(seed, text))
}

func otherNumbers(seed uint64, text string) string {
	var b []byte
	ScanNumbers(text, func(begin int) {
		if b == nil {
			b = []byte(text)
		}
		copy(b[begin:], otherNumber(seed, text[begin:begin+numberWidth]))
	})
	if b == nil {
		return text
	}
	return string(b)
}

func otherNames(seed uint64, text string) string {
	var b strings.Builder
	last := 0
	Scan(text, func(begin, letter, end int) {
		b.WriteString(text[last:begin])
		b.WriteString(other(seed, text[begin:end], letter-begin))
		last = end
	})
	if last == 0 {
		return text
	}
	return b.String() + text[last:]
}

func other(seed uint64, name string, letter int) string {
	number, _ := strconv.Atoi(strings.TrimRight(name[letter+2:], string(rune(filler))))
	place := 1<<12 | int(name[letter]-'0')<<8 | number&0xff
	width := max(len(name), leastWidth)
	if name[:letter] == RandomPrefix {
		place &= 1<<12 - 1
	} else if len(name) < leastWidth {
		width = Width
	}
	if seed%2 == 1 {
		place ^= 1<<16 - 1
	}
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), name...))
	text := hex.EncodeToString(binary.BigEndian.AppendUint16(nil, uint16(place)))
	for len(text) < width {
		text += hex.EncodeToString(sum[:])
	}
	return text[:width]
}
