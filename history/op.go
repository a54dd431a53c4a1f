package history

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
	"unique"
)

// Outcome is a client's knowledge of its operation. The zero value is Unknown, and only a declared answer changes that:
// in doubt, the operation may or may not have taken effect, now or at any later time.
type Outcome uint8

// The outcomes.
const (
	Unknown Outcome = iota // no answer, or an error: it may take effect at any later time
	OK                     // done
	Refused                // declined by a declared answer, without effect; see Reason
)

// Reason qualifies a refusal, or an OK that repeats an earlier effect.
type Reason uint8

// The reasons.
const (
	NoReason Reason = iota
	Held            // the lock is taken
	Lost            // the lock is no longer the caller's
	SoldOut         // less stock left than ordered
	Stale           // a newer fencing token or version has been seen
	Repeated        // with OK: the order has had its effect, by an operation before or by an earlier attempt of this one
	Stopped         // the run was ending; the client gave up before anything took effect
	Empty           // nothing to hand out
	Changed         // the task was enqueued again since, or is gone
)

// Kind is the kind of an operation.
type Kind uint8

// The kinds. Numbers are stored in files: append, never reorder.
const (
	NoKind    Kind = iota
	Acquire        // Key lock, Arg session, Result how it was granted, Fence token granted, Until end of the lease
	Extend         // Key lock, Arg session, Until new end of the lease
	Release        // Key lock, Arg session, Until end of the lease as last renewed
	Join           // Key lock, Arg session: the client got its place in a lock's line
	Buy            // Key product, Arg order, Result pieces left as the sale told it (-1: not told), Amount pieces, Fence token shown, Session the lock held
	Refund         // Key product, Arg order, Amount pieces
	ReadState      // Key product, Arg what was counted ("left", "reserved", "sold" net of refunds), Result number
	Fault          // Key the fault's sentence, Arg its kind, Result whom it hit, from Call to Return; Until, if servers or the wire were disturbed, when that ended (Forever: they never recovered)
	Enqueue        // Key queue, Arg task, Session the call if it had several ids (one operation for each), Until when it is due (0: at once); OK with Repeated: it was there, nothing changed
	Dequeue        // Key queue, Arg task: withdrawn by id and score
	Pop            // Key queue, Session request, Result task, Amount attempt: one operation for each task that the request took
	Ack            // Key queue, Arg task, Session the request that took it
	Effect         // Key queue, Arg task: the consumer's own effect; OK with Repeated: it had been done before
	NextID         // Key counter, Arg request (0: one of its own), Result the number; OK with Repeated: the request had been given it before
	Take           // Key pool, Arg user, Result task, Session the hold, Until the end of the hold
	Submit         // Key pool, Arg task, Session the hold under which it was done
	Peek           // Key queue, Session request, Result task: one operation for each task that was shown
)

// Value is an argument or a result: a number or a short interned text. The
// zero value is the number 0. Values are comparable.
type Value struct {
	text unique.Handle[string]
	num  int64
}

var noText unique.Handle[string]

// Int returns the value of a number.
func Int(n int64) Value { return Value{num: n} }

// Text returns the value of a text. It interns, so make a value once and reuse it. A text that is a plain decimal
// number becomes that number.
func Text(s string) Value {
	// An error of ParseInt holds a copy of the text.
	if s != "" && s[len(s)-1]-'0' <= 9 {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
			return Value{num: n}
		}
	}
	return Value{text: unique.Make(s)}
}

// Num returns the number, and whether the value is one.
func (v Value) Num() (int64, bool) { return v.num, v.text == noText }

// String is the text, or the number in decimal.
func (v Value) String() string {
	if v.text == noText {
		return strconv.FormatInt(v.num, 10)
	}
	return v.text.Value()
}

// unicode reports whether the text is UTF-8.
func (v Value) unicode() bool { return v.text == noText || utf8.ValidString(v.text.Value()) }

// Rewrite implements printable.Rewriter.
func (v Value) Rewrite(text func(string) string) any {
	if v.text == noText {
		return v
	}
	if s := v.text.Value(); text(s) != s {
		return Value{text: unique.Make(text(s))}
	}
	return v
}

