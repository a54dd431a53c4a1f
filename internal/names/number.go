package names

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
