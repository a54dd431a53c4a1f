package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// opLine is a line of JSON behind the header. Pointers tell what is absent.
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
	Until   int64     `json:"until_ns"`
	Amount  int32     `json:"amount"`
	Fence   int64     `json:"fence"`
	Session int64     `json:"session"`

	Trailer *Trailer `json:"trailer"`
	Cut     string   `json:"cut"`
}

// op makes an operation of the line; latest is the largest return on the lines
// above.
func (o *opLine) op(latest time.Duration) (Op, error) {
	if o.Client == nil {
		return Op{}, errors.New(`"client" is missing: every operation needs the number of its client`)
	}
	op := Op{
		Client: *o.Client, Amount: o.Amount,
		Key: o.Key.Value, Arg: o.Arg.Value, Result: o.Result.Value,
		Fence: o.Fence, Session: o.Session, Until: time.Duration(o.Until),
	}
	if err := o.names(&op); err != nil {
		return Op{}, err
	}
	return op, o.times(&op, latest)
}

func (o *opLine) names(op *Op) (err error) {
	if op.Kind, err = ParseKind(o.Kind); err != nil || op.Kind == NoKind {
		return oneOf("kind", o.Kind, kindNames[1:])
	}
	if op.Outcome, err = ParseOutcome(o.Outcome); err != nil {
		return oneOf("outcome", o.Outcome, outcomeNames[:])
	}
	if op.Reason, err = ParseReason(o.Reason); err != nil {
		return oneOf("reason", o.Reason, reasonNames[1:])
	}
	return nil
}

func oneOf(field, got string, want []string) error {
	return fmt.Errorf("%q is %q, it must be one of %s", field, got, strings.Join(want, ", "))
}

func (o *opLine) times(op *Op, latest time.Duration) error {
	if o.Call == nil {
		return errors.New(`"call_ns" is missing: when the operation started, in nanoseconds since the start of the run`)
	}
	op.Call, op.Due = time.Duration(*o.Call), time.Duration(*o.Call)
	if o.Due != nil {
		op.Due = time.Duration(*o.Due)
	}
	field, end := "return_ns", o.Return
	if op.Outcome == Unknown && o.GaveUp != nil {
		field, end = "gave_up_ns", o.GaveUp
	}
	switch {
	case end != nil:
		op.Return = time.Duration(*end)
	case op.Outcome == Unknown:
		op.Return = max(latest, op.Call)
	default:
		return fmt.Errorf(`"return_ns" is missing: only operations whose outcome is "unknown" go without, and this one is %q`, op.Outcome)
	}
	if op.Return < op.Call {
		return fmt.Errorf("%q is %d, before the call at %d: it must not be smaller", field, op.Return, op.Call)
	}
	return nil
}

// jsonValue reads a Value from a string or a number.
type jsonValue struct{ Value }

// UnmarshalJSON implements json.Unmarshaler.
func (v *jsonValue) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		v.Value = Value{}
	case b[0] == '"' && isPlain(b[1:len(b)-1]):
		v.Value = Text(string(b[1 : len(b)-1]))
	case b[0] == '"':
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		v.Value = Text(s)
	case b[0] == '-' || '0' <= b[0] && b[0] <= '9':
		v.Value = Text(string(b))
	default:
		return fmt.Errorf(`"key", "arg" and "result" must be strings or numbers, not %s`, b)
	}
	return nil
}

// MarshalJSON writes an operation as a line of JSON lines has it, so that a witness
// reads like the history that it comes from.
func (o Op) MarshalJSON() ([]byte, error) {
	line := appendOpLine(nil, &o)
	return line[:len(line)-1], nil
}

// UnmarshalJSON reads an operation as it stands in a line of JSON lines.
func (o *Op) UnmarshalJSON(b []byte) error {
	var l opLine
	if err := json.Unmarshal(b, &l); err != nil {
		return plain(err)
	}
	op, err := l.op(0)
	if err != nil {
		return err
	}
	*o = op
	return nil
}
