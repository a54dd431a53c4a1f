package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"oversell/internal/phrase"
)

// decoder reads one payload after the other. It keeps the first error in err; then every number is 0.
type decoder struct {
	payload []byte
	pos     int
	texts   []Value // by number
	memory  deltaState
	err     error
}

var (
	errShort = errors.New("it ends too early")
	errLong  = errors.New("a number has more than 64 bits")
)

// start goes on to the next payload.
func (d *decoder) start(payload []byte) {
	d.payload, d.pos = payload, 0
	d.memory = deltaState{}
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.pos = len(d.payload)
}

func (d *decoder) left() int { return len(d.payload) - d.pos }

func (d *decoder) byte() byte {
	if d.left() == 0 {
		d.fail(errShort)
		return 0
	}
	d.pos++
	return d.payload[d.pos-1]
}

// uvarint is binary.Uvarint, quicker for short numbers.
func (d *decoder) uvarint() uint64 {
	p := d.payload[d.pos:]
	if len(p) < 3 {
		return d.longUvarint()
	}
	a, b, c := uint64(p[0]), uint64(p[1]), uint64(p[2])
	switch {
	case a < 0x80:
		d.pos++
		return a
	case b < 0x80:
		d.pos += 2
		return a&0x7f | b<<7
	case c < 0x80:
		d.pos += 3
		return a&0x7f | b&0x7f<<7 | c<<14
	}
	return d.longUvarint()
}

func (d *decoder) longUvarint() uint64 {
	u, n := binary.Uvarint(d.payload[d.pos:])
	switch {
	case n == 0:
		d.fail(errShort)
		return 0
	case n < 0:
		d.fail(errLong)
		return 0
	}
	d.pos += n
	return u
}

func (d *decoder) int() int64 { return unzigzag(d.uvarint()) }

func (d *decoder) int32(n int64) int32 {
	if n < math.MinInt32 || n > math.MaxInt32 {
		d.fail(fmt.Errorf("%d does not fit in 32 bits", n))
		return 0
	}
	return int32(n)
}

// bytes returns the next n bytes.
func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(d.left()) {
		d.fail(errShort)
		return nil
	}
	d.pos += int(n)
	return d.payload[d.pos-int(n) : d.pos]
}

// symbols reads the payload of a symbols frame.
func (d *decoder) symbols() error {
	for d.left() > 0 {
		d.texts = append(d.texts, Text(string(d.bytes(d.uvarint()))))
	}
	return d.err
}

// opCount returns the number of operations that a payload announces, if it can hold
// that many.
func opCount(payload []byte) (int, error) {
	n, width := binary.Uvarint(payload)
	if width <= 0 || n > uint64(len(payload)-width)/minOpBytes {
		return 0, errShort
	}
	return int(n), nil
}

// ops reads the payload of an operations frame and appends to ops, whole frames
// only.
func (d *decoder) ops(ops []Op) ([]Op, error) {
	n, err := opCount(d.payload)
	if err != nil {
		return ops, err
	}
	d.uvarint()
	before := len(ops)
	for i := range n {
		ops = append(ops, Op{})
		d.op(&ops[before+i])
		if d.err != nil {
			return ops[:before], fmt.Errorf("operation %s: %w", group(i+1), d.err)
		}
	}
	if d.left() > 0 {
		return ops[:before], fmt.Errorf("its operations end %s early", phrase.Count(d.left(), "byte"))
	}
	return ops, nil
}

// op is the inverse of appendOp.
func (d *decoder) op(op *Op) {
	op.Kind = Kind(d.byte())
	o := d.byte()
	op.Outcome, op.Reason = Outcome(o&3), Reason(o>>2)
	d.checkNames(op)
	has := d.byte()
	c := &d.memory
	if has&hasClient != 0 {
		c.client = d.int32(int64(c.client) + d.int())
	}
	op.Client = c.client
	if has&hasAmount != 0 {
		op.Amount = d.int32(d.int())
	}
	d.values(op, has)
	d.numbers(op, has)
}

func (d *decoder) checkNames(op *Op) {
	switch {
	case int(op.Kind) >= len(kindNames):
		d.fail(fmt.Errorf("this build does not know kind %d", op.Kind))
	case int(op.Outcome) >= len(outcomeNames):
		d.fail(fmt.Errorf("this build does not know outcome %d", op.Outcome))
	case int(op.Reason) >= len(reasonNames):
		d.fail(fmt.Errorf("this build does not know reason %d", op.Reason))
	}
}

func (d *decoder) values(op *Op, has byte) {
	c := &d.memory
	if has&hasKey != 0 {
		c.key = d.value(0)
	}
	op.Key = c.key
	if has&hasArg != 0 {
		op.Arg = d.value(c.arg[op.Kind])
		c.arg[op.Kind] = op.Arg.num
	}
	if has&hasResult != 0 {
		op.Result = d.value(c.result[op.Kind])
		c.result[op.Kind] = op.Result.num
	}
	if has&hasSession != 0 {
		op.Session = d.value(c.session)
		c.session = op.Session.num
	}
}

func (d *decoder) value(last int64) Value {
	u := d.uvarint()
	switch {
	case u == bigNumber:
		if b := d.bytes(8); b != nil {
			return Int(int64(binary.LittleEndian.Uint64(b)))
		}
	case u&1 == 0:
		return Int(last + unzigzag(u>>1))
	case u>>1 > uint64(len(d.texts)):
		d.fail(fmt.Errorf("text %d is not defined", u>>1-1))
	default:
		return d.texts[u>>1-1]
	}
	return Value{}
}

func (d *decoder) numbers(op *Op, has byte) {
	c := &d.memory
	if has&hasFence != 0 {
		c.fence += d.int()
		op.Fence = c.fence
	}
	call := c.ret + d.int()
	due := call - d.int()
	c.ret = call + d.int()
	op.Due, op.Call, op.Return = time.Duration(due), time.Duration(call), time.Duration(c.ret)
	if has&hasUntil != 0 {
		c.until += d.int()
		op.Until = time.Duration(c.until)
	}
}
