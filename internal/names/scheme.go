package names

import (
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"hash/fnv"
	"math"
	"math/rand/v2"
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
// Together, the concrete namings have both orders of any two names: by client and then by number, falling or rising,
// and by number and then by client. In one naming the names differ only at their ends, in another only at their
// beginnings, and in both the digits of all names have the same sum. The last two namings have no order: in one, the
// low bits of usual hashes are the same for all names; in the other, they differ between the names of odd and of even
// clients.
const Namings = Concrete + 6

// Scheme defines the names of one client.
type Scheme struct {
	Naming Naming
	// Client is the client's number, and Clients is how many there are (0: as many as can be). They only matter if the naming is concrete.
	Client, Clients int
	// Seen are values that runs have drawn; nil: they are not kept.
	Seen *Seen
	// known, unless nil, are the client's first tokens, which take time to make.
	known *[]string
}

// Token returns the n-th token of the client, from 0.
func (s Scheme) Token(n int) string {
	switch {
	case s.known != nil && n < len(*s.known):
		return (*s.known)[n]
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
	if s.Naming >= Namings {
		return s.showing(prefix, n, width)
	}
	kind := s.Naming - Concrete
	client := s.Client
	// Clients have ranges of equal size, and nobody the last one.
	clients := cmp.Or(s.Clients, MaxClients)
	rangeOf, ranges := float64(min(client, clients)), float64(clients+1)
	part := (rangeOf + share(n)) / ranges
	if kind == 2 || kind == 3 {
		part = share(n) + (share(n+1)-share(n))*rangeOf/ranges
	}
	sum := digits(width, byte(kind), prefix, client, n)
	rank := uint32(part * math.MaxUint32)
	if kind%2 == 1 {
		rank = ^rank
	}
	place := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, rank))
	switch kind {
	case 0, 1:
		return (place + sum)[:width]
	case 2, 3:
		upper := uint16(rank >> 16)
		place = hex.EncodeToString(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, upper), ^upper))
		alike := digits(width-len(place), byte(kind), "", 0, 0)
		if kind == 2 {
			return alike + place
		}
		return place + alike
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

// Showing is a concrete naming in which names are spelled as with a seed of [Other]. With self, those of client 0 are
// spelled as a client's own are.
func Showing(seed uint64, self bool) Naming {
	n := Namings + Naming(2*seed)
	if self {
		n++
	}
	return n
}

// showing is concrete for a naming of [Showing].
func (s Scheme) showing(prefix string, n, width int) string {
	at := uint64(s.Naming - Namings)
	letter := byte('0' + s.Client)
	if at%2 == 1 && s.Client == 0 {
		letter = Self
	}
	name := []byte(padded(prefix, n, width))
	name[len(prefix)] = letter
	return other(at/2, string(name), len(prefix))
}

// allLow is what lowBits is when all bits are set.
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

// Others is the least number of spellings that a program is shown beside the canonical one, see [OthersAfter]:
// consecutive seeds of [Other]. Two are enough to see any order of names, be it one of their beginnings alone, which in
// canonical names are alike. A program that looks at the characters of a name shows that with some seeds only: so each
// run has others.
const Others = 2

// OthersAfter returns how many other spellings a run starts with after this many seeds have been used. So a program
// with little output is also tried with several dozen.
func OthersAfter(seed uint64) int {
	if seed < 40 {
		return 4 * Others
	}
	return Others
}

// Other returns text with another spelling of its names, one spelling for each seed. With odd seeds any two names have
// the opposite order, and with even seeds the same; tokens have the length of real ones. With half of the seeds the
// first characters decide the order, and the rest looks random. With the other seeds, names differ only at their
// beginnings, or only at their ends. For numbers see otherNumber.
func Other(seed uint64, text string) string {
	return otherNumbers(seed, otherNames(seed, text))
}

func otherNumbers(seed uint64, text string) string {
	var b []byte
	scanNumbers(text, func(begin int) {
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
	rank := int(name[letter] - '0')
	width := max(len(name), leastWidth)
	if name[:letter] == TokenPrefix {
		rank += clientDigits
		if len(name) < leastWidth {
			width = Width
		}
	}
	place := scatter(seed, rank, number&0xff)
	if seed%2 == 1 {
		place = ^place
	}
	begin, rest := hex.EncodeToString(binary.BigEndian.AppendUint32(nil, place)), ""
	of := name
	if seed/2%4 >= 2 {
		of = "" // what is left is the same in all names
	}
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, seed), of...))
	for len(begin)+len(rest) < width {
		rest += hex.EncodeToString(sum[:])
	}
	rest = rest[:width-len(begin)]
	if seed/2%4 == 3 {
		return rest + begin
	}
	return begin + rest
}

// clientDigits is the number of different digits that can stand for a client in a name.
const clientDigits = 10

// scatter is where a name begins: it rises with rank, of two kinds of names and their clients, and with the number, and
// is anywhere otherwise, by the seed.
func scatter(seed uint64, rank, number int) uint32 {
	random := rand.New(rand.NewPCG(seed, 0))
	var begins [2*clientDigits + 2]float64
	for i := 1; i < len(begins); i++ {
		gap := 1.0
		if client := (i - 1) % clientDigits; client < 3 || client >= Self-'0'-1 { // there are others in large searches only
			gap = math.Exp2(12 * random.Float64()) // a few are far larger than the rest
		}
		begins[i] = begins[i-1] + gap
	}
	// A quarter is for all alike, so that short beginnings differ, too.
	at := func(i int) float64 {
		return 0.25*float64(i)/float64(len(begins)-1) + 0.75*begins[i]/begins[len(begins)-1]
	}
	begin, end := at(rank), at(rank+1)
	return uint32((begin + (end-begin)*share(number)) * math.MaxUint32)
}

// share is the part of a range below the n-th of numbers without an end: nothing, a half, two thirds, and so on.
func share(n int) float64 { return float64(n) / float64(n+1) }