// Op is one operation as seen by its client. All times are since the start of
// the run, on one monotonic clock; the times of one client strictly rise.
type Op struct {
	Client  int32
	Amount  int32 // pieces of a Buy or Refund, where 0 reads as 1; attempt of a Pop
	Kind    Kind
	Outcome Outcome
	Reason  Reason
	Key     Value
	Arg     Value
	Result  Value
	// Fence is the fencing token granted (Acquire) or shown (Buy, Refund); 0: none.
	Fence int64
	// Session is the acquisition under which a Buy or Refund ran, as in the Arg of its Acquire, or the operation's
	// request or hold: a number or a text. The zero value, the number 0, means none.
	Session Value
	Due     time.Duration // when it should have started
	Call    time.Duration // when it started
	// Return is when the answer came or, for an unknown outcome, when the client gave up waiting; its effect may come
	// later. See End.
	Return time.Duration
	// Until is the end of the lease promised to the client: for Acquire and
	// Extend as granted, for Release as last renewed. It is the start of the
	// winning attempt plus the TTL, less what the lock allows for drift.
	Until time.Duration
}

// Forever is the end of an operation with an unknown outcome.
const Forever = time.Duration(1<<63 - 1)

// End returns the latest time at which the operation can have taken effect: its
// return, or Forever when the outcome is unknown.
func (o Op) End() time.Duration {
	if o.Outcome == Unknown {
		return Forever
	}
	return o.Return
}

// Pieces returns Amount, or 1 for 0.
func (o Op) Pieces() int64 {
	if o.Amount == 0 {
		return 1
	}
	return int64(o.Amount)
}

var (
	outcomeNames = [...]string{Unknown: "unknown", OK: "ok", Refused: "refused"}
	reasonNames  = [...]string{NoReason: "", Held: "held", Lost: "lost", SoldOut: "sold-out", Stale: "stale", Repeated: "repeated", Stopped: "stopped",
		Empty: "empty", Changed: "changed"}
	kindNames = [...]string{NoKind: "", Acquire: "acquire", Extend: "extend", Release: "release", Join: "join",
		Buy: "buy", Refund: "refund", ReadState: "read-state", Fault: "fault",
		Enqueue: "enqueue", Dequeue: "dequeue", Pop: "pop", Ack: "ack", Effect: "effect", NextID: "next-id", Take: "take", Submit: "submit", Peek: "peek"}
)

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("?%d", i)
}

func parse[T ~uint8](what string, names []string, s string) (T, error) {
	for i, n := range names {
		if n == s {
			return T(i), nil
		}
	}
	return 0, fmt.Errorf("%s %q is not known", what, s)
}

// String returns the name that history files use for o.
func (o Outcome) String() string { return name(outcomeNames[:], uint8(o)) }

// String returns the name that history files use for r.
func (r Reason) String() string { return name(reasonNames[:], uint8(r)) }

// String returns the name that history files use for k.
func (k Kind) String() string { return name(kindNames[:], uint8(k)) }

// ParseOutcome is the inverse of Outcome.String.
func ParseOutcome(s string) (Outcome, error) { return parse[Outcome]("outcome", outcomeNames[:], s) }

// ParseReason is the inverse of Reason.String.
func ParseReason(s string) (Reason, error) { return parse[Reason]("reason", reasonNames[:], s) }

// ParseKind is the inverse of Kind.String.
func ParseKind(s string) (Kind, error) { return parse[Kind]("kind", kindNames[:], s) }

// String formats the operation in one line, for logs and failed tests.
func (o Op) String() string {
	s := fmt.Sprintf("[%v..%v] client %d %s", o.Call, o.Return, o.Client, o.Kind)
	if o.Key != (Value{}) {
		s += " " + o.Key.String()
	}
	if o.Arg != (Value{}) {
		s += " " + o.Arg.String()
	}
	s += " -> " + o.Outcome.String()
	if o.Reason != NoReason {
		s += " (" + o.Reason.String() + ")"
	}
	if o.Result != (Value{}) && (o.Result != Int(-1) || o.Kind != Buy && o.Kind != Refund) { // -1: not told
		s += " " + o.Result.String()
	}
	if o.Until != 0 {
		s += fmt.Sprintf(" until %v", o.Until)
	}
	if o.Fence != 0 {
		s += fmt.Sprintf(" fence %d", o.Fence)
	}
	return s
}
