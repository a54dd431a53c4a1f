package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"oversell/internal/exactjson"
	"oversell/internal/printable"
)

// opLine is a line of JSON after the header. A field is a pointer so that an absent one
// is nil.
type opLine struct {
	Client  *int32    `json:"client"`
	Kind    string    `json:"kind"`
	Key     jsonValue `json:"key"`
	Arg     jsonValue `json:"arg"`
	Result  jsonValue `json:"result"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason"`
	Due     *int64    `json:"due_ns"`
	Call    *int64    `json:"call_ns"`
	Return  *int64    `json:"return_ns"`
	GaveUp  *int64    `json:"gave_up_ns"`
	Until   *int64    `json:"until_ns"`
	Amount  *int32    `json:"amount"`
	Fence   *int64    `json:"fence"`
	Session jsonValue `json:"session"`

	Trailer *sealed `json:"trailer"`
	Cut     string  `json:"cut"`
	Damaged bool    `json:"damaged"`
}

// field is a field of an operation's line.
type field uint16

const (
	fieldClient field = 1 << iota
	fieldKey
	fieldArg
	fieldResult
	fieldDue
	fieldCall
	fieldReturn
	fieldGaveUp
	fieldUntil
	fieldAmount
	fieldFence
	fieldSession
	fieldKind
	fieldOutcome
	fieldReason
)

// fields is an operation as in a line.
type fields struct {
	op                    Op // Return is not set
	has                   field
	kind, outcome, reason string
	ret, gaveUp           int64
}

// fields returns the operation of the line.
func (o *opLine) fields() *fields {
	f := &fields{kind: o.Kind, outcome: o.Outcome, reason: o.Reason}
	f.op = Op{Key: o.Key.Value, Arg: o.Arg.Value, Result: o.Result.Value, Session: o.Session.Value}
	if o.Client != nil {
		f.has, f.op.Client = f.has|fieldClient, *o.Client
	}
	if o.Amount != nil {
		f.has, f.op.Amount = f.has|fieldAmount, *o.Amount
	}
	for _, v := range []struct {
		of *jsonValue
		is field
	}{{&o.Key, fieldKey}, {&o.Arg, fieldArg}, {&o.Result, fieldResult}, {&o.Session, fieldSession}} {
		if v.of.given {
			f.has |= v.is
		}
	}
	for _, n := range []struct {
		from *int64
		to   *int64
		is   field
	}{
		{o.Due, (*int64)(&f.op.Due), fieldDue}, {o.Call, (*int64)(&f.op.Call), fieldCall}, {o.Return, &f.ret, fieldReturn}, {o.GaveUp, &f.gaveUp, fieldGaveUp},
		{o.Until, (*int64)(&f.op.Until), fieldUntil}, {o.Fence, &f.op.Fence, fieldFence},
	} {
		if n.from != nil {
			f.has, *n.to = f.has|n.is, *n.from
		}
	}
	return f
}

// complete completes the operation. open says that the line does not say when its client gave up waiting; then Return
// is the call.
func (f *fields) complete() (op *Op, open bool, err error) {
	if f.has&fieldClient == 0 {
		return nil, false, errors.New(`"client" is missing: every operation needs the number of its client`)
	}
	if err := f.names(); err != nil {
		return nil, false, err
	}
	if open, err = f.times(); err != nil {
		return nil, false, err
	}
	return &f.op, open, f.values()
}

func (f *fields) names() (err error) {
	if f.op.Kind, err = ParseKind(f.kind); err != nil || f.op.Kind == NoKind {
		return oneOf("kind", f.kind, kindNames[1:])
	}
	if f.op.Outcome, err = ParseOutcome(f.outcome); err != nil {
		if r, err := ParseReason(f.outcome); err == nil && r != NoReason {
			return fmt.Errorf(`"outcome" is %q, which is a reason: say "outcome":"refused","reason":%q`, f.outcome, f.outcome)
		}
		return oneOf("outcome", f.outcome, outcomeNames[:])
	}
	if f.op.Reason, err = ParseReason(f.reason); err != nil {
		return oneOf("reason", f.reason, reasonNames[1:])
	}
	return nil
}

