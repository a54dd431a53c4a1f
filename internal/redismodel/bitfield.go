package redismodel

import (
	"math"
	"strings"

	"oversell/internal/rediscmd"
)

// field is an integer at a bit offset of a string, most significant bit first. It has 1 to 64 bits
// if it is signed, and 1 to 63 otherwise.
type field struct {
	signed   bool
	bits, at int64
}

// fieldCommand is a subcommand of BITFIELD. by is the value of SET or the increment of INCRBY;
// overflow is the OVERFLOW mode for a value that does not fit.
type fieldCommand struct {
	field
	name, overflow string
	by             int64
}

// bitfield executes BITFIELD and BITFIELD_RO.
func bitfield(x *exec, a []string) {
	commands, ok := x.fieldCommands(a[2:])
	if !ok {
		return
	}
	last := int64(-1)
	for _, c := range commands {
		if c.name != "get" {
			last = max(last, c.at+c.bits-1)
		}
	}
	write := last >= 0
	if command, _ := rediscmd.Find(a[0]); write && !command.Does(rediscmd.Writes) {
		x.Err("ERR BITFIELD_RO only supports the GET subcommand")
		return
	}
	v, ok := typed[str](x, a[1])
	if !ok {
		return
	}
	size := len(v)
	if write {
		size = max(size, int(last>>3+1))
	}
	if size > longestFilled {
		x.Unknown("a string of bits this long")
		return
	}
	next := make([]byte, size)
	copy(next, v)
	changed := false
	x.Array(len(commands))
	for _, c := range commands {
		old := c.read(str(next))
		value, before := old, old
		fits := true
		switch c.name {
		case "get":
			x.Int(old)
			continue
		case "set":
			value, fits = c.within(c.by, 0)
		case "incrby":
			value, fits = c.within(old, c.by)
			before = value
		}
		if !fits && c.overflow == "fail" {
			x.Null()
			continue
		}
		x.Int(before)
		c.write(next, value)
		changed = changed || value != old || size > len(v)
	}
	switch {
	case changed:
		x.put(a[1], str(next))
	case size > len(v):
		x.putUntouched(a[1], str(next)) // Redis extends it even then
	}
}

// fieldCommands parses the subcommands of BITFIELD.
func (x *exec) fieldCommands(a []string) (all []fieldCommand, ok bool) {
	overflow := "wrap"
	for i := 0; i < len(a); i++ {
		c := fieldCommand{name: strings.ToLower(a[i]), overflow: overflow}
		after := len(a) - i - 1
		switch {
		case c.name == "get" && after >= 2, (c.name == "set" || c.name == "incrby") && after >= 3:
		case c.name == "overflow" && after >= 1:
			i++
			overflow = strings.ToLower(a[i])
			if overflow != "wrap" && overflow != "sat" && overflow != "fail" {
				x.Err("ERR Invalid OVERFLOW type specified")
				return nil, false
			}
			continue
		default:
			x.syntax()
			return nil, false
		}
		if c.field, ok = x.field(a[i+1], a[i+2]); !ok {
			return nil, false
		}
		i += 2
		if c.name != "get" {
			i++
			if c.by, ok = x.int64Arg(a[i]); !ok {
				return nil, false
			}
		}
		all = append(all, c)
	}
	return all, true
}

// field parses a type, such as u8, and an offset: a number of bits, such as 16, or a multiple of
// the field's width, such as #2.
func (x *exec) field(kind, offset string) (f field, ok bool) {
	f.signed = strings.HasPrefix(kind, "i")
	if f.signed || strings.HasPrefix(kind, "u") {
		f.bits, ok = parseInt(kind[1:])
	}
	if !ok || f.bits < 1 || f.bits > 64 || f.bits == 64 && !f.signed {
		x.Err("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		return f, false
	}
	unit := int64(1)
	if strings.HasPrefix(offset, "#") {
		unit, offset = f.bits, offset[1:]
	}
	f.at, ok = x.offsetOf(offset, unit)
	return f, ok
}

// read returns the value of the field in a string.
func (f field) read(v str) int64 {
	n := uint64(0)
	for i := range f.bits {
		n = n<<1 | uint64(v.bit(f.at+i))
	}
	return f.wrapped(n)
}

// write writes value to the field in v, which must be long enough.
func (f field) write(v []byte, value int64) {
	for i := range f.bits {
		at := f.at + i
		bit := byte(uint64(value) >> (f.bits - 1 - i) & 1)
		v[at>>3] = v[at>>3]&^(1<<(7-at&7)) | bit<<(7-at&7)
	}
}

// wrapped returns the value of the lowest bits of n.
func (f field) wrapped(n uint64) int64 {
	unused := 64 - f.bits
	if f.signed {
		return int64(n<<unused) >> unused
	}
	return int64(n << unused >> unused)
}

// within returns value + by, and whether that fits into the field. If not, n is the value that the
// OVERFLOW mode gives.
func (c fieldCommand) within(value, by int64) (n int64, fits bool) {
	digits := c.bits // without the sign bit
	if c.signed {
		digits--
	}
	least, most := int64(0), int64(math.MaxInt64)>>(63-digits)
	if c.signed {
		least = -most - 1
	}
	over, under := false, false
	if c.signed { // as in Redis, where the differences can overflow
		up, down := most-value, least-value
		over = value > most || c.bits < 64 && by > up || value >= 0 && by > 0 && by > up
		under = !over && (value < least || c.bits < 64 && by < down || value < 0 && by < 0 && by < down)
	} else { // Redis takes a negative value of SET for one that is too large
		over = value < 0 || value > most || by > most-value
		under = !over && by < -value
	}
	switch {
	case !over && !under:
		return value + by, true
	case c.overflow == "sat" && over:
		return most, false
	case c.overflow == "sat":
		return least, false
	}
	return c.wrapped(uint64(value) + uint64(by)), false
}