func oneOf(field, got string, want []string) error {
	return fmt.Errorf("%q is %q, it must be one of %s", field, printable.Short(got), strings.Join(want, ", "))
}

func (f *fields) times() (open bool, err error) {
	op := &f.op
	if f.has&fieldCall == 0 {
		return false, errors.New(`"call_ns" is missing: when the operation started, in nanoseconds since the start of the run`)
	}
	if f.has&fieldDue == 0 {
		op.Due = op.Call
	}
	field, end := "return_ns", f.ret
	switch {
	case op.Outcome == Unknown && f.has&fieldGaveUp != 0:
		field, end = "gave_up_ns", f.gaveUp
	case f.has&fieldReturn != 0:
	case op.Outcome == Unknown:
		open, end = true, int64(op.Call)
	default:
		return false, fmt.Errorf(`"return_ns" is missing: only operations whose outcome is "unknown" go without, and this one is %q`, op.Outcome)
	}
	if op.Return = time.Duration(end); op.Return < op.Call {
		return false, fmt.Errorf("%q is %d, before the call at %d: it must not be smaller", field, op.Return, op.Call)
	}
	return open, nil
}

// values sets absent fields to the value that means absent, where that value is not 0.
func (f *fields) values() error {
	op := &f.op
	if f.has&fieldAmount != 0 && op.Amount == 0 && (op.Kind == Buy || op.Kind == Refund) {
		return errors.New(`"amount" is 0: a purchase or refund is of 1 piece or more, and without the field of 1`)
	}
	if f.has&fieldResult == 0 && (op.Kind == Buy || op.Kind == Refund) {
		op.Result = Int(-1)
	}
	if name := f.missing(needs[op.Kind]); name != "" && op.Outcome != Refused {
		return fmt.Errorf("%q is missing: %s", name, needed[op.Kind])
	}
	return nil
}

// leased checks that a grant has the end of its lease, if the leases of the history end.
func (f *fields) leased() error {
	switch k := f.op.Kind; {
	case f.has&fieldUntil != 0, f.op.Outcome != OK, k != Acquire && k != Extend && k != Take:
		return nil
	}
	return errors.New(`"until_ns" is missing: the header has a "ttl_ns", and so it must tell until when this was granted, counted from the start of the attempt that succeeded; 0 if it has no end`)
}

// missing returns the name of an absent required field; "" if there is none.
func (f *fields) missing(n need) string {
	switch {
	case n&needsArg != 0 && f.has&fieldArg == 0:
		return "arg"
	case n&needsResult != 0 && f.has&fieldResult == 0 && f.op.Outcome == OK:
		return "result"
	}
	return ""
}

// jsonValue reads a Value from a string or a whole number. Other numbers cannot be compared: programs round and spell
// them differently.
type jsonValue struct {
	Value
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *jsonValue) UnmarshalJSON(b []byte) error {
	v.given = true
	switch {
	case string(b) == "null":
		*v = jsonValue{}
	case b[0] == '"' && isPlain(b[1:len(b)-1]):
		v.Value = Text(string(b[1 : len(b)-1]))
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		v.Value = Text(s)
	default:
		n, err := strconv.ParseInt(string(b), 10, 64)
		if err != nil {
			return fmt.Errorf(`"key", "arg", "result" and "session" must be strings or whole numbers of 64 bits, not %s`, printable.Short(string(b)))
		}
		v.Value = Int(n)
	}
	return nil
}

// MarshalJSON writes an operation as in a line of JSON lines, so that a witness reads like its history.
func (o Op) MarshalJSON() ([]byte, error) {
	line := appendOpLine(nil, &o)
	return line[:len(line)-1], nil
}

// UnmarshalJSON reads an operation as in a line of JSON lines.
func (o *Op) UnmarshalJSON(b []byte) error {
	var l opLine
	if err := exactjson.Unmarshal(b, &l); err != nil {
		return plain(err)
	}
	op, _, err := l.fields().complete()
	if err != nil {
		return err
	}
	*o = *op
	return nil
}
